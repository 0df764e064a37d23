"""Which policies assume an order of the positions that the simulator does not have.

TopRank, UniRank, BatchRank, BubbleRank and the cascade family put the k-th best item at position k,
or at the k-th position of their ``order``. Fitted examination (PBM) and termination (DCM) need
not fall with the rank; where they do not, such a list is not the best one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from logeval.policies.registry import PolicySpec
from logeval.policies.shared.positions import positions
from logeval.running.arrays import Floats
from logeval.tracks.track import Problem

KNOWN = "known"  # an order that is the simulator's own


def _counted(known: Sequence[tuple[Problem, Floats]]) -> str:
    """How many queries these are, or draws of the parameters of how many queries."""
    queries = {problem.query for problem, _ in known}
    if len(queries) == len(known):
        return f"{len(known)} queries"
    return f"{len(known)} draws of {len(queries)} queries"


def order_notes(specs: Sequence[PolicySpec], problems: Sequence[Problem]) -> list[str]:
    """One note per simulator whose positions are in another order than policies assume."""
    weighted = [(p, p.position_weights()) for p in problems]
    assuming = [
        s for s in specs if getattr(s.cls, "PARAMETERS", {}).get("order") in (str, "descending")
    ]
    notes = []
    for simulator in dict.fromkeys(p.simulator for p in problems):
        known = [(p, w) for p, w in weighted if p.simulator == simulator and w is not None]
        wrong: dict[str, int] = {}
        for spec in assuming:
            if spec.parameters.get("order") == KNOWN:
                continue
            for _, w in known:
                order = positions(spec.parameters.get("order", "descending"), len(w))
                wrong[spec.name] = wrong.get(spec.name, 0) + bool((np.diff(w[order]) > 1e-12).any())
        if any(wrong.values()):
            names = [name for name, count in wrong.items() if count]
            assume, their, them = (
                ("assumes", "its", "it") if len(names) == 1 else ("assume", "their", "them")
            )
            notes.append(
                f"{simulator}: in {max(wrong.values())} of {_counted(known)} the positions do not "
                f"count in the order that {', '.join(names)} {assume}, so {their} regret has a "
                f"linear part; order=2>1>3 tells {them} another one, and the policy "
                "Oracle(order=assumed) shows the linear part"
            )
    return notes
