import numpy as np
import pytest
from scipy import stats

from logeval.policies.shared.draws import gamma, stream, top_betas, uniform

N = 20_000


def test_a_stream_is_uniform_and_streams_are_independent():
    u = np.random.default_rng(0).random(200)
    x = np.array([[uniform(stream(a), k) for k in range(200)] for a in u])
    assert stats.kstest(x.ravel(), "uniform").pvalue > 1e-3
    for one in (x, x.T):
        lag = np.corrcoef(one[:-1].ravel(), one[1:].ravel())[0, 1]
        assert abs(lag) < 4 / np.sqrt(x.size)


@pytest.mark.parametrize("a", [1.0, 1.5, 7.0, 3000.0])
def test_gammas(a):
    drawn, k = np.empty(N), 0
    for i in range(N):
        drawn[i], k = gamma(17, k, a)
    assert k < 3.3 * N  # hardly any is rejected
    assert stats.kstest(drawn, stats.gamma(a).cdf).pvalue > 1e-3


def test_the_largest_betas_come_as_often_as_they_should():
    a, b = np.array([1.0, 4.0, 40.0, 2.0]), np.array([1.0, 5.0, 60.0, 7.5])
    rng, held, value = np.random.default_rng(1), np.zeros(2, dtype=np.int64), np.zeros(2)
    ours = np.zeros((4, 4))
    for u in rng.random(N):
        top_betas(u, a, b, held, value)
        ours[held[0], held[1]] += 1
    theirs = np.argsort(-rng.beta(a, b, (20 * N, 4)), axis=1)[:, :2]
    expected = np.zeros((4, 4))
    np.add.at(expected, tuple(theirs.T), 1 / 20)
    seen = expected > 0
    assert (ours[~seen] == 0).all()
    assert stats.chisquare(ours[seen], expected[seen]).pvalue > 1e-3
