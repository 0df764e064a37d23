"""What fits and checks say, as facts."""

import pandas as pd
import pytest

from logeval.clicks.quality.deviations import ModelVerdict
from logeval.clicks.quality.predictive import Checks
from logeval.clicks.quality.value import Slope
from logeval.commands.models import _check_rows

CURVE = {"model": "DCM", "query": None, "check": "ctr-by-rank", "low": 0.1, "high": 0.14}


def row(model, check, error, faulted=False):
    return {"model": model, "query": None, "check": check, "components": 4, "error": error,
            "faulted": faulted}  # fmt: skip


@pytest.fixture
def checks():
    table = [row("PBM", "first-click", 0.2, True), row("PBM", "distance", 0.1),
             row("DCM", "first-click", 0.02), row("DCM", "distance", 0.01)]  # fmt: skip
    verdicts = {
        "PBM": ModelVerdict("PBM", ["first-click"], ["distance"], ["swaps"], 5, 2, 700),
        "DCM": ModelVerdict("DCM", [], ["first-click", "distance"], [], 5, 0, 700),
    }
    slopes = {"DCM": [Slope("list", 0.8, 0.6, 1.1, 9, 2)], "PBM": []}
    return Checks(pd.DataFrame(table), pd.DataFrame([CURVE]), verdicts, slopes=slopes)


def test_the_model_that_passes_comes_first(checks):
    found = checks.verdict()
    (first,) = found.conclusion
    assert (first.code, first.about, first.value, first.threshold) == ("model-passes", "DCM", 2, 2)
    fails = found.fact("model-fails")
    assert (fails.about, fails.value, fails.threshold) == ("PBM", 1.0, 2.0)
    assert fails.more == {"serps": 700, "failed": ["first-click"]}
    assert found.fact("queries-fail").value == 2.0
    assert found.fact("model-unjudged").more == {"checks": ["swaps"]}


def test_a_small_log_sees_large_faults_only(checks):
    fact = checks.verdict().fact("sees-large-faults")
    assert (fact.value, fact.threshold) == (pytest.approx(0.02), 700.0)


def test_the_value_of_predictions_is_the_first_row(checks):
    rows = _check_rows(checks)
    assert rows[0] == ["a predicted click is worth", "-", "0.80 [0.60, 1.10]"]
    assert rows[1] == ["first-click", "0.200*", "0.020"]
