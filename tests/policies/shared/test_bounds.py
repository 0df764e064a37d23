import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from logeval.policies.shared import bounds

inside = st.floats(1e-6, 1 - 1e-6)
small = st.floats(1e-6, 30.0)


@settings(deadline=None)
@given(p=inside, delta=small)
def test_kl_upper_is_the_root_that_a_root_finder_finds(p, delta):
    q = bounds.kl_upper(p, delta)
    top = math.nextafter(1.0, 0.0)
    if bounds.kl(p, top) <= delta:
        assert q == pytest.approx(1.0, abs=1e-9)
    else:
        assert q == pytest.approx(brentq(lambda x: bounds.kl(p, x) - delta, p, top), abs=1e-9)


@settings(deadline=None)
@given(p=inside, delta=small)
def test_kl_lower_is_the_root_that_a_root_finder_finds(p, delta):
    q = bounds.kl_lower(p, delta)
    bottom = math.ulp(0.0)
    if bounds.kl(p, bottom) <= delta:
        assert q == pytest.approx(0.0, abs=1e-9)
    else:
        root = brentq(lambda x: bounds.kl(p, x) - delta, bottom, p)
        assert q == pytest.approx(root, abs=1e-9)


@settings(deadline=None)
@given(p=inside, delta=small)
def test_kl_lower_mirrors_kl_upper(p, delta):
    assert bounds.kl_lower(p, delta) == pytest.approx(1 - bounds.kl_upper(1 - p, delta), abs=1e-9)
    assert bounds.kl_lower(p, delta) <= p <= bounds.kl_upper(p, delta)


@settings(deadline=None)
@given(delta=st.floats(0.0, 30.0))
def test_kl_bounds_at_zero_and_one_have_closed_forms(delta):
    assert bounds.kl_upper(0.0, delta) == pytest.approx(1 - math.exp(-delta), abs=1e-12)
    assert bounds.kl_upper(1.0, delta) == 1.0
    assert bounds.kl_lower(1.0, delta) == pytest.approx(math.exp(-delta), abs=1e-12)
    assert bounds.kl_lower(0.0, delta) == 0.0


def test_kl_divergence_worked_out_by_hand():
    assert bounds.kl(0.5, 0.25) == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3))
    assert bounds.kl(0.0, 0.5) == pytest.approx(math.log(2))
    assert bounds.kl(0.3, 0.3) == 0.0
    assert bounds.kl(0.3, 1.0) == math.inf
    assert bounds.kl(0.3, 0.0) == math.inf


def test_zero_budget_gives_the_mean():
    assert bounds.upper(bounds.KL, 3.0, 10.0, 0.0) == 0.3
    assert bounds.upper(bounds.UCB1, 3.0, 10.0, 0.0) == 0.3


def test_ucb1_radius_is_that_of_the_paper():
    t, T = 101, 25.0
    U = bounds.upper(bounds.UCB1, 5.0, T, bounds.ucb1_budget(t))
    assert U == pytest.approx(0.2 + math.sqrt(1.5 * math.log(100) / T))


@settings(deadline=None)
@given(kind=st.sampled_from([bounds.KL, bounds.UCB1]), T=st.integers(1, 10_000),
       share=st.floats(0, 0.999), b=st.floats(0.01, 25.0))  # fmt: skip
def test_budget_at_inverts_the_bound(kind, T, share, b):
    S = float(int(share * T))
    U = bounds.upper(kind, S, float(T), b)
    if U < 1 - 1e-7 or kind == bounds.UCB1:
        assert bounds.budget_at(kind, S, float(T), U) == pytest.approx(b, rel=1e-6, abs=1e-6)


def test_budget_is_zero_where_it_is_negative_or_undefined_and_never_falls():
    assert [bounds.kl_budget(t) for t in (1, 2)] == [0.0, 0.0]
    assert bounds.kl_budget(3) == pytest.approx(math.log(3) + 3 * math.log(math.log(3)))
    assert bounds.ucb1_budget(1) == bounds.ucb1_budget(2) == 0.0
    for budget in (bounds.kl_budget, bounds.ucb1_budget):
        assert (np.diff([budget(t) for t in range(1, 2000)]) >= 0).all()


@pytest.mark.parametrize("T", [2.2e7, 1e9, 1e12])
@pytest.mark.parametrize("left", [1, 3, 20])
@pytest.mark.parametrize("b", [0.5, 17.0, 60.0])
def test_bounds_of_very_many_observations_near_zero_and_one(T, left, b):
    # the divergence of rare events is that of Poisson means: left log(left / w) - left + w = b
    def excess(w):
        return left * math.log(left / w) - left + w - b

    below = brentq(excess, math.ulp(0.0), left)
    above = brentq(excess, left, left + 2 * b + 10 * math.sqrt(b * left) + 10)
    tolerance = 3e-3 + T * 1e-15  # in counts; a bound near 1 is known to the rounding of 1
    assert T * bounds.kl_lower(left / T, b / T) == pytest.approx(below, abs=tolerance)
    assert T * (1 - bounds.kl_upper((T - left) / T, b / T)) == pytest.approx(below, abs=tolerance)
    assert T * bounds.kl_upper(left / T, b / T) == pytest.approx(above, rel=1e-4, abs=tolerance)
