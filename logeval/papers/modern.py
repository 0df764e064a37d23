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


PROBLEMS = {
    "A": f"PBM(w={_W},e=1/0.8/0.6/0.4/0.2)",
    "B": f"CM(w={_W},K=5)",
    "C": f"DCM(w={_W},v=0.8/0.7/0.6/0.5/0.4)",
    "D": f"PBM(w={_BIG},e=1/0.75/0.6/0.3/0.1)",
}
INDEPENDENT: dict[str, dict[str, tuple[float, float]]] = {
    "Random": {"A": (47505, 10), "B": (11661, 4), "C": (17218, 4), "D": (31153, 7)},
    "TopRank": {"A": (1297, 44), "B": (470, 14), "C": (422, 13), "D": (3806, 77)},
    "UniRank": {"A": (1148, 48), "B": (506, 21), "C": (367, 12), "D": (1834, 114)},
    "UniRank(optimism=loglog)": {"A": (948, 22), "B": (464, 16), "C": (339, 6), "D": (1169, 156)},
    "GRAB": {"A": (1346, 44), "B": (216, 9), "D": (1650, 100)},
    "BatchRank": {"A": (21284, 149), "B": (2795, 40), "C": (6117, 42)},
    "CTS": {"A": (1999, 266), "B": (84, 13), "C": (74, 5)},
    "TS-Cascade": {"A": (3968, 589), "B": (129, 7)},
    "CascadeKL-UCB": {"A": (1946, 270), "B": (183, 7)},
    "dcmKL-UCB": {"C": (202, 3)},
    "CTS(feedback=last)": {"C": (161, 5)},
    "PBM-UCB": {"A": (652, 13), "D": (1014, 25)},
    "PBM-PIE": {"A": (347, 28), "D": (500, 40)},
    "PBM-TS": {"A": (143, 19)},
    "BC-MPTS": {"A": (131, 8), "D": (718, 233)},
    "PB-MHB": {"A": (171, 9), "D": (460, 33)},
}
SETTINGS = {
    letter: Published(
        problem, HORIZON, {p: row[letter] for p, row in INDEPENDENT.items() if letter in row}
    )
    for letter, problem in PROBLEMS.items()
} | {
    "square": Published(
        f"PBM(w={_W},e=1/0.9/0.8/0.7/0.6/0.5/0.4/0.3/0.2/0.1,base=2>1>4>3>6>5>8>7>10>9)",
        HORIZON,
        {"BubbleRank": (2053, 5), "TopRank": (455, 9)},
    ),
    "cascade": Published(
        "B_LB(L=16,K=2,p=0.2,gap=0.15,gamma=1)",
        HORIZON,
        {"CascadeKL-UCB": (349, 6), "CTS": (154, 4), "TS-Cascade": (386, 5), "TopRank": (527, 19)},
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
SECONDS = {"A": 330, "B": 100, "C": 100, "D": 130, "square": 40, "cascade": 40, "lagree": 10}


def _experiment(name: str, setting: Published) -> Experiment:
    return Experiment(
        f"modern-{name}",
        f"setting {name}",
        f"regret on {setting.problem.partition('(')[0]}, beside independent prototypes",
        (Part(f"modern-{name}", (setting.problem,), tuple(setting.independent)),),
        tuple(
            Claim(policy, regret(Cell(policy)), *value, source="independent prototype")
            for policy, value in setting.independent.items()
        ),
        paper="the list policies of today",
        horizon=setting.horizon,
        runs=RUNS,
        seconds=SECONDS[name],
        figure=curves(),
    )


EXPERIMENTS = tuple(_experiment(name, setting) for name, setting in SETTINGS.items())
