"""Verdicts follow from the distance to what is published, in standard errors and in percent."""

import math
from dataclasses import replace

import numpy as np
import pytest

from reproduction import measures
from reproduction.data import Claim, named
from reproduction.measures import Measured, jackknife, mean, ratio
from reproduction.page import published, rows_of
from reproduction.run import Outcome
from reproduction.verdicts import (
    AGREES,
    DIFFERS,
    NOT,
    REPRODUCED,
    SHORTER,
    SHOWN,
    UNDECIDED,
    judge,
    judge_cases,
)


def number(value, stderr, **more):
    more |= {"place": "Table 1", "published": value, "stderr": stderr}
    return Claim(text="a number", cases=(), **more)


def words(low=None, high=None, published=None):
    return Claim(text="words", cases=(), place="s. 5", low=low, high=high, published=published)


@pytest.mark.parametrize(
    ("claim", "ours", "verdict"),
    [
        (number(100.0, 3.0), Measured(114.0, 4.0), REPRODUCED),  # 2.8 standard errors
        (number(100.0, 3.0), Measured(116.0, 4.0), NOT),  # 3.2, and 16%
        (number(100.0, 0.1), Measured(95.5, 0.1), "differs by 5%"),
        (number(100.0, 0.0), Measured(100.0), REPRODUCED),
        (number(100.0, 3.0, source="a program"), Measured(114.0, 4.0), AGREES),
        (number(100.0, 3.0, source="a program"), Measured(116.0, 4.0), DIFFERS),
        (words(high=1.0), Measured(0.9, 0.03), REPRODUCED),
        (words(high=1.0), Measured(0.9, 0.2), UNDECIDED),  # not told apart
        (words(high=1.0), Measured(1.0, 0.0), REPRODUCED),
        (words(high=1.0), Measured(0.9, 0.03, 20), REPRODUCED),  # 3.3 standard errors of 2.9
        (words(high=1.0), Measured(0.92, 0.03, 10), UNDECIDED),  # 2.7 of 3.2
        (words(high=1.0), Measured(0.9, 0.03, 2), UNDECIDED),  # Student: 64 of them are needed
        (words(high=1.0), Measured(0.5, math.nan, 1), UNDECIDED),  # one run
        (number(100.0, 3.0), Measured(100.0, math.nan, 1), UNDECIDED),
        (words(high=1.0), Measured(1.3, 0.2), UNDECIDED),
        (words(high=1.0), Measured(1.3, 0.1), NOT),
        (words(high=1.0), Measured(1.05, 0.01), NOT),  # not below, by however little
        (words(2.5, 3.5, 3.0), Measured(3.4, 0.01), REPRODUCED),
        (words(2.5, 3.5, 3.0), Measured(3.4, 0.1), UNDECIDED),
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


def test_the_distance_is_in_standard_errors_of_both():
    assert judge(number(100.0, 3.0), Measured(110.0, 4.0)).distance == pytest.approx(2.0)
    assert judge(words(2.5, 3.5, 3.0), Measured(3.2, 0.1)).distance == pytest.approx(-3.0)
    assert judge(words(high=1.0), Measured(1.3, 0.1)).distance == pytest.approx(3.0)
    assert math.isnan(judge(words(high=1.0), Measured(0.3)).distance)


def outcome_of(*claims):
    """Claims that are measured on nothing."""
    return Outcome(replace(named("dcm-3b"), claims=claims), named("dcm-3b").horizon, 20)


def measured(*values):
    """Cases from value and standard error."""
    return tuple(["given", *m] for m in values)


@pytest.fixture(autouse=True)
def _given(monkeypatch):
    monkeypatch.setitem(measures.MEASURES, "given", lambda outcome, *m: Measured(*m))


@pytest.mark.parametrize(
    ("cases", "decides", "verdict"),
    [
        ([(0.5, 0.01), (0.9, 0.01)], 0.9, REPRODUCED),  # the nearest to the end
        ([(0.9, 0.01), (0.8, 0.2)], 0.8, UNDECIDED),  # by standard errors, not by value
        ([(1.2, 0.01), (0.8, 0.2)], 1.2, NOT),
        ([(1.2, 0.01), (1.1, 0.001)], 1.1, NOT),
    ],
)
def test_the_hardest_case_decides(cases, decides, verdict):
    claim = replace(words(high=1.0), cases=measured(*cases))
    found = judge_cases(claim, outcome_of(claim))
    assert (found.ours.value, found.verdict) == (decides, verdict)


def test_what_is_not_published_stands_apart():
    claims = [number(10.0, 1.0), number(10.0, 1.0, source="a program")]
    claims = [replace(c, cases=(["given", 10.0, 1.0],)) for c in claims]
    rows = rows_of(outcome_of(*claims))
    assert [(r["by"], r["verdict"]) for r in rows] == [("", REPRODUCED), ("a program", AGREES)]


def test_what_is_published_is_told_with_its_ends():
    for claim, said in (
        (number(1290.1, 11.3), "1,290 ± 11.3"),
        (words(2.5, 3.5, 3.0), "3.00 (2.50 to 3.50)"),
        (words(high=0.5, published=0.5), "at most 0.50"),
        (words(low=1.0, high=1.0), "1.00"),
    ):
        assert published(claim) == said


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


def test_jackknife_of_a_mean_is_its_standard_error():
    x = np.random.default_rng(2).normal(5.0, 1.0, 15)
    found = jackknife(lambda means: float(means[0]), x[:, None])
    assert found == pytest.approx(mean(x))
