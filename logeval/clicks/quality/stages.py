"""``check-models``, ``compare-models`` and ``score``: how good fitted click models are."""

from dataclasses import KW_ONLY, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Union

from logeval.clicks.settings import DRAWS, MOST_DRAWS, Fitting
from logeval.clicks.settings import Holdout as HoldoutArg
from logeval.errors import LogevalError
from logeval.stage import (
    Arg,
    LogFolder,
    Manifest,
    ModelsFolder,
    OutFolder,
    Quiet,
    Seed,
    Stage,
    function,
    stage,
)

if TYPE_CHECKING:
    from logeval.clicks.collection import FittedModels
    from logeval.clicks.quality.predictive import Checks
    from logeval.clicks.quality.scores import Comparison


@stage(
    "compare-models",
    example="logeval compare-models data/yandex --model dcm --model pbm --top-queries 20",
    again="logeval compare-models LOG --out {folder}",
    read="logeval.clicks.quality.scores:Comparison.read",
)
class CompareModels(Fitting["Comparison"]):
    """Fit models on one part of a log and score them on the rest.

    The arguments are those of ``fit_models``.
    """

    _: KW_ONLY
    holdout: HoldoutArg = "0.1"
    draws: Annotated[
        int, Arg("As of fit_models.", least=0, most=MOST_DRAWS, on_command_line=False)
    ] = DRAWS
    out: OutFolder = None
    quiet: Quiet = False

    def check(self) -> None:
        """As of ``fit_models``, with a part to score on."""
        super().check()
        if self.holdout is None:
            raise LogevalError("holdout=None: some SERPs must be left to score on, as 0.1")

    def make(self, manifest: Manifest) -> "Comparison":
        """Every model, fitted and scored."""
        from logeval.clicks.quality.scores import compared, score_model
        from logeval.running.progress import Progress

        data, held_out = self.patterns()
        assert held_out is not None  # patterns() refuses an empty one
        scores = {}
        with Progress("fit", len(self.models), "models", self.quiet) as progress:
            for name in self.models:
                scores[name] = score_model(self.fit(name, data, intervals=False), held_out)
                progress.advance(1)
        return compared(scores, self.seed, manifest)


@stage(
    "score",
    example="logeval score data/yandex/models/dcm data/other --json",
    again="logeval score MODELS LOG --out {folder}",
    read="logeval.clicks.quality.scores:Comparison.read",
)
class ScoreModels(Stage["Comparison"]):
    """Score fitted models on a log, for instance another one.

    Items and queries the models have never seen get the prior's values; ``known_queries``
    leaves out SERPs of other queries.
    """

    models: ModelsFolder
    log: LogFolder
    _: KW_ONLY
    known_queries: Annotated[bool, Arg("Leave out queries the models were not fitted to.")] = False
    out: OutFolder = None
    seed: Seed = 0

    def inputs(self) -> list[Manifest]:
        """The models, as far as they have a manifest, and the log."""
        return [*self.models_input(), {"log": self.opened.identity}]

    def make(self, manifest: Manifest) -> "Comparison":
        """The score of each model."""
        from logeval.clicks.estimation.fold import fold
        from logeval.clicks.estimation.patterns import patterns_of
        from logeval.clicks.quality.scores import compared, score_model, scored_on

        data = patterns_of(fold(self.opened))
        if self.known_queries:
            data = data.only(set(self.fitted.queries))
        if not len(data.count):
            raise LogevalError(f"{self.opened.path}: there are no SERPs to score")
        scores = {n: score_model(f, data) for n, f in self.fitted.fitted.items()}
        return compared(scores, self.seed, manifest, scored_on(self.fitted, self.opened))


@stage(
    "check-models",
    example="logeval check-models data/yandex/models/dcm data/yandex --figures checks",
    again="logeval check-models MODELS LOG --out {folder}",
)
class CheckModels(Stage["Checks"]):
    """Simulate clicks on held-out lists and compare them with the log's.

    If the models were fitted to a part of this log, the held-out part is checked; if to all of
    it, all of it, which is lenient; otherwise all SERPs of the queries they know. ``truth`` are
    the true models of a generated log, as ``generate`` puts them beside it. Models fitted with
    ``holdout="random"`` are checked on the lists that the log showed in random order.
    """

    REUSED: ClassVar[bool] = False

    models: ModelsFolder
    log: LogFolder
    _: KW_ONLY
    simulations: Annotated[int, Arg("Simulations of each held-out SERP, at least 80.")] = 200
    serps: Annotated[int, Arg("Held-out SERPs to check on, drawn if there are more.", least=1)] = (
        20_000
    )
    truth: Annotated[
        Union["FittedModels", Path, str, None],
        Arg("True models of a generated log (LOG.truth), to compare with.", "input"),
    ] = None
    out: OutFolder = None
    seed: Seed = 0
    quiet: Quiet = False

    def make(self, manifest: Manifest) -> "Checks":
        """The checks, beside the truth where there is one."""
        from logeval.clicks.collection import opened_models
        from logeval.clicks.drift import of_log
        from logeval.clicks.quality.predictive import (
            check_patterns,
            counted_checks,
            held_out_sample,
        )
        from logeval.clicks.quality.truth import against_truth, check_belongs
        from logeval.clicks.support.graph import harvested_beside

        fitted = self.fitted
        beside = None
        if self.truth is not None:
            true = opened_models(self.truth)
            check_belongs(true, self.opened, "the truth" if true is self.truth else str(self.truth))
            beside = against_truth(fitted, true)
        manifest["log_folder"] = str(self.opened.path)
        if self.opened.holds != "serps":
            found = counted_checks(fitted, self.opened)
            return replace(found, truth=beside, manifest=manifest)
        sample = held_out_sample(fitted, self.opened, self.serps, self.seed)
        checks = check_patterns(
            fitted.fitted.values(), sample, self.simulations, self.seed, self.quiet
        )
        days = of_log(self.opened, sample.test.queries, None)
        verdicts = {name: one.with_change(days) for name, one in checks.verdicts.items()}
        queries = checks.table["query"].dropna().unique()
        manifest["names"] = self.opened.names.of_queries(queries).kept()
        swaps = harvested_beside(fitted.fitted.values(), sample.test)
        return replace(
            checks, verdicts=verdicts, truth=beside, examination=swaps, manifest=manifest
        )


compare_models = function(
    CompareModels,
    """
    >>> found = logeval.compare_models("data/log", ["pbm", "dctr"], quiet=True)
    >>> sorted(found.overall().index)
    ['DCTR', 'PBM']
    """,
)
score = function(
    ScoreModels,
    """
    >>> found = logeval.score("data/models", "data/log", known_queries=True)
    >>> sorted(found.overall().index)
    ['DCM', 'PBM']
    """,
)
check_models = function(
    CheckModels,
    """
    >>> checks = logeval.check_models("data/models", "data/log", simulations=80, quiet=True)
    >>> sorted(set(checks.table["model"]))
    ['DCM', 'PBM']
    """,
)
