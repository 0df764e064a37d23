"""``decide`` on small logs, and what it is made of against numbers by hand."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import logeval
from logeval.cli import app
from logeval.decision import answer, earnings
from logeval.decision.choose import PRIOR, Today, Worth
from logeval.decision.decision import Choice
from logeval.evaluation.known import known_rows
from logeval.log.queries import Query
from logeval.policies.registry import parse_policies
from tests.clicks.examples import three_queries
from tests.serps import Serp, write_serps

POLICIES = ("dcmKL-UCB", "BubbleRank(items=base)")


@pytest.fixture(scope="module")
def log(tmp_path_factory: Any) -> Any:
    return logeval.load(three_queries(tmp_path_factory.mktemp("log")))


@pytest.fixture(scope="module")
def models(log: Any) -> Any:
    return logeval.fit_models(log, ["dcm", "pbm"], holdout=0.2, draws=6, quiet=True)


def decide(log: Any, models: Any, **asked: Any) -> Any:
    given = {"policies": POLICIES, "draws": 4, "quiet": True, **asked}
    return logeval.decide(log, models=models, **given)


@pytest.fixture(scope="module")
def found(log: Any, models: Any) -> Any:
    return decide(log, models)


def test_the_traffic_is_the_logs_own(log: Any, models: Any, found: Any) -> None:
    serps = log.serps("query_id").to_pandas()["query_id"]
    assert found.searches == len(serps)
    assert found.queries == 3
    twice = decide(log, models, policies="dcmKL-UCB", traffic=2.0)
    assert twice.searches == 2 * found.searches
    few = decide(log, models, policies="dcmKL-UCB", traffic=1_000.0)
    assert few.searches == pytest.approx(1_000.0, abs=3.0)


def test_today_is_what_the_log_has(log: Any, found: Any) -> None:
    serps = log.serps(["query_id", "items", "clicks"]).to_pandas()
    long = serps[serps["items"].map(len) == 4]  # the short list cannot be simulated
    mean = long["clicks"].map(lambda c: (np.asarray(c) > 0).sum()).groupby(long["query_id"]).mean()
    n = serps.groupby("query_id").size()
    assert found.today == pytest.approx(float((mean * n).sum()), rel=0.03)  # a fifth is held out


def test_best_lists_earn_most_and_choices_are_sorted(found: Any) -> None:
    rewards = [one.reward for one in found.choices]
    assert rewards == sorted(rewards, reverse=True)
    assert found.best > max(rewards)
    idle = {fact.about for fact in found.facts if fact.code == "learns-nothing"}
    assert {one.policy for one in found.choices} | idle == set(POLICIES)
    marked = [one.policy for one in found.choices if one.tied]
    assert found.policy is None or found.policy in marked
    assert found.by_query["searches"].sum() == found.searches


def test_the_same_seed_gives_the_same_answer_with_any_number_of_workers(
    log: Any, models: Any, found: Any
) -> None:
    assert decide(log, models, workers=2).to_json() == found.to_json()


def test_a_policy_that_gains_nothing_and_learns_nothing_is_left_out() -> None:
    one: Any = SimpleNamespace(total=np.full((4, earnings.PIECES), -0.01))
    flat = np.arange(1.0, earnings.PIECES + 1) + np.zeros((4, 1, 1))
    assert answer.learns_nothing(one, flat)
    assert not answer.learns_nothing(one, flat**2)
    ahead: Any = SimpleNamespace(total=np.full((4, earnings.PIECES), 0.01))
    assert not answer.learns_nothing(ahead, flat)


def test_models_in_the_place_of_the_log_are_said_to_be_models(log: Any, tmp_path: Any) -> None:
    logeval.fit_models(log, ["pbm"], draws=0, out=tmp_path / "m", verdict=False, quiet=True)
    with pytest.raises(logeval.LogevalError, match=f"decide {log.path} --models {tmp_path}/m"):
        logeval.decide(tmp_path / "m", quiet=True)


def test_curves_add_up_to_the_reward(found: Any) -> None:
    for one in found.choices:
        curve = found.curves[found.curves["policy"] == one.policy]
        assert curve["reward"].mean() * found.searches == pytest.approx(one.reward)


def test_a_policy_that_shows_no_lists_is_left_out(log: Any, models: Any) -> None:
    both = decide(log, models, policies=["dcmKL-UCB", "Rank1ElimKL"])
    assert [one.policy for one in both.choices] == ["dcmKL-UCB"]
    assert both.fact("left-out").about == "Rank1ElimKL"


def test_satisfaction_is_decided_on_models_that_have_it(log: Any, models: Any) -> None:
    by_model = decide(log, models, policies="dcmKL-UCB", reward="satisfaction")
    assert [one.name for one in by_model.simulators if one.used] == ["DCM"]
    assert [one.why for one in by_model.simulators] == ["best", "reward"]


def test_a_raw_log_in_one_command(tmp_path: Any) -> None:
    logeval.generate(tmp_path / "raw.tsv.gz", sessions=1_500, queries=4, quiet=True)
    asked = ["decide", tmp_path / "raw.tsv.gz", "-m", "pbm(classes=1)", "--policy", "TopRank"]
    asked += ["--draws", "4", "--top-queries", "2", "--out", tmp_path / "out", "--json", "-q"]
    done = CliRunner().invoke(app, [str(text) for text in asked])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["queries"] == 2
    assert logeval.Decision.read(tmp_path / "out").to_json() == said


def test_a_log_of_searches_with_clicks_alone_decides_nothing(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    serps = []
    for _ in range(600):
        items = rng.permutation(6)[:4].tolist()
        clicks = (rng.random(4) < 0.3).astype(int).tolist()
        if any(clicks):
            serps.append(Serp(0, items, clicks))
    log = logeval.load(write_serps(tmp_path, serps))
    models = logeval.fit_models(log, ["pbm"], draws=4, verdict=False, quiet=True)
    found = decide(log, models, policies="TopRank")
    assert (found.decision, found.reason) == ("WAIT", "clicked-only")
    first, after = found.text().split("\n\n")
    assert first.startswith("WAIT.  The log has no search without a click")
    assert after == "Next   log the searches without a click, too."
    found.write(tmp_path / "out")
    page = logeval.report(tmp_path / "out", tmp_path / "page", quiet=True).read_text()
    assert "<h1>WAIT</h1>" in page
    assert 'id="figure-earnings"' not in page


def test_models_without_draws_are_refused(log: Any) -> None:
    models = logeval.fit_models(log, ["pbm"], draws=0, verdict=False, quiet=True)
    with pytest.raises(logeval.LogevalError, match="draws=20"):
        decide(log, models)


# -- what it is made of ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gain", "at"),
    [([1.0, 2.0], 0.0), ([-1.0, 1.0], 0.75), ([-1.0, -1.0], math.inf), ([1, -1, 3.0], 2.25 / 3)],
)
def test_break_even_is_where_the_gain_stays_above_0(gain: Any, at: float) -> None:
    assert answer.break_even(np.array(gain)) == pytest.approx(at)


def test_beyond_what_is_simulated_a_policy_earns_at_its_last_pace() -> None:
    steps = (10, 90, 100)
    reward = np.array([[1.0, 9.0, 11.0]])
    found = earnings.until(reward, steps, np.array([50.0, 100.0, 200.0]))
    assert found[0].tolist() == pytest.approx([5.0, 11.0, 11.0 + 100 * 0.2])


def test_gains_are_shares_of_what_today_earns() -> None:
    world: Any = SimpleNamespace(today=np.array([[0.5, 1.0], [0.25, 1.0]]))
    traffic: Any = SimpleNamespace(searches=np.array([100.0, 40.0]))
    at = np.stack([earnings.pieces(n) for n in traffic.searches])
    reward = world.today[:, :, None] * at * np.array([1.2, 1.0])[:, None]
    found = answer.account(reward, world, traffic)
    assert found.total[:, -1].tolist() == pytest.approx([10 / 90, 5 / 65])
    assert np.allclose(found.by_query, [[0.2, 0.0], [0.2, 0.0]])


def test_a_gain_has_the_error_of_the_draws_and_of_the_slope() -> None:
    rng = np.random.default_rng(0)
    x = 0.1 + 0.02 * rng.standard_normal(20)
    b, t = Worth(0.6, 0.25), 19
    sums = x.mean() + x.std(ddof=1) * math.sqrt(1 + 1 / 20) * rng.standard_t(t, 10**6)
    gains = sums * (b.mean + b.error * rng.standard_normal(10**6))
    found = answer.Gain.of(x, b)
    assert found.mean == pytest.approx(0.6 * x.mean())
    assert (found.low, found.high) == pytest.approx(np.quantile(gains, [0.025, 0.975]), abs=1e-3)
    assert found.worse == pytest.approx((gains < 0).mean(), abs=1e-3)


def test_a_loss_is_taken_in_full() -> None:
    """Predictions that count half halve what is hoped for, and not what is feared."""
    x = np.linspace(-0.2, -0.1, 20)
    half, whole = answer.Gain.of(x, Worth(0.5, 0.0)), answer.Gain.of(x, Worth(1.0, 0.0))
    assert half == whole
    assert half.low <= half.mean <= half.high
    assert answer.Gain.of(-x, Worth(0.5, 0.0)).high == pytest.approx(-0.5 * whole.low)


def test_a_slope_that_cannot_be_told_is_what_is_known_of_logs() -> None:
    assert Worth.of(None) == Worth(*PRIOR)
    sharp = Worth.of(SimpleNamespace(slope=0.9, low=0.899, high=0.901))
    assert sharp.mean == pytest.approx(0.9, abs=1e-4)
    mean, error = PRIOR
    equal = Worth.of(SimpleNamespace(slope=1.0, low=1 - 1.96 * error, high=1 + 1.96 * error))
    assert equal.mean == pytest.approx((1 + mean) / 2)
    assert equal.error == pytest.approx(error / math.sqrt(2))
    assert Worth(0.6, 0.1).draws(100, 0).std() == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize(
    ("today", "off"), [((1.1, 1.0, 0.01), True), ((1.1, 1.0, 0.05), False), ((1.04, 1, 0), False)]
)
def test_today_is_off_by_more_than_chance_and_more_than_a_little(today: Any, off: bool) -> None:
    assert Today(*today).off is off


def choice(policy: str, gain: float, half: float, worse: float) -> Choice:
    ends = gain - half, gain + half
    return Choice(policy, 1.0, gain, *ends, worse, 1.0, 0.0, 2.0, "q", 0.0, -0.1, 0.1, True)


def test_what_would_change_a_wait_is_what_most_of_the_error_is_of() -> None:
    x = 0.1 + 0.01 * np.arange(-5.0, 6.0)
    assert answer.slope_decides(x, Worth(0.5, 0.5))
    assert not answer.slope_decides(x, Worth(0.5, 0.05))


FAR = answer.Gain(0.2, 0.1, 0.3, 0.0)


@pytest.mark.parametrize(
    ("choices", "best", "verdict", "reason", "policy"),
    [
        ([choice("a", 0.05, 0.03, 0.01)], FAR, "TEST", "gain", "a"),
        ([choice("a", 0.05, 0.2, 0.3), choice("b", 0.02, 0.02, 0.02)], FAR, "TEST", "gain", "b"),
        ([choice("a", 0.05, 0.2, 0.3)], FAR, "WAIT", "unclear", "a"),
        ([choice("a", -0.05, 0.03, 0.99)], FAR, "KEEP", "no-gain", None),
        ([choice("a", 0.005, 0.002, 0.01)], answer.Gain(0.005, 0.0, 0.009, 0.0), "KEEP",
         "little-to-gain", None),
    ],
)  # fmt: skip
def test_the_rule(choices: Any, best: Any, verdict: str, reason: str, policy: str | None) -> None:
    said, fact, chosen = answer.rule(choices, best)
    assert (said, fact.code, chosen) == (verdict, reason, policy)


def test_known_results_are_those_shown_often_enough(models: Any) -> None:
    lists, query = models.lists, Query(0)
    items = models["DCM", query].items
    mine = lists.query == lists.queries.index(query)
    shown = [
        float(lists.serps[mine][(lists.items[mine] == item).any(axis=1)].sum()) for item in items
    ]
    n = lists.serps[mine].sum()
    share = float(np.sort(shown)[3] / n)
    assert (
        known_rows(lists, query, items, share, 2).tolist()
        == np.flatnonzero(np.array(shown) >= share * n).tolist()
    )
    assert len(known_rows(lists, query, items, 1e9, 4)) == 4
    assert len(known_rows(lists, query, items, None, 4)) == len(items)


def test_an_order_is_told_to_who_takes_one() -> None:
    plain, told, other = parse_policies(["TopRank", "TopRank(order=2>1)", "RankedKL-UCB"])
    assert earnings.with_order(plain, "3>2>1").parameters["order"] == "3>2>1"
    assert earnings.with_order(told, "3>2>1") is told
    assert earnings.with_order(other, "3>2>1") is other
