"""Estimators: EM climbs, agrees with direct maximisation, and its intervals hold the truth."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from logeval.clicks.estimation.chain_inference import tally
from logeval.clicks.estimation.chain_information import gradient_rows
from logeval.clicks.estimation.estimates import Options, around
from logeval.clicks.estimation.inverse import invert_small
from logeval.clicks.estimation.patterns import Patterns, patterns_of
from logeval.clicks.estimation.priors import fit_beta
from logeval.clicks.fit import fit_one
from logeval.clicks.models.dcm import DCM
from logeval.clicks.models.registry import MODELS
from tests.clicks.examples import all_patterns, random_model, statistics_of

RAW = {"last_termination": "raw"}
EM = [(name, "em") for name, model in MODELS.items() if "em" in model.methods]


@pytest.fixture(scope="module")
def data() -> Patterns:
    """Clicks of a DCM with low termination, which no other model explains exactly."""
    rng = np.random.default_rng(5)
    models = [random_model("DCM", rng, L=8, K=5, low=0.1, high=0.6) for _ in range(3)]
    return patterns_of(statistics_of(models, 400, rng))


def log_likelihood(name: str, data: Patterns, options: Options) -> float:
    """ln P of the data under the fitted model, from its public methods."""
    fitted = fit_one(name, data, options)
    total = 0.0
    for q, query in enumerate(data.queries):
        rows = data.query == q
        A = data.items[rows] - data.offsets[q]
        total += data.count[rows] @ fitted.of(query).log_likelihood(A, data.clicks[rows])
    return float(total)


@pytest.mark.parametrize("scope", ["per-query", "pooled"])
@pytest.mark.parametrize("smoothing", ["empirical-bayes", "pyclick", "none"])
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
    assert trace[-1] <= log_likelihood(name, data, options) + 1e-6
    assert log_likelihood(name, data, options) == pytest.approx(
        MODELS[name].fit(data, next_one).trace[-1], rel=1e-7
    )


@pytest.mark.parametrize("smoothing", ["empirical-bayes", "pyclick"])
@pytest.mark.parametrize("scope", ["per-query", "pooled"])
def test_em_and_mle_of_the_pbm_end_at_the_same_likelihood(data, scope, smoothing):
    em = MODELS["PBM"].fit(data, Options("em", scope, smoothing, tolerance=1e-12))
    mle = MODELS["PBM"].fit(data, Options("mle", scope, smoothing))
    assert mle.trace[-1] == pytest.approx(em.trace[-1], rel=1e-6)


@pytest.mark.parametrize("scope", ["per-query", "pooled"])
def test_exact_dcm_em_has_at_least_the_likelihood_of_counting(data, scope):
    counted = log_likelihood("DCM", data, Options("mle", scope, "none"))
    exact = log_likelihood("DCM", data, Options("em", scope, "none"))
    assert exact > counted + 10


def test_tally_is_the_average_over_all_ways_the_user_may_have_left():
    """Chain inference against brute force over the position where the user left."""
    rng = np.random.default_rng(1)
    K, skip = 4, 0.7
    w, stay = rng.uniform(0.1, 0.9, K), rng.uniform(0.1, 0.9, K)
    for c in all_patterns(K):
        weights, examined = [], []
        for stop in range(K):  # the last examined position
            if c[stop + 1 :].any():
                continue
            p = 1.0
            for k in range(stop + 1):
                p *= w[k] if c[k] else 1 - w[k]
                go = stay[k] if c[k] else skip
                if k < K - 1:
                    p *= go if k < stop else 1 - go
            weights.append(p)
            examined.append(np.arange(K) <= stop)
        total = np.sum(weights)
        expected = np.array(weights) @ np.array(examined, dtype=float) / total
        one = Patterns(
            ["q"], np.zeros(1, int), np.arange(K)[None], c[None] > 0, np.array([K]),  # type: ignore[list-item]
            np.ones(1), np.arange(K), np.array([0, K]),
        )  # fmt: skip
        t = tally(
            one, np.zeros(1, int), np.ones(1, bool), w, stay, np.ones((1, K)), np.array([skip])
        )
        assert t.examined == pytest.approx(expected)
        assert t.log_likelihood[0] == pytest.approx(np.log(total))


def test_gradients_agree_with_differences_of_the_likelihood():
    rng = np.random.default_rng(2)
    K = 4
    patterns = all_patterns(K) > 0
    P = len(patterns)
    w, stay = rng.uniform(0.1, 0.9, (P, K)), rng.uniform(0.1, 0.9, (P, K))
    skip, length = np.full(P, 0.8), np.full(P, K)
    last = np.where(patterns, np.arange(K), -1).max(axis=1)

    def likelihood(w, stay, skip):
        out = np.empty(P)
        for p in range(P):
            one = Patterns(
                ["q"], np.zeros(1, int), np.arange(K)[None], patterns[p : p + 1], np.array([K]),  # type: ignore[list-item]
                np.ones(1), np.arange(K), np.array([0, K]),
            )  # fmt: skip
            t = tally(one, np.zeros(1, int), np.ones(1, bool), w[p], stay[p], np.ones((1, K)),
                      skip[p : p + 1])  # fmt: skip
            out[p] = t.log_likelihood[0]
        return out

    dw, dstay, dskip = np.empty((P, K)), np.empty((P, K)), np.empty(P)
    gradient_rows(w, stay, skip, patterns, length, last, dw, dstay, dskip)
    h = 1e-6
    assert dskip == pytest.approx(
        (likelihood(w, stay, skip + h) - likelihood(w, stay, skip - h)) / (2 * h), abs=1e-6
    )
    for k in range(K):
        step = h * (np.arange(K) == k)
        up, down = likelihood(w + step, stay, skip), likelihood(w - step, stay, skip)
        assert dw[:, k] == pytest.approx((up - down) / (2 * h), abs=1e-6)
        up, down = likelihood(w, stay + step, skip), likelihood(w, stay - step, skip)
        assert dstay[:, k] == pytest.approx((up - down) / (2 * h), abs=1e-6)


def test_small_matrices_are_inverted():
    rng = np.random.default_rng(0)
    for N in (1, 2, 7, 40):
        X = rng.normal(size=(N, N + 3))
        J, inverse = X @ X.T, np.empty((N, N))
        assert invert_small(J, inverse)
        assert inverse == pytest.approx(np.linalg.inv(J), rel=1e-6)
    assert not invert_small(np.array([[1.0, 2.0], [2.0, 1.0]]), np.empty((2, 2)))


def inside(fit, data, truths, field):
    """Whether each true value of an item parameter lies in its interval."""
    estimate = fit.estimates[field]
    out = []
    for q, query in enumerate(data.queries):
        span = slice(data.offsets[q], data.offsets[q + 1])
        true = getattr(truths[query.query_id], field)[data.item_ids[span] - 100]
        out.extend((estimate.low[span] <= true) & (true <= estimate.high[span]))
    return np.array(out)


@pytest.mark.parametrize(
    ("name", "method", "fields", "lowest"),
    [
        ("DCTR", "counting", ["ctr"], 0.92),
        ("CM", "counting", ["w"], 0.92),
        ("PBM", "em", ["w"], 0.90),
        ("DCM", "em", ["w"], 0.91),
        ("SDBN", "em", ["w", "s"], 0.85),
        ("CCM", "em", ["w"], 0.90),
    ],
)
def test_intervals_hold_the_truth_as_often_as_they_should(name, method, fields, lowest):
    rng = np.random.default_rng(11)
    truths = []
    for _ in range(6):
        model = random_model(name, rng, L=20, K=6, low=0.3, high=0.8)
        values = {p.field: getattr(model, p.field) for p in model.PARAMETERS}
        values |= {field: rng.beta(2, 5, 20) for field in fields}
        if name == "PBM":
            values["e"] = np.sort(values["e"])[::-1] / values["e"].max()
        truths.append(type(model)(items=model.items, K=6, **values))
    data = patterns_of(statistics_of(truths, 1500, rng))
    fit = MODELS[name].fit(data, Options(method))
    for field in fields:
        covered = inside(fit, data, truths, field).mean()
        assert lowest <= covered <= 0.995, f"{name} {field}: {covered:.3f}"


def test_counting_takes_the_last_click_for_satisfaction_and_is_biased():
    """What Guo's estimate costs: with weak termination it is far above the truth, EM is not."""
    rng = np.random.default_rng(3)
    model = random_model("DCM", rng, L=20, K=6, low=0.2, high=0.4)
    data = patterns_of(statistics_of([model], 5000, rng))
    by_counting = MODELS["DCM"].fit(data, Options("mle")).estimates["v"]
    by_em = MODELS["DCM"].fit(data, Options("em")).estimates["v"]
    assert (by_counting.low[0, :-1] > model.v[:-1]).all()
    errors = [np.abs(v.value[0, :-1] - model.v[:-1]) for v in (by_em, by_counting)]
    assert (errors[0] < errors[1] / 2).all()


def test_the_last_termination_is_the_previous_one_and_raw_is_kept(data):
    fit = MODELS["DCM"].fit(data, Options("mle"))
    v = fit.estimates["v"]
    assert v.value[:, -1] == pytest.approx(v.value[:, -2])
    raw = MODELS["DCM"].fit(data, Options("mle", chosen=RAW)).estimates["v"].value
    assert v.raw[:, -1] == pytest.approx(raw[:, -1])
    assert raw[:, -1].min() > 0.9
    assert any("v_K is not identified" in note for note in fit.notes)


@pytest.mark.parametrize("method", ["mle", "em"])
@pytest.mark.parametrize("lengths", [(3, 10), (10, 11)])
def test_the_end_of_a_shorter_list_says_nothing_of_termination(method, lengths):
    rng = np.random.default_rng(12)
    v = np.full(max(lengths), 0.3)
    truth = DCM(items=np.arange(100, 114), K=max(lengths), w=rng.beta(2, 5, 14), v=v)
    tables = []
    for K, n in zip(lengths, (4000, 4000) if lengths[0] == 3 else (4000, 1), strict=True):
        cut = DCM(items=truth.items, K=K, w=truth.w, v=v[:K])
        tables.append(statistics_of([cut], n, rng, spread=10.0))
    data = patterns_of(pa.concat_tables(tables))
    fit = MODELS["DCM"].fit(data, Options(method))
    estimate = fit.estimates["v"]
    value = estimate.value[0]
    assert value[2] < 0.6
    assert value.max() < (0.9 if method == "mle" else 0.6)
    assert value[-1] == value[-2]
    plain = MODELS["DCM"].fit(data, Options(method, chosen=RAW)).estimates["v"].value
    replaced = np.isfinite(estimate.raw[0])
    assert replaced[-1]
    assert estimate.raw[0][replaced] == pytest.approx(plain[0][replaced])
    assert value[~replaced] == pytest.approx(plain[0][~replaced])


def test_counting_of_the_sdbn_says_what_it_takes_for_satisfied(data):
    notes = MODELS["SDBN"].fit(data, Options("counting")).notes
    assert any("end of a list" in note for note in notes)


def test_the_pbm_is_scaled_to_a_largest_examination_of_one(data):
    fit = MODELS["PBM"].fit(data, Options("em"))
    assert fit.estimates["e"].value.max(axis=1) == pytest.approx(1.0)
    assert fit.estimates["w"].value.max() <= 1.0


def test_a_query_is_fitted_the_same_alone_and_among_others():
    rng = np.random.default_rng(4)
    models = [random_model("PBM", rng, L=12, K=5) for _ in range(3)]
    table = statistics_of(models, 300, rng)
    together = fit_one("PBM", patterns_of(table), Options("em", smoothing="pyclick"))
    mask = np.array(table["query_id"]) == 1
    alone = fit_one("PBM", patterns_of(table.filter(mask)), Options("em", smoothing="pyclick"))
    query = alone.queries[0]
    assert np.array_equal(alone.of(query).w, together.of(query).w)  # type: ignore[attr-defined]


def test_empirical_bayes_finds_the_beta_and_tames_rare_items():
    rng = np.random.default_rng(6)
    den = rng.integers(1, 50, 4000).astype(float)
    num = rng.binomial(den.astype(int), rng.beta(1.5, 8.0, 4000)).astype(float)
    a, b = fit_beta(num, den, np.zeros(4000, int), 1)
    assert a[0] == pytest.approx(1.5, rel=0.1)
    assert b[0] == pytest.approx(8.0, rel=0.1)

    truth = random_model("DCTR", rng, L=40, K=5, low=0.02, high=0.1)
    data = patterns_of(statistics_of([truth], 200, rng, spread=0.4))
    rare = data.impressions <= 3
    assert rare.any()
    shrunk = MODELS["DCTR"].fit(data, Options("counting")).estimates["ctr"].value
    laplace = MODELS["DCTR"].fit(data, Options("counting", smoothing="pyclick"))
    assert shrunk[rare].max() < 0.15
    assert laplace.estimates["ctr"].value[rare].min() > 0.15


def test_an_interval_at_the_boundary_is_jeffreys():
    value, variance = np.array([0.0, 1 - 1e-6, 0.5, 1.0]), np.array([1e12, np.inf, np.inf, 0.0])
    estimate = around(value, variance, np.full(4, 100.0))
    assert estimate.low == pytest.approx([0.0, 0.975, 0.0, 1.0], abs=1e-3)
    assert estimate.high == pytest.approx([0.025, 1.0, 1.0, 1.0], abs=1e-3)
    assert (estimate.low <= value).all()
    assert (value <= estimate.high + 1e-9).all()


@pytest.mark.parametrize("name", ["PBM", "DCM"])
def test_without_a_prior_an_item_never_clicked_has_a_narrow_interval(name):
    rng = np.random.default_rng(13)
    w = np.append(rng.beta(2, 5, 11), 0.0)
    truth = DCM(items=np.arange(100, 112), K=5, w=w, v=np.full(5, 0.3))
    data = patterns_of(statistics_of([truth], 1000, rng, spread=10.0))
    estimate = MODELS[name].fit(data, Options("em", smoothing="none")).estimates["w"]
    never = data.item_ids == 111
    assert estimate.value[never] == pytest.approx(0.0, abs=1e-6)
    assert 0.0 < estimate.high[never][0] < 0.05


def test_without_a_prior_an_unseen_item_has_the_mean_of_the_fitted_ones(data):
    fit = MODELS["SDBN"].fit(data, Options("em", smoothing="none"))
    for field in ("w", "s"):
        estimate = fit.estimates[field]
        for q in range(data.Q):
            span = slice(data.offsets[q], data.offsets[q + 1])
            mean = np.average(estimate.value[span], weights=estimate.observations[span])
            assert fit.priors[field].mean[q] == pytest.approx(mean, abs=2e-3)


def test_em_says_when_it_has_not_converged(data):
    fit = MODELS["PBM"].fit(data, Options("em", iterations=3))
    assert fit.converged == 0
    assert "not converged after 3 iterations in 3 of 3 fits" in fit.notes[0]
