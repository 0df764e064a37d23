"""What a stage that fits click models is told: which models, to which SERPs, in which way."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

from logeval.errors import LogevalError
from logeval.log.queries import several
from logeval.stage import (
    Arg,
    LogFolder,
    Queries,
    Seed,
    Stage,
    TopQueries,
)

if TYPE_CHECKING:
    from logeval.clicks.estimation.patterns import Counted, FoldedClicks, Patterns
    from logeval.clicks.fitted import FittedModel

R = TypeVar("R")
ITERATIONS = 10_000
TOLERANCE = 1e-9  # of the relative change of likelihood, at which EM stops
DRAWS = 20  # of the posterior
MOST_DRAWS = 1_000  # each as large as the table of models without them


def model_names(incomplete: str = "") -> list[str]:
    """The click models whose names start so, for the shell."""
    from logeval.clicks.models.registry import kinds

    names = [*kinds(), "all", "auto"]
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
        str | None, Arg("em, guo (mle) or counting, for the models that offer it.")
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
        str | int, Arg("Classes of users: a number, or auto (chosen by held-out SERPs).")
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
        from logeval.clicks.estimation.fold import Holdout
        from logeval.clicks.estimation.priors import check
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
            settings.pop("members", None)
            if settings:
                self._alone(base, settings)  # which checks them

    def own(self) -> list[str]:
        """Click models that are classes of the user's own."""
        from logeval.clicks.models.registry import own_models

        return list(own_models(self.models))

    def _alone(self, base: str, settings: dict[str, str]) -> Self:
        """The same for one model with settings of its own."""
        from logeval.clicks.models.registry import kind_of

        own: dict[str, Any] = dict(settings)
        if self.method is not None and not kind_of(base).has_method(self.method):
            own = {"method": None} | own
        return self.replace(models=[base], classes=1, **own)

    def patterns(self, scheduler: str | None = None) -> tuple["FoldedClicks", "Patterns | None"]:
        """Training and held-out patterns of the log, folded on a Dask cluster if one is named."""
        from logeval.clicks.support.selection import CLICKS_ALONE, clicks_alone

        found = self._patterns(scheduler)
        if clicks_alone(found[0]):
            raise LogevalError(f"{self.opened.title}: {CLICKS_ALONE}")
        return found

    def _patterns(self, scheduler: str | None) -> tuple["FoldedClicks", "Patterns | None"]:
        from logeval.clicks.estimation.fold import fold_patterns
        from logeval.clicks.support.selection import how_to_say

        if self.opened.holds != "serps":
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
            why = f"; {how_to_say(self.opened)}" if self.holdout == "random" else ""
            raise LogevalError(f"{where}: holdout={self.holdout} leaves no SERPs to score{why}")
        return data, held_out

    def _counted(self) -> "Counted":
        """Those of a table of counts, to which not every model can be fitted."""
        from logeval.clicks.estimation.fold import counted_patterns
        from logeval.clicks.models.registry import MODELS, model_of

        where, can = self.opened.title, [name for name, kind in MODELS.items() if kind.from_counts]
        why = f"{where}: is a table of {self.opened.holds}"
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

    def fit(
        self, name: str, data: "FoldedClicks", intervals: bool = True, classes: int | None = None
    ) -> "FittedModel":
        """One of the models, fitted to patterns; with so many classes, whatever its name says."""
        from logeval.clicks.estimation.classes import number_of
        from logeval.clicks.estimation.estimates import Options
        from logeval.clicks.estimation.priors import check
        from logeval.clicks.fitting import fit_mixture, fit_one
        from logeval.clicks.models.registry import MODELS, members_of, model_of

        base, settings = model_of(name)
        named = number_of(settings.pop("classes", 1))
        number = named if classes is None else classes
        settings.pop("members", None)
        asked = self._alone(base, settings) if settings else self
        if members := members_of(name):
            return fit_mixture(name, members, data, asked.fit, intervals, self.seed)
        options = Options(
            MODELS[base].method(asked.method),
            str(asked.scope),
            check(asked.smoothing),
            self.iterations,
            self.tolerance,
            self.options,
            self.draws,
            self.seed,
            number,
            intervals,
        )
        return fit_one(name, data, options, self.min_impressions)
