"""UCB1Elim, UCB1, KL-UCB and TS on all pairs (item, position), without their structure.

- UCB1Elim: Auer and Ortner: UCB revisited (2010), Figure 1, with the horizon n known. In stage m
  every remaining pair is shown until it has n_m = ceil(2 log(n D^2) / D^2) observations, D = 2^-m;
  pairs with mean + r < max(mean - r), r = sqrt(log(n D^2) / (2 n_m)), are eliminated. After stage
  floor(log2(n / e) / 2) the remaining pairs are shown in turn.
- UCB1: mean + sqrt(2 log t / T) (Auer, Cesa-Bianchi, Fischer 2002). KL-UCB: as in
  ``shared.bounds`` (Garivier and Cappe 2011). Both show every pair once first, and then find the
  largest bound without solving all (``KeyedArms``).
- TS: theta_i ~ Beta(1 + S_i, 1 + T_i - S_i) for each pair, and the pair with the largest theta is
  shown (Thompson 1933), without a draw for every pair (``Posteriors``).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from logeval.policies.setting import Setting
from logeval.policies.shared import bounds
from logeval.policies.shared.bounds import upper
from logeval.policies.shared.draws import stream, uniform
from logeval.policies.shared.kernel_policy import KernelPolicy, floats, ints
from logeval.policies.shared.topk import BLOCK, MEMO, n_blocks, remembered_upper
from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.kernels import ZERO, njit_inline, njit_views

STAGE, CURSOR, PULLS, N_LEFT = range(4)  # PULLS: rounds over the remaining pairs in this stage


class Stages(NamedTuple):
    """Of one replica."""

    S: Floats = floats("L")  # clicks on each pair
    left: Ints = ints("L")  # the remaining pairs come first
    state: Ints = ints(4)  # STAGE, CURSOR, PULLS, N_LEFT


@njit_views
def stage_end(stage, n):
    """n_m, the observations of each remaining pair at the end of stage m."""
    D2 = 4.0**-stage
    return math.ceil(2.0 * math.log(n * D2) / D2)


@njit_views
def eliminate_pairs(n, stages):
    """The end of a stage: drop pairs, and set the length of the next."""
    S, left, state = stages
    n_m = stage_end(state[STAGE], n)
    radius = math.sqrt(math.log(n * 4.0 ** -state[STAGE]) / (2.0 * n_m))
    best = 0.0
    for i in range(state[N_LEFT]):
        best = max(best, S[left[i]] / n_m)
    kept = 0
    for i in range(state[N_LEFT]):
        if S[left[i]] / n_m + radius >= best - radius:
            left[kept] = left[i]
            kept += 1
    state[N_LEFT] = kept
    state[STAGE] += 1
    if state[STAGE] <= int(0.5 * math.log2(n / math.e)):
        state[PULLS] = stage_end(state[STAGE], n) - n_m
    else:
        state[PULLS] = -1  # the last stage: go on in turn


@njit_inline
def recommend_stage(now, u, stages, A):
    """The next of the remaining pairs."""
    _, K = now
    pair = stages.left[stages.state[CURSOR]]
    A[0], A[1] = pair // K, pair % K


@njit_inline
def learn_stage(now, stages, A, clicks):
    """Count the click, and move on to the next pair, round over the pairs, or stage."""
    (n, K), state = now, stages.state
    stages.S[A[0] * K + A[1]] += clicks[0]
    state[CURSOR] += 1
    if state[CURSOR] == state[N_LEFT]:
        state[CURSOR] = 0
        state[PULLS] -= 1
        if state[PULLS] == 0:
            eliminate_pairs(n, stages)


class UCB1Elim(KernelPolicy):
    """Elimination of pairs, in stages."""

    NAME, PAPER = "UCB1Elim", "Auer and Ortner 2010"
    KNOWS, READS, COST = "horizon", "the click", "L K"
    FIGURE = 12
    TRACK = "rank1"
    KERNELS = Stages(), recommend_stage, learn_stage

    def __init__(self, setting: Setting) -> None:
        pairs, n = setting.rows * setting.columns, max(setting.horizon, 3)
        super().__init__(setting, {}, items=pairs)
        self.memory.left[:] = np.arange(max(pairs))
        self.memory.state[:, PULLS], self.memory.state[:, N_LEFT] = stage_end(0, n), pairs
        self.rule = n, int(setting.columns[0])

    @classmethod
    def first_stage(cls, rows: int, columns: int, n: int) -> int:
        """The steps before anything can be eliminated: n_0 with every pair."""
        return int(stage_end.py_func(0, max(n, 3))) * rows * columns

    def remaining(self) -> Ints:
        """(R, 2) the rows and columns of the pairs that are not eliminated."""
        (_, K), stages = self.rule, self.memory
        left = [stages.left[r, :n] for r, n in enumerate(stages.state[:, N_LEFT])]
        return np.array([[len(set(pairs // K)), len(set(pairs % K))] for pairs in left])


SLACK = 1e-9  # more than the rounding of bounds
UNTIL, AHEAD, SOLVED = range(3)  # budget of the keys, how far ahead it was, bounds solved since
BEGIN = (-1.0, 0.01, 0.0)
LARGEST, FIRST, SECOND = range(3)  # of the keys of a block


class KeyedArms(NamedTuple):
    """The arms of one bandit, for exact lazy selection of the largest bound of very many.

    ``shared.topk.select`` is made for lists, whose last bound is a bar that most arms stay below.
    With one place and thousands of pairs, a run explores for most of its time, all bounds are
    nearly equal, and sleeping arms wake at once. Here every arm has a key, its bound at a budget a
    little ahead. Bounds grow with the budget, so until the budget gets there the key is at least
    the bound, and only arms whose key reaches the largest bound found so far are solved. How far
    ahead is set by what it costs: about as many bounds are solved for new keys as for selecting.
    Arms with equal statistics, the bulk early on, tie; a block of them costs one comparison. The
    arms are those of evaluating every bound at every step; equal bounds go to the smaller label.
    """

    S: Floats = floats("L")  # sum of the observations of each arm
    T: Floats = floats("L")  # their number
    key: Floats = floats("L")  # at least the bound, up to the budget state[UNTIL]
    blocks: Floats = floats(n_blocks, 3)  # of each block of keys LARGEST, FIRST, SECOND
    state: Floats = floats(3)  # UNTIL, AHEAD, SOLVED
    memo: Floats = floats(MEMO, 4, fill=-1.0, shared=True)


@njit_views
def summarise(block, arms):
    """The largest key of a block, the first arm with it, and the largest of other statistics."""
    S, T, key = arms.S, arms.T, arms.key
    first, largest, second = 0, -1.0, -1.0
    for e in range(block * BLOCK, min((block + 1) * BLOCK, key.shape[0])):
        if key[e] > largest:
            first, largest, second = e, key[e], largest
        elif key[e] > second and (S[e] != S[first] or T[e] != T[first]):
            second = key[e]
    summary = arms.blocks[block]
    summary[LARGEST], summary[FIRST], summary[SECOND] = largest, first, second


@njit_views
def set_keys(kind, b, arms):
    """New keys, for budgets from b on."""
    L, state = arms.S.shape[0], arms.state
    if state[SOLVED] > L:
        state[AHEAD] *= 0.5
    elif state[SOLVED] < 0.5 * L:
        state[AHEAD] *= 2.0
    state[UNTIL], state[SOLVED] = b + state[AHEAD], 0.0
    for e in range(L):
        arms.key[e] = remembered_upper(kind, arms.S[e], arms.T[e], state[UNTIL], arms.memo) + SLACK
    for block in range(arms.blocks.shape[0]):
        summarise(block, arms)


@njit_inline
def select_first(kind, b, arms):
    """The arm with the largest bound at budget b; b never falls."""
    S, T, key, blocks, state, memo = arms
    if b > state[UNTIL]:
        set_keys(kind, b, arms)
    n = blocks.shape[0]
    start = 0
    for block in range(1, n):
        if blocks[block, LARGEST] > blocks[start, LARGEST]:
            start = block
    arm, largest = -1, -1.0
    for turn in range(n + 1):
        block = start if turn == 0 else turn - 1  # the most promising first: it sets a high bar
        if blocks[block, LARGEST] < largest or (turn > 0 and block == start):
            continue
        first = int(blocks[block, FIRST])
        tied = first > arm >= 0 and S[first] == S[arm] and T[first] == T[arm]
        if tied and blocks[block, SECOND] < largest:
            continue  # arms tied with ours, and behind it; the others are below
        for e in range(block * BLOCK, min((block + 1) * BLOCK, S.shape[0])):
            if key[e] < largest or (e > arm >= 0 and S[e] == S[arm] and T[e] == T[arm]):
                continue
            U = remembered_upper(kind, S[e], T[e], b, memo)
            state[SOLVED] += 1.0
            if U > largest or (U == largest and e < arm):
                arm, largest = e, U
    return arm


@njit_inline
def touch_first(kind, e, arms):
    """Arm e was observed: its key, and those of its block."""
    if arms.state[UNTIL] > 0.0:  # there are keys
        arms.key[e] = upper(kind, arms.S[e], arms.T[e], arms.state[UNTIL]) + SLACK
        summarise(e // BLOCK, arms)


@njit_inline
def recommend_bound(now, u, arms, A):
    """The pair with the largest bound at budget b; at first each pair once."""
    t, b, kind, K = now
    arm = t - 1 if t <= arms.S.shape[0] else select_first(kind, b, arms)
    A[0], A[1] = arm // K, arm % K


@njit_inline
def learn_bound(now, arms, A, clicks):
    """Count the click on a pair."""
    _, _, kind, K = now
    arm = A[0] * K + A[1]
    arms.T[arm] += 1.0
    arms.S[arm] += clicks[0]
    touch_first(kind, arm, arms)


class PairIndex(KernelPolicy):
    """Upper confidence bounds on pairs."""

    KNOWS, READS, COST = "nothing", "the click", "L K"
    TRACK = "rank1"
    KERNELS = KeyedArms(), recommend_bound, learn_bound
    KIND: ClassVar[int]

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, {}, items=setting.rows * setting.columns)
        self.memory.state[:] = BEGIN
        self.rule = self.KIND, int(setting.columns[0])

    def now(self, t: int) -> tuple[Any, ...]:
        """The step, its budget, and the rule."""
        b = bounds.kl_budget(t) if self.KIND == bounds.KL else 2.0 * math.log(t)
        return t, b, *self.rule


class PairUCB1(PairIndex):
    """UCB1 on all pairs."""

    NAME, PAPER = "UCB1", "Auer et al. 2002"
    FIGURE = 13
    KIND = bounds.UCB1


class PairKLUCB(PairIndex):
    """KL-UCB on all pairs."""

    NAME, PAPER = "KL-UCB", "Garivier and Cappe 2011"
    FIGURE = 14
    KIND = bounds.KL


MOST = 700.0  # of the hazards: e^-700 is as good as 0


@njit_views
def continued_fraction(a, b, x):
    """The continued fraction 1 / (1 + d_1 / (1 + d_2 / ...)) of the incomplete beta function.

    Its convergents P_n / Q_n with P_n = P_{n-1} + d_n P_{n-2}, likewise Q, scaled to Q_n = 1 after
    every fourth: a division takes longer than all else. It is used where x is below the mean, or
    nearly so; there all Q_n are positive.
    """
    P, Q, P_odd, Q_odd = 1.0, 1.0, 1.0, 1.0 - (a + b) * x / (a + 1.0)
    value = 0.0
    for m in range(1, 200_000):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        P, Q = P_odd + even * P, Q_odd + even * Q
        P_odd, Q_odd = P + odd * P_odd, Q + odd * Q_odd
        if m % 2 == 0:
            scale = 1.0 / Q_odd
            P, Q, P_odd, Q_odd = P * scale, Q * scale, P_odd * scale, 1.0
            if abs(P_odd - value) < 1e-15 * P_odd:
                break
            value = P_odd
    return P_odd / Q_odd


@njit_views
def survival(a, b, x):
    """F(x) and 1 - F(x) of Beta(a, b), the smaller one to full relative precision."""
    if x <= 0.0 or x >= 1.0:
        return (0.0, 1.0) if x <= 0.0 else (1.0, 0.0)
    log_B = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    density = math.exp(a * math.log(x) + b * math.log1p(-x) - log_B)
    if x < (a + 1.0) / (a + b + 2.0):
        F = min(density * continued_fraction(a, b, x) / a, 1.0)
        return F, 1.0 - F
    Q = min(density * continued_fraction(b, a, 1.0 - x) / b, 1.0)
    return 1.0 - Q, Q


@njit_views
def hazard(S, T, x):
    """-log F(x) of a pair with S clicks in T observations, at most ``MOST``."""
    F, Q = survival(1.0 + S, 1.0 + T - S, x)
    if F > 0.5:
        return -math.log1p(-Q)
    return min(-math.log(max(F, 1e-305)), MOST)


# total hazards of the levels, from x_0 = 1 down
TARGETS = np.array([0.0, 0.3, 0.8, 1.6, 3.2, 16.0])
LOOSE = 1.3  # the totals may be off by this factor
PATIENCE = 40  # evaluations per pair, about the cost of setting the levels
DRAW_MEMO = 4096


class Posteriors(NamedTuple):
    """Of the pairs of one replica. Only the largest theta matters, so only the top is drawn.

    With the hazard h_i(x) = -log F_i(x), P(no theta above x) = exp(-sum_i h_i(x)). A ladder of
    levels 1 = x_0 > x_1 > ... > x_G cuts [0, 1] into cells. Lay the hazards
    d_i = h_i(x_g) - h_i(x_{g-1}) of all pairs on a line, cell after cell from the top: a standard
    exponential E falls on cell g and pair j with exactly the probability that no theta is above the
    cell, and j is the first pair with a theta in it. From there a fresh exponential gives the next
    pair with a theta in the cell, or none. Where on d_j it fell fixes theta_j itself,
    h_j(theta_j) = h_j(x_{g-1}) + rest. Mostly there is one such pair and it is the largest;
    otherwise halving the cell finds the largest. The distribution is that of drawing all, whatever
    the levels, as long as they were set before E.

    The levels are set anew, near sum_i h_i(x_g) = ``TARGETS``, when comparing has cost more
    evaluations of F than that would, or when E fell below the ladder.
    """

    S: Floats = floats("L")  # clicks on each pair
    T: Floats = floats("L")  # its observations
    h: Floats = floats("L", len(TARGETS))  # hazard of each pair at each level
    block_h: Floats = floats(n_blocks, len(TARGETS))  # sums of the hazards over blocks of pairs
    levels: Floats = floats(len(TARGETS), fill=1.0)
    work: Ints = ints(1, fill=np.iinfo(np.int64).max)  # evaluations of F since the levels were set
    pairs: Ints = ints("L", shared=True)  # scratch: pairs with a theta in the cell
    y: Floats = floats("L", shared=True)  # their hazards
    above: Bools = ints("L", shared=True, dtype=np.bool_)  # whether in its upper half
    memo: Floats = floats(DRAW_MEMO, 4, fill=-1.0, shared=True)  # rows S, T, x, h


@njit_views
def total(g, block_h):
    """The hazard of all pairs at level g."""
    H = 0.0
    for block in range(block_h.shape[0]):
        H += block_h[block, g]
    return H


@njit_views
def fill(g, x, mine):
    """Make x the level g; returns the total hazard there."""
    S, T, h, block_h, memo = mine.S, mine.T, mine.h, mine.block_h, mine.memo
    mine.levels[g] = x
    block_h[:, g] = 0.0
    for i in range(S.shape[0]):
        row = memo[(int(T[i]) * 61 + int(S[i])) % DRAW_MEMO]
        if row[0] != S[i] or row[1] != T[i] or row[2] != x:
            row[0], row[1], row[2], row[3] = S[i], T[i], x, hazard(S[i], T[i], x)
        h[i, g] = row[3]
        block_h[i // BLOCK, g] += row[3]
    return total(g, block_h)


@njit_views
def set_levels(mine):
    """Levels whose total hazards are near ``TARGETS``."""
    levels = mine.levels
    fill(ZERO, 1.0, mine)
    for g in range(1, TARGETS.shape[0]):
        target = TARGETS[g]
        high = levels[g - 1]
        gap = 0.5 if g == 1 else levels[g - 2] - high
        low = max(high - gap, 0.5 * high)
        H = fill(g, low, mine)
        while H < target / LOOSE:
            gap *= 2.0
            high, low = low, max(low - gap, 0.5 * low)
            H = fill(g, low, mine)
        while H > target * LOOSE or H < target / LOOSE:
            x = 0.5 * (low + high)
            if x in (low, high):
                break
            H = fill(g, x, mine)
            if H > target:
                low = x
            else:
                high = x


@njit_views
def descend(mine):
    """Go on below the ladder: its foot becomes the top of one that halves."""
    h, block_h, levels = mine.h, mine.block_h, mine.levels
    G = levels.shape[0] - 1
    levels[0] = levels[G]
    for i in range(h.shape[0]):
        h[i, 0] = h[i, G]
    for block in range(block_h.shape[0]):
        block_h[block, 0] = block_h[block, G]
    for g in range(1, G + 1):
        fill(g, 0.5 * levels[g - 1], mine)


@njit_views
def next_in_cell(E, i, g, h, block_h):
    """The pair from i on whose hazard in cell g holds E, and where; N if E is beyond them all."""
    N = h.shape[0]
    while i < N:
        if i % BLOCK == 0:
            d = block_h[i // BLOCK, g] - block_h[i // BLOCK, g - 1]
            if d < E:
                E -= d
                i += BLOCK
                continue
        d = h[i, g] - h[i, g - 1]
        if d >= E and d > 0.0:
            return i, E
        E -= d
        i += 1
    return N, E


@njit_views
def exponential(u, k):
    """The k-th standard exponential made of the uniform u."""
    return -math.log1p(-uniform(stream(u), k))


@njit_inline
def largest(low, high, n, mine):
    """Which of the n pairs in the cell, h(theta) = y each, has the largest theta."""
    S, T, pairs, y, above = mine.S, mine.T, mine.pairs, mine.y, mine.above
    while n > 1:
        x = 0.5 * (low + high)
        if x in (low, high):
            break
        mine.work[0] += n
        m = 0
        for c in range(n):
            i = pairs[c]
            above[c] = y[c] < hazard(S[i], T[i], x)
            m += above[c]
        if m == 0:
            high = x
            continue
        low, m = x, 0
        for c in range(n):
            if above[c]:
                pairs[m], y[m] = pairs[c], y[c]
                m += 1
        n = m
    return pairs[0]


@njit_inline
def draw_one(u, mine):
    """The pair with the largest theta."""
    h, block_h, levels, work = mine.h, mine.block_h, mine.levels, mine.work
    N, G = h.shape[0], levels.shape[0] - 1
    if work[0] > PATIENCE * N:
        set_levels(mine)
        work[0] = 0
    E, top = -math.log1p(-u[0]), 0.0
    g = 1
    H = total(1, block_h)
    while E > H:
        top = H
        if g == G:
            descend(mine)
            work[0] = PATIENCE * N + 1
            g = 0
        g += 1
        H = total(g, block_h)
    i, rest = next_in_cell(E - top, ZERO, g, h, block_h)
    if i == N:  # E fell into the rounding of the sums
        i, rest = 0, h[0, g] - h[0, g - 1]
        for j in range(1, N):
            if h[j, g] - h[j, g - 1] > rest:
                i, rest = j, h[j, g] - h[j, g - 1]
    n = 0
    while i < N:
        mine.pairs[n], mine.y[n] = i, h[i, g - 1] + rest
        n += 1
        i, rest = next_in_cell(exponential(u[1], n), i + 1, g, h, block_h)
    return largest(levels[g], levels[g - 1], n, mine)


@njit_inline
def recommend_draw(now, u, mine, A):
    """The pair with the largest theta."""
    (K,), i = now, draw_one(u, mine)
    A[0], A[1] = i // K, i % K


@njit_inline
def learn_draw(now, mine, A, clicks):
    """The posterior of the pair, and the sums over its block."""
    (K,), S, T, h = now, mine.S, mine.T, mine.h
    i = A[0] * K + A[1]
    S[i] += clicks[0]
    T[i] += 1.0
    for g in range(mine.levels.shape[0]):
        h[i, g] = hazard(S[i], T[i], mine.levels[g])
    block = i // BLOCK
    sums = mine.block_h[block]
    sums[:] = 0.0
    for e in range(block * BLOCK, min((block + 1) * BLOCK, S.shape[0])):
        for g in range(sums.shape[0]):
            sums[g] += h[e, g]


class TS(KernelPolicy):
    """Thompson sampling with Beta(1, 1) priors on all pairs."""

    NAME, PAPER = "TS", "Thompson 1933"
    KNOWS, READS, COST = "nothing", "the click", "L K"
    FIGURE = 15
    TRACK = "rank1"
    KERNELS = Posteriors(), recommend_draw, learn_draw

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, {}, uniforms=2, items=setting.rows * setting.columns)
        self.rule = (int(setting.columns[0]),)
