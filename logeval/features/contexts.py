"""Vectors of users and items -> contexts x of norm at most 1, each with a constant.

| context     | x                          |
|-------------|----------------------------|
| `item`      | (1, v_j) / sqrt 2          |
| `user+item` | (1, v_j, u_i) / sqrt 3     |
| `user*item` | (1, v_j, p_i x q_j) / sqrt 3 |

v_j and u_i are the vectors of item j and user i, p_i and q_j their leading ``r`` entries with
norm 1, and x the outer product. Concatenation cannot change a ranking: theta . u_i is the same
for all items of a round. The outer product can. Without the constant an item that was never
clicked, whose vector is 0, would keep a predicted attraction of 1/2 for ever.
"""

from __future__ import annotations

import numpy as np

from logeval.running.arrays import Floats

ITEM, USER_AND_ITEM, USER_TIMES_ITEM = CONTEXTS = ("item", "user+item", "user*item")


def dimension(context: str, d: int, r: int) -> int:
    """The length of x for item vectors of length d and products of r by r entries."""
    return 1 + d + {ITEM: 0, USER_AND_ITEM: d, USER_TIMES_ITEM: r * r}[context]


def item_contexts(items: Floats) -> Floats:
    """(L, 1 + d) the contexts that know the item alone."""
    return np.column_stack([np.ones(len(items)), items]) / np.sqrt(2.0)
