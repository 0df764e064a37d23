"""``logeval run``: a recipe in TOML -> log, models, runs and report, one stage after the other.

A section of the recipe holds the arguments of the stage's function, under their own names. A
stage is skipped while the manifest of its output says that it was made by this version from the
same input with the same arguments, and its files are whole.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import platform
import sys
import tomllib
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tomli_w

from logeval import __version__
from logeval.clicks import fit
from logeval.clicks.models.registry import option_names
from logeval.errors import LogevalError, unknown_names
from logeval.evaluation import api
from logeval.features import table as features
from logeval.log import ingest, inputs
from logeval.log.log import load
from logeval.policies.registry import parse_policies
from logeval.recipe_checks import check_types, check_values, fits
from logeval.replay import estimate
from logeval.replay.plan import EstimatePlan
from logeval.reports import report
from logeval.storage import files, tables
from logeval.synthetic import generate

# section -> function; in the order in which they run
STAGES: dict[str, Callable[..., Any]] = {
    "generate": generate.generate,
    "ingest": ingest.ingest,
    "fit-models": fit.fit_models,
    "features": features.make_features,
    "evaluate": api.evaluate,
    "replay": estimate.replay_estimate,
    "report": report.report,
}
NEEDED = ("ingest", "fit-models", "evaluate", "report")
# what the pipeline itself gives to a stage, so that a recipe cannot
GIVEN = {
    "generate": {"out", "quiet", "overwrite"},
    "ingest": {"sources", "out", "scheduler", "quiet", "overwrite"},
    "fit-models": {"log", "out", "scheduler", "quiet", "overwrite"},
    "features": {"log", "out", "quiet", "overwrite"},
    "evaluate": {"models", "problem", "features", "out", "quiet"},
    "replay": {"log", "out", "quiet"},
    "report": {"runs", "out", "models", "log", "replay", "recipe", "policies", "n_runs", "quiet"},
}
# arguments of evaluate that add to a runs table instead of asking for another one
ADDING = ("policies", "runs", "workers", "scheduler")
LIBRARIES = ("numpy", "scipy", "numba", "pyarrow", "duckdb", "pandas")


@dataclass
class Recipe:
    """A recipe: where its output goes, its seed, and the arguments of each stage."""

    out: Path
    seed: int = 0
    title: str = "logeval"
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)

    def text(self) -> str:
        """The recipe as TOML, with the versions that ran it and a mark that it is ours."""
        data = {"out": str(self.out), "seed": self.seed, "title": self.title, **self.stages}
        versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
        made_by = f"logeval {__version__}, Python {platform.python_version()}, {versions}"
        text = tomli_w.dumps(data)
        return f"# {made_by}\n# {_mark(text)}\n{text}"


@dataclass(frozen=True)
class Step:
    """One stage of a run: what it writes, and why it runs; no reason: it is up to date."""

    stage: str
    out: Path
    reason: str | None


def read_recipe(path: str | Path, overrides: Iterable[str] = ()) -> Recipe:
    """Read a recipe and set values, as ``evaluate.horizon=1000``."""
    path = Path(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise LogevalError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    except (ValueError, RecursionError) as error:
        raise LogevalError(f"{path}: not a recipe ({error})") from None
    for override in overrides:
        _set(data, override)
    known = ("out", "seed", "title", *STAGES)
    if unknown := [key for key in data if key not in known]:
        raise unknown_names(f"key in {path}", unknown, known)
    if "out" not in data:
        raise LogevalError(f'{path}: says nowhere to put the output; add out = "runs/name"')
    stages = {s: data.get(s, {}) for s in STAGES if s in data or s in NEEDED}
    if wrong := [s for s, arguments in stages.items() if not isinstance(arguments, dict)]:
        raise LogevalError(f"{path}: {wrong[0]} must be a section, [{wrong[0]}]")
    for stage, arguments in stages.items():
        allowed = _keys(stage)
        if unknown := [key for key in arguments if key not in allowed]:
            raise unknown_names(f"key in [{stage}] of {path}", unknown, allowed)
    _check_types(path, data, stages)
    if ("generate" in stages) == ("logs" in stages["ingest"]):
        raise LogevalError(f"{path}: names no log, or two; give logs in [ingest] or a [generate]")
    return Recipe(Path(data["out"]), data.get("seed", 0), data.get("title", path.stem), stages)


def _check_types(path: Path, data: dict[str, Any], stages: dict[str, dict[str, Any]]) -> None:
    """Plain types of what would otherwise fail deep inside a stage."""
    for key, kind in (("out", str), ("seed", int), ("title", str)):
        if key in data and not fits(data[key], kind):
            raise LogevalError(f"{path}: {key} = {data[key]!r} must be {kind.__name__}")
    logs = stages["ingest"].get("logs", [])
    if isinstance(logs, str):
        logs = stages["ingest"]["logs"] = [logs]
    if not fits(logs, list[str]):
        raise LogevalError(f"{path}: [ingest]: logs is {logs!r} and must be a list of str")
    for stage, arguments in stages.items():
        check_types(f"{path}: [{stage}]", STAGES[stage], _keys(stage), arguments)


def run(recipe: Recipe, *, dry_run: bool = False, quiet: bool = False) -> list[Step]:
    """Run what is not up to date; with ``dry_run`` only say what that is, and import nothing."""
    check_values({stage: _arguments(recipe, stage) for stage in recipe.stages}, load=not dry_run)
    steps: list[Step] = []
    if not dry_run:
        recipe.out.mkdir(parents=True, exist_ok=True)
        _write_copy(recipe)
    for stage in recipe.stages:
        earlier = next((s.stage for s in steps if s.reason), None)
        if dry_run and earlier:
            steps.append(Step(stage, recipe.out, f"{earlier} runs before it"))
            continue
        call = _call(recipe, stage)
        if not dry_run:
            made = call.out if stage != "generate" else generate.truth_folder(call.out)
            tables.recover(made)
        unknown = _not_loaded(recipe) if dry_run and stage == "evaluate" else None
        steps.append(Step(stage, call.out, unknown or call.why()))
        if dry_run:
            continue
        if not quiet:
            print(f"== {stage}: {steps[-1].reason or 'up to date'}", file=sys.stderr, flush=True)
        if steps[-1].reason:
            call.run(quiet)
    return steps


def _not_loaded(recipe: Recipe) -> str | None:
    """Why a dry run cannot know whether all runs are there: it runs no code of the user's."""
    specs = parse_policies(_arguments(recipe, "evaluate")["policies"], load=False)
    own = [spec.name for spec in specs if not spec.built_in]
    return f"a dry run does not import {own[0]}, so it may run" if own else None


def _write_copy(recipe: Recipe) -> None:
    """Keep the recipe beside its output; a file that logeval did not write is left alone."""
    copy = recipe.out / "recipe.toml"
    if copy.exists():
        found = copy.read_text(encoding="utf-8", errors="replace")
        _, _, rest = found.partition("\n")
        mark, _, text = rest.partition("\n")
        if mark != f"# {_mark(text)}":
            raise LogevalError(
                f"{copy}: was not written by logeval, or changed since, so it is not replaced; "
                "give the recipe another name, or choose another out"
            )
    files.write_text(copy, recipe.text())


def _mark(text: str) -> str:
    return f"Copy of a recipe, checksum {zlib.crc32(text.encode()):08x}"


@dataclass(frozen=True)
class _Call:
    """A stage with its arguments: its output, why it has to run (None: it has not), running it."""

    out: Path
    why: Callable[[], str | None]
    run: Callable[[bool], Any]


def _call(recipe: Recipe, stage: str) -> _Call:
    home, arguments = recipe.out, _arguments(recipe, stage)
    function = STAGES[stage]
    raw, log, models = home / "log.tsv.gz", home / "log", home / "models"
    if stage == "generate":
        return _Call(
            raw,
            lambda: generate.why(raw, generate.wanted_manifest(raw, **arguments)),
            lambda quiet: function(raw, **arguments, overwrite=True, quiet=quiet),
        )
    if stage == "ingest":
        sources = arguments.pop("logs", [raw])
        made_by = {k: arguments[k] for k in ("format", "max_bad", "column_map")}
        return _Call(
            log,
            lambda: inputs.why(sources, log, **made_by),
            lambda quiet: function(sources, log, **arguments, overwrite=True, quiet=quiet),
        )
    if stage == "fit-models":
        return _Call(
            models,
            lambda: tables.why(models, fit.FitPlan.of(**arguments).manifest(load(log))),
            lambda quiet: function(log, **arguments, out=models, overwrite=True, quiet=quiet),
        )
    made = home / "features"
    if stage == "features":
        return _Call(
            made,
            lambda: tables.why(made, features.wanted_manifest(load(log), **arguments)),
            lambda quiet: function(log, **arguments, out=made, overwrite=True, quiet=quiet),
        )
    runs, asked = _runs_folder(recipe), _arguments(recipe, "evaluate")
    if stage == "evaluate":
        arguments["features"] = made if "features" in recipe.stages else None
        chosen = {k: v for k, v in arguments.items() if k not in ("workers", "scheduler")}
        return _Call(
            runs,
            lambda: api.missing_runs(runs, models, **chosen),
            lambda quiet: function(models, **arguments, out=runs, quiet=quiet),
        )
    replay = home / "replay"
    if stage == "replay":
        return _Call(
            replay,
            lambda: tables.why(replay, EstimatePlan.of(**arguments).manifest(load(log))),
            lambda quiet: function(log, **arguments, out=replay, quiet=quiet),
        )
    given = {
        "log": log,
        "models": models,
        "replay": replay if "replay" in recipe.stages else None,
        "recipe": home / "recipe.toml",
        "policies": asked["policies"],
        "n_runs": asked["runs"],
    }
    if "title" not in recipe.stages["report"]:
        arguments["title"] = recipe.title
    out = home / "report"
    return _Call(
        out,
        lambda: tables.why(out, report.wanted_manifest([runs], **arguments, **given)),
        lambda quiet: function([runs], out, **arguments, **given, quiet=quiet),
    )


def _arguments(recipe: Recipe, stage: str) -> dict[str, Any]:
    """The arguments of a stage: those of the recipe, and the function's defaults."""
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(STAGES[stage]).parameters.items()
        if name not in GIVEN[stage] and parameter.default is not parameter.empty
    }
    if "seed" in defaults:
        defaults["seed"] = recipe.seed
    return {**defaults, **recipe.stages[stage]}


def _runs_folder(recipe: Recipe) -> Path:
    """A folder per setting, so that asking for another horizon does not cost the runs before.

    Its name depends on what the models hold, not on when they were fitted.
    """
    asked = {k: v for k, v in recipe.stages["evaluate"].items() if k not in ADDING}
    inputs = [recipe.out / "models"]
    inputs += [recipe.out / "features"] if "features" in recipe.stages else []
    key = json.dumps([asked, recipe.seed, *map(tables.identity, inputs)], sort_keys=True)
    return recipe.out / "runs" / hashlib.sha256(key.encode()).hexdigest()[:8]


def _set(data: dict[str, Any], override: str) -> None:
    key, sign, text = override.partition("=")
    *sections, name = key.strip().split(".")
    if not sign or len(sections) > 1:
        raise LogevalError(f"{override}: write it as evaluate.horizon=1000")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        value = text.strip()
    target = data.setdefault(sections[0], {}) if sections else data
    if not isinstance(target, dict):
        raise LogevalError(f"{override}: {sections[0]} is not a section")
    target[name] = value


def _keys(stage: str) -> list[str]:
    """The keys that the section of a stage may have."""
    keys = [name for name in _parameters(stage) if name not in GIVEN[stage]]
    return [*keys, "logs"] if stage == "ingest" else keys


def _parameters(stage: str) -> Sequence[str]:
    parameters = inspect.signature(STAGES[stage]).parameters.values()
    names = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
    return names + option_names() if stage == "fit-models" else names
