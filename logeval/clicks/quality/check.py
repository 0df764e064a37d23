"""``check-models``: how far fitted models can be trusted as simulators."""

from dataclasses import KW_ONLY, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Union

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


@stage(
    "check-models",
    example="logeval check-models data/yandex/models/dcm data/yandex --figures checks",
    again="logeval check-models MODELS LOG --out {folder}",
)
class CheckModels(Stage["Checks"]):
    """Simulate clicks on held-out lists and compare them with the log's.

    If the models were fitted to a part of this log, the held-out part is checked; if to all of
    it, all of it, which is lenient; otherwise all SERPs of the queries they know. ``truth`` are
    the true models of a generated log, as ``generate`` puts them beside it. Where the log says
    which lists were shown in random order, ``randomised`` fits the models to the others, and
    checks them there.
    """

    REUSED: ClassVar[bool] = False

    models: ModelsFolder
    log: LogFolder
    _: KW_ONLY
    simulations: Annotated[int, Arg("Simulations of each held-out SERP, at least 80.")] = 200
    serps: Annotated[int, Arg("Held-out SERPs to check on, drawn if there are more.", least=1)] = (
        20_000
    )
    randomised: Annotated[
        bool,
        Arg("Fit the models again to the ranked lists, and check them on those in random order."),
    ] = False
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
        from logeval.clicks.quality.counted import counted_checks
        from logeval.clicks.quality.predictive import (
            check_patterns,
            fitted_to_ranked,
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
        if self.opened.holds == "counts":
            found = counted_checks(fitted, self.opened)
            return replace(found, truth=beside, manifest=manifest)
        table = None
        if self.randomised:
            fitted, table = fitted_to_ranked(fitted, self.opened)
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
            checks, verdicts=verdicts, truth=beside, examination=swaps,
            randomised=table, manifest=manifest,
        )  # fmt: skip


check_models = function(CheckModels)
