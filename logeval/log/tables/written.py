"""Synthetic sessions -> a CSV with a row per page, which says what was shown in random order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from logeval.running.arrays import Ints

if TYPE_CHECKING:
    from logeval.synthetic.sessions import Sessions

HEADER = "session,serp,user,day,query,random,items,clicks\n"


def write_pages(sessions: Sessions, query_id: Ints, region_id: Ints, number: int) -> bytes:
    """The rows of a batch whose first session is ``number``; before the first one, the header."""
    size = np.diff(sessions.first)
    owner = np.repeat(np.arange(len(size)), size)
    serp = np.arange(len(owner)) - np.repeat(sessions.first[:-1], size)
    columns = (
        number + owner, serp, sessions.user[owner], sessions.day[owner], query_id,
        sessions.random.astype(np.int64), sessions.lists + 1, sessions.clicks,
    )  # fmt: skip
    rows = zip(*(column.tolist() for column in columns), strict=True)
    lines = [
        f"{session},{page},{user},{day},{query},{random},{_joined(items)},{_joined(clicks)}\n"
        for session, page, user, day, query, random, items, clicks in rows
    ]
    return ("" if number else HEADER).encode() + "".join(lines).encode()


def _joined(values: list[int]) -> str:
    return " ".join(map(str, values))
