"""Every stage on a tiny log, as a call that can be killed, and what its output must be."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import logeval as le
from logeval.errors import LogevalError
from logeval.pipeline import Recipe, run
from logeval.storage import tables
from logeval.synthetic.generate import generate, truth_folder

LONG = os.environ.get("LOGEVAL_FAULTS") == "long"  # make faults
SESSIONS = {"sessions": 300, "queries": 3, "seed": 5, "quiet": True}
POLICIES = {"policies": ["Random", "Oracle"], "horizon": 40, "quiet": True}


@dataclass(frozen=True)
class Stage:
    """``call(given, out, again)`` writes ``out`` from the output of the stages before.

    With ``again`` it asks for something else, so that an existing output is replaced or grows.
    """

    name: str
    call: Callable[[Path, Path, bool], Any]
    read: Callable[[Path], Any]  # what a user gets from the output: equal if all is well


def _generate(given, out, again):
    generate(out / "log.tsv.gz", **SESSIONS | {"sessions": 301 if again else 300}, overwrite=True)


def _ingest(given, out, again):
    log = given / "raw" / "log.tsv.gz"
    le.ingest(
        log, out, max_bad=0.02 if again else 0.01, overwrite=True, quiet=True, block_size=9000
    )


def _fit(given, out, again):
    names = ["PBM"] if again else ["DCM"]
    how = {"top_queries": 2, "verdict": False, "overwrite": True, "quiet": True}
    le.fit_models(given / "log", names, out=out, **how)


def _evaluate(given, out, again):
    le.evaluate(given / "models", **POLICIES, runs=50 if again else 40, out=out)


def _report(given, out, again):
    le.report(given / "runs", out, title="again" if again else "first", quiet=True)


def _run(given, out, again):
    stages: dict[str, dict[str, Any]] = {
        "generate": {"sessions": 300, "queries": 3},
        "ingest": {},
        "fit-models": {"models": ["DCM"], "top_queries": 2},
        "evaluate": {"policies": ["Random", "Oracle"], "horizon": 41 if again else 40, "runs": 3},
        "report": {},
    }
    run(Recipe(out, stages=stages), quiet=True)


def _tables(names):
    return lambda out: [tables.read_table(out, name) for name in names]


def _everything(out):
    log, models = le.load(out / "log"), out / "models"
    runs = [tables.read_table(f, "runs") for f in sorted((out / "runs").iterdir())]
    if not runs:
        raise LogevalError("there are no runs yet")
    return [log.serps(), tables.read_table(models, "models"), *runs]


STAGES = [
    Stage("raw", _generate, lambda out: _generated(out)),
    Stage("log", _ingest, lambda out: [le.load(out).serps(), le.load(out).counts]),
    Stage("models", _fit, _tables(["models", "queries", "lists"])),
    Stage("runs", _evaluate, _tables(["runs", "problems"])),
]
if LONG:  # figures take seconds
    STAGES += [Stage("report", _report, lambda out: _page(out)), Stage("run", _run, _everything)]
BY_NAME = {stage.name: stage for stage in STAGES}


def _generated(out):
    log = out / "log.tsv.gz"
    manifest = tables.read_manifest(truth_folder(log))
    tables.check_files(truth_folder(log), manifest)
    return [log.read_bytes(), tables.read_table(truth_folder(log), "models")]


def _page(out):
    tables.check_files(out, tables.read_manifest(out))
    text = (out / "index.html").read_text()
    return [re.sub(r"<footer>.*</footer>", "", text)]  # when it was made, and by which command


def prepared(folder: Path) -> Path:
    """A folder with the output of every stage but the last, each in its own folder."""
    for stage in STAGES:
        if stage.name != "run":
            stage.call(folder, folder / stage.name, False)
    return folder


def leftovers(out: Path) -> list[str]:
    """Files that nobody should find once a command has ended well."""
    around = [p for p in out.parent.iterdir() if p.name.startswith(f".{out.name}")]
    inside = [p for p in out.rglob("*") if ".partial" in p.name or p.name == ".lock"]
    return [str(p) for p in (*around, *inside)]


def copied(source: Path, to: Path) -> Path:
    shutil.copytree(source, to, symlinks=True)
    return to
