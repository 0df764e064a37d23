"""Replay of policies: against a plain reading of the log, and against the simulator."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import stdtrit
from typer.testing import CliRunner

from logeval import LogevalError, evaluate, generate, ingest, load, read_models
from logeval.cli import app
from logeval.clicks.models.dcm import DCM
from logeval.log.queries import Query
from logeval.replay.logged import read_logged
from logeval.replay.policy import (
    ReplayEnvironment,
    curve,
    streams_of,
)
from logeval.replay.stages import replay_policy
from logeval.running import seeds
from logeval.storage.tables import path_of
from tests.replay.worlds import all_lists, logged_of
from tests.serps import Serp, write_serps

L, K = 4, 2
W = np.array([0.6, 0.4, 0.2, 0.1])
MODEL = DCM(items=np.arange(L), K=K, w=W, v=np.array([0.8, 0.5]))


def serps(n, seed=0):
    rng = seeds.generator(seed, "replay log")
    A = all_lists(L, K)[rng.integers(L * (L - 1), size=n)]
    C = MODEL.sample(A, rng.random(A.shape))
    return A, C


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    A, C = serps(12_000)
    rows = [Serp(5, a, c, i) for i, (a, c) in enumerate(zip(A.tolist(), C.tolist(), strict=True))]
    return write_serps(tmp_path_factory.mktemp("policy") / "log", rows)


class Fixed:
    """Always the first labels, which are random items."""

    def __init__(self, setting):
        self.A = np.tile(np.arange(setting.K), (setting.R, 1))
        self.seen = []

    def recommend(self, t):
        return self.A

    def update(self, t, A, clicks):
        self.seen.append(clicks.copy())


def test_a_step_takes_the_next_serp_that_shows_the_list_and_the_clock_goes_on():
    A, C = serps(400)
    stream = streams_of(logged_of(A, C).patterns, None)[0]
    environment = ReplayEnvironment([stream], [(0, 0), (0, 1)], seed=3)
    rng = seeds.generator(1, "lists")
    lists = all_lists(L, K)
    pattern = [q.pattern for q in environment.queues]
    clock = [0, 0]
    alive = [True, True]
    for _ in range(60):
        wanted = lists[rng.integers(len(lists), size=2)]
        clicks = environment.step(environment.labels.labels(wanted))
        for r in range(2):
            place = clock[r]
            while alive[r] and place < 400:
                if (stream.lists[pattern[r][place]] == wanted[r]).all():
                    break
                place += 1
            if not alive[r] or place >= 400:
                alive[r] = False
                assert not clicks[r].any()
                continue
            assert (clicks[r] == stream.clicks[pattern[r][place]]).all()
            clock[r] = place + 1
            assert environment.clock[r] == clock[r]
        assert environment.alive.tolist() == alive
    assert not any(alive)
    assert not np.array_equal(pattern[0], pattern[1])
    assert sorted(pattern[0]) == sorted(pattern[1])


def test_a_list_that_was_never_shown_ends_the_run(tmp_path):
    rows = [Serp(1, [1, 2], [1, 0], i) for i in range(5)] + [Serp(1, [2, 3], [0, 0], 9)]
    log = write_serps(tmp_path / "log", rows)
    found = replay_policy(log, [Fixed], positions=2, shuffles=40, quiet=True)
    last = found.table.groupby("run").tail(1)
    # of the six lists of three items, (1, 2) and (2, 3) were shown
    assert sorted(set(last["steps"])) == [0, 1, 5]
    never = last[last["steps"] == 0]
    assert never["exhausted"].all()
    assert (never["passed"] == 6).all()


def test_a_fixed_list_earns_its_logged_clicks(log):
    found = replay_policy(log, [Fixed], positions=K, shuffles=2, quiet=True)
    A, C = serps(12_000)
    assert found.summary().iloc[0]["exhausted"] == 1
    for (_, _, run), shown in found.lists.items():
        mine = (shown == A).all(axis=1)
        rows = found.table[found.table["run"] == run]
        assert (rows["steps"] == mine.sum()).all()
        done = rows[rows["t"] <= mine.sum()].iloc[-1]
        assert done["clicks"] / done["t"] == pytest.approx(C[mine].sum() / mine.sum(), abs=0.1)
    assert len(found.lists) == 2


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """A generated log whose lists are all in random order, and its true models."""
    folder = tmp_path_factory.mktemp("generated")
    truth = generate(
        folder / "log.tsv", sessions=30_000, queries=2, model="DCM", explore=1.0, seed=4, quiet=True
    )
    ingest(folder / "log.tsv", out=folder / "log", quiet=True)
    return folder / "log", read_models(truth)


@pytest.mark.parametrize("name", ["dcmKL-UCB", "RankedKL-UCB"])
def test_the_simulated_curve_lies_in_the_interval_of_the_replayed_one(generated, name):
    """Against the simulator with the true parameters; the truth has hardly any noise of its own."""
    log, truth = generated
    steps = (30, 100)
    query = str(load(log).top_queries(1)["query_id"].iloc[0])
    replayed = replay_policy(
        log, [name], positions=K, items=L, queries=[query], shuffles=20, checkpoints=steps,
        horizon=100, quiet=True,
    )  # fmt: skip
    assert not replayed.table["exhausted"].any()
    (stream,) = streams_of(read_logged(log, K, queries=[Query.parse(query)]).patterns, L)
    whole = truth["DCM", query]
    keep = [whole.items.tolist().index(item) for item in stream.item_ids.tolist()]
    model = DCM(items=whole.items[keep], K=K, w=whole.w[keep], v=whole.v[:K])
    simulated = evaluate(
        [("DCM", Query.parse(query), model)], policies=[name], horizon=100,
        runs=400, reward="clicks", checkpoints=steps, quiet=True,
    ).to_pandas()  # fmt: skip
    for t in steps:
        value, half = curve(replayed.table, t)
        assert half < 0.15 * value
        assert abs(value - curve(simulated, t)[0]) < half


def test_the_interval_widens_as_shuffles_share_the_log():
    rows = pd.DataFrame(
        {"query": "1", "run": range(20), "t": 10, "clicks": np.arange(20.0), "steps": 10,
         "serps": 100}
    )  # fmt: skip
    x = np.arange(20) / 10
    t = stdtrit(19, 0.975)
    assert curve(rows, 10) == pytest.approx((x.mean(), t * x.std(ddof=1) / np.sqrt(20)))
    assert curve(rows.assign(passed=0), 10) == pytest.approx(curve(rows, 10))
    shared = t * x.std(ddof=1) * np.sqrt(1 / 20 + 1)
    assert curve(rows.assign(passed=50), 10)[1] == pytest.approx(shared)
    assert np.isnan(curve(rows.assign(passed=100), 10)[1])
    assert np.isnan(curve(rows[:1], 10)[1])


def test_the_interval_is_that_of_the_given_queries():
    """Between two queries that differ much the runs alone vary."""
    rng = np.random.default_rng(0)
    clicks = np.concatenate([rng.normal(5, 1, 30), rng.normal(50, 1, 30)])
    rows = pd.DataFrame({"query": np.repeat(["1", "2"], 30), "t": 1, "clicks": clicks})
    s2 = [clicks[:30].var(ddof=1), clicks[30:].var(ddof=1)]
    half = stdtrit(58, 0.975) * np.sqrt(sum(s2) / 30) / 2
    assert curve(rows, 1) == pytest.approx((clicks.mean(), half))


def test_what_only_a_simulator_has_is_refused(log):
    with pytest.raises(LogevalError, match="cannot give"):
        replay_policy(log, ["Oracle"], positions=K, quiet=True)
    with pytest.raises(LogevalError, match="init=sample"):
        replay_policy(log, ["dcmKL-UCB(init=sample)"], positions=K, quiet=True)
    with pytest.raises(LogevalError, match="show lists"):
        replay_policy(log, ["Rank1ElimKL"], positions=K, quiet=True)
    with pytest.raises(LogevalError, match="at most 2"):
        replay_policy(log, ["Random"], positions=3, quiet=True)
    with pytest.raises(LogevalError, match="as many candidates"):
        replay_policy(log, ["Random"], positions=2, items=1, quiet=True)


def test_the_commands(log, tmp_path):
    common = ["--policy", "dcmKL-UCB", "--policy", "Random", "--positions", "2", "-q"]
    out = tmp_path / "out"
    arguments = ["replay", "policy", str(log), *common, "--shuffles", "3", "--out", str(out)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "dcmKL-UCB" in done.stdout
    assert path_of(out, "replays").exists()
    assert (out / "replays.png").exists()
