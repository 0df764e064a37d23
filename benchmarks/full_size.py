"""Every stage of pipelines/full-size.toml at a share of its size: wall time, CPU, memory, bytes.

    python benchmarks/full_size.py --share 0.01 --out /tmp/full-size

Each stage is a process of its own, so its peak memory is its own; of several workers the largest
counts. What a later stage does not need is removed, and so is everything at the end. The plain log
and the .gz hold the same lines; the tables made of them must be the same.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import pandas as pd

from logeval.commands.show import print_frame
from logeval.pipeline import read_recipe
from logeval.storage import tables

RECIPE = Path(__file__).parent.parent / "pipelines" / "full-size.toml"
POOLED = 20_000  # queries that the pooled models are fitted to
NEEDED_GB = 45  # of free disk at the full size: plain log, .gz, two tables


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the full size")
    parser.add_argument("--out", type=Path, help="a folder on a disk with room; default: temporary")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="full-size-", dir=asked.out) as folder:
        free = shutil.disk_usage(folder).free / 1e9
        if free < NEEDED_GB * asked.share:
            sys.exit(f"{folder}: {free:.0f} GB are free; {NEEDED_GB * asked.share:.0f} are needed")
        rows = list(stages(Path(folder), asked.share))
    print_frame(f"full size x {asked.share:g}", pd.DataFrame(rows))


def stages(home, share):
    recipe = read_recipe(RECIPE).stages
    made, fit, run = recipe["generate"], recipe["fit-models"], recipe["evaluate"]
    sessions = round(made["sessions"] * share)
    plain, packed = home / "plain.tsv", home / "packed.tsv.gz"
    size = ["--sessions", sessions, "--queries", made["queries"], "--seed", 1]
    warm = home / "warm.tsv"
    measured("compile: generate", ["generate", warm, "--sessions", 1000])
    measured("compile: ingest", ["ingest", warm, "--out", home / "warm"])
    yield measured("generate, plain", ["generate", plain, *size], plain)
    yield measured("ingest, plain", ["ingest", plain, "--out", home / "log"], home / "log")
    first = counts(home / "log")
    plain.unlink()
    yield measured("generate, .gz", ["generate", packed, *size], packed)
    yield measured("ingest, .gz", ["ingest", packed, "--out", home / "of-gz"], home / "of-gz")
    assert counts(home / "of-gz") == first, "the .gz holds other records than the plain log"
    packed.unlink()
    shutil.rmtree(home / "of-gz")
    log, models = home / "log", home / "models"
    names = [x for name in fit["models"] for x in ("--model", name)]
    yield measured("describe", ["describe", log])
    top = ["--top-queries", fit["top_queries"], "--holdout", fit["holdout"]]
    yield measured(
        "fit-models, 20 queries", ["fit-models", log, *names, *top, "--out", models], models
    )
    pooled = ["--scope", "pooled", "--top-queries", POOLED, "--out", home / "pooled"]
    yield measured("fit-models, pooled", ["fit-models", log, *names, *pooled], home / "pooled")
    shutil.rmtree(home / "pooled")
    policies = [x for name in run["policies"] for x in ("--policy", name)]
    asked = ["--horizon", run["horizon"], "--runs", run["runs"], "--workers", run["workers"]]
    out = home / "runs"
    yield measured("evaluate", ["evaluate", models, *policies, *asked, "--out", out], out)
    report = ["report", out, "--models", models, "--log", log, "--out", home / "report"]
    yield measured("report", report, home / "report")


def measured(stage, arguments, out=None):
    """Run a command; its row of the table."""
    print(f"{stage} ...", file=sys.stderr, flush=True)
    start = time.perf_counter()
    command = [sys.executable, "-m", "logeval.cli", *map(str, arguments)]
    if "--out" in command or "generate" in command:
        command.append("--quiet")
    with open(os.devnull, "w") as nowhere:
        actions = [(os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1)]
        pid = os.posix_spawn(sys.executable, command, os.environ, file_actions=actions)
        _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit(f"{stage} failed: {' '.join(command)}")
    row = {
        "stage": stage,
        "wall_s": round(time.perf_counter() - start, 1),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_MiB": usage.ru_maxrss // 1024,
        "output_MB": round(bytes_of(out) / 1e6, 1) if out else 0.0,
    }
    print(row, file=sys.stderr, flush=True)
    return row


def bytes_of(path):
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(f.stat().st_size for f in files if f.is_file())


def counts(folder):
    """What was read, and the checksums of the tables."""
    manifest = tables.read_manifest(folder)
    serps = {name: record for name, record in manifest["files"].items() if "serps/" in name}
    return manifest["counts"], serps


if __name__ == "__main__":
    main()
