"""The dependent click model (DCM): after a click at k the user stops with probability v(k).

Guo, Liu, Wang: Efficient multiple-click models in web search (WSDM 2009); Katariya et al.:
DCM bandits (ICML 2016), section 2. A list satisfies with probability 1 - prod(1 - v_k w(a_k)).

``em``, the default, maximises the likelihood: whether the user stopped at the last click l is
latent,
    P(stopped | clicks) = v_l / (v_l + (1 - v_l) prod_{j>l} (1 - w_j)),
and results below l count as examined with the rest of the weight. ``guo`` (also called ``mle``) is
the counting of Guo et al., equations 13 and 14: everything down to the last click is examined, and
the user stopped there. It maximises a lower bound of the likelihood; the bandit papers use it.

v of the last position cannot be identified: a click there is always the last. Counting gives
1, which puts the best item last in the "optimal" list; so v_K = v_{K-1}, unless the option
``last_termination`` is ``raw``. Lists may differ in length: counting leaves out every click at
the end of its own list, and v of the last position with other clicks holds for all below it.
The plain value is kept as ``raw``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from logeval.clicks.estimation import em
from logeval.clicks.estimation.beta import Split
from logeval.clicks.estimation.chain import ChainClicks, ChainEM, Tally, examination
from logeval.clicks.estimation.estimates import ModelEstimate, Options
from logeval.clicks.estimation.latent import Count, Counts, Latent, Ratios
from logeval.clicks.estimation.patterns import FoldedClicks, Patterns, up_to_last_click
from logeval.clicks.estimation.priors import Pair
from logeval.clicks.models.model import ChainModel, Parameter
from logeval.clicks.users.chain import Formulas, Parameters
from logeval.running.arrays import Bools, Floats, Ints, sum_by

UNSEEN = (
    "DCM: a log does not show whether a click at the last position ended the search, as nothing "
    "follows it"
)


@dataclass(frozen=True)
class DCM(ChainModel):
    """Dependent click model of one query."""

    w: Floats  # (L,) attraction
    v: Floats  # (K,) termination

    name = "DCM"
    examined_by = "last-click"
    PARAMETERS = (Parameter("w", "attraction", "item"), Parameter("v", "termination", "position"))
    methods = ("em", "guo")
    ALIASES: ClassVar[dict[str, str]] = {"mle": "guo", "counting": "guo"}
    OPTIONS: ClassVar[dict[str, tuple[str, ...]]] = {"last_termination": ("previous", "raw")}
    formulas = Formulas(  # a click at k ends the search, satisfied, with probability v(k)
        stay_position=lambda x: 1.0 - x["v"],
        sat_position=lambda x: x["v"],
    )

    @classmethod
    def beside(cls, data: FoldedClicks, options: Options) -> Latent:
        """Exact EM from Guo's counting, or that alone."""

        def finish(mine: FoldedClicks, fit: ModelEstimate) -> ModelEstimate:
            return _LastClicks.of(mine, options).settle(fit)

        if options.method == "em":
            return ChainClicks(DCM_EM, data, options, partial(_start, options=options), finish)
        return Ratios(
            data, options,
            lambda mine: {"w": up_to_last_click(mine)},
            lambda mine: {"v": _LastClicks.of(mine, options).counts}, finish=finish,
        )  # fmt: skip


def _start(data: FoldedClicks, options: Options) -> em.Params:
    """Guo's counting."""
    of_v = _LastClicks.of(data, options)
    counts = {"w": up_to_last_click(data), "v": (of_v.stops, of_v.clicked)}
    return {f: (n + 1.0) / (d + 2.0) for f, (n, d) in counts.items()}


def _counts(x: Parameters, t: Tally, group: Ints, split: Split) -> Counts:
    stops = t.position_clicked - t.position_went_on
    return {"w": examination(x, t), "v": Count(stops, t.position_clicked)}


DCM_EM = ChainEM(("w",), DCM.formulas, _counts)


@dataclass(frozen=True)
class _LastClicks:
    """What clicks tell of v by group and position, (G, K), and where they tell nothing."""

    stops: Floats  # last clicks
    clicked: Floats
    forced: Floats  # clicks at the end of their list
    longest: Ints  # (G,) positions
    options: Options

    @classmethod
    def of(cls, data: FoldedClicks, options: Options) -> _LastClicks:
        """Count them."""
        G, group = options.groups(data)

        def count(block: Patterns) -> tuple[Floats, ...]:
            shown = block.shown
            last = shown.position == block.last_click[shown.pattern]
            end = shown.position == block.length[shown.pattern] - 1
            cell = group[shown.query] * data.K + shown.position
            return tuple(
                sum_by(cell, x, G * data.K).reshape(G, -1)
                for x in (shown.count * last, shown.clicks, shown.clicks * end)
            )

        longest = np.zeros(G, dtype=np.int64)
        np.maximum.at(longest, group, data.positions)
        stops, clicked, forced = data.total(count)
        return cls(stops, clicked, forced, longest, options)

    @property
    def plain(self) -> Bools:
        """The groups whose values stay as they are, (G, 1): asked for, or lists of one."""
        raw = self.options.of_model(DCM)["last_termination"] == "raw"
        return (self.longest < 2)[:, None] | raw

    @property
    def counts(self) -> Pair:
        """Last clicks, of clicks; without those that had to be the last."""
        left_out = np.where(self.plain, 0.0, self.forced)
        return self.stops - left_out, self.clicked - left_out

    def settle(self, fit: ModelEstimate) -> ModelEstimate:
        """v of the last position with clicks above a list's end, for all below it."""
        if self.options.of_model(DCM)["last_termination"] == "raw":
            note = f"{UNSEEN}; the plain estimate is used"
            return replace(fit, notes=[*fit.notes, note])
        k = np.arange(self.stops.shape[1])
        last = np.where(self.clicked > self.forced, k, 0).max(axis=1)[:, None]
        source = np.where(self.plain, k, np.minimum(k, last))
        given = source != k
        v = fit.estimates["v"]
        raw, replaced = v.value, given
        if self.options.method == "guo":
            a, b = self.options.shared_prior(self.stops, self.clicked)
            raw = em.ratio(self.stops + a, self.clicked + a + b, 1.0)
            replaced = (given | (self.forced > 0)) & ~self.plain
        settled = v.map(lambda x: np.take_along_axis(x, source, axis=1))
        unknown = np.where(given, np.nan, 0.0)
        estimate = replace(
            settled,
            low=settled.low + unknown,
            high=settled.high + unknown,
            observations=v.observations,
            raw=np.where(replaced & (k < self.longest[:, None]), raw, np.nan),
        )
        note = f"{UNSEEN}; taken as at the position before, the plain estimate is in column raw"
        return replace(fit, estimates={**fit.estimates, "v": estimate}, notes=[*fit.notes, note])
