"""From the log and its models to the answer: what the policies gain, and what that says.

Of draw d of the parameters a policy gains, as a share of what today's ranker earns,

    gain_d = b sum_q [R_dq - n_q r_dq] / sum_q n_q r_dq,

R_dq what it earns in the n_q searches of query q, r_dq what a search of today's ranker earns, b
the slope of the value check (``choose``). The sum has Student's distribution for one draw more,
since the truth is one, b a normal one, and their product is computed at even quantiles of both:
the interval covers the parameters, the policy's luck, and the slope. A loss is taken in full where
b < 1: that predictions are worth less is no comfort to whom they warn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from logeval.clicks.collection import FittedModels
from logeval.clicks.quality.value import slopes_of
from logeval.clicks.support.selection import expected_empty
from logeval.decision import power
from logeval.decision.choose import Worth, judged, level_of
from logeval.decision.decision import BEST, TODAY, Choice, Decision, Simulator, TestSize, Verdict
from logeval.decision.earnings import LOOKS, PIECES, Earned, earned, pieces
from logeval.decision.world import (
    Shown,
    Traffic,
    World,
    refuse_counts,
    size_of,
    today_of,
    traffic_of,
    world_of,
)  # fmt: skip
from logeval.errors import LogevalError
from logeval.facts import Fact, Level
from logeval.log.queries import Query
from logeval.policies.registry import PolicySpec
from logeval.running.arrays import Floats
from logeval.storage.tables import Manifest

if TYPE_CHECKING:
    from logeval.decision.decide import Decide

WORK = 4e7  # searches simulated at most, over policies and draws
FEWEST = 8  # draws, however much traffic there is
THIN = 300  # searches of a query, with fewer of which little can be learned there
RISK = 0.1  # of being worse than today, with which a test is worth while
HARM = -0.02  # the lower end of the gain of what is worth a test, or half of the gain
LITTLE = 0.01  # a gain that is not worth a change
SURE = 0.9  # that a policy loses
EVEN = (np.arange(200) + 0.5) / 200  # even quantiles
EXACT = Worth(1.0, 0.0)


class Gain(NamedTuple):
    """A gain over draws."""

    mean: float
    low: float
    high: float
    worse: float  # probability to be below 0

    @classmethod
    def of(cls, x: Floats, worth: Worth) -> Gain:
        """From the gains of D draws, before the slope."""
        D, mean = len(x), float(x.mean())
        error = float(x.std(ddof=1)) * math.sqrt(1.0 + 1.0 / D)
        sums = mean + error * stdtrit(D - 1, EVEN)
        slopes = worth.mean + worth.error * ndtri(EVEN)
        gains = np.where(sums < 0.0, np.maximum(slopes, 1.0)[:, None], slopes[:, None]) * sums
        low, high = np.quantile(gains, [0.025, 0.975])
        less = float(stdtr(D - 1, -mean / error)) if error > 0.0 else float(mean < 0.0)
        turned = float(ndtr(-worth.mean / worth.error)) if worth.error > 0.0 else 0.0
        worse = less * (1.0 - turned) + (1.0 - less) * turned
        shown = worth.mean if mean >= 0.0 else max(worth.mean, 1.0)
        return cls(shown * mean, float(low), float(high), worse)


class Account(NamedTuple):
    """What a policy is ahead of today's ranker, and what that is a share of."""

    ahead: Floats  # (D, Q, PIECES), before the slope
    base: Floats  # (D, Q) of today's ranker, over the whole period

    @property
    def total(self) -> Floats:
        """(D, PIECES) as a share of what today's ranker earns in all."""
        return np.asarray(self.ahead.sum(axis=1) / self.base.sum(axis=1)[:, None])

    @property
    def by_query(self) -> Floats:
        """(D, Q) the gain of each query at the end."""
        return np.asarray(self.ahead[:, :, -1] / self.base)


def decided(asked: Decide, manifest: Manifest) -> Decision:
    """The answer to what is asked."""
    log = asked.opened
    refuse_counts(log)
    if (empty := expected_empty(log)) is not None:  # before anything is fitted to it
        selected = Fact("clicked-only", level="stop", value=empty)
        return Decision("WAIT", selected.code, None, asked.reward, *size_of(log), 0.0, 0.0,
                        facts=[selected], manifest=manifest)  # fmt: skip
    models = asked.fitted
    traffic, shown = _with_rankers(models, traffic_of(log, models, asked.traffic))
    if not shown:
        raise LogevalError(f"{log.title}: has no lists of the fitted results that could be shown")
    return answered(asked, models, traffic, shown, log.names.query, manifest)


def answered(
    asked: Decide, models: FittedModels, traffic: Traffic, shown: Sequence[Shown],
    named: Callable[[Query], str], manifest: Manifest,
) -> Decision:  # fmt: skip
    """The answer for some traffic; ``named`` gives the names of queries."""
    slopes = {name: slopes_of(one.report) for name, one in models.fitted.items()}
    simulators = judged(models, slopes, traffic, shown, asked.reward)
    facts = about_traffic(traffic)
    used = next((one for one in simulators if one.used), None)
    if used is None:
        off = next((one for one in simulators if one.why == "today"), None)
        why = Fact("no-simulator", level="stop") if off is None else Fact(
            "today", off.name, "stop", value=off.today, threshold=off.today_log
        )  # fmt: skip
        return _nothing(asked, manifest, traffic, shown, simulators, facts, why)
    specs, left_out = able(asked.specs())
    worth = Worth.of(level_of(slopes.get(used.name, ()), asked.reward))
    facts += about_simulator(used, worth)
    for one in simulators:
        failed = sum(passed is False for passed in one.checks.values())
        if failed and not one.used:
            facts.append(Fact("not-used", one.name, value=float(failed), more={"why": one.why}))
    total = float(traffic.searches.sum())
    D = int(np.clip(WORK / (total * max(len(specs), 1)), FEWEST, asked.draws))
    world = world_of(models, used.name, traffic.queries, shown, asked.reward, asked.known, D)
    D = len(world.today)
    if D < 2:
        raise LogevalError(
            f"decide: {used.name} was fitted without draws of its parameters, so that nothing is "
            "known of what the log leaves open; fit it with draws=20"
        )
    orders, said = orders_of(world, traffic)
    facts += said
    runs = earned(
        [(spec, orders) for spec in specs], world.problems, traffic.searches, asked.seed,
        asked.workers, asked.quiet,
    )  # fmt: skip
    accounts = {name: account(one.reward, world, traffic) for name, one in runs.items()}
    idle = [name for name, one in accounts.items() if learns_nothing(one, runs[name].reward)]
    for name in idle if len(idle) < len(accounts) else ():
        del accounts[name]
        left_out.append(Fact("learns-nothing", name))
    facts += left_out
    of_best = world.best[:, :, None] * np.stack([pieces(n) for n in traffic.searches])
    best = account(of_best, world, traffic)
    today = logged_total(world, traffic, shown, asked.reward)
    choices = rows(accounts, worth, traffic, today, named)
    at_best = Gain.of(best.total[:, -1], worth)
    verdict, reason, policy = rule(choices, at_best)
    if reason.code == "unclear" and slope_decides(accounts[reason.about].total[:, -1], worth):
        reason = replace(reason, code="unclear-value")
    choices = with_ties(choices, accounts, policy)
    tests: tuple[TestSize, ...] = ()
    all_gain = None
    if policy is not None:
        chosen = next(spec for spec in specs if spec.name == policy)
        tests = tests_of(accounts[policy], runs[policy], worth, world, traffic, shown, asked)
        if asked.known is not None:
            all_gain = worth.mean * with_all(asked, models, used, chosen, traffic, shown)
    return Decision(
        verdict, reason.code, policy, asked.reward, traffic.days, total, len(traffic.queries),
        today, today * (1.0 + at_best.mean), all_gain, choices, simulators,
        [reason, *facts], tests, curves({**accounts, BEST: best}, worth, traffic, today),
        by_query(accounts, policy or choices[0].policy, worth, world, traffic, named), manifest,
    )  # fmt: skip


def _with_rankers(models: FittedModels, traffic: Traffic) -> tuple[Traffic, list[Shown]]:
    """The queries whose ranker can be simulated."""
    shown = [today_of(models, query) for query in traffic.queries]
    there = [i for i, one in enumerate(shown) if one is not None]
    kept = traffic._replace(
        queries=[traffic.queries[i] for i in there], searches=traffic.searches[there]
    )
    return kept, [one for one in shown if one is not None]


def able(specs: Sequence[PolicySpec]) -> tuple[list[PolicySpec], list[Fact]]:
    """The policies that can take the place of a ranker."""
    kept = [spec for spec in specs if spec.track in ("ranking", None)]
    away = [spec.name for spec in specs if spec.track not in ("ranking", None)]
    return kept, [Fact("left-out", name, more={"why": "it shows no lists"}) for name in away]


def learns_nothing(one: Account, reward: Floats) -> bool:
    """Whether a policy gains nothing, and earns no more per search at the end than at first."""
    each = np.diff(reward.sum(axis=1), axis=1, prepend=0.0)  # (D, PIECES)
    part = PIECES // 4
    more = each[:, -part:].mean(axis=1) - each[:, :part].mean(axis=1)
    error = float(more.std(ddof=1)) / math.sqrt(len(more))
    return bool(one.total[:, -1].mean() <= 0.0 and more.mean() <= 2.0 * error)


def account(reward: Floats, world: World, traffic: Traffic) -> Account:
    """Of rewards (D, Q, PIECES)."""
    at = np.stack([pieces(n) for n in traffic.searches])
    return Account(reward - world.today[:, :, None] * at, world.today * traffic.searches)


def orders_of(world: World, traffic: Traffic) -> tuple[list[str | None], list[Fact]]:
    """The order of positions that policies are told, by query."""
    K = [problems[0].positions for problems in world.problems]
    found = {k: world.order(k) for k in dict.fromkeys(K)}
    told = {k: None if one is None else one[0] for k, one in found.items()}
    share = {k: traffic.searches[np.array(K) == k].sum() for k in found}
    most = max(found, key=lambda k: share[k])
    at_most = found[most]
    facts = [] if at_most is None else [
        Fact("order", value=at_most[1], more={"order": at_most[0]})
    ]  # fmt: skip
    return [told[k] for k in K], facts


def logged_total(world: World, traffic: Traffic, shown: Sequence[Shown], reward: str) -> float:
    """What today's ranker earns over the period; clicks as the log has them."""
    if reward == "clicks":
        return float(traffic.searches @ [one.ranker.clicks for one in shown])
    return float((world.today @ traffic.searches).mean())


def rows(
    accounts: Mapping[str, Account], worth: Worth, traffic: Traffic, today: float,
    named: Callable[[Query], str],
) -> tuple[Choice, ...]:  # fmt: skip
    """A row per policy, the best first."""
    ends = {name: one.total[:, -1] for name, one in accounts.items()}
    order = sorted(ends, key=lambda name: -ends[name].mean())
    length = float(traffic.searches.sum()) if traffic.days is None else traffic.days
    found = []
    for name in order:
        one, gain = accounts[name], Gain.of(ends[name], worth)
        shares = np.quantile(
            [break_even(x) for x in one.total], [0.5, 0.025, 0.975], method="nearest"
        )
        pays_back = [None if math.isinf(x) else float(x * length) for x in shares]
        worst = int(np.argmin(one.by_query.mean(axis=0)))
        lowest = Gain.of(one.by_query[:, worst], worth)[:3]
        query = named(traffic.queries[worst])
        of: Any = (name, today * (1.0 + gain.mean), *gain, *pays_back, query, *lowest, False)
        found.append(Choice(*of))
    return tuple(found)


def with_ties(
    choices: Sequence[Choice], accounts: Mapping[str, Account], policy: str | None
) -> tuple[Choice, ...]:
    """The same with a mark on what cannot be told apart from the choice."""
    if policy is None:
        return tuple(choices)
    ends = {name: one.total[:, -1] for name, one in accounts.items()}
    apart = {name: Gain.of(ends[policy] - x, EXACT) for name, x in ends.items()}
    return tuple(
        replace(one, tied=apart[one.policy].low <= 0.0 <= apart[one.policy].high) for one in choices
    )


def break_even(gain: Floats) -> float:
    """The share of the period from which on a gain (PIECES,) stays above 0; infinite: never."""
    below = np.flatnonzero(gain < 0.0)
    if not len(below):
        return 0.0
    i = int(below[-1])
    if i == len(gain) - 1:
        return math.inf
    return float((i + 1 + gain[i] / (gain[i] - gain[i + 1])) / len(gain))


def rule(choices: Sequence[Choice], best: Gain) -> tuple[Verdict, Fact, str | None]:
    """TEST, KEEP or WAIT, with the reason, and the policy that was chosen."""
    if best.high < LITTLE:
        return "KEEP", Fact("little-to-gain", value=max(best.mean, 0.0), threshold=LITTLE), None
    safe = [o for o in choices if o.worse < RISK and o.gain_low > min(HARM, -o.gain / 2.0)]
    if safe:
        one = safe[0]
        fact = Fact("gain", one.policy, value=one.gain, low=one.gain_low, high=one.gain_high,
                    threshold=one.worse)  # fmt: skip
        return "TEST", fact, one.policy
    if all(one.worse > SURE or one.gain_high < LITTLE for one in choices):
        return "KEEP", Fact("no-gain", threshold=LITTLE), None
    one = choices[0]
    ends = one.gain_low, one.gain_high
    fact = Fact("unclear", one.policy, "caution", one.gain, *ends)
    return "WAIT", fact, one.policy


def slope_decides(x: Floats, worth: Worth) -> bool:
    """Whether more of a gain's error is that of the slope than that of its draws x (D,)."""
    of_draws = abs(worth.mean) * float(x.std(ddof=1)) * math.sqrt(1.0 + 1.0 / len(x))
    return abs(float(x.mean())) * worth.error > of_draws


def about_traffic(traffic: Traffic) -> list[Fact]:
    """What the answer is about."""
    covered = float(traffic.searches.sum() / traffic.every)
    thin = int((traffic.searches < THIN).sum())
    facts = [Fact("traffic-covered", value=covered, threshold=float(len(traffic.queries)))]
    if thin:
        of_thin = float(traffic.searches[traffic.searches < THIN].sum() / traffic.searches.sum())
        facts.append(
            Fact("thin-queries", level="caution" if of_thin > 0.5 else "fine", value=float(thin),
                 threshold=float(len(traffic.queries)), more={"least": THIN})
        )  # fmt: skip
    return facts


def about_simulator(used: Simulator, worth: Worth) -> list[Fact]:
    """What the users are."""
    told = [passed for passed in used.checks.values() if passed is not None]
    failed = [name for name, passed in used.checks.items() if passed is False]
    code, more = ("simulator-fails", {"failed": failed}) if failed else ("simulator-used", {})
    passed, every = float(sum(told)), float(len(told))
    facts = [Fact(code, used.name, value=passed, threshold=every, more=more)]
    if used.slope is None:
        return [*facts, Fact("value-unknown", used.name, "caution", value=worth.mean)]
    half = 1.96 * worth.error
    level: Level = "fine" if used.checks.get("value") else "caution"
    ends = worth.mean - half, worth.mean + half
    facts.append(Fact("simulator-value", used.name, level, worth.mean, *ends, 1.0))
    return facts


def _nothing(
    asked: Decide, manifest: Manifest, traffic: Traffic, shown: Sequence[Shown],
    simulators: Sequence[Simulator], facts: Sequence[Fact], reason: Fact,
) -> Decision:  # fmt: skip
    """Where nothing can be simulated."""
    today = float(traffic.searches @ [one.ranker.clicks for one in shown])
    return Decision(
        "WAIT", reason.code, None, asked.reward, traffic.days, float(traffic.searches.sum()),
        len(traffic.queries), today, today, None, (), simulators, [reason, *facts], (),
        manifest=manifest,
    )  # fmt: skip


def tests_of(
    one: Account, runs: Earned, worth: Worth, world: World, traffic: Traffic,
    shown: Sequence[Shown], asked: Decide,
) -> tuple[TestSize, ...]:  # fmt: skip
    """What an A/B test and an interleaving of the choice take."""
    n = traffic.searches
    mean = world.today.mean(axis=0)
    second = mean
    if asked.reward == "clicks":
        mean = np.array([s.ranker.clicks for s in shown])
        error = np.nan_to_num([s.ranker.error for s in shown])
        second = error**2 * (np.array([s.ranker.serps for s in shown]) - 1.0) + mean**2
    total = float(n.sum())
    variance = float(n @ second / total - (n @ mean / total) ** 2)
    b = worth.draws(len(one.ahead), asked.seed)
    ab = power.ab_test(b[:, None] * one.ahead.sum(axis=1), total, variance, traffic.days)
    lists = [(s.ranker.A, s.ranker.p) for s in shown]
    own = [rows[A] for rows, A in zip(world.known, runs.lists, strict=True)]
    D = slice(power.DRAWS)
    users = [of_query[D] for of_query in world.users]
    at = total * np.array(LOOKS) / PIECES
    shown_by = [one[D] for one in own]
    b = worth.draws(len(shown_by[0]), asked.seed)
    mixed = power.interleaving(users, lists, shown_by, at, n, traffic.days, b)
    return ab, mixed


def with_all(
    asked: Decide, models: FittedModels, used: Simulator, chosen: PolicySpec, traffic: Traffic,
    shown: Sequence[Shown],
) -> float:  # fmt: skip
    """The gain of the choice among all results, before the slope."""
    world = world_of(models, used.name, traffic.queries, shown, asked.reward, None, FEWEST)
    orders, _ = orders_of(world, traffic)
    runs = earned(
        [(chosen, orders)], world.problems, traffic.searches, asked.seed, asked.workers, asked.quiet
    )
    found = account(runs[chosen.name].reward, world, traffic)
    return float(found.total[:, -1].mean())


def by_query(
    accounts: Mapping[str, Account], policy: str, worth: Worth, world: World, traffic: Traffic,
    named: Callable[[Query], str],
) -> pd.DataFrame:  # fmt: skip
    """Today's ranker and a policy on each query (``schemas.GAINS``)."""
    gains = [Gain.of(x, worth) for x in accounts[policy].by_query.T]
    return pd.DataFrame(
        {
            "query": [named(query) for query in traffic.queries],
            "searches": traffic.searches,
            "results": [len(rows) for rows in world.known],
            "today": world.today.mean(axis=0),
            "best": world.best.mean(axis=0),
            "policy": policy,
            "gain": [g.mean for g in gains],
            "low": [g.low for g in gains],
            "high": [g.high for g in gains],
        }
    )


def curves(
    accounts: Mapping[str, Account], worth: Worth, traffic: Traffic, today: float
) -> pd.DataFrame:
    """Reward per search by piece of the period (``schemas.EARNINGS``)."""
    total = float(traffic.searches.sum())
    length = total if traffic.days is None else traffic.days
    t = length * np.arange(1, PIECES + 1) / PIECES
    per_search = today / total
    parts = [pd.DataFrame({"policy": TODAY, "t": t, "reward": per_search})]
    for name, one in accounts.items():
        each = np.diff(one.total, axis=1, prepend=0.0) * PIECES
        ends = [Gain.of(x, worth) for x in each.T]
        parts.append(
            pd.DataFrame(
                {
                    "policy": name,
                    "t": t,
                    "reward": [per_search * (1.0 + g.mean) for g in ends],
                    "low": [per_search * (1.0 + g.low) for g in ends],
                    "high": [per_search * (1.0 + g.high) for g in ends],
                }
            )
        )
    return pd.concat(parts, ignore_index=True).astype({"low": float, "high": float})
