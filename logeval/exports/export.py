"""``export``: fitted models -> graded judgments, propensities, or files to train rankers with."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Union

from logeval.errors import LogevalError
from logeval.stage import Arg, Manifest, ModelsFolder, Overwrite, Stage, function, split, stage

if TYPE_CHECKING:
    from logeval.exports.files import Exported
    from logeval.log.log import Log

THRESHOLDS = (0.1, 0.3, 0.6)


def thresholds_of(text: str) -> list[float]:
    """``0.1,0.3`` of the command line."""
    try:
        return [float(part) for part in split(text)]
    except ValueError:
        raise LogevalError(f"thresholds={text}: write numbers, as 0.1,0.3,0.6") from None


@stage(
    "export",
    example="logeval export data/yandex/models/dcm --judgments qrels --out yandex.qrels",
)
class Export(Stage["Exported"]):
    """Write judgments, propensities or training files from fitted models.

    One of ``judgments`` (graded relevance of every item of a query, with its evidence),
    ``propensities`` (how often each position is examined) and ``ltr`` (rows to train a ranker
    with). A grade is the number of ``thresholds`` that the relevance reaches. An item whose 95%
    interval reaches into another grade is withheld, or kept. Without ``out`` it is printed.

    Propensities are ``from`` swaps, whatever attracts: items that the log showed at several
    positions. Where these do not reach every position, or a ``model`` is named, they are those of a
    PBM. ``ltr=lightgbm`` with a ``from`` weighs clicks by them, and names no positions.
    """

    models: ModelsFolder
    _: KW_ONLY
    judgments: Annotated[
        Literal["qrels", "csv", "json"] | None,
        Arg("qrels (TREC), csv (with the evidence) or json (OpenSearch's judgment list)."),
    ] = None
    propensities: Annotated[bool, Arg("A row per position, with the weight of a click there.")] = (
        False
    )
    ltr: Annotated[
        Literal["svmlight", "lightgbm"] | None,
        Arg("svmlight (grades as labels), or lightgbm (clicks, with .query .position .weight)."),
    ] = None
    model: Annotated[str | None, Arg("Which model; default: the first.")] = None
    relevance: Annotated[
        Literal["attraction", "satisfaction"],
        Arg("What is graded: attraction, or satisfaction (DBN, SDBN)."),
    ] = "attraction"
    thresholds: Annotated[
        Sequence[float] | None,
        Arg(
            "A grade is how many of these the relevance reaches; default: 0.1,0.3,0.6.",
            parse=thresholds_of,
        ),
    ] = None
    uncertain: Annotated[
        Literal["withhold", "keep"], Arg("Items whose 95% interval spans grades.")
    ] = "withhold"
    propensities_from: Annotated[
        Literal["model", "swaps"] | None,
        Arg("swaps (the default where they suffice), or the model.", option="--from"),
    ] = None
    log: Annotated[
        Union["Log", Path, str, None],
        Arg("Log to count swaps in; default: that the models were fitted to.", "input"),
    ] = None
    out: Annotated[
        Path | str | None, Arg("File to write; standard output if absent.", "output")
    ] = None
    overwrite: Overwrite = False

    def check(self) -> None:
        """One thing to export, and thresholds that ascend."""
        asked = [name for name in ("judgments", "propensities", "ltr") if getattr(self, name)]
        if len(asked) != 1:
            given = " and ".join(asked) or "nothing"
            raise LogevalError(
                f"{given} to export; choose one of judgments=qrels, propensities and ltr=svmlight"
            )
        cuts = list(self.cuts)
        if not cuts or sorted(set(cuts)) != cuts or not 0.0 < cuts[0] <= cuts[-1] < 1.0:
            raise LogevalError("thresholds must ascend between 0 and 1, as 0.1,0.3,0.6")
        if self.propensities_from and not self.propensities and self.ltr != "lightgbm":
            raise LogevalError(
                "propensities_from goes with propensities or ltr=lightgbm; leave it out"
            )
        if self.ltr and self.out is None:
            raise LogevalError("ltr: several files are written; give out=FILE, the name of one")

    @property
    def cuts(self) -> Sequence[float]:
        """The thresholds."""
        return THRESHOLDS if self.thresholds is None else self.thresholds

    def inputs(self) -> list[Manifest]:
        """The models."""
        return [{"models": self.fitted.manifest.get("files", {})}]

    def run(self) -> "Exported":
        """What is exported, written to ``out`` where that is given."""
        from logeval.exports.files import exported
        from logeval.storage import files

        out = None if self.out is None else Path(self.out)
        if out is not None:
            files.check_regular(out)
        found = exported(self)
        if out is not None:
            paths = {out.with_name(out.name + more): text for more, text in found.files.items()}
            for path in paths:
                if path.exists() and not self.overwrite:
                    raise LogevalError(
                        f"{path}: exists already; choose another name, or replace it with "
                        "overwrite=True"
                    )
            for path, text in paths.items():
                files.write_text(path, text)
        return found


export = function(Export)
