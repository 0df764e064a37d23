"""Identities, and every estimator against a loop over SERPs."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from logeval.clicks.models.dcm import DCM
from logeval.clicks.models.pbm import PBM
from logeval.errors import LogevalError
from logeval.replay.estimators import IP, View, estimators, parse_estimators
from logeval.replay.logged import cut
from logeval.replay.models import fit_models
from logeval.replay.targets import ListTarget
from logeval.replay.values import Prediction, Values
from logeval.running import seeds
from tests.replay import loops
from tests.replay.worlds import all_lists, logged_of, plackett_luce, target_of

L, K, Q = 5, 3, 2
WEIGHTED = ["List", "Prefix", "IP", "PBM", "INTERPOL(window=1)", "Item", "RCTR"]
E = {0: [1.0, 0.7, 0.4], 1: [0.8, 1.0, 0.3]}


@pytest.fixture(scope="module")
def world():
    """Two queries with items 0..4, a logger and users; some SERPs share a session."""
    rng = seeds.generator(3, "test")
    lists = all_lists(L, K)
    p = plackett_luce(lists, np.array([5.0, 4.0, 2.0, 1.0, 0.5]))
    n = 400
    A = lists[rng.choice(len(lists), n, p=p)]
    query = rng.integers(0, Q, n)
    clicks = (rng.random((n, K)) < 0.5 / (1 + A)).astype(int)
    part = rng.integers(0, 2, n)
    session = rng.integers(0, 300, n)
    logged = logged_of(A, clicks, session, query, part)
    serps = [
        (int(q), tuple(a), tuple(c), int(f))
        for q, a, c, f in zip(query, A.tolist(), clicks.tolist(), part, strict=True)
    ]
    return logged, serps


@pytest.fixture(scope="module")
def target(world):
    """Some lists that were never logged among them, and an item that never was."""
    lists = np.array([[0, 1, 2], [2, 1, 0], [4, 3, 2], [1, 9, 0], [1, 0, 2], [3, 1, 4]])
    query = np.array([0, 0, 0, 0, 1, 1])
    p = np.array([0.4, 0.3, 0.2, 0.1, 0.75, 0.25])
    bound = target_of(world[0], lists, p, query=query)
    plain = {
        q: [(tuple(a), x) for a, x, o in zip(lists.tolist(), p, query, strict=True) if o == q]
        for q in range(Q)
    }
    return bound, plain


def predictions(logged):
    order = [q.query_id for q in logged.patterns.queries]
    return {"pbm": Prediction(np.empty(0), np.empty(0), np.array([E[q] for q in order]))}


def by_id(logged, values):
    return {q.query_id: v for q, v in zip(logged.patterns.queries, values, strict=True)}


def options(name):
    base = name.partition("(")[0]
    more = {"window": 1} if base == "INTERPOL" else {}
    if base in ("PBM", "INTERPOL"):
        more["e"] = E
    return base, more


@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("clip", [np.inf, 1.5])
@pytest.mark.parametrize("normalised", [False, True])
def test_each_estimator_is_the_loop_over_serps(world, target, name, clip, normalised):
    logged, serps = world
    text = (
        name
        if not normalised
        else (name.rstrip(")") + ("," if "(" in name else "(") + "normalised)")
    )
    (estimator,) = parse_estimators([text])
    valued = Values(logged, target[0], [estimator], clip=clip)
    found = valued.values(logged.patterns.count[:, None], predictions(logged))[estimator][:, 0]
    base, more = options(name)
    expected = loops.value(base, serps, target[1], K, clip=clip, normalised=normalised, **more)
    assert by_id(logged, found) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("name", "level"), [("DR(dcm)", "IP"), ("Cascade-DR(dcm)", "Prefix")])
def test_doubly_robust_is_the_loop_with_residuals(world, target, name, level):
    logged, serps = world
    (estimator,) = parse_estimators([name])
    truth = DCM(items=np.arange(10), K=K, w=np.linspace(0.8, 0.1, 10), v=np.array([0.6, 0.5, 0.4]))

    def model(q, items, k):
        return truth.click_probs(np.array([items]))[0, k]

    patterns = logged.patterns
    clicks = truth.click_probs(patterns.item_ids[patterns.items])
    query, items, p = target[0].lists()
    values = p * truth.click_probs(target[0].item_ids[items]).sum(axis=1)
    value = np.bincount(query, values)
    valued = Values(logged, target[0], [estimator])
    prepared = {"dcm": Prediction(clicks, value)}
    found = valued.values(patterns.count[:, None], prepared)[estimator][:, 0]
    expected = loops.value(level, serps, target[1], K, model=model)
    assert by_id(logged, found) == pytest.approx(expected, abs=1e-6)


def test_click_based_weights_are_the_loop_over_lists(world, target):
    """rho of an item: its expected clicks under the target, over those under the logger."""
    logged, serps = world
    (estimator,) = parse_estimators(["CIPS(dcm)"])
    truth = DCM(items=np.arange(10), K=K, w=np.linspace(0.8, 0.1, 10), v=np.array([0.6, 0.5, 0.4]))
    patterns, (_, items, p) = logged.patterns, target[0].lists()
    clicks = truth.click_probs(patterns.item_ids[patterns.items])
    expected = p[:, None] * truth.click_probs(target[0].item_ids[items])
    wanted = np.zeros(len(target[0].item_ids) * K)
    np.add.at(wanted, items * K + np.arange(K), expected)
    prepared = {"dcm": Prediction(clicks, np.empty(0), None, wanted)}
    valued = Values(logged, target[0], [estimator])
    found = by_id(logged, valued.values(patterns.count[:, None], prepared)[estimator][:, 0])
    for q, lists in target[1].items():
        mine, up, down = [s for s in serps if s[0] == q], Counter(), Counter()
        for shown, share in lists:
            up.update(
                dict(zip(shown, share * truth.click_probs(np.array([shown]))[0], strict=True))
            )
        for _, shown, _, _ in mine:
            down.update(dict(zip(shown, truth.click_probs(np.array([shown]))[0], strict=True)))
        total = sum(c * up[a] / down[a] for _, shown, cs, _ in mine
                    for a, c in zip(shown, cs, strict=True))  # fmt: skip
        assert found[q] == pytest.approx(total, abs=1e-6)


def test_with_a_pbm_click_based_weights_are_those_of_examination(world, target):
    logged, _ = world
    chosen = parse_estimators(["PBM", "CIPS(pbm)"])
    valued = Values(logged, target[0], chosen)
    models = fit_models(chosen, logged, logged.patterns.count, "per-query")
    pbm, cips = valued.values(logged.patterns.count[:, None], valued.predictions(models)).values()
    assert cips == pytest.approx(pbm, rel=1e-5)


@pytest.mark.parametrize("name", [*WEIGHTED, "DM(dcm)", "DR(pbm)", "Cascade-DR(dcm)", "CIPS(dcm)"])
def test_the_value_of_single_lists_is_that_of_targets_of_one_list(world, name):
    logged, _ = world
    patterns = logged.patterns
    chosen = parse_estimators([name])
    models = fit_models(chosen, logged, patterns.count, "per-query")
    valued = Values(logged, logger_of(logged, K), chosen)
    W = patterns.count[:, None]
    first = [np.flatnonzero(patterns.query == q)[[0, 7]] for q in range(Q)]
    lists = np.zeros((patterns.P, 2))
    for rows in first:
        lists[rows, [0, 1]] = 1.0
    (found,) = valued.of_lists(lists, W, valued.predictions(models)).values()
    for j in range(2):
        rows = [of_query[j] for of_query in first]
        one = ListTarget(
            "one", Q, K, patterns.item_query, patterns.item_ids, np.arange(Q),
            patterns.items[rows], np.ones(Q),
        )  # fmt: skip
        own = Values(logged, one, chosen)
        (expected,) = own.values(W, own.predictions(models)).values()
        assert found[:, j] == pytest.approx(expected[:, 0], abs=1e-6)


@dataclass(frozen=True)
class Half(IP):
    """Somebody's own: IP with so large a share of its weights."""

    share: float = 0.5
    PARAMETERS: ClassVar = {"share": float}

    def weights(self, view):
        return self.share * super().weights(view)


def test_an_estimator_of_ones_own_is_named_by_its_class(world, target):
    logged, _ = world
    name = "tests.replay.test_estimators:Half(share=0.25)"
    chosen = parse_estimators([name, "IP"])
    assert str(chosen[0]) == name
    valued = Values(logged, target[0], chosen)
    own, ip = valued.values(logged.patterns.count[:, None], {}).values()
    assert own == pytest.approx(0.25 * ip)
    with pytest.raises(LogevalError, match="is no estimator; derive it from one"):
        parse_estimators(["tests.replay.test_estimators:Values"])
    with pytest.raises(LogevalError, match="there is no Nobody"):
        parse_estimators(["tests.replay.test_estimators:Nobody"])


def logger_of(logged, K):
    patterns = logged.patterns
    share = patterns.count / patterns.serps[patterns.query]
    return ListTarget(
        "logged", patterns.Q, K, patterns.item_query, patterns.item_ids, patterns.query,
        patterns.items[:, :K], share,
    )  # fmt: skip


@pytest.mark.parametrize(
    "name", [*(n for n in WEIGHTED if "INTERPOL" not in n), "INTERPOL(window=0)",
             "INTERPOL(window=9)", "IP(normalised)", "List(normalised)", "DR(ubm)",
             "Cascade-DR(sdbn)", "DR", "CIPS(dcm)"],
)  # fmt: skip
def test_the_logger_as_target_has_the_logged_mean(world, name):
    logged, _ = world
    (estimator,) = parse_estimators([name])
    valued = Values(logged, logger_of(logged, K), [estimator])
    patterns = logged.patterns
    models = fit_models([estimator], logged, patterns.count, "per-query")
    found = valued.values(patterns.count[:, None], valued.predictions(models))[estimator][:, 0]
    clicks = np.bincount(patterns.query, patterns.count * patterns.clicks.sum(axis=1))
    assert found == pytest.approx(clicks / patterns.serps, abs=1e-6)


def test_with_one_position_list_prefix_ip_and_item_are_equal(world, target):
    logged = cut(world[0], 1)
    bound = target[0]
    short = ListTarget(
        "one", bound.Q, 1, bound.item_query, bound.item_ids, bound.query, bound.items[:, :1],
        bound.probability,
    )  # fmt: skip
    chosen = parse_estimators(["List", "Prefix", "IP", "Item"])
    valued = Values(logged, short, chosen)
    values = list(valued.values(logged.patterns.count[:, None], {}).values())
    for value in values[1:]:
        assert value == pytest.approx(values[0], abs=1e-12)


def test_ip_without_clip_is_the_sum_of_h_times_ctr(world, target):
    logged, serps = world
    (estimator,) = parse_estimators(["IP"])
    valued = Values(logged, target[0], [estimator])
    found = by_id(logged, valued.values(logged.patterns.count[:, None], {})[estimator][:, 0])
    for query, lists in target[1].items():
        expected = 0.0
        for items, p in lists:
            for k, a in enumerate(items):
                clicks = [c[k] for q, shown, c, _ in serps if q == query and shown[k] == a]
                expected += p * np.mean(clicks) if clicks else 0.0
        assert found[query] == pytest.approx(expected, abs=1e-9)


def test_interpol_is_ip_and_pbm_at_its_ends(world, target):
    logged, _ = world
    chosen = parse_estimators(["IP", "INTERPOL(window=0)", "PBM", f"INTERPOL(window={K - 1})"])
    valued = Values(logged, target[0], chosen)
    ip, first, pbm, last = valued.values(
        logged.patterns.count[:, None], predictions(logged)
    ).values()
    assert first == pytest.approx(ip, abs=1e-12)
    assert last == pytest.approx(pbm, abs=1e-12)


def test_a_perfect_model_leaves_no_residual():
    """Clicks are what the model says, without noise: the residuals of each cell add up to 0."""
    lists = all_lists(3, 2)
    truth = PBM(items=np.arange(3), K=2, w=np.array([0.5, 0.25, 0.75]), e=np.array([1.0, 0.5]))
    p = truth.click_probs(lists)
    rows = [(a, c, int(8 * 8 * np.prod(np.where(c, x, 1 - x))))
            for a, x in zip(lists, p, strict=True) for c in np.ndindex(2, 2)]  # fmt: skip
    A = np.concatenate([np.repeat([a], m, axis=0) for a, _, m in rows])
    C = np.concatenate([np.repeat([c], m, axis=0) for _, c, m in rows])
    logged = logged_of(A, C)
    target = target_of(logged, lists[:2], [0.3, 0.7])
    chosen = parse_estimators(["DR", "Cascade-DR"])
    valued = Values(logged, target, chosen)
    patterns = logged.patterns
    _, items, share = target.lists()
    value = np.array([share @ truth.click_probs(target.item_ids[items]).sum(axis=1)])
    clicks = truth.click_probs(patterns.item_ids[patterns.items])
    found = valued.values(patterns.count[:, None], {"pbm": Prediction(clicks, value)})
    for estimate in found.values():
        assert estimate[0, 0] == pytest.approx(value[0], abs=1e-9)


def test_logged_propensities_replace_frequencies(world):
    """Two loggers with different propensities: each SERP is weighted by its own."""
    A = np.array([[0, 1], [0, 1], [1, 0], [0, 1]])
    C = np.array([[1, 0], [0, 1], [1, 1], [1, 1]])
    p = np.array([[0.5, 0.5], [0.25, 0.25], [0.5, 0.5], [0.5, 0.5]])
    logged = logged_of(A, C, propensities=p)
    target = target_of(logged, np.array([[0, 1]]), [1.0])
    (estimator,) = parse_estimators(["IP"])
    valued = Values(logged, target, [estimator], clip=3.0)
    found = valued.values(logged.patterns.count[:, None], {})[estimator]
    assert found[0, 0] == pytest.approx((2 + 0 + 0 + 2 + 0 + 3 + 0 + 2) / 4)
    support = valued.support(estimator, {})
    assert support.supported.tolist() == [[1.0, 1.0]]
    assert support.clipped.tolist() == [[1.0, 1.0]]
    assert support.largest.tolist() == [[4.0, 4.0]]


def test_doubly_robust_with_propensities_that_change():
    """The model's value, and residuals each over its own propensity: worked out by hand."""
    A = np.array([[0, 1], [0, 1], [1, 0], [0, 1], [2, 1]])
    C = np.array([[1, 0], [0, 1], [1, 1], [1, 1], [0, 1]])
    p = np.array([[0.5, 0.5], [0.25, 0.25], [0.5, 0.5], [0.5, 0.5], [0.1, 0.2]])
    logged = logged_of(A, C, propensities=p)
    (estimator,) = parse_estimators(["DR"])
    for lists, support in (([[0, 1]], [[1.0, 1.0]]), ([[0, 9]], [[1.0, 0.0]])):
        target = target_of(logged, np.array(lists), [1.0])
        valued = Values(logged, target, [estimator])
        prepared = {"pbm": Prediction(np.full((5, 2), 0.3), np.array([0.6]))}
        found = valued.values(logged.patterns.count[:, None], prepared)[estimator]
        residuals = 0.7 / 0.5 - 0.3 / 0.25 + 0.7 / 0.5
        residuals += (-0.3 / 0.5 + 0.7 / 0.25 + 0.7 / 0.5 + 0.7 / 0.2) * support[0][1]
        assert found[0, 0] == pytest.approx(0.6 + residuals / 5)
        assert valued.support(estimator, prepared).supported.tolist() == support


@pytest.mark.parametrize("name", ["PBM", "INTERPOL(window=1)", "Item"])
def test_propensities_of_items_are_those_of_the_log_where_these_are_its_frequencies(world, name):
    """What was logged of a logger that never changes; one that does has a clear error."""
    logged, _ = world
    patterns = logged.patterns
    frequency = np.zeros((patterns.I, K))
    k = np.arange(K)
    np.add.at(frequency, (patterns.items, k), patterns.count[:, None])
    p = (frequency / patterns.serps[patterns.item_query][:, None])[patterns.items, k]
    (estimator,) = parse_estimators([name])
    target, own = logger_of(logged, K), predictions(logged)
    W = patterns.count[:, None]
    expected = Values(logged, target, [estimator]).values(W, own)[estimator]
    found = Values(replace(logged, given=p), target, [estimator]).values(W, own)[estimator]
    assert found == pytest.approx(expected)
    with pytest.raises(LogevalError, match="differ between searches"):
        Values(
            replace(logged, given=p * np.linspace(0.5, 1.0, len(p))[:, None]), target, [estimator]
        )


def test_cutting_a_log_does_not_change_values(world, target):
    logged, _ = world
    short = cut(logged, 2)
    assert short.fold @ logged.patterns.count == pytest.approx(short.patterns.count)
    assert len(short.patterns.count) < len(logged.patterns.count)
    bound = target[0]
    two = ListTarget(
        "two", bound.Q, 2, bound.item_query, bound.item_ids, bound.query, bound.items[:, :2],
        bound.probability,
    )  # fmt: skip
    chosen = parse_estimators(["List", "Prefix", "IP"])
    whole, part = (
        Values(x, two, chosen).values(x.patterns.count[:, None], {}) for x in (logged, short)
    )
    for e in chosen:
        assert whole[e] == pytest.approx(part[e], abs=1e-12)


@pytest.mark.parametrize(
    ("name", "supported"),
    [
        ("List", [1, 0, 0, 0, 0, 1]),
        ("IP", [1, 0, 0, 0, 0, 1]),
        ("Item", [1, 1, 0, 0, 1, 1]),
        ("PBM", [1, 1, 0, 0, 0, 0]),  # the third item was shown where nobody looks
        ("INTERPOL(window=0)", [1, 0, 0, 0, 0, 0]),
        ("INTERPOL(window=1)", [1, 1, 0, 0, 0, 0]),
        ("RCTR", [1, 1, 1, 1, 1, 1]),
        ("DR", [1, 1, 0, 0, 1, 1]),  # elsewhere the model answers
        ("Cascade-DR", [1, 0, 0, 0, 0, 1]),
        ("CIPS", [1, 1, 0, 0, 1, 1]),
    ],
)
def test_what_an_estimator_can_see_of_three_items_at_two_positions(name, supported):
    p = np.array([0.25, 0.0, 0.0, 0.0, 0.0, 0.125])[:, None]
    view = View(h=np.full((6, 1), 0.5), p=p, K=2, e=np.array([0.5, 0.0, 0.5, 0.0, 0.5, 0.0]), had=p)
    (estimator,) = parse_estimators([name])
    assert estimator.supported(view)[:, 0].tolist() == [bool(x) for x in supported]


def test_names_print_as_they_parse():
    texts = ["List", "IP(normalised)", "INTERPOL(window=2)", "DM(dcm)", "DR(ubm)", "DR",
             "Cascade-DR(dbn,normalised)", "INTERPOL(window=1,normalised)"]  # fmt: skip
    assert [str(e) for e in parse_estimators(texts)] == texts
    assert [str(e) for e in parse_estimators(["sips", "RIPS", "iips"])] == ["List", "Prefix", "IP"]
    assert len(parse_estimators(estimators())) == len(estimators())


@pytest.mark.parametrize(
    "text", ["IPS", "DR(xyz)", "IP(window=2)", "DM(normalised)", "IP(", "PBM(dcm)"]
)
def test_wrong_names_are_refused(text):
    with pytest.raises(LogevalError):
        parse_estimators([text])
    with pytest.raises(LogevalError, match="twice"):
        parse_estimators(["IP", "IIPS"])


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("DM(normalised)", "it takes a click model: auto, gctr, "),
        ("DR(xyz)", "it takes normalised, a click model: auto, gctr, "),
        ("IP(window=2)", "it takes normalised$"),
        ("INTERPOL(window=x)", "it takes normalised, window=NUMBER$"),
    ],
)
def test_a_wrong_argument_is_told_what_the_estimator_takes(text, offered):
    with pytest.raises(LogevalError, match=offered):
        parse_estimators([text])
