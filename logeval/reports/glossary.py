"""What the words of reports and pages mean: part of every report, and docs/glossary.md.

``python -m logeval.reports.glossary > docs/glossary.md``
"""

from __future__ import annotations

import re

GLOSSARY = {
    "attraction": "The probability that a user who looks at an item clicks on it.",
    "bandit, policy": "A ranker that learns from the clicks on the lists that it shows. It must "
    "try lists in order to learn (explore), and wants to show good ones (exploit).",
    "best list": "The list with the largest expected reward under a simulator. No ranker "
    "earns more there.",
    "break-even": "The number of searches after which a policy that learns has earned as much as "
    "today's ranker would have. Before it, learning costs more than it brings.",
    "cannot be told apart": "The difference of two policies may be chance: the 95% interval of the "
    "paired difference contains 0. It does not mean that they are equal; more queries or runs may "
    "separate them.",
    "carry": "A query can carry a click model if its clicks decide the parameters, rather than "
    "the prior.",
    "class of users": "Users of one query who click in the same way, for instance those who click "
    "once and those who click on everything. A model with classes has parameters for each.",
    "click model": "A description, in probabilities, of how users click on a list: DCM, PBM and "
    "others. Fitted to a log it serves as a simulator.",
    "DBN, UBM": "Click models near to DCM and PBM. DBN: users read from the top and may stop after "
    "any result. UBM: whether a position is looked at depends on the last click above it.",
    "DCM": "Dependent click model. Users read from the top; after a click at position k they are "
    "satisfied, and leave, with the termination of k.",
    "draw": "One set of parameters that the clicks of the log allow, taken at random (from the "
    "posterior). Results that hold on all draws do not hang on how well parameters are known.",
    "effective SERPs": "The number of logged pages that an estimate really rests on. Weights that "
    "differ much make it far smaller than the number of pages in the log.",
    "estimator": "A rule that says from logged clicks alone what another ranker would have earned.",
    "examination": "The probability that users look at a position.",
    "faulted": "A check found that simulated clicks differ from those of the log by more than "
    "chance.",
    "horizon": "How many searches of a query a policy serves in a run. In papers a search is a "
    "step.",
    "interval": "A range that holds the true value in 95% of the cases, as far as its assumptions "
    "do. Bands in figures are such intervals at each search.",
    "K": "The number of positions of a list.",
    "PBM": "Position-based model. The probability of a click is the examination of the position "
    "times the attraction of the item.",
    "prior": "What is assumed of a parameter before any click: here, what all queries have in "
    "common. The fewer the clicks, the more an estimate rests on it.",
    "query": "A search text, and its region where the log has one. Models and policies start anew "
    "with each query. Intervals take queries as the independent units.",
    "rank-1 track": "Policies that choose one item and one position at a time, in place of a list.",
    "regret": "Reward lost against the best list, summed over all searches of a run. Lower is "
    "better; 0 is perfect.",
    "relative regret": "Regret as a share of what the best list would have earned.",
    "reward": "What a list earns in a search. Of a PBM or UBM: clicks. Of a DCM or DBN: the "
    "probability that the user leaves satisfied. Of any model on request: a search with any click.",
    "run, replica": "A run is one pass of a policy over the horizon. A replica is one run on one "
    "query.",
    "satisfied search": "A search that ends with a click after which the user leaves content. A "
    "log does not show it; a DCM or DBN infers it from where clicks end.",
    "SERP": "Search engine result page: one list shown to one user, and the clicks on it.",
    "simulator": "A fitted click model that plays the users.",
    "support": "The share of what a ranker would show that the log has shown. What has no support "
    "cannot be judged from the log alone.",
    "target": "The ranker whose earnings an estimator says.",
    "termination": "In a DCM: the probability that a click at a position ends the search.",
    "today's ranker": "The ranker that made the log: its lists, as often as the log shows them.",
}

PAGES = {  # of the docs that reports name, by file, with their headings
    "checking": "How like the log a model is",
    "cite": "How to cite",
    "models": "Click models",
    "policies": "Policies",
    "replay": "Estimators from the log itself",
    "simulators": "Click models and estimators on trial",
    "statistics": "What the numbers mean",
    "support": "Is my log enough?",
    "tutorial": "Ten minutes on a small log",
}


def docs_page(name: str) -> str:
    """``docs/support.md (Is my log enough?)``."""
    return f"docs/{name}.md ({PAGES[name]})"


def anchor(word: str) -> str:
    """The id of a word on a page: ``word-best-list``."""
    return "word-" + re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-")


def markdown() -> str:
    """The page."""
    head = (
        "# Glossary\n\nMade by `python -m logeval.reports.glossary > docs/glossary.md`. "
        "Every report ends with the same words.\n"
    )
    return head + "".join(f"\n**{word}.** {text}\n" for word, text in GLOSSARY.items())


if __name__ == "__main__":
    print(markdown(), end="")
