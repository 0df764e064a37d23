"""The runs of an experiment: its table, a summary with intervals, and figures."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from logeval.errors import LogevalError
from logeval.evaluation.statistics import intervals
from logeval.evaluation.statistics import summary as relative
from logeval.evaluation.statistics.intervals import by_step
from logeval.evaluation.statistics.summary import by_simulator, pairs, summary
from logeval.evaluation.store import horizon_of, sorted_rows
from logeval.facts import Fact
from logeval.log.names import Names
from logeval.policies.registry import parse_policies
from logeval.storage import tables
from logeval.storage.results import Shown
from logeval.storage.schemas import PROBLEMS
from logeval.tracks.keys import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from logeval.facts import Answer

# what a notebook shows of the summary
HEADLINE = ["simulator", "track", "policy", "regret", "low", "high", "share_of_optimum", "p"]


FEWEST_SERPS = 10  # of a query; a simulator that rests on fewer is not tested
TESTED = (
    "low", "high", "difference_low", "difference_high", "p", "ratio_low", "ratio_high", "ratio_p",
)  # fmt: skip
Method = TypeVar("Method", bound=Callable[..., Any])


def _once(method: Method) -> Method:
    """A method of a step t (default: the horizon) that computes once, and gives copies."""

    @wraps(method)
    def found(self: Runs, t: int | None = None) -> Any:
        step = self._step(t)
        return self._keep((method.__name__, step), lambda: method(self, step))

    return cast(Method, found)


class Runs(Shown):
    """What ``evaluate`` gives: the runs of all policies, on disk or in memory.

    ``summary()`` has a row per policy and ``compare()`` one per pair of policies, both with their
    intervals; ``plot()`` draws regret over time, ``to_pandas()`` has all rows, ``verdict()`` the
    answer and ``report()`` its page.

    >>> runs = logeval.evaluate(problem="B_LB(L=16,K=4,p=0.2,gap=0.15)",
    ...                         policies=["dcmKL-UCB", "Random"], horizon=1000, runs=5)
    ... # doctest: +SKIP
    >>> runs.summary()                                              # doctest: +SKIP
    """

    def __init__(
        self,
        rows: pa.Table,
        seed: int = 0,
        folder: Path | None = None,
        problems: pa.Table | None = None,
        facts: Sequence[Fact] = (),
        simulators: Mapping[str, Any] | None = None,
        names: Names | None = None,
    ) -> None:
        self.rows, self.seed, self.folder = sorted_rows(rows), seed, folder
        self.names = names or Names()  # of the queries
        self.facts = list(facts)  # what the user should know about them
        # what is known of those that were fitted to a log: checks and number of draws, by name
        ran = set(pc.unique(self.rows["simulator"]).to_pylist())  # a track may leave some out
        self.simulators = {name: about for name, about in (simulators or {}).items() if name in ran}
        self._problems = PROBLEMS.empty_table() if problems is None else problems
        self._curves: dict[tuple[str, str | None, str | None], dict[str, pd.DataFrame]] = {}
        self._made: dict[tuple[Any, ...], Any] = {}  # by method and arguments; see ``_keep``

    @classmethod
    def load(cls, folder: Path | str) -> Runs:
        """The runs that ``evaluate`` wrote to a folder."""
        return tables.consistent(folder, lambda manifest: cls._of(Path(folder), manifest))

    @classmethod
    def _of(cls, folder: Path, manifest: tables.Manifest) -> Runs:
        seed = manifest["arguments"].get("seed", 0)
        facts = [Fact.of(record) for record in manifest.get("facts", [])]
        rows, problems = (tables.table_of(folder, manifest, name) for name in ("runs", "problems"))
        about, names = manifest.get("simulators"), Names.of(manifest)
        return cls(rows, seed, folder, problems, facts, about, names)

    def only(self, policies: Sequence[str] | None = None, runs: int | None = None) -> Runs:
        """The runs of some policies, and the first ``runs`` of each."""
        rows = self.rows
        if policies is not None:
            tracks = pc.unique(rows["track"]).to_pylist()
            track = tracks[0] if len(tracks) == 1 else None  # a name may be a track's own
            names = [spec.name for spec in parse_policies(policies, track=track)]
            rows = rows.filter(pc.is_in(rows["policy"], pa.array(names)))
        if runs is not None:
            rows = rows.filter(pc.less(rows["run"], runs))
        about = (self._problems, self.facts, self.simulators, self.names)
        return Runs(rows, self.seed, self.folder, *about)

    def to_pandas(self) -> pd.DataFrame:
        """All rows (see ``logeval.storage.schemas.RUNS``)."""
        return self._table.copy()

    @cached_property
    def _table(self) -> pd.DataFrame:
        return self.rows.to_pandas()

    def _keep(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """A copy of what is made once."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key].copy()

    @property
    def notes(self) -> list[str]:
        """The facts in words."""
        from logeval.reports.words import sentence

        return [sentence(fact) for fact in self.facts]

    @property
    def horizon(self) -> int:
        """Number of steps."""
        return horizon_of(self.rows)

    @_once
    def summary(self, t: int | None = None) -> pd.DataFrame:
        """One row per simulator, track and policy, best first, at step t (default: the horizon).

        ``regret`` with its 95% interval (``low``, ``high``) and the papers' standard error
        (``stderr``), ``relative_regret`` (of the optimal reward), ``share_of_optimum`` (reward
        earned, of the optimal), ``optimal_steps`` (share of steps without regret). Against the
        best policy of the same simulator and track, the Oracle aside: ``difference`` with its
        simultaneous interval, ``p``, corrected for all pairs of policies, and ``in_best_set``,
        whether it cannot be told apart from the best. ``best_on`` is the number of ``queries``
        on which its mean is the smallest (ties count for all), ``replicas`` what the numbers are
        taken from, and ``missing`` how many this policy lacks. ``log_sd`` is how much queries (or
        the runs of one) differ in the logarithm of regret: intervals were measured up to 1.
        """
        parts = [self._testable(panel, summary(rows)) for panel, rows in self._at(t)]
        return pd.concat(parts, ignore_index=True)

    @_once
    def compare(self, t: int | None = None) -> pd.DataFrame:
        """All pairs of policies, the Oracle aside, per simulator and track at step t.

        ``difference`` is regret of the ``worse`` minus regret of the ``better``, with its
        simultaneous 95% interval (``low``, ``high``) and ``p``, corrected for all pairs;
        ``ratio``, ``ratio_low``, ``ratio_high`` and ``ratio_p`` are the same for the geometric mean
        over queries of regret of the worse over regret of the better (nan with one query).
        ``queries_better`` says on how many of the ``queries`` the order is the same.
        """
        parts = [self._testable(panel, pairs(rows)) for panel, rows in self._at(t)]
        return pd.concat(parts, ignore_index=True)

    def _testable(self, panel: Panel, table: pd.DataFrame) -> pd.DataFrame:
        """A table without intervals and p-values where the simulator rests on hardly any SERP."""
        most = _of_panel(self.problems(), panel)["serps"].max()
        if not most < FEWEST_SERPS:
            return table
        tested = [c for c in TESTED if c in table]
        table = table.assign(**dict.fromkeys(tested, np.nan))
        return table.assign(in_best_set=True) if "in_best_set" in table else table

    @_once
    def relative(self, t: int | None = None) -> pd.DataFrame:
        """All tracks on one axis: see ``statistics.relative`` (default: at the horizon)."""
        return relative.relative(pd.concat([rows for _, rows in self._at(t)]))

    @_once
    def by_simulator(self, t: int | None = None) -> dict[str, pd.DataFrame]:
        """Per track: does the order of the policies depend on the click model?

        Mean regret of each policy (rows) on each simulator, on what all of them have; without a
        track where there is nothing to compare.
        """
        rows = pd.concat([rows for _, rows in self._at(t)])
        found = {str(track): by_simulator(part) for track, part in rows.groupby("track")}
        return {track: table for track, table in found.items() if len(table)}

    def _step(self, t: int | None) -> int:
        """Step t, which must have been recorded."""
        t = self.horizon if t is None else t
        if isinstance(t, bool) or not isinstance(t, int | np.integer):
            raise LogevalError(f"t={t!r}: is a step, a whole number")
        known = np.unique(self._table["t"])
        if t not in known:
            near = known[np.abs(known - t).argmin()]
            raise LogevalError(f"step {t} was not recorded; the nearest that was is {near}")
        return int(t)

    def _at(self, t: int | None) -> list[tuple[Panel, pd.DataFrame]]:
        """The rows of each panel at step t."""
        parts = self._table[self._table["t"] == self._step(t)].groupby(["simulator", "track"])
        return [(Panel(*map(str, key)), part) for key, part in parts]

    def problems(self) -> pd.DataFrame:
        """What is known of every query beforehand (see ``logeval.storage.schemas.PROBLEMS``)."""
        return self._problems.to_pandas()

    def units(self) -> dict[Panel, str]:
        """What the reward of each panel counts: satisfaction, clicks or any-click."""
        known = self.problems().drop_duplicates(["simulator", "track"])
        keys = zip(known["simulator"], known["track"], strict=True)
        named = dict(zip((Panel(*key) for key in keys), known["reward"], strict=True))
        return {panel: named.get(panel, "satisfaction") for panel in self.panels()}

    def in_clicks(self, panel: Panel) -> pd.Series:
        """Expected clicks per search of each policy of a panel, over all steps, by policy."""
        rows = _of_panel(self._table[self._table["t"] == self.horizon], panel)
        of_query = rows.groupby(["policy", "query"])["expected_clicks"].mean()
        return of_query.groupby("policy").mean().dropna() / self.horizon

    def hardness(self) -> pd.DataFrame:
        """mu, p_max, gamma and Theorem 1's bound of each query of the rank-1 track."""
        found = self.problems()
        return found[found["mu"].notna()].reset_index(drop=True)

    def panels(self) -> list[Panel]:
        """The simulators, each in each of its tracks: a figure has a panel for each."""

        def found() -> list[Panel]:
            keys = self.rows.group_by(["simulator", "track"]).aggregate([]).to_pylist()
            return sorted(Panel(row["simulator"], row["track"]) for row in keys)

        panels: list[Panel] = self._keep(("panels",), found)
        return panels

    def title(self, panel: Panel) -> str:
        """The simulator; with its track if there are several."""
        several = len({track for _, track in self.panels()}) > 1
        return str(panel) if several else panel.simulator

    def curves(
        self, simulator: str, query: str | None = None, track: str | None = None
    ) -> dict[str, pd.DataFrame]:
        """Per policy: t, regret, low, high; of all queries of the simulator, or of one.

        ``track`` is needed where the simulator was run in several. Computed once.
        """
        key = (simulator, query, track)
        if key in self._curves:
            return self._curves[key]
        rows = self._table
        rows = rows[rows["simulator"] == simulator]
        if query is not None:
            rows = rows[rows["query"] == query]
        if track is not None:
            rows = rows[rows["track"] == track]
        if rows.empty:
            known = ", ".join(self.title(panel) for panel in self.panels())
            raise LogevalError(f"there are no runs of {simulator} {query or ''}; there are {known}")
        if len(tracks := sorted(set(rows["track"]))) > 1:
            raise LogevalError(f"{simulator} was run in the tracks {', '.join(tracks)}; name one")
        found = {str(policy): _curve(part) for policy, part in rows.groupby("policy", sort=True)}
        self._curves[key] = found
        return found

    def query_curves(self, panel: Panel) -> dict[str, dict[str, pd.DataFrame]]:
        """Per query and policy: t and regret, as ``curves`` of the query, without intervals."""
        found: dict[str, dict[str, pd.DataFrame]] = {}
        for policy, part in _of_panel(self._table, panel).groupby("policy", sort=True):
            steps = np.unique(part["t"])
            means = intervals.query_means(by_step(part, "regret"))
            for query, regret in zip(np.unique(part["query"]), means, strict=True):
                curve = pd.DataFrame({"t": steps, "regret": regret})
                found.setdefault(str(query), {})[str(policy)] = curve
        return found

    def __repr__(self) -> str:
        table = self._table
        simulators = ", ".join(sorted(set(table["simulator"])))
        numbers = [len(set(table[column])) for column in ("policy", "query", "run")]
        return (
            f"Runs: {numbers[0]} policies, {numbers[1]} queries, {numbers[2]} runs of "
            f"{self.horizon:,} searches on {simulators}"
            + (f" ({self.folder})" if self.folder else "")
        )

    def __str__(self) -> str:
        shown = self.summary()[HEADLINE].to_string(index=False, float_format="{:,.4g}".format)
        return f"{self!r}\n{shown}"

    def _repr_html_(self) -> str:
        shown = self.summary()[HEADLINE].to_html(index=False, float_format="{:,.4g}".format)
        return f"<p>{html.escape(repr(self))}</p>{shown}"

    def plot(self, what: str = "regret", **how: Any) -> Axes | np.ndarray:
        """Cumulative ``regret`` over time, or what is ``relative``, or ``cosine``.

        ``simulator``, ``log_x`` and ``ax``; of regret, with 95% bands, also ``track``,
        ``per_query`` (small charts) and ``bounds`` (dotted lines, by name: slopes in log t).
        """
        from logeval.reports.figures.regret import plot_runs

        return plot_runs(self, what, **how)

    def report(self, out: Path | str = "report", **settings: Any) -> Path:
        """Write ``out``/index.html about these runs, as ``logeval.report``; returns its path."""
        from logeval.reports.report import report_of

        return report_of(self, out, **settings)

    def verdict(self) -> Answer:
        """Which policy loses least at the last step, and what limits that."""
        from logeval.reports.answers.runs import answer_of

        return answer_of(self)


def _of_panel(table: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    return table[(table["simulator"] == panel.simulator) & (table["track"] == panel.track)]


def _curve(rows: pd.DataFrame) -> pd.DataFrame:
    x = by_step(rows, "regret")
    low, high = intervals.interval(x, most=intervals.mean(by_step(rows, "optimal_reward")))
    steps = np.unique(rows["t"])
    return pd.DataFrame({"t": steps, "regret": intervals.mean(x), "low": low, "high": high})
