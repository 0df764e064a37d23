"""Logs selected by clicks: found, not mistaken for others, and said wherever they are used."""

import numpy as np
import pytest

import logeval
from logeval.clicks.estimation.fold import fold
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.support.selection import expected_empty, selected_by_clicks
from logeval.log.log import load
from tests.clicks.examples import table_of
from tests.serps import Serp, write_serps

SAID = "the log was selected by clicks"


def test_a_log_without_an_empty_search_is_found():
    some = [(0, [1, 2], 1, 100), (0, [1, 2], 2, 50)]
    share = expected_empty(patterns_of(table_of(some)))
    assert share == pytest.approx((1 - 100 / 150) * (1 - 50 / 150))
    assert SAID in selected_by_clicks(patterns_of(table_of(some)))
    assert "leave 22% or more without" in selected_by_clicks(patterns_of(table_of(some)))


@pytest.mark.parametrize(
    "rows",
    [
        [(0, [1, 2], 1, 100), (0, [1, 2], 2, 50), (0, [1, 2], 0, 1)],  # one is empty
        [(0, [1, 2], 1, 10), (0, [1, 2], 2, 5)],  # too few to say
        [(0, [1, 2], 1, 150)],  # the first result is always clicked
        [(0, [1, 2], 3, 960), (0, [1, 2], 1, 20), (0, [1, 2], 2, 20)],  # many clicks each
    ],
)
def test_others_are_not(rows):
    assert selected_by_clicks(patterns_of(table_of(rows))) is None


def test_true_users_are_never_taken_for_selected():
    """200 logs of 300 SERPs, with two clicks a search: one in seven is empty."""
    rng = np.random.default_rng(8)
    for _ in range(200):
        clicks = rng.random((300, 5)) < 0.33
        bits, count = np.unique(clicks @ (1 << np.arange(5)), return_counts=True)
        rows = [(0, [1, 2, 3, 4, 5], int(b), int(n)) for b, n in zip(bits, count, strict=True)]
        assert expected_empty(patterns_of(table_of(rows))) is None


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    rng = np.random.default_rng(2)
    serps = []
    for n in range(900):
        A = rng.permutation(5)[:3]
        clicks = rng.random(3) < 0.25
        if clicks.any():
            serps.append(Serp(1, A.tolist(), clicks.astype(int).tolist(), n, day=n % 3))
    return load(write_serps(tmp_path_factory.mktemp("clicked"), serps))


def test_a_log_and_its_folded_clicks_agree(log):
    data = patterns_of(fold(log))
    assert expected_empty(log) == pytest.approx(expected_empty(data))


def test_describe_fit_check_and_replay_say_it(log):
    found = logeval.support(log)
    assert (found.facts[0].code, found.facts[0].level) == ("clicked-only", "stop")
    models = logeval.fit_models(log, "pbm", quiet=True, draws=4, verdict=False)
    (note,) = [n for n in models["PBM"].report["notes"] if "every SERP has a click" in n]
    assert "parameters of searches with a click" in note
    checks = logeval.check_models(models, log, simulations=80, quiet=True)
    assert any(SAID in note for note in checks.notes)
    asked = {"estimators": ["Item", "RCTR"], "quiet": True}
    estimates = logeval.replay_estimate(log, "random", rounds=0, positions=2, **asked)
    assert estimates.verdict().fact("clicked-only").value > 0
    validation = logeval.replay_validate(log, positions=[2], clips=[10.0], **asked)
    assert validation.verdict().fact("clicked-only").value > 0


def test_support_from_python(log):
    found = logeval.support(str(log.path), top=1)
    assert list(found.table["query"]) == ["1"]
    assert found.to_dict()["facts"] == found.verdict().records()
    html = found._repr_html_()
    assert "What the clicks can decide" in html
    assert "no search without a click" in html
