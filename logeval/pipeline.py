"""``logeval run``: a recipe in TOML -> log, models, runs and report, one stage after the other.

A section of the recipe holds settings of the stage's record, under their own names. A stage is
skipped while the manifest of its output says that it was made by this version from the same input
with the same arguments, and its files are whole.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shlex
import sys
import tomllib
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tomli_w

from logeval import __version__
from logeval.clicks.collection import FittedModels, read_models
from logeval.clicks.fit import Fit
from logeval.clicks.models.registry import option_names
from logeval.decision.decide import Decide
from logeval.errors import LogevalError, unknown_names
from logeval.evaluation.evaluate import Evaluate
from logeval.evaluation.matching import in_tracks
from logeval.evaluation.results import Runs
from logeval.features.make import MakeFeatures
from logeval.log.ingest import Ingest
from logeval.log.log import Log
from logeval.log.log import load as load_log
from logeval.replay.stages import ReplayEstimate
from logeval.reports.report import Report
from logeval.stage import Stage, arguments_of, fits, recipe_keys
from logeval.storage import files, tables
from logeval.synthetic.generate import Generate
from logeval.tracks.registry import home_track

# section -> record; in the order in which they run
STAGES: dict[str, type[Stage[Any]]] = {
    "generate": Generate,
    "ingest": Ingest,
    "fit-models": Fit,
    "features": MakeFeatures,
    "evaluate": Evaluate,
    "replay": ReplayEstimate,
    "decide": Decide,
    "report": Report,
}
DEMO = Path(__file__).parent / "recipes" / "demo.toml"
NEEDED = ("ingest", "fit-models", "evaluate", "report")
# settings of evaluate that add to a runs table instead of asking for another one
ADDING = ("policies", "runs")
LIBRARIES = ("numpy", "scipy", "numba", "pyarrow", "duckdb", "pandas")


@dataclass
class Recipe:
    """A recipe: where its output goes, its seed, and the arguments of each stage."""

    out: Path
    seed: int = 0
    title: str = "logeval"
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)
    path: Path = Path("RECIPE")  # where it was read

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
    return _recipe(_content(path), path, overrides)


def demo_recipe(out: str | Path | None = None, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe of ``logeval demo``, which writes a synthetic log."""
    data = _content(DEMO)
    return _recipe(data if out is None else {**data, "out": str(out)}, DEMO, overrides)


def _content(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise LogevalError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    except (ValueError, RecursionError) as error:
        raise LogevalError(f"{path}: not a recipe ({error})") from None


def _recipe(data: dict[str, Any], path: Path, overrides: Iterable[str]) -> Recipe:
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
    for key, kind in (("out", str), ("seed", int), ("title", str)):
        if key in data and not fits(data[key], kind):
            raise LogevalError(f"{path}: {key} = {data[key]!r} must be {kind.__name__}")
    if ("generate" in stages) == ("logs" in stages["ingest"]):
        raise LogevalError(f"{path}: names no log, or two; give logs in [ingest] or a [generate]")
    title = data.get("title", path.stem)
    recipe = Recipe(Path(data["out"]), data.get("seed", 0), title, stages, path)
    records(recipe, f"{path}: ")
    return recipe


def records(recipe: Recipe, where: str = "") -> dict[str, Stage[Any]]:
    """The stages with all their arguments; what is wrong names its section.

    The folder of runs is not known before there are models (``_runs_folder``).
    """
    home, sections = recipe.out, recipe.stages
    log, models, features = home / "log", home / "models", home / "features"
    evaluate = sections["evaluate"]
    given: dict[str, dict[str, Any]] = {
        "generate": {"out": home / "log.tsv.gz", "overwrite": True},
        "ingest": {"logs": [home / "log.tsv.gz"], "out": log, "overwrite": True},
        "fit-models": {"log": log, "out": models, "overwrite": True},
        "features": {"log": log, "out": features, "overwrite": True},
        "evaluate": {"models": models, "features": features if "features" in sections else None},
        "replay": {"log": log, "out": home / "replay"},
        "decide": {"log": log, "models": models, "out": home / "decision"},
        "report": {
            "runs": [],
            "out": home / "report",
            "log": log,
            "models": models,
            "replay": home / "replay" if "replay" in sections else None,
            "recipe": home / "recipe.toml",
            "policies": evaluate.get("policies"),
            "n_runs": evaluate.get("runs", Evaluate.runs),
            "title": recipe.title,
        },
    }
    found = {}
    for stage, section in sections.items():
        if "seed" in recipe_keys(STAGES[stage]):
            given[stage]["seed"] = recipe.seed
        try:
            found[stage] = STAGES[stage].of(**{**given[stage], **section})
        except LogevalError as error:
            raise LogevalError(f"{where}[{stage}] {error}") from None
    return found


def check_together(stages: dict[str, Stage[Any]], load: bool = True) -> None:
    """Policies, tracks and draws that go together; without ``load`` nothing is imported."""
    fit, evaluate = stages["fit-models"], stages["evaluate"]
    assert isinstance(fit, Fit)
    assert isinstance(evaluate, Evaluate)
    home = home_track("features" in stages)
    in_tracks(evaluate.specs(home, load), evaluate.track, home)
    if evaluate.draws > fit.draws:
        raise LogevalError(
            f"[evaluate] draws={evaluate.draws}: fit-models keeps {fit.draws}; raise its draws, or "
            "ask for fewer"
        )


def run(recipe: Recipe, *, dry_run: bool = False, quiet: bool = False) -> list[Step]:
    """Run what is not up to date; with ``dry_run`` only say what that is, and import nothing."""
    stages = records(recipe)
    check_together(stages, load=not dry_run)
    if isinstance(ingest := stages["ingest"], Ingest) and "generate" not in stages:
        try:
            ingest.check_inputs()
        except LogevalError as error:
            raise LogevalError(
                f"[ingest] {error}, or name your copy of the log: "
                f"`logeval run {shlex.quote(str(recipe.path))} --set ingest.logs=FILE`"
            ) from None
    steps: list[Step] = []
    if not dry_run:
        recipe.out.mkdir(parents=True, exist_ok=True)
        _write_copy(recipe)
    for name, asked in stages.items():
        earlier = next((s.stage for s in steps if s.reason), None)
        if dry_run and earlier:
            steps.append(Step(name, recipe.out, f"{earlier} runs before it"))
            continue
        if name in ("evaluate", "report"):
            runs = _runs_folder(recipe, stages)
            folders = [recipe.out / "decision", runs] if "decide" in stages else [runs]
            asked = asked.replace(**({"out": runs} if name == "evaluate" else {"runs": folders}))
        out = Path(str(asked.out))
        if not dry_run:
            tables.recover(asked.truth if isinstance(asked, Generate) else out)
        unknown = _not_loaded(asked) if dry_run and isinstance(asked, Evaluate) else None
        steps.append(Step(name, out, unknown or asked.why()))
        if dry_run:
            continue
        if not quiet:
            print(f"== {name}: {steps[-1].reason or 'up to date'}", file=sys.stderr, flush=True)
        if steps[-1].reason:
            asked.replace(quiet=quiet).done()
    return steps


def _not_loaded(asked: Evaluate) -> str | None:
    """Why a dry run cannot know whether all runs are there: it runs no code of the user's."""
    own = [spec.name for spec in asked.specs(load=False) if not spec.built_in]
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


def _runs_folder(recipe: Recipe, stages: dict[str, Stage[Any]]) -> Path:
    """A folder per setting, so that asking for another horizon does not cost the runs before.

    Its name depends on what the models hold, not on when they were fitted.
    """
    settings = stages["evaluate"].arguments()
    asked = {name: value for name, value in settings.items() if name not in ADDING}
    inputs = [recipe.out / "models"]
    inputs += [recipe.out / "features"] if "features" in stages else []
    key = json.dumps([asked, *map(tables.identity, inputs)], sort_keys=True)
    return recipe.out / "runs" / hashlib.sha256(key.encode()).hexdigest()[:8]


def _set(data: dict[str, Any], override: str) -> None:
    key, sign, text = override.partition("=")
    *sections, name = key.strip().split(".")
    if not sign or len(sections) > 1:
        raise LogevalError(f"{override}: write it as evaluate.horizon=1000")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        value = _of_text(STAGES.get("".join(sections)), name, text.strip())
    target = data.setdefault(sections[0], {}) if sections else data
    if not isinstance(target, dict):
        raise LogevalError(f"{override}: {sections[0]} is not a section")
    target[name] = value


def _of_text(record: type[Stage[Any]] | None, name: str, text: str) -> Any:
    """What a text stands for: where several may be given, those between its commas.

    The commas of RankedExp3(gamma=0.05,collision=random) are not between two policies.
    """
    parts = [part.strip() for part in re.findall(r"(?:[^,(]|\([^)]*\)?)+", text)]
    for argument, hint, arg in [] if record is None else arguments_of(record):
        if argument == name and fits([""], hint) and not Path(text).exists():
            return parts if len(parts) > 1 else text
        if argument == name and arg.parse is not None:
            return arg.parse(parts if fits({"": ""}, hint) else text)
    return text


def _keys(stage: str) -> list[str]:
    """The keys that the section of a stage may have."""
    keys = list(recipe_keys(STAGES[stage]))
    return [*keys, *option_names()] if stage == "fit-models" else keys


def load(folder: Path | str) -> Log | FittedModels | Runs:
    """The log, the models or the runs that a folder holds.

    >>> [type(logeval.load(folder)).__name__ for folder in ("data/log", "data/models")]
    ['Log', 'FittedModels']
    """
    if isinstance(folder, Log | FittedModels | Runs):
        return folder
    if not isinstance(folder, str | Path):
        raise LogevalError(
            f"{folder!r}: cannot be loaded; give the folder of a log, models or runs"
        )
    stage = tables.read_manifest(folder)["stage"]
    if stage == "ingest":
        return load_log(folder)
    if stage in ("fit-models", "models", "generate"):
        return read_models(folder)
    if stage == "evaluate":
        return Runs.load(folder)
    raise LogevalError(f"{folder}: holds the output of {stage}; load reads a log, models or runs")
