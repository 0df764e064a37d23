"""``report``: what was decided or run, on what, and what came out, as a page for a colleague."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from logeval.errors import LogevalError, short
from logeval.stage import Arg, Manifest, Quiet, Stage, fits, function, stage

if TYPE_CHECKING:
    from logeval.evaluation.results import Runs


@stage(
    "report",
    example="logeval report decision --out report",
    again="logeval report RUNS --out {folder}",
)
class Report(Stage[Path]):
    """Write a self-contained page about a decision, or runs, with figures and tables beside it.

    Returns the path of ``out``/index.html. ``models`` and ``log`` are the folders that the runs
    were made from; by default those that their manifests name, as far as they are still there.
    ``replay`` adds a section on what the log itself says. ``policies`` and ``n_runs`` choose among
    the runs that are there. The page is complete in itself: figures and tables can be saved from
    it, and are beside it as SVG (most also as PDF) and CSV.
    """

    runs: Annotated[
        Union["Runs", Path, str, Sequence[Union["Runs", Path, str]]],
        Arg("Folders that decide or evaluate wrote.", "input"),
    ]
    out: Annotated[
        Path | str, Arg("Folder for the page, figures and tables.", "output", option="--out")
    ]
    _: KW_ONLY
    models: Annotated[
        Path | str | None, Arg("Their models; default: those that were evaluated.", "input")
    ] = None
    log: Annotated[
        Path | str | None, Arg("Their log; default: the one that was fitted.", "input")
    ] = None
    replay: Annotated[
        Path | str | None,
        Arg("Folder of replay estimate, to show its estimates too.", "input"),
    ] = None
    recipe: Annotated[
        Path | str | None, Arg("The recipe behind it.", "input", on_command_line=False)
    ] = None
    policies: Annotated[
        Sequence[str] | None, Arg("Only these.", in_recipe=False, on_command_line=False)
    ] = None
    n_runs: Annotated[
        int | None, Arg("Only the first.", in_recipe=False, on_command_line=False)
    ] = None
    title: Annotated[str, Arg("Title of the page.")] = "logeval"
    style: Annotated[Literal["paper", "slides"], Arg("Look of the figures: paper or slides.")] = (
        "paper"
    )
    quiet: Quiet = False

    @property
    def given(self) -> "list[Runs | Path]":
        """The folders of the runs, and those that are in memory only."""
        from logeval.evaluation.results import Runs

        several: Any = [self.runs] if isinstance(self.runs, Runs | str | Path) else self.runs
        if not fits(several, Sequence[Runs | Path | str]):
            raise LogevalError(f"{short(self.runs)}: are not runs; give the folder of some")
        if not len(several):
            raise LogevalError(
                "there is nothing to report; name the folder of a decision, or of some runs"
            )
        return [r.folder or r if isinstance(r, Runs) else Path(r) for r in several]

    @property
    def folders(self) -> list[Path]:
        """The folders."""
        return [one for one in self.given if isinstance(one, Path)]

    @property
    def in_memory(self) -> "list[Runs]":
        """The runs that have no folder."""
        return [one for one in self.given if not isinstance(one, Path)]

    def arguments(self) -> Manifest:
        """The settings, and the names of the folders, which the page shows."""
        return super().arguments() | {"runs": [str(folder) for folder in self.folders]}

    def inputs(self) -> list[Manifest]:
        """Runs, and what else is shown."""
        from logeval.storage import tables

        given = {"models": self.models, "log": self.log, "replay": self.replay}
        found = [{"runs": tables.identity(folder)} for folder in self.folders]
        found += [{name: tables.identity(f)} for name, f in given.items() if f is not None]
        if self.recipe is not None:
            found.append({"recipe": tables.checksum(Path(self.recipe))})
        return found

    def run(self) -> Path:
        """Write the page."""
        from logeval.reports.writing import write_report
        from logeval.storage import tables

        tables.check_output(self.out, self.NAME, ["index.html"])
        write_report(self, self.manifest())
        return Path(self.out) / "index.html"


report = function(
    Report,
    """
    >>> runs = logeval.evaluate(
    ...     "data/models", policies=["dcmKL-UCB", "Random"], horizon=100, out="runs", quiet=True)
    >>> logeval.report(runs, "page", quiet=True).name
    'index.html'
    """,
)


def report_of(runs: "Runs", out: Path | str = "report", **settings: Any) -> Path:
    """Write ``out``/index.html about these runs, as ``logeval.report``; returns its path."""
    rows = runs.to_pandas()
    policies, n_runs = sorted(set(rows["policy"])), int(rows["run"].max()) + 1
    return report(runs, out, policies=policies, n_runs=n_runs, **settings)
