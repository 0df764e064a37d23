"""The sections of the report, in their order.

A section is a function of the page and the content; one that has nothing to say adds nothing. To
add a section, write such a function and put it in ``SECTIONS``.
"""

from __future__ import annotations

from collections.abc import Callable

from logeval.reports.page import Content, Page
from logeval.reports.sections.regret import (
    across_tracks,
    curves,
    final_tables,
    query_by_query,
    the_sensitivity,
    the_variance,
)
from logeval.reports.sections.replay import the_replay
from logeval.reports.sections.simulators import (
    the_glossary,
    the_log,
    the_models,
    the_simulators,
    what_was_run,
)
from logeval.reports.sections.verdict import the_verdict

SECTIONS: list[Callable[[Page, Content], None]] = [
    the_verdict,
    the_simulators,
    curves,
    final_tables,
    query_by_query,
    across_tracks,
    the_sensitivity,
    the_variance,
    the_replay,
    the_models,
    the_log,
    what_was_run,
    the_glossary,
]
