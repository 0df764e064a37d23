"""The sentence of every fact: one template for each code, and nothing else makes sentences of them.

A template names the fields of its fact, ``{about}``, ``{value}``, ``{low}``, ``{high}``,
``{threshold}``, and what ``more`` holds. ``REMEDIES`` say what to do about it, where there is
something.
"""

from __future__ import annotations

from logeval.facts import Fact

WORDS = {
    # why decide says TEST, KEEP or WAIT
    "gain": "{about} gains {value:+.1%}, and is worse than today with probability {threshold:.0%}",
    "no-gain": "no policy earns more than today's ranker over this traffic",
    "little-to-gain": "even the best lists would gain only {value:.1%}",
    "unclear": "the log does not say whether {about} gains or loses: {low:+.1%} to {high:+.1%}",
    "clicked-only": "the log has no search without a click, though {value:.0%} should be: what was "
    "not clicked was left out",
    "no-simulator": "no click model is good enough to decide anything",
    # what it rests on
    "today": "{about}: today's ranker gets {value:.3g} clicks per search, and {threshold:.3g} in "
    "the log",
    "simulator-used": "users are simulated by {about}, which passes {value:.0f} of "
    "{threshold:.0f} checks",
    "simulator-fails": "users are simulated by {about}, which passes {value:.0f} of "
    "{threshold:.0f} checks, not {failed}",
    "simulator-value": "predicted differences between lists count {value:.0%} ({low:.0%} to "
    "{high:.0%}), as they came true in the log",
    "value-unknown": "the log's lists vary too little to say what predictions are worth, so they "
    "count {value:.0%}",
    "thin-queries": "{value:.0f} of {threshold:.0f} queries have fewer than {least:.0f} searches",
    "traffic-covered": "the queries decided on make {value:.0%} of the log's searches",
    "order": "results are placed in the order of positions {order}: from the top down would lose "
    "{value:.1%}",
    "left-out": "{about} is left out: {why}",
    "learns-nothing": "{about} is left out: it learns nothing within this traffic",
    # what estimates from the log leave out
    "short-queries": "{about}: {value:,.0f} of {threshold:,.0f} queries have fewer than {K} items "
    "in the log and are left out",
    "unknown-queries": "{about}: {value:,.0f} of its {threshold:,.0f} queries are not in the log "
    "and are left out, as {queries}",
    "unknown-searches": "{about}: {value:,.0f} of its {threshold:,.0f} queries ({share:.1%} of its "
    "searches) are not in the rest of the log and are left out",
    "not-uniform": "at {value:.0f} of {threshold:.0f} positions the logger did not choose items at "
    "random: what depends on when, and to whom, it showed them is in the replay, too",
    "one-part": "{value:,.0f} of {threshold:,.0f} queries ({serps:,} searches) are in one part "
    "only and are left out; with parts=10 they are not",
    "known-only": "with results that the log hardly shows: {value:+.1%}",
}
REMEDIES = {
    "unclear": "log for longer, or show other lists in a small share of the searches",
    "value-unknown": "show other lists in a small share of the searches, 1% is enough",
    "clicked-only": "log the searches without a click, too",
    "simulator-value": "show other lists in a small share of the searches, 1% is enough",
    "no-simulator": "fit other click models, and look at check-models",
    "today": "see what the log records that the model leaves out: check-models",
}
# why a simulator is used, or not; how much a fact matters
WHY = {
    "best": "used",
    "less-likely": "fits held-out clicks less well",
    "slope": "what it predicts of lists comes less true",
    "today": "does not earn what the log says",
    "reward": "does not know this reward",
}
LEVELS = {"fine": "", "caution": "have in mind", "stop": "stops the answer"}


def sentence(fact: Fact) -> str:
    """The fact in words."""
    fields = {name: getattr(fact, name) for name in ("about", "value", "low", "high", "threshold")}
    more = {k: ", ".join(x) if isinstance(x, list) else x for k, x in fact.more.items()}
    return WORDS[fact.code].format(**{**fields, **more})
