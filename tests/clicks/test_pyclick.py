"""The adapter to PyClick, against the real one where it is installed."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from logeval.clicks.fit import fit_models
from logeval.clicks.pyclick import from_pyclick, to_sessions
from logeval.errors import LogevalError
from tests.clicks.examples import random_lists, random_model
from tests.serps import Serp, sampled_serps, write_serps


def real_pyclick() -> bool:
    spec = importlib.util.find_spec("pyclick")
    return bool(spec) and importlib.util.find_spec("pyclick.click_models") is not None


needs_pyclick = pytest.mark.skipif(
    not real_pyclick(), reason="PyClick (github.com/markovi/PyClick) is not installed"
)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    rng = np.random.default_rng(8)
    model = random_model("DCM", rng, L=14, K=10, low=0.1, high=0.7)
    serps = sampled_serps(model, random_lists(rng, 200, 14, 10), rng)
    for serp in serps:
        serp.region_id = serp.session_id % 2
    serps.append(Serp(1, [100], [0], 999, 0, test=True))
    return write_serps(tmp_path_factory.mktemp("log"), serps)


@pytest.mark.skipif(real_pyclick(), reason="PyClick is installed")
def test_without_pyclick_the_error_says_where_it_is(log):
    with pytest.raises(LogevalError, match="it is not the PyPI package"):
        to_sessions(log)


@needs_pyclick
def test_sessions_are_the_serps(log):
    sessions = to_sessions(log)
    assert len(sessions) == 200
    assert {s.query for s in sessions} == {"1@0", "1@1"}
    assert set(sessions[0].get_clicks()) <= {0, 1}


@needs_pyclick
@pytest.mark.parametrize("name", ["DCTR", "CM", "DCM", "SDBN", "PBM", "UBM"])
def test_its_fitted_models_are_ours(log, name):
    from importlib import import_module

    from pyclick.click_models.Inference import EMInference

    theirs = getattr(
        import_module(f"pyclick.click_models.{'CTR' if 'CTR' in name else name}"), name
    )()
    if name in ("PBM", "UBM"):
        theirs._inference = EMInference(3)
    theirs.train(to_sessions(log))
    converted = from_pyclick(theirs)
    options = {
        "method": "counting",
        "iterations": 3,
        "tolerance": 0.0,
        "last_termination": "raw",
        "quiet": True,
    }
    ours = fit_models(log, name, scope="pooled", smoothing="pyclick", **options)
    rng = np.random.default_rng(0)
    for query in ours.queries:
        a, b = ours[name, query], converted[name, query]
        A = random_lists(rng, 10, a.L, 10)
        lists = a.items[A]
        assert a.click_probs(lists) == pytest.approx(b.click_probs(lists), abs=1e-9)
