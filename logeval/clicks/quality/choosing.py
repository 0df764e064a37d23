"""Which fits of click models a log cannot tell apart, by how well they predict held-out SERPs.

Two fits are compared on the same SERPs: d is the difference of their log-likelihoods per result,
SERP by SERP. The one with the lower mean is told apart from the other if the 95% interval of the
mean of d leaves 0 out, and the mean is more than ``EQUAL``: a twentieth of what lies between the
models themselves on real SERPs, none of which is the truth. What is not told apart from the best
may be as right as it, and a verdict should hold on all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from logeval.clicks.fitted import FittedModel
from logeval.clicks.models.registry import AUTO, MODELS, model_names
from logeval.clicks.quality.scores import Score
from logeval.running.arrays import Floats
from logeval.running.names import parse_call
from logeval.running.words import joined

Z = 1.959963984540054
EQUAL = 0.001  # log-likelihood per result
PAPERS = ("DCM", "PBM")  # the papers' simulators, which are always among the chosen
IN_CLASSES = ("DCM", "PBM", "UBM")  # tried with classes of users as well
MOST = 3  # of those that predict equally well, beside the papers'
# what else a model could have been fitted with
ALTERNATIVES = ("scope=per-query", "scope=pooled", "scope=per-query,smoothing=none")
Fitted = tuple[FittedModel, Score]


def log_likelihood(score: Score) -> tuple[Floats, Floats]:
    """Of each pattern, the mean over ranks of ln P(c_k | c_<k), and its number of SERPs."""
    return np.log(2.0) * score.conditional.sum(axis=1) / score.shown.sum(axis=1), score.count


def told_apart(best: Score, other: Score) -> bool:
    """Whether the other one predicts worse, by more than chance."""
    (a, count), (b, _) = log_likelihood(best), log_likelihood(other)
    n, d = float(count.sum()), a - b
    mean = float(count @ d) / n
    variance = float(count @ (d - mean) ** 2) / max(n - 1.0, 1.0)
    return mean > max(Z * np.sqrt(variance / n), EQUAL)


def as_good(found: dict[str, Fitted]) -> list[str]:
    """The names that cannot be told apart from the best, the best first."""
    means = {name: score.headline()["log_likelihood"] for name, (_, score) in found.items()}
    order = sorted(means, key=lambda name: -means[name])
    best = found[order[0]][1]
    return [name for name in order if name == order[0] or not told_apart(best, found[name][1])]


def chosen(found: dict[str, Fitted]) -> tuple[list[str], str]:
    """Of all models, those that predict best and the papers', and why, in words."""
    equal = as_good(found)
    best = found[equal[0]][1].headline()
    names = list(dict.fromkeys([*equal[:MOST], *(n for n in PAPERS if n in found)]))
    why = (
        f"{equal[0]} predicts the {best['held_out_serps']:,} held-out SERPs best (log-likelihood "
        f"per result {best['log_likelihood']:.4f})"
    )
    if len(equal) > 1:
        why += f"; {joined(equal[1:])} cannot be told apart from it"
    others = [name for name in names if name not in equal]
    if others:
        values = [f"{n} {found[n][1].headline()['log_likelihood']:.4f}" for n in others]
        why += f"; {joined(values)} beside it, as in the papers"
    return names, why


def other_fits(name: str) -> list[str]:
    """What else a model could have been fitted with.

    Models with classes of users have none: each would take as long as all others together.
    """
    base, given = parse_call(name)
    if "classes" in given:
        return []
    own = [f"{key}={value}" for key, value in given.items()]
    return model_names([f"{base}({','.join([more, *own])})" for more in ALTERNATIVES])


def alternatives(name: str, fit: Callable[[str], Fitted], own: Fitted) -> dict[str, Fitted]:
    """Other fits of a model that predict as well as the best of its fits; its own is always one."""
    found = {name: own} | {other: fit(other) for other in other_fits(name)}
    kept = as_good(found)
    return {key: value for key, value in found.items() if key == name or key in kept}


def candidates(models: Sequence[str]) -> list[str]:
    """What is fitted: for ``auto`` every model, and some with classes of users."""
    classes = [f"{name}(classes=auto)" for name in IN_CLASSES]
    return [*MODELS, *classes] if AUTO in models else list(models)
