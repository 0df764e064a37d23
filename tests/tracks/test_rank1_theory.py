import math

import numpy as np
import pytest

from logeval.tracks.rank1_theory import rank1_hardness, rank1_upper


def test_hardness_and_theorem_1_of_rank1elimkl_by_hand():
    u, v = np.array([0.75, 0.25, 0.25]), np.array([0.75, 0.25])
    hard = rank1_hardness(u, v)
    assert hard == pytest.approx((1.25 / 3, 0.75, 1.25 / 3))
    expected = 160 / hard.mu**2 * (5 / 0.5) * math.log(1000) + (6 * math.e + 82) * 5
    assert rank1_upper(u, v, 1000) == pytest.approx(expected)
    assert rank1_upper(np.full(2, 0.5), v, 1000) == math.inf
