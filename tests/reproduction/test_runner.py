"""One runner for all experiments: sizes, resuming, logs, the page."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from logeval.errors import LogevalError
from logeval.log.ingest import ingest
from logeval.papers import dcm_log, gl_cdcm, rank1_log
from logeval.papers.registry import EXPERIMENTS, named
from logeval.papers.reproduce import Reproduce
from logeval.papers.reproduce import reproduce as reproduce_one
from logeval.papers.runner import _record, finished, records, run_all
from logeval.papers.shared.experiment import Cell, OnLog
from logeval.papers.shared.measures import over
from logeval.papers.shared.outcome import Outcome
from logeval.papers.shared.page import write_markdown, write_page
from logeval.papers.shared.verdicts import VARIANT
from logeval.policies.registry import parse_policies
from logeval.synthetic.generate import generate
from logeval.tracks.registry import synthetic_problem


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
    (outcome,) = reproduce_one(experiment, log=log, quiet=True, **more)
    return outcome


def test_every_figure_of_the_issue_is_there():
    wanted = (
        "cascading-tables cascading-1 dcm-2a dcm-2b dcm-2c dcm-3a dcm-3b dcm-3c rank1-1 rank1-2 "
        "rank1-3 gl-cdcm-1a gl-cdcm-1b gl-cdcm-2a gl-cdcm-2b"
    )
    assert set(wanted.split()) <= set(EXPERIMENTS)


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=list(EXPERIMENTS))
def test_problems_and_policies_of_every_experiment_can_be_made(experiment):
    for part in experiment.parts:
        track = "contextual" if "gl-cdcm" in part.name else None
        assert len(parse_policies(part.policies, track=track)) == len(part.policies)
        if not isinstance(part.users, OnLog):
            # names print as they parse, so that cells find their rows
            assert [synthetic_problem(p).simulator for p in part.users] == list(part.users)
    assert experiment.claims
    assert all(claim.text and claim.place for claim in experiment.claims)


def test_parts_of_one_name_are_the_same_users():
    users = {}
    for experiment in EXPERIMENTS.values():
        for part in experiment.parts:
            assert users.setdefault(part.name, part.users) == part.users


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
    again = reproduce(named("dcm-3a"), **how)
    assert again.cpu_seconds == first.cpu_seconds  # only the work is counted
    other = reproduce(named("dcm-3b"), **how)
    assert (tmp_path / "runs" / "dcm-3").is_dir()
    free = {"dcmKL-UCB(init=sample)", "RankedKL-UCB(init=sample)"}  # as the paper begins
    assert set(other.part().table()["policy"]) == free
    shared = Cell("dcmKL-UCB")
    assert other.regret(shared).tolist() == first.regret(shared).tolist()
    assert records(tmp_path)["dcm-3a"]["finished"]
    assert [
        o.regret(shared).tolist() for o in finished(Reproduce("page", out=tmp_path, quiet=True))
    ] == [first.regret(shared).tolist()] * 2


def test_a_damaged_file_of_records_is_an_error_before_anything_runs(tmp_path):
    how = {"out": tmp_path, "horizon": 30, "runs": 2}
    reproduce(named("dcm-3a"), **how)
    file = tmp_path / "experiments.json"
    known, whole = records(tmp_path), file.read_bytes()
    file.write_text(json.dumps(known))  # as earlier versions wrote it
    assert records(tmp_path) == known
    damages = [whole[:n] for n in range(0, len(whole) - 1, 7)]
    damages += [whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :] for n in range(len(whole) - 1)]
    damages += [
        b"[" * 100_000,
        b"3",
        b'{"dcm-3a": {}}',
        b'{"crc32": 3, "experiments": []}',
        b"\xff",
    ]
    for content in damages:
        file.write_bytes(content)
        try:
            assert records(tmp_path) == known  # white space, say
        except LogevalError as error:
            assert "experiments.json: is damaged; delete it" in str(error)  # noqa: PT017
    with pytest.raises(LogevalError, match="is damaged"):
        reproduce(named("dcm-3b"), **how)
    assert set((tmp_path / "runs").iterdir()) == {tmp_path / "runs" / "dcm-3"}
    file.unlink()
    reproduce(named("dcm-3b"), **how)


def test_more_runs_cost_more_and_the_same_cost_nothing(tmp_path):
    costs = [
        reproduce(named("dcm-3a"), out=tmp_path, horizon=30, runs=runs).cpu_seconds
        for runs in (1, 2, 2)
    ]
    assert costs[0] < costs[1] == costs[2]
    (kept,) = records(tmp_path).values()
    assert (kept["runs"], kept["cpu_seconds"]) == (2, costs[1])


def test_experiments_that_end_at_the_same_time_are_all_recorded(tmp_path):
    """Each reads and writes the one file of records."""
    names = [f"dcm-{i}" for i in range(12)]
    ended = [Outcome(replace(named("dcm-3a"), name=name), 30, 1) for name in names]
    asked = Reproduce("page", out=tmp_path)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda one: _record(one, None, asked, True, ""), ended))
    assert set(records(tmp_path)) == set(names)


def test_experiments_of_a_log_need_one():
    with pytest.raises(LogevalError, match=r"dcm-3c needs an ingested log"):
        reproduce(named("dcm-3c"))


def test_figure_3c_has_its_variants(log, tmp_path):
    outcome = reproduce(named("dcm-3c"), log, horizon=40, runs=2)
    assert len(outcome.models["dcm-3c"]) == 20
    for model in outcome.models[dcm_log.SORTED].values():
        assert (np.diff(model.v) <= 0).all()
    assert (outcome.regret(Cell(dcm_log.CONSTANT, None, "dcm-3c")) > 0).all()
    assert outcome.facts[0].startswith("By counting: the best list in the assumed order")
    page, text = (
        write_page([outcome], tmp_path / "page"),
        write_markdown([outcome], tmp_path / "x.md"),
    )
    assert "best list in the assumed order" in page.read_text()
    assert "dcm-3c@log" not in text.read_text()
    assert (tmp_path / "x" / "dcm-3c-on-log.png").stat().st_size > 1000


def test_figure_3c_is_judged_by_the_fit_of_the_paper(log):
    """One claim, one verdict: a DCM per query by counting; the other nine ways have none."""
    outcome = reproduce(named("dcm-3c"), log, horizon=20, runs=2)
    assert outcome.fits[dcm_log.PAPERS].method == "guo"
    assert outcome.fits[dcm_log.PAPERS].scope == "per-query"
    found = outcome.judged
    half = [one for one in found if one.claim.text.startswith("at most half")]
    assert [one.verdict for one in half].count(VARIANT) == len(half) - 1 == 9
    ours = over(Cell(dcm_log.DCM_KL, None, dcm_log.PAPERS), dcm_log._best_ranked(dcm_log.PAPERS))
    assert half[0].ours == ours(outcome)


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
    assert dcm_log.rises(np.array(v), np.array(clicks, dtype=float)) == rising


def test_falling_terminations_are_seldom_taken_for_rising_ones():
    rng = np.random.default_rng(3)
    v, clicks = np.full(9, 0.6), np.full(9, 300)
    found = [dcm_log.rises(rng.binomial(clicks, v) / clicks, clicks * 1.0) for _ in range(400)]
    assert np.mean(found) < 0.03  # 1%


def test_the_constant_is_that_of_the_assumed_order(log):
    """Sorted terminations leave nothing of it."""
    part = named("dcm-3c").parts[1]
    assert part.users.change is dcm_log.sorted_terminations
    models = reproduce(named("dcm-2c"), log).models["dcm-2c"].values()
    from logeval.evaluation.evaluate import evaluate

    done = evaluate(
        [("DCM", str(i), dcm_log.sorted_terminations(m)) for i, m in enumerate(models)],
        policies=[dcm_log.CONSTANT, "Oracle"], horizon=5, runs=1, quiet=True,
    ).summary()  # fmt: skip
    assert done["regret"].to_numpy() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=list(EXPERIMENTS))
def test_every_claim_can_be_measured(experiment, log, log_with_users):
    """Cells, parts and queries that claims, facts and variants ask for are there."""
    on = log_with_users if experiment.name == "gl-cdcm-2b" else log
    outcome = reproduce(experiment, on, horizon=12, runs=2)
    assert len({one.claim.text + one.claim.place for one in outcome.judged}) == len(
        experiment.claims
    )
    assert all(isinstance(fact, str) for fact in outcome.facts)


def curve(steps):
    """An outcome with one run of one policy: the regret of each half block."""
    t = gl_cdcm.HALF_BLOCK * np.arange(1, len(steps) + 1)
    rows = pd.DataFrame({"run": 0, "t": t, "regret": np.cumsum(steps)})
    return SimpleNamespace(horizon=int(t[-1]), rows=lambda cell: rows)


def test_stairs_rise_anew_and_a_curve_that_flattens_has_none():
    """What only flattens has less in the second half of each block as well."""
    stairs = gl_cdcm.stairs("dcmKL-UCB")
    assert stairs(curve([10.0, 2.0, 8.0, 2.0, 8.0, 2.0])).value == 4.0
    flattening = np.diff(np.sqrt(np.arange(9.0)))
    assert stairs(curve(flattening)).value < 1.0


def test_gl_cdcm_figure_2_needs_its_bonus(log):
    """GL-CDCM is LR and a bonus; fixed contexts are not explored without one."""
    experiment = named("gl-cdcm-2a")
    part = replace(experiment.parts[0], policies=("GL-CDCM", "LR"))
    outcome = reproduce(replace(experiment, parts=(part,)), log, horizon=1000, runs=5)
    found = over(Cell("GL-CDCM"), Cell("LR"))(outcome)
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
    hard = rank1_log.hardnesses(outcome, "rank1-3-raw")
    assert hard["b"].p_max == pytest.approx(0.6)
    first, second = rank1_log.two_queries(outcome)
    products = {q: h.mu * h.gamma for q, h in hard.items()}
    assert products[first] == min(products.values())
    assert products[second] == max(products.values())


def test_what_a_log_cannot_give_stops_nothing(log, tmp_path):
    """The log has no users, which Figure 2b of gl-cdcm needs."""
    experiments = [named("gl-cdcm-2b"), named("dcm-2c")]
    asked = Reproduce("all", log=[log, log], out=tmp_path / "all", quiet=True)
    found = list(run_all(experiments, asked))
    assert [o.experiment.name for o in found] == ["dcm-2c"] * 2 + ["gl-cdcm-2b"] * 2
    assert "no users" in found[2].refused
    assert "no users" in write_markdown(found, tmp_path / "x.md").read_text()
