"""Tracks on one axis, and the diagnostics of the rank-1 track."""

import numpy as np
import pytest

from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.evaluation.results import Runs
from logeval.reports.figures import regret
from logeval.reports.figures.canvas import save_figure
from logeval.tracks import rank1
from logeval.tracks.ranking import RankingEnvironment, TopPair
from tests.stand_in import lists, models

PBM = models("PBM", (5, 7), K=3)
POLICIES = ["dcmKL-UCB", "Rank1ElimKL", "UCB1Elim", "UCB1", "Random", "Oracle"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("tracks") / "runs"
    evaluate(PBM, policies=POLICIES, horizon=8000, runs=3, quiet=True, out=out)
    return out


@pytest.fixture(scope="module")
def runs(folder):
    return Runs.load(folder)


def test_the_top_pair_of_a_list_is_at_the_most_examined_position():
    problems = lists(PBM)
    environment = RankingEnvironment(problems, [(0, 0), (1, 0)], seed=0)
    A = np.array([[4, 2, 0], [1, 6, 3]])
    meter = TopPair(environment, None)
    rewards, items = meter.reward(A), environment.items(A)
    for r, problem in enumerate(problems):
        e = problem.users.e[:, 0]
        position = int(np.argmax(e))
        assert rewards[r] == pytest.approx(problem.users.w[items[r, position]] * e[position])
        assert meter.best[r] == pytest.approx(problem.users.w.max() * e.max())


def test_pair_regret_of_a_random_list_is_its_mean_over_items(runs):
    rows = runs.to_pandas().query("track == 'ranking' and policy == 'Random' and t == 8000")
    for _, query, model in PBM:
        w, e = model.users.w, model.users.e[:, 0].max()
        mean = rows[rows["query"] == query]["pair_regret"].mean() / 8000
        assert mean == pytest.approx((w.max() - w.mean()) * e, abs=0.02)
        optimal = rows[rows["query"] == query]["pair_optimal_reward"]
        assert optimal.to_numpy() == pytest.approx(8000 * w.max() * e)


def test_pairs_of_the_rank1_track_are_judged_by_their_own_regret(runs):
    rows = runs.to_pandas().query("track == 'rank1'")
    assert (rows["pair_regret"] == rows["regret"]).all()
    assert (rows["pair_optimal_reward"] == rows["optimal_reward"]).all()


def test_relative_says_which_reward_is_counted(runs):
    found = runs.relative().set_index(["policy", "reward"])["relative_regret"]
    assert ("dcmKL-UCB", "list") in found.index
    assert ("dcmKL-UCB", "top pair") in found.index
    assert ("Rank1ElimKL", "pair") in found.index
    assert ("Rank1ElimKL", "list") not in found.index
    assert found["Oracle", "list"] == found["Oracle", "pair"] == 0.0
    summary = runs.summary().set_index(["track", "policy"])["relative_regret"]
    assert found["dcmKL-UCB", "list"] == pytest.approx(summary["ranking", "dcmKL-UCB"])
    assert found["UCB1", "pair"] == pytest.approx(summary["rank1", "UCB1"])
    table = runs.to_pandas().query("policy == 'dcmKL-UCB' and t == 8000")
    share = table["pair_regret"].sum() / table["pair_optimal_reward"].sum()
    assert found["dcmKL-UCB", "top pair"] == pytest.approx(share)
    table = runs.relative()
    assert (table["low"] <= table["relative_regret"] + 1e-12).all()
    assert (table["relative_regret"] <= table["high"] + 1e-12).all()


def test_models_without_pairs_have_null_pair_columns():
    runs = evaluate(models("DCM", (5,), K=3), policies=["Random"], horizon=20, runs=2, quiet=True)
    assert runs.to_pandas()["pair_regret"].isna().all()
    assert runs.to_pandas()["rows_left"].isna().all()
    assert set(runs.relative()["reward"]) == {"list"}
    assert runs.hardness().empty


def test_hardness_is_stored_with_the_runs(runs):
    table = runs.hardness().set_index("query")
    for _, query, model in PBM:
        u, v = model.users.w, model.users.e[:, 0]
        hard = rank1.rank1_hardness(u, v)
        row = table.loc[query]
        assert (row["items"], row["positions"]) == (len(u), 3)
        assert (row["mu"], row["p_max"], row["gamma"]) == pytest.approx(tuple(hard))
        assert row["bound"] == pytest.approx(rank1.rank1_upper(u, v, 8000))


def test_hardness_grows_with_the_folder(tmp_path):
    short = {"policies": ["UCB1"], "horizon": 50, "runs": 1, "quiet": True, "out": tmp_path / "r"}
    evaluate(PBM, queries=["8@0"], **short)
    evaluate(PBM, queries=["7@0"], **short)
    assert Runs.load(tmp_path / "r").hardness()["query"].tolist() == ["7@0", "8@0"]


def test_rows_and_columns_left_never_grow(runs):
    table = runs.to_pandas()
    eliminating = table["policy"].isin(["Rank1ElimKL", "UCB1Elim"])
    assert table["rows_left"].notna().equals(eliminating)
    for _, part in table[eliminating].groupby(["policy", "query", "run"]):
        for column in ("rows_left", "columns_left"):
            left = part.sort_values("t")[column].to_numpy()
            assert left[0] == (len(PBM[part["query"].iloc[0] == "8@0"][2].items)
                               if column == "rows_left" else 3)  # fmt: skip
            assert (np.diff(left) <= 0).all()
            assert left[-1] >= 1
    assert (table[eliminating].query("t == 8000")["rows_left"] < 5).any()


def test_figures(runs, tmp_path):
    figure = regret.figure_of(runs, "relative", log_x=True)
    assert "<svg" in save_figure(figure, tmp_path / "figure.svg").read_text()
    ax = regret.plot_relative(runs, "PBM")
    labels = ax.get_legend_handles_labels()[1]
    assert {"dcmKL-UCB: list", "dcmKL-UCB: top pair", "Rank1ElimKL: pair"} <= set(labels)
    only = evaluate(PBM, policies=["UCB1"], horizon=20, runs=1, quiet=True)
    with pytest.raises(LogevalError, match="estimates a theta"):
        regret.figure_of(only, "cosine")


class First:
    """A policy of a user, in the rank-1 track, that says what it has left."""

    TRACK = "rank1"

    def __init__(self, setting):
        self.R = setting.R

    def recommend(self, t):
        return np.zeros((self.R, 2), dtype=int)

    def update(self, t, A, clicks):
        pass

    def remaining(self):
        return np.tile([4, 2], (self.R, 1))


def test_a_policy_of_a_user_may_say_what_it_has_left():
    runs = evaluate(PBM, policies=[First], horizon=20, runs=2, quiet=True)
    rows = runs.to_pandas()
    assert set(rows["rows_left"]) == {4}
    assert set(rows["columns_left"]) == {2}


def test_random_pairs_are_uniform():
    runs = evaluate(PBM, policies=["Random"], track="rank1", horizon=5000, runs=4, quiet=True)
    rows = runs.to_pandas().query("t == 5000")
    for _, query, model in PBM:
        w, e = model.users.w, model.users.e[:, 0]
        mean = rows[rows["query"] == query]["reward"].mean() / 5000
        assert mean == pytest.approx(w.mean() * e.mean(), rel=0.03)
