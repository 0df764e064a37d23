"""``logeval export``: judgments, propensities and training files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from logeval.commands.command import command
from logeval.commands.show import wrapped
from logeval.exports.export import Export

if TYPE_CHECKING:
    from logeval.exports.exported import Exported


@command(Export)
def show_export(found: Exported, asked: Export) -> None:
    """The text itself, or where it is; what was withheld."""
    if asked.out is None:
        print(found.files[""], end="")
    else:
        for more in found.files:
            print(f"{asked.out}{more}")
    print(wrapped(found.words), file=sys.stderr)
