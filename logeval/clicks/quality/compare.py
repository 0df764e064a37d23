"""``compare-models`` and ``score``: click models on SERPs that they were not fitted to."""

from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Annotated

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
    from logeval.clicks.quality.comparison import Comparison


@stage(
    "compare-models",
    example="logeval compare-models data/yandex --model dcm --model pbm --top-queries 20",
    again="logeval compare-models LOG --out {folder}",
    read="logeval.clicks.quality.comparison:Comparison.read",
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
        from logeval.clicks.quality.comparison import compared
        from logeval.clicks.quality.scores import score_model
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
    read="logeval.clicks.quality.comparison:Comparison.read",
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
        from logeval.clicks.quality.comparison import compared, scored_on
        from logeval.clicks.quality.scores import score_model

        data = patterns_of(fold(self.opened))
        if self.known_queries:
            data = data.only(set(self.fitted.queries))
        if not len(data.count):
            raise LogevalError(f"{self.opened.path}: there are no SERPs to score")
        scores = {n: score_model(f, data) for n, f in self.fitted.fitted.items()}
        return compared(scores, self.seed, manifest, scored_on(self.fitted, self.opened))


compare_models = function(CompareModels)
score = function(ScoreModels)
