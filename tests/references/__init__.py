"""The papers' pseudocode, in plain NumPy for one replica: what every kernel is compared with.

A reference takes the same random numbers as its kernel, in the same order, so that both take the
same actions. They use no kernel, and a family is one file, like those of ``logeval/policies``.
"""

from __future__ import annotations

from logeval.policies.registry import parse_policies
from logeval.policies.setting import Setting
from logeval.running.names import given_to
from tests.references import (
    baselines,
    batchrank,
    bubblerank,
    cascade,
    cascade_thompson,
    contextual,
    forgetting,
    glrt,
    grab,
    pairs,
    pb_mhb,
    pbm,
    rank1elim,
    ranked,
    toprank,
    unirank,
)
from tests.references.replica import OneByOne, Reference

REFERENCES: dict[str, type[Reference]] = {
    "CascadeUCB1": cascade.CascadeUCB1,
    "CascadeKL-UCB": cascade.CascadeKLUCB,
    "CascadeUCB-V": cascade.CascadeUCBV,
    "dcmKL-UCB": cascade.DcmKLUCB,
    "First-Click": cascade.FirstClick,
    "Last-Click": cascade.LastClick,
    "CascadeSWUCB": forgetting.CascadeSWUCB,
    "CascadeDUCB": forgetting.CascadeDUCB,
    "SW-dcmKL-UCB": forgetting.SlidingDcmKLUCB,
    "D-dcmKL-UCB": forgetting.DiscountedDcmKLUCB,
    "GLRT-CascadeUCB": glrt.GLRTCascadeUCB,
    "GLRT-CascadeKL-UCB": glrt.GLRTCascadeKLUCB,
    "RankedUCB1": ranked.RankedUCB1,
    "RankedKL-UCB": ranked.RankedKLUCB,
    "RankedExp3": ranked.RankedExp3,
    "CTS": cascade_thompson.CTS,
    "TS-Cascade": cascade_thompson.TSCascade,
    "TopRank": toprank.TopRank,
    "UniRank": unirank.UniRank,
    "BatchRank": batchrank.BatchRank,
    "BubbleRank": bubblerank.BubbleRank,
    "PBM-UCB": pbm.PBMUCB,
    "PBM-PIE": pbm.PBMPIE,
    "PBM-TS": pbm.PBMTS,
    "BC-MPTS": pbm.BCMPTS,
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
    "LogisticTS": contextual.LogisticTS,
    "UCB-GLM": contextual.UCBGLM,
    "CascadeLinUCB": contextual.CascadeLinUCB,
    "CascadeLinTS": contextual.CascadeLinTS,
    "C3-UCB": contextual.C3UCB,
    "Random": baselines.Random,
    "Oracle": baselines.Oracle,
    "Logged": baselines.Logged,
}
# of the classes that take their place in the contextual track
CONTEXTUAL: dict[str, type[Reference]] = {
    "dcmKL-UCB": cascade.ContextualKLUCB,
    "Random": baselines.ContextualRandom,
    "Oracle": baselines.ContextualOracle,
}


def as_policy(name: str, setting: Setting, track: str | None = None) -> OneByOne:
    """All replicas of the reference of a policy, which may have parameters, ready for step 1."""
    (spec,) = parse_policies([name], track)
    plain = spec.name.partition("(")[0]
    reference = (CONTEXTUAL if track == "contextual" else {}).get(plain, REFERENCES[plain])
    return OneByOne(
        setting.tell(spec.cls, spec.name), reference, given_to(spec.cls, spec.parameters)
    )
