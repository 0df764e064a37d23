"""Settings on which TopRank, UniRank, GRAB, the PBM bandits and their kin were compared.

Their papers print curves and no numbers, so what is compared is the regret that an independent
prototype of every policy found (mean and standard error of the expected cumulative regret, clicks
independent between positions): ``INDEPENDENT``. A to D have L = 10 items and K = 5 positions.

- A: PBM, attraction 0.50, 0.45, ..., 0.05, examination 1, 0.8, ..., 0.2. B: CM, C: DCM with these
  attractions. D: the PBM called "big" in the programs of Gauthier et al. (ICML 2021).
- square: BubbleRank's, all ten items on the list; cascade: B_LB of cascading-bandits;
  lagree: the PBM of Lagree, Vernade, Cappe (NeurIPS 2016), section 6.
"""

from __future__ import annotations

from typing import NamedTuple

from logeval.papers.shared.experiment import Cell, Claim, Experiment, Part
from logeval.papers.shared.figures import curves
from logeval.papers.shared.measures import regret

HORIZON, RUNS = 100_000, 50
_W = "0.5/0.45/0.4/0.35/0.3/0.25/0.2/0.15/0.1/0.05"
_BIG = "0.99/0.95/0.9/0.85/0.8/0.75/0.75/0.75/0.75/0.75"


class Published(NamedTuple):
    """A problem, its horizon, and the independent regret of each policy with its standard error."""

    problem: str
    horizon: int
    independent: dict[str, tuple[float, float]]


SETTINGS = {
    "A": Published(
        f"PBM(w={_W},e=1/0.8/0.6/0.4/0.2)",
        HORIZON,
        {
            "Random": (47505, 10),
            "TopRank": (1297, 44),
            "UniRank": (1148, 48),
            "UniRank(optimism=loglog)": (948, 22),
            "GRAB": (1346, 44),
            "BatchRank": (21284, 149),
            "CTS": (1999, 266),
            "TS-Cascade": (3968, 589),
            "CascadeKL-UCB": (1946, 270),
            "PBM-UCB": (652, 13),
            "PBM-PIE": (347, 28),
            "PBM-TS": (143, 19),
            "BC-MPTS": (131, 8),
            "PB-MHB": (171, 9),
        },
    ),
    "B": Published(
        f"CM(w={_W},K=5)",
        HORIZON,
        {
            "Random": (11661, 4),
            "TopRank": (470, 14),
            "UniRank": (506, 21),
            "UniRank(optimism=loglog)": (464, 16),
            "GRAB": (216, 9),
            "BatchRank": (2795, 40),
            "CTS": (84, 13),
            "TS-Cascade": (129, 7),
            "CascadeKL-UCB": (183, 7),
        },
    ),
    "C": Published(
        f"DCM(w={_W},v=0.8/0.7/0.6/0.5/0.4)",
        HORIZON,
        {
            "Random": (17218, 4),
            "TopRank": (422, 13),
            "UniRank": (367, 12),
            "UniRank(optimism=loglog)": (339, 6),
            "BatchRank": (6117, 42),
            "CTS": (74, 5),
            "dcmKL-UCB": (202, 3),
            "CTS(feedback=last)": (161, 5),
        },
    ),
    "D": Published(
        f"PBM(w={_BIG},e=1/0.75/0.6/0.3/0.1)",
        HORIZON,
        {
            "Random": (31153, 7),
            "TopRank": (3806, 77),
            "UniRank": (1834, 114),
            "UniRank(optimism=loglog)": (1169, 156),
            "GRAB": (1650, 100),
            "PBM-UCB": (1014, 25),
            "PBM-PIE": (500, 40),
            "BC-MPTS": (718, 233),
            "PB-MHB": (460, 33),
        },
    ),
    "square": Published(
        f"PBM(w={_W},e=1/0.9/0.8/0.7/0.6/0.5/0.4/0.3/0.2/0.1,base=2>1>4>3>6>5>8>7>10>9)",
        HORIZON,
        {"BubbleRank": (2053, 5), "TopRank": (455, 9)},
    ),
    "cascade": Published(
        "B_LB(L=16,K=2,p=0.2,gap=0.15,gamma=1)",
        HORIZON,
        {
            "CascadeKL-UCB": (349, 6),
            "CTS": (154, 4),
            "TS-Cascade": (386, 5),
            "TopRank": (527, 19),
        },
    ),
    "lagree": Published(
        "PBM(w=0.45/0.35/0.25/0.15/0.05,e=0.9/0.6/0.3)",
        10_000,
        {
            "PBM-UCB": (102.3, 1.2),
            "PBM-PIE": (68.1, 2.3),
            "BC-MPTS": (30.7, 1.1),
            "PBM-TS": (32.0, 1.5),
        },
    ),
}


def _experiment(name: str, setting: Published) -> Experiment:
    return Experiment(
        f"modern-{name}",
        f"setting {name}",
        f"regret on {setting.problem.partition('(')[0]}, beside independent prototypes",
        (Part(f"modern-{name}", (setting.problem,), tuple(setting.independent)),),
        tuple(
            Claim(
                policy,
                regret(Cell(policy)),
                mean,
                stderr,
                source="independent prototype",
            )
            for policy, (mean, stderr) in setting.independent.items()
        ),
        paper="the list policies of today",
        horizon=setting.horizon,
        runs=RUNS,
        seconds=SECONDS[name],
        figure=curves(),
    )


SECONDS = {"A": 330, "B": 100, "C": 100, "D": 130, "square": 40, "cascade": 40, "lagree": 10}
EXPERIMENTS = tuple(_experiment(name, setting) for name, setting in SETTINGS.items())
