"""One runner for all experiments: sizes, resuming, logs, the page."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from logeval.errors import LogevalError
from logeval.log.ingest import ingest
from logeval.policies.registry import parse_policies
from logeval.synthetic.generate import generate
from logeval.tracks.registry import synthetic_problem
from reproduction.data import VARIABLE, experiments, named
from reproduction.measures import (
    HALF_BLOCK,
    hardnesses,
    over,
    rises,
    stairs,
    two_queries,
)
from reproduction.page import NOT_RUN, PAGE, page, read, rows_of
from reproduction.run import Asked, run_all, run_one


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("papers")
    generate(
        folder / "log.tsv", sessions=900, queries=25, format="yandex-relpred", seed=1, quiet=True
    )
    return ingest([str(folder / "log.tsv")], folder / "log", quiet=True).path


@pytest.fixture(scope="module")
def log_with_users(tmp_path_factory):
    folder = tmp_path_factory.mktemp("users")
    generate(folder / "log.tsv", sessions=900, queries=5, seed=1, quiet=True)
    return ingest([str(folder / "log.tsv")], folder / "log", quiet=True).path


def reproduce(experiment, log=None, **more):
    return run_one(experiment, log, Asked(**more))


def test_every_figure_of_the_issue_is_there():
    wanted = (
        "cascading-tables cascading-1 dcm-2a dcm-2b dcm-2c dcm-3a dcm-3b dcm-3c rank1-1 rank1-2 "
        "rank1-3 gl-cdcm-1a gl-cdcm-1b gl-cdcm-2a gl-cdcm-2b"
    )
    assert set(wanted.split()) <= set(experiments())


@pytest.mark.parametrize("experiment", experiments().values(), ids=list(experiments()))
def test_problems_and_policies_of_every_experiment_can_be_made(experiment):
    for part in experiment.parts:
        track = "contextual" if "gl-cdcm" in part.name else None
        assert len(parse_policies(part.policies, track=track)) == len(part.policies)
        # names print as they parse, so that cells find their rows
        assert [synthetic_problem(p).simulator for p in part.problems] == list(part.problems)
        assert bool(part.problems) != bool(part.model)
    assert experiment.claims
    assert all(claim.text and claim.place for claim in experiment.claims)
    assert not VARIABLE.search(str(experiment))  # each has its word


def test_parts_of_one_name_are_the_same_users():
    users = {}
    for experiment in experiments().values():
        for part in experiment.parts:
            mine = replace(part, policies=())
            assert users.setdefault(part.name, mine) == mine


def test_a_smaller_size_has_fewer_runs_and_then_fewer_steps():
    experiment = named("dcm-3b")  # 20 runs of 100,000 steps
    assert experiment.scaled(1.0) == (100_000, 20)
    assert experiment.scaled(0.5) == (100_000, 10)
    assert experiment.scaled(0.01) == (10_000, 2)
    with pytest.raises(LogevalError, match="scale=0"):
        reproduce(experiment, scale=0.0)


def test_runs_are_kept_shared_and_gone_on_with(tmp_path):
    how = {"out": tmp_path, "horizon": 30, "runs": 2}
    first = reproduce(named("dcm-3a"), **how)
    other = reproduce(named("dcm-3b"), **how)
    assert (tmp_path / "runs" / "dcm-3").is_dir()
    free = {"dcmKL-UCB(init=sample)", "RankedKL-UCB(init=sample)"}  # as the paper begins
    assert set(other.runs["dcm-3"].to_pandas()["policy"]) == free
    assert other.regret("dcmKL-UCB").tolist() == first.regret("dcmKL-UCB").tolist()


def test_experiments_of_a_log_need_one():
    with pytest.raises(LogevalError, match=r"dcm-3c needs an ingested log"):
        reproduce(named("dcm-3c"))


def test_figure_3c_is_judged_by_the_fit_of_the_paper(log):
    """One claim, one verdict: a DCM per query by counting."""
    outcome = reproduce(named("dcm-3c"), log, horizon=20, runs=2)
    assert outcome.fits["dcm-3c-guo"].method == "guo"
    assert outcome.fits["dcm-3c-guo"].scope == "per-query"
    found = outcome.judged
    (half,) = [one for one in found if one.claim.text.startswith("at most half")]
    best = [f"{policy} @ dcm-3c-guo" for policy in ("RankedKL-UCB", "RankedExp3")]
    assert half.ours == over(outcome, "dcmKL-UCB @ dcm-3c-guo", best)


@pytest.mark.parametrize(
    ("v", "clicks", "rising"),
    [
        ([0.5, 0.7], [20, 20], False),  # a rise that chance may make
        ([0.5, 0.7], [2000, 2000], True),
        ([0.7, 0.5], [2000, 2000], False),
        ([0.7, 0.5, 0.6], [2000, 2000, 2000], True),  # somewhere
        ([0.5, 0.7, 0.0], [2000, 0, 0], False),  # no clicks, no test
        ([0.0, 0.0], [50, 50], False),
    ],
)
def test_terminations_rise_when_chance_does_not_explain_it(v, clicks, rising):
    assert rises(np.array(v), np.array(clicks, dtype=float)) == rising


def test_falling_terminations_are_seldom_taken_for_rising_ones():
    rng = np.random.default_rng(3)
    v, clicks = np.full(9, 0.6), np.full(9, 300)
    found = [rises(rng.binomial(clicks, v) / clicks, clicks * 1.0) for _ in range(400)]
    assert np.mean(found) < 0.03  # 1%


@pytest.mark.parametrize("experiment", experiments().values(), ids=list(experiments()))
def test_every_claim_can_be_measured(experiment, log, log_with_users):
    """Cells, parts and queries that claims ask for are there."""
    on = log_with_users if experiment.name == "gl-cdcm-2b" else log
    outcome = reproduce(experiment, on, horizon=12, runs=2)
    assert len({one.claim.text + one.claim.place for one in outcome.judged}) == len(
        experiment.claims
    )


def curve(steps):
    """An outcome with one run of one policy: the regret of each half block."""
    t = HALF_BLOCK * np.arange(1, len(steps) + 1)
    rows = pd.DataFrame({"run": 0, "t": t, "regret": np.cumsum(steps)})
    return SimpleNamespace(horizon=int(t[-1]), rows=lambda cell: rows)


def test_stairs_rise_anew_and_a_curve_that_flattens_has_none():
    """What only flattens has less in the second half of each block as well."""
    assert stairs(curve([10.0, 2.0, 8.0, 2.0, 8.0, 2.0]), "").value == 4.0
    flattening = np.diff(np.sqrt(np.arange(9.0)))
    assert stairs(curve(flattening), "").value < 1.0


def test_gl_cdcm_figure_2_needs_its_bonus(log):
    """GL-CDCM is LR and a bonus; fixed contexts are not explored without one."""
    experiment = named("gl-cdcm-2a")
    part = replace(experiment.parts[0], policies=("GL-CDCM", "LR"))
    outcome = reproduce(replace(experiment, parts=(part,)), log, horizon=1000, runs=5)
    found = over(outcome, "GL-CDCM", "LR")
    assert found.value + 3 * found.stderr < 1.0


def test_the_two_queries_are_chosen_by_hardness_alone(log):
    outcome = reproduce(named("dcm-2c"), log)
    from logeval.clicks.models.pbm import PBM

    def model(w, e):
        return PBM(items=np.arange(len(w)), K=len(e), w=np.array(w), e=np.array(e))

    outcome.models["rank1-3-raw"] = {
        "a": model([0.9, 0.1], [0.9, 0.1]),
        "b": model([0.5, 0.5], [0.6, 0.6]),
        "c": model([0.6, 0.2], [0.6, 0.4]),
    }
    hard = hardnesses(outcome, "rank1-3-raw")
    assert hard["b"].p_max == pytest.approx(0.6)
    first, second = two_queries(outcome)
    products = {q: h.mu * h.gamma for q, h in hard.items()}
    assert products[first] == min(products.values())
    assert products[second] == max(products.values())


def test_what_a_log_cannot_give_stops_nothing(log, tmp_path):
    """The log has no users, which Figure 2b of gl-cdcm needs."""
    some = [named("gl-cdcm-2b"), named("dcm-2c")]
    asked = Asked(logs=(log, log), out=tmp_path / "all")
    found = list(run_all(some, asked))
    assert [o.experiment.name for o in found] == ["dcm-2c"] * 2 + ["gl-cdcm-2b"] * 2
    assert "no users" in found[2].refused
    (row,) = rows_of(found[2])
    assert (row["verdict"], row["log"]) == (NOT_RUN, "log")
    assert "no users" in page([row, *rows_of(found[0])])


def test_the_page_is_made_of_the_results_and_has_each_claim_once():
    rows = read()
    assert PAGE.read_text("utf-8") == page(rows)
    claims = {(r["experiment"], r["claim"], r["place"]) for r in rows if r["claim"]}
    known = {(e.name, c.text, c.place) for e in experiments().values() for c in e.claims}
    assert claims == known


def test_a_cell_of_two_parts_is_taken_from_the_one_with_more_runs():
    """A doubtful number of the tables has ten times the runs."""
    experiment = named("cascading-tables")
    all_cells, doubtful, _ = experiment.parts
    (problem,) = doubtful.problems
    parts = replace(all_cells, problems=(problem, all_cells.problems[0])), doubtful
    outcome = reproduce(replace(experiment, parts=parts), horizon=20, runs=2)
    assert len(outcome.regret(f"CascadeKL-UCB @ {problem}")) == 20
    assert len(outcome.regret(f"CascadeUCB1 @ {problem}")) == 2
