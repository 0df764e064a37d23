"""Whether two versions of logeval write the same rows.

Run it with the old version, change the code, run it again and compare::

    python tests/same_rows.py write before
    python tests/same_rows.py write after
    python tests/same_rows.py compare before after

It runs the demo recipe, one synthetic problem per track, the headline policies on fitted models,
features with contextual policies, everything of replay and some published experiments, and compares
all tables row by row, whatever their files are called and however they are cut. It is a script and
not a test: rows may change for a reason, which then belongs into the commit message.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pyarrow.dataset as ds

LISTS = ["CascadeUCB1", "CascadeKL-UCB", "CascadeKL-UCB(order=ascending)", "dcmKL-UCB"]
LISTS += ["dcmKL-UCB(init=sample)", "First-Click", "Last-Click", "RankedUCB1", "RankedKL-UCB"]
LISTS += ["RankedKL-UCB(collision=random)", "RankedKL-UCB(init=sample)", "RankedExp3"]
LISTS += ["RankedExp3(collision=random)"]
PAIRS = ["Rank1ElimKL", "Rank1Elim", "UCB1Elim", "UCB1", "KL-UCB", "TS"]
ENDS = ["Random", "Oracle"]
CONTEXTUAL = ["GL-CDCM", "LR", "CascadeLinUCB", "CascadeLinTS", "LogisticTS", "dcmKL-UCB"]
EXPERIMENTS = ["dcm-3b", "dcm-3c", "rank1-2", "cascading-1"]
# older versions have a command for it
REPRODUCE = ["logeval.cli", "reproduce"] if find_spec("logeval.papers") else ["reproduction"]
REPLAYED = ["estimates", "validation", "replays", "features"]
ITEMS_AND_POSITIONS = ["positions", "items"]  # rows of an older models table, not parameters


def write(folder: Path) -> None:
    """Run every command into ``folder``."""
    folder.mkdir(parents=True)
    _logeval("demo", "--no-open", "--out", folder / "demo")
    models = folder / "demo" / "models"
    for model in ("dbn", "ubm", "ccm", "sdbn", "cm"):
        log = folder / "demo" / "log"
        out = folder / f"models-{model}"
        few = ["--top-queries", 3, "--no-verdict"]
        _logeval("fit-models", log, "--model", model, *few, "--out", out)
        _evaluate(folder / f"runs-{model}", [out], LISTS[3:4] + ENDS, 300)
    _evaluate(folder / "runs-models", [models], LISTS + PAIRS + ENDS, 1000)
    problem = ["--problem", "B_LB(L=16,K=4,p=0.2,gap=0.15,gamma=0.5)"]
    _evaluate(folder / "runs-ranking", problem, LISTS + ENDS, 5000)
    problem = ["--problem", "rank1(K=6,L=4,p=0.25,gap=0.5)"]
    _evaluate(folder / "runs-rank1", problem, PAIRS + ENDS, 20000)
    problem = ["--problem", "contextual(L=20,K=3,d=5,norm=1,contexts=fixed)"]
    _evaluate(folder / "runs-contextual", problem, CONTEXTUAL + ENDS, 300)
    _features(folder)
    _replay(folder)
    for name in EXPERIMENTS:
        small = ["--horizon", 300, "--runs", 3, "--quiet", "--out", folder / "experiments" / name]
        _run(*REPRODUCE, name, "--log", folder / "demo" / "log", *small)


def _features(folder: Path) -> None:
    log, out = folder / "demo" / "log", folder / "features"
    _logeval("features", log, "--top-queries", 2, "--items", 20, "--dim", 5, "--out", out)
    models = folder / "models-half"
    half = ["--model", "dcm", "--top-queries", 2, "--holdout", 0.5, "--no-verdict"]
    _logeval("fit-models", log, *half, "--out", models)
    problem = [models, "--features", out, "--block", 50]
    _evaluate(folder / "runs-features", problem, CONTEXTUAL + ENDS, 300)


def _replay(folder: Path) -> None:
    log, few = folder / "demo" / "log", ["--top-queries", 3]
    targets = ["--target", "by-ctr", "--target", "random", "--target", "best:dcm", "--force"]
    _logeval("replay", "estimate", log, *targets, *few, "--json", "--rounds", 50, "--refits", 2,
             "--positions", 3, "--out", folder / "estimates")  # fmt: skip
    _logeval("replay", "validate", log, *few, "--json", "--positions", "1,3", "--parts", 4,
             "--out", folder / "validation")  # fmt: skip
    policies = ["--policy", "dcmKL-UCB", "--policy", "Random", "--items", 4]
    _logeval("replay", "policy", log, *few, *policies, "--json", "--out", folder / "replays")


def _evaluate(out: Path, problem: list[object], policies: list[str], horizon: int) -> None:
    named = [part for policy in policies for part in ("--policy", policy)]
    size = ["--horizon", horizon, "--runs", 2, "--seed", 3, "--json"]  # draws no figures
    _logeval("evaluate", *problem, *named, *size, "--out", out)


def _logeval(*arguments: object) -> str:
    return _run("logeval.cli", *arguments)


def _run(*arguments: object) -> str:
    command = [sys.executable, "-m", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def compare(before: Path, after: Path) -> int:
    """Print what differs; how many tables do."""
    wrong = 0
    for name, old, new in _tables(before, after):
        same = old.equals(new)
        wrong += not same
        print(f"{name}: {len(old)} rows", "same" if same else f"DIFFER (now {len(new)})")
    return wrong


def _tables(before: Path, after: Path) -> list[tuple[str, pd.DataFrame, pd.DataFrame]]:
    found = []
    name = "demo/log/serps"
    found.append((name, _rows(before / name), _rows(after / name)))
    for old in sorted(before.glob("**/models*.parquet")):
        name = old.relative_to(before)
        found.append((str(name), _parameters(old), _parameters(_same(after, name))))
    for kind in ("demo/runs", "runs-*", "experiments"):
        folders = [
            sorted(
                {f.parent for f in d.glob(f"{kind}/**/runs*.parquet")}
                | {f.parent for f in d.glob(f"{kind}/runs*.parquet")}
            )
            for d in (before, after)
        ]
        for old, new in zip(*folders, strict=True):
            name = f"{old.relative_to(before)}"
            found.append((name, *(_rows(next(f.glob("runs*.parquet"))) for f in (old, new))))
    for table in REPLAYED:
        for old in sorted(before.glob(f"**/{table}*.parquet")):
            name = old.relative_to(before)
            found.append((str(name), _rows(old), _rows(_same(after, name))))
    return found


def _same(after: Path, name: Path) -> Path:
    """The file of the same table: names hold a checksum, or did not yet."""
    table = re.sub(r"-[0-9a-f]{8}$", "", name.stem)
    found = (after / name.parent).glob(f"{table}*.parquet")
    return next(f for f in found if re.fullmatch(rf"{table}(-[0-9a-f]{{8}})?", f.stem))


def _rows(path: Path) -> pd.DataFrame:
    files = [path] if path.is_file() else sorted(path.glob("*.parquet"))
    if not files:
        return pd.DataFrame()
    table = ds.dataset(files).to_table()
    return table.to_pandas().map(  # a list as text: the nan of one list is not that of another
        lambda v: repr(list(v)) if hasattr(v, "__len__") and not isinstance(v, str) else v
    )


def _parameters(path: Path) -> pd.DataFrame:
    """The parameters of a models table, in an order of their own: a row per value."""
    table = pd.read_parquet(path)
    rows = _expanded(table) if "unseen" in table else _rows(path)
    rows = rows[~rows["parameter"].isin(ITEMS_AND_POSITIONS)]
    of_items = rows.groupby(["model", "parameter"])["item_id"].transform("count") > 0
    # of queries never seen: means of the others, which older versions wrote
    rows = rows[rows["query_id"].notna() | of_items | (rows["scope"] == "pooled")]
    keys = ["model", "parameter", "class", "query_id", "region_id", "item_id"]
    keys += ["position", "previous"]
    numbers = ["value", "low", "high", "observations", "raw"]
    rows = rows.reindex(columns=[*keys, "method", "scope", *numbers, "prior", "draws"])
    rows = rows.astype(dict.fromkeys(keys[2:] + numbers, "float64"))
    rows["prior"] = rows["prior"].astype("object").where(rows["prior"].notna(), None)
    return rows.sort_values(keys).reset_index(drop=True)


def _expanded(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a models table whose values are lists, as older versions had them."""
    rows = []
    for row in table.to_dict("records"):
        n, of_items = len(row["value"]), row["items"] is not None
        same = {k: row[k] for k in ("model", "method", "scope", "parameter", "class")}
        same |= {k: row[k] for k in ("query_id", "region_id")}
        of_query = row["model"].startswith("GCTR") or row["parameter"] == "continuation"
        of_query |= row["model"].startswith("CCM") and not of_items
        triangle = row["model"].startswith("UBM") and row["parameter"] == "examination"
        pairs = [(k + 1, j) for k in range(n if triangle else 0) for j in range(k + 1)]
        for i in range(n):
            keys = {"item_id": row["items"][i]} if of_items else {"position": i + 1}
            keys = dict(zip(("position", "previous"), pairs[i], strict=True)) if triangle else keys
            keys = {"class": i + 1} if row["parameter"] == "share" else keys
            keys = {} if of_query else keys
            lists = ("value", "low", "high", "observations", "raw", "prior")
            numbers = {k: None if row[k] is None else row[k][i] for k in lists}
            draws = None if row["draws"] is None else repr(list(row["draws"][i]))
            rows.append(same | keys | numbers | {"draws": draws})
        if of_items:
            rows.append(same | {"value": row["unseen"]})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]))
    else:
        raise SystemExit(compare(Path(sys.argv[2]), Path(sys.argv[3])))
