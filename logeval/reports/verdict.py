"""The answer in words: what to do, whether the simulators can be believed, and what else limits it.

The order is that of somebody who has to decide: what to do (``decision``), the answer in two
sentences with their units (``headline``, ``against``), then what the tool's own checks say of its
simulators (``trust``), then what else limits the answer (``limits``), then the details behind it
(``details``).
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field

from logeval.clicks.fitting import NO_CLICK
from logeval.evaluation.results import Runs
from logeval.evaluation.statistics.summary import is_oracle
from logeval.reports.answers.answer import item
from logeval.reports.decision import decision, traffic
from logeval.reports.details import details, of_panel
from logeval.reports.headline import favourite, headline
from logeval.reports.limits import limits_of
from logeval.reports.trust import doubts, trust


@dataclass(frozen=True)
class Verdict:
    """An answer of a sentence or two, whether to believe it, what limits it, and the details.

    ``decision`` is what to do, where today's ranker is known. ``sound`` is false where a simulator
    is faulted by its checks, where its parameters were taken as exact, or where it rests on few
    SERPs.
    """

    answer: str
    trust: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)
    sound: bool = True
    decision: str = ""

    def text(self, width: int = 80) -> str:
        """For the terminal."""
        said = filter(None, [self.decision, self.answer])
        parts = [textwrap.fill(text, width, break_on_hyphens=False) for text in said]
        for title, lines in self.sections():
            parts.append(title if title.endswith("?") else f"{title}:")
            parts += [item(line, width) for line in lines]
        return "\n".join(parts)

    def sections(self) -> list[tuple[str, list[str]]]:
        """What follows the answer: titles and sentences."""
        found = [
            ("Can the simulators be believed?", self.trust),
            ("What else limits this", self.limits),
            ("Details", self.details),
        ]
        return [(title, lines) for title, lines in found if lines]


def verdict(runs: Runs) -> Verdict:
    """The verdict on the runs of one folder, at their last step."""
    summary, pairs = runs.summary(), runs.pairs()
    parts = {
        panel: (of_panel(summary, panel), of_panel(pairs, panel))
        for panel in runs.panels()
        if (~of_panel(summary, panel)["policy"].map(is_oracle)).any()
    }
    if not parts:
        return Verdict("Only the Oracle was run: there is nothing to compare.")
    if any(NO_CLICK in note for note in runs.notes):
        return Verdict(
            "There is no click in the log that the simulators were fitted to. They consist of "
            "their priors, so it means nothing which policy loses least on them.",
            limits=limits_of(runs),
            sound=False,
        )
    best = favourite(runs, parts)
    answer = " ".join(headline(runs, parts))
    return Verdict(
        answer,
        trust(runs),
        [*limits_of(runs), *traffic(runs, best)],
        details(runs, parts),
        not doubts(runs),
        decision(runs, best),
    )
