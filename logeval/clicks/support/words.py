"""What the clicks of a log decide about a model, in words, with what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from logeval.clicks.support.identified import Identified
from logeval.log.names import Names
from logeval.log.queries import Query

if TYPE_CHECKING:
    from logeval.clicks.fitted import FittedModel

NAMED = 8  # queries that a sentence names
OTHERS = {"position": "DCM", "transition": "DCM", "decay": "SDBN"}  # which need less


def record(
    queries: Sequence[Query],
    found: Identified,
    fitted: FittedModel,
    needs_less: Identified | None = None,
    pages: bool = True,
) -> dict[str, Any]:
    """What the report of a fit keeps: how many queries it carries, which not, and what rests.

    ``needs_less`` is what the clicks decide about the model that needs less (``OTHERS``). Without
    ``pages`` it was fitted to counts.
    """
    other = 0 if needs_less is None else int((needs_less.carried & ~found.carried).sum())
    marks = [m for part in fitted.classes for m in part.prior.values()]
    lost = [str(q) for q, ok in zip(queries, found.carried, strict=True) if not ok]
    return {
        "carried": int(found.carried.sum()),
        "queries": len(queries),
        "not_carried": lost[:1000],
        "apart": int(found.apart.sum()),
        "other": other,
        "prior_parameters": int(sum(m.sum() for m in marks)),
        "parameters": int(sum(m.size for m in marks)),
        "examined_by": fitted.kind.examined_by,
        **({} if pages else {"pages": False}),
    }


def sentence(model: str, known: dict[str, Any], names: Names | None = None) -> str:
    """The record of a fit as a sentence: how many queries can carry the model, and which cannot.

    By their ``names``, if there are any.
    """
    Q, carried, lost = known["queries"], known["carried"], known["not_carried"]
    share = known["prior_parameters"] / max(known["parameters"], 1)
    resting = f"{share:.0%} of its parameters rest on the prior more than on the clicks"
    if not lost:
        every = "the query" if Q == 1 else f"all {Q:,} queries"
        return f"{model}: {every} can carry it; {resting}"
    why = _why(known)
    other = OTHERS.get(known["examined_by"]) if known.get("other") else None
    other = other if known.get("pages", True) else "DCTR"
    use = f"use the {other}, which needs less, or " if other else ""
    titles = {} if names is None else names.titles(lost)
    lost = [titles.get(query, query) for query in lost]
    left = f"leave them out: evaluate --identified (they are {few(lost)})"
    if carried == 0:
        left = "get a log whose lists change more"
    return f"{model}: {carried:,} of {Q:,} queries can carry it; {why}. {resting}; {use}{left}"


def _why(known: dict[str, Any]) -> str:
    """Why the other queries cannot: lists that do not mix, or too few SERPs of lists that do."""
    lost, apart = known["queries"] - known["carried"], known.get("apart", 0)
    if known["examined_by"] not in ("position", "transition") or not apart:
        return WHY[known["examined_by"]]
    few = f", {lost - apart:,} have too few SERPs" if lost > apart else ""
    return (
        f"of the others {apart:,} show lists that hardly mix, so what attracts and what is "
        f"examined cannot be separated{few}"
    )


WHY = {
    "position": "the others have too few SERPs to tell what attracts from what is examined",
    "decay": "in the others too few items were clicked at several ranks to say how many users stop "
    "reading",
    "last-click": "the others have too few clicks, or items that nobody surely examined",
}
WHY |= {"transition": WHY["position"], "first-click": WHY["last-click"]}
WHY |= {"shown": "the others have too few clicks"}


def few(names: Sequence[str]) -> str:
    """The first of some queries, as --queries takes them."""
    more = f", ... ({len(names):,} in all)" if len(names) > NAMED else ""
    return ",".join(names[:NAMED]) + more
