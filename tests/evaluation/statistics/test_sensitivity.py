"""How the order of the policies depends on the simulator."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

from logeval.errors import LogevalError
from logeval.evaluation.results import Runs
from logeval.evaluation.statistics.sensitivity import sensitivity, tau
from logeval.storage.schemas import RUNS


def runs_of(regret, queries=4, noise=0.0):
    """Runs with the given mean regret of (simulator, policy)."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "simulator": simulator, "track": "ranking", "policy": policy, "query": str(q),
            "draw": 0, "run": run, "t": 10, "regret": mean + noise * rng.normal(), "reward": 1.0,
            "optimal_reward": 2.0, "clicks": 1, "optimal_steps": 0,
        }
        for (simulator, policy), mean in regret.items()
        for q in range(queries)
        for run in range(3)
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    columns = {f.name: frame[f.name] if f.name in frame else pa.nulls(len(frame)) for f in RUNS}
    return Runs(pa.table(columns).cast(RUNS))


def test_tau_counts_pairs():
    """4 policies, 6 pairs, of which one is in another order: (5 - 1) / 6."""
    assert tau(np.array([1, 2, 3, 4]), np.array([1, 2, 4, 3])) == pytest.approx(4 / 6)
    x, y = np.random.default_rng(1).integers(5, size=(2, 40, 7))  # with ties
    expected = [stats.kendalltau(*both).statistic for both in zip(x, y, strict=True)]
    assert tau(x, y) == pytest.approx(expected)


def test_orders_are_compared_between_simulators():
    regret = {("DCM", "a"): 1, ("DCM", "b"): 2, ("DCM", "c"): 3, ("DCM", "Random"): 9}
    regret |= {("PBM", "a"): 1, ("PBM", "b"): 3, ("PBM", "c"): 2, ("PBM", "only here"): 5}
    found = sensitivity(runs_of(regret))
    assert list(found.regret.index) == ["a", "b", "c"]  # without the ends, and what one lacks
    row = found.tau.iloc[0]
    assert (row["a"], row["b"]) == ("DCM", "PBM")
    assert row["tau"] == row["low"] == row["high"] == pytest.approx(1 / 3)


def test_the_interval_grows_with_the_noise():
    regret = {(s, p): m for s in ("DCM", "PBM") for p, m in [("a", 1), ("b", 2), ("c", 3)]}
    row = sensitivity(runs_of(regret, noise=5.0)).tau.iloc[0]
    assert row["low"] < row["high"]


def test_one_simulator_is_refused():
    with pytest.raises(LogevalError, match="fit several click models"):
        sensitivity(runs_of({("DCM", "a"): 1, ("DCM", "b"): 2}))
