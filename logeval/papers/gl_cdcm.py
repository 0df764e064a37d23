"""Liu, Li, Zhang: Contextual Dependent Click Bandit Algorithm for Web Recommendation (2018).

Figures 1 (synthetic) and 2 (Yandex). The paper does not say L, K, d, the distributions or the
constants of Figure 1; here L = 100, K = 5, d = 20, theta of norm 1 and contexts on the sphere.
Figure 2 takes the three most frequent queries of a log, L = 100, K = 10, d = 200; DCMs are
fitted by counting, as PyClick does, which the paper used.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from logeval.clicks.fit import fit_models
from logeval.errors import LogevalError
from logeval.evaluation import Runs, evaluate
from logeval.features.contexts import ITEM, USER_AND_ITEM
from logeval.features.table import HALF, make_features
from logeval.reports.regret_figures import save_regret
from logeval.reports.track_figures import save_cosine

PROBLEM = "contextual(L=100,K=5,d=20,norm=1,contexts=fresh)"
SYNTHETIC = (
    "GL-CDCM(ridge=0.001)", "GL-CDCM(update=sgd,eta=0.01)", "LR(ridge=0.001)",
    "LR(update=sgd,eta=0.01)", "dcmKL-UCB",
)  # fmt: skip
WEB = (
    "GL-CDCM", "GL-CDCM(update=sgd)", "LR", "LR(update=sgd)", "dcmKL-UCB",
    "dcmKL-UCB(restart=block)",
)  # fmt: skip
HORIZON = {"1a": 10_000, "1b": 10_000, "2a": 5_000, "2b": 5_000}
# Section 4.2, after 5000 rounds
PUBLISHED = {
    "2a": {
        "GL-CDCM": 32.28,
        "LR": 59.08,
        "GL-CDCM(update=sgd)": 81.71,
        "dcmKL-UCB": 99.09,
        "LR(update=sgd)": 114.96,
    },
    "2b": {"GL-CDCM": 28.51, "LR": 46.00},
}
CLAIM = {
    "1a": "GL-CDCM has less regret than LR, SGD more than exact fits, dcmKL-UCB the most",
    "1b": "the theta of GL-CDCM converges more quickly than that of LR",
    **{
        figure: ", ".join(f"{name} {regret}" for name, regret in found.items())
        for figure, found in PUBLISHED.items()
    },
}


def reproduce(
    figure: str,
    horizon: int,
    runs: int = 20,
    workers: int = 1,
    seed: int = 0,
    log: Path | str | None = None,
    out: Path | str | None = None,
    quiet: bool = False,
) -> Runs:
    """The runs of a figure; Figure 2 needs an ingested log, and its 2b one with users."""
    more = {"workers": workers, "seed": seed, "out": out, "quiet": quiet}
    if figure.startswith("1"):
        return evaluate(problem=PROBLEM, policies=SYNTHETIC, horizon=horizon, runs=runs, **more)  # type: ignore[arg-type]
    if log is None:
        raise LogevalError(
            f"gl-cdcm-{figure} needs an ingested log; `logeval generate` and "
            "`logeval ingest` make one"
        )
    context = ITEM if figure == "2a" else USER_AND_ITEM
    with TemporaryDirectory(prefix="logeval-") as folder:
        models = Path(folder) / "models"
        fit_models(
            log, "DCM", method="guo", top_queries=3, holdout=HALF, seed=seed, out=models,
            quiet=quiet,
        )  # fmt: skip
        features = make_features(log, top_queries=3, context=context, seed=seed, quiet=quiet)
        return evaluate(models, features=features, policies=WEB, horizon=horizon, runs=runs, **more)  # type: ignore[arg-type]


def save_figure(figure: str, runs: Runs, out: Path | str) -> Path:
    """Write the figure beside its runs."""
    save = save_cosine if figure == "1b" else save_regret
    return save(runs, Path(out) / f"figure-{figure}.pdf")
