"""What the first minute costs: CPU and wall seconds of commands, with and without compiled kernels.

``python benchmarks/first_minute.py`` measures this checkout, ``--before DIR`` another one beside it
in the same run (``git worktree add DIR COMMIT``). Cold is with an empty cache of kernels, for every
command anew; warm is the same command again. CPU is of the command and all processes that it
starts. Files of Python are compiled to bytecode before. It prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
DEMO = ["demo", "--no-open", "-q", "--out", "demo"]
COMMANDS = {  # what each prints is thrown away
    "`import logeval`": ["-c", "import logeval"],
    "`logeval --help`": ["--help"],
    "a usage error (`evaluate --horizon x`)": ["evaluate", "--horizon", "x"],
    "a folder that is not there (`fit-models nothing`)": [
        "fit-models", "nothing", "-m", "dcm", "--out", "x",
    ],
    "`ingest`, 50,000 sessions": ["ingest", "log.tsv.gz", "--out", "log", "-q"],
    "`fit-models`, DCM and PBM, 10 queries": [
        "fit-models", "log", "-m", "dcm", "-m", "pbm", "--top-queries", "10", "--holdout", "0.1",
        "--out", "models", "-q",
    ],
    "`evaluate`, 2 policies, 5,000 steps": [
        "evaluate", "models", "--policy", "dcmKL-UCB", "--policy", "RankedKL-UCB",
        "--horizon", "5000", "--runs", "2", "--out", "runs", "-q",
    ],
    "`report`": ["report", "runs", "--log", "log", "--models", "models", "--out", "report", "-q"],
    "`demo`: everything": DEMO,
}  # fmt: skip
# else a second call has nothing to do
MADE_BY = {
    "ingest": "log",
    "fit-models": "models",
    "evaluate": "runs",
    "report": "report",
    "demo": "demo",
    "run": "demo",
}


class Cost(NamedTuple):
    """Seconds."""

    cpu: float
    wall: float


def cost(arguments: list[str], source: Path, folder: Path, kernels: Path) -> Cost:
    """Run a command of the checkout ``source`` in a folder."""
    own = arguments[:1] == ["-c"]
    command = [sys.executable, *([] if own else ["-m", "logeval.cli"]), *arguments]
    env = os.environ | {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(kernels)}
    start = time.monotonic()
    with (folder / "said").open("w+") as said:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        code = process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        if code not in (0, 2):
            raise SystemExit(f"{command}\n{said.read()}")
    return Cost(used.ru_utime + used.ru_stime, time.monotonic() - start)


def measure(source: Path) -> dict[str, tuple[Cost, Cost]]:
    """Cold and warm, of every command."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shared = folder / "kernels"
        cost(["generate", "log.tsv.gz", "--seed", "1", "-q"], source, folder, shared)
        for title, arguments in COMMANDS.items():
            old = source / "pipelines" / "demo.toml"
            if arguments is DEMO and old.exists():  # before there was a command for it
                arguments = ["run", str(old), "-q"]
            both = []
            for _ in range(2):
                if made := MADE_BY.get(arguments[0]):
                    shutil.rmtree(folder / made, ignore_errors=True)
                both.append(cost(arguments, source, folder, folder / f"cold-{len(found)}"))
            found[title] = both[0], both[1]
            print(title, *both, file=sys.stderr, flush=True)
    return found


def main() -> None:
    """See the top of this file."""
    parser = argparse.ArgumentParser(description="What the first minute costs.")
    parser.add_argument("--before", type=Path, help="another checkout, measured beside this one")
    arguments = parser.parse_args()
    sources = [*([arguments.before.resolve()] if arguments.before else []), ROOT]
    for source in sources:
        subprocess.run([sys.executable, "-m", "compileall", "-q", str(source / "logeval")])
    tables = [measure(source) for source in sources]
    names = ["before, ", "after, "] if arguments.before else [""]
    heads = [f"{name}{kind}" for name in names for kind in ("cold", "warm")]
    print(f"| CPU s (wall) | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}")
    for title in COMMANDS:
        cells = [f"{one.cpu:.2f} ({one.wall:.1f})" for table in tables for one in table[title]]
        print(f"| {title} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
