"""The sections of the report, in their order.

A section is a function of the page and the content; one that has nothing to say adds nothing. To
add a section, write such a function and put it in ``SECTIONS``.
"""

from __future__ import annotations

from collections.abc import Callable

from logeval.reports.page import Content, Page
from logeval.reports.sections.decision import behind_it, the_decision
from logeval.reports.sections.regret import across, the_regret, the_replay
from logeval.reports.sections.simulators import the_log, the_models, what_was_run

SECTIONS: list[Callable[[Page, Content], None]] = [
    the_decision,
    behind_it,
    the_regret,
    across,
    the_replay,
    the_models,
    the_log,
    what_was_run,
]
