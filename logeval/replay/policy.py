"""``logeval.replay_policy``: what learning policies would have earned, from the log itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from scipy.special import stdtrit

from logeval.clicks.read_rows import LONGEST_LIST
from logeval.errors import LogevalError
from logeval.evaluation.experiment import checkpoints_of
from logeval.evaluation.loop import CheckedPolicy, run
from logeval.log.log import load
from logeval.log.queries import Query
from logeval.policies.names import format_call, parse_call
from logeval.policies.registry import PolicySpec, own_sources, parse_policies
from logeval.policies.setting import Setting
from logeval.replay.logged import cut, read_logged
from logeval.replay.stream import Accepted, QueryStream, ReplayEnvironment, streams_of
from logeval.running import seeds
from logeval.running.arrays import Ints
from logeval.running.progress import Progress
from logeval.storage import tables
from logeval.storage.schemas import REPLAYS
from logeval.tracks.meters import Meters

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAX_STEPS = 10_000
MOST_SHUFFLES = 100_000
TOP_QUERIES = 20
Lists = dict[tuple[str, str, int], Ints]  # item ids by policy, query and run


@dataclass(frozen=True)
class PolicyReplay:
    """What ``replay_policy`` gives: rows in the schema ``schemas.REPLAYS``, and notes."""

    table: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    manifest: tables.Manifest = field(default_factory=dict)
    lists: Lists = field(default_factory=dict)  # the last accepted ones; not stored

    def summary(self) -> pd.DataFrame:
        """One row per policy: clicks per step with interval, acceptance, exhausted queues."""
        import pandas as pd

        rows = []
        for policy, mine in self.table.groupby("policy", sort=False):
            last = mine.sort_values("t").groupby(["query", "run"], sort=False).tail(1)
            mean, half = curve(mine, self.table["t"].max())
            common = self._common(mine)
            value, width = curve(mine, common) if common else (np.nan, np.nan)
            rows.append(
                {
                    "policy": policy,
                    "replicas": len(last),
                    "steps": last["steps"].mean(),
                    "acceptance": last["steps"].sum() / last["passed"].sum(),
                    "exhausted": last["exhausted"].mean(),
                    "common_t": common,
                    "clicks_per_step": value,
                    "low": value - width,
                    "high": value + width,
                    "at_the_end": mean,
                    "end_half_width": half,
                }
            )
        return pd.DataFrame(rows)

    def _common(self, mine: pd.DataFrame) -> int:
        """The last checkpoint that every replica reached."""
        there = mine[mine["clicks"].notna()]
        replicas = len(mine[["query", "run"]].drop_duplicates())
        counts = there.groupby("t")["run"].size()
        whole = counts[counts == replicas]
        return int(whole.index.max()) if len(whole) else 0

    def plot(self, ax: Axes | None = None) -> Axes:
        """Clicks per step over accepted steps, with intervals."""
        from logeval.reports.replay_figures import plot_replays

        return plot_replays(self.table, ax)

    def write(self, out: Path | str) -> None:
        """Write ``replays.parquet`` and its manifest."""
        rows = pa.Table.from_pandas(self.table, schema=REPLAYS, preserve_index=False)
        with tables.staged(out) as folder:
            tables.write_parquet(rows, folder / "replays.parquet")
            tables.write_manifest(folder, self.manifest)


def curve(rows: pd.DataFrame, t: int) -> tuple[float, float]:
    """Clicks per step up to t: mean over queries of the runs that got there, half of its interval.

    The queries are taken as given, as in ``replay_estimate``; what varies is the n runs of each,
    with variance s^2. Shuffles of one log share its SERPs: if each passes the share f of them,
    two are correlated by at most f. With a correlation of f their own variance is 1 - f of that
    between logs, and the mean of n has the variance s^2 (1 / n + f / (1 - f)).
    """
    at = rows[(rows["t"] == t) & rows["clicks"].notna()]
    if at.empty:
        return np.nan, np.nan
    passed = 0.0 * at["clicks"]  # a simulator has no log to share
    if "passed" in at:
        passed = at["passed"] / at["serps"] * t / at["steps"]
    f = passed.groupby(at["query"]).mean()
    x = (at["clicks"] / t).groupby(at["query"])
    n = x.size()
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = x.var(ddof=1) * (1.0 / n + f / (1.0 - f))
    variance = variance.where(np.isfinite(variance))  # one run, or all of the log passed: unknown
    error = np.sqrt(variance.sum(skipna=False)) / len(n)
    return float(x.mean().mean()), float(error * stdtrit((n - 1).sum(), 0.975))


def replay_policy(
    log: Any,
    policies: Sequence[str | type],
    *,
    positions: int = 2,
    queries: Iterable[Query | str] | None = None,
    top_queries: int | None = None,
    items: int | None = None,
    horizon: int | None = None,
    shuffles: int = 10,
    checkpoints: int | Sequence[int] | None = None,
    out: Path | str | None = None,
    seed: int = 0,
    quiet: bool = False,
) -> PolicyReplay:
    """Replay learning policies on the SERPs of a log (see ``stream``).

    A run is a shuffle of the log; equal runs of two policies meet the same order. ``items``
    keeps the most shown candidates only. ``init=rounds`` is the default of every policy that has
    the choice: a log gives no free samples.
    """
    log = load(log)
    parsed = zip(policies, parse_policies(policies), strict=True)
    specs = [_with_rounds(given, spec) for given, spec in parsed]
    if not specs:
        raise LogevalError("there is no policy to replay; name one, as dcmKL-UCB")
    if wrong := [s for s in specs if s.track not in ("ranking", None)]:
        raise LogevalError(f"policy {wrong[0].name}: only policies that show lists can be replayed")
    if not (1 <= shuffles <= MOST_SHUFFLES and 1 <= positions <= LONGEST_LIST):
        raise LogevalError(
            f"shuffles must be 1 to {MOST_SHUFFLES:,}, and positions 1 to {LONGEST_LIST:,}"
        )
    if items is not None and items < positions:
        raise LogevalError(f"items={items}: a list of {positions} needs as many candidates")
    wanted = None
    if queries is not None:
        wanted = [Query.parse(q) if isinstance(q, str) else q for q in queries]
    elif top_queries is None:
        top_queries = TOP_QUERIES
    arguments = {
        "policies": [s.name for s in specs],
        "sources": own_sources(specs),
        "positions": positions,
        "queries": None if wanted is None else [str(q) for q in wanted],
        "top_queries": top_queries,
        "items": items,
        "horizon": horizon,
        "shuffles": shuffles,
        "checkpoints": checkpoints if checkpoints is None else str(checkpoints),
        "seed": seed,
    }
    inputs = [{"log": log.identity}]
    manifest = tables.manifest_of("replay policy", arguments, inputs)
    if out is not None and tables.same_work(Path(out), manifest):
        return read_replays(out)

    whole = read_logged(log, positions, queries=wanted, top_queries=top_queries)
    if whole.patterns.K < positions:
        raise LogevalError(
            f"positions={positions}: the lists of the log have at most {whole.patterns.K} items"
        )
    streams = streams_of(cut(whole, positions).logged.patterns, items)
    for stream in streams:
        if len(stream.item_ids) < positions:
            raise LogevalError(
                f"query {stream.query}: it has {len(stream.item_ids)} items, too few for "
                f"lists of {positions}; ask for fewer positions, or leave that query out"
            )
    steps = min(horizon or MAX_STEPS, max(s.serps for s in streams))
    marks = checkpoints_of(steps, checkpoints)
    frames, lists = [], Lists()
    with Progress("replay", len(specs), "policies", quiet) as progress:
        for spec in specs:
            frame, final = _replayed(spec, streams, shuffles, marks, seed)
            frames.append(frame)
            lists |= final
            progress.advance(1)
    import pandas as pd

    table = pd.concat(frames, ignore_index=True)
    notes = [f"{s.name}: init=rounds, a log gives no free samples" for s in specs if _has_init(s)]
    notes += _notes(table)
    manifest["notes"], manifest["log_folder"] = notes, str(log.path)
    found = PolicyReplay(table, notes, manifest, lists)
    if out is not None:
        found.write(out)
    return found


def read_replays(folder: Path | str) -> PolicyReplay:
    """The replays of a folder that ``replay policy`` wrote."""
    manifest = tables.read_manifest(folder)
    table = tables.read_table(Path(folder), "replays").to_pandas()
    return PolicyReplay(table, list(manifest.get("notes", [])), manifest)


def _has_init(spec: PolicySpec) -> bool:
    return "init" in getattr(spec.cls, "PARAMETERS", {}) and spec.parameters.get("init") == "rounds"


def _with_rounds(given: str | type, spec: PolicySpec) -> PolicySpec:
    """The policy with ``init=rounds``, unless it says otherwise."""
    said = isinstance(given, str) and "init" in parse_call(given)[1]
    if said or "init" not in getattr(spec.cls, "PARAMETERS", {}):
        return spec
    values = {**spec.parameters, "init": "rounds"}
    return replace(spec, name=format_call(spec.name.partition("(")[0], values), parameters=values)


def _replayed(
    spec: PolicySpec, streams: list[QueryStream], shuffles: int, marks: tuple[int, ...], seed: int
) -> tuple[pd.DataFrame, Lists]:
    import pandas as pd

    replicas = [(q, run) for q in range(len(streams)) for run in range(shuffles)]
    environment = ReplayEnvironment(streams, replicas, seed)
    generators = [
        seeds.generator(seed, "policy", "replay", streams[q].query, run, spec.name)
        for q, run in replicas
    ]
    setting = Setting.of(environment, marks[-1], generators)
    policy = spec.make(setting)
    meters = Meters((Accepted,), environment, policy, marks)
    if not spec.built_in:
        policy = CheckedPolicy(policy, spec.name, setting)
    run(environment, policy, meters, marks)
    n = len(marks)
    columns: dict[str, Any] = {
        "policy": [spec.name] * (len(replicas) * n),
        "query": np.repeat([streams[q].query for q, _ in replicas], n),
        "run": np.repeat([run for _, run in replicas], n),
        "t": np.tile(marks, len(replicas)),
        **{name: values.ravel() for name, values in meters.columns().items()},
        "steps": np.repeat(environment.steps, n),
        "passed": np.repeat(environment.clock, n),
        "serps": np.repeat([streams[q].serps for q, _ in replicas], n),
        "exhausted": np.repeat(~environment.alive, n),
    }
    last = {(streams[q].query, run): environment.last[r] for r, (q, run) in enumerate(replicas)}
    lists = {
        (spec.name, query, run): streams[replicas[r][0]].item_ids[A]
        for r, ((query, run), A) in enumerate(last.items())
        if environment.steps[r]
    }
    return pd.DataFrame(columns), lists


def _notes(table: pd.DataFrame) -> list[str]:
    last = table.drop_duplicates(["policy", "query", "run"], keep="last")
    out = []
    for policy, mine in last.groupby("policy", sort=False):
        stopped = mine[mine["exhausted"]]
        if len(stopped):
            queries = stopped["query"].nunique()
            out.append(
                f"{policy}: {len(stopped)} of {len(mine)} queues ({queries} queries) were "
                f"exhausted, after {stopped['steps'].median():.0f} steps in the median"
            )
    return out
