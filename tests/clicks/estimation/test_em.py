"""EM climbs the penalised likelihood, of each query by itself, and says when it has not arrived."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

from logeval.clicks.estimation.em import CAP, _jump
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.fitting import fit_one
from logeval.clicks.models.registry import MODELS
from tests.clicks.examples import log_likelihood, random_model, statistics_of

EM = [(name, "em") for name, model in MODELS.items() if "em" in model.methods]


@pytest.mark.parametrize(
    ("smoothing", "scope"),
    [
        ("empirical-bayes", "per-query"),
        ("empirical-bayes", "pooled"),
        ("pyclick", "pooled"),
        ("none", "per-query"),
    ],
)
@pytest.mark.parametrize(("name", "method"), EM)
def test_em_never_lowers_the_penalised_likelihood(data, name, method, smoothing, scope):
    options = Options(method, scope, smoothing, iterations=40, tolerance=0.0)
    trace = np.array(MODELS[name].fit(data, options).trace)
    assert len(trace) >= 2  # it may reach a fixed point, to the last bit, earlier
    assert np.diff(trace).min() >= -1e-9 * abs(trace[-1])


@pytest.mark.parametrize(("name", "method"), EM)
def test_the_trace_is_the_likelihood_of_the_model(data, name, method):
    """Without a prior, what EM reports is what the model's own methods give."""
    options = Options(method, smoothing="none", iterations=30, tolerance=0.0)
    trace = MODELS[name].fit(data, options).trace
    next_one = Options(method, smoothing="none", iterations=31, tolerance=0.0)
    found = log_likelihood(name, data, options)
    assert trace[-1] <= found + 1e-6
    assert found == pytest.approx(MODELS[name].fit(data, next_one).trace[-1], rel=1e-7)


def test_a_query_is_fitted_the_same_alone_and_among_others():
    rng = np.random.default_rng(4)
    models = [random_model("PBM", rng, L=12, K=5) for _ in range(3)]
    table = statistics_of(models, 300, rng)
    together = fit_one("PBM", patterns_of(table), Options("em", smoothing="pyclick"))
    mask = np.array(table["query_id"]) == 1
    alone = fit_one("PBM", patterns_of(table.filter(mask)), Options("em", smoothing="pyclick"))
    query = alone.queries[0]
    assert np.array_equal(alone.of(query).w, together.of(query).w)  # type: ignore[attr-defined]


def test_em_says_when_it_has_not_converged(data):
    fit = MODELS["PBM"].fit(data, Options("em", iterations=3))
    assert fit.converged == 0
    assert "not converged after 3 iterations in 3 of 3 fits" in fit.notes[0]


def test_a_jump_along_a_line_ends_where_the_steps_are_heading():
    """Steps that leave a share of the way, another one in each group, converge to ``end``."""
    rng = np.random.default_rng(9)
    group = {"w": np.array([0, 0, 1, 1, 1]), "e": np.array([0, 1])}
    end = {"w": rng.normal(size=5), "e": rng.normal(size=(2, 3))}
    way = {"w": rng.normal(size=5), "e": rng.normal(size=(2, 3))}
    left = np.array([0.5, 0.9])
    share = {"w": left[group["w"]], "e": left[group["e"]][:, None]}
    steps = [{n: expit(end[n] + share[n] ** k * way[n]) for n in end} for k in range(3)]
    jumped = _jump(*steps, group, 2)
    for name, z in end.items():
        assert logit(jumped[name]) == pytest.approx(z, abs=1e-9)


def test_a_jump_leaves_values_at_their_ends():
    slow = np.array([-3.0, -2.0, -1.05])  # heading far
    capped = logit(1 - CAP) - np.array([0.9, 0.3, 0.0])
    steps = [{"w": np.array([0.0, expit(z), expit(y)])} for y, z in zip(slow, capped, strict=True)]
    steps[2]["w"][1] = 1 - CAP
    jumped = _jump(*steps, {"w": np.zeros(3, int)}, 1)["w"]
    assert jumped[0] == 0.0
    assert jumped[1] == 1 - CAP
    assert jumped[2] > steps[2]["w"][2]
