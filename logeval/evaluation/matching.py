"""Which policies assume an order of the positions that the simulator does not have, at what price.

TopRank, UniRank, BatchRank, BubbleRank and the cascade family put the k-th best item at position k,
or at the k-th position of their ``order``. Fitted examination (PBM) and termination (DCM) need
not fall with the rank; where they do not, such a list loses something even with the right items.
What it loses is computed, and another order is advised only where it loses clearly less.

Which policies run on which problems: those of a track on the problems of the track.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from logeval.clicks.collection import read_models
from logeval.clicks.drift import changes, which
from logeval.errors import LogevalError, unknown_names
from logeval.evaluation.known import only_known
from logeval.facts import Fact, distinct
from logeval.policies.registry import PolicySpec, tracks_with_own_classes
from logeval.policies.shared.options import positions
from logeval.running.arrays import Ints
from logeval.tracks.fitted import (
    Fitted,
    by_period,
    drawn_queries,
    fitted_queries,
    identified_queries,
    shortened,
    unsure_queries,
)
from logeval.tracks.registry import TRACKS, home_track, synthetic_problem
from logeval.tracks.track import SYNTHETIC, Problem

if TYPE_CHECKING:
    from logeval.evaluation.evaluate import Evaluate


KNOWN = "known"  # an order that is the simulator's own
LITTLE = 0.001  # of the optimum: less is not said
CLEARLY = 0.8  # of the loss: an order that loses more than this of it is not advised


def order_facts(specs: Sequence[PolicySpec], problems: Sequence[Problem]) -> list[Fact]:
    """One fact for all policies that assume the same order, with their loss by simulator.

    Another order is named where all simulators lose clearly less in it.
    """
    weighted: dict[str, list[Any]] = {}
    for problem in problems:
        if problem.position_weights() is not None:
            weighted.setdefault(problem.simulator, []).append(problem)
    by_order: dict[str, list[str]] = {}
    for spec in specs:
        order = spec.parameters.get("order", "descending")
        assumes = getattr(spec.cls, "PARAMETERS", {}).get("order") in (str, "descending")
        if assumes and order != KNOWN:
            by_order.setdefault(order, []).append(spec.name)
    facts = []
    for order, names in by_order.items():
        losses = {name: loss(mine, order) for name, mine in weighted.items()}
        losses = {name: lost for name, lost in losses.items() if lost > LITTLE}
        if not losses:
            continue
        about, most = ", ".join(names), max(losses.values())
        facts.append(Fact("order-loses", about, "caution", most, more={"losses": losses}))
        other = common_order([problem for name in losses for problem in weighted[name]])
        better = {name: loss(weighted[name], other) for name in losses}
        if all(better[name] < CLEARLY * losses[name] for name in losses):
            most = max(better.values())
            facts.append(Fact("order-better", other, value=most, more={"losses": better}))
    return facts


def loss(problems: Sequence[Any], order: str) -> float:
    """What the best items in this order lose, of the best lists, over all problems."""
    best = shown = 0.0
    for problem in problems:
        A = np.empty_like(problem.best)
        A[positions(order, problem.positions)] = problem.best_items
        shown += float(problem.users.expected_reward(A[None], problem.reward)[0])
        best += float(problem.users.expected_reward(problem.best[None], problem.reward)[0])
    return 1.0 - shown / best if best > 0.0 else 0.0


def common_order(problems: Sequence[Any]) -> str:
    """The positions by how much they count on average, as the option ``order`` wants them."""
    ranks = np.mean([_ranks(problem.position_weights()) for problem in problems], axis=0)
    return ">".join(str(k + 1) for k in np.argsort(ranks, kind="stable"))


def _ranks(weights: Any) -> Ints:
    """0 for the position that counts most, and so on."""
    return np.argsort(np.argsort(-weights, kind="stable"), kind="stable")


@dataclass(frozen=True)
class Simulators:
    """What ``evaluate`` was asked to simulate: synthetic problems, or fitted click models.

    A synthetic problem is of one track. A click model may be a problem of several: a PBM has lists,
    and pairs; with features it is a problem of the tracks that take these.
    """

    synthetic: tuple[Problem, ...] = ()
    fitted: Fitted = field(default_factory=Fitted)
    remarks: tuple[Fact, ...] = ()  # on the models

    @property
    def track(self) -> str:
        """The track of policies that are at home in any."""
        if not self.synthetic:
            return home_track(self.fitted.features is not None)
        mine = {problem.track for problem in self.synthetic}
        return next(name for name in TRACKS if name in mine)

    def problems(self, track: str) -> Sequence[Problem]:
        """The problems of a track; an error if it has none."""
        if track != "ranking" and any(f.later for f in self.fitted.queries):
            raise LogevalError(f"drift: users change in the ranking track, and not in {track}")
        if not self.synthetic and (TRACKS[track].features or self.fitted.features is None):
            return TRACKS[track].problems(self.fitted)
        found = [problem for problem in self.synthetic if problem.track == track]
        if not found:
            raise LogevalError(
                f"policies of the track {track} cannot run on a {self.track} problem"
            )
        return found

    def known(self, draws: int) -> dict[str, Any]:
        """What is known of the simulators that were fitted to a log: their checks, and draws."""
        reports = self.fitted.manifest.get("models", {})
        names: dict[str, int] = {}
        for f in self.fitted.queries:
            if f.serps == f.serps:
                names[f.simulator] = max(names.get(f.simulator, 1), 1 + len(f.later))
        return {
            name: {
                "checks": _checks(reports.get(name, {}), periods > 1),
                "identified": self.fitted.unsure.get(name),
                "draws": draws,
                "periods": periods,
                "expected_empty": reports.get(name, {}).get("expected_empty"),
            }
            for name, periods in names.items()
        }

    def facts(self, problems: Sequence[Problem]) -> list[Fact]:
        """What the user should know about the models, and about the problems that they make."""
        of_problems = [remark for problem in problems for remark in problem.remarks]
        found = [*shortened(self.fitted.queries), *walk(problems), *of_problems, *self.remarks]
        return distinct([*found, *unproven(problems)])


def _checks(report: dict[str, Any], changing: bool) -> dict[str, Any] | None:
    """What the checks say; that users change is no fault of those who do."""
    found: dict[str, Any] | None = report.get("checks")
    if found is None or not changing or "drift" not in found["faulted"]:
        return found
    return found | {"faulted": [check for check in found["faulted"] if check != "drift"]}


def walk(problems: Sequence[Problem]) -> Iterator[Fact]:
    """Where the steps walk through periods: on how many queries users change."""
    given: list[Any] = [p for p in problems if getattr(p, "later", ())]
    if not given:
        return
    periods = float(max(len(p.later) + 1 for p in given))
    changing = {
        name: [p.changes for p in given if p.simulator == name]
        for name in dict.fromkeys(p.simulator for p in given)
    }
    if not any(map(any, changing.values())):
        yield Fact("periods-alike", value=periods)
        return
    yield Fact("periods", value=periods)
    if any(p.ranker is not None for p in given):
        yield Fact("ranker-of-all-periods")
    for name, each in changing.items():
        if any(p.query != SYNTHETIC for p in given if p.simulator == name):
            many = float(len(each))
            yield Fact("users-change", name, "caution", float(sum(each)), threshold=many)


def unproven(problems: Sequence[Problem]) -> Iterator[Fact]:
    """Where the best list was searched for, and not proven to be best."""
    for simulator in dict.fromkeys(problem.simulator for problem in problems):
        mine = [p for p in problems if p.simulator == simulator]
        gaps = [p.gap for p in mine if not p.proven]
        if gaps:
            most = None if np.isnan(gaps).any() else float(np.mean(gaps))
            code = "best-unproven" if most is None else "best-unproven-by"
            more = {"problems": len(mine)}
            yield Fact(code, simulator, "caution", float(len(gaps)), high=most, more=more)


def simulators_of(asked: Evaluate) -> Simulators:
    """The simulators that ``evaluate`` was asked for."""
    if asked.problem is not None:
        problems = [synthetic_problem(name, asked.reward) for name in asked.problem]
        simulators = [p.simulator for p in problems]
        if twice := [name for name in simulators if simulators.count(name) > 1]:
            raise LogevalError(f"problem {twice[0]} is given twice")
        tracks = {p.track for p in problems}
        if len(tracks) > 1 and (apart := tracks & tracks_with_own_classes()):
            raise LogevalError(f"evaluate problems of the {min(apart)} track apart from others")
        if asked.drift and not all(getattr(p, "later", ()) for p in problems):
            raise LogevalError(
                "drift: users of a synthetic problem change if it says so, as "
                "B_LB(L=16,K=4,p=0.2,gap=0.15,changes=3)"
            )
        return Simulators(tuple(problems))
    folder = asked.models if isinstance(asked.models, str | Path) else None
    models: Any = asked.models if folder is None else read_models(folder)
    queries = fitted_queries(models, asked.positions, asked.reward, asked.wanted)
    left_out: list[Fact] = []
    if asked.identified:
        queries, left_out = identified_queries(queries, models)
    if asked.draws:
        queries = drawn_queries(queries, models, asked.draws)
    if asked.drift:
        queries = by_period(queries, models)
    if asked.known is not None:
        queries = only_known(queries, models, asked.known)
    fitted = Fitted(
        queries,
        None if folder is None else str(folder),
        getattr(models, "manifest", {}),
        asked.reward,
        asked.features,
        asked.block,
        asked.same_log,
        unsure_queries(queries, models),
    )
    reports = [model.report for model in getattr(models, "fitted", {}).values()]
    notes = [note for report in reports for note in report.get("notes", [])]
    remarks = [Fact("of-the-models", more={"note": note}) for note in notes]
    if not asked.drift:
        known = getattr(models, "fitted", {})
        names = [name for name in dict.fromkeys(f.simulator for f in queries) if name in known]
        remarks += [fact for name in names for fact in _constant(name, known[name].report)]
    return Simulators((), fitted, (*remarks, *left_out))


def _constant(name: str, report: dict[str, Any]) -> Iterator[Fact]:
    """Where the users of the log change, and those simulated do not."""
    found = report.get("drift")
    if found and changes(found):
        periods, more = float(len(found["periods"])), {"which": which(found)}
        yield Fact("log-changes", name, "caution", periods, more=more)


def in_tracks(specs: Sequence[PolicySpec], track: str | None, default: str) -> list[PolicySpec]:
    """The policies, each in its own track; Random and Oracle in every track that the others have.

    ``track`` allows one track only; ``default`` is that of these two alone.
    """
    if track is not None and track not in TRACKS:
        raise unknown_names("track", [track], TRACKS)
    if strange := [str(s.track) for s in specs if s.track not in (*TRACKS, None)]:
        raise unknown_names("track of a policy", strange, TRACKS)
    wrong = [s for s in specs if track is not None and s.track not in (track, None)]
    if wrong:
        raise LogevalError(f"policy {wrong[0].name} is not of the track {track}")
    present = [t for t in TRACKS if any(s.track == t for s in specs)] or [track or default]
    return [replace(s, track=t) for s in specs for t in present if s.track in (t, None)]
