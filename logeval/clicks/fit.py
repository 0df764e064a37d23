"""``fit-models``: serps -> click statistics -> models."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

from logeval.clicks.estimation.defaults import DRAWS, ITERATIONS, TOLERANCE
from logeval.errors import LogevalError
from logeval.log.queries import several
from logeval.stage import (
    Arg,
    LogFolder,
    Manifest,
    Overwrite,
    Queries,
    Quiet,
    Scheduler,
    Seed,
    Stage,
    TopQueries,
    function,
    stage,
)

if TYPE_CHECKING:
    from logeval.clicks.collection import FittedModels
    from logeval.clicks.estimation.patterns import Counted, FoldedClicks, Patterns
    from logeval.clicks.fitted import FittedModel

R = TypeVar("R")
MOST_DRAWS = 1_000  # each as large as the table of models without them


def model_names(incomplete: str = "") -> list[str]:
    """The click models whose names start so, for the shell."""
    from logeval.clicks.models.registry import MODELS

    names = [*MODELS, "all", "auto"]
    return [name for name in names if name.lower().startswith(incomplete.lower())]


def options_of(texts: Iterable[str]) -> dict[str, str]:
    """``last_termination=raw``s of the command line."""
    options = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise LogevalError(f"option {text}: write name=value, as last_termination=raw")
        options[name.strip().replace("-", "_")] = value.strip()
    return options


Holdout = Annotated[
    str | float | None,
    Arg("Score on this part: a share as 0.1, days:25-27, or random: lists in random order."),
]


@dataclass(frozen=True)
class Fitting(Stage[R]):
    """What all stages that fit click models to a log are told."""

    log: LogFolder
    models: Annotated[
        Sequence[str],
        Arg(
            "Click model, all, or auto (those that predict best); may be given several times.",
            option="--model/-m",
            complete=model_names,
        ),
    ]
    _: KW_ONLY
    method: Annotated[
        str | None, Arg("em, mle, guo or counting, for the models that offer it.")
    ] = None
    scope: Annotated[
        Literal["partial", "per-query", "pooled"] | None,
        Arg(
            "Position parameters: partial (of a query, shrunk towards all; the default), "
            "per-query, or pooled (one set for all)."
        ),
    ] = None
    smoothing: Annotated[str, Arg("Prior: empirical-bayes, pyclick (+1/+2) or none.")] = (
        "empirical-bayes"
    )
    classes: Annotated[
        str | int, Arg("Classes of users: a number, or auto (of each query, by held-out SERPs).")
    ] = 1
    top_queries: TopQueries = None
    queries: Queries = None
    min_impressions: Annotated[int, Arg("Drop items shown less often than this.", least=0)] = 0
    holdout: Holdout = None
    iterations: Annotated[int, Arg("EM stops after this many.", least=1)] = ITERATIONS
    tolerance: Annotated[
        float, Arg("EM stops at this relative change of likelihood.", least=0, most=0.999)
    ] = TOLERANCE
    draws: Annotated[
        int,
        Arg("Draws of the parameters to keep, for evaluate --draws.", least=0, most=MOST_DRAWS),
    ] = DRAWS
    options: Annotated[
        Mapping[str, str],
        Arg(
            "Option of a model: last_termination=raw (DCM); several times for more.",
            option="--option",
            parse=options_of,
        ),
    ] = field(default_factory=dict)
    seed: Seed = 0

    @classmethod
    def option_names(cls) -> list[str]:
        """The options of all models."""
        from logeval.clicks.models.registry import option_names

        return option_names()

    def check(self) -> None:
        """Names of models, methods and options, and what goes together."""
        from logeval.clicks.estimation.priors import check
        from logeval.clicks.estimation.statistics.fold import Holdout
        from logeval.clicks.models.registry import (
            MODELS,
            check_options,
            model_names,
            model_of,
            without_method,
        )

        every = [name.lower() for name in self.models] == ["all"]
        names = model_names(MODELS if every else self.models, self.classes)
        if not names:
            raise LogevalError("there is no click model to fit; name one, as dcm")
        self._set("models", names)
        self._set("options", check_options(names, dict(self.options)))
        self._set("holdout", None if self.holdout is None else str(self.holdout))
        if self.queries is not None and not several(self.queries):
            raise LogevalError("queries is empty; leave it out to fit all queries")
        without_method(names, self.method)  # an error if that is all of them
        check(self.smoothing)
        with_priors = self.smoothing == "empirical-bayes"
        if self.scope is None:
            self._set("scope", "partial" if with_priors else "per-query")
        if self.scope == "partial" and not with_priors:
            raise LogevalError(
                f"scope=partial is a prior fitted over queries, smoothing={self.smoothing} is "
                "another one; use scope=per-query"
            )
        Holdout.parse(self.holdout)
        for name in names:
            base, settings = model_of(name)
            settings.pop("classes", None)
            if settings:
                self._alone(base, settings)  # which checks them

    def arguments(self) -> Manifest:
        """The settings, and the code of click models of the user's own."""
        from logeval.clicks.models.registry import kind_of, own_models
        from logeval.running.own_code import source_checksum

        found = super().arguments()
        own = {name: source_checksum(kind_of(name)) for name in own_models(self.models)}
        return found | {"sources": own} if own else found

    def _alone(self, base: str, settings: dict[str, str]) -> Self:
        """The same for one model with settings of its own."""
        from logeval.clicks.models.registry import MODELS

        own: dict[str, Any] = dict(settings)
        if self.method is not None and not MODELS[base].has_method(self.method):
            own = {"method": None} | own
        return self.replace(models=[base], classes=1, **own)

    def patterns(self, scheduler: str | None = None) -> tuple["FoldedClicks", "Patterns | None"]:
        """Training and held-out patterns of the log, folded on a Dask cluster if one is named."""
        from logeval.clicks.estimation.statistics.fold import fold_patterns

        if self.opened.holds == "counts":
            return self._counted(), None
        where = self.opened.path
        data, held_out = fold_patterns(
            self.opened,
            queries=self.wanted,
            top_queries=self.top_queries,
            holdout=self.holdout,
            seed=self.seed,
            scheduler=scheduler,
        )
        if data is None:
            raise LogevalError(f"{where}: there are no SERPs to fit; check queries and holdout")
        if (most := int(data.impressions.max())) < self.min_impressions:
            raise LogevalError(
                f"{where}: min_impressions={self.min_impressions} leaves no item; the one shown "
                f"most was shown {most:,} times"
            )
        if self.holdout is not None and held_out is None:
            raise LogevalError(f"{where}: holdout={self.holdout} leaves no SERPs to score")
        return data, held_out

    def _counted(self) -> "Counted":
        """Those of a table of counts, to which not every model can be fitted."""
        from logeval.clicks.estimation.statistics.counted import counted_patterns
        from logeval.clicks.models.registry import MODELS, model_of

        where, can = self.opened.title, [name for name, kind in MODELS.items() if kind.from_counts]
        why = f"{where}: is a table of counts"
        if self.holdout is not None or "auto" in self.models:
            raise LogevalError(f"{why}: no session can be held out of it")
        wrong = [n for n in self.models if "classes" in model_of(n)[1] or model_of(n)[0] not in can]
        if wrong:
            raise LogevalError(
                f"{why}: it does not say what else was clicked on a page, and {wrong[0]} depends "
                f"on that; fit {', '.join(can)}"
            )
        data = counted_patterns(self.opened, self.wanted, self.top_queries)
        if data is None:
            raise LogevalError(f"{where}: there are no impressions to fit; check queries")
        return data

    def fit(self, name: str, data: "FoldedClicks", intervals: bool = True) -> "FittedModel":
        """One of the models, fitted to patterns."""
        from logeval.clicks.estimation.classes.fit import number_of
        from logeval.clicks.estimation.estimates import Options
        from logeval.clicks.estimation.priors import check
        from logeval.clicks.fitting import fit_one
        from logeval.clicks.models.registry import MODELS, model_of

        base, settings = model_of(name)
        classes = number_of(settings.pop("classes", 1))
        asked = self._alone(base, settings) if settings else self
        options = Options(
            MODELS[base].method(asked.method),
            str(asked.scope),
            check(asked.smoothing),
            self.iterations,
            self.tolerance,
            self.options,
            self.draws,
            self.seed,
            classes,
            intervals,
        )
        return fit_one(name, data, options, self.min_impressions)


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
    papers' DCM and PBM. ``alternatives`` adds the fits with other scopes and priors that predict
    them as well: a verdict should hold on all of these. Both hold out a fifth of the sessions
    unless told otherwise.

    With ``periods`` the models are also fitted by day, week or part of the log, each period shrunk
    towards its neighbours, and held-out SERPs say which queries' users change. A fifth is held out.
    """

    _: KW_ONLY
    alternatives: Annotated[
        bool,
        Arg(
            "Also other scopes and priors of each model, where held-out SERPs cannot tell them "
            "from the best."
        ),
    ] = False
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
        if (auto or self.alternatives or self.periods is not None) and self.holdout is None:
            self._set("holdout", "0.2")
        super().check()
        self._check_periods(auto)
        if auto:
            self._set("models", ["auto"])

    def _check_periods(self, auto: bool) -> None:
        """What cannot be fitted by period."""
        from logeval.clicks.drift.fold import check_periods
        from logeval.clicks.estimation.statistics.fold import Holdout

        if self.periods is None:
            return
        self._set("periods", check_periods(self.periods))
        if auto or self.alternatives:
            raise LogevalError("periods: name the models, without alternatives")
        if str(self.classes) != "1" or any("classes" in name for name in self.models):
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
        from logeval.clicks.estimation.patterns import Counted
        from logeval.clicks.lists import Lists
        from logeval.clicks.models.registry import AUTO, own_models, without_method
        from logeval.clicks.quality.checks.predictive import quick_records
        from logeval.clicks.quality.choosing import (
            alternatives,
            candidates,
            chosen,
            other_fits,
        )
        from logeval.clicks.quality.scores import score_model
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
        if self.alternatives:
            others = sum(len(other_fits(name)) for name in names)
            with Progress("alternatives", others, "models", self.quiet) as progress:
                kept = [alternatives(name, fit, own) for name, own in found.items()]
            found = {name: one for each in kept for name, one in each.items()}
        fitted = {name: one for name, (one, _) in found.items()}
        periods = self._by_period(fitted) if self.periods is not None else ()
        for name, cls in own_models(fitted).items():
            fitted[name].report["class"] = cls
        manifest["chosen"] = why
        pages = not isinstance(data, Counted)  # else there is nothing to compare lists with
        if self.verdict and pages:
            records = quick_records(fitted, data, held_out, self.names, self.seed, self.quiet)
            for name, record in records.items():
                fitted[name].report["checks"] = record
        manifest["models"] = {name: f.report for name, f in fitted.items()}
        manifest["log_folder"] = str(self.opened.path)
        known = self.names.of_queries(data.queries) | self.names.only({"item": data.item_ids})
        lists = Lists.of(data) if pages else None
        return FittedModels(fitted, manifest, lists, periods, known)

    def _by_period(self, fitted: "dict[str, FittedModel]") -> "tuple[FittedModels, ...]":
        """The models of each period; what was found goes to the reports of the constant ones."""
        from logeval.clicks.collection import FittedModels
        from logeval.clicks.drift.fit import fit_by_period, fits_of
        from logeval.clicks.drift.fold import fold_by_period
        from logeval.clicks.drift.words import in_words
        from logeval.running.progress import Progress

        data = fold_by_period(
            self.opened, str(self.periods), self.wanted, self.top_queries, self.holdout, self.seed
        )
        fits = len(fitted) * fits_of(len(data.periods))
        found = {}
        with Progress("periods", fits, "fits", self.quiet) as progress:
            for name in fitted:
                found[name] = fit_by_period(
                    lambda patterns, name=name: self.fit(name, patterns, intervals=False),  # type: ignore[misc]
                    data,
                    progress.advance,
                    self.seed,
                )
                fitted[name].report["drift"] = found[name].report
                fitted[name].report["changes"] = in_words(name, found[name].report)
        return tuple(
            FittedModels({name: drift.models[j] for name, drift in found.items()})
            for j in range(len(data.periods))
        )


fit_models = function(Fit)
