"""What the checks count on SERPs and their clicks, and the shares they make of it.

A feature is a count over SERPs: SERPs with two clicks, clicks at rank 3, clicks at rank 5 of SERPs
that have one at rank 2. A component of a check is the ratio of two features, and deviates by

    D = numerator - (E numerator / E denominator) denominator,

which is linear in the features and has mean 0 if the model is right. ``add_one`` is the one
place where clicks become features, for the log and for simulated clicks alike.

How far the log is from what a model's users do, and how often chance alone is as far.

The log's features and those of n simulations make n + 1 rows. If the model is right, and the
simulations have the parameters' uncertainty in them, the log's row is one like the others. Every
component's deviation D is divided by its standard deviation over all n + 1 rows, z = D / sd; a
check's statistic is its largest |z|, and its p-value the share of rows, the log's among them, with
one as large. Corrected together, a check's p-value is the share of rows whose largest |z| over all
checks of the family is as large (Westfall and Young, 1993: single-step max-T). There are two
families, the checks over all queries and those by query; each p-value is doubled for that.

A check is faulted at a corrected p-value of ``FALSE_ALARMS``. The rule is exact as far as the
parameters' uncertainty is; that is an approximation, so ``FALSE_ALARMS`` is half of the 5% of false
alarms per model that are promised. docs/evidence.md has the measured rates.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from logeval.clicks.drift import Change
from logeval.clicks.quality.value import Slope
from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.kernels import njit

MOST_CLICKS = 5  # SERPs with this many clicks or more are counted together
TOP_ITEMS = 10  # of a query, by impressions
MAX_AFTER = 10  # ranks of the check "after a click"
EDGES = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7])  # of predicted probabilities
BINS = len(EDGES) + 1

CHECKS = {
    "clicks-per-serp": "share of SERPs by number of clicks",
    "ctr-by-rank": "clicks per impression at a rank",
    "first-click": "rank of the first click, as shares of the SERPs with a click",
    "last-click": "rank of the last click, as shares of the SERPs with a click",
    "distance": "ranks from one click to the next, as shares of such pairs",
    "after-click": "clicks at a rank, of the SERPs with a click at an earlier rank",
    "top-items": "clicks per impression of the items shown most",
    "swaps": "clicks at the upper of two neighbouring ranks, on items seen at both",
    "calibration": "clicks per result whose predicted P(click | clicks above) is in a range",
}

SERPS, CLICKED, PAIRS, COUNT = 0, 1, 2, 3  # the first features; COUNT has MOST_CLICKS + 1


@dataclass(frozen=True)
class Layout:
    """Where each feature is, for lists of up to K results."""

    K: int

    @property
    def R(self) -> int:
        """Ranks of the check "after a click"."""
        return min(self.K, MAX_AFTER)

    @cached_property
    def at(self) -> Ints:
        """The first index of each kind of feature, in the order of ``add_one``."""
        sizes = [COUNT + MOST_CLICKS + 1, *[self.K] * 5, self.R**2, *[TOP_ITEMS] * 2, *[BINS] * 3]
        return np.cumsum(sizes)

    @property
    def size(self) -> int:
        """The number of features."""
        return int(self.at[-1])

    @cached_property
    def components(self) -> Components:
        """The components of all checks but ``top-items``, which differ by query, and ``swaps``."""
        shown, rank, first, last, distance, after, *_, q, hit, _ = self.at.tolist()
        k = range(self.K)
        rows: list[tuple[str, str, float, int, int]] = []
        for m in range(MOST_CLICKS + 1):
            rows.append(("clicks-per-serp", _clicks(m), m, COUNT + m, SERPS))
        rows += [("ctr-by-rank", f"rank {j + 1}", j + 1, rank + j, shown + j) for j in k]
        rows += [("first-click", f"rank {j + 1}", j + 1, first + j, CLICKED) for j in k]
        rows += [("last-click", f"rank {j + 1}", j + 1, last + j, CLICKED) for j in k]
        rows += [("distance", f"distance {j}", j, distance + j, PAIRS) for j in k if j]
        for r in range(self.R):
            for j in range(r + 1, self.R):
                label = f"rank {j + 1} after {r + 1}"
                rows.append(("after-click", label, j + 1, after + r * self.R + j, rank + r))
        for b in range(BINS):
            low, high = (0.0, *EDGES)[b], (*EDGES, 1.0)[b]
            rows.append(("calibration", f"{low:g} to {high:g}", (low + high) / 2, hit + b, q + b))
        checks, labels, x, num, den = zip(*rows, strict=True)
        return Components(list(checks), list(labels), np.array(x), np.array(num), np.array(den))

    @property
    def bins(self) -> tuple[slice, slice, slice]:
        """Results, predicted clicks and clicks by range of the predicted probability."""
        n, q, hit, end = self.at[8:12].tolist()
        return slice(n, q), slice(q, hit), slice(hit, end)

    @property
    def items(self) -> tuple[slice, slice]:
        """Impressions and clicks of the items shown most."""
        shown, clicks, end = self.at[6:9].tolist()
        return slice(shown, clicks), slice(clicks, end)


@dataclass(frozen=True)
class Components:
    """Ratios of features: the check, a label, its place on an axis, numerator, denominator."""

    check: list[str]
    label: list[str]
    x: Floats
    num: Ints
    den: Ints

    def more(self, check: str, label: list[str], num: Ints, den: Ints) -> Components:
        """These, and those of one more check."""
        return Components(
            self.check + [check] * len(label),
            self.label + label,
            np.concatenate([self.x, 1.0 + np.arange(len(label))]),
            np.concatenate([self.num, num]),
            np.concatenate([self.den, den]),
        )

    def with_items(self, names: list[str], clicked: Ints, shown: Ints) -> Components:
        """These, and those of the items shown most."""
        return self.more("top-items", [f"item {name}" for name in names], clicked, shown)


def _clicks(m: int) -> str:
    if m == MOST_CLICKS:
        return f"{m}+ clicks"
    return f"{m} click{'' if m == 1 else 's'}"


@njit(cache=True, nogil=True)
def add_one(c: Ints, q: Floats, top: Ints, at: Ints, R: int, n: float, out: Floats) -> None:
    """Add the features of one SERP, ``n`` times.

    ``q`` are the model's P(c_k = 1 | c_<k), ``top`` the place of each result among the items
    shown most, or -1.
    """
    shown, rank, first, last, distance, after = at[0], at[1], at[2], at[3], at[4], at[5]
    item_shown, item, bin_n, bin_q, bin_hit = at[6], at[7], at[8], at[9], at[10]
    clicks, previous = 0, -1
    for k in range(c.shape[0]):
        b = 0
        while b < BINS - 1 and q[k] >= EDGES[b]:
            b += 1
        out[shown + k] += n
        out[bin_n + b] += n
        out[bin_q + b] += n * q[k]
        if top[k] >= 0:
            out[item_shown + top[k]] += n
        if c[k]:
            out[rank + k] += n
            out[bin_hit + b] += n
            if top[k] >= 0:
                out[item + top[k]] += n
            if previous < 0:
                out[first + k] += n
            else:
                out[distance + k - previous] += n
                out[PAIRS] += n
            if k < R:
                for r in range(k):
                    if c[r]:
                        out[after + r * R + k] += n
            previous = k
            clicks += 1
    out[SERPS] += n
    out[COUNT + min(clicks, MOST_CLICKS)] += n
    if clicks:
        out[last + previous] += n
        out[CLICKED] += n


@njit(cache=True, nogil=True)
def add_rows(
    clicks: Ints, q: Floats, top: Ints, count: Floats, row: Ints, at: Ints, R: int, out: Floats
) -> None:
    """``add_one`` for each SERP i, ``count[i]`` times, into ``out[row[i]]``.

    The places ``top`` of the lists may be fewer: those of simulations repeat.
    """
    for i in range(clicks.shape[0]):
        add_one(clicks[i], q[i], top[i % top.shape[0]], at, R, count[i], out[row[i]])


FALSE_ALARMS = 0.025
FAMILIES = 2
MIN_COUNT = 10.0  # expected events, and expected non-events, below which no ratio is judged


@dataclass(frozen=True)
class Deviations:
    """The components of all checks, over all queries or of one query."""

    parts: Components
    z: Floats  # (n + 1, C); the first row is the log's; 0 where not judged
    judged: Bools  # (C,)
    observed: Floats  # (C,) the log's ratio
    expected: Floats  # (C,) the model's
    low: Floats  # (C,) 95% of the simulations, with the parameters' uncertainty
    high: Floats
    weight: Floats  # (C,) expected denominator

    def of(self, check: str) -> Bools:
        """Which components belong to a check and are judged."""
        mine = np.array([c == check for c in self.parts.check], dtype=np.bool_)
        return mine & self.judged

    def numbers(self, j: int) -> dict[str, float]:
        """The log's ratio of a component, the model's, and the band around it."""
        names = ("observed", "expected", "low", "high")
        return {name: float(getattr(self, name)[j]) for name in names}

    def largest(self, check: str) -> Floats:
        """The largest |z| of a check in each row, (n + 1,); 0 where nothing is judged."""
        return np.abs(self.z[:, self.of(check)]).max(axis=1, initial=0.0)

    def error(self, check: str) -> float:
        """How far off the ratios are, on average over what they are shares of.

        Of a distribution (clicks per SERP, first and last click, distance) the total variation
        distance; of click-through rates the mean |log - model|, weighted by impressions, which is
        the expected calibration error in the case of ``calibration``.
        """
        mine = np.array([c == check for c in self.parts.check]) & (self.weight > 0)
        gap = np.abs(self.observed - self.expected)[mine]
        if check in ("clicks-per-serp", "first-click", "last-click", "distance"):
            return float(gap.sum() / 2)
        weight = self.weight[mine]
        return float((gap * weight).sum() / max(float(weight.sum()), 1e-300))


def deviations(rows: Floats, parts: Components, results: Floats) -> Deviations:
    """From features of the log (first row) and of simulations, (n + 1, features).

    ``results`` is, for each component of ``calibration``, the number of results in its range (else
    nan): these ratios are shown as click-through rates.
    """
    num, den = rows[:, parts.num], rows[:, parts.den]
    mean_num, mean_den = num.mean(axis=0), den.mean(axis=0)
    calibration = np.isfinite(results)
    ratio = np.divide(mean_num, mean_den, out=np.zeros(len(mean_num)), where=mean_den > 0)
    ratio = np.where(calibration, 1.0, ratio)
    D = num - ratio * den
    sd = D.std(axis=0)
    left = np.where(calibration, results, den) - num
    judged = _enough(num) & _enough(left) & (sd > 1e-9)
    z = np.where(judged, D / np.where(sd > 1e-9, sd, 1.0), 0.0)

    # of calibration: clicks and predicted clicks, per result in the range
    of = np.where(calibration, results, den)
    safe = np.maximum(of[1:].mean(axis=0), 1e-12)
    expected = np.where(calibration, den[0], num[1:].mean(axis=0)) / safe
    observed = num[0] / np.maximum(of[0], 1e-12)
    simulated = np.where(calibration, D, num - expected * den)[1:]
    band = np.quantile(simulated, [0.025, 0.975], axis=0) / safe
    low, high = np.maximum(expected + band[0], 0.0), np.minimum(expected + band[1], 1.0)
    weight = np.where(calibration, results, den[1:].mean(axis=0))
    return Deviations(parts, z, judged, observed, expected, low, high, weight)


def _enough(count: Floats) -> Bools:
    """Whether there are events enough to judge; a rule that treats all rows alike.

    Where a model rules out what the log has, its mean is small and one row stands out.
    """
    return (count.mean(axis=0) >= MIN_COUNT) | (count.max(axis=0) >= 3 * MIN_COUNT)


@dataclass(frozen=True)
class Family:
    """Checks that are judged together, by the largest |z| of all in each row."""

    largest: Floats  # (n + 1,)

    @classmethod
    def of(cls, members: list[Deviations], rows: int) -> Family:
        """The family of these deviations."""
        largest = np.zeros(rows)
        for member in members:
            for check in CHECKS:
                largest = np.maximum(largest, member.largest(check))
        return cls(largest)

    @property
    def critical(self) -> float:
        """The |z| above which a component is faulted."""
        return float(np.quantile(self.largest, 1 - FALSE_ALARMS / FAMILIES, method="higher"))

    def p_values(self, member: Deviations, check: str) -> tuple[float, float]:
        """The p-value of a check alone, and corrected for all others; 1 where not judged."""
        own = member.largest(check)
        if not own[0]:
            return 1.0, 1.0
        alone = float((own >= own[0]).mean())
        together = float((self.largest >= own[0]).mean())
        return alone, min(FAMILIES * together, 1.0)


@dataclass(frozen=True)
class ModelVerdict:
    """Which checks fault a model, and which do not."""

    model: str
    faulted: list[str]  # checks over all queries, the clearest first
    right: list[str]
    unjudged: list[str]  # checks with too few events
    queries: int  # checked by themselves
    faulted_queries: int
    serps: int
    errors: dict[str, float] = field(default_factory=dict)  # by check that was judged

    def with_change(self, change: Change | None) -> ModelVerdict:
        """The same of users who may change, where the log knows of several days."""
        if change is None:
            return self
        if not change.tested[0]:
            return replace(self, unjudged=[*self.unjudged, "drift"])
        if not change.found[0]:
            return replace(self, right=[*self.right, "drift"])
        return replace(self, faulted=[*self.faulted, "drift"])

    def with_value(self, found: Slope | None) -> ModelVerdict:
        """The same with the slope of whole lists; None where it was not asked for."""
        if found is None:
            return self
        if found.passes is None:
            return replace(self, unjudged=[*self.unjudged, "value"])
        errors = {**self.errors, "value": abs(found.slope - 1.0)}
        if found.passes:
            return replace(self, right=[*self.right, "value"], errors=errors)
        return replace(self, faulted=[*self.faulted, "value"], errors=errors)

    @property
    def cleared(self) -> bool:
        """Whether nothing at all is faulted."""
        return not self.faulted and not self.faulted_queries

    def record(self, held_out: bool) -> dict[str, Any]:
        """What the manifest of the models keeps of it."""
        return {
            "faulted": self.faulted,
            "judged": len(self.faulted) + len(self.right),
            "errors": {check: round(error, 6) for check, error in self.errors.items()},
            "queries": self.queries,
            "faulted_queries": self.faulted_queries,
            "serps": self.serps,
            "held_out": held_out,
        }


def verdict_of(model: str, rows: list[dict[str, Any]], overall: Deviations) -> ModelVerdict:
    """The verdict on a model from the rows of its checks."""
    over_all = {row["check"]: row for row in rows if row["query"] is None}
    faulted = [check for check, row in over_all.items() if row["faulted"]]
    faulted.sort(key=lambda check: -overall.largest(check)[0])
    by_query: dict[str, bool] = {}
    for row in rows:
        if row["query"] is not None:
            by_query[row["query"]] = by_query.get(row["query"], False) or row["faulted"]
    judged = [check for check, row in over_all.items() if row["components"]]
    return ModelVerdict(
        model,
        faulted,
        [check for check in judged if check not in faulted],
        [check for check in CHECKS if check not in judged],
        len(by_query),
        sum(by_query.values()),
        int(next(iter(over_all.values()))["serps"]),
        {check: float(over_all[check]["error"]) for check in judged},
    )
