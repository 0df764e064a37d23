"""fit-models, compare-models, score, models export and import, plot models."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from logeval.commands.options import Csv, Json, Overwrite, Quiet, Scheduler, model_names
from logeval.commands.options import split as _split
from logeval.commands.plot import plot_app
from logeval.errors import LogevalError
from logeval.storage import files
from logeval.storage.manifests import check_figures, figure_in

if TYPE_CHECKING:
    import pandas as pd

    from logeval.clicks.quality.compare import Comparison

models_app = typer.Typer(help="Fitted models as JSON, and back.", no_args_is_help=True)

Log = Annotated[Path, typer.Argument(help="Folder of an ingested log.")]
Folder = Annotated[Path, typer.Argument(help="Folder of fitted models.")]
Model = Annotated[
    list[str],
    typer.Option(
        "--model",
        "-m",
        help="Click model, or all; may be given several times.",
        autocompletion=model_names,
    ),
]
Method = Annotated[
    str | None, typer.Option(help="em, mle, guo or counting, for the models that offer it.")
]
Scope = Annotated[
    str | None,
    typer.Option(
        help="Position parameters: partial (of a query, shrunk towards all; the default), "
        "per-query, or pooled (one set for all)."
    ),
]
Smoothing = Annotated[str, typer.Option(help="Prior: empirical-bayes, pyclick (+1/+2) or none.")]
TopQueries = Annotated[int | None, typer.Option(help="Only the most frequent queries.", min=1)]
Queries = Annotated[
    str | None, typer.Option(help="Only these queries, as 9982,98435@1 (with its region).")
]
ModelOption = Annotated[
    list[str] | None,
    typer.Option(help="Option of a model: last_termination=raw (DCM); several times for more."),
]
MinImpressions = Annotated[int, typer.Option(help="Drop items shown less often than this.", min=0)]
Iterations = Annotated[int, typer.Option(help="EM stops after this many.", min=1)]
Tolerance = Annotated[float, typer.Option(help="EM stops at this relative change of likelihood.")]
Seed = Annotated[int, typer.Option(help="Root of all random numbers.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this stage."""
    app.command("fit-models")(fit_models)
    app.command("compare-models")(compare_models)
    app.command("score")(score)
    models_app.command("export")(export)
    models_app.command("import")(import_)
    app.add_typer(models_app, name="models")
    plot_app.command("models")(plot_models)


def fit_models(
    log: Log,
    model: Model,
    out: Annotated[Path, typer.Option(help="Folder for the models.")],
    method: Method = None,
    scope: Scope = None,
    smoothing: Smoothing = "empirical-bayes",
    top_queries: TopQueries = None,
    queries: Queries = None,
    min_impressions: MinImpressions = 0,
    holdout: Annotated[
        str | None, typer.Option(help="Score on this part: a share as 0.1, or days:25-27.")
    ] = None,
    iterations: Iterations = 10_000,
    tolerance: Tolerance = 1e-9,
    draws: Annotated[
        int, typer.Option(help="Draws of the parameters to keep, for evaluate --draws.", min=0)
    ] = 20,
    option: ModelOption = None,
    last_termination: Annotated[str | None, typer.Option(hidden=True)] = None,
    verdict: Annotated[
        bool,
        typer.Option(
            "--verdict/--no-verdict",
            help="With --holdout: say in a line what each model gets wrong (see check-models).",
        ),
    ] = True,
    seed: Seed = 0,
    scheduler: Scheduler = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    as_csv: Csv = False,
    quiet: Quiet = False,
) -> None:
    """Fit click models to a log.

    Example: logeval fit-models data/yandex -m dcm --top-queries 20 --out data/yandex/models/dcm
    """
    from logeval.clicks.fit import fit_models as run

    models = run(
        log,
        _names(model),
        method=method,
        scope=scope,
        smoothing=smoothing,
        top_queries=top_queries,
        queries=_split(queries),
        min_impressions=min_impressions,
        holdout=holdout,
        iterations=iterations,
        tolerance=tolerance,
        draws=draws,
        out=out,
        overwrite=overwrite,
        seed=seed,
        scheduler=scheduler,
        quiet=quiet,
        **_options(option, last_termination),
    )
    from logeval.commands.show import print_for_programs, print_frame, wrapped

    summary = models.summary()
    notes = [note for own in summary["notes"] for note in own]
    plain = summary.drop(columns=["notes", "priors"])
    verdicts: dict[str, str] = {}
    if verdict and holdout is not None:
        from logeval.clicks.quality.checks import quick_verdicts

        verdicts = quick_verdicts(models, log, seed, quiet)
    more = {"out": str(out), "notes": notes, "verdicts": verdicts}
    if print_for_programs(plain, as_json, as_csv, **more):
        return
    print_frame(f"Models in {out}", _model_rows(summary))
    for line in verdicts.values():
        print(line)
    for note in notes:
        print(wrapped(f"note: {note}"), file=sys.stderr)
    print(f"more: logeval inspect {out} --query {models.queries[0]}", file=sys.stderr)


def _model_rows(summary: pd.DataFrame) -> pd.DataFrame:
    """The summary as people read it, without what is the same for all or of no use to them."""
    shown = summary[["model", "method", "queries", "items", "serps"]].astype(object)
    if summary["dropped_items"].any():
        shown["dropped"] = summary["dropped_items"]
    steps = zip(summary["converged"], summary["iterations"], strict=True)
    shown["converged"] = [f"{c} ({i:.0f})" if isinstance(c, str) else "" for c, i in steps]
    for name in ("log_likelihood", "perplexity"):
        if name in summary:
            shown[name.replace("_", "\n")] = summary[name].astype(object)
    return shown


def compare_models(
    log: Log,
    model: Model,
    holdout: Annotated[str, typer.Option(help="Score on this part: 0.1, or days:25-27.")] = "0.1",
    out: Annotated[Path | None, typer.Option(help="Folder for the table and the figure.")] = None,
    method: Method = None,
    scope: Scope = None,
    smoothing: Smoothing = "empirical-bayes",
    top_queries: TopQueries = None,
    queries: Queries = None,
    iterations: Iterations = 10_000,
    tolerance: Tolerance = 1e-9,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit models on one part of a log and score them on the rest.

    Example: logeval compare-models data/yandex --model dcm --model pbm --top-queries 20
    """
    from logeval.clicks.quality.compare import compare_models as run

    check_figures(out, "perplexity.png")
    comparison = run(
        log,
        _names(model),
        holdout=holdout,
        out=out,
        method=method,
        scope=scope,
        smoothing=smoothing,
        top_queries=top_queries,
        queries=_split(queries),
        iterations=iterations,
        tolerance=tolerance,
        seed=seed,
        quiet=quiet,
    )
    _show(comparison, as_json)
    if out is not None:
        from logeval.reports.figures import save_figure
        from logeval.reports.model_figures import plot_perplexity

        axes: Any = plot_perplexity(comparison.table)
        with figure_in(out, "perplexity.png") as figure:
            save_figure(axes.figure, figure)
        print(f"{out}: quality.parquet, perplexity.png", file=sys.stderr)


def score(
    models: Folder,
    log: Log,
    known_queries: Annotated[
        bool,
        typer.Option("--known-queries", help="Leave out queries the models were not fitted to."),
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for the table.")] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Score fitted models on a log, for instance another one.

    Example: logeval score data/yandex/models/dcm data/other --json
    """
    from logeval.clicks.quality.compare import score as run

    _show(run(models, log, known_queries=known_queries, out=out, seed=seed), as_json)


def export(
    models: Folder,
    to: Annotated[str, typer.Option(help="The format: json.")] = "json",
    out: Annotated[
        Path | None, typer.Option(help="File to write; standard output if absent.")
    ] = None,
) -> None:
    """Write the parameters of fitted models in another format.

    Example: logeval models export data/yandex/models/dcm --to json --out dcm.json
    """
    from logeval.clicks.collection import read_models

    if to != "json":
        raise LogevalError(f"--to {to}: the format is json")
    text = read_models(models).to_json()
    if out is None:
        print(text)
    else:
        files.write_text(out, text + "\n")


def import_(
    source: Annotated[Path, typer.Argument(help="JSON file with rows of the models table.")],
    out: Annotated[Path, typer.Option(help="Folder for the models.")],
    overwrite: Overwrite = False,
) -> None:
    """Make a models folder from parameters found elsewhere.

    Example: logeval models import paper.json --out models/paper
    """
    from logeval.clicks.collection import models_of_json

    if not source.exists():
        raise LogevalError(f"{source}: there is no such file")
    try:
        text = source.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise LogevalError(f"{source}: cannot be read as JSON ({error})") from None
    models = models_of_json(text, str(source))
    models.write(out, overwrite)
    names = ", ".join(f"{name} ({len(f.queries)} queries)" for name, f in models.fitted.items())
    print(f"{out}: {names}")


def plot_models(
    models: Folder,
    out: Annotated[Path, typer.Option(help="Figure to write: .png, .pdf or .svg.")],
    what: Annotated[
        str, typer.Option(help="termination (DCM), attraction, or examination (PBM).")
    ] = "termination",
    model: Annotated[str | None, typer.Option(help="Which model, if there are several.")] = None,
    queries: Queries = None,
    style: Annotated[str, typer.Option(help="Look of the figure: paper or slides.")] = "paper",
) -> None:
    """Draw the parameters of chosen queries, or of the most frequent, with their intervals.

    Example: logeval plot models data/yandex/models/dcm --what termination --out dcm.png
    """
    from logeval.clicks.collection import read_models
    from logeval.reports.figures import save_figure
    from logeval.reports.style import styled

    with styled(style):
        axes: Any = read_models(models).plot(what, model, _split(queries))
        save_figure(axes.figure, out)
    print(out)


def _show(comparison: Comparison, as_json: bool) -> None:
    if as_json:
        rows = json.loads(comparison.table.to_json(orient="records"))
        coverage = json.loads(comparison.coverage.to_json(orient="records"))
        print(json.dumps({"quality": rows, "coverage": coverage}))
        return
    from logeval.commands.show import print_frame, print_table

    overall = comparison.overall()
    measures = list(dict.fromkeys(overall.columns.get_level_values(1)))
    print_table(
        f"Quality on {comparison.scored_on}, with 95% bootstrap intervals over SERPs",
        ["model", *(measure.replace("-", "\n") for measure in measures)],
        [[m, *(_interval(overall.loc[m], measure) for measure in measures)] for m in overall.index],
    )
    table = comparison.table
    change = table[table["baseline"].notna() & (table["measure"] == "log-likelihood")]
    columns = ["model", "baseline", "value", "low", "high"]
    if len(change):
        print_frame("Log-likelihood against the best model, paired", change[columns])
    bands = comparison.by_frequency().reset_index()
    print_frame("Log-likelihood by SERPs of the query in the training part", bands)
    print_frame("What the models had never seen, as shares", comparison.coverage)


def _interval(row: Any, measure: str) -> str:
    value, low, high = (row[v, measure] for v in ("value", "low", "high"))
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"  # three of them fit 80 columns


def _names(model: list[str]) -> list[str]:
    from logeval.clicks.models.registry import MODELS

    return list(MODELS) if [m.lower() for m in model] == ["all"] else model


def _options(given: list[str] | None, last_termination: str | None) -> dict[str, Any]:
    """``name=value``s; ``--last-termination raw`` is the former way to write one of them."""
    options = {} if last_termination is None else {"last_termination": last_termination}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not equals:
            raise LogevalError(f"--option {text}: write name=value, as last_termination=raw")
        options[name.strip().replace("-", "_")] = value.strip()
    return options
