"""The sentence of every fact: one template for each code, and nothing else makes sentences of them.

A template names the fields of its fact, ``{about}``, ``{value}``, ``{low}``, ``{high}``,
``{threshold}``, and what ``more`` holds. ``REMEDIES`` say what to do about it, where there is
something.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from logeval.facts import Answer, Fact

WIDTH = 80
WORDS = {
    # decide: why it says TEST, KEEP or WAIT
    "gain": "{about} gains {value:+.1%}, and is worse than today with probability {threshold:.0%}",
    "no-gain": "no policy gains as much as {threshold:.0%} over this traffic",
    "little-to-gain": "even the best lists would gain only {value:.1%}",
    "unclear": "the log does not say whether {about} gains or loses: {low:+.1%} to {high:+.1%}",
    "unclear-value": "what predictions are worth decides whether {about} gains or loses: "
    "{low:+.1%} to {high:+.1%}",
    "clicked-only": "the log has no search without a click, though {value:.0%} should be: what was "
    "not clicked was left out",
    "no-simulator": "no click model is good enough to decide anything",
    # decide: what it rests on
    "today": "{about}: today's ranker gets {value:.3g} clicks per search, and {threshold:.3g} in "
    "the log",
    "simulator-used": "{about} plays the users, and passes {value:.0f} of {threshold:.0f} checks",
    "simulator-fails": "{about} plays the users, and passes {value:.0f} of {threshold:.0f} checks, "
    "not {failed}",
    "not-used": "{about} fails {value:.0f} (not used)",
    "simulator-value": "predicted differences between lists count {value:.0%} ({low:.0%} to "
    "{high:.0%}), as they came true in the log",
    "value-unknown": "the log's lists vary too little to say what predictions are worth, so they "
    "count {value:.0%}",
    "traffic-covered": "this is about {threshold:.0f} queries, {value:.0%} of the log's searches",
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
    # evaluate
    "no-clicks": "the log that the simulators were fitted to has no click, so they say nothing",
    "only-the-oracle": "only the Oracle was run: there is nothing to compare",
    "nothing-in-common": "{simulators} have no policy in common, so that they cannot be compared",
    "loses-least": "{about} loses least on {simulators}: {value:.0%} at most of what the best list "
    "earns in {searches:,} searches of a query",
    "alone": "only {about} was run on {simulators}: it loses {value:.0%} at most of what the best "
    "list earns in {searches:,} searches of a query",
    "depends": "which policy loses least depends on the simulator: {best}",
    "may-be-best": "on all of them it may be {policies}",
    "tied": "it cannot be told apart from {others}",
    "clear": "every other policy loses more, by more than chance",
    "not-tested": "whether that is chance cannot be tested here",
    "checks-pass": "{names} passes all {value:.0f} checks",
    "checks-fail": "checks against the log fail: {names}",
    "unchecked": "{names} was not checked against the log",
    "checks-lenient": "{names} was checked on the SERPs that it was fitted to",
    "taken-as-exact": "parameters of {names} are taken as exact, so that intervals are too narrow",
    "rests-on-prior": "{about} rests on its prior in {value:.0f} of {threshold:.0f} queries",
    "thin-queries": "{value:.0f} of {threshold:.0f} queries have fewer than {least:.0f} searches",
    "all-prior": "{about} was fitted to {value:.0f} SERPs of a query at most, so it is all prior",
    "one-run": "one run of one query cannot be tested",
    "one-query": "one query says nothing about others",
    "few-queries": "{value:.0f} queries are few: only large differences show",
    "spread": "queries differ by more than was measured (log-sd above {threshold:.3g}): intervals "
    "of {policies} may hold in less than 90%",
    "runs-missing": "{value:.0f} runs of some policy are missing",
    "not-flat": "curves still rise at {value:,.0f} searches: {policies}",
    "nothing-eliminated": "{about} eliminated nothing in {value:.0%} of its runs",
    "free-looks": "{policies} saw every item once for free",
    "other-in-clicks": "in clicks {about} earns most ({simulator}), and satisfaction is in no log",
    # describe
    "clicks-alone": "every result was clicked: without those that were shown and not clicked "
    "nothing can be learned",
    "nothing-shown": "there are no SERPs with clicks to learn from",
    "holds": "{serps:,} result pages of {queries:,} queries, with {value:.2f} clicks each",
    "holds-counts": "{impressions:,} impressions with {clicks:,} clicks, of {queries:,} queries",
    "order-lost": "clicks stand as often below as above in their lists, so the order of these "
    "means nothing: it was lost or shuffled when the log was written; examination, and everything "
    "by rank, cannot be learned from it",
    "sparse-log": "the log is sparse: {queries:,} queries in {serps:,} pages; what is learned of "
    "one query rests on hardly any clicks",
    "not-in-the-log": "the log does not say: {names}",
    "carries": "of the {threshold:.0f} most frequent queries these can carry a model: {models}",
    "one-list": "{value:.0f} queries show one list in nearly all of their searches",
    "lists-apart": "of {value:.0f} queries the lists hardly mix, which a PBM needs: {queries}",
    "too-few-searches": "{value:.0f} queries have too few searches for a PBM: {queries}",
    "width": "of the best list's clicks per search, {value:.2f} in query {about}, expect a 95% "
    "interval {low:.2f} wide; {threshold:,.0f} of its searches would halve it",
    # fit-models and check-models
    "predicts-best": "{about} predicts held-out results best (log-likelihood {value:.4f} each)",
    "fitted": "{models} fitted to {value:.0f} queries",
    "model-passes": "{about} passes all {threshold:.0f} checks on {serps:,} searches",
    "model-fails": "{about} passes {value:.0f} of {threshold:.0f} checks on {serps:,} searches, "
    "not {failed}",
    "model-unjudged": "{about}: too few clicks to check {checks}",
    "model-carried": "{about}: {value:.0f} of {threshold:.0f} queries can carry it; {share:.0%} "
    "of its parameters rest on the prior",
    "queries-fail": "{about} fails by itself in {value:.0f} of {threshold:.0f} queries",
    "sees-large-faults": "{threshold:,.0f} searches show large faults only: a CTR that is off by "
    "{value:.3f} or more",
    "swaps-agree": "examination of {about} is as swaps say at {value:.0f} of {threshold:.0f} ranks",
    "swaps-unknown": "too few items were clicked at several ranks to check examination by swaps",
    # replay estimate
    "ranker-unknown": "the log does not say what {about} would have earned: it has shown too "
    "little of it ({value:.0%} at most)",
    "ranker-refuted": "what {about} would have earned cannot be believed: {by}, which assumes "
    "less, contradicts {estimators}",
    "ranker-same": "{about} would have earned what the log's ranker earned, {value:.3g} clicks "
    "per {unit}",
    "ranker-more": "{about} would have earned {value:.3g} clicks per {unit}, {difference:.3g} more "
    "than the log's ranker ({low:.3g} to {high:.3g})",
    "ranker-less": "{about} would have earned {value:.3g} clicks per {unit}, {difference:.3g} less "
    "than the log's ranker ({low:.3g} to {high:.3g})",
    "ranker-unclear": "{about} would have earned {value:.3g} clicks per {unit}, which may be what "
    "the log's ranker earned ({low:+.3g} to {high:+.3g})",
    "ranker-no-interval": "{about} would have earned {value:.3g} clicks per {unit}, "
    "{difference:+.3g} to the log's ranker (no interval)",
    "ranker-depends": "what {about} would have earned depends on the users: {says}",
    "covers": "of its searches the log covers {value:.0%}",
    "part-of-the-log": "this is of {value:.0%} of the log's searches",
    "assumes": "{estimator}: {assumption}",
    "no-check": "no estimator that assumes less has enough support to check {about}",
    "contradicted": "{estimator} says {value:+.3f} of {about}, by more than chance",
    "chosen-on-these-clicks": "{about} was chosen on these clicks, and so is valued too high",
    "not-covered": "{value:.0f} of {threshold:.0f} queries of {about} are not covered: the log has "
    "shown too little of what it shows",
    "never-shown": "{value:.1%} of what {about} shows was never shown, and counts as no clicks",
    "clipped": "{value:.1%} of the weights of {about} are clipped, which lowers its value",
    "few-effective": "the value of {about} rests on {value:.0f} searches",
    "own-clicks": "the own clicks of {about} were {value:.3g} per {unit} ({low:.3g} to {high:.3g})",
    "short-queries": "{about}: {value:,.0f} of {threshold:,.0f} queries have fewer than {K} items "
    "in the log and are left out",
    "unknown-queries": "{about}: {value:,.0f} of its {threshold:,.0f} queries are not in the log "
    "and are left out, as {queries}",
    "unknown-searches": "{about}: {value:,.0f} of its {threshold:,.0f} queries ({share:.1%} of its "
    "searches) are not in the rest of the log and are left out",
    # replay policy
    "cannot-follow": "the log cannot follow these policies: after {value:.0f} searches it does not "
    "show the lists that they want",
    "replayed": "{about} earned most, {value:.3f} clicks per search over its first {steps:,} "
    "searches of each query",
    "replayed-tied": "it cannot be told apart from {others}",
    "replayed-logger": "the log's own ranker earned {value:.3f}",
    "not-uniform": "at {value:.0f} of {threshold:.0f} positions the logger did not choose items at "
    "random: what depends on when, and to whom, it showed them is in the replay, too",
    "followed-to": "the log follows them {threshold:,.0f} searches and no further: {value:.1%} of "
    "the searches that pass show what is wanted",
    "no-interval": "with these shuffles there is no interval",
    "queries-lost": "{value:.0f} of {threshold:.0f} queries are not covered",
    # replay validate
    "use-estimator": "use {about} at K = {at}",
    "cannot-choose": "at K = {at} these parts cannot choose: none predicts them better than the "
    "log's own clicks per search, by more than chance",
    "same-rankings": "at K = {at} these parts cannot choose: they show the same rankings as the "
    "rest of the log",
    "errs": "K = {at}: {about} errs by {value:.4f} clicks per search, where chance makes "
    "{threshold:.4f}",
    "few-parts": "{value:.0f} parts are few",
    "little-support": "the rest of the log has shown {value:.0%} of a part, for {about}",
}
REMEDIES = {
    "unclear": "log for longer",
    "unclear-value": "show other lists in 1% of the searches",
    "value-unknown": "show other lists in 1% of the searches",
    "clicked-only": "log the searches without a click, too",
    "clicks-alone": "log the results that were shown and not clicked, too",
    "simulator-value": "show other lists in 1% of the searches",
    "no-simulator": "fit other click models, and look at check-models",
    "today": "see what the log records that the model leaves out: check-models",
    "log-changes": "compare policies that forget with evaluate --drift before choosing one",
    "unchecked": "logeval check-models",
    "checks-lenient": "fit with --holdout 0.1",
    "taken-as-exact": "evaluate --draws 8",
    "rests-on-prior": "evaluate --identified",
    "not-flat": "a longer --horizon",
    "lists-apart": "show some lists in another order",
    "too-few-searches": "log for longer, or use a DCM",
    "free-looks": "leave out init=sample",
    "ranker-unknown": "fewer positions, or a log whose ranker explores",
    "ranker-depends": "replay validate says which of them predicts this log",
    "not-covered": "fewer positions, or a log whose ranker explores",
    "cannot-follow": "fewer positions or items, or a log whose ranker explores",
    "cannot-choose": "a log whose ranker changed between days, or explores",
    "same-rankings": "a log whose ranker changed between days, or explores",
}
# why a simulator is used, or not; how much a fact matters
WHY = {
    "best": "used",
    "less-likely": "fits held-out clicks less well",
    "slope": "what it predicts of lists comes less true",
    "today": "does not earn what the log says",
    "reward": "does not know this reward",
}
LEVELS = {"fine": "fine", "caution": "have in mind", "stop": "stops the answer"}
ALWAYS = ("checks-pass", "carries", "assumes", "replayed-logger")  # though they are no cautions


def sentence(fact: Fact) -> str:
    """The fact in words."""
    fields = {name: getattr(fact, name) for name in ("about", "value", "low", "high", "threshold")}
    more = {name: _more(x) for name, x in fact.more.items()}
    return WORDS[fact.code].format(**{**fields, **more})


def _more(x: Any) -> Any:
    """Names as a sentence has them; by name numbers, ``DCM 19``, and shares, ``2.1% on DCM``."""
    pairs = [_pair(*pair) for pair in x.items()] if isinstance(x, dict) else x
    return named(pairs) if isinstance(pairs, list) else x


def _pair(name: str, x: Any) -> str:
    return f"{x:.1%} on {name}" if isinstance(x, float) else f"{name} {x}"


MOST = 6  # names in a sentence


def named(names: Sequence[str]) -> str:
    """The first of some names: ``a, b and 3 more``."""
    shown = [*names[:MOST], *([f"{len(names) - MOST} more"] if len(names) > MOST else [])]
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def paragraphs(answer: Answer) -> list[str]:
    """The conclusion, and what to have in mind."""
    return [conclusion(answer), *rest(answer)]


def conclusion(answer: Answer) -> str:
    """What was found."""
    said = [(fact, sentence(fact)) for fact in answer.conclusion]
    own = [
        text if fact.about and text.startswith(fact.about) else capital(text) for fact, text in said
    ]
    return f"{'. '.join(own)}."


def rest(answer: Answer) -> list[str]:
    """Whether to believe it, and what to do next; nothing where there is nothing to say."""
    mind = [fact for fact in answer.facts if fact.level != "fine" or fact.code in ALWAYS]
    said = dict.fromkeys(map(sentence, mind))
    found = [f"Believe it?  {'; '.join(said)}."] if said else []
    found += [f"Note  {note}." for note in answer.notes]
    steps = remedies([*answer.conclusion, *mind])
    return [*found, f"Next  {'; '.join(steps)}."] if steps else found


def remedies(facts: Iterable[Fact]) -> list[str]:
    """What to do about them."""
    return list(dict.fromkeys(REMEDIES[fact.code] for fact in facts if fact.code in REMEDIES))


def filled(text: str) -> str:
    """A paragraph in lines of 80 columns."""
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def capital(text: str) -> str:
    """With a capital letter."""
    return text[:1].upper() + text[1:]
