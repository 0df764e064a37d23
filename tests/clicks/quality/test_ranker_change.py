"""The split by ranks, and how models bear a change of ranker."""

from __future__ import annotations

import numpy as np
import pytest

from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.fitting import fit_one
from logeval.clicks.models.registry import MODELS
from logeval.clicks.quality.randomised import Split, changed_rankers, ctr_error, split_by_rank
from logeval.clicks.quality.scores import score_model
from logeval.errors import LogevalError
from tests.clicks.examples import random_model, statistics_of


def fit(name, data):
    return fit_one(name, data, Options("em" if "em" in MODELS[name].methods else "counting"))


@pytest.fixture(scope="module")
def data():
    """A PBM, and lists around one order, so that items have their ranks."""
    rng = np.random.default_rng(5)
    models = [random_model("PBM", rng, L=8, K=5, low=0.1, high=0.9) for _ in range(3)]
    return patterns_of(statistics_of(models, 1500, rng, spread=0.5))


def pairs(part):
    p, k = np.nonzero(part.items >= 0)
    return set(zip(part.items[p, k].tolist(), k.tolist(), strict=True))


def test_training_never_shows_what_the_test_moves(data):
    split = split_by_rank(data, seed=3)
    p, k = np.nonzero(split.moved)
    moved = set(zip(split.test.items[p, k].tolist(), k.tolist(), strict=True))
    assert moved
    assert split.moved.any(axis=1).all()  # every test SERP shows one
    assert not moved & pairs(split.train["change"])
    assert moved & pairs(split.train["random"])
    known = {item for item, _ in pairs(split.train["change"])}
    assert {item for item, _ in moved} <= known  # only the rank is new


def test_both_training_parts_have_equal_size_and_no_test_serp(data):
    split = split_by_rank(data, seed=3)
    sizes = {part: train.count.sum() for part, train in split.train.items()}
    assert sizes["random"] == sizes["change"]
    keys = [tuple(row) for row in np.column_stack([data.items, data.clicks]).tolist()]
    total = dict.fromkeys(keys, 0.0)
    for key, n in zip(keys, data.count, strict=True):
        total[key] += n
    for part in split.train.values():
        left = dict(total)
        for one in (part, split.test):
            for row, n in zip(np.column_stack([one.items, one.clicks]).tolist(), one.count,
                              strict=True):  # fmt: skip
                left[tuple(row)] -= n
        assert min(left.values()) >= 0
    share = split.test.count.sum() / data.count.sum()
    assert 0.05 < share < 0.2  # half of at most 0.3


def test_the_true_model_is_best_after_the_change_and_item_averages_lose(data):
    change = changed_rankers(["DCTR", "PBM", "GCTR"], data, fit, seed=1)
    table = change.table.set_index("model")
    assert table.index[0] == "PBM"
    assert table.loc["PBM", "loss"] < table.loc["DCTR", "loss"]
    assert table.loc["DCTR", "loss_low"] > 0
    assert table.loc["PBM", "behind"] == 0
    assert table.loc["GCTR", "behind_low"] > 0
    assert table.loc["PBM", "ctr_error_change"] < table.loc["DCTR", "ctr_error_change"]
    both = table["log_likelihood_random"] - table["log_likelihood_change"]
    assert both.to_numpy() == pytest.approx(table["loss"].to_numpy())


def test_the_error_of_ctr_is_without_what_chance_adds(data):
    """Of a model with the true CTR it is near 0, of one that is .2 too high near .2."""
    fitted = fit("GCTR", data)
    rng = np.random.default_rng(0)
    count = np.full(len(data.count), 1.0)
    for truth, error in ((0.3, 0.0), (0.1, 0.2)):
        fitted.estimates["ctr"].value[:] = 0.3
        clicks = rng.random(data.clicks.shape) < truth
        test = type(data)(data.queries, data.query, data.items, clicks, data.length, count,
                          data.item_ids, data.offsets)  # fmt: skip
        split = Split(test, np.ones(test.items.shape, dtype=bool), {})
        assert ctr_error(score_model(fitted, test), split) == pytest.approx(error, abs=0.02)


def test_a_log_with_one_list_has_no_change_to_offer(data):
    rng = np.random.default_rng(5)
    model = random_model("PBM", rng, L=3, K=3)
    single = patterns_of(statistics_of([model], 50, rng, spread=0.0))
    with pytest.raises(LogevalError, match="change of ranker"):
        split_by_rank(single)
