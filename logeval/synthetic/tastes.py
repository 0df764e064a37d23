"""Users with tastes: the logit of an item's attraction has taste * (p_u . q_j) added.

p_u ~ N(0, I / F) are the F factors of user u, q_j ~ N(0, I) those of item j, so that p_u . q_j has
variance 1 over users and items: a taste of 1 moves the odds of a click by a factor of e.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import expit, logit

from logeval.running import seeds
from logeval.running.arrays import Floats, Ints
from logeval.storage import schemas, tables


@dataclass(frozen=True)
class Tastes:
    """The factors of all users and items of a world."""

    taste: float
    users: Floats  # (users, F); user u has user_id u
    items: Floats  # (items, F); item j has item_id j + 1

    def attraction(self, w: Floats, user: Ints, items: Ints) -> Floats:
        """The attraction of lists (S, K) of items, each for its user (S,)."""
        agreement = np.einsum("sf,skf->sk", self.users[user], self.items[items])
        shifted: Floats = expit(logit(w) + self.taste * agreement)
        return shifted

    def write(self, folder: Path) -> None:
        """Write the factors beside the true models."""
        n_users, n_items = len(self.users), len(self.items)
        columns: dict[str, Any] = {
            "kind": np.repeat(["user", "item"], [n_users, n_items]),
            "id": np.concatenate([np.arange(n_users), np.arange(1, n_items + 1)]),
            "factors": tables.list_column(np.concatenate([self.users, self.items])),
        }
        tables.write_parquet(pa.table(columns).cast(schemas.FACTORS), folder / "factors.parquet")


def make_tastes(taste: float, factors: int, users: int, items: int, seed: int) -> Tastes | None:
    """The tastes of a world; None without any."""
    if not taste:
        return None
    rng = seeds.generator(seed, "tastes")
    of_users = rng.standard_normal((users, factors)) / np.sqrt(factors)
    return Tastes(taste, of_users, rng.standard_normal((items, factors)))


def read_tastes(truth: Path | str) -> tuple[float, dict[int, Floats], dict[int, Floats]] | None:
    """The taste, and the factors by user_id and by item_id, of a truth folder that has some."""
    if not tables.there_is(truth) or not tables.file_of(tables.read_manifest(truth), "factors"):
        return None
    taste = float(tables.read_manifest(truth)["arguments"]["taste"])
    by_kind: dict[str, dict[int, Floats]] = {"user": {}, "item": {}}
    for row in tables.read_table(Path(truth), "factors").to_pylist():
        by_kind[row["kind"]][row["id"]] = np.array(row["factors"])
    return taste, by_kind["user"], by_kind["item"]
