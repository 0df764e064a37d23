"""On average over many logs: right where the assumption holds, and wrong as expected elsewhere."""

import numpy as np
import pytest

from benchmarks.replay_coverage import USERS as BENCHMARK
from benchmarks.replay_coverage import draw
from logeval.clicks.models.dcm import DCM
from logeval.clicks.models.pbm import PBM
from logeval.replay.estimators import parse_estimators
from logeval.replay.values import Prediction, Values
from logeval.running import seeds
from tests.replay.worlds import all_lists, logged_of, plackett_luce, point_and_interval, target_of

L, K, SERPS, DRAWS = 4, 2, 3000, 60
LISTS = all_lists(L, K)
LOGGER = plackett_luce(LISTS, np.array([5.0, 3.0, 2.0, 1.5]))
WANTED = plackett_luce(LISTS, np.array([4.0, 0.3, 0.3, 4.0]))
W = np.array([0.7, 0.5, 0.3, 0.2])
USERS = {
    "PBM": PBM(items=np.arange(L), K=K, w=W, e=np.array([1.0, 0.4])),
    "DCM": DCM(items=np.arange(L), K=K, w=W, v=np.array([0.9, 0.5])),
}
NAMES = ("List", "Prefix", "IP", "PBM", "Item")
HOLDS = {"PBM": {"List", "Prefix", "IP", "PBM"}, "DCM": {"List", "Prefix"}}


def limits(users):
    """What each estimator tends to: sums over all lists, by the definition of its weights."""
    clicks = users.click_probs(LISTS)
    true = float(WANTED @ clicks.sum(axis=1))
    h, p, c = np.zeros((L, K)), np.zeros((L, K)), np.zeros((L, K))
    for a, x, y, z in zip(LISTS, LOGGER, WANTED, clicks, strict=True):
        for k in range(K):
            p[a[k], k] += x
            h[a[k], k] += y
            c[a[k], k] += x * z[k]
    e = np.array([1.0, 0.4])
    return {
        "List": true,
        "Prefix": true,
        "IP": (h * c / p).sum(),
        "PBM": (((h @ e) / (p @ e))[:, None] * c).sum(),
        "Item": ((h.sum(axis=1) / p.sum(axis=1))[:, None] * c).sum(),
    }, true


@pytest.mark.parametrize("kind", USERS)
def test_bias_is_what_the_assumption_says(kind):
    users = USERS[kind]
    chosen = parse_estimators(NAMES)
    values = np.empty((DRAWS, len(chosen)))
    rng = seeds.generator(0, "unbiased", kind)
    for i in range(DRAWS):
        A = LISTS[rng.choice(len(LISTS), SERPS, p=LOGGER)]
        logged = logged_of(A, users.sample(A, rng.random(A.shape)))
        target = target_of(logged, LISTS, WANTED)
        pbm = Prediction(np.empty(0), np.empty(0), np.array([[1.0, 0.4]]))
        values_of = Values(logged, target, chosen)
        found = values_of.values(logged.patterns.count[:, None], {"pbm": pbm})
        values[i] = [v[0, 0] for v in found.values()]
    error = values.std(axis=0, ddof=1) / np.sqrt(DRAWS)
    expected, true = limits(users)
    for i, name in enumerate(NAMES):
        assert abs(values[:, i].mean() - expected[name]) < 4.5 * error[i], name
        if name in HOLDS[kind]:
            assert expected[name] == pytest.approx(true, abs=1e-12)
        else:
            assert abs(values[:, i].mean() - true) > 6 * error[i], name


def test_the_interval_holds_the_truth_as_often_as_it_says():
    """A small benchmarks/replay_coverage.py, whose figures docs/evidence.md states."""
    chosen = parse_estimators(["IP", "Prefix"])
    inside = np.zeros(2)
    for r in range(60):
        logged, target, truth = draw(BENCHMARK["PBM"], r)
        found = point_and_interval(logged, target, chosen, 100, seed=r)
        inside += [abs(v - truth) <= half for v, half in found.values()]
    assert (inside >= 51).all()  # P(fewer than 51 of 60 | .95) < 0.001
