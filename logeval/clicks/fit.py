"""``fit-models``: serps -> click statistics -> models."""

from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from logeval.clicks.settings import Fitting
from logeval.errors import LogevalError
from logeval.stage import Arg, Manifest, Overwrite, Quiet, Scheduler, function, stage

if TYPE_CHECKING:
    from logeval.clicks.collection import FittedModels
    from logeval.clicks.fitted import FittedModel


@stage(
    "fit-models",
    example="logeval fit-models data/yandex -m dcm --top-queries 20 --out data/yandex/models/dcm",
    again="logeval fit-models LOG --out {folder} --overwrite",
    read="logeval.clicks.collection:read_models",
)
class Fit(Fitting["FittedModels"]):
    """Fit click models to a log.

    ``method`` applies to the models that have it; the others use their own. So do ``options``,
    which a model declares (``OPTIONS``), as ``last_termination="raw"`` of the DCM. ``scope`` says
    what queries share; by default they are shrunk towards each other (``partial``) where the
    smoothing is empirical Bayes, and apart (``per-query``) elsewhere. With ``holdout`` the rest is
    fitted and the held-out part scored. With ``out`` the models are written there, unless they are
    there already; other models that are there stay, and it is an error, without ``overwrite``.
    With a ``scheduler`` the log is folded by the workers of that Dask cluster, which must see it.

    ``models="auto"`` fits all models and keeps those that predict held-out SERPs best, beside the
    papers' DCM and PBM. It holds out a fifth of the sessions unless told otherwise.

    With ``periods`` the models are also fitted by day, week or part of the log, each period shrunk
    towards its neighbours, and held-out SERPs say which queries' users change. A fifth is held out.
    """

    _: KW_ONLY
    periods: Annotated[
        str | int | None,
        Arg("Also by day, week, or N parts of the log's days: do users change? (evaluate --drift)"),
    ] = None
    out: Annotated[Path | str | None, Arg("Folder for the models.", "output", needed=True)] = None
    verdict: Annotated[
        bool,
        Arg(
            "Say in a line what each model gets wrong (see check-models).",
            option="--verdict/--no-verdict",
        ),
    ] = True
    scheduler: Scheduler = None
    overwrite: Overwrite = False
    quiet: Quiet = False

    def check(self) -> None:
        """What chooses among fits needs held-out SERPs."""
        auto = [name.lower() for name in self.models] == ["auto"]
        if auto:
            self._set("models", ["DCM"])  # whatever: the others are fitted with the same settings
        if (auto or self.periods is not None) and self.holdout is None:
            self._set("holdout", "0.2")
        super().check()
        self._check_periods(auto)
        if auto:
            self._set("models", ["auto"])

    def _check_periods(self, auto: bool) -> None:
        """What cannot be fitted by period."""
        from logeval.clicks.drift import check_periods
        from logeval.clicks.estimation.fold import Holdout
        from logeval.clicks.models.registry import members_of

        if self.periods is None:
            return
        self._set("periods", check_periods(self.periods))
        if auto:
            raise LogevalError("periods: name the models")
        differ = any("classes" in name or members_of(name) for name in self.models)
        if str(self.classes) != "1" or differ:
            raise LogevalError("periods: classes of users cannot change; fit one class")
        if self.scope == "pooled" or self.min_impressions:
            raise LogevalError(
                "periods: every query and item is fitted; not with pooled, nor with min_impressions"
            )
        if not Holdout.parse(self.holdout).share:
            raise LogevalError(f"holdout={self.holdout}: periods need a share, as 0.2")

    def make(self, manifest: Manifest) -> "FittedModels":
        """Fold the log once, fit every model, score it on what was held out."""
        from logeval.clicks.collection import FittedModels, refuse_to_replace
        from logeval.clicks.drift import of_log
        from logeval.clicks.estimation.patterns import Counted
        from logeval.clicks.lists import Lists
        from logeval.clicks.models.registry import AUTO, own_models, without_method
        from logeval.clicks.quality.predictive import quick_records
        from logeval.clicks.quality.scores import candidates, chosen, score_model
        from logeval.running.progress import Progress

        if self.out is not None and not self.overwrite:
            refuse_to_replace(self.out)
        data, held_out = self.patterns(self.scheduler)
        names, why = candidates(self.models), []

        def fit(name: str) -> "tuple[FittedModel, Any]":
            one = self.fit(name, data)
            score = None if held_out is None else score_model(one, held_out)
            one.report.update({} if score is None else score.headline())
            if name in without_method(names, self.method):
                one.report["notes"].append(
                    f"{name}: it has no method {self.method}, so it was fitted by {one.method}"
                )
            progress.advance(1)
            return one, score

        with Progress("fit", len(names), "models", self.quiet) as progress:
            found = {name: fit(name) for name in names}
        if AUTO in self.models:
            names, reason = chosen(found)
            found, why = {name: found[name] for name in names}, [reason]
        fitted = {name: one for name, (one, _) in found.items()}
        periods = self._by_period(fitted) if self.periods is not None else ()
        for name, cls in own_models(fitted).items():
            fitted[name].report["class"] = cls
        manifest["chosen"] = why
        pages = not isinstance(data, Counted)  # else there is nothing to compare lists with
        if self.verdict and pages:
            change = of_log(self.opened, self.wanted, self.top_queries)
            records = quick_records(
                fitted, data, held_out, self.names, self.seed, self.quiet, change, self
            )
            for name, record in records.items():
                fitted[name].report.update(record)
        manifest["models"] = {name: f.report for name, f in fitted.items()}
        manifest["log_folder"] = str(self.opened.path)
        known = self.names.of_queries(data.queries) | self.names.only({"item": data.item_ids})
        lists = Lists.of(data) if pages else None
        return FittedModels(fitted, manifest, lists, periods, known)

    def _by_period(self, fitted: "dict[str, FittedModel]") -> "tuple[FittedModels, ...]":
        """The models of each period; what was found goes to the reports of the constant ones."""
        from logeval.clicks.collection import FittedModels
        from logeval.clicks.drift import fit_by_period, fits_of, fold_by_period, in_words
        from logeval.running.progress import Progress

        data = fold_by_period(
            self.opened, str(self.periods), self.wanted, self.top_queries, self.holdout, self.seed
        )
        fits = len(fitted) * fits_of(len(data.periods))
        found = {}
        with Progress("periods", fits, "fits", self.quiet) as progress:
            for name in fitted:
                found[name] = fit_by_period(
                    fitted[name],
                    lambda patterns, name=name: self.fit(name, patterns, intervals=False),  # type: ignore[misc]
                    data,
                    progress.advance,
                )
                fitted[name].report["drift"] = found[name].report
                fitted[name].report["changes"] = in_words(name, found[name].report)
        return tuple(
            FittedModels({name: drift.models[j] for name, drift in found.items()})
            for j in range(len(data.periods))
        )


fit_models = function(Fit)
