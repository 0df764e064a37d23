"""Lists in random order: from the generated log to what the models predict of them."""

import numpy as np
import pytest

from logeval import check_models, fit_models, generate, ingest, replay_validate
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.quality.randomised import _concordance, _within
from logeval.errors import LogevalError
from logeval.log.log import load
from tests.clicks.examples import table_of
from tests.serps import Serp, write_serps


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("randomised")
    generate(folder / "log.csv", format="table", sessions=6000, queries=4, randomised=0.2, seed=2,
             quiet=True)  # fmt: skip
    return ingest(folder / "log.csv", out=folder / "log", quiet=True)


@pytest.fixture(scope="module")
def models(log):
    return fit_models(log, ["dcm", "pbm"], quiet=True, draws=10, verdict=False)


def test_the_generated_log_says_which_lists_were_in_random_order(log):
    table = log.serps(["query_id", "items", "random"]).to_pandas()
    share = table["random"].mean()
    assert abs(share - 0.2) < 4 * np.sqrt(0.2 * 0.8 / len(table))
    mine = table[table["query_id"] == 1]
    top = mine.groupby("random")["items"].agg(lambda lists: np.mean([a[0] == 1 for a in lists]))
    assert top[False] > 0.5 > 0.2 > top[True]  # the best item of the ranker is on top


def test_other_formats_cannot_say_it(tmp_path):
    with pytest.raises(LogevalError, match="format=table"):
        generate(tmp_path / "log.tsv", randomised=0.1)


def test_true_models_predict_random_lists_and_others_do_not(log, models):
    found = check_models(models, log, randomised=True, simulations=80,
                         quiet=True)  # fmt: skip
    table = found.randomised.set_index("model")
    random = log.serps("random")["random"].to_pandas()
    assert table["serps"].tolist() == [int(random.sum())] * 2
    assert table.loc["DCM", "low"] <= table.loc["DCM", "clicks"] <= table.loc["DCM", "high"]
    assert table.loc["DCM", "ranks_within"] >= 0.8  # 40 cells; 0.95 less four standard errors
    assert table.loc["DCM", "ranks_within"] > table.loc["PBM", "ranks_within"]
    assert table.loc["DCM", "order"] > 0.5
    assert found.rows()["randomised"]


def test_logs_that_do_not_say_are_refused(tmp_path, models):
    serps = [Serp(1, [1, 2, 3], [int(n % 3 == 0), 0, 0], n) for n in range(50)]
    log = load(write_serps(tmp_path / "plain", serps))
    plain = fit_models(log, "dcm", quiet=True, verdict=False)
    with pytest.raises(LogevalError, match="column `random`"):
        check_models(plain, log, randomised=True, quiet=True)
    with pytest.raises(LogevalError, match="column `random`"):
        replay_validate(log, randomised=True, positions=[1], quiet=True)
    with pytest.raises(LogevalError, match="not fitted to this log"):
        check_models(models, log, randomised=True, quiet=True)


def test_validation_predicts_random_lists_from_ranked_ones(log):
    found = replay_validate(log, randomised=True, parts=4, positions=[3], clips=[10.0],
                            estimators=["Item", "RCTR"], quiet=True)  # fmt: skip
    rows = found.table[found.table["clip"].isna()].set_index("estimator").loc[["Item", "RCTR"]]
    random = log.serps("random")["random"].to_pandas()
    assert rows["serps"].tolist() == [int(random.sum())] * 2
    assert rows["parts"].tolist() == [4, 4]
    # the clicks of ranked lists, which RCTR takes for those of all, are more than random ones get
    serps = log.serps(["query_id", "clicks", "random"]).to_pandas()
    serps["three"] = [(np.asarray(c)[:3] > 0).sum() for c in serps["clicks"]]
    by = serps.groupby(["query_id", "random"])["three"].mean().unstack()
    size = serps[serps["random"]].groupby("query_id").size()
    bias = ((by[False] - by[True]) * size).sum() / size.sum()
    assert rows.loc["RCTR", "bias"] == pytest.approx(bias, abs=1e-9)


def test_intervals_and_order_by_hand():
    predicted = np.array([[0.5, 0.5], [0.4, 0.4], [0.6, 0.6]])
    found = _within(predicted, np.array([1.0, 0.0]), np.array([30.0, 10.0]), np.zeros(2, int), 1)
    assert found["seen"] == [0.75]
    assert found["mean"] == [0.5]
    assert found["n"] == [40.0]
    assert found["half"][0] == pytest.approx(1.959964 * np.sqrt(0.25 / 40 + 0.02))
    test = patterns_of(table_of([(0, [1, 2], 0, 3), (0, [2, 1], 3, 1), (0, [2, 1], 1, 2)]))
    clicks = test.clicks.sum(axis=1).astype(float)
    # pairs with unlike clicks: 3 x 1, 3 x 2 and 1 x 2; all lists that start with 2 are equal
    score = np.where(test.item_ids[test.items[:, 0]] == 2, 1.0, 0.0)
    assert _concordance(score, clicks, test) == pytest.approx((3 + 6 + 0.5 * 2) / 11)
