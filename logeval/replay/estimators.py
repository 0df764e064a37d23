"""The estimators: what a ranker would have earned, from the clicks that another one received.

    V = (1/n) sum over SERPs and positions k of c_k min(rho, M)

rho is the weight of the *cell* that a SERP falls into at position k: an item at a position, a
prefix, a whole list. h is the probability of a cell under the target, p that under the logger (Li
et al., "Offline evaluation of ranking policies with click models", KDD 2018). Self-normalised, each
position has a ratio of its own, V = sum_k H_k (sum c_k rho) / (sum rho), with H_k the probability
that the target has a position k. Those with a click model are the direct method, and corrections of
it by weighted residuals.

Each class has its formula. One of your own is a class like these: derived from ``Estimator``, with
``LEVEL`` and ``weights``, and named ``module:Class``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from logeval.clicks.models.registry import AUTO, kinds, model_names
from logeval.errors import LogevalError, unknown_names
from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.own_code import extend, imported

OF_CELLS = ("GCTR", "RCTR", "DCTR", "PBM")  # click models of item and position alone
DEFAULT = "pbm"  # clicks that depend on item and position, as the weights of DR assume
LEVELS = ("item-position", "prefix", "list", "position", None)


@dataclass(frozen=True)
class View:
    """What weights are made of: cells (c,), in B resampled logs at once, for one or B targets.

    At the item-position level the cells of an item follow each other, one for each of K positions;
    there are more where logged propensities differ between searches.
    """

    h: Floats  # (c, 1 or B) probability under the target
    p: Floats  # (c, 1 or B) propensity
    K: int  # positions
    e: Floats | None = None  # (c,) examination of the cell's position, with ``EXAMINATION``
    # expected clicks in the cell under the click model, with ``EXPECTED``
    wanted: Floats | None = None  # (c, 1 or B) of the target
    had: Floats | None = None  # (c, 1 or B) of the logger
    item: Ints | None = None  # (c,) number of the item, where it has not K cells

    def of_items(self, x: Floats) -> Floats:
        """Cell values (c, B): the sum over all cells of the same item, (c, B)."""
        item = np.arange(len(x)) // self.K if self.item is None else self.item
        if not len(x):
            return x
        total: Floats = np.add.reduceat(x, np.flatnonzero(np.diff(item, prepend=-1)), axis=0)
        return total[item]


@dataclass(frozen=True)
class Estimator:
    """An estimator with its parameters; ``str`` gives the name that it parses from."""

    normalised: bool = False

    NAME: ClassVar[str] = ""
    RHO: ClassVar[str] = "h / p"  # for tables
    ASSUMES: ClassVar[str] = ""  # of users, in words
    PAPER: ClassVar[str] = ""
    LEVEL: ClassVar[str | None] = "item-position"  # of its cells; None: it does not weight the log
    STRENGTH: ClassVar[int] = 3  # of what it assumes: 0 for nothing, up to 4 for RCTR
    EXAMINATION: ClassVar[bool] = False  # whether it needs e of a fitted PBM
    EXPECTED: ClassVar[bool] = False  # whether it needs the expected clicks of cells
    ACROSS: ClassVar[bool] = False  # whether it sums over the positions of an item
    DIRECT: ClassVar[bool] = False  # whether it weights residuals, and adds the model's value
    PARAMETERS: ClassVar[dict[str, type]] = {}

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
        return ratio(view.h, view.p)

    def supported(self, view: View) -> Bools:
        """Whether the estimator can see what the target shows in each cell, (c, B)."""
        return view.p > 0

    @property
    def model(self) -> str | None:
        """The click model that it is made with, if any; fitted again in resampled logs."""
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

    def __str__(self) -> str:
        arguments = []
        for key in self.PARAMETERS:
            value = getattr(self, key)
            if key != "click_model":
                arguments.append(f"{key}={value}")
            elif value != DEFAULT:
                arguments.append(value)
        arguments += ["normalised"] if self.normalised else []
        kind = type(self)
        own = f"{kind.__module__}:{kind.__qualname__}"
        name = next((name for name, one in estimators().items() if one is kind), own)
        return f"{name}({','.join(arguments)})" if arguments else name


def ratio(h: Floats, p: Floats) -> Floats:
    """h / p, 0 where p is 0."""
    return np.divide(h, p, out=np.zeros(np.broadcast_shapes(h.shape, p.shape)), where=p > 0)


# -- weights of the log ----------------------------------------------------------------------------


@dataclass(frozen=True)
class List(Estimator):
    """Standard inverse propensity scoring: rho = h(A) / p(A), the weight of the whole list.

    Unbiased always, where the logger shows every list of the target.
    """

    NAME = "List"
    RHO = "h(A) / p(A)"
    ASSUMES = "nothing about users"
    PAPER = "Li et al. 2018; SIPS"
    STRENGTH = 0
    LEVEL = "list"


@dataclass(frozen=True)
class Prefix(Estimator):
    """Inverse propensity scoring of prefixes: rho = h(a_1..a_k) / p(a_1..a_k).

    Unbiased if a click depends on the items down to it, as with users who read from the top.
    """

    NAME = "Prefix"
    RHO = "h(a_1..a_k) / p(a_1..a_k)"
    ASSUMES = "users read from the top, so a click depends on the items down to it"
    PAPER = "McInerney et al. 2020; RIPS"
    STRENGTH = 1
    LEVEL = "prefix"


@dataclass(frozen=True)
class IP(Estimator):
    """Inverse propensity scoring of items at positions: rho = h(a_k, k) / p(a_k, k).

    With the frequencies of the log and no clip it is sum_{a,k} h(a, k) CTR(a, k).
    """

    NAME = "IP"
    RHO = "h(a_k, k) / p(a_k, k)"
    ASSUMES = "a click depends on the item and its position alone"
    PAPER = "Li et al. 2018; IIPS"
    STRENGTH = 1


@dataclass(frozen=True)
class PBM(Estimator):
    """Inverse propensity scoring of examinations: rho = sum_j e_j h(a_k, j) / sum_j e_j p(a_k, j).

    The weight is that of the item's expected examination under the target and under the logger, so
    clicks on an item count wherever it was shown. e is that of a PBM fitted to the log.
    """

    NAME = "PBM"
    RHO = "sum_j e_j h(a_k, j) / sum_j e_j p(a_k, j)"
    ASSUMES = "users follow a position-based model (PBM)"
    PAPER = "Li et al. 2018"
    STRENGTH = 2
    EXAMINATION = True
    ACROSS = True

    def weights(self, view: View) -> Floats:
        """Examined under the target, over examined under the logger, at all positions alike."""
        e = _given(view.e)[:, None]
        return ratio(view.of_items(e * view.h), view.of_items(e * view.p))

    def supported(self, view: View) -> Bools:
        """Items that were examined anywhere."""
        return view.of_items(_given(view.e)[:, None] * view.p) > 0


@dataclass(frozen=True)
class Interpol(Estimator):
    """Between IP (window 0) and PBM (window K - 1): clicks count from positions near the target's.

        rho(a, k) = sum_{j: |j-k| <= window} h(a, j) e_j / sum_{l: |l-j| <= window} e_l p(a, l)

    The window is around the target's position j, so that under a PBM every h(a, j) gets exactly
    e_j w(a) whatever the window; a window around k in both sums would not.
    """

    window: int = 1

    NAME = "INTERPOL"
    RHO = "sum_{j near k} h(a_k, j) e_j / sum_{l near j} e_l p(a_k, l); near: at most window apart"
    ASSUMES = "users follow a position-based model among near positions"
    PAPER = "Buchholz et al. 2022"
    STRENGTH = 2
    EXAMINATION = True
    ACROSS = True
    PARAMETERS: ClassVar[dict[str, type]] = {"window": int}

    def __post_init__(self) -> None:
        if self.window < 0:
            raise LogevalError(f"INTERPOL: window={self.window} must be 0 or more")

    def weights(self, view: View) -> Floats:
        """Sums over the target's positions near k."""
        wanted = (_given(view.e)[:, None] * view.h).reshape(-1, view.K, view.h.shape[1])
        lent = ratio(wanted, self._examined(view))
        return np.einsum("kj,ijb->ikb", self._near(view.K), lent).reshape(len(view.h), -1)

    def supported(self, view: View) -> Bools:
        """Items that were examined near the target's position."""
        return (self._examined(view) > 0).reshape(view.p.shape)

    def _examined(self, view: View) -> Floats:
        p = (_given(view.e)[:, None] * view.p).reshape(-1, view.K, view.p.shape[1])
        return np.einsum("jl,ilb->ijb", self._near(view.K), p)

    def _near(self, K: int) -> Floats:
        k = np.arange(K)
        return (np.abs(k[:, None] - k) <= self.window).astype(np.float64)


@dataclass(frozen=True)
class Item(Estimator):
    """Inverse propensity scoring of items, at any position: rho = h(a_k) / p(a_k)."""

    NAME = "Item"
    RHO = "h(a_k) / p(a_k)"
    ASSUMES = "the position of an item does not matter"
    PAPER = "Li et al. 2018, document-based"
    ACROSS = True

    def weights(self, view: View) -> Floats:
        """Shown by the target, over shown by the logger, at all positions alike."""
        return ratio(view.of_items(view.h), view.of_items(view.p))

    def supported(self, view: View) -> Bools:
        """Items that were shown anywhere."""
        return view.of_items(view.p) > 0


@dataclass(frozen=True)
class RCTR(Estimator):
    """rho = 1: the logger's own value, whatever the target. What any estimate must beat."""

    NAME = "RCTR"
    RHO = "1"
    ASSUMES = "the ranking does not matter"
    PAPER = "Li et al. 2018"
    STRENGTH = 4
    LEVEL = "position"

    def weights(self, view: View) -> Floats:
        """1."""
        return np.ones(view.p.shape)

    def supported(self, view: View) -> Bools:
        """Everything."""
        return np.ones(view.p.shape, dtype=np.bool_)


# -- with a click model ----------------------------------------------------------------------------


@dataclass(frozen=True)
class DM(Estimator):
    """The direct method: sum over lists of h(A) sum_k P(c_k = 1 | A) of a click model."""

    click_model: str = DEFAULT

    NAME = "DM"
    RHO = "no weights: sum_A h(A) sum_k P(c_k = 1 given A) of a click model"
    LEVEL: ClassVar[str | None] = None
    DIRECT = True
    PARAMETERS: ClassVar[dict[str, type]] = {"click_model": str}

    @property
    def assumes(self) -> str:
        """The click model."""
        return f"users follow a {self.click_model.upper()}"

    @property
    def model(self) -> str | None:
        """The click model."""
        return self.click_model


@dataclass(frozen=True)
class DR(DM):
    """Doubly robust: V = DM + (1/n) sum over SERPs and k of min(rho, M) (c_k - P(c_k = 1 | A)).

    rho is IP's. Where the log does not show what the target would, rho is 0 and the model's value
    stands. Residuals at item and position correct a model of these (PBM, the CTRs); those of, say,
    a DCM do not add up to its error, and DR is right only if the DCM is.
    """

    NAME = "DR"
    RHO = "IP's, of the residuals c_k - P(c_k = 1 given A); plus DM"
    PAPER = "Dudik et al. 2011"
    LEVEL = "item-position"

    @property
    def strength(self) -> int:
        """As of PBM, if the click model is one of item and position."""
        return 2 if self.click_model.upper() in OF_CELLS else self.STRENGTH

    def supported(self, view: View) -> Bools:
        """Items that were shown anywhere: where they were not the model's value stands."""
        return view.of_items(view.p) > 0


@dataclass(frozen=True)
class CascadeDR(DM):
    """DR with the weights of Prefix, whose residuals correct every click model here.

    Unbiased if the click model is right, or Prefix's assumption holds.
    """

    NAME = "Cascade-DR"
    RHO = "Prefix's, of the residuals; plus DM"
    PAPER = "Kiyohara et al. 2022"
    LEVEL = "prefix"
    STRENGTH = 1

    @property
    def assumes(self) -> str:
        """The click model, or what its weights correct it for."""
        return f"{super().assumes}, or read from the top"


@dataclass(frozen=True)
class CIPS(DM):
    """Click-based inverse propensity scoring: rho(a) = P(a is clicked | h) / P(a is clicked | p).

    Both are those of a click model, over all lists and positions that may show the item, so it
    needs no logger that randomises; with a PBM it is PBM's estimator. What is weighted are the
    logged clicks, so the model must only know by which factor an item's clicks change.
    """

    NAME = "CIPS"
    RHO = "P(a_k is clicked given h) / P(a_k is clicked given p), of a click model"
    PAPER = "Tanaka et al. 2026"
    LEVEL = "item-position"
    DIRECT = False
    EXPECTED = True
    ACROSS = True

    @property
    def assumes(self) -> str:
        """The click model, up to a factor for each item."""
        return f"users follow a {self.click_model.upper()}, up to a factor for each item"

    @property
    def strength(self) -> int:
        """As of PBM, if the click model is one of item and position."""
        return 2 if self.click_model.upper() in OF_CELLS else self.STRENGTH

    def weights(self, view: View) -> Floats:
        """Expected clicks of the target on the item, over those of the logger."""
        return ratio(view.of_items(_given(view.wanted)), view.of_items(_given(view.had)))

    def supported(self, view: View) -> Bools:
        """Items that were shown where somebody might click."""
        return view.of_items(_given(view.had)) > 0


def _given(x: Floats | None) -> Floats:
    assert x is not None
    return x


# -- by name ---------------------------------------------------------------------------------------

BUILT_IN: tuple[type[Estimator], ...] = (
    List, Prefix, IP, PBM, Interpol, Item, RCTR, DM, DR, CascadeDR, CIPS,
)  # fmt: skip
ALIASES = {"SIPS": "List", "RIPS": "Prefix", "IIPS": "IP"}  # of the literature on slates


@cache
def estimators() -> dict[str, type[Estimator]]:
    """The estimators by name: built in, and of installed packages (``logeval.estimators``)."""
    found = {kind.NAME: kind for kind in BUILT_IN}
    extend("logeval.estimators", lambda name, cls: found.setdefault(name, _checked(name, cls)))
    return found


def parse_estimators(texts: Iterable[str]) -> list[Estimator]:
    """Names such as ``IP(normalised)``, ``DR(ubm)``, ``INTERPOL(window=2)``, ``module:Class``.

    All unknown names are reported at once.
    """
    parts = [_split(text) for text in texts]
    known = {n.lower(): n for n in estimators()} | {a.lower(): n for a, n in ALIASES.items()}
    if unknown := [n for n, _ in parts if ":" not in n and n.lower() not in known]:
        raise unknown_names("estimator", unknown, [*estimators(), *ALIASES])
    found = [
        _made(_checked(name, imported("estimator", name)), name, arguments)
        if ":" in name
        else _made(estimators()[known[name.lower()]], known[name.lower()], arguments)
        for name, arguments in parts
    ]
    if twice := [e for i, e in enumerate(found) if e in found[:i]]:
        raise LogevalError(f"estimator {twice[0]} is given twice")
    return found


def _checked(name: str, cls: Any) -> type[Estimator]:
    """The class of somebody else, if it is an estimator."""
    if not (isinstance(cls, type) and issubclass(cls, Estimator)):
        raise LogevalError(f"estimator {name}: is no estimator; derive it from one, as IP")
    if cls.LEVEL not in LEVELS or (cls.LEVEL is None and not cls.DIRECT):
        levels = ", ".join(level for level in LEVELS if level)
        raise LogevalError(f"estimator {name}: its LEVEL must be one of {levels}")
    return cls


def _split(text: str) -> tuple[str, list[str]]:
    name, bracket, rest = text.strip().partition("(")
    if bracket and not rest.endswith(")"):
        raise LogevalError(f"estimator {text!r}: the bracket is not closed")
    outside = re.split(r",(?![^()]*\))", rest[:-1])  # DR(normalised,dcm(classes=3))
    return name.strip(), [part.strip() for part in outside if part.strip()]


def _made(kind: type[Estimator], name: str, arguments: list[str]) -> Estimator:
    values: dict[str, Any] = {}
    with_model = "click_model" in kind.PARAMETERS
    for argument in arguments:
        key, equals, value = (part.strip() for part in argument.partition("="))
        of = kind.PARAMETERS.get(key)
        if key.lower() in ("normalised", "normalized") and not equals and kind.LEVEL is not None:
            values["normalised"] = True
        elif with_model and argument.lower() == AUTO:
            values["click_model"] = AUTO
        elif with_model and _is_model(argument):
            values["click_model"] = model_names([argument])[0].lower()
        elif of is int and re.fullmatch("[0-9]{1,9}", value):
            values[key] = int(value)
        elif of is float and re.fullmatch(r"[0-9]*\.?[0-9]+(e-?[0-9]+)?", value):
            values[key] = float(value)
        else:
            raise LogevalError(f"estimator {name}: {argument!r} is not known; {_offered(kind)}")
    return kind(**values)


def _is_model(argument: str) -> bool:
    """Whether it is a click model, as ``dcm`` or ``dcm(classes=3)``."""
    name, bracket, _ = argument.partition("(")
    known = {model.lower() for model in kinds()}
    return name.strip().lower() in known and (bool(bracket) or "=" not in argument)


def _offered(kind: type[Estimator]) -> str:
    offers = [] if kind.LEVEL is None else ["normalised"]
    offers += [f"{key}=NUMBER" for key, of in kind.PARAMETERS.items() if of in (int, float)]
    if "click_model" in kind.PARAMETERS:
        offers.append("a click model: " + ", ".join([AUTO, *(model.lower() for model in kinds())]))
    return "it takes " + ", ".join(offers)
