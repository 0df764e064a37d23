"""How the order of the policies depends on the simulator."""

import pandas as pd
import pyarrow as pa
import pytest

from logeval.evaluation.results import Runs
from logeval.storage.schemas import RUNS


def runs_of(regret, queries=4):
    """Runs with the given mean regret of (simulator, policy), the more the higher the query."""
    rows = [
        {
            "simulator": simulator, "track": "ranking", "policy": policy, "query": str(q),
            "draw": 0, "run": run, "t": 10, "regret": mean + q, "reward": 1.0,
            "optimal_reward": 2.0, "clicks": 1, "optimal_steps": 0,
        }
        for (simulator, policy), mean in regret.items()
        for q in range(queries)
        for run in range(3)
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    columns = {f.name: frame[f.name] if f.name in frame else pa.nulls(len(frame)) for f in RUNS}
    return Runs(pa.table(columns).cast(RUNS))


def test_policies_are_compared_on_what_all_simulators_have():
    regret = {("DCM", "a"): 1, ("DCM", "b"): 2, ("DCM", "c"): 5, ("DCM", "Random"): 9}
    regret |= {("PBM", "a"): 2, ("PBM", "b"): 1, ("PBM", "c"): 3, ("PBM", "only here"): 5}
    table = runs_of(regret).by_simulator()["ranking"]
    assert table.index.tolist() == ["a", "b", "c"]  # without the ends, and what one lacks
    assert table["DCM"].tolist() == pytest.approx([2.5, 3.5, 6.5])  # query 1.5 on average
    assert table["PBM"].tolist() == pytest.approx([3.5, 2.5, 4.5])


@pytest.mark.parametrize(
    "regret", [{("DCM", "a"): 1, ("DCM", "b"): 2}, {("A", "a"): 1, ("B", "a"): 1}]
)
def test_one_simulator_or_one_policy_has_nothing_to_compare(regret):
    assert runs_of(regret).by_simulator() == {}
