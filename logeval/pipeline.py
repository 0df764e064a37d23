"""``logeval run``: a recipe in TOML -> log, models, runs and report, one stage after the other.

A section of the recipe holds the arguments of the stage's function, under their own names. A
stage is skipped while its arguments, its input and the version are those of its last run, which
``state.json`` in the output folder remembers.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import platform
import sys
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from logeval import __version__, tables
from logeval.errors import LogevalError, unknown_names

# section -> module, function; in the order in which they run
STAGES = {
    "generate": ("logeval.synthetic.generate", "generate"),
    "ingest": ("logeval.log.ingest", "ingest"),
    "fit-models": ("logeval.clicks.fit", "fit_models"),
    "evaluate": ("logeval.evaluation.api", "evaluate"),
    "report": ("logeval.reports.report", "report"),
}
NEEDED = ("ingest", "fit-models", "evaluate", "report")
# what the pipeline itself gives to a stage, so that a recipe cannot
GIVEN = {
    "generate": {"out", "quiet", "overwrite"},
    "ingest": {"sources", "out", "quiet", "overwrite"},
    "fit-models": {"log", "out", "quiet"},
    "evaluate": {"models", "problem", "out", "quiet"},
    "report": {"runs", "out", "models", "log", "recipe", "policies", "n_runs", "quiet"},
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
        """The recipe as TOML, with the versions that ran it."""
        versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
        lines = [
            f"# logeval {__version__}, Python {platform.python_version()}, {versions}",
            f"out = {_toml(str(self.out))}",
            f"seed = {self.seed}",
            f"title = {_toml(self.title)}",
        ]
        for stage, arguments in self.stages.items():
            lines += ["", f"[{stage}]"]
            lines += [f"{key} = {_toml(value)}" for key, value in arguments.items()]
        return "\n".join(lines) + "\n"


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
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LogevalError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    except ValueError as error:
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
        if key in data and not isinstance(data[key], kind):
            raise LogevalError(f"{path}: {key} = {data[key]!r} must be {kind.__name__}")
    if isinstance(stages["ingest"].get("logs"), str):
        stages["ingest"]["logs"] = [stages["ingest"]["logs"]]
    for stage, arguments in stages.items():
        parameters = inspect.signature(_function(stage)).parameters
        for name in set(_keys(stage)) & set(parameters):
            parameter = parameters[name]
            given = arguments.get(name)
            where = f"{path}: {name} in [{stage}]"
            if parameter.default is parameter.empty and given is None:
                raise LogevalError(f"{where} is missing")
            kinds: Any = {"int": int, "float": (int, float), "str": str}.get(parameter.annotation)
            if given is not None and kinds and not isinstance(given, kinds):
                raise LogevalError(f"{where} is {given!r} and must be {parameter.annotation}")


def run(recipe: Recipe, *, dry_run: bool = False, quiet: bool = False) -> list[Step]:
    """Run what is not up to date; with ``dry_run`` only say what that is."""
    state = _State(recipe.out)
    steps: list[Step] = []
    if not dry_run:
        recipe.out.mkdir(parents=True, exist_ok=True)
        (recipe.out / "recipe.toml").write_text(recipe.text(), encoding="utf-8")
    for stage in recipe.stages:
        out, call, inputs = _call(recipe, stage)
        earlier = next((s.stage for s in steps if s.reason), None)
        if dry_run and earlier:
            reason: str | None = f"{earlier} runs before it"
        else:
            reason = state.reason(stage, out, _record(recipe, stage, inputs()))
        steps.append(Step(stage, out, reason))
        if dry_run:
            continue
        if not quiet:
            print(f"== {stage}: {reason or 'up to date'}", file=sys.stderr, flush=True)
        if reason:
            call(quiet)
            state.done(stage, _record(recipe, stage, inputs()))
    return steps


def _call(
    recipe: Recipe, stage: str
) -> tuple[Path, Callable[[bool], Any], Callable[[], list[Any]]]:
    """The output of a stage, how to run it, and what its input is now."""
    home = recipe.out
    arguments = dict(recipe.stages[stage])
    function = _function(stage)
    if "seed" in _parameters(stage):
        arguments.setdefault("seed", recipe.seed)
    log, models = home / "log", home / "models"
    if stage == "generate":
        out = home / "log.tsv.gz"
        return out, lambda quiet: function(out, **arguments, overwrite=True, quiet=quiet), list
    if stage == "ingest":
        sources = [home / "log.tsv.gz"] if "generate" in recipe.stages else arguments.pop("logs")
        arguments.pop("logs", None)
        return (
            log,
            lambda quiet: function(sources, log, **arguments, overwrite=True, quiet=quiet),
            lambda: [_stamp(Path(s)) for s in sources],
        )
    if stage == "fit-models":
        return (
            models,
            lambda quiet: function(log, **arguments, out=models, quiet=quiet),
            lambda: [_checksum(log)],
        )
    runs = _runs_folder(recipe)
    if stage == "evaluate":
        return (
            runs,
            lambda quiet: function(models, **arguments, out=runs, quiet=quiet),
            lambda: [_checksum(models)],
        )
    arguments.setdefault("title", recipe.title)
    asked = recipe.stages["evaluate"]
    given = {
        "log": log,
        "models": models,
        "recipe": home / "recipe.toml",
        "policies": asked["policies"],
        "n_runs": asked["runs"],
    }
    return (
        home / "report",
        lambda quiet: function([runs], home / "report", **arguments, **given, quiet=quiet),
        lambda: [_checksum(log), _checksum(models), str(runs), _file(runs / "runs.parquet")],
    )


def _runs_folder(recipe: Recipe) -> Path:
    """A folder per setting, so that asking for another horizon does not cost the runs before."""
    asked = {k: v for k, v in recipe.stages["evaluate"].items() if k not in ADDING}
    key = json.dumps([asked, recipe.seed, _checksum(recipe.out / "models")], sort_keys=True)
    return recipe.out / "runs" / hashlib.sha256(key.encode()).hexdigest()[:8]


class _State:
    """What the last run of each stage was made from."""

    def __init__(self, out: Path) -> None:
        self.file = out / "state.json"
        try:
            self.stages = json.loads(self.file.read_text())
        except (OSError, ValueError):
            self.stages = {}

    def reason(self, stage: str, out: Path, wanted: dict[str, Any]) -> str | None:
        """Why the stage has to run, or None."""
        last = self.stages.get(stage)
        if last is None or not out.exists():
            return "there is no output yet"
        wanted = json.loads(json.dumps(wanted))
        if last["version"] != wanted["version"]:
            return f"it was made by logeval {last['version']}"
        for key in sorted({*last["arguments"], *wanted["arguments"]}):
            old, new = last["arguments"].get(key), wanted["arguments"].get(key)
            if old != new and key == "recipe":
                return "the recipe has changed"
            if old != new:
                return f"{key} was {_toml(old)}, and is {_toml(new)}"
        return None if last["inputs"] == wanted["inputs"] else "its input has changed"

    def done(self, stage: str, record: dict[str, Any]) -> None:
        """Remember that a stage ran."""
        self.stages[stage] = record
        partial = self.file.with_suffix(".partial")
        partial.write_text(json.dumps(self.stages, indent=1) + "\n")
        partial.replace(self.file)


def _record(recipe: Recipe, stage: str, inputs: list[Any]) -> dict[str, Any]:
    arguments = {"seed": recipe.seed, **recipe.stages[stage]}
    if stage == "report":
        arguments |= {"title": recipe.title, "recipe": recipe.text()}
    return {"version": __version__, "arguments": arguments, "inputs": inputs}


def _set(data: dict[str, Any], override: str) -> None:
    key, sign, text = override.partition("=")
    *sections, name = key.strip().split(".")
    if not sign or len(sections) > 1:
        raise LogevalError(f"--set {override}: write it as evaluate.horizon=1000")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        value = text.strip()
    target = data.setdefault(sections[0], {}) if sections else data
    if not isinstance(target, dict):
        raise LogevalError(f"--set {override}: {sections[0]} is not a section")
    target[name] = value


def _keys(stage: str) -> list[str]:
    """The keys that the section of a stage may have."""
    keys = [name for name in _parameters(stage) if name not in GIVEN[stage]]
    return [*keys, "logs"] if stage == "ingest" else keys


def _function(stage: str) -> Callable[..., Any]:
    module, name = STAGES[stage]
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def _parameters(stage: str) -> Sequence[str]:
    parameters = inspect.signature(_function(stage)).parameters.values()
    names = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
    if stage == "fit-models":
        from logeval.clicks.models.registry import option_names

        names += option_names()
    return names


def _stamp(path: Path) -> list[Any]:
    if not path.exists():
        return [str(path), None]
    found = path.stat()
    return [str(path), found.st_size, found.st_mtime_ns]


def _checksum(folder: Path) -> str | None:
    return _file(folder / tables.MANIFEST)


def _file(path: Path) -> str | None:
    return tables.checksum(path) if path.exists() else None


def _toml(value: Any) -> str:
    """A value as TOML; JSON is the same but for tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    return "unset" if value is None else json.dumps(value, ensure_ascii=False)
