"""What each default of the contextual policies is worth: docs/contextual-defaults.svg.

One default of GL-CDCM (or LR) is changed at a time on a synthetic problem with fixed contexts; the
order of the positions, which that problem has sorted, on the DCM fitted to a generated log.
``python -m benchmarks.contextual_figures runs/defaults docs/contextual-defaults.svg`` keeps its
runs in the first folder, and goes on with them when it is started again; ``--horizon 1000
--runs 8`` is a quick look.
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from logeval import generate, ingest
from logeval.clicks.fit import fit_models
from logeval.evaluation.evaluate import evaluate
from logeval.evaluation.results import Runs
from logeval.features.make import make_features
from logeval.features.table import HALF

PROBLEM = "contextual(L=100,K=5,d=20,norm=5,contexts=fixed)"
SEED, SESSIONS = 31_002, 10_000
# The default of each panel is one of DEFAULTS, drawn in colour.
PANELS = {
    "multiplier m": [
        ("0.03", "GL-CDCM(m=0.03)"), ("0.1", "GL-CDCM"), ("0.3", "GL-CDCM(m=0.3)"),
        ("1", "GL-CDCM(m=1)"),
    ],
    "ridge": [
        ("0.01", "GL-CDCM(ridge=0.01)"), ("0.1", "GL-CDCM(ridge=0.1)"), ("1", "GL-CDCM"),
        ("10", "GL-CDCM(ridge=10)"),
    ],
    "ridge of LR": [
        ("0.001", "LR(ridge=0.001)"), ("0.01", "LR"), ("0.1", "LR(ridge=0.1)"),
        ("1", "LR(ridge=1)"),
    ],
    "eta of SGD": [
        ("0.03", "GL-CDCM(update=sgd,eta=0.03)"), ("0.1", "GL-CDCM(update=sgd)"),
        ("0.3", "GL-CDCM(update=sgd,eta=0.3)"), ("1", "GL-CDCM(update=sgd,eta=1)"),
    ],
    "feedback": [
        ("dcm", "GL-CDCM"), ("literal", "GL-CDCM(feedback=literal)"),
        ("first", "GL-CDCM(feedback=first)"),
    ],
}  # fmt: skip
DEFAULTS = {"GL-CDCM", "LR", "GL-CDCM(update=sgd)"}
ORDER = [("told", "GL-CDCM"), ("assumed", "GL-CDCM(order=assumed)")]


def synthetic_runs(folder: Path, horizon: int, runs: int) -> Runs:
    """All settings on the synthetic problem."""
    policies = list(dict.fromkeys(policy for panel in PANELS.values() for _, policy in panel))
    return evaluate(
        problem=PROBLEM, policies=policies, horizon=horizon, runs=runs, seed=SEED,
        out=folder / "synthetic",
    )  # fmt: skip


def log_runs(folder: Path, horizon: int, runs: int) -> Runs:
    """Both orders on a generated log."""
    raw, log = folder / "log.tsv.gz", folder / "log"
    if not (log / "manifest.json").exists():
        generate(raw, sessions=SESSIONS, queries=3, seed=SEED, overwrite=True)
        ingest(raw, log, overwrite=True)
    models = folder / "models"
    fit_models(log, "DCM", top_queries=3, holdout=HALF, seed=SEED, out=models)
    features = make_features(log, top_queries=3, seed=SEED, out=folder / "features")
    return evaluate(
        models, features=features, policies=[policy for _, policy in ORDER], horizon=horizon,
        runs=runs, seed=SEED, out=folder / "order",
    )  # fmt: skip


def draw(panels: dict[str, tuple[list[tuple[str, str]], Runs]], out: Path) -> None:
    """A panel per default: mean regret and twice its standard error."""
    mpl.rcParams["svg.hashsalt"] = "logeval"
    figure, axes = plt.subplots(1, len(panels), figsize=(11, 2.4), layout="constrained")
    for axis, (title, (settings, runs)) in zip(axes, panels.items(), strict=True):
        summary = runs.summary().set_index("policy")
        rows = summary.loc[[policy for _, policy in settings]]
        x = np.arange(len(settings))
        axis.errorbar(x, rows["regret"], 2 * rows["stderr"], fmt="o", color="0.45", capsize=2)
        for i, (_, policy) in enumerate(settings):
            if policy in DEFAULTS:
                axis.plot(i, rows["regret"].iloc[i], "o", color="C0", zorder=3)
        axis.set_xticks(x, [label for label, _ in settings])
        axis.set_xlim(-0.5, len(settings) - 0.5)
        axis.set_ylim(bottom=0)
        axis.set_title(title, fontsize=9)
        axis.tick_params(labelsize=8)
    axes[0].set_ylabel("regret", fontsize=9)
    figure.savefig(out, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """Run what is missing, print the means, draw."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--horizon", type=int, default=3_000)
    parser.add_argument("--runs", type=int, default=16)
    given = parser.parse_args()
    synthetic = synthetic_runs(given.folder, given.horizon, given.runs)
    order = log_runs(given.folder, given.horizon, given.runs)
    for found in (synthetic, order):
        print(found.summary()[["policy", "regret", "stderr"]].round(1).to_string(index=False))
    panels = {title: (settings, synthetic) for title, settings in PANELS.items()}
    draw({**panels, "order": (ORDER, order)}, given.out)


if __name__ == "__main__":
    main()
