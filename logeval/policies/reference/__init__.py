"""Every policy once more, as the pseudocode of its paper in plain NumPy: one replica, no tricks.

Here is what a reader of the papers looks for. Tests compare the actions of each policy with those
of its reference, step by step; benchmarks use it as the baseline; ``logeval evaluate --reference``
runs it. ``REFERENCES`` has the names of ``policies.registry.POLICIES``.
"""

from __future__ import annotations

from logeval.policies.reference import (
    batchrank,
    bubblerank,
    cascade,
    cascade_thompson,
    contextual,
    grab,
    pairs,
    pb_mhb,
    pbm_bandits,
    pbm_ts,
    random_and_oracle,
    rank1elim,
    ranked,
    toprank,
    unirank,
)
from logeval.policies.reference.replica import Reference, one_by_one

__all__ = ["REFERENCES", "REFERENCES_IN_TRACK", "one_by_one"]

REFERENCES: dict[str, type[Reference]] = {
    "CascadeUCB1": cascade.CascadeUCB1,
    "CascadeKL-UCB": cascade.CascadeKLUCB,
    "dcmKL-UCB": cascade.DcmKLUCB,
    "First-Click": cascade.FirstClick,
    "Last-Click": cascade.LastClick,
    "RankedUCB1": ranked.RankedUCB1,
    "RankedKL-UCB": ranked.RankedKLUCB,
    "RankedExp3": ranked.RankedExp3,
    "CTS": cascade_thompson.CTS,
    "TS-Cascade": cascade_thompson.TSCascade,
    "TopRank": toprank.TopRank,
    "UniRank": unirank.UniRank,
    "BatchRank": batchrank.BatchRank,
    "BubbleRank": bubblerank.BubbleRank,
    "PBM-UCB": pbm_bandits.PBMUCB,
    "PBM-PIE": pbm_bandits.PBMPIE,
    "PBM-TS": pbm_ts.PBMTS,
    "BC-MPTS": pbm_bandits.BCMPTS,
    "PB-MHB": pb_mhb.PBMHB,
    "GRAB": grab.GRAB,
    "S-GRAB": grab.SGRAB,
    "KL-CombUCB1": grab.KLCombUCB1,
    "Rank1ElimKL": rank1elim.Rank1ElimKL,
    "Rank1Elim": rank1elim.Rank1Elim,
    "UCB1Elim": pairs.UCB1Elim,
    "UCB1": pairs.UCB1,
    "KL-UCB": pairs.KLUCB,
    "TS": pairs.TS,
    "GL-CDCM": contextual.GLCDCM,
    "LR": contextual.LR,
    "CascadeLinUCB": contextual.CascadeLinUCB,
    "CascadeLinTS": contextual.CascadeLinTS,
    "C3-UCB": contextual.C3UCB,
    "LogisticTS": contextual.LogisticTS,
    "UCB-GLM": contextual.UCBGLM,
    "Random": random_and_oracle.Random,
    "Oracle": random_and_oracle.Oracle,
}

# As ``policies.registry.IN_TRACK``.
REFERENCES_IN_TRACK: dict[str, dict[str, type[Reference]]] = {
    "contextual": {
        "dcmKL-UCB": contextual.ContextualKLUCB,
        "Random": contextual.ContextualRandom,
        "Oracle": contextual.ContextualOracle,
    }
}
