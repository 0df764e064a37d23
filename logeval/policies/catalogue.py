"""What each policy must know, what it reads of the clicks, what a step costs, and its paper.

Options and defaults are read off the classes. ``knows`` is what somebody who deploys the policy
has to tell it; what only a simulator can give are the capabilities of ``policies.setting``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from logeval.policies.registry import POLICIES


class Entry(NamedTuple):
    """What the code of a policy does not say by itself."""

    knows: str
    feedback: str
    cost: str  # of a step, in the worst case
    paper: str


ORDER = "position order (1 to K)"
CASCADING, DCM = "Kveton et al., ICML 2015", "Katariya et al., ICML 2016"
RANK1 = "Katariya et al., IJCAI 2017"
LAGREE = "Lagree et al., NeurIPS 2016"
ZHONG, GAUTHIER = "Zhong et al., JMLR 2021", "Gauthier et al., ICML 2021"

ENTRIES = {
    "CascadeUCB1": Entry(ORDER, "up to the first click", "L", CASCADING),
    "CascadeKL-UCB": Entry(ORDER, "up to the first click", "L", CASCADING),
    "dcmKL-UCB": Entry(ORDER, "up to the last click", "L", DCM),
    "First-Click": Entry(ORDER, "up to the first click", "L", DCM),
    "Last-Click": Entry(ORDER, "up to the last click", "L", DCM),
    "RankedUCB1": Entry("nothing", "all clicks", "L K", "Radlinski et al., ICML 2008"),
    "RankedKL-UCB": Entry("nothing", "all clicks", "L K", "Radlinski et al., ICML 2008"),
    "RankedExp3": Entry("horizon", "all clicks", "L K", "Radlinski et al., ICML 2008"),
    "CTS": Entry(ORDER, "up to the first click", "L", ZHONG),
    "TS-Cascade": Entry(ORDER, "up to the first click", "L", ZHONG),
    "TopRank": Entry(
        f"horizon, {ORDER}", "clicked against not clicked in a block",
        "K L; L^2 when blocks change",
        "Lattimore et al., NeurIPS 2018",
    ),
    "UniRank": Entry(
        ORDER, "clicked against not clicked in a block", "K L; L^2 when blocks change",
        "Gauthier et al., ICML 2022",
    ),
    "BatchRank": Entry(
        f"horizon, {ORDER}", "all clicks, per batch and stage", "K; L at the end of a stage",
        "Zoghi et al., ICML 2017",
    ),
    "BubbleRank": Entry(
        f"horizon, base list, {ORDER}", "neighbours of which one was clicked", "K",
        "Li et al., UAI 2019",
    ),
    "PBM-UCB": Entry("examination, or estimated", "all clicks", "L + K^2", LAGREE),
    "PBM-PIE": Entry("horizon, examination, or estimated", "all clicks", "L K", LAGREE),
    "PBM-TS": Entry("examination, or estimated", "all clicks", "L + 128 K", LAGREE),
    "BC-MPTS": Entry(
        "examination, or estimated", "all clicks", "L + K^2", "Komiyama et al., ICML 2015"
    ),
    "PB-MHB": Entry(
        "the most examined position", "all clicks", "2 L K", "Gauthier et al., IDA 2021"
    ),
    "GRAB": Entry("nothing", "all clicks", "L + K; K^2 L when the leader changes", GAUTHIER),
    "S-GRAB": Entry("nothing", "all clicks", "L K; K^2 L when the leader changes", GAUTHIER),
    "KL-CombUCB1": Entry("horizon", "all clicks", "K^2 L", "Combes et al., NeurIPS 2015"),
    "Rank1ElimKL": Entry("horizon", "the click", "L + K", RANK1),
    "Rank1Elim": Entry("horizon", "the click", "L + K", "Katariya et al., AISTATS 2017"),
    "UCB1Elim": Entry("horizon", "the click", "L K", "Auer and Ortner 2010"),
    "UCB1": Entry("nothing", "the click", "L K", "Auer et al. 2002"),
    "KL-UCB": Entry("nothing", "the click", "L K", "Garivier and Cappe 2011"),
    "TS": Entry("nothing", "the click", "L K", "Thompson 1933"),
    "Random": Entry("nothing", "none", "K", ""),
    "Oracle": Entry("the optimum", "none", "1", ""),
}  # fmt: skip
UNKNOWN = Entry("", "", "", "")


def catalogue() -> list[dict[str, Any]]:
    """One row per policy: name, options with their defaults, track, and the entry."""
    rows = []
    for name, cls in POLICIES.items():
        entry = ENTRIES.get(name, UNKNOWN)
        track = getattr(cls, "TRACK", "ranking")
        rows.append(
            {
                "policy": name,
                "options": options(cls),
                "track": track or "any",
                "must know": entry.knows,
                "asks the simulator for": ", ".join(getattr(cls, "NEEDS", ())),
                "feedback": entry.feedback,
                "cost of a step": entry.cost,
                "paper": entry.paper,
            }
        )
    return rows


def options(cls: type) -> str:
    """``order=descending, init=sample|rounds``: the default first."""
    defaults = cls.__init__.__kwdefaults__ or {}  # type: ignore[misc]
    parts = []
    for key, kind in cls.PARAMETERS.items():  # type: ignore[attr-defined]
        default = defaults.get(key)
        others = [value for value in kind if value != default] if isinstance(kind, tuple) else []
        shown = f"{default:g}" if isinstance(default, float) else str(default or "computed")
        parts.append(f"{key}={'|'.join([shown, *others])}")
    return ", ".join(parts)
