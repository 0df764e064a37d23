"""The sentence of every fact: one template for each code, and nothing else makes sentences of them.

A template names the fields of its fact, ``{about}``, ``{value}``, ``{low}``, ``{high}``,
``{threshold}``, and what ``more`` holds. ``REMEDIES`` say what to do about it, where there is
something.
"""

from __future__ import annotations

from typing import Any

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
    # what evaluate knows of its simulators
    "order-loses": "{about}: items stand in an order of the positions that is not the best one: "
    "even the right items lose {losses}",
    "order-better": "order={about} would lose {losses}",
    "lists-shortened": "all lists have {positions} positions, as the shortest do: {value:.0f} of "
    "{threshold:.0f} models have more, up to {longest}",
    "periods-alike": "the log shows no change of users: its {value:.0f} periods have the same "
    "models, and this is what evaluate says without --drift",
    "periods": "users change: the searches walk through {value:.0f} periods of equal length, and "
    "regret is against the best list of each moment",
    "ranker-of-all-periods": "today's ranker mixes the lists of the whole log in each period",
    "users-change": "{about}: users change on {value:.0f} of {threshold:.0f} queries, by about "
    "half as much as true ones in simulations: these may favour policies that forget more",
    "log-changes": "{about}: the users of the log change over its {value:.0f} periods ({which}), "
    "and those simulated here do not",
    "best-unproven": "{about}: the best list was searched for, and is not proven to be best for "
    "{value:.0f} of {problems} problems; regret is against the best one that is known",
    "best-unproven-by": "{about}: the best list was searched for, and is not proven to be best "
    "for {value:.0f} of {problems} problems; regret is against the best one that is known, and "
    "too small by at most {high:.2g} per search",
    "queries-left-out": "{value:.0f} of {threshold:.0f} queries were left out: they rest on the "
    "prior",
    "of-the-models": "{note}",
    "features-leak": "the features and the simulator share sessions: regret is too low by what "
    "leaks",
    "forged-share-worst": "in {value:.3g} of the steps clicks are forged: the worst items are "
    "clicked wherever they are shown, and nothing else; regret is of true clicks",
    "forged-first-worst": "in the first {value:,.0f} steps clicks are forged: the worst items are "
    "clicked wherever they are shown, and nothing else; regret is of true clicks",
    "forged-share-best": "in {value:.3g} of the steps clicks are forged: the best items are not "
    "clicked; regret is of true clicks",
    "forged-first-best": "in the first {value:,.0f} steps clicks are forged: the best items are "
    "not clicked; regret is of true clicks",
    "clicks-late": "clicks arrive {value:,.0f} steps late",
    "clicks-lost": "the clicks of {value:.3g} of the steps never arrive",
    "known-only": "with results that the log hardly shows: {value:+.1%}",
}
REMEDIES = {
    "unclear": "log for longer, or show other lists in a small share of the searches",
    "value-unknown": "show other lists in a small share of the searches, 1% is enough",
    "clicked-only": "log the searches without a click, too",
    "simulator-value": "show other lists in a small share of the searches, 1% is enough",
    "no-simulator": "fit other click models, and look at check-models",
    "today": "see what the log records that the model leaves out: check-models",
    "log-changes": "compare policies that forget with evaluate --drift before choosing one",
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
    more = {name: _more(x) for name, x in fact.more.items()}
    return WORDS[fact.code].format(**{**fields, **more})


def _more(x: Any) -> Any:
    """Names as a sentence has them; shares by name as ``2.1% on DCM, 0.5% on PBM``."""
    pairs = [f"{share:.1%} on {name}" for name, share in x.items()] if isinstance(x, dict) else x
    return ", ".join(pairs) if isinstance(pairs, list) else x
