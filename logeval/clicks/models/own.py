"""What click models of the user's own return, before anything is computed from it."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from logeval.clicks.estimation.estimates import ModelEstimate
from logeval.clicks.estimation.patterns import FoldedClicks
from logeval.clicks.models.model import ClickModel
from logeval.clicks.users.browsing import Browsing
from logeval.clicks.users.chain import Chain
from logeval.clicks.users.choice import Choice
from logeval.clicks.users.mixture import classes_of
from logeval.errors import LogevalError
from logeval.running.own_code import is_built_in

M = TypeVar("M", bound=ClickModel)
SHARE = (0.0, 1.0)
LARGEST = np.finfo(float).max


def checked_model(model: M) -> M:
    """The model of one query; an error if it is the user's, and a method fails on some lists."""
    kind = type(model)
    if is_built_in(kind):
        return model
    users, (L, K) = model.users, (model.L, model.K)
    _check(kind, "users", users is not None and hasattr(users, "click_probs"), "no users", users)
    for one in classes_of(users)[1]:
        if isinstance(one, Chain):
            shapes: dict[str, Any] = dict.fromkeys(("w", "stay_item", "sat_item"), (L,))
            shapes |= dict.fromkeys(("stay_position", "sat_position"), (K,)) | {"skip": ()}
        elif isinstance(one, Browsing):
            shapes = {"w": (L,), "e": (K, K + 1)}
        elif isinstance(one, Choice):
            shapes = {"w": (L,), "s": (L,), "more": (K,), "depth": (K,)}
            shapes |= {"b": (K, K + 1), "response": ()}
        else:
            continue  # of a class of the user's own
        for name, shape in shapes.items():
            _check_numbers(kind, "users", getattr(one, name), shape, f"{name}: ", *SHARE)
    n = min(K, L)
    A = np.stack([np.arange(n), np.arange(L)[::-1][:n]])
    for c in (np.zeros((2, n), dtype=np.int8), np.eye(2, n, dtype=np.int8)):
        found = model.conditional_click_probs(A, c)
        _check_numbers(kind, "conditional_click_probs", found, (2, n), "", *SHARE)
        found = model.log_likelihood(A, c)
        _check_numbers(kind, "log_likelihood", found, (2,), "", -np.inf, 0.0)
    found = model.click_probs_of_rows(A)
    _check_numbers(kind, "click_probs_of_rows", found, (2, n), "", *SHARE)
    _check_numbers(kind, "sample", model.sample(A, np.full((2, n), 0.5)), (2, n), "", *SHARE)
    for reward in model.rewards:
        _check_numbers(kind, "expected_reward", model.expected_reward(A, reward), (2,))
    return model


def checked_fit(kind: type[ClickModel], fit: Any, data: FoldedClicks, groups: int) -> ModelEstimate:
    """What ``fit`` returned; an error if it is the user's, and no estimate of all parameters."""
    own = not is_built_in(kind)
    _check(kind, "fit", not own or isinstance(fit, ModelEstimate), "a ModelEstimate", fit)
    for p in kind.PARAMETERS if own else ():
        _check(kind, "fit", p.field in fit.estimates, f"an estimate of {p.field}", fit.estimates)
        more = {"position": (data.K,), "transition": (data.K, data.K + 1)}.get(p.kind, ())
        shape = (len(data.item_ids) if p.kind == "item" else groups, *more)
        _check_numbers(kind, "fit", fit.estimates[p.field].value, shape, f"{p.field}: ")
        _check(kind, "fit", p.kind != "item" or p.field in fit.priors, f"a prior of {p.field}", fit)
    found: ModelEstimate = fit
    return found


def _check_numbers(
    kind: type, method: str, found: Any, shape: tuple[int, ...], of: str = "",
    least: float = -LARGEST, most: float = LARGEST,
) -> None:  # fmt: skip
    try:
        x = np.asarray(found, dtype=float)
    except (TypeError, ValueError):
        x = np.full((1,), np.nan)
    right = x.shape == shape and bool(((x >= least - 1e-9) & (x <= most + 1e-9)).all())
    within = " from 0 to 1" if (least, most) == SHARE else ""
    asked = f"an array of shape {shape}" if shape else "a number"
    _check(kind, method, right, f"{of}{asked}, of numbers{within}", found)


def _check(kind: type, method: str, right: bool, asked: str, found: Any) -> None:
    """Raise unless it is right."""
    if not right:
        what = f"shape {found.shape}: {found}" if isinstance(found, np.ndarray) else repr(found)
        raise LogevalError(
            f"click model {kind.__name__}: {method} must give {asked}; it gave {what:.100}"
        )
