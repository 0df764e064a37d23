"""Lists in random order: from the generated log to what the models predict of them."""

import numpy as np
import pytest

from logeval import check_models, fit_models, generate, ingest, replay_validate
from logeval.errors import LogevalError
from logeval.log.log import load
from tests.serps import Serp, write_serps


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("randomised")
    generate(folder / "log.csv", format="table", sessions=6000, queries=4, randomised=0.2, seed=2,
             quiet=True)  # fmt: skip
    return ingest(folder / "log.csv", out=folder / "log", quiet=True)


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


def test_models_fitted_to_ranked_lists_are_checked_on_random_ones(log):
    ranked = fit_models(log, ["dcm", "dctr"], holdout="random", quiet=True, draws=10, verdict=False)
    table = log.serps(["query_id", "random"]).to_pandas()
    assert ranked["dcm"].serps.sum() == (~table["random"]).sum()
    found = check_models(ranked, log, simulations=80, quiet=True)
    faulted = found.table[found.table["query"].isna()].groupby("model")["faulted"].any()
    assert (faulted["DCM"], faulted["DCTR"]) == (False, True)


def test_logs_that_do_not_say_are_refused(tmp_path):
    serps = [Serp(1, [1, 2, 3], [int(n % 3 == 0), 0, 0], n) for n in range(50)]
    log = load(write_serps(tmp_path / "plain", serps))
    with pytest.raises(LogevalError, match="column `random`"):
        fit_models(log, "dcm", holdout="random", quiet=True)
    with pytest.raises(LogevalError, match="column `random`"):
        replay_validate(log, randomised=True, positions=[1], quiet=True)


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
