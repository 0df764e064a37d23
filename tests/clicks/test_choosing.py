"""Which fits held-out SERPs cannot tell apart, and the models that ``auto`` keeps."""

import numpy as np
import pytest

from logeval.clicks.fit import Fit, fit_models
from logeval.clicks.quality.scores import (
    EQUAL,
    Score,
    as_good,
    chosen,
    log_likelihood,
    told_apart,
)
from logeval.errors import LogevalError
from logeval.log.ingest import ingest
from logeval.synthetic.generate import generate


def score(values, count=None):
    """A score whose SERPs have these log-likelihoods per result (one rank)."""
    x = np.asarray(values, dtype=float)[:, None] / np.log(2.0)
    n = np.ones(len(x)) if count is None else np.asarray(count, dtype=float)
    return Score(x, x, np.ones(x.shape, dtype=bool), n, np.zeros(len(x), dtype=int), 0.0, 0.0, 0.0)


def noisy(mean, sd=0.1, n=1000, seed=1):
    return mean + sd * np.random.default_rng(seed).normal(size=n)


def test_a_clear_and_large_difference_is_told_apart():
    base = noisy(-0.3)
    assert told_apart(score(base), score(base - 0.01 + noisy(0.0, 0.01, seed=2)))
    assert not told_apart(score(base), score(base))


def test_a_difference_within_chance_is_not():
    base, wide = noisy(-0.3), noisy(-0.01, 1.0, seed=2)  # its standard error is .03
    assert not told_apart(score(base), score(base + wide))


def test_a_clear_difference_that_is_small_is_not():
    base = noisy(-0.3)
    for by, apart in ((0.9 * EQUAL, False), (1.1 * EQUAL, True)):
        assert told_apart(score(base), score(base - by)) == apart


def test_patterns_count_as_often_as_they_were_seen():
    values, more = [-0.2, -0.5], [900, 100]
    every = score(np.repeat(values, more))
    folded = score(values, more)
    assert folded.headline()["log_likelihood"] == pytest.approx(-0.23)
    other = score(np.repeat([-0.21, -0.5], more))
    assert told_apart(folded, score([-0.21, -0.5], more)) == told_apart(every, other)
    assert log_likelihood(folded)[0] == pytest.approx(values)


def test_the_chosen_are_the_best_and_the_papers_and_the_reason_says_so():
    base = noisy(-0.3)
    found = {
        "DCM": (None, score(base - 0.05)), "PBM": (None, score(base - 0.04)),
        "UBM": (None, score(base)), "DBN": (None, score(base - 0.0005)),
        "CM": (None, score(base - 0.3)),
    }  # fmt: skip
    assert as_good(found) == ["UBM", "DBN"]
    names, why = chosen(found)
    assert names == ["UBM", "DBN", "DCM", "PBM"]
    best, dcm, pbm = (found[n][1].headline()["log_likelihood"] for n in ("UBM", "DCM", "PBM"))
    assert why == (
        f"UBM predicts the 1,000 held-out SERPs best (log-likelihood per result {best:.4f}); DBN "
        f"cannot be told apart from it; DCM {dcm:.4f} and PBM {pbm:.4f} beside it, as in the papers"
    )


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("choosing")
    generate(folder / "log.tsv", sessions=1500, queries=20, seed=3, quiet=True)
    ingest(folder / "log.tsv", folder / "log", quiet=True)
    return folder / "log"


def test_auto_keeps_what_predicts_best_beside_the_papers_models(log, tmp_path):
    found = fit_models(log, "auto", top_queries=3, out=tmp_path / "m", quiet=True)
    assert {"DCM", "PBM"} <= set(found.fitted)
    assert len(found.fitted) <= 5
    (why,) = found.manifest["chosen"]
    assert why.startswith(f"{next(iter(found.fitted))} predicts the")
    assert found.manifest["arguments"]["models"] == ["auto"]
    assert found.manifest["arguments"]["holdout"] == "0.2"
    again = fit_models(log, "auto", top_queries=3, out=tmp_path / "m", quiet=True)
    assert list(again.fitted) == list(found.fitted)


def test_a_setting_in_a_name_is_that_of_the_fit(log):
    plain = fit_models(log, "dcm", scope="pooled", holdout="0.2", top_queries=3, quiet=True)["DCM"]
    named = fit_models(log, "dcm(scope=pooled)", holdout="0.2", top_queries=3, quiet=True)
    other = named["DCM(scope=pooled)"]
    for field in ("w", "v"):
        assert plain.estimates[field].value.tolist() == other.estimates[field].value.tolist()


def test_settings_in_a_name_are_checked_before_the_work(log):
    for name, words in (
        ("dcm(scope=half)", "scope"),
        ("dcm(colour=red)", "colour"),
        ("dcm(smoothing=none,scope=partial)", "use scope=per-query"),
    ):
        with pytest.raises(LogevalError, match=words):
            Fit(log, name)
