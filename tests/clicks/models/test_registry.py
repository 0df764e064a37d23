"""Models and their options by name."""

from __future__ import annotations

import pytest

from logeval.clicks.models.registry import MODELS, check_options, model_names
from logeval.errors import LogevalError
from tests.clicks.examples import ALL


def test_names_ignore_case_and_all_unknown_ones_are_reported():
    assert model_names(["dcm", "Pbm", "DCM"]) == ["DCM", "PBM"]
    with pytest.raises(LogevalError, match=r"'dmc' \(did you mean DCM.*'xyz'"):
        model_names(["dmc", "pbm", "xyz"])
    assert list(MODELS) == ALL


def test_an_option_is_looked_up_in_the_models_that_are_fitted():
    raw = {"last_termination": "raw"}
    assert check_options(["PBM", "DCM"], raw) == raw
    with pytest.raises(LogevalError, match="last_termination is an option of DCM, not of PBM, CM"):
        check_options(["PBM", "CM"], raw)
    with pytest.raises(LogevalError, match=r"unknown last termination: 'rae' .did you mean raw"):
        check_options(["DCM"], {"last_termination": "rae"})
    with pytest.raises(LogevalError, match=r"unknown option.*did you mean last_termination"):
        check_options(["DCM"], {"last_terminatoin": "raw"})
