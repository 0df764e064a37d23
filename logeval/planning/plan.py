"""``plan``: the experiment before the experiment."""

from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from logeval.errors import LogevalError
from logeval.stage import (
    Arg,
    Manifest,
    ModelsFolder,
    OutFolder,
    Queries,
    Quiet,
    Seed,
    Stage,
    function,
    stage,
)

if TYPE_CHECKING:
    from logeval.planning.experiment import ExperimentPlan

LEAST_REHEARSALS = 3


@stage(
    "plan",
    example="logeval plan data/yandex/models/dcm --control logged --treatment best --out plan",
    again="logeval plan MODELS --out {folder}",
    read="logeval.planning.experiment:ExperimentPlan.read",
)
class Plan(Stage["ExperimentPlan"]):
    """How many searches an A/B test or an interleaving of two rankers needs.

    On the users of a fitted click model, with the draws of its parameters where it has some: the
    expected difference, the searches for the wanted power, and what a bandit would cost and earn in
    the traffic of the A/B test. What was chosen by the clicks (best lists, policies) is flattered
    by them: all is done again on simulated logs, whose users are known, to see by how much, and
    that is taken off. A ranker is ``logged``, ``best``, ``best:MODEL``, a table of lists
    (as a target of ``replay estimate``), or a policy after some searches of each query,
    ``TopRank@5000``.
    """

    models: ModelsFolder
    _: KW_ONLY
    control: Annotated[
        str | Path, Arg("Ranker: logged, best, best:MODEL, a table, POLICY@STEPS.")
    ] = "logged"
    treatment: Annotated[str | Path, Arg("The other ranker; the same forms.")] = "best"
    metric: Annotated[
        Literal["clicks", "satisfaction", "any-click"] | None,
        Arg("satisfaction, clicks or any-click of a search; default: the model's own."),
    ] = None
    model: Annotated[str | None, Arg("Whose users; default: the first model's.")] = None
    positions: Annotated[int | None, Arg("Length of the lists.", least=1)] = None
    queries: Annotated[
        Queries, Arg("Only these queries, 9982@0,4411@0; default: all.", parse=str)
    ] = None
    traffic: Annotated[
        Literal["logged", "equal"],
        Arg("How searches spread over queries: as logged (by SERPs), or equal."),
    ] = "logged"
    min_shown: Annotated[
        int, Arg("Best lists are of items that the log showed at least so often.", least=0)
    ] = 100
    power: Annotated[float, Arg("Probability to find the difference.", least=0.5, most=0.999)] = 0.8
    level: Annotated[float, Arg("False alarms, two-sided.", least=1e-6, most=0.5)] = 0.05
    bandit: Annotated[str | None, Arg("Policy in the same traffic; none: leave it out.")] = (
        "BubbleRank(items=base)"
    )
    draws: Annotated[
        int, Arg("Draws of the users' parameters, at most; 0: the fitted values.", least=0)
    ] = 20
    rehearsals: Annotated[
        int,
        Arg("Simulated logs that say how much best lists are flattered; 0: do not ask.", least=0),
    ] = 8
    seed: Seed = 0
    out: OutFolder = None
    quiet: Quiet = False

    def check(self) -> None:
        """Rankers and a policy that exist."""
        from logeval.planning.rankers import check_ranker
        from logeval.policies.registry import parse_policies

        if 0 < self.rehearsals < LEAST_REHEARSALS:
            raise LogevalError(
                f"rehearsals={self.rehearsals} say too little; ask for at least "
                f"{LEAST_REHEARSALS}, or for 0"
            )
        for text in (self.control, self.treatment):
            check_ranker(str(text))
        if str(self.control) == str(self.treatment):
            raise LogevalError(f"control and treatment are both {self.control}; name two rankers")
        if self.bandit == "none":
            self._set("bandit", None)
        if self.bandit is not None:
            parse_policies(self.bandit, track="ranking")

    def inputs(self) -> list[Manifest]:
        """The models, and rankers that are files."""
        from logeval.storage.tables import checksum

        found = self.models_input()
        for text in (str(self.control), str(self.treatment)):
            if Path(text).is_file():
                found.append({text: checksum(Path(text))})
        return found

    def make(self, manifest: Manifest) -> "ExperimentPlan":
        """The plan."""
        from logeval.planning.experiment import planned

        return planned(self, manifest)


plan = function(Plan)
