"""Verdicts follow from the distance to what is published, in standard errors and in percent."""

import math

import numpy as np
import pytest

from logeval.papers.experiment import Claim
from logeval.papers.measures import Measured, mean, ratio
from logeval.papers.verdicts import NOT, REPRODUCED, SHORTER, SHOWN, UNDECIDED, judge, verdict_of
from logeval.papers.words import published


def nothing(outcome):
    raise AssertionError


def number(value, stderr, **more):
    return Claim("a number", "Table 1", nothing, value, stderr, **more)


def words(low=None, high=None, published=None):
    return Claim("words", "section 5", nothing, published, low=low, high=high)


@pytest.mark.parametrize(
    ("claim", "ours", "verdict"),
    [
        (number(100.0, 3.0), Measured(114.0, 4.0), REPRODUCED),  # 2.8 standard errors
        (number(100.0, 3.0), Measured(116.0, 4.0), NOT),  # 3.2, and 16%
        (number(100.0, 0.1), Measured(95.5, 0.1), "within 5%"),
        (number(100.0, 0.0), Measured(100.0), REPRODUCED),
        (words(high=1.0), Measured(0.9, 0.04), REPRODUCED),
        (words(high=1.0), Measured(0.9, 0.2), UNDECIDED),  # not told apart
        (words(high=1.0), Measured(1.0, 0.0), REPRODUCED),
        (words(high=1.0), Measured(0.9, 0.04, 20), REPRODUCED),  # 2.5 standard errors
        (words(high=1.0), Measured(0.9, 0.04, 2), UNDECIDED),  # Student: 13 of them are needed
        (words(high=1.0), Measured(0.5, math.nan, 1), UNDECIDED),  # one run
        (number(100.0, 3.0), Measured(100.0, math.nan, 1), UNDECIDED),
        (words(high=1.0), Measured(1.3, 0.2), UNDECIDED),
        (words(high=1.0), Measured(1.3, 0.1), NOT),
        (words(high=1.0), Measured(1.05, 0.01), "within 5%"),
        (words(2.5, 3.5, 3.0), Measured(3.4, 0.01), REPRODUCED),
        (words(2.5, 3.5, 3.0), Measured(20.0, 1.0), NOT),
        (words(low=1.0), Measured(math.nan), NOT),
        (number(1.0, 0.1, judged=False), Measured(9.0, 0.1), SHOWN),
    ],
)
def test_verdict(claim, ours, verdict):
    assert judge(claim, ours).verdict == verdict


def test_at_another_horizon_nothing_is_judged():
    found = judge(number(100.0, 3.0), Measured(100.0, 1.0), same_horizon=False)
    assert found.verdict == SHORTER
    assert math.isnan(found.distance)
    assert verdict_of([found]) == SHORTER


def test_the_distance_is_in_standard_errors_of_both():
    assert judge(number(100.0, 3.0), Measured(110.0, 4.0)).distance == pytest.approx(2.0)
    assert judge(words(2.5, 3.5, 3.0), Measured(3.2, 0.1)).distance == pytest.approx(2.0)
    assert judge(words(high=1.0), Measured(1.3, 0.1)).distance == pytest.approx(3.0)
    assert math.isnan(judge(words(high=1.0), Measured(0.3, 0.1)).distance)


def test_an_experiment_is_reproduced_when_all_its_claims_are():
    good = judge(words(high=1.0), Measured(0.9, 0.02))
    near = judge(words(high=1.0), Measured(1.05, 0.01))
    assert verdict_of([good, good]) == REPRODUCED
    assert verdict_of([good, near]) == "1 of 2 reproduced, 1 within 5%"


def test_what_is_published_is_told_with_its_ends():
    for claim, said in (
        (number(1290.1, 11.3), "1,290 ± 11.3"),
        (words(2.5, 3.5, 3.0), "3.00 (2.50 to 3.50)"),
        (words(high=0.5, published=0.5), "at most 0.50"),
        (words(low=1.0, high=1.0), "1.00"),
    ):
        assert published(judge(claim, Measured(1.0))) == said


def test_ratios_have_the_standard_error_of_the_delta_method():
    """Compared with the spread of many ratios of small samples."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(30, 3, (4000, 12)), rng.normal(10, 1, (4000, 12))
    a += 2 * (b - 10)  # runs share their users
    errors = [ratio(x, y) for x, y in zip(a, b, strict=True)]
    spread = (a.mean(axis=1) / b.mean(axis=1)).std()
    assert sum(e.stderr for e in errors) / len(errors) == pytest.approx(spread, rel=0.05)
    assert ratio(a[0], b[0]).value == pytest.approx(a[0].mean() / b[0].mean())
    assert mean(a[0]).stderr == pytest.approx(a[0].std(ddof=1) / 12**0.5)
