"""A click model beside clicks that have weights: what EM over classes needs of one class.

Whatever the model, a step of EM gives every parameter (successes + a) / (trials + a + b), from the
counts that are expected, or drawn, of what was not observed. Models differ in these counts, in the
likelihood of a pattern, and in what clicks say of a parameter when a prior is fitted to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

import numpy as np

from logeval.clicks.estimation.browsing import (
    Cells,
    complete_rows,
    examination_variances,
    expect_rows,
)
from logeval.clicks.estimation.chain import ChainClicks, ChainEM, log_likelihood_rows
from logeval.clicks.estimation.em import CAP, Params
from logeval.clicks.estimation.estimates import ModelEstimate, Options
from logeval.clicks.estimation.information import shared_variances
from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.estimation.priors import Pair, evidence
from logeval.running.arrays import Bools, Floats, Ints, distinct, sum_by

Counts = Mapping[str, Pair]  # successes and trials by field
Pseudo = Mapping[str, Pair]


class Beside(ABC):
    """One class of users beside patterns, whose counts may be weights."""

    items: tuple[str, ...]  # fields of item parameters, the others are shared

    @abstractmethod
    def start(self, data: Patterns) -> Params:
        """Where EM begins."""

    @abstractmethod
    def counts(self, data: Patterns, x: Params, rng: np.random.Generator | None = None) -> Counts:
        """The counts expected at x, by field; or, with ``rng``, drawn."""

    @abstractmethod
    def log_likelihood(self, data: Patterns, x: Params) -> Floats:
        """ln P(clicks) of each pattern, (P,)."""

    def item_evidence(self, data: Patterns, x: Params) -> dict[str, Pair]:
        """What clicks say of each item parameter, as counts."""
        counts = self.counts(data, x)
        return {name: counts[name] for name in self.items}

    def shared_evidence(self, data: Patterns, x: Params, pseudo: Pseudo) -> dict[str, Pair]:
        """What clicks say of each shared parameter of a query, as counts."""
        return {n: pair for n, pair in self.counts(data, x).items() if n not in self.items}

    def settled(self, x: Params) -> Params:
        """The same users, on the scale on which their parameters are reported."""
        return x

    def finished(self, data: Patterns, fit: ModelEstimate) -> ModelEstimate:
        """The estimate of a class, with what the model makes of it, as of one class."""
        return fit


class CountedClasses(Beside):
    """A model whose parameters are ratios of counts: nothing is latent but the class."""

    def __init__(
        self,
        items: tuple[str, ...],
        counted: Callable[[Patterns], Counts],
        log_likelihood: Callable[[Patterns, Params], Floats],
    ) -> None:
        self.items, self._counted, self._log_likelihood = items, counted, log_likelihood

    def start(self, data: Patterns) -> Params:
        """The ratios."""
        return {name: (n + 1.0) / (d + 2.0) for name, (n, d) in self._counted(data).items()}

    def counts(self, data: Patterns, x: Params, rng: np.random.Generator | None = None) -> Counts:
        """The same whatever x is."""
        return self._counted(data)

    def log_likelihood(self, data: Patterns, x: Params) -> Floats:
        """ln P(clicks) of each pattern."""
        return self._log_likelihood(data, x)


class ChainClasses(Beside):
    """A chain model."""

    def __init__(
        self,
        model: ChainEM,
        options: Options,
        start: Callable[[Patterns], Params],
        finish: Callable[[Patterns, ModelEstimate], ModelEstimate] | None = None,
    ) -> None:
        self.model, self.items, self._options = model, model.items, options
        self._start, self._finish = start, finish

    def start(self, data: Patterns) -> Params:
        """As for one class."""
        return self._start(data)

    def finished(self, data: Patterns, fit: ModelEstimate) -> ModelEstimate:
        """As the model does."""
        return fit if self._finish is None else self._finish(data, fit)

    def counts(self, data: Patterns, x: Params, rng: np.random.Generator | None = None) -> Counts:
        """Of the tally of the chain."""
        _, counts = ChainClicks(self.model, data, self._options).expected(x, rng=rng)
        return {name: count[:2] for name, count in counts.items()}

    def log_likelihood(self, data: Patterns, x: Params) -> Floats:
        """ln P(clicks) of each pattern."""
        clicks = ChainClicks(self.model, data, self._options)
        at_items = self.model.at_items(x, clicks.item_group)
        users = self.model.users(x, at_items, clicks.G, data.K)
        group, out = clicks.group[data.query], np.empty(data.P)
        log_likelihood_rows(data.items, data.clicks, data.length, group, users, out)
        return out

    def item_evidence(self, data: Patterns, x: Params) -> dict[str, Pair]:
        """What is left of the expected counts without what is missing (Louis)."""
        _, counts = ChainClicks(self.model, data, self._options).expected(x)
        return {name: counts[name].evidence(x[name]) for name in self.items}

    def shared_evidence(self, data: Patterns, x: Params, pseudo: Pseudo) -> dict[str, Pair]:
        """By the variances of the shared parameters, the items being unknown."""
        model, strength = self.model, {name: a + b for name, (a, b) in pseudo.items()}
        variance = shared_variances(data, model.formulas, model.slopes, self.items, x, strength)
        return {n: evidence(x[n], v, pseudo[n]) for n, v in variance.items()}


class BrowsingClasses(Beside):
    """A browsing model: examination e (G, J) of the cells of each group.

    ``cell`` gives the cell of every shown (pattern, position), ``anchor`` the cells (G, J) whose
    value settles the scale between w and e, set to 1 if ``to_one``; ``shape`` is that of e.
    """

    items = ("w",)

    def __init__(
        self,
        data: Patterns,
        options: Options,
        cell: Callable[[Patterns], Ints],
        shape: tuple[int, ...],
        anchor: Callable[[Floats], Bools] | None = None,
    ) -> None:
        self._G, self._group = options.groups(data)
        self._shape, self._J, self._anchor = shape, int(np.prod(shape)), anchor
        shown = data.shown
        keys, self._row = distinct(shown.item * self._J + cell(data), data.I * self._J)
        item = keys // self._J
        item_group = self._group[data.item_query]
        self._cells = Cells(
            item, item_group[item] * self._J + keys % self._J, np.zeros(0), np.zeros(0),
            data.I, self._J, self._G, item_group,
        )  # fmt: skip
        self._at = self._cells.cell[self._row]  # of every shown (pattern, position)
        seen = np.zeros(self._G * self._J, dtype=np.bool_)
        seen[self._cells.cell] = True
        self._impossible = ~seen

    def _weighted(self, data: Patterns) -> Cells:
        n = len(self._cells.item)
        shown, clicks = data.shown.count, data.shown.clicks
        return self._cells._replace(
            impressions=sum_by(self._row, shown, n), clicks=sum_by(self._row, clicks, n)
        )

    def start(self, data: Patterns) -> Params:
        """One half everywhere."""
        e = np.where(self._impossible, 0.0, 0.5).reshape(self._G, *self._shape)
        return {"w": np.full(data.I, 0.5), "e": e}

    def counts(self, data: Patterns, x: Params, rng: np.random.Generator | None = None) -> Counts:
        """Attractive impressions of each item, examined ones of each cell."""
        cells, e = self._weighted(data), np.minimum(x["e"].ravel(), 1.0 - CAP)
        attractive, examined = np.zeros(cells.I), np.zeros(cells.G * cells.J)
        if rng is None:
            every, nothing = np.ones(cells.G, dtype=np.bool_), np.zeros(cells.G)
            expect_rows(cells, every, x["w"], e, attractive, examined, nothing)
        else:
            u = rng.random((2, len(cells.item)))
            complete_rows(cells, x["w"], e, u, attractive, examined)
        seen_i, seen_j = cells.sums(cells.impressions)
        shape = x["e"].shape
        return {"w": (attractive, seen_i), "e": (examined.reshape(shape), seen_j.reshape(shape))}

    def log_likelihood(self, data: Patterns, x: Params) -> Floats:
        """ln P(clicks) of each pattern."""
        return independent(data, x["w"][data.shown.item] * x["e"].ravel()[self._at])

    def item_evidence(self, data: Patterns, x: Params) -> dict[str, Pair]:
        """Clicks, of expected examinations."""
        shown = data.shown
        examined = sum_by(shown.item, shown.count * x["e"].ravel()[self._at], data.I)
        return {"w": (data.item_clicks, np.maximum(examined, data.item_clicks))}

    def shared_evidence(self, data: Patterns, x: Params, pseudo: Pseudo) -> dict[str, Pair]:
        """By the variances of examination, the items being unknown."""
        cells, e = self._weighted(data), x["e"].ravel()
        fixed = self._impossible | self._known(x["e"]).ravel()
        (a, b), (c, d) = pseudo["w"], pseudo["e"]
        prior = np.broadcast_to((c + d).reshape(1, -1), (self._G, self._J)).ravel()
        variance = examination_variances(cells, x["w"], e, a + b, prior, fixed)
        return {"e": evidence(x["e"], variance.reshape(x["e"].shape), (c, d))}

    def _known(self, e: Floats) -> Bools:
        flat = e.reshape(self._G, self._J)
        if self._anchor is None:
            return np.zeros(flat.shape, dtype=np.bool_)
        return self._anchor(flat)

    def settled(self, x: Params) -> Params:
        """The anchor at 1."""
        if self._anchor is None:
            return x
        flat = x["e"].reshape(self._G, self._J)
        scale = np.maximum(np.where(self._known(flat), flat, 0.0).max(axis=1), 1e-12)
        e = np.minimum(flat / scale[:, None], 1.0).reshape(x["e"].shape)
        return {"w": np.minimum(x["w"] * scale[self._cells.item_group], 1.0 - CAP), "e": e}


def independent(data: Patterns, p: Floats) -> Floats:
    """ln P(clicks) of each pattern, from P(click | clicks above) of all that is shown."""
    shown = data.shown
    p = np.clip(p, 1e-12, 1.0 - 1e-12)
    return sum_by(shown.pattern, np.where(shown.clicked, np.log(p), np.log1p(-p)), data.P)
