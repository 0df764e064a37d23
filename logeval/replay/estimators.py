"""What every estimator is: a level of cells, and a weight for each of them.

V = (1/n) sum over SERPs and positions k of c_k min(rho, M), with the weight rho of the cell that
the SERP falls into (Li et al., "Offline evaluation of ranking policies with click models", KDD
2018). Self-normalised, each position has a ratio of its own:
V = sum_k H_k (sum c_k rho) / (sum rho), with H_k the probability that the target has a position k.

List: rho = h(A) / p(A), the weight of the whole list (Li et al. 2018; SIPS).

Prefix: rho = h(a_1..a_k) / p(a_1..a_k).

A click at k depends on the items up to k only, as with users who read from the top (RIPS:
McInerney et al., "Counterfactual evaluation of slate recommendations with sequential reward
interactions", KDD 2020).

Item: rho = h(a_k) / p(a_k), shown at any position (Li et al. 2018, "document-based").

IP, item-position: rho = h(a_k, k) / p(a_k, k) (Li et al. 2018; IIPS).

With the frequencies of the log and no clip it is sum_{a,k} h(a, k) CTR(a, k).

RCTR: rho = 1. The logger's own value, whatever the target: what any estimate must beat.

PBM: rho = sum_j e_j h(a_k, j) / sum_j e_j p(a_k, j) (Li et al. 2018).

The weight is that of the item's expected examination under the target and under the logger, so
clicks on an item count wherever it was shown. e is that of a PBM fitted to the log.

INTERPOL: between IP (window 0) and PBM (window K - 1), Buchholz, London, Di Benedetto,
Joachims, "Off-policy evaluation for learning-to-rank via interpolating the item-position model
and the position-based model" (2022).

An item that the target shows at j may lend clicks from positions k with |j - k| <= window:

    rho(a, k) = sum_{j: |j-k| <= window} h(a, j) e_j / sum_{l: |l-j| <= window} e_l p(a, l)

The window is around the target's position j, so that under a PBM every h(a, j) gets exactly
e_j w(a) whatever the window; a window around k in both sums would not.

DM, the direct method: the target's expected clicks under a click model fitted to the log.

DR: the direct method plus weighted residuals, at item-position and at prefix level.

V = DM + (1/n) sum over SERPs and k of min(rho, M) (c_k - P(c_k = 1 | A)), after Dudik, Langford,
Li, "Doubly robust policy evaluation and learning" (ICML 2011); at prefix level with the weights of
Kiyohara et al., "Doubly robust off-policy evaluation for ranking policies under the cascade
behavior model" (WSDM 2022). Where the log does not show what the target would, rho is 0 and the
model's value stands.

The weights of a level correct a model whose clicks depend on that level: on item and position for
DR (PBM, the CTRs), on the prefix for Cascade-DR (every click model here). With, say, a DCM the
residuals of DR do not add up to the model's error, and it is right only if the DCM is.

Estimators by name, one line each. Names are matched without regard to case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from logeval.clicks.models.registry import AUTO, kinds, model_names
from logeval.errors import LogevalError, unknown_names
from logeval.running.arrays import Bools, Floats

OF_CELLS = ("GCTR", "RCTR", "DCTR", "PBM")  # click models of item and position alone


@dataclass(frozen=True)
class View:
    """What weights are made of: cells (c,), in B resampled logs at once."""

    h: Floats  # (c,) target
    p: Floats  # (c, B) propensity
    K: int  # positions; at the item-position level the cells of an item follow each other
    e: Floats | None  # (c,) examination of the cell's position, where the estimator asks for it


@dataclass(frozen=True)
class Estimator:
    """An estimator with its parameters; ``str`` gives the name that it parses from."""

    normalised: bool = False

    NAME: ClassVar[str]
    LEVEL: ClassVar[str | None]  # of its cells; None: it does not weight the log
    EXAMINATION: ClassVar[bool] = False  # whether it needs e of a fitted PBM
    PARAMETERS: ClassVar[dict[str, type]] = {}
    ASSUMES: ClassVar[str]  # of users, in words
    STRENGTH: ClassVar[int]  # how much that is: 0 for nothing, up to 4 for RCTR

    @property
    def assumes(self) -> str:
        """What must hold of users for it to be right."""
        return self.ASSUMES

    @property
    def strength(self) -> int:
        """How much that is."""
        return self.STRENGTH

    def weights(self, view: View) -> Floats:
        """rho of each cell, (c, B): h / p, and 0 without support."""
        return ratio(view.h[:, None], view.p)

    def supported(self, view: View) -> Bools:
        """Whether the estimator can see what the target shows in each cell, (c, B)."""
        return view.p > 0

    @property
    def model(self) -> str | None:
        """The click model that it adds residuals to, if any."""
        return None

    @property
    def needs(self) -> str | None:
        """The click model that is fitted for it, if any."""
        return "pbm" if self.EXAMINATION else self.model

    def assumes_less(self, other: Estimator) -> bool:
        """Whether it is right wherever the other one is, and elsewhere too.

        Whole lists assume nothing, prefixes only that what is below does not matter, and items at
        positions what all models of these do. Where the two differ, the other one is wrong.
        """
        of_lists = self.LEVEL in ("list", "prefix")
        if (self.strength, not of_lists) >= (other.strength, other.LEVEL not in ("list", "prefix")):
            return False
        return of_lists or other.model is None or other.model.upper() in OF_CELLS

    def _arguments(self) -> list[str]:
        return ["normalised"] if self.normalised else []

    def __str__(self) -> str:
        arguments = self._arguments()
        return f"{self.NAME}({','.join(arguments)})" if arguments else self.NAME


def ratio(h: Floats, p: Floats) -> Floats:
    """h / p, 0 where p is 0."""
    return np.divide(h, p, out=np.zeros(np.broadcast_shapes(h.shape, p.shape)), where=p > 0)


def items_shown(view: View) -> Bools:
    """Whether the item of each cell was shown at any position, (c, B)."""
    anywhere = view.p.reshape(-1, view.K, view.p.shape[1]).sum(axis=1) > 0
    return np.repeat(anywhere, view.K, axis=0)


class OfItems(Estimator):
    """Weights that are the same at all positions of an item, from sums over them."""

    def weights(self, view: View) -> Floats:
        """What the target shows of an item (examined), over what the logger shows."""
        wanted = self._summed(view, view.h[:, None])
        return np.repeat(ratio(wanted, self._summed(view, view.p)), view.K, axis=0)

    def supported(self, view: View) -> Bools:
        """Items that were shown (examined) anywhere."""
        return np.repeat(self._summed(view, view.p) > 0, view.K, axis=0)

    def _summed(self, view: View, x: Floats) -> Floats:
        """Cell values (c, B) over the positions of each item, by their examination."""
        e = view.e[:, None] if view.e is not None and self.EXAMINATION else 1.0
        total: Floats = (e * x).reshape(-1, view.K, x.shape[1]).sum(axis=1)
        return total


@dataclass(frozen=True)
class List(Estimator):
    """Standard inverse propensity scoring of lists.

    Unbiased always, where the logger shows every list of the target.
    """

    NAME = "List"
    ASSUMES = "nothing about users"
    STRENGTH = 0
    LEVEL = "list"


@dataclass(frozen=True)
class Prefix(Estimator):
    """Inverse propensity scoring of prefixes.

    Unbiased if a click depends on the items down to it.
    """

    NAME = "Prefix"
    ASSUMES = "users read from the top, so a click depends on the items down to it"
    STRENGTH = 1
    LEVEL = "prefix"


@dataclass(frozen=True)
class Item(OfItems):
    """Inverse propensity scoring of items; unbiased if a click depends on the item alone."""

    NAME = "Item"
    ASSUMES = "the position of an item does not matter"
    STRENGTH = 3
    LEVEL = "item-position"


@dataclass(frozen=True)
class IP(Estimator):
    """Inverse propensity scoring of items at positions.

    Unbiased if a click depends on the item and its position.
    """

    NAME = "IP"
    ASSUMES = "a click depends on the item and its position alone"
    STRENGTH = 1
    LEVEL = "item-position"


@dataclass(frozen=True)
class RCTR(Estimator):
    """The mean of the log; a click depends on the position alone.

    Unbiased if the ranking does not matter.
    """

    NAME = "RCTR"
    ASSUMES = "the ranking does not matter"
    STRENGTH = 4
    LEVEL = "position"

    def weights(self, view: View) -> Floats:
        """1."""
        return np.ones(view.p.shape)

    def supported(self, view: View) -> Bools:
        """Everything."""
        return np.ones(view.p.shape, dtype=np.bool_)


@dataclass(frozen=True)
class PBM(OfItems):
    """Inverse propensity scoring of examinations; unbiased if a click has probability e(k) w(a)."""

    NAME = "PBM"
    ASSUMES = "users follow a position-based model (PBM)"
    STRENGTH = 2
    LEVEL = "item-position"
    EXAMINATION = True


@dataclass(frozen=True)
class Interpol(Estimator):
    """PBM weights from positions near the target's.

    Unbiased if a click has probability e(k) w(a) among positions at most `window` apart.
    """

    window: int = 1

    NAME = "INTERPOL"
    ASSUMES = "users follow a position-based model among near positions"
    STRENGTH = 2
    LEVEL = "item-position"
    EXAMINATION = True
    PARAMETERS: ClassVar[dict[str, type]] = {"window": int}

    def __post_init__(self) -> None:
        if self.window < 0:
            raise LogevalError(f"INTERPOL: window={self.window} must be 0 or more")

    def weights(self, view: View) -> Floats:
        """Sums over the target's positions near k."""
        assert view.e is not None
        near = self._near(view.K)
        lent = ratio((view.e * view.h).reshape(-1, view.K, 1), self._examined(view))
        return np.einsum("kj,ijb->ikb", near, lent).reshape(view.p.shape)

    def supported(self, view: View) -> Bools:
        """Items that were examined near the target's position."""
        return (self._examined(view) > 0).reshape(view.p.shape)

    def _examined(self, view: View) -> Floats:
        assert view.e is not None
        p = (view.e[:, None] * view.p).reshape(-1, view.K, view.p.shape[1])
        return np.einsum("jl,ilb->ijb", self._near(view.K), p)

    def _near(self, K: int) -> Floats:
        k = np.arange(K)
        return (np.abs(k[:, None] - k) <= self.window).astype(np.float64)

    def _arguments(self) -> list[str]:
        return [f"window={self.window}", *super()._arguments()]


DEFAULT = "pbm"  # clicks that depend on item and position, as the weights of DR assume


@dataclass(frozen=True)
class DM(Estimator):
    """sum over lists of h(A) sum_k P(c_k = 1 | A); unbiased if the click model is right."""

    click_model: str = DEFAULT

    NAME = "DM"
    LEVEL: ClassVar[str | None] = None
    STRENGTH: ClassVar[int] = 3
    PARAMETERS: ClassVar[dict[str, type]] = {"click_model": str}

    @property
    def assumes(self) -> str:
        """The click model."""
        return f"users follow a {self.click_model.upper()}"

    @property
    def model(self) -> str | None:
        """The click model."""
        return self.click_model

    def _arguments(self) -> list[str]:
        own = [] if self.click_model == DEFAULT else [self.click_model]
        return own + super()._arguments()


@dataclass(frozen=True)
class DR(DM):
    """Residuals with the weights of IP.

    Unbiased if the click model is right; of items where they were shown also if IP's assumption
    holds, with a model of item and position.
    """

    NAME = "DR"
    LEVEL = "item-position"

    @property
    def strength(self) -> int:
        """As of PBM, if the click model is one of item and position."""
        return 2 if self.click_model.upper() in OF_CELLS else self.STRENGTH

    def supported(self, view: View) -> Bools:
        """Items that were shown anywhere: where they were not the model's value stands."""
        return items_shown(view)


@dataclass(frozen=True)
class CascadeDR(DM):
    """Residuals with the weights of Prefix.

    Unbiased if the click model is right, or Prefix's assumption holds.
    """

    NAME = "Cascade-DR"
    LEVEL = "prefix"
    STRENGTH = 1

    @property
    def assumes(self) -> str:
        """The click model, or what its weights correct it for."""
        return f"{super().assumes}, or read from the top"


_KINDS: tuple[type[Estimator], ...] = (
    List, Prefix, IP, PBM, Interpol, Item, RCTR, DM,
    DR, CascadeDR,
)  # fmt: skip
ESTIMATORS = {kind.NAME: kind for kind in _KINDS}
ALIASES = {"SIPS": "List", "RIPS": "Prefix", "IIPS": "IP"}  # of the literature on slates


def parse_estimators(texts: Iterable[str]) -> list[Estimator]:
    """Names such as ``IP``, ``IP(normalised)``, ``DR(ubm)``, ``INTERPOL(window=2)``.

    All unknown names are reported at once.
    """
    parts = [_split(text) for text in texts]
    known = {n.lower(): n for n in ESTIMATORS} | {a.lower(): n for a, n in ALIASES.items()}
    if unknown := [name for name, _ in parts if name.lower() not in known]:
        raise unknown_names("estimator", unknown, [*ESTIMATORS, *ALIASES])
    found = [_made(known[name.lower()], arguments) for name, arguments in parts]
    if twice := [e for i, e in enumerate(found) if e in found[:i]]:
        raise LogevalError(f"estimator {twice[0]} is given twice")
    return found


def _split(text: str) -> tuple[str, list[str]]:
    name, bracket, rest = text.strip().partition("(")
    if bracket and not rest.endswith(")"):
        raise LogevalError(f"estimator {text!r}: the bracket is not closed")
    outside = re.split(r",(?![^()]*\))", rest[:-1])  # DR(normalised,dcm(classes=3))
    return name.strip(), [part.strip() for part in outside if part.strip()]


def _made(name: str, arguments: list[str]) -> Estimator:
    kind = ESTIMATORS[name]
    models = {model.lower() for model in kinds()}
    values: dict[str, Any] = {}
    for argument in arguments:
        key, equals, value = (part.strip() for part in argument.partition("="))
        if key.lower() in ("normalised", "normalized") and not equals and name != "DM":
            values["normalised"] = True
        elif _is_model(argument, models) and "click_model" in kind.PARAMETERS:
            values["click_model"] = model_names([argument])[0].lower()
        elif argument.lower() == AUTO and "click_model" in kind.PARAMETERS:
            values["click_model"] = AUTO
        elif kind.PARAMETERS.get(key) is int and re.fullmatch("[0-9]{1,9}", value):
            values[key] = int(value)
        else:
            raise LogevalError(f"estimator {name}: {argument!r} is not known; {_offered(kind)}")
    return kind(**values)


def _is_model(argument: str, models: set[str]) -> bool:
    """Whether it is a click model, as ``dcm`` or ``dcm(classes=3)``."""
    name, bracket, _ = argument.partition("(")
    return name.strip().lower() in models and (bool(bracket) or "=" not in argument)


def _offered(kind: type[Estimator]) -> str:
    offers = [] if kind.NAME == "DM" else ["normalised"]
    offers += [f"{key}=NUMBER" for key, of in kind.PARAMETERS.items() if of is int]
    if "click_model" in kind.PARAMETERS:
        offers.append("a click model: " + ", ".join([AUTO, *(model.lower() for model in kinds())]))
    return "it takes " + ", ".join(offers)
