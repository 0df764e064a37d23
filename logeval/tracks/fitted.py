"""The fitted click models of an evaluation: which queries, and how long their lists are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from logeval.clicks.collection import FittedModels
from logeval.clicks.lists import Ranker
from logeval.clicks.models.registry import check_reward
from logeval.clicks.support.graph import CARRIES
from logeval.errors import LogevalError, unknown_names
from logeval.facts import Fact
from logeval.log.queries import GivenQuery, Query, among
from logeval.running.arrays import Ints
from logeval.storage.tables import Manifest

if TYPE_CHECKING:
    from logeval.features.table import Features


class FittedQuery(NamedTuple):
    """The click model of a query, from which a track makes its problem."""

    simulator: str  # what the model is called
    query: str
    model: Any  # a ClickModel
    K: int  # positions to use, at most those of the model
    base: Ints | None = None  # (L,) items in the order of the list that the log shows most often
    draw: int = 0  # of the parameters; 0: the fitted values
    ranker: Ranker | None = None  # what the log showed
    serps: float = np.nan  # that the model was fitted to
    later: tuple[Any, ...] = ()  # the models of the periods after the first


@dataclass(frozen=True)
class Fitted:
    """The click models of an evaluation, and what was asked about them."""

    queries: Sequence[FittedQuery] = ()
    folder: str | None = None
    manifest: Manifest = field(default_factory=dict)
    reward: str | None = None  # what to count; None: the model's own
    features: Features | Path | str | None = None  # of the items
    block: int | None = None  # rounds before the next query's turn
    same_log: bool = False  # whether features may share sessions with the models
    # by simulator: queries that its clicks cannot carry, and how many it has
    unsure: dict[str, dict[str, Any]] = field(default_factory=dict)


def drawn_queries(fitted: Sequence[FittedQuery], models: Any, draws: int) -> list[FittedQuery]:
    """Draws 1 to ``draws`` of the parameters of every model, in its place."""
    if not isinstance(models, FittedModels):
        raise LogevalError("draws need models with intervals, as `logeval fit-models` gives them")
    by_draw: dict[str, list[Any]] = {}
    for name in dict.fromkeys(f.simulator for f in fitted):
        whole = models.named(name)
        if not whole.n_draws:
            raise LogevalError(
                f"{name} has no draws; fit it to a log with fit-models, or evaluate without"
            )
        if whole.n_draws < draws:
            raise LogevalError(
                f"draws={draws}: {name} was fitted with {whole.n_draws}; ask for fewer, or fit it "
                f"with draws={draws}"
            )
        by_draw[name] = whole.some_draws(draws)
    return [
        f._replace(model=one.of(Query.of(f.query)), draw=d + 1)
        for f in fitted
        for d, one in enumerate(by_draw[f.simulator])
    ]


def by_period(fitted: Sequence[FittedQuery], models: Any) -> list[FittedQuery]:
    """The models of the periods of the log in the place of the constant ones."""
    periods = getattr(models, "periods", ())
    if not periods:
        raise LogevalError(
            "drift: these models are the same for all days; fit them with `logeval fit-models "
            "--periods week` (or day, or a number), or evaluate without"
        )

    def of(f: FittedQuery) -> FittedQuery:
        query, each = Query.of(f.query), [one.fitted[f.simulator] for one in periods]
        first, *later = (m.of(query) for m in each)
        return f._replace(model=first, later=tuple(later))

    return [of(f) for f in fitted]


def fitted_queries(
    models: Iterable[tuple[str, object, Any]],
    positions: int | None = None,
    reward: str | None = None,
    queries: Sequence[GivenQuery] | None = None,
) -> list[FittedQuery]:
    """The queries of click models, given as (name, query, model), checked.

    ``positions`` shortens the lists (default: to those of the model with the fewest), ``reward``
    must be one that every model has, ``queries`` selects.
    """
    try:
        given = [(str(name), str(query), model) for name, query, model in models]
    except (TypeError, ValueError):
        raise LogevalError(
            f"a {type(models).__name__} cannot be simulated; give fitted models, as fit_models "
            "returns them, or their folder"
        ) from None
    if queries is not None:
        known = list(dict.fromkeys(query for _, query, _ in given))
        found = {str(q): among(q, known) for q in queries}
        if not found:
            raise LogevalError("queries is empty; leave it out for all of them")
        if unknown := [q for q, meant in found.items() if not meant]:
            raise unknown_names("query", unknown, known)
        wanted = {query for meant in found.values() for query in meant}
        given = [one for one in given if one[1] in wanted]
    if not given:
        raise LogevalError("there are no models to simulate; fit some with fit-models")
    keys = [(name, query) for name, query, _ in given]
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise LogevalError(
            f"there are two models {twice[0][0]} of query {twice[0][1]}; evaluate them apart"
        )
    K = min(model.K for _, _, model in given) if positions is None else positions
    check_reward({name: model.rewards for name, _, model in given}, reward)
    for name, query, model in given:
        if not 1 <= K <= model.K:
            title = models.names.query(query) if isinstance(models, FittedModels) else query
            raise LogevalError(
                f"positions={K}: the {name} of query {title} has {model.K}; ask for at most "
                f"{min(model.K for _, _, model in given)}"
            )
    if not isinstance(models, FittedModels):
        return [FittedQuery(name, query, model, K) for name, query, model in given]
    return [_of_log(models, *one, K) for one in given]


def _of_log(models: FittedModels, name: str, query: str, model: Any, K: int) -> FittedQuery:
    """A query with what the log showed, of models that were fitted to one."""
    q, fitted = Query.of(query), models.fitted[name]
    ranker = None if models.lists is None else models.lists.ranker(q, model.items, K)
    serps = float(fitted.serps[fitted.index[q]])
    return FittedQuery(name, query, model, K, models.base_order(name, q), 0, ranker, serps)


def identified_queries(
    fitted: Sequence[FittedQuery], models: Any
) -> tuple[list[FittedQuery], list[Fact]]:
    """The queries that the clicks can carry under every one of the models, and who was left out."""
    unsure = unsure_queries(fitted, models)
    if not unsure:
        raise LogevalError(
            "identified: these models do not say which queries their clicks can carry; fit them "
            "again, or leave it out"
        )
    lost = {query for each in unsure.values() for query in each["not_carried"]}
    kept = [f for f in fitted if f.query not in lost]
    if not kept:
        raise LogevalError(
            "identified: no query can carry all of these models; use models that need less, as "
            "the DCM, or leave it out"
        )
    if not lost:
        return kept, []
    many = float(len({f.query for f in fitted}))
    return kept, [Fact("queries-left-out", value=float(len(lost)), threshold=many)]


def unsure_queries(fitted: Sequence[FittedQuery], models: Any) -> dict[str, dict[str, Any]]:
    """By simulator, where it is known: the queries that its clicks cannot carry."""
    found: dict[str, dict[str, Any]] = {}
    for f in fitted:
        share = getattr(getattr(models, "fitted", {}).get(f.simulator), "identified", None)
        if share is None:
            continue
        known = found.setdefault(f.simulator, {"queries": [], "not_carried": []})
        if f.query in known["queries"]:
            continue
        known["queries"].append(f.query)
        if share[models.fitted[f.simulator].index[Query.of(f.query)]] < CARRIES:
            known["not_carried"].append(f.query)
    return {
        name: {"queries": len(known["queries"]), "not_carried": known["not_carried"]}
        for name, known in found.items()
    }


def with_lists(fitted: Sequence[FittedQuery]) -> list[FittedQuery]:
    """The queries; an error if one has fewer items than positions: it has pairs, but no lists."""
    if short := [f.query for f in fitted if len(f.model.items) < f.K]:
        raise LogevalError(
            f"{len(short)} queries have fewer than {fitted[0].K} items ({', '.join(short[:5])}); "
            "lower positions or select others with queries"
        )
    return list(fitted)


def shortened(fitted: Sequence[FittedQuery]) -> list[Fact]:
    """Where models with lists of different lengths meet."""
    longer = [f for f in fitted if f.model.K > f.K]
    if not longer or len(longer) == len(fitted):
        return []
    longest = {"longest": max(f.model.K for f in longer), "positions": fitted[0].K}
    return [Fact("lists-shortened", value=len(longer), threshold=len(fitted), more=longest)]
