"""``evaluate``: models -> runs."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union

from logeval.errors import LogevalError, unknown_names
from logeval.log.queries import several
from logeval.stage import Arg, Queries, Quiet, Stage, function, stage

if TYPE_CHECKING:
    from logeval.clicks.collection import FittedModels
    from logeval.evaluation.results import Runs
    from logeval.features.table import Features
    from logeval.policies.registry import PolicySpec


def policy_names(incomplete: str) -> list[str]:
    """The policies whose names start so, for the shell."""
    from logeval.policies.registry import POLICIES

    return [name for name in POLICIES if name.lower().startswith(incomplete.lower())]


def track_names(incomplete: str = "") -> list[str]:
    """The tracks whose names start so."""
    from logeval.tracks.registry import TRACKS

    return [name for name in TRACKS if name.startswith(incomplete.lower())]


def steps_of(text: str) -> int | list[int]:
    """``40``, or the steps ``10,100,1000``, of the command line."""
    try:
        steps = [int(part) for part in text.split(",")]
    except ValueError:
        raise LogevalError(f"checkpoints={text}: write a number, or steps like 10,100") from None
    return steps if "," in text else steps[0]


Policies = Annotated[
    str | type | Sequence[str | type],
    Arg(
        "A policy, RankedExp3(gamma=0.05), module:Class, or all of a track; may be repeated.",
        option="--policy",
        complete=policy_names,
    ),
]
Known = Annotated[
    float | None,
    Arg(
        "Only results that the log showed in this share of a query's searches, or so often.",
        least=0,
    ),
]
Workers = Annotated[int, Arg("Processes on this machine.", "running", least=1, in_recipe=True)]


@stage(
    "evaluate",
    example='logeval evaluate --problem "B_LB(L=16,K=4,p=0.2,gap=0.15,gamma=0.5)" '
    "--policy dcmKL-UCB --policy RankedKL-UCB --horizon 10000 --runs 5 --out runs/demo",
    again="logeval evaluate MODELS --out {folder}",
)
class Evaluate(Stage["Runs"]):
    """Run bandit policies on simulated users and compare their regret.

    ``models`` are fitted click models, as ``fit_models`` returns them, or their folder; ``problem``
    names synthetic ones instead. A policy is a name, with parameters if need be, ``module:Class``,
    or a class. With ``out`` the runs table is written there as it grows, and the same call goes on
    where an earlier one stopped. The same seed gives the same table.

    With ``draws`` the simulators are that many draws of the models' parameters, each with its own
    optimum, so that intervals hold what the log leaves open about the models. With ``drift`` they
    walk through the periods that the models were fitted by, and regret is against the best list of
    each moment. With ``corrupt`` and ``delay`` policies hear other clicks; regret is of true ones.
    """

    models: Annotated[
        Union["FittedModels", Path, str, Sequence[Any], None],
        Arg("Folder of fitted click models (or use --problem).", "input"),
    ] = None
    _: KW_ONLY
    policies: Policies = ()
    problem: Annotated[
        Sequence[str] | None,
        Arg("A synthetic problem instead of models; may be repeated.", "input"),
    ] = None
    horizon: Annotated[int, Arg("Steps of each run.", least=1)] = 10_000
    runs: Annotated[int, Arg("Runs of each query.", least=1)] = 5
    track: Annotated[
        str | None,
        Arg(
            "One track only, as rank1; default: the policies' own.",
            among=track_names,
            complete=track_names,
        ),
    ] = None
    positions: Annotated[
        int | None, Arg("Length of the lists; default: the shortest model's.", least=1)
    ] = None
    queries: Annotated[
        Queries, Arg("Only these queries, 9982@0,4411@0; default: all.", parse=str)
    ] = None
    identified: Annotated[
        bool,
        Arg("Leave out queries whose clicks do not decide the model, so that it rests on a prior."),
    ] = False
    known: Known = None
    reward: Annotated[
        str | None, Arg("satisfaction, clicks or any-click; default: the model's own.")
    ] = None
    features: Annotated[
        Union["Features", Path, str, None],
        Arg("Folder of features: the contextual track.", "input"),
    ] = None
    block: Annotated[
        int | None, Arg("With --features: rounds of a query in turn (500).", least=1)
    ] = None
    same_log: Annotated[bool, Arg("Allow features that share sessions with the models.")] = False
    workers: Workers = 1
    scheduler: Annotated[
        str | None,
        Arg("Address of a Dask scheduler, tls://host:8786.", "running", in_recipe=True),
    ] = None
    seed: Annotated[int, Arg("The same seed gives the same table.")] = 0
    checkpoints: Annotated[
        int | Sequence[int] | None,
        Arg(
            "How many checkpoints (log-spaced, and as many even), or a list 10,100.",
            parse=steps_of,
        ),
    ] = None
    out: Annotated[
        Path | str | None,
        Arg("Folder of the runs table; an unfinished one goes on.", "output"),
    ] = None
    draws: Annotated[
        int,
        Arg("Simulate draws of the fitted parameters instead of them, as 20.", least=0),
    ] = 0
    drift: Annotated[
        bool,
        Arg("Walk through the periods of fit-models --periods: users that change."),
    ] = False
    corrupt: Annotated[
        str | None,
        Arg("Forge clicks: in a share of the steps, 0.05@worst, or the first ones, 500@best."),
    ] = None
    delay: Annotated[
        str | int | None,
        Arg("Clicks arrive so many steps late, 100; or never for a share, 100@0.2."),
    ] = None
    quiet: Quiet = False

    def check(self) -> None:
        """Names, numbers, and what goes together; code of the user's is not imported."""
        from logeval.evaluation.feedback import Feedback
        from logeval.evaluation.matching import in_tracks
        from logeval.evaluation.plan import check_runs, checkpoints_of
        from logeval.tracks.lists import REWARDS
        from logeval.tracks.registry import TRACKS, home_track

        if not self.policies:
            raise LogevalError("there is no policy to evaluate; name at least one")
        if self.problem is None:
            home = home_track(self.features is not None)
            TRACKS[home].check_reward(self.reward)
            if self.reward not in (None, *REWARDS):
                raise unknown_names("reward", [self.reward], REWARDS)
            in_tracks(self.specs(home, load=False), self.track, home)
        Feedback.parse(self.corrupt, self.delay)
        checkpoints_of(self.horizon, self.checkpoints)
        check_runs(self.runs, 1)
        if self.queries is not None and not several(self.queries):
            raise LogevalError("queries is empty; leave it out for all of them")
        if self.features is None and (self.block is not None or self.same_log):
            raise LogevalError("block and same_log are about features, and there are none")
        if self.draws and (self.problem is not None or self.features is not None):
            raise LogevalError("draws are of fitted models, without features")
        if self.drift and (self.draws or self.features is not None):
            raise LogevalError("drift: is of fitted models, without draws or features")
        if (self.models is None) == (self.problem is None):
            raise LogevalError("give either fitted models or a problem")
        if self.problem is not None:
            if self.positions is not None or self.queries is not None:
                raise LogevalError("a synthetic problem has its own K and no queries")
            if self.features is not None or self.known is not None:
                raise LogevalError("a synthetic problem has its own features, and no log")

    def specs(self, track: str | None = None, load: bool = True) -> "list[PolicySpec]":
        """The policies; without ``load`` code of the user's is not run, and not looked at."""
        from logeval.policies.registry import parse_policies

        return parse_policies(self.policies, self.track or track, load)

    def run(self) -> "Runs":
        """The runs; those that ``out`` has already are not made again."""
        from logeval.evaluation.simulation import simulate

        return simulate(self)

    def why(self) -> str | None:
        """Which runs are missing in ``out``; None if none is."""
        from logeval.evaluation.simulation import missing_runs

        assert self.out is not None
        return missing_runs(self, Path(self.out))


evaluate = function(
    Evaluate,
    """
    >>> runs = logeval.evaluate(
    ...     problem="B_LB(L=16,K=4,p=0.2,gap=0.15)", policies=["dcmKL-UCB", "Random"],
    ...     horizon=1000, runs=3, quiet=True)
    >>> runs.summary()["policy"].tolist()
    ['dcmKL-UCB', 'Random']
    """,
)
