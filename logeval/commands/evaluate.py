"""``logeval evaluate`` and ``logeval plot regret``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logeval.commands.options import (
    Csv,
    Json,
    Quiet,
    Scheduler,
    policy_names,
    split,
    track_names,
)
from logeval.commands.plot import plot_app
from logeval.commands.show import (
    interval,
    p_value,
    print_for_programs,
    table_text,
    wrapped,
)
from logeval.errors import LogevalError
from logeval.manifests import check_figures, figure_in

if TYPE_CHECKING:
    import pandas as pd

    from logeval.evaluation import Runs

Workers = Annotated[int, typer.Option(help="Processes on this machine.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same table.")]
Style = Annotated[str, typer.Option(help="Look of the figure: paper or slides.")]


def evaluate(
    models: Annotated[
        Path | None, typer.Argument(help="Folder of fitted click models (or use --problem).")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="A policy, RankedExp3(gamma=0.05), or module:Class; may be repeated.",
            autocompletion=policy_names,
        ),
    ] = None,
    problem: Annotated[
        list[str] | None,
        typer.Option(help="A synthetic problem instead of models; may be repeated."),
    ] = None,
    horizon: Annotated[int, typer.Option(help="Steps of each run.")] = 10_000,
    runs: Annotated[int, typer.Option(help="Runs of each query.")] = 5,
    track: Annotated[
        str | None,
        typer.Option(
            help="One track only, as rank1; default: the policies' own.",
            autocompletion=track_names,
        ),
    ] = None,
    positions: Annotated[
        int | None, typer.Option(help="Length of the lists; default: the shortest model's.")
    ] = None,
    queries: Annotated[
        str | None, typer.Option(help="Only these queries, 9982@0,4411@0; default: all.")
    ] = None,
    reward: Annotated[
        str | None,
        typer.Option(help="satisfaction, clicks or any-click; default: the model's own."),
    ] = None,
    features: Annotated[
        Path | None, typer.Option(help="Folder of features: the contextual track.")
    ] = None,
    block: Annotated[
        int | None, typer.Option(help="With --features: rounds of a query in turn (500).")
    ] = None,
    same_log: Annotated[
        bool, typer.Option("--same-log", help="Allow features that share sessions with the models.")
    ] = False,
    workers: Workers = 1,
    scheduler: Scheduler = None,
    seed: Seed = 0,
    checkpoints: Annotated[
        str | None,
        typer.Option(help="How many checkpoints (log-spaced, and as many even), or a list 10,100."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the runs table; an unfinished one goes on.")
    ] = None,
    draws: Annotated[
        int, typer.Option(help="Simulate draws of the fitted parameters instead of them, as 20.")
    ] = 0,
    reference: Annotated[
        bool,
        typer.Option(
            "--reference",
            help="Run the papers' pseudocode in NumPy, not the kernels: slow, the same regret.",
        ),
    ] = False,
    as_json: Json = False,
    as_csv: Csv = False,
    quiet: Quiet = False,
) -> None:
    """Run bandit policies on simulated users and compare their regret.

    Example: logeval evaluate --problem "B_LB(L=16,K=4,p=0.2,gap=0.15,gamma=0.5)"
    --policy dcmKL-UCB --policy RankedKL-UCB --horizon 10000 --runs 5 --out runs/demo
    """
    from logeval.evaluation.api import evaluate as evaluate_
    from logeval.reports.regret_figures import save_regret
    from logeval.reports.track_figures import save_relative
    from logeval.reports.verdict import verdict

    check_figures(out, "regret.pdf", *(["variance.pdf"] if draws else []))
    done = evaluate_(
        models,
        problem=problem or None,
        policies=policy or [],
        horizon=horizon,
        runs=runs,
        track=track,
        positions=positions,
        queries=split(queries),
        reward=reward,
        features=features,
        block=block,
        same_log=same_log,
        workers=workers,
        scheduler=scheduler,
        seed=seed,
        checkpoints=_checkpoints(checkpoints),
        out=out,
        draws=draws,
        reference=reference,
        quiet=quiet,
    )
    judged = verdict(done)
    if print_for_programs(done.summary(), as_json, as_csv, verdict=judged.text(), notes=done.notes):
        return
    print(summary_text(done))
    if draws or done.table()["simulator"].nunique() > 1:
        print(robustness_text(done))
    tracks = done.table()["track"].nunique() > 1
    if tracks:
        print(relative_text(done))
    print(f"\n{judged.text()}\n")
    if out is not None:
        with figure_in(out, "regret.pdf") as figure:
            print(f"table {out / 'runs.parquet'}, figure {save_regret(done, figure)}")
        if draws:
            from logeval.reports.figures import save_figure
            from logeval.reports.variance_figures import plot_variance

            with figure_in(out, "variance.pdf") as figure:
                save_figure(plot_variance(done).figure, figure)
            print(f"figure of the variance {figure}")
        if tracks:
            with figure_in(out, "relative.pdf") as figure:
                print(f"figure across tracks {save_relative(done, figure)}")
        print(f"more: logeval report {out} --out report", file=sys.stderr)
    else:
        print(
            "nothing is kept; --out FOLDER keeps the runs for plot, report, compare",
            file=sys.stderr,
        )


def plot_regret(
    runs: Annotated[Path, typer.Argument(help="Folder that evaluate wrote.")],
    out: Annotated[Path, typer.Option(help="Figure to write: .pdf, .png or .svg.")] = Path(
        "regret.pdf"
    ),
    log_x: Annotated[bool, typer.Option("--log-x", help="Logarithmic steps.")] = False,
    per_query: Annotated[bool, typer.Option("--per-query", help="One panel per query.")] = False,
    style: Style = "paper",
) -> None:
    """Cumulative regret over time, with 95% bands.

    Example: logeval plot regret runs/dcm --out regret.pdf
    """
    from logeval.evaluation import Runs
    from logeval.reports.regret_figures import save_regret
    from logeval.reports.style import styled

    with styled(style):
        print(save_regret(Runs.load(runs), out, log_x=log_x, per_query=per_query))


def plot_relative(
    runs: Annotated[Path, typer.Argument(help="Folder that evaluate wrote.")],
    out: Annotated[Path, typer.Option(help="Figure to write: .pdf, .png or .svg.")] = Path(
        "relative.pdf"
    ),
    log_x: Annotated[bool, typer.Option("--log-x", help="Logarithmic steps.")] = False,
    style: Style = "paper",
) -> None:
    """Regret as a share of the optimal reward over time, all tracks on one axis.

    Example: logeval plot relative runs/pbm --out relative.pdf
    """
    from logeval.evaluation import Runs
    from logeval.reports.style import styled
    from logeval.reports.track_figures import save_relative

    with styled(style):
        print(save_relative(Runs.load(runs), out, log_x=log_x))


def plot_remaining(
    runs: Annotated[Path, typer.Argument(help="Folder that evaluate wrote.")],
    out: Annotated[Path, typer.Option(help="Figure to write: .pdf, .png or .svg.")] = Path(
        "remaining.pdf"
    ),
    log_x: Annotated[bool, typer.Option("--log-x", help="Logarithmic steps.")] = False,
    style: Style = "paper",
) -> None:
    """Rows and columns that the elimination policies have left over time.

    Example: logeval plot remaining runs/pbm --log-x --out remaining.pdf
    """
    from logeval.evaluation import Runs
    from logeval.reports.style import styled
    from logeval.reports.track_figures import save_remaining

    with styled(style):
        print(save_remaining(Runs.load(runs), out, log_x=log_x))


def plot_cosine(
    runs: Annotated[Path, typer.Argument(help="Folder that evaluate wrote.")],
    out: Annotated[Path, typer.Option(help="Figure to write: .pdf, .png or .svg.")] = Path(
        "cosine.pdf"
    ),
    log_x: Annotated[bool, typer.Option("--log-x", help="Logarithmic steps.")] = False,
    style: Style = "paper",
) -> None:
    """Cosine distance of the estimated theta to the true one over time.

    Example: logeval plot cosine runs/contextual --out cosine.pdf
    """
    from logeval.evaluation import Runs
    from logeval.reports.style import styled
    from logeval.reports.track_figures import save_cosine

    with styled(style):
        print(save_cosine(Runs.load(runs), out, log_x=log_x))


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(evaluate)
    plot_app.command("regret")(plot_regret)
    plot_app.command("relative")(plot_relative)
    plot_app.command("remaining")(plot_remaining)
    plot_app.command("cosine")(plot_cosine)


def summary_text(runs: Runs) -> str:
    """The summary as tables for people, one per simulator and track."""
    summary: pd.DataFrame = runs.summary()
    texts = []
    for panel in runs.panels():
        part = summary[
            (summary["simulator"] == panel.simulator) & (summary["track"] == panel.track)
        ]
        title = f"{runs.title(panel)}, regret after {runs.horizon:,} steps [95% intervals]"
        columns = ["policy", "regret", "to the best", "p", "optimum"]
        rows = [
            (
                row["policy"],
                interval(row["regret"], row["low"], row["high"]),
                interval(row["difference"], row["difference_low"], row["difference_high"], "+")
                if abs(row["difference"]) > 1e-9
                else "",
                p_value(row["p"]),
                f"{row['share_of_optimum']:.2%}",
            )
            for _, row in part.iterrows()
        ]
        texts.append(f"{title}\n{table_text(columns, rows)}\n")
    return "\n".join(texts)


def robustness_text(runs: Runs) -> str:
    """Who is best on how many simulators, and where the variance of regret comes from."""
    from logeval.evaluation.robustness import best_text

    lines = ["\nWould another click model, or other parameters, change the verdict?"]
    for track, part in runs.best().groupby("track"):
        lines += [wrapped(f"{track}: {line}") for line in best_text(part)]
    shares = runs.variance().pivot(index=["track", "policy"], columns="source", values="share")
    found = shares.map("{:.0%}".format).reset_index()
    shown = table_text(list(found.columns), found.to_numpy().tolist())
    return "\n".join([*lines, "\nShares in the variance of mean regret", shown])


def relative_text(runs: Runs) -> str:
    """All tracks on one axis, as a table for people."""
    from logeval.tracks.registry import TRACKS

    found = runs.relative()
    several = found["simulator"].nunique() > 1
    columns = ["policy", "track", "reward", "relative", "95% interval"]
    rows: list[tuple[str, ...]] = [
        (
            row["policy"],
            row["track"],
            row["reward"],
            f"{row['relative_regret']:.2%}",
            f"[{row['low']:.2%}, {row['high']:.2%}]",
        )
        for _, row in found.iterrows()
    ]
    if several:
        columns = ["simulator", *columns]
        rows = [(name, *row) for name, row in zip(found["simulator"], rows, strict=True)]
    meanings = {r.name: r.meaning for track in TRACKS.values() for r in track.rewards}
    legend = [f"  {name}: of {meanings[name]}" for name in sorted(set(found["reward"]))]
    return "\n".join(
        [
            "\nAll tracks on one axis: regret / optimal reward",
            *legend,
            table_text(columns, rows),
        ]
    )


def _checkpoints(text: str | None) -> int | list[int] | None:
    if text is None:
        return None
    try:
        steps = [int(part) for part in text.split(",")]
    except ValueError:
        raise LogevalError(f"--checkpoints {text}: write a number, or steps like 10,100") from None
    return steps if "," in text else steps[0]
