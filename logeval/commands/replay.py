"""``logeval replay``: estimate, policy, validate, cross-check."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from logeval.errors import LogevalError
from logeval.storage.manifests import check_figures, figure_in

if TYPE_CHECKING:
    import pandas as pd

replay_app = typer.Typer(
    help="What rankers and policies would have earned, from the log itself.", no_args_is_help=True
)

Log = Annotated[Path, typer.Argument(help="Folder of an ingested log.")]
Estimator = Annotated[
    list[str] | None,
    typer.Option("--estimator", "-e", help="IP, IP(normalised), PBM, DR(ubm), ...; repeatable."),
]
Queries = Annotated[
    str | None, typer.Option(help="Only these queries, as 9982,98435@1 (with its region).")
]
TopQueries = Annotated[int | None, typer.Option(help="Only the most frequent queries.", min=1)]
Scope = Annotated[str, typer.Option(help="Click models per-query, partial or pooled.")]
Smoothing = Annotated[float, typer.Option(help="SERPs added to every cell of the propensities.")]
Policy = Annotated[
    list[str], typer.Option("--policy", help="A policy that shows lists, or module:Class.")
]
Items = Annotated[
    int | None,
    typer.Option(help="Keep only this many candidates per query, the most shown.", min=1),
]
Seed = Annotated[int, typer.Option(help="Root of all random numbers.")]
Json = Annotated[bool, typer.Option("--json", help="JSON for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Out = Annotated[Path | None, typer.Option(help="Folder for the table and the figure.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this stage."""
    replay_app.command("estimate")(estimate)
    replay_app.command("policy")(policy)
    replay_app.command("validate")(validate)
    replay_app.command("cross-check")(cross_check)
    app.add_typer(replay_app, name="replay")


def estimate(
    log: Log,
    target: Annotated[
        list[str],
        typer.Option(
            help="A table, log:FOLDER, day:27, logged, random, by-ctr or best:MODEL; repeatable."
        ),
    ],
    estimator: Estimator = None,
    positions: Annotated[
        int | None, typer.Option(help="K: the positions that count; default: up to 10.", min=1)
    ] = None,
    clip: Annotated[float | None, typer.Option(help="Largest weight; default: none.")] = None,
    smoothing: Smoothing = 0.0,
    cross_fit: Annotated[
        int,
        typer.Option(
            help="Parts of the sessions; each gets the propensities and models of the others.",
            min=1,
        ),
    ] = 1,
    propensities: Annotated[
        str, typer.Option(help="estimated from the log, or logged (IP and DR).")
    ] = "estimated",
    scope: Scope = "per-query",
    queries: Queries = None,
    top_queries: TopQueries = None,
    rounds: Annotated[int, typer.Option(help="Bootstrap rounds; 0: no intervals.", min=0)] = 1000,
    refits: Annotated[
        int, typer.Option(help="Rounds that fit click models again (DM, DR).", min=0)
    ] = 20,
    min_support: Annotated[
        float, typer.Option(help="Refuse below this supported share.", min=0, max=1)
    ] = 0.8,
    force: Annotated[bool, typer.Option("--force", help="Estimate without support, too.")] = False,
    out: Out = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Estimate what a ranker would have earned on the logged traffic.

    Example: logeval replay estimate data/yandex --target best:dcm --positions 3 --out replay
    """
    from logeval.replay.estimate import replay_estimate
    from logeval.replay.estimators.registry import DEFAULT

    check_figures(out, "estimates.png")
    found = replay_estimate(
        log,
        target,
        estimators=estimator or DEFAULT,
        positions=positions,
        clip=clip,
        smoothing=smoothing,
        cross_fit=cross_fit,
        propensities=propensities,
        scope=scope,
        queries=_split(queries),
        top_queries=top_queries,
        rounds=rounds,
        refits=refits,
        min_support=min_support,
        force=force,
        out=out,
        seed=seed,
        quiet=quiet,
    )
    for note in found.notes:
        print(note, file=sys.stderr)
    if as_json:
        print(json.dumps({"rows": found.rows()}))
    else:
        from logeval.commands.show import print_frame

        for name, rows in found.table.groupby("target", sort=False):
            K = rows["positions"].iloc[0]
            overall = rows[rows["query"].isna()]
            print_frame(f"{name}, clicks per SERP at K = {K}", _estimates(overall, False))
            print_frame(f"{name}, by query", _estimates(rows[rows["query"].notna()], True))
    if out is not None:
        _save(found.plot(), out, "estimates.png")


def policy(
    log: Log,
    policy: Policy,
    positions: Annotated[
        int, typer.Option(help="A SERP counts when its first K items match.", min=1)
    ] = 2,
    queries: Queries = None,
    top_queries: TopQueries = None,
    items: Items = None,
    horizon: Annotated[
        int | None, typer.Option(help="Accepted SERPs at most; default: 10000.", min=1)
    ] = None,
    shuffles: Annotated[int, typer.Option(help="Random orders of the log.", min=1)] = 10,
    out: Out = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Replay learning policies on the log: a SERP answers when it shows the wanted list.

    Example: logeval replay policy data/yandex --policy dcmKL-UCB --positions 2 --items 4
    """
    from logeval.replay.policy import replay_policy

    check_figures(out, "replays.png")
    found = replay_policy(
        log,
        policy,
        positions=positions,
        queries=_split(queries),
        top_queries=top_queries,
        items=items,
        horizon=horizon,
        shuffles=shuffles,
        out=out,
        seed=seed,
        quiet=quiet,
    )
    for note in found.notes:
        print(note, file=sys.stderr)
    summary = found.summary()
    _show(summary, "Replayed policies: clicks per accepted SERP", as_json)
    if out is not None:
        _save(found.plot(), out, "replays.png")


def validate(
    log: Log,
    positions: Annotated[str, typer.Option(help="As 1..10, or 1,3,5.")] = "1..10",
    clip: Annotated[str, typer.Option(help="Clips to try, as 1,10,100.")] = "1,10,100,1000",
    parts: Annotated[
        int | None, typer.Option(help="Leave out parts of the sessions instead of days.", min=2)
    ] = None,
    estimator: Estimator = None,
    smoothing: Smoothing = 0.0,
    scope: Scope = "per-query",
    queries: Queries = None,
    top_queries: TopQueries = None,
    out: Out = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Leave one day (or part) out and predict its clicks: which estimator to use on this log.

    Example: logeval replay validate data/yandex --positions 1,2,3 --clip 10,100 --parts 5
    """
    from logeval.replay.validate import ESTIMATORS, replay_validate

    check_figures(out, "validation.png", "clips.png")
    found = replay_validate(
        log,
        positions=_positions(positions),
        clips=_numbers(clip, "--clip"),
        parts=parts,
        estimators=estimator or ESTIMATORS,
        smoothing=smoothing,
        scope=scope,
        queries=_split(queries),
        top_queries=top_queries,
        out=out,
        seed=seed,
        quiet=quiet,
    )
    if as_json:
        rows = json.loads(found.table.to_json(orient="records"))
        print(json.dumps({"rows": rows, "verdict": found.verdict}))
    else:
        from logeval.commands.show import print_frame

        shown = found.table[found.table["clip"].isna()].drop(columns=["clip"])
        print_frame("RMSE, the clip chosen on the other parts", _with_none(shown))
        print("\n".join(found.verdict))
    if out is not None:
        from logeval.reports.replay_figures import plot_clips

        _save(found.plot(), out, "validation.png")
        K = int(found.table["positions"].max())
        _save(plot_clips(found.table, K), out, "clips.png")


def cross_check(
    log: Log,
    policy: Policy,
    positions: Annotated[int, typer.Option(help="Length of the lists.", min=1)] = 2,
    queries: Queries = None,
    top_queries: TopQueries = None,
    items: Items = None,
    horizon: Annotated[int | None, typer.Option(help="Steps at most.", min=1)] = None,
    runs: Annotated[int, typer.Option(help="Runs, and shuffles of the log.", min=2)] = 10,
    out: Out = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The same policies by simulators, by replay and by estimates: do they agree on the best?

    Example: logeval replay cross-check data/yandex --policy dcmKL-UCB --policy Random --items 4
    """
    from logeval.replay.cross_check import replay_cross_check

    check_figures(out, "cross_check.png")
    found = replay_cross_check(
        log,
        policy,
        positions=positions,
        queries=_split(queries),
        top_queries=top_queries,
        items=items,
        horizon=horizon,
        runs=runs,
        out=out,
        seed=seed,
        quiet=quiet,
    )
    for note in found.notes:
        print(note, file=sys.stderr)
    if as_json:
        rows = json.loads(found.table.to_json(orient="records"))
        print(json.dumps({"rows": rows, "verdict": found.verdict}))
    else:
        _show(found.table, "Clicks per SERP by method", False)
        print("\n".join(found.verdict))
    if out is not None:
        _save(found.plot(), out, "cross_check.png")


def _estimates(rows: pd.DataFrame, by_query: bool) -> pd.DataFrame:
    shown: dict[str, Any] = {"query": rows["query"]} if by_query else {}
    shown |= {
        "estimator": rows["estimator"],
        "value": rows["value"],
        "95% interval": _intervals(rows, "low", "high"),
    }
    if rows["truth"].notna().any():
        shown["truth"] = rows["truth"]
    shown |= {
        "to the log": rows["difference"].map("{:+.4f}".format),
        "its 95% interval": _intervals(rows, "difference_low", "difference_high"),
        "SERPs": rows["serps"],
        "support": rows["support"],
        "up to K": rows["supported_positions"],
        "effective": rows["effective_serps"],
        "clipped": rows["clipped"],
        "largest": rows["largest_weight"],
    }
    return _with_none(type(rows)(shown))


def _intervals(rows: pd.DataFrame, low: str, high: str) -> list[str]:
    pairs = zip(rows[low], rows[high], strict=True)
    return ["" if a != a else f"{a:.4f} .. {b:.4f}" for a, b in pairs]


def _with_none(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype(object).where(frame.notna(), None)


def _show(frame: pd.DataFrame, title: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"rows": json.loads(frame.to_json(orient="records"))}))
        return
    from logeval.commands.show import print_frame

    print_frame(title, _with_none(frame))


def _save(ax: Any, folder: Path, name: str) -> None:
    from logeval.reports.figures import save_figure

    with figure_in(folder, name) as path:
        print(f"figure {save_figure(ax.figure, path)}", file=sys.stderr)


def _split(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _positions(text: str) -> list[int]:
    first, dots, last = text.partition("..")
    try:
        if dots:
            return list(range(int(first), int(last) + 1))
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise LogevalError(f"--positions {text}: write them as 1..10, or 1,3,5") from None


def _numbers(text: str, option: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise LogevalError(f"{option} {text}: write numbers, as 1,10,100") from None
