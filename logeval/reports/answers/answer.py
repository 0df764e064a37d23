"""An answer in words: a sentence or two with units, why, what limits it, and what to do next."""

from __future__ import annotations

import html
import textwrap
from dataclasses import KW_ONLY, dataclass, field


@dataclass(frozen=True)
class Answer:
    """What a result says; every other part than the answer may be empty."""

    answer: str
    _: KW_ONLY
    others: list[str] = field(default_factory=list)
    because: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    next: list[str] = field(default_factory=list)

    def sections(self) -> list[tuple[str, list[str]]]:
        """What follows the answer: titles and sentences."""
        found = [
            ("The others", self.others),
            ("Why", self.because),
            ("What limits this", self.limits),
            ("Next", self.next),
        ]
        return [(title, lines) for title, lines in found if lines]

    def text(self, width: int = 80) -> str:
        """For the terminal."""
        parts = [textwrap.fill(self.answer, width, break_on_hyphens=False)]
        for title, lines in self.sections():
            parts += [f"{title}:", *(item(line, width) for line in lines)]
        return "\n".join(parts)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        parts = [f"<p><b>{html.escape(self.answer)}</b></p>"]
        for title, lines in self.sections():
            items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
            parts.append(f"<p>{html.escape(title)}</p><ul>{items}</ul>")
        return "".join(parts)


def item(line: str, width: int) -> str:
    """A line of a list."""
    return textwrap.fill(
        line, width, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False
    )


def searches(K: int) -> str:
    """What is counted, at K positions."""
    where = "the first position" if K == 1 else f"the first {K} positions"
    return f"clicks per search in {where}"
