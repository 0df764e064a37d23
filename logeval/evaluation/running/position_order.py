"""Which policies assume an order of the positions that the simulator does not have, at what price.

TopRank, UniRank, BatchRank, BubbleRank and the cascade family put the k-th best item at position k,
or at the k-th position of their ``order``. Fitted examination (PBM) and termination (DCM) need
not fall with the rank; where they do not, such a list loses something even with the right items.
What it loses is computed, and another order is advised only where it loses clearly less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from logeval.policies.registry import PolicySpec
from logeval.policies.shared.options import positions
from logeval.running.arrays import Ints
from logeval.running.words import joined, out_of
from logeval.tracks.track import Problem

KNOWN = "known"  # an order that is the simulator's own
LITTLE = 0.001  # of the optimum: less is not worth a sentence
CLEARLY = 0.8  # of the loss: an order that loses more than this of it is not advised


def order_notes(specs: Sequence[PolicySpec], problems: Sequence[Problem]) -> list[str]:
    """One note for all policies that assume the same order, with their loss by simulator."""
    weighted: dict[str, list[Any]] = {}
    for problem in problems:
        if problem.position_weights() is not None:
            weighted.setdefault(problem.simulator, []).append(problem)
    by_order: dict[str, list[str]] = {}
    for spec in specs:
        order = spec.parameters.get("order", "descending")
        assumes = getattr(spec.cls, "PARAMETERS", {}).get("order") in (str, "descending")
        if assumes and order != KNOWN:
            by_order.setdefault(order, []).append(spec.name)
    notes = []
    for order, names in by_order.items():
        losses = {name: loss(mine, order) for name, mine in weighted.items()}
        losses = {name: lost for name, lost in losses.items() if lost > LITTLE}
        if losses:
            notes.append(_note(names, losses, {name: weighted[name] for name in losses}))
    return notes


def loss(problems: Sequence[Any], order: str) -> float:
    """What the best items in this order lose, of the best lists, over all problems."""
    best = shown = 0.0
    for problem in problems:
        A = np.empty_like(problem.best)
        A[positions(order, problem.positions)] = problem.best_items
        shown += float(problem.users.expected_reward(A[None], problem.reward)[0])
        best += float(problem.users.expected_reward(problem.best[None], problem.reward)[0])
    return 1.0 - shown / best if best > 0.0 else 0.0


def common_order(problems: Sequence[Any]) -> str:
    """The positions by how much they count on average, as the option ``order`` wants them."""
    ranks = np.mean([_ranks(problem.position_weights()) for problem in problems], axis=0)
    return ">".join(str(k + 1) for k in np.argsort(ranks, kind="stable"))


def _ranks(weights: Any) -> Ints:
    """0 for the position that counts most, and so on."""
    return np.argsort(np.argsort(-weights, kind="stable"), kind="stable")


def _note(names: list[str], losses: dict[str, float], problems: dict[str, list[Any]]) -> str:
    place, they = ("places", "it loses") if len(names) == 1 else ("place", "they lose")
    lost = joined([f"{out_of([share])} on {name}" for name, share in losses.items()])
    text = (
        f"{joined(names)} {place} items in an order of the positions that is not the best one: "
        f"even with the right items {they} {lost}"
    )
    order = common_order([p for mine in problems.values() for p in mine])
    better = {name: loss(mine, order) for name, mine in problems.items()}
    if all(better[name] < CLEARLY * losses[name] for name in losses):
        less = joined([out_of([share]) for share in better.values()])
        text += f"; order={order} would lose {less}"
    return text
