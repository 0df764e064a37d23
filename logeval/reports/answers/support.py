"""What a log supports, as an answer."""

from __future__ import annotations

from logeval.clicks.support.support import Support
from logeval.reports.answers.answer import Answer


def verdict(found: Support) -> Answer:
    """The first sentence, and the others."""
    first, *others = (f"{sentence}." for sentence in found.sentences)
    return Answer(first, because=others)
