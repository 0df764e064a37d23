"""``generate``: a synthetic log, and beside it the true parameters of its click model."""

import math
from dataclasses import KW_ONLY
from pathlib import Path
from typing import Annotated

from logeval.errors import LogevalError
from logeval.stage import Arg, Manifest, Overwrite, Quiet, Seed, Stage, function, stage

LARGEST = 10**10  # numbers of sessions, queries and users; Kaggle's log has 34 million sessions
SESSIONS_PER_USER = 6  # as in the real log


def formats() -> list[str]:
    """The formats in which a log can be written."""
    from logeval.log.formats.registry import GENERATED

    return list(GENERATED)


@stage(
    "generate",
    example="logeval generate out.tsv.gz --format yandex-personalized --sessions 50000 --seed 1",
    again="logeval generate LOG --overwrite",
)
class Generate(Stage[Path]):
    """Write a synthetic log that resembles the real one, and its true click models beside it.

    Returns the folder of the true models. The log is plain, .gz or .zst by its name. Memory does
    not depend on the number of sessions. With a ``taste`` users differ (``synthetic.tastes``), and
    their factors, which are held in memory, stand beside the true models.
    """

    out: Annotated[
        Path | str, Arg("The log to write: .tsv, .tsv.gz or .tsv.zst; or .csv.", "output")
    ]
    _: KW_ONLY
    format: Annotated[str, Arg("yandex-personalized, yandex-relpred or table.", among=formats)] = (
        "yandex-personalized"
    )
    sessions: Annotated[int, Arg("Number of sessions.", least=1, most=LARGEST)] = 50_000
    queries: Annotated[int, Arg("Number of distinct queries.", least=1, most=LARGEST)] = 1_000
    model: Annotated[str, Arg("Model of the clicks: cm, dcm, sdbn, dbn, ccm, pbm or ubm.")] = "dcm"
    users: Annotated[
        int | None,
        Arg("Number of users; default: one for every six sessions.", least=1, most=LARGEST),
    ] = None
    taste: Annotated[
        float, Arg("How much users differ in what attracts them; 0: not at all.", least=0)
    ] = 0.0
    factors: Annotated[int, Arg("Dimensions of their tastes.", most=LARGEST)] = 5
    explore: Annotated[
        float, Arg("Share of SERPs whose list is in random order.", least=0, most=1)
    ] = 0.0
    randomised: Annotated[
        float,
        Arg(
            "Share of SERPs in random order, of which the log says so: needs --format table.",
            least=0,
            most=1,
        ),
    ] = 0.0
    drift: Annotated[
        float,
        Arg("By how much attractions rise or fall over the days (sd, logit).", least=0, most=20),
    ] = 0.0
    seed: Seed = 0
    overwrite: Overwrite = False
    quiet: Quiet = False

    def check(self) -> None:
        """The name of the log, the model, and tastes that can be drawn."""
        from logeval.storage import files
        from logeval.synthetic.world import model_name

        if str(self.out) == "-":
            raise LogevalError(
                "-: the true models are written beside the log, so the log needs a name; write it "
                "to a file, as log.tsv.gz"
            )
        truth_folder(self.out)
        files.check_name(self.out)
        model_name(self.model)
        if self.drift and "classes" in self.model:
            raise LogevalError("drift: classes of users cannot change; take one or the other")
        if self.drift and "relpred" in self.format:
            raise LogevalError("drift: logs in the format yandex-relpred have no days")
        if not math.isfinite(self.taste):
            raise LogevalError(f"taste={self.taste}: write 0 (no tastes) or a number such as 1")
        if self.randomised and self.format != "table":
            raise LogevalError(
                f"randomised={self.randomised}: {self.format} cannot say which lists were in "
                "random order; write a table, with format=table and a name such as log.csv"
            )
        if self.explore + self.randomised > 1:
            raise LogevalError("explore and randomised are shares of one log: at most 1 together")
        if self.taste and self.factors < 1:
            raise LogevalError(f"factors={self.factors}: tastes need at least one")

    @property
    def path(self) -> Path:
        """The log."""
        return Path(self.out)

    @property
    def truth(self) -> Path:
        """The folder of its true models."""
        return truth_folder(self.out)

    @property
    def n_users(self) -> int:
        """How many users there are."""
        return max(self.sessions // SESSIONS_PER_USER, 1) if self.users is None else self.users

    def arguments(self) -> Manifest:
        """The settings; what has no effect is left out."""
        own = super().arguments()
        if not self.randomised:  # as logs of earlier versions have it
            del own["randomised"]
        return {
            **own,
            "out": self.path.name,
            "model": self.model.upper(),
            "users": self.n_users,
            "factors": self.factors if self.taste else 0,
        }

    def inputs(self) -> list[Manifest]:
        """A generated log is made from nothing."""
        return []

    def run(self) -> Path:
        """Write the log, unless it is there already."""
        from logeval.storage import files, tables
        from logeval.synthetic.sessions import write_log

        files.check_regular(self.path)
        tables.recover(self.truth)  # of a killed one nothing may be left but an empty folder
        taken = self.truth.is_dir() and any(self.truth.iterdir())
        if not self.overwrite and (self.path.exists() or taken):
            if self.why(thorough=True) is None:
                return self.truth
            there = self.path if self.path.exists() else self.truth
            raise LogevalError(
                f"{there}: exists already; choose another name, or replace it with overwrite=True"
            )
        write_log(self, self.manifest())
        return self.truth

    def why(self, thorough: bool = False) -> str | None:
        """Why ``out`` is not the log that is asked for; None if it is.

        A log of the same size and time of last change is taken for the same, unless ``thorough``.
        """
        from logeval.storage import tables

        if reason := tables.why(self.truth, self.manifest()):
            return reason
        if not self.path.exists():
            return "there is no output yet"
        found = tables.read_manifest(self.truth)
        if not thorough and tables.stamp(self.path) == found.get("stamp"):
            return None
        same = tables.record(self.path) == found.get("log")
        return None if same else f"{self.path} is not the log that was written"


def truth_folder(log: str | Path) -> Path:
    """Where the true models of a generated log are: ``log.truth`` beside ``log.tsv.gz``."""
    log = Path(log)
    if not log.name:
        raise LogevalError(f"{str(log)!r}: is not the name of a file; name one for the log")
    name = (
        log.name.removesuffix(".gz").removesuffix(".zst").removesuffix(".tsv").removesuffix(".csv")
    )
    return log.with_name(f"{name}.truth")


generate = function(
    Generate,
    """
    >>> truth = logeval.generate("log.tsv.gz", sessions=600, queries=3, quiet=True)
    >>> truth.name  # the folder of the true models
    'log.truth'
    """,
)
