"""Where the variance of a mean regret comes from, and who is best how often, worked out by hand."""

from math import nan

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from logeval.evaluation.results import Runs
from logeval.evaluation.statistics.robustness import best_text, components_of
from logeval.storage.schemas import RUNS


def runs_of(regret, optimal=None, drawn=True):
    """Runs from the regrets (Q, D, N) of (simulator, policy); nan is a run that is not there."""
    rows = [
        {
            "simulator": simulator, "track": "ranking", "policy": policy, "query": f"{q}@0",
            "draw": d + drawn, "run": run, "t": 10, "regret": float(value), "reward": 1.0,
            "optimal_reward": (optimal or {}).get(simulator, 1.0), "clicks": 1, "optimal_steps": 0,
        }
        for (simulator, policy), x in regret.items()
        for (q, d, run), value in np.ndenumerate(np.asarray(x, dtype=float))
        if value == value
    ]  # fmt: skip
    table = pd.DataFrame(rows).reindex(columns=RUNS.names)
    return Runs(pa.Table.from_pandas(table, schema=RUNS, preserve_index=False))


def sources(runs, policy="A"):
    found = runs.variance()
    return found[found["policy"] == policy].set_index("source")


def one_model(more_draws=1):
    """Query means 3 and 14; draws that deviate by -2, 0, 2 and -3, 0, 3; four runs by 1."""
    draws = np.array([[1.0, 3.0, 5.0], [11.0, 14.0, 17.0]])
    return np.tile(draws, more_draws)[:, :, None] + np.array([-1.0, 1.0, -1.0, 1.0])


# -- variance components ----------------------------------------------------------------------


def test_variance_components_are_those_of_a_loop_over_three_levels():
    x = np.random.default_rng(3).normal(size=(5, 4, 3)) * [1.0, 2.0, 3.0]
    x += 3 * np.arange(5)[:, None, None] + 2 * np.arange(4)[:, None] ** 2
    Q, D, N = x.shape
    run = np.mean([[x[q, d].var(ddof=1) for d in range(D)] for q in range(Q)])
    draw = np.mean([x[q].mean(axis=1).var(ddof=1) for q in range(Q)])
    query = x.mean(axis=(1, 2)).var(ddof=1)
    expected = {"query": query - draw / D, "draw": draw - run / N, "run": run}
    assert min(expected.values()) > 0
    assert components_of(x, ("query", "draw", "run")) == pytest.approx(expected)


# -- the variance of mean regret ----------------------------------------------------------------


def test_sources_of_variance_worked_out_by_hand():
    # mean squares: runs 4 / 3; draws 4 (4 + 9) / 2 = 26; queries 12 * 60.5 = 726
    found = sources(runs_of({("DCM", "A"): one_model()}))
    components = {"runs": 4 / 3, "parameters": 37 / 6, "queries": 175 / 3, "choice of model": nan}
    assert found["component"].to_dict() == pytest.approx(components, nan_ok=True)
    # of the mean: runs over 2 * 3 * 4, parameters over 2 queries, queries over 2
    of_mean = {"runs": 1 / 18, "parameters": 37 / 12, "queries": 175 / 6, "choice of model": nan}
    assert found["of_mean"].to_dict() == pytest.approx(of_mean, nan_ok=True)
    shares = {"runs": 2, "parameters": 111, "queries": 1050, "choice of model": nan}
    assert (1163 * found["share"]).to_dict() == pytest.approx(shares, nan_ok=True)


@pytest.mark.parametrize("more", [1, 3])
def test_more_draws_do_not_make_parameters_more_certain(more):
    """The truth is one draw of each query: what draws add is their component over the queries."""
    found = sources(runs_of({("DCM", "A"): one_model(more)}))
    assert (found["of_mean"] * 2 == found["component"])[["parameters", "queries"]].all()
    assert found.loc["runs", "of_mean"] == pytest.approx(4 / 3 / (24 * more))
    assert found.loc["parameters", "of_mean"] > 1.5


def test_the_choice_of_model_is_one_choice_however_many_were_fitted():
    # shares of the optimum; runs vary by 0.02, query means by 0.02, model means 0.3, 0.7 by 0.08
    x = np.array([[[0.1, 0.3]], [[0.3, 0.5]]])
    runs = runs_of(
        {("DCM", "A"): 2 * x, ("PBM", "A"): 10 * (x + 0.4)}, {"DCM": 2.0, "PBM": 10.0}, drawn=False
    )
    found = sources(runs)
    of_mean = {"runs": 0.005, "queries": 0.005, "parameters": nan, "choice of model": 0.07}
    assert found["of_mean"].to_dict() == pytest.approx(of_mean, nan_ok=True)
    shares = {k: v / 0.08 for k, v in of_mean.items()}
    assert found["share"].to_dict() == pytest.approx(shares, nan_ok=True)


def test_models_that_earn_differently_and_lose_the_same_share_agree():
    x = one_model()
    runs = runs_of({("DCM", "A"): x, ("PBM", "A"): 50 * x}, {"DCM": 20.0, "PBM": 1000.0})
    found = sources(runs)
    assert found.loc["choice of model", "component"] == 0.0
    alone = sources(runs_of({("DCM", "A"): x / 20}))["share"].fillna(0.0)
    assert found["share"].to_dict() == pytest.approx(alone.to_dict())


def test_with_one_model_regret_is_not_taken_relative():
    x = one_model()
    runs, plain = (runs_of({("DCM", "A"): x}, {"DCM": best}) for best in (20.0, 1.0))
    assert sources(runs)["component"].equals(sources(plain)["component"])


def test_variance_is_of_the_policies_draws_and_runs_that_all_models_have():
    x = one_model()
    longer = np.pad(x, ((0, 0), (0, 2), (0, 1)), constant_values=500.0)
    both = runs_of({("DCM", "A"): x, ("DCM", "B"): x + 1, ("PBM", "A"): longer})
    found = both.variance()
    assert set(found["policy"]) == {"A"}
    plain = sources(runs_of({("DCM", "A"): x, ("PBM", "A"): x}))
    assert sources(both)["of_mean"].to_dict() == pytest.approx(plain["of_mean"].to_dict())


def test_the_models_are_compared_on_the_queries_that_all_have():
    x, first = one_model(), np.full((1, 3, 4), 500.0)
    lacking = np.concatenate([np.full((1, 3, 4), np.nan), x])  # PBM has no query 0
    found = sources(runs_of({("DCM", "A"): np.concatenate([first, x]), ("PBM", "A"): lacking}))
    assert found.loc["choice of model", "component"] == 0.0
    plain = sources(runs_of({("DCM", "A"): x, ("PBM", "A"): x}))
    assert found["of_mean"].to_dict() == pytest.approx(plain["of_mean"].to_dict())


def test_models_without_a_common_query_are_compared_by_their_means():
    apart = np.concatenate([np.full((2, 3, 4), np.nan), one_model() + 100.0])
    found = sources(runs_of({("DCM", "A"): one_model(), ("PBM", "A"): apart}))
    assert found.loc["choice of model", "share"] > 0.9


def test_a_query_with_a_gap_is_left_out_of_the_variance():
    x = np.concatenate([one_model(), [[[900.0, 800.0, 1.0, np.nan]] * 3]])
    found = sources(runs_of({("DCM", "A"): x}))
    whole = sources(runs_of({("DCM", "A"): one_model()}))
    assert found["of_mean"].to_dict() == pytest.approx(whole["of_mean"].to_dict(), nan_ok=True)


def test_regret_that_never_varies_has_no_source():
    assert sources(runs_of({("DCM", "A"): np.ones((2, 3, 2))}))["share"].isna().all()


def test_what_was_not_measured_has_no_share():
    """One run of each draw: what runs add is in the draws; one model says nothing of models."""
    found = sources(runs_of({("DCM", "A"): one_model()[:, :, :1]}))["share"]
    assert np.isnan([found["runs"], found["choice of model"]]).all()
    assert found["queries"] + found["parameters"] == pytest.approx(1.0)


# -- who is best ----------------------------------------------------------------------------------


def test_who_is_best_worked_out_by_hand():
    """Two queries with two draws, four units on each model; a tie is shared."""
    dcm = {
        "Oracle": [[0, 0], [0, 0]],
        "A": [[1, 5], [3, 9]],  # mean 4.5; best in two units and half of one
        "B": [[2, 5], [4, 1]],  # mean 3: best in one and a half
    }
    pbm = {"A": [[1, 1], [1, 9]], "B": [[2, 2], [2, 1]]}  # means 3 and 1.75
    table = {("DCM", p): x for p, x in dcm.items()} | {("PBM", p): x for p, x in pbm.items()}
    regret = {key: np.array(x, dtype=float)[:, :, None] + [-0.5, 0.5] for key, x in table.items()}
    found = runs_of(regret).best()
    assert found["policy"].tolist() == ["B", "A"]  # by models first
    rows = found.set_index("policy")
    assert rows["simulators"].to_dict() == {"A": 0, "B": 2}
    assert (rows["of"] == 2).all()
    assert rows["on"].to_dict() == {"A": "", "B": "DCM, PBM"}
    assert rows["probability"].to_dict() == pytest.approx({"A": 5.5 / 8, "B": 2.5 / 8})
    assert rows["lowest"].to_dict() == pytest.approx({"A": 2.5 / 4, "B": 1 / 4})


def test_who_is_best_is_decided_by_the_mean_over_runs():
    # run by run B wins two of three, and its worst run is better; in the mean A wins
    x = {("DCM", "A"): [[[0.0, 6.0, 6.0]]], ("DCM", "B"): [[[5.0, 5.0, 5.0]]]}
    rows = runs_of(x, drawn=False).best().set_index("policy")
    assert rows["probability"].to_dict() == {"A": 1.0, "B": 0.0}
    assert rows["on"].to_dict() == {"A": "DCM", "B": ""}


def test_the_smallest_mean_is_over_draws_and_queries():
    x = {("DCM", "A"): [[[0.0], [6.0], [6.0]]], ("DCM", "B"): [[[5.0], [5.0], [5.0]]]}
    rows = runs_of(x).best().set_index("policy")
    assert rows["on"].to_dict() == {"A": "DCM", "B": ""}
    assert rows["probability"].to_dict() == pytest.approx({"A": 1 / 3, "B": 2 / 3})


def test_who_is_best_gives_queries_equal_weight_however_many_runs_they_have():
    nan = np.nan
    a = [[[1.0, 1.0, 1.0]], [[9.0, nan, nan]]]
    b = [[[4.0, 4.0, 4.0]], [[4.0, nan, nan]]]
    rows = runs_of({("DCM", "A"): a, ("DCM", "B"): b}, drawn=False).best().set_index("policy")
    assert rows["simulators"].to_dict() == {"A": 0, "B": 1}  # (1 + 9) / 2 > 4
    assert rows["probability"].to_dict() == {"A": 0.5, "B": 0.5}


def test_of_equally_many_models_the_more_probable_is_first():
    one = {("DCM", "A"): [[[1.0]], [[1.0]], [[7.0]]], ("DCM", "B"): [[[4.0]], [[4.0]], [[4.0]]]}
    two = {("PBM", "A"): [[[1.0]], [[1.0]], [[12.0]]], ("PBM", "B"): [[[4.0]], [[4.0]], [[4.0]]]}
    found = runs_of(one | two, drawn=False).best()
    assert found["policy"].tolist() == ["A", "B"]
    assert found["on"].tolist() == ["DCM", "PBM"]


def test_who_is_best_in_words():
    row = {"policy": "A", "simulators": 1, "of": 2, "on": "DCM", "probability": 0.5, "lowest": 0.2}
    rows = [row, row | {"policy": "B", "on": "PBM"}, row | {"policy": "C", "simulators": 0}]
    first, second = best_text(pd.DataFrame(rows))
    assert first == (
        "A has the smallest mean regret on 1 of 2 click models (DCM) and is best on 50% of queries "
        "and draws; on the others another policy has it"
    )
    assert second.startswith("B has the smallest mean regret on 1 of 2 click models (PBM)")
    (both,) = best_text(pd.DataFrame([row | {"simulators": 2, "on": "DCM, PBM"}]))
    assert both == (
        "A has the smallest mean regret on 2 of 2 click models (DCM, PBM) and is best on 50% of "
        "queries and draws"
    )
    (alone,) = best_text(pd.DataFrame([row | {"of": 1}]))
    assert alone == (
        "A has the smallest mean regret on 1 of 1 click model (DCM) and is best on 50% of queries "
        "and draws"
    )
