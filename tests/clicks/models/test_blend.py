"""A mixture of fitted models: probabilities, weights, tables, the best list, environments."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from logeval.clicks.collection import models_of_json, read_models
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.fit import fit_models
from logeval.clicks.fitting import fit_mixture, fit_one
from logeval.clicks.inspection import inspect
from logeval.clicks.models import blend
from logeval.clicks.models.classes import Classes
from logeval.clicks.models.registry import members_of, model_names
from logeval.clicks.quality.scores import score_model
from logeval.errors import LogevalError
from logeval.tracks.fitted import FittedQuery
from logeval.tracks.lists import ranking_problems
from logeval.tracks.ranking import RankingEnvironment
from tests.clicks.examples import all_patterns, random_lists, random_model, statistics_of

L, K = 5, 3
KINDS = ("UBM", "CCM", "DCM", "DBN", "PBM")
SMALL = "mixture(members=dcm:2+ubm)"


def mixed(seed=0, L=L, K=K, kinds=KINDS):
    rng = np.random.default_rng(seed)
    classes = [random_model(kind, rng, L, K) for kind in kinds]
    return Classes.of(rng.dirichlet(np.ones(len(kinds))), classes)


@pytest.mark.parametrize("seed", range(5))
def test_probabilities_of_all_clicks_sum_to_one_and_give_the_marginals(seed):
    model, c = mixed(seed), all_patterns(K)
    A = np.tile(np.random.default_rng(seed).permutation(L)[:K], (len(c), 1))
    p = np.exp(model.log_likelihood(A, c))
    assert p.sum() == pytest.approx(1.0)
    assert p @ c == pytest.approx(model.click_probs_of_rows(A[:1])[0])
    each = np.exp([one.log_likelihood(A, c) for one in model.classes])
    assert p == pytest.approx(model.share @ each)
    assert model.expected_reward(A[:1], "any-click")[0] == pytest.approx(1 - p[0])
    assert model.expected_reward(A[:1])[0] == pytest.approx(p @ c.sum(axis=1))


def test_samples_have_the_probabilities():
    model, n, c = mixed(), 200_000, all_patterns(K)
    drawn = model.simulate(model.items[:K], n)
    found = np.bincount(drawn @ (1 << np.arange(K)), minlength=1 << K) / n
    p = np.exp(model.log_likelihood(np.tile(np.arange(K), (1 << K, 1)), c))
    assert (np.abs(found - p) < 5 * np.sqrt(p * (1 - p) / n)).all()


@pytest.mark.parametrize("reward", ["clicks", "any-click"])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_list_is_that_of_brute_force(seed, reward):
    model = mixed(seed)
    lists = np.array(list(itertools.permutations(range(L), K)))
    best = model.expected_reward(lists, reward).max()
    found = model.optimum(K, reward)
    assert found.value == pytest.approx(best)
    assert found.value + found.gap >= best - 1e-12


def test_every_member_stays_so_that_all_queries_earn_the_same():
    rng = np.random.default_rng(0)
    classes = [random_model(kind, rng) for kind in ("DCM", "UBM")]
    assert Classes.of(np.array([1.0, 0.0]), classes).rewards == ("clicks", "any-click")
    both = [random_model("DCM", rng) for _ in range(2)]
    assert Classes.of(np.array([0.5, 0.5]), both).rewards[0] == "satisfaction"
    some = mixed(L=8, K=4)
    few = some.only(np.array([6, 1, 3]))
    assert few.items.tolist() == some.items[[6, 1, 3]].tolist()
    A = np.array([[0, 2, 1]])
    assert few.click_probs_of_rows(A) == pytest.approx(
        some.click_probs_of_rows(np.array([[6, 3, 1]]))
    )


def members(kinds, users, n=4000, queries=3, seed=0):
    """ln P of the clicks of some users under models of some kinds, and what ``weights`` takes."""
    rng = np.random.default_rng(seed)
    log_p, query = [], []
    for q in range(queries):
        models = {kind: random_model(kind, rng, 8, 5) for kind in kinds}
        A = random_lists(rng, n, 8, 5)
        z = rng.choice(len(kinds), n, p=users)
        clicks = np.zeros(A.shape, dtype=np.int8)
        for m, model in enumerate(models.values()):
            clicks[z == m] = model.sample(A[z == m], rng.random(A[z == m].shape))
        log_p.append(np.stack([one.log_likelihood(A, clicks) for one in models.values()], axis=1))
        query.append(np.full(n, q))
    return np.maximum(np.concatenate(log_p), -50.0), np.concatenate(query)


@pytest.mark.parametrize("users", [(1.0, 0.0, 0.0), (0.2, 0.5, 0.3)])
def test_weights_of_known_members_are_found_again(users):
    log_p, query = members(("DCM", "UBM", "CCM"), users)
    overall, each = blend.weights(log_p, np.ones(len(log_p)), query, 4)
    assert overall == pytest.approx(users, abs=0.03)
    assert each.sum(axis=1) == pytest.approx(1.0)
    assert each[3] == pytest.approx(overall)  # of a query without SERPs that were kept apart
    rng = np.random.default_rng(1)
    drawn = blend.drawn_weights(log_p, np.ones(len(log_p)), query, overall, each, 30, rng)
    assert drawn.mean(axis=0)[:3] == pytest.approx(each[:3], abs=0.03)
    known, unknown = drawn.std(axis=0)[:3].max(), drawn.std(axis=0)[3].max()
    assert known < 0.03  # thousands of SERPs; the other has what all queries are worth
    assert unknown > 2 * known


@pytest.fixture(scope="module")
def fitted(log):
    return fit_models(log, [SMALL, "ubm"], draws=4, quiet=True)


def test_a_log_of_dcm_users_gives_the_dcm_most_weight(fitted):
    found = fitted[SMALL].report["members"]
    assert list(found) == ["DCM(classes=2)", "UBM"]
    assert found["DCM(classes=2)"] > 0.6
    assert sum(found.values()) == pytest.approx(1.0)


def test_it_predicts_as_the_best_member_or_better():
    """Users of whom 3 in 10 follow a UBM, and the others a CCM: neither alone predicts so well."""
    rng = np.random.default_rng(3)
    kinds = [Classes.of(np.array([0.3, 0.7]), [random_model(k, rng, 8, 5) for k in ("UBM", "CCM")])]
    train, test = (patterns_of(statistics_of(kinds, 6000, rng)) for _ in range(2))

    def fit(name, data, intervals):
        return fit_one(name, data, Options("em", "per-query", intervals=intervals))

    found = [fit_mixture("Mixture(members=UBM+CCM)", ["UBM", "CCM"], train, fit, False)]
    found += [fit(name, train, False) for name in ("UBM", "CCM")]
    blended, *alone = [score_model(one, test).headline()["log_likelihood"] for one in found]
    assert blended > max(alone)


def test_it_is_the_same_read_from_its_folder_and_from_json(fitted, tmp_path):
    fitted.write(tmp_path / "m")
    for read in (read_models(tmp_path / "m"), models_of_json(fitted.to_json())):
        assert list(read.fitted) == ["Mixture(members=DCM:2+UBM)", "UBM"]
        for query in fitted.queries:
            for a, b in (
                (fitted["mixture", query], read["mixture", query]),
                (fitted["mixture"].drawn(2).of(query), read["mixture"].drawn(2).of(query)),
                *[(x["mixture"].of(query, True, 9), y["mixture"].of(query, True, 9))
                  for x, y in [(fitted, read)]],
            ):  # fmt: skip
                assert [one.name for one in b.classes] == ["DCM", "DCM", "UBM"]
                A = np.array([np.arange(a.L)[: a.K], np.arange(a.L)[::-1][: a.K]])
                assert b.click_probs_of_rows(A) == pytest.approx(a.click_probs_of_rows(A), abs=1e-6)


def test_inspection_shows_the_classes_of_all_members(fitted):
    found = inspect(fitted, fitted.queries[0], model="mixture")
    assert found.classes["class"].tolist() == ["1 DCM", "2 DCM", "3 UBM"]
    assert found.classes["share"].sum() == pytest.approx(1.0)
    assert found.reward == "clicks"


def test_an_environment_of_several_kinds_of_users_earns_and_clicks_as_the_model_says():
    model, R, n = mixed(2, 6, 3, (*KINDS, "Choice")), 400, 100
    problems = ranking_problems([FittedQuery("Mixture", "1", model, 3)], "clicks")
    environment = RankingEnvironment(problems, [(0, r) for r in range(R)], 0)
    A = environment.best
    assert environment.reward(A) == pytest.approx(model.optimum().value)
    clicks = np.mean([environment.step(A).mean(axis=0) for _ in range(n)], axis=0)
    expected = model.click_probs_of_rows(model.best_rows()[None])[0]
    assert clicks == pytest.approx(expected, abs=5 * 0.5 / np.sqrt(R * n))


def test_names():
    assert model_names(["MIXTURE", SMALL]) == ["Mixture", "Mixture(members=DCM:2+UBM)"]
    assert model_names(["dcm", "mixture"], "auto") == ["DCM(classes=auto)", "Mixture"]
    assert model_names([f"mixture(members={blend.MEMBERS.lower()})"]) == ["Mixture"]
    assert members_of("mixture") == {
        "UBM(classes=3)": 3, "CCM(classes=4)": 4, "DCM(classes=5)": 5, "DBN(classes=3)": 3
    }  # fmt: skip


@pytest.mark.parametrize(
    ("names", "classes", "why"),
    [
        (["mixture(classes=3)"], 1, "each member has classes of its own"),
        (["dcm", "mixture"], 3, "each member has classes of its own"),
        (["mixture(members=dmc:3)"], 1, "did you mean DCM"),
        (["mixture(members=dcm:auto+ubm)"], 1, "write the number of its classes"),
        (["mixture(members=dcm+dcm)"], 1, "several different"),
        (["dcm(members=ubm)"], 1, "unknown setting of DCM"),
    ],
)
def test_names_that_cannot_be(names, classes, why):
    with pytest.raises(LogevalError, match=why):
        model_names(names, classes)
