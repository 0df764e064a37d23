"""``decide``: log -> TEST, KEEP or WAIT."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Union

from logeval.errors import LogevalError
from logeval.evaluation.evaluate import Known, Policies, Workers
from logeval.log.ingest import pairs_of
from logeval.log.queries import several
from logeval.stage import (
    Arg,
    Manifest,
    OutFolder,
    Queries,
    Quiet,
    Seed,
    Stage,
    TopQueries,
    function,
    stage,
)

if TYPE_CHECKING:
    from logeval.clicks.collection import FittedModels
    from logeval.decision.decision import Decision
    from logeval.log.log import Log
    from logeval.policies.registry import PolicySpec

SIMULATORS = ("DBN", "DBN(classes=3)", "UBM(classes=3)")
POLICIES = ("dcmKL-UCB", "RankedKL-UCB", "TopRank", "UniRank", "BubbleRank(items=base)")
HELD_OUT = "0.2"


@stage(
    "decide",
    example="logeval decide data/yandex --out decision",
    again="logeval decide LOG --out {folder}",
    read="logeval.decision.decision:Decision.read",
)
class Decide(Stage["Decision"]):
    """Should a bandit take over from today's ranker? TEST one, KEEP the ranker, or WAIT.

    Each query is searched as often as in the log, from the first search to the last, and every look
    at a result is paid for. Users are those of the fitted click model that predicts this log best,
    with parameters drawn from what the log leaves open. Predicted differences are taken for as much
    as the log's own lists show that they are worth. A raw file is ingested first.
    Without ``models`` some are fitted. ``traffic`` is in periods of the log, or, from 1,000 on, in
    searches. ``known`` leaves to policies the results that the log showed in so large a share of a
    query's searches (or, from 1 on, so often).
    """

    log: Annotated[
        Union["Log", Path, str], Arg("Folder of an ingested log, or a raw log file.", "input")
    ]
    _: KW_ONLY
    models: Annotated[
        Union["FittedModels", Path, str, None],
        Arg("Folder of fitted models; without, some are fitted.", "input"),
    ] = None
    simulators: Annotated[
        Sequence[str],
        Arg("Click model to try as a simulator; may be repeated.", option="--model/-m"),
    ] = SIMULATORS
    policies: Policies = POLICIES
    reward: Annotated[
        Literal["clicks", "any-click", "satisfaction"],
        Arg("What counts: clicks, any-click (searches with one) or satisfaction (of a model)."),
    ] = "clicks"
    traffic: Annotated[float, Arg("Periods of the log; from 1,000 on, searches.", least=1e-6)] = 1.0
    known: Known = 0.01
    top_queries: TopQueries = 50
    queries: Queries = None
    draws: Annotated[
        int, Arg("Draws of the users' parameters, each with a run of its own.", least=4, most=200)
    ] = 20
    columns: Annotated[
        Mapping[str, str],
        Arg("Of a raw table: ours=yours, as query=term.", option="--map", parse=pairs_of),
    ] = field(default_factory=dict)
    seed: Seed = 0
    workers: Workers = 1
    out: OutFolder = None
    quiet: Quiet = False

    def check(self) -> None:
        """Names of models and policies."""
        from logeval.clicks.models.registry import model_names

        if not self.policies:
            raise LogevalError("there is no policy to decide on; name at least one")
        self._set("simulators", model_names(self.simulators))
        if not self.simulators:
            raise LogevalError("there is no click model to simulate; name one, as ubm")
        if self.queries is not None and not several(self.queries):
            raise LogevalError("queries is empty; leave it out for all of them")
        self.specs(load=False)

    def specs(self, load: bool = True) -> "list[PolicySpec]":
        """The policies; without ``load`` code of the user's is not run."""
        from logeval.policies.registry import parse_policies

        return parse_policies(self.policies, load=load)

    def own(self) -> list[str]:
        """Policies that are classes of the user's own."""
        return [spec.name for spec in self.specs() if not spec.built_in]

    @property
    def opened(self) -> "Log":
        """The log; a raw one is ingested, once."""
        from logeval.log.ingest import Ingest
        from logeval.log.log import Log

        if not isinstance(self.log, Log):
            given = Path(self.log)
            refuse_models(given)
            if given.is_file():
                out = None if self.out is None else Path(self.out) / "log"
                mapped = Ingest(
                    [given], out, columns=self.columns, overwrite=True, quiet=self.quiet
                )
                self._set("log", mapped.done())
        log: Log = Stage.opened.fget(self)  # type: ignore[attr-defined]
        return log

    @property
    def fitted(self) -> "FittedModels":
        """The models; where none were given they are fitted, once."""
        from logeval.clicks.fit import Fit

        if self.models is None:
            out = None if self.out is None else Path(self.out) / "models"
            fit = Fit(
                self.opened,
                self.simulators,
                top_queries=None if self.queries is not None else self.top_queries,
                queries=self.wanted,
                holdout=HELD_OUT,
                draws=self.draws,
                seed=self.seed,
                out=out,
                overwrite=True,
                quiet=self.quiet,
            )
            self._set("models", fit.run())
        models: FittedModels = Stage.fitted.fget(self)  # type: ignore[attr-defined]
        return models

    def inputs(self) -> list[Manifest]:
        """The log, and the models that were given."""
        log = {"log": self.opened.identity}
        return [log] if self.models is None else [log, *self.models_input()]

    def make(self, manifest: Manifest) -> "Decision":
        """The answer."""
        from logeval.decision.answer import decided

        return decided(self, manifest)


def refuse_models(folder: Path) -> None:
    """Raise for a folder of models in the place of the log."""
    from logeval.storage import tables

    if folder.is_dir() and tables.there_is(folder):
        made = tables.read_manifest(folder)
        if made["stage"] == "fit-models":
            log = made.get("log_folder") or "LOG"
            raise LogevalError(
                f"{folder}: holds fitted models; give their log first, and them as models: "
                f"`logeval decide {log} --models {folder}`"
            )


decide = function(
    Decide,
    """
    >>> found = logeval.decide(
    ...     "data/log", models="data/models", policies="dcmKL-UCB", draws=4, quiet=True)
    >>> found.decision in ("TEST", "KEEP", "WAIT")
    True
    """,
)
