"""``logeval features``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logeval.commands.command import command
from logeval.commands.show import print_table
from logeval.features.make import MakeFeatures

if TYPE_CHECKING:
    from logeval.features.table import Features


@command(MakeFeatures, short_help="SERPs -> features of items and users.")
def show(found: Features, asked: MakeFeatures) -> None:
    """How many items and users, and how much of the clicks."""
    matrix = found.manifest["matrix"]
    rows: list[tuple[str, object]] = [
        ("queries", ", ".join(asked.names.titles(found.queries).values())),
        ("items", found.items.num_rows),
        ("  never clicked: their vector is 0", found.manifest["never_clicked"]),
        ("users", found.users.num_rows),
        (f"click matrix, {matrix['rows']}s x items", " x ".join(map(str, matrix["shape"]))),
        ("  cells that are not 0", matrix["cells"]),
        ("length of a context", found.dimension),
    ]
    print_table(f"{asked.out}: {found.context}", ["", "value"], [(a, str(b)) for a, b in rows])
    if (share := matrix.get("share_of_clicks", 1.0)) < 1.0:
        print(f"only the items clicked most are used, which have {share:.1%} of the clicks")
    if found.d < asked.dim:
        print(f"the click matrix has rank {found.d}: that is used, not --dim {asked.dim}")
