"""The ranking track: lists in, clicks and expected rewards out.

An environment holds R replicas (query x run) of users of one family, ``users.chain``,
``users.browsing`` or ``users.choice``, in one or several classes (``users.mixture``). The queries
may differ in their number of items: item parameters lie in flat arrays, those of replica r from
``start[r]`` to ``start[r + 1]``, in the order of its random labels (``tracks.labels``), which are
what a list holds.

Regret is the expected reward of the best list minus that of the list shown, both from the
same function, so that the best list has regret exactly 0. Where users change, it is the list that
is best at the moment (dynamic regret), and what policies ask for, ``best`` apart, is of the first
period.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from logeval.clicks.users import browsing, chain, choice
from logeval.clicks.users.browsing import Browsing
from logeval.clicks.users.chain import Chain
from logeval.clicks.users.choice import Choice
from logeval.clicks.users.mixture import Mixture, OfOneKind, Users, classes_of
from logeval.policies.setting import Policy
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_views
from logeval.running.seeds import Uniforms
from logeval.tracks.keys import Labels
from logeval.tracks.lists import (
    EXPLICIT,
    RankingProblem,
    b_lb_lower_slope,
    click_matrix,
    examination,
    parse_b_lb,
    ranking_problems,
)
from logeval.tracks.meters import Columns, Meter, Regret
from logeval.tracks.track import Replicas, Reward, Simulation, Track

W, STAY, SAT = range(3)  # columns of the parameters of a chain's items
GOES_ON, EARNS_ON, EARNS = range(3)  # of its positions: in clicks, and as the reward counts them


# Parameters of all classes of users lie behind each other: those of class z of replica r begin at
# z T + start[r] (items; T in all), and at z R + r (positions). ``z`` is the class of each replica's
# user in a step.


@njit_views
def step_chain(A, u, z, start, items, positions, skip, clicks, shown):
    """Clicks of one user per replica; ``shown`` is scratch, (4, K + 1)."""
    R, K = A.shape
    w, stay = shown[0, :K], shown[1, :K]
    for r in range(R):
        first, own = z[r] * start[R] + start[r], z[r] * R + r
        for k in range(K):
            e = first + A[r, k]
            w[k] = items[e, W]
            stay[k] = items[e, STAY] * positions[own, k, GOES_ON]
        chain.sample_one(w, stay, skip[own], u[r], clicks[r])


@njit_views
def reward_chain(A, share, start, items, positions, skip, out, clicks, shown):
    """Expected reward and clicks of each replica's list; ``shown`` is scratch, (4, K + 1)."""
    R, K = A.shape
    w, stay, sat, goes = shown[0, :K], shown[1, :K], shown[2, :K], shown[3, :K]
    for r in range(R):
        out[r] = clicks[r] = 0.0
        for z in range(share.shape[1]):
            first, own = z * start[R] + start[r], z * R + r
            for k in range(K):
                e = first + A[r, k]
                w[k] = items[e, W]
                stay[k] = items[e, STAY] * positions[own, k, EARNS_ON]
                sat[k] = items[e, SAT] * positions[own, k, EARNS]
                goes[k] = items[e, STAY] * positions[own, k, GOES_ON]
            out[r] += share[r, z] * chain.reward_one(w, stay, skip[own], sat)
            clicks[r] += share[r, z] * chain.clicks_one(w, goes, skip[own])


@njit_views
def step_browsing(A, u, z, start, w_item, e, clicks, shown):
    """Clicks of one user per replica; ``shown`` is scratch, (3, K + 1)."""
    R, K = A.shape
    w = shown[0, :K]
    for r in range(R):
        first = z[r] * start[R] + start[r]
        for k in range(K):
            w[k] = w_item[first + A[r, k]]
        browsing.sample_one(w, e[z[r] * R + r], u[r], clicks[r])


@njit_views
def reward_browsing(A, share, start, w_item, e, of_clicks, out, clicks, shown):
    """Expected reward and clicks of each replica's list; ``shown`` is scratch, (3, K + 1)."""
    R, K = A.shape
    w, p, last = shown[0, :K], shown[1, :K], shown[2]
    for r in range(R):
        out[r] = clicks[r] = 0.0
        for z in range(share.shape[1]):
            first, own = z * start[R] + start[r], z * R + r
            for k in range(K):
                w[k] = w_item[first + A[r, k]]
            browsing.click_probs_one(w, e[own], p, last)
            total, none = 0.0, 1.0
            for k in range(K):
                total += p[k]
                none *= 1.0 - w[k] * e[own, k, 0]
            clicks[r] += share[r, z] * total
            out[r] += share[r, z] * (total if of_clicks else 1.0 - none)


@njit_views
def step_choice(A, u, z, start, items, places, response, clicks, shown):
    """Clicks of one user per replica; ``shown`` is scratch, (3, K)."""
    R, K = A.shape
    for r in range(R):
        first, own = z[r] * start[R] + start[r], z[r] * R + r
        for k in range(K):
            shown[0, k], shown[1, k] = items[first + A[r, k], 0], items[first + A[r, k], 1]
        w, stay, p = shown[0], shown[1], shown[2]
        choice.follow_one(w, stay, places[own], response[own], u[r], clicks[r], p)


@njit_views
def reward_choice(A, share, start, items, places, response, of_clicks, out, clicks, shown, reach):
    """Expected reward and clicks; ``shown``, (3, K), and ``reach``, (K + 1, K + 1), are scratch."""
    R, K = A.shape
    w, stay, p = shown[0], shown[1], shown[2]
    for r in range(R):
        out[r] = clicks[r] = 0.0
        for z in range(share.shape[1]):
            first, own = z * start[R] + start[r], z * R + r
            for k in range(K):
                w[k], stay[k] = items[first + A[r, k], 0], items[first + A[r, k], 1]
            choice.click_probs_one(w, stay, places[own], response[own], p, reach)
            total = 0.0
            for k in range(K):
                total += p[k]
            some, _ = choice.goes_on(w, stay, places[own], response[own], 0, 0)
            clicks[r] += share[r, z] * total
            out[r] += share[r, z] * (total if of_clicks else some)


class RankingEnvironment(Simulation):
    """R replicas of the users of some queries; actions are lists (R, K), clicks (R, K)."""

    def __init__(self, problems: Sequence[RankingProblem], replicas: Replicas, seed: int) -> None:
        self.K = problems[0].positions
        super().__init__(problems, replicas, seed, clicks=self.K)
        self.L = np.array([p.size for p in self.mine], dtype=np.int64)
        self.limits = np.repeat(self.L[:, None], self.K, axis=1)
        self.labels = Labels(self.generators("labels"), self.L)
        self.periods = [self._period(j) for j in range(len(self.mine[0].periods))]
        self.best, self.best_items = self.periods[0].best.copy(), self.periods[0].best_items.copy()
        self.users, self._share = self.periods[0].users, self.periods[0].share
        self._up_to = np.cumsum(self._share, axis=1)[:, :-1]
        self._class_uniforms = Uniforms(self.generators("class"), min(1, self._up_to.shape[1]))
        self._z = np.zeros(len(self.users), dtype=np.int64)
        self.best_reward = np.empty(len(self.mine))
        self.offers = self._offers()
        self._enter(0)

    def _period(self, j: int) -> _Period:
        """The users of period j."""
        now, labels = [p.periods[j] for p in self.mine], self.labels
        users = [relabelled(p.users, labels.items_of(r)) for r, p in enumerate(now)]
        share, classes = side_by_side(users)
        best, best_items = (
            labels.labels(np.stack(lists))
            for lists in ([p.best for p in now], [p.best_items for p in now])
        )
        return _Period(users, share, _Families(classes, self.K, now[0].reward), best, best_items)

    def _enter(self, j: int) -> None:
        """Period j begins; who holds ``best`` and ``best_reward`` sees the new ones."""
        period = self.periods[j]
        self.users, self._share, self._family = period.users, period.share, period.family
        self.best[:], self.best_items[:] = period.best, period.best_items
        self.best_reward[:] = self.reward(self.best)

    def until(self, horizon: int) -> None:
        """Periods of equal length."""
        P = len(self.periods)
        starts = {-(-j * horizon // P) + 1: j for j in range(1, P)}
        self.change_points = {t: j for t, j in starts.items() if t <= horizon}
        self._since, self._earned = 0, np.zeros(len(self.mine))

    def change(self, t: int) -> None:
        """The period of step t."""
        self._earned += self.best_reward * (t - 1 - self._since)
        self._since = t - 1
        self._enter(self.change_points[t])

    def optimal_reward(self, t: int) -> Floats:
        """Of the best list of each moment."""
        if not self.change_points:
            return super().optimal_reward(t)
        return self._earned + self.best_reward * (t - self._since)

    def _offers(self) -> dict[str, Any]:
        """What a policy may ask for; the last four only if all queries have them.

        How positions are examined is not told where it changes.
        """
        offers: dict[str, Any] = {
            "free_samples": self.free_samples,
            "best": self.best,
            "best_items": self.best_items,
        }
        constant = len(self.periods) == 1
        weights = [p.position_weights() for p in self.problems]
        orders = [np.argsort(-w, kind="stable") for w in weights if w is not None]
        if constant and len(orders) == len(weights):
            offers["position_order"] = np.array(orders)[self.query]
        e = [examination(p.users, self.K) for p in self.problems]
        if constant and not any(e_q is None for e_q in e):
            offers["examination"] = np.array(e)[self.query]
        base = [p.base for p in self.problems]
        if not any(b is None for b in base):
            offers["base_list"] = self.labels.labels(np.array(base)[self.query])
        if all(p.ranker is not None for p in self.problems):
            offers["logged"] = self.logged
        return offers

    def logged(self, r: int) -> tuple[Ints, Floats]:
        """Today's ranker: the lists (n, K) of replica r, and how often each is shown."""
        ranker = self.mine[r].ranker
        return self.labels.labels_of(r, ranker.A), ranker.p

    def _click(self, A: Ints, u: Floats) -> None:
        if self._up_to.size:  # the class of each user, whatever is shown
            self._z[:] = (self._class_uniforms.at(self._t) >= self._up_to).sum(axis=1)
        self._family.step(A, u, self._z, self.labels.start, self._clicks)

    def _earn(self, A: Ints) -> None:
        start, share = self.labels.start, self._share
        self._family.reward(A, share, start, self._reward, self.expected_clicks)

    def free_samples(self, r: int, m: int) -> Ints:
        """(m, L) clicks on every item of replica r, each shown alone at the first position."""
        share, classes = classes_of(self.users[r])
        p = [_alone(users) for users in classes]
        u = self.generator("sample", r).random((m, len(p[0])))
        return (u < share @ np.stack(p)).astype(np.int8)

    def items(self, A: Ints) -> Ints:
        """The items (R, K) of the problems that the labels A stand for."""
        return self.labels.items(A)


class TopPair(Meter):
    """Regret of the pair that a list shows at the most examined position of a PBM.

    It earns what the rank-1 track earns, so that the two compare.
    """

    def __init__(self, environment: RankingEnvironment, policy: Policy) -> None:
        e: Floats = environment.offers["examination"]  # (R, K)
        click = [
            click_matrix(users, environment.K)[:, e_r.argmax()]
            for users, e_r in zip(environment.users, e, strict=True)
        ]
        self._click, self._start = np.concatenate(click), environment.labels.start[:-1]
        self._position, self._replica = e.argmax(axis=1), np.arange(len(e))
        self.best = np.array([c.max() for c in click])
        self._regret = np.zeros(len(e))

    @classmethod
    def fits(cls, environment: RankingEnvironment, policy: Policy) -> bool:
        """Whether all users are those of a PBM."""
        return "examination" in environment.offers

    def reward(self, A: Ints) -> Floats:
        """P(click) at the most examined position of the lists A, (R,)."""
        clicks: Floats = self._click[self._start + A[self._replica, self._position]]
        return clicks

    def add(self, t: int, A: Ints, clicks: Ints) -> None:
        """Step t."""
        self._regret += self.best - self.reward(A)

    def columns(self, t: int) -> Columns:
        """The regret of the pair, and the reward of the best one."""
        return {"pair_regret": self._regret, "pair_optimal_reward": self.best * t}


class _Period(NamedTuple):
    """The users of a period, and their best lists."""

    users: list[Users]
    share: Floats  # (R, C) of their classes
    family: _Families
    best: Ints
    best_items: Ints


class _Chains:
    """Parameters of replicas whose users are chains."""

    def __init__(self, users: Sequence[Any], K: int, reward: str) -> None:
        earning = [u.counting(reward) for u in users]
        items = [np.stack([u.w, u.stay_item, u.sat_item], axis=1) for u in earning]
        self.items = np.concatenate(items).astype(float)
        at = [
            (u.stay_position, x.stay_position, x.sat_position)
            for u, x in zip(users, earning, strict=True)
        ]
        self.positions = np.array([np.stack(x, axis=1)[:K] for x in at], dtype=float)
        self.skip = np.array([u.skip for u in users], dtype=float)
        self._shown = np.empty((4, K + 1))

    def step(self, A: Ints, u: Floats, z: Ints, start: Ints, clicks: Ints) -> None:
        step_chain(A, u, z, start, self.items, self.positions, self.skip, clicks, self._shown)

    def reward(self, A: Ints, share: Floats, start: Ints, out: Floats, clicks: Floats) -> None:
        items, positions = self.items, self.positions
        reward_chain(A, share, start, items, positions, self.skip, out, clicks, self._shown)


class _Browsings:
    """Parameters of replicas whose users browse."""

    def __init__(self, users: Sequence[Any], K: int, reward: str) -> None:
        self.w = np.concatenate([u.w for u in users]).astype(float)
        self.e = np.array([u.e[:K, : K + 1] for u in users], dtype=float)
        self.clicks = reward == "clicks"
        self._shown = np.empty((3, K + 1))

    def step(self, A: Ints, u: Floats, z: Ints, start: Ints, clicks: Ints) -> None:
        step_browsing(A, u, z, start, self.w, self.e, clicks, self._shown)

    def reward(self, A: Ints, share: Floats, start: Ints, out: Floats, clicks: Floats) -> None:
        reward_browsing(A, share, start, self.w, self.e, self.clicks, out, clicks, self._shown)


class _Choices:
    """Parameters of replicas whose users choose."""

    def __init__(self, users: Sequence[Any], K: int, reward: str) -> None:
        items = [np.stack([u.w, choice.odds(1.0 - u.s)], axis=1) for u in users]
        self.items = np.concatenate(items).astype(float)
        self.places = np.array([u.places[:K, : choice.PLACE + K + 1] for u in users], dtype=float)
        self.response = np.array([u.response for u in users], dtype=float)
        self.clicks = reward == "clicks"
        self._shown, self._reach = np.empty((3, K)), np.empty((K + 1, K + 1))

    def step(self, A: Ints, u: Floats, z: Ints, start: Ints, clicks: Ints) -> None:
        parameters = self.items, self.places, self.response
        step_choice(A, u, z, start, *parameters, clicks, self._shown)

    def reward(self, A: Ints, share: Floats, start: Ints, out: Floats, clicks: Floats) -> None:
        parameters = self.items, self.places, self.response, self.clicks
        reward_choice(A, share, start, *parameters, out, clicks, self._shown, self._reach)


def _idle(kind: type[OfOneKind], L: int, K: int) -> OfOneKind:
    """Users who never click."""
    none, never = np.zeros(L), np.zeros(K)
    if kind is Chain:
        return Chain(none, none, never, 1.0, none, never)
    if kind is Browsing:
        return Browsing(none, np.zeros((K, K + 1)))
    return Choice(none, none, np.zeros((K, K + 1)), never, never, 0.0)


FAMILIES: dict[type[OfOneKind], Any] = {Chain: _Chains, Browsing: _Browsings, Choice: _Choices}


class _Families:
    """Users of one family, or of several: those of another have one beside them who never clicks.

    So clicks of all families add up, and so does what they earn.
    """

    def __init__(self, users: Sequence[OfOneKind], K: int, reward: str) -> None:
        kinds = [kind for kind in FAMILIES if any(isinstance(one, kind) for one in users)]
        self.families = []
        for kind in kinds:
            own = [u if isinstance(u, kind) else _idle(kind, len(u.w), K) for u in users]
            self.families.append(FAMILIES[kind](own, K, reward))

    def step(self, A: Ints, u: Floats, z: Ints, start: Ints, clicks: Ints) -> None:
        first, *others = self.families
        first.step(A, u, z, start, clicks)
        for family in others:
            family.step(A, u, z, start, own := np.empty_like(clicks))
            clicks += own

    def reward(self, A: Ints, share: Floats, start: Ints, out: Floats, clicks: Floats) -> None:
        first, *others = self.families
        first.reward(A, share, start, out, clicks)
        for family in others:
            family.reward(A, share, start, o := np.empty_like(out), c := np.empty_like(clicks))
            out += o
            clicks += c


def _alone(users: OfOneKind) -> Floats:
    """P(click) of each item that is shown alone, at the first position, (L,)."""
    if isinstance(users, Choice):
        return users.click_probs(np.arange(len(users.w))[:, None])[:, 0]
    return users.w * users.e[0, 0] if isinstance(users, Browsing) else users.w


def side_by_side(users: Sequence[Users]) -> tuple[Floats, list[OfOneKind]]:
    """Shares (R, C) of the classes, and these: the first of all replicas, then the second, ...

    Replicas with fewer classes than others have more of share 0.
    """
    each = [classes_of(one) for one in users]
    C = max(len(share) for share, _ in each)
    share = np.array([np.pad(share, (0, C - len(share))) for share, _ in each])
    return share, [classes[min(c, len(classes) - 1)] for c in range(C) for _, classes in each]


def relabelled(users: Users, items: Ints) -> Users:
    """The same users of items in another order."""
    if isinstance(users, Mixture):
        classes: Any = tuple(relabelled(one, items) for one in users.classes)
        return replace(users, classes=classes)
    of_items = {Chain: ("w", "stay_item", "sat_item"), Browsing: ("w",), Choice: ("w", "s")}
    return replace(users, **{f: getattr(users, f)[items] for f in of_items[type(users)]})


RANKING = Track(
    name="ranking",
    rewards=(
        Reward("list", "the list", "regret", "optimal_reward", "-"),
        Reward(
            "top pair",
            "the pair that a list shows at the most examined position",
            "pair_regret",
            "pair_optimal_reward",
            "--",
        ),
    ),
    meters=(Regret, TopPair),
    environment=RankingEnvironment,
    problems=lambda fitted: ranking_problems(fitted.queries, fitted.reward),
    synthetic={"B_LB": parse_b_lb, **EXPLICIT},
    lower_slopes={"B_LB": b_lb_lower_slope},
)
