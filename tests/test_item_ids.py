"""Item ids are names: with others, in the same order, every stage gives the same numbers."""

import numpy as np
import pandas as pd
import pytest

import logeval
from logeval.running import seeds
from tests.serps import Serp, write_serps

IDS = {"negative": -2, "hashes": -(2**62)}  # -1 is one of them; floats cannot hold the others


def logged(folder, first):
    """600 SERPs of two queries with lists of 2 and 3 items; better items are higher up."""
    rng = seeds.generator(0, "ids")
    serps = []
    for n in range(600):
        query, K = n % 2, 2 + (n // 2) % 2
        order = np.argsort(np.arange(6) + 2.0 * rng.random(6))[:K]
        clicks = (rng.random(K) < 0.5 / (1.0 + order)).astype(int).tolist()
        serps.append(
            Serp(query, (first + order).tolist(), clicks, session_id=n, serp_id=n, day=n % 7)
        )
    return write_serps(folder, serps)


def numbers(folder, first):
    """What each stage says of the log, without the ids."""
    log = logged(folder / "log", first)
    models = folder / "models"
    fitted = logeval.fit_models(log, models=["dcm", "pbm"], holdout=0.5, out=models, quiet=True)
    read = logeval.read_models(models)
    runs = logeval.evaluate(
        models, policies=["BubbleRank(items=base)", "dcmKL-UCB"], horizon=200, runs=2, quiet=True
    )
    found = {
        "base": [a - first for a in read.fitted["DCM"].base],
        "parameters": read.table()[["value", "low", "high"]],
        "scores": logeval.score(fitted, log).coverage,
        "regret": runs.summary(),
        "replay": logeval.replay_estimate(
            log,
            target=["best:dcm"],
            estimators=["IP", "DR(dcm)"],
            positions=2,
            rounds=0,
            quiet=True,
            force=True,
        ).table,
    }
    return found


@pytest.mark.parametrize("ids", IDS)
def test_other_ids_give_the_same_numbers(tmp_path, ids):
    expected = numbers(tmp_path / "plain", 1)
    found = numbers(tmp_path / ids, IDS[ids])
    for a, b in zip(expected.pop("base"), found.pop("base"), strict=True):
        assert a.tolist() == b.tolist()
    for name, table in expected.items():
        pd.testing.assert_frame_equal(found[name], table, obj=name)
