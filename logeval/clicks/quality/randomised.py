"""Lists in random order as the truth: models fitted to the ranked lists predict their clicks.

No ranker's habits can flatter a model there. Of every model: clicks per search in the log and
predicted, the share of queries, of ranks of queries, and of items, whose clicks are within the 95%
interval of the prediction (``RARE`` SERPs at least), and how often, of two such SERPs of a query
with unlike numbers of clicks, the one that has more is predicted to have more. An interval has the
spread of the model's draws in it, and that of the clicks.

How models predict clicks once the ranking has changed, which is what a bandit does to a log.

Models fitted to one ranker's lists may lean on where that ranker puts its items, and a test on more
of the same lists cannot tell (Deffayet, Renders, de Rijke: Evaluating the robustness of click
models to policy distributional shift, TOIS 2022; Deffayet, Hager, Renders, de Rijke: An offline
metric for the debiasedness of click models, SIGIR 2023). So, from the log alone:

some (item, rank) pairs of each query are set aside, and with them all SERPs that show one. Half of
these are the test. Each model is fitted twice to equally many SERPs: to those without such a pair,
so that the test shows items at ranks where training never does (``change``), and to a random sample
of all SERPs but the test (``random``). Both are scored on the same test SERPs, so their difference
is what the change of ranker costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.fitted import FittedModel
from logeval.clicks.quality.scores import Score, alike, local_items, score_model
from logeval.errors import LogevalError
from logeval.log.log import Log
from logeval.running import seeds
from logeval.running.arrays import Bools, Floats, Ints, sum_by
from logeval.running.progress import Progress

if TYPE_CHECKING:
    import pandas as pd


RARE = 30  # SERPs, or impressions, with fewer of which there is no interval
PAIRS = 300  # patterns of a query whose order is looked at
NORMAL = 1.959964


def against_randomised(models: Mapping[str, FittedModel], test: Patterns) -> pd.DataFrame:
    """A row per model."""
    return pd.DataFrame([{"model": name, **_row(one, test)} for name, one in models.items()])


def how_to_say(log: Log) -> str:
    """What a log must say, for lists in random order to be found; why propensities are not it."""
    with log.connect() as db:
        known = db.execute("SELECT count(*) FROM serps WHERE propensities IS NOT NULL").fetchone()
    more = ""
    if known is not None and known[0]:
        more = (
            "; its propensities are of single results, which do not say how likely a whole list "
            "was, so lists cannot be weighed by them. Mark those that were drawn in random order, "
            "or estimate with `replay estimate --propensities logged`"
        )
    return f"the log must say which lists were in random order, in a column `random`{more}"


def _row(fitted: FittedModel, test: Patterns) -> dict[str, float]:
    draws = fitted.some_draws(40)
    predicted = np.stack([_predicted(one, test) for one in [fitted, *draws]])  # (1 + D, P, K)
    shown = test.shown
    flat = predicted[:, shown.pattern, shown.position]
    clicks = test.clicks.sum(axis=1).astype(np.float64)
    all_one = np.zeros(test.P, dtype=np.int64)
    total = _within(predicted.sum(axis=2), clicks, test.count, all_one, 1, whole=True)
    by_query = _within(predicted.sum(axis=2), clicks, test.count, test.query, test.Q, whole=True)
    place = shown.query * test.K + shown.position
    by_rank = _within(flat, shown.clicked, shown.count, place, test.Q * test.K)
    by_item = _within(flat, shown.clicked, shown.count, shown.item, test.I)
    return {
        "serps": int(test.count.sum()),
        "clicks": total["seen"][0],
        "predicted": total["mean"][0],
        "low": total["mean"][0] - total["half"][0],
        "high": total["mean"][0] + total["half"][0],
        "queries_within": _share(by_query),
        "ranks_within": _share(by_rank),
        "items_within": _share(by_item),
        "order": _concordance(predicted[0].sum(axis=1), clicks, test),
    }


def _predicted(fitted: FittedModel, test: Patterns) -> Floats:
    """P(click) at every position of every pattern, (P, K)."""
    found = np.zeros(test.items.shape)
    for query, K, rows in alike(test):
        model = fitted.of(query, unseen=True, K=test.K)
        A = local_items(model.items, test.item_ids[test.items[rows, :K]])
        found[rows, :K] = model.click_probs_of_rows(A)
    return found


def _within(
    predicted: Floats, seen: Floats | Bools, count: Floats, group: Ints, n: int, whole: bool = False
) -> dict[str, Floats]:
    """Means of groups in the log and predicted, and half of the interval around the latter.

    ``whole`` clicks of a SERP vary as they do in the log, single ones as their probability says.
    """
    size = sum_by(group, count, n)
    safe = np.maximum(size, 1e-300)
    mean = np.stack([sum_by(group, count * one, n) / safe for one in predicted])
    observed = sum_by(group, count * seen, n) / safe
    if whole:
        square = sum_by(group, count * seen**2, n) / safe
        spread = np.maximum(square - observed**2, 0.0) / np.maximum(size - 1, 1.0)
    else:
        p = predicted[0]
        spread = sum_by(group, count * p * (1 - p), n) / safe**2
    drawn = mean[1:].var(axis=0, ddof=1) if len(mean) > 2 else np.zeros(n)
    return {"mean": mean[0], "seen": observed, "half": NORMAL * np.sqrt(spread + drawn), "n": size}


def _share(found: dict[str, Floats]) -> float:
    """How many groups are within their interval."""
    often = found["n"] >= RARE
    held = np.abs(found["seen"] - found["mean"]) <= found["half"]
    return float(held[often].mean()) if often.any() else np.nan


def _concordance(predicted: Floats, clicks: Floats, test: Patterns) -> float:
    """Of pairs of SERPs of a query with unlike clicks, those in the right order; ties are half."""
    right = pairs = 0.0
    for q in range(test.Q):
        mine = np.flatnonzero(test.query == q)[:PAIRS]
        more = clicks[mine][:, None] > clicks[mine]
        weight = more * np.outer(test.count[mine], test.count[mine])
        gap = predicted[mine][:, None] - predicted[mine]
        right += float((weight * ((gap > 1e-12) + 0.5 * (np.abs(gap) <= 1e-12))).sum())
        pairs += float(weight.sum())
    return right / pairs if pairs else np.nan


SHARE = 0.3  # of the SERPs of a query that may show a pair set aside
MIN_ELSEWHERE = 5.0  # impressions of an item of such a pair that training must keep
SPLITS = ("random", "change")
Fit = Callable[[str, Patterns], FittedModel]


@dataclass(frozen=True)
class Split:
    """Test SERPs, where they show a pair set aside, and the two training parts."""

    test: Patterns
    moved: Bools  # (P, K) of the test: results at a rank where ``change`` never shows them
    train: dict[str, Patterns]  # by SPLITS, of equal size


@dataclass(frozen=True)
class RankerChange:
    """One row per model, the best after the change first (``docs/checking.md`` names columns)."""

    table: pd.DataFrame
    serps: int  # test SERPs
    moved: int  # impressions of items at ranks new to them

    @property
    def line(self) -> str:
        """What the change of ranker does, in one line."""
        best = self.table.iloc[0]
        least = self.table.iloc[int(self.table["loss"].to_numpy().argmin())]
        text = (
            f"after a change of ranker {best['model']} predicts best (log-likelihood "
            f"{best['log_likelihood_change']:.4f}, of which the change cost {best['loss']:.4f})"
        )
        if least["model"] != best["model"]:
            text += f"; {least['model']} loses least by the change itself ({least['loss']:.4f})"
        return f"{text} ({self.serps:,} SERPs)"


def changed_rankers(
    models: Iterable[str], data: Patterns, fit: Fit, *, seed: int = 0, quiet: bool = True
) -> RankerChange:
    """Fit each model to both training parts of a split of the log, and score both."""
    import pandas as pd

    split, models = split_by_rank(data, seed), list(models)
    scores: dict[str, dict[str, Score]] = {}
    with Progress("ranker change", total=2 * len(models), unit="fits", quiet=quiet) as progress:
        for name in models:
            scores[name] = {}
            for part, train in split.train.items():
                scores[name][part] = score_model(fit(name, train), split.test)
                progress.advance(1)
    best = max(models, key=lambda name: _likelihood(scores[name]["change"])[1])
    rows = []
    for name in models:
        mine = scores[name]
        row: dict[str, str | float] = {"model": name}
        for part in SPLITS:
            headline = mine[part].headline()
            row[f"log_likelihood_{part}"] = headline["log_likelihood"]
            row[f"perplexity_{part}"] = headline["perplexity"]
            row[f"ctr_error_{part}"] = ctr_error(mine[part], split)
        row |= _difference("loss", mine["random"], mine["change"])
        row |= _difference("behind", scores[best]["change"], mine["change"])
        rows.append(row)
    table = pd.DataFrame(rows).sort_values("log_likelihood_change", ascending=False)
    moved = int(split.test.count @ split.moved.sum(axis=1))
    return RankerChange(table.reset_index(drop=True), int(split.test.count.sum()), moved)


def split_by_rank(data: Patterns, seed: int = 0) -> Split:
    """Set (item, rank) pairs aside, query by query, and split the SERPs by them."""
    rng = seeds.generator(seed, "ranker change")
    touched = np.zeros(len(data.count), dtype=np.bool_)  # patterns that show a pair set aside
    aside = np.zeros((data.I, data.K), dtype=np.bool_)
    order = np.argsort(data.query, kind="stable")
    bounds = np.searchsorted(data.query[order], np.arange(data.Q + 1))
    for q in range(data.Q):
        rows = order[bounds[q] : bounds[q + 1]]
        _set_aside(data, rows, touched, aside, rng)
    moved = (data.items >= 0) & aside[data.items, np.arange(data.K)]

    test = np.where(touched, rng.binomial(data.count.astype(np.int64), 0.5), 0).astype(np.float64)
    if not test.sum() or touched.all():
        raise LogevalError(
            "the log shows no item at enough ranks to test a change of ranker; take more SERPs"
        )
    size = np.where(touched, 0.0, data.count)
    rest = (data.count - test).astype(np.int64)
    random = np.zeros(len(rest))
    for q in range(data.Q):
        rows = order[bounds[q] : bounds[q + 1]]
        each = np.repeat(rows, rest[rows])
        chosen = rng.choice(each, int(size[rows].sum()), replace=False)
        random += np.bincount(chosen, minlength=len(rest))
    train = {"random": _counted(data, random), "change": _counted(data, size)}
    return Split(_counted(data, test), moved[test > 0], train)


def _set_aside(
    data: Patterns, rows: np.ndarray, touched: Bools, aside: Bools, rng: np.random.Generator
) -> None:
    """Pairs of one query in random order, as long as training keeps enough."""
    items, count = data.items[rows], data.count[rows]
    p, k = np.nonzero(items >= 0)
    cells, cell = np.unique(items[p, k] * data.K + k, return_inverse=True)
    impressions = np.zeros(data.I)
    np.add.at(impressions, items[p, k], count[p])
    limit, gone = SHARE * count.sum(), np.zeros(len(rows), dtype=np.bool_)
    by_cell = np.argsort(cell, kind="stable")
    starts = np.searchsorted(cell[by_cell], np.arange(len(cells) + 1))
    for c in rng.permutation(len(cells)):
        new = p[by_cell[starts[c] : starts[c + 1]]]
        new = new[~gone[new]]
        item = cells[c] // data.K
        cost = count[new].sum()
        if not cost or count[gone].sum() + cost > limit:
            continue
        if impressions[item] - cost < MIN_ELSEWHERE:
            continue
        gone[new] = True
        aside[item, cells[c] % data.K] = True
        shown = items[new]
        np.subtract.at(impressions, shown[shown >= 0], np.repeat(count[new], (shown >= 0).sum(1)))
    touched[rows] = gone


def _counted(data: Patterns, count: Floats) -> Patterns:
    return replace(data, count=count).take(count > 0)


def ctr_error(score: Score, split: Split) -> float:
    """The root mean squared error of the predicted CTR of items at ranks new to them.

    Over (item, rank) pairs with two impressions or more, weighted by impressions; what chance adds
    to the square, CTR (1 - CTR) / (n - 1), is taken off.
    """
    p, k = np.nonzero(split.moved)
    test = split.test
    clicked, n = test.clicks[p, k], test.count[p]
    probability = np.exp2(score.marginal[p, k])
    predicted = np.where(clicked, probability, 1.0 - probability)
    cells, cell = np.unique(test.items[p, k] * test.K + k, return_inverse=True)
    shown, clicks, expected = (
        sum_by(cell, n * x, len(cells)) for x in (np.ones(len(n)), clicked, predicted)
    )
    use = shown >= 2
    if not use.any():
        return float("nan")
    shown, ctr, mean = shown[use], clicks[use] / shown[use], expected[use] / shown[use]
    square = (ctr - mean) ** 2 - ctr * (1 - ctr) / (shown - 1)
    return float(np.sqrt(max((shown * square).sum() / shown.sum(), 0.0)))


def _likelihood(score: Score) -> tuple[Floats, float]:
    """The mean over ranks of ln P(c_k | c_<k) of each pattern, and its mean over SERPs."""
    each = score.columns()[:, 1]
    return each, float(score.count @ each / score.count.sum())


def _difference(name: str, better: Score, worse: Score) -> dict[str, float]:
    """The mean difference in log-likelihood over the same SERPs, with its 95% interval."""
    d = _likelihood(better)[0] - _likelihood(worse)[0]
    n = better.count.sum()
    mean = float(better.count @ d / n)
    half = 1.96 * float(np.sqrt(better.count @ (d - mean) ** 2 / n / max(n - 1, 1)))
    return {name: mean, f"{name}_low": mean - half, f"{name}_high": mean + half}
