"""One look for all figures: a policy has the same colour and marker everywhere.

Colours are those of Okabe and Ito, which stay apart for colour-blind readers and in grey;
markers tell the policies apart where colours fail.
"""

from __future__ import annotations

import zlib
from typing import TypedDict

from logeval.names import parse_call

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
_ORDER = (
    "dcmKL-UCB", "RankedKL-UCB", "RankedExp3", "CascadeKL-UCB", "CascadeUCB1", "RankedUCB1",
    "First-Click", "Last-Click", "Random", "Oracle",
    "Rank1ElimKL", "Rank1Elim", "UCB1Elim", "UCB1", "KL-UCB", "TS",
)  # fmt: skip


class Look(TypedDict):
    """Keyword arguments of ``Axes.plot``."""

    color: str
    marker: str
    linestyle: str


def look(policy: str) -> Look:
    """Colour, marker and line of a policy; variants of it differ in the line."""
    name, parameters = parse_call(policy)
    i = _ORDER.index(name) if name in _ORDER else zlib.crc32(name.encode())
    return {
        "color": _COLOURS[i % len(_COLOURS)],
        "marker": _MARKERS[i % len(_MARKERS)],
        "linestyle": "--" if parameters else "-",
    }
