"""The rank-1 track: choose one item (row) and one position (column).

In the PBM the click probabilities of (item, position) pairs are a matrix of rank 1,
w(item) e(position), and the reward is the click (rank1elimkl, section 2). The synthetic problem
has one row and one column that stand out: rank1(K, L, p, gap), their equation 8.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from logeval.clicks.lists import Ranker
from logeval.clicks.users.mixture import Mixture
from logeval.errors import LogevalError
from logeval.running.arrays import Floats, Ints, sum_by
from logeval.running.kernels import njit
from logeval.running.names import format_call
from logeval.tracks.fitted import FittedQuery
from logeval.tracks.keys import Labels, numbers
from logeval.tracks.lists import click_matrix, examination
from logeval.tracks.meters import Left, PairRegret
from logeval.tracks.track import SYNTHETIC, Problem, Replicas, Reward, Simulation, Track


class Hardness(NamedTuple):
    """What decides the regret of Rank1ElimKL (rank1elimkl, equations 3 to 5)."""

    mu: float  # the smaller of the mean row and the mean column
    p_max: float
    gamma: float  # max(mu, 1 - p_max)


def rank1_hardness(u_bar: Floats, v_bar: Floats) -> Hardness:
    """mu, p_max and gamma of a rank-1 problem."""
    mu = float(min(np.mean(u_bar), np.mean(v_bar)))
    p_max = float(max(np.max(u_bar), np.max(v_bar)))
    return Hardness(mu, p_max, max(mu, 1.0 - p_max))


def rank1_upper(u_bar: Floats, v_bar: Floats, n: int) -> float:
    """Rank1ElimKL, rank1elimkl, Theorem 1; infinite when all rows or all columns are equal."""
    hard = rank1_hardness(u_bar, v_bar)
    gaps_u, gaps_v = np.max(u_bar) - u_bar, np.max(v_bar) - v_bar
    if not (gaps_u.any() and gaps_v.any() and hard.mu > 0.0):
        return float("inf")
    smallest_u, smallest_v = gaps_u[gaps_u > 0].min(), gaps_v[gaps_v > 0].min()
    rows = np.where(gaps_u > 0, gaps_u, smallest_v)
    columns = np.where(gaps_v > 0, gaps_v, smallest_u)
    leading = 160.0 / (hard.mu * hard.gamma) * ((1.0 / rows).sum() + (1.0 / columns).sum())
    return float(leading * np.log(n) + (6.0 * math.e + 82.0) * (len(u_bar) + len(v_bar)))


@dataclass(frozen=True)
class Rank1Problem(Problem):
    """One query: the click probability of row i and column j is u_bar[i] v_bar[j].

    Of users in several classes it is ``p_bar[i, j]``, a matrix whose rank is their number; u_bar
    and v_bar are then means over the classes.
    """

    track = "rank1"

    u_bar: Floats  # (rows,) attraction of the items
    v_bar: Floats  # (columns,) examination of the positions
    p_bar: Floats | None = field(default=None, kw_only=True, repr=False)  # (rows, columns)
    reward: str = field(default="clicks", kw_only=True)
    ranker: Ranker | None = field(default=None, kw_only=True, repr=False)  # what the log shows
    serps: float = field(default=np.nan, kw_only=True)  # that it was fitted to

    @property
    def rows(self) -> int:
        """Number of rows: items."""
        return len(self.u_bar)

    @property
    def positions(self) -> int:
        """Number of columns: positions."""
        return len(self.v_bar)

    @property
    def matrix(self) -> Floats:
        """P(click) on each pair, (rows, columns)."""
        return np.outer(self.u_bar, self.v_bar) if self.p_bar is None else self.p_bar

    @property
    def best(self) -> Ints:
        """The best row and column, (2,)."""
        if self.p_bar is None:
            return np.array([np.argmax(self.u_bar), np.argmax(self.v_bar)])
        return np.array(np.unravel_index(np.argmax(self.p_bar), self.p_bar.shape))

    def checksum(self) -> str:
        """Equal for equal problems."""
        gap = np.array([np.nan])
        values = [self.u_bar, gap, self.v_bar]
        values += [] if self.p_bar is None else [gap, self.p_bar.ravel()]
        return hashlib.sha256(np.concatenate(values).astype("<f8").tobytes()).hexdigest()[:16]

    @property
    def size(self) -> int:
        """Number of items."""
        return self.rows

    def logged(self) -> tuple[Ints, Floats]:
        """Today's ranker as pairs (n, 2): its first item at the first position, and how often."""
        assert self.ranker is not None
        items, group = np.unique(self.ranker.A[:, 0], return_inverse=True)
        p = sum_by(group.ravel(), self.ranker.p, len(items))
        order = np.argsort(-p, kind="stable")
        return np.column_stack([items, np.zeros_like(items)])[order], p[order]

    def facts(self, n: int) -> dict[str, Any]:
        """mu, p_max, gamma and Theorem 1's bound at horizon n; what today's ranker earns."""
        best = self.matrix.max()
        found = super().facts(n) | {"best": best, "best_clicks": best, "serps": self.serps}
        if self.p_bar is None:
            found |= rank1_hardness(self.u_bar, self.v_bar)._asdict()
            found["bound"] = rank1_upper(self.u_bar, self.v_bar, n)
        if self.ranker is None:
            return found
        pairs, p = self.logged()
        earned = self.matrix[pairs[:, 0], 0]
        value = p @ earned
        about = {"covered": self.ranker.covered, "top_list": earned[0]}
        return found | about | {"ranker": value, "ranker_clicks": value}


def needle(K: int, L: int, p: float, gap: float) -> Rank1Problem:
    """The needle in a haystack: K rows, L columns, p everywhere but p + gap at the first."""
    name = format_call("rank1", {"K": K, "L": L, "p": p, "gap": gap})
    if K < 1 or L < 1 or not 0 <= p <= p + gap <= 1:
        raise LogevalError(f"{name}: K, L >= 1 and 0 <= p <= p + gap <= 1 must hold")
    u, v = np.full(K, p), np.full(L, p)
    u[0], v[0] = p + gap, p + gap
    return Rank1Problem(name, SYNTHETIC, u, v)


def parse_needle(text: str, reward: str | None = None) -> Rank1Problem:
    """The needle from its name, ``rank1(K=64,L=64,p=0.25,gap=0.5)``; its reward is the click."""
    return needle(**numbers(text, {"K": int, "L": int, "p": float, "gap": float}))


def with_pairs(fitted: Sequence[FittedQuery]) -> list[FittedQuery]:
    """The PBMs; other click models have no pairs: beside a PBM they are left out."""
    found = [f for f in fitted if examination(f.model.users, f.K) is not None]
    if not found:
        raise LogevalError(
            f"{fitted[0].model.name}: the rank-1 track needs a PBM, whose clicks depend on item "
            "and position alone"
        )
    return found


def rank1_problems(fitted: Sequence[FittedQuery]) -> list[Rank1Problem]:
    """The rank-1 problems of fitted PBMs; the reward is the click."""
    return [
        Rank1Problem(
            f.simulator,
            f.query,
            f.model.users.w.astype(float),
            v_bar,
            p_bar=click_matrix(f.model.users, f.K) if isinstance(f.model.users, Mixture) else None,
            draw=f.draw,
            ranker=f.ranker,
            serps=f.serps,
        )
        for f in with_pairs(fitted)
        if (v_bar := examination(f.model.users, f.K)) is not None
    ]


@njit(cache=True, nogil=True)
def step_pairs(A, u, start, p, clicks):
    """The click on each replica's pair."""
    for r in range(A.shape[0]):
        clicks[r, 0] = u[r, 0] < p[start[r] + A[r, 0], A[r, 1]]


@njit(cache=True, nogil=True)
def reward_pairs(A, start, p, out):
    """The expected reward of each replica's pair."""
    for r in range(A.shape[0]):
        out[r] = p[start[r] + A[r, 0], A[r, 1]]


class Rank1Environment(Simulation):
    """R replicas of some queries; actions are pairs (R, 2), clicks (R, 1).

    Pairs hold the labels of rows and columns, each drawn at random (``tracks.labels``); matrices
    lie in the order of the labels of each replica.
    """

    PATH = ("rank1",)
    distinct = False  # a row and a column may have the same number

    def __init__(self, problems: Sequence[Rank1Problem], replicas: Replicas, seed: int) -> None:
        super().__init__(problems, replicas, seed, clicks=1)
        mine = self.mine
        self.limits = np.array([(p.rows, p.positions) for p in mine], dtype=np.int64)
        generators = self.generators("labels")
        self.row_labels = Labels(generators, self.limits[:, 0])
        self.column_labels = Labels(generators, self.limits[:, 1])
        best = np.stack([p.best for p in mine])
        self.best = np.hstack(
            [self.row_labels.labels(best[:, :1]), self.column_labels.labels(best[:, 1:])]
        )
        self.offers = {"free_samples": self.free_samples, "best": self.best}
        if all(p.ranker is not None for p in mine):
            self.offers["logged"] = self.logged
        self.expected_clicks = self._reward  # the reward is the click
        self._start = self.row_labels.start
        labels = self.row_labels.items_of, self.column_labels.items_of
        self._p = np.concatenate(
            [p.matrix[np.ix_(labels[0](r), labels[1](r))] for r, p in enumerate(mine)]
        )
        self.best_reward = self.reward(self.best).copy()

    def _click(self, A: Ints, u: Floats) -> None:
        step_pairs(A, u, self._start, self._p, self._clicks)

    def _earn(self, A: Ints) -> None:
        reward_pairs(A, self._start, self._p, self._reward)

    def free_samples(self, r: int, m: int) -> Ints:
        """(m, rows) clicks on every item, each shown at the most examined position."""
        p = self._p[self._start[r] : self._start[r + 1]]
        most = int(self.mine[r].v_bar[self.column_labels.items_of(r)].argmax())
        u = self.generator("sample", r).random((m, len(p)))
        return (u < p[:, most]).astype(np.int8)

    def logged(self, r: int) -> tuple[Ints, Floats]:
        """Today's ranker: pairs (n, 2) of replica r, and how often each is shown."""
        pairs, p = self.mine[r].logged()
        rows = self.row_labels.labels_of(r, pairs[:, 0])
        return np.column_stack([rows, self.column_labels.labels_of(r, pairs[:, 1])]), p

    def items(self, A: Ints) -> Ints:
        """The rows and columns (R, 2) of the problems that the labels A stand for."""
        return np.hstack([self.row_labels.items(A[:, :1]), self.column_labels.items(A[:, 1:])])


RANK1 = Track(
    name="rank1",
    rewards=(Reward("pair", "the pair of the rank-1 track", "regret", "optimal_reward", "-."),),
    meters=(PairRegret, Left),
    environment=Rank1Environment,
    problems=lambda fitted: rank1_problems(fitted.queries),
    synthetic={"rank1": parse_needle},
)
