"""One look for all figures: a policy has the same colour and marker everywhere.

Colours are those of Okabe and Ito and three more, which stay apart for colour-blind readers;
markers tell the policies apart where colours fail. Eleven colours and ten markers: no two of the
first hundred policies have both in common.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypedDict

from logeval.errors import unknown_names
from logeval.policies.registry import POLICIES
from logeval.running.names import parse_call

COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#4B0092",
    "#7F7F7F", "#000000", "#B2182B",
)  # fmt: skip
# what is behind the numbers of a check: right, not judged, faulted
CELLS = {"right": "#DCEFE6", "open": "#F2F2F2", "faulted": "#F6CFB5"}
SEARCHES = "searches of a query"  # the axis of time: what is over it answers the pointer
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")


class Look(TypedDict):
    """Keyword arguments of ``Axes.plot``."""

    color: str
    marker: str
    linestyle: str


def look(policy: str) -> Look:
    """Colour, marker and line of a policy; variants of it differ in marker and line."""
    name, parameters = parse_call(policy)
    i = getattr(POLICIES.get(name), "FIGURE", zlib.crc32(name.encode()))
    variant = zlib.crc32(policy.encode()) if parameters else 0
    return {
        "color": COLOURS[i % len(COLOURS)],
        "marker": MARKERS[(i + variant) % len(MARKERS)],
        "linestyle": "--" if parameters else "-",
    }


# sizes for a column of a two-column paper, and for slides
STYLES = {
    "paper": {"font.size": 8, "lines.linewidth": 1.2, "axes.linewidth": 0.6},
    "slides": {"font.size": 13, "lines.linewidth": 2.2, "axes.linewidth": 1.0},
}


@contextmanager
def styled(style: str) -> Iterator[None]:
    """Figures made within are drawn in this style, ``paper`` or ``slides``."""
    if style not in STYLES:
        raise unknown_names("style", [style], STYLES)
    from matplotlib import rc_context

    with rc_context(STYLES[style]):  # type: ignore[arg-type]
        yield
