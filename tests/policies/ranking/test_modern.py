"""Statements about TopRank, UniRank, GRAB, BubbleRank, BatchRank, PBM-PIE and the Thompson family.

Whole runs are compared with the papers' pseudocode in ``test_reference.py``; here is what must hold
whatever the clicks, and numbers worked out by hand.
"""

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from logeval.errors import LogevalError
from logeval.policies import bounds, normal
from logeval.policies.ranking import (
    assignment,
    batchrank,
    bubblerank,
    leaders,
    pb_mhb,
    pbm_ts,
    top_betas,
    toprank,
    unirank,
)
from logeval.tracks.explicit import parse_cm, parse_dcm, parse_pbm
from logeval.tracks.ranking import RankingEnvironment
from tests.policies.running import make

W = "0.5/0.45/0.4/0.35/0.3/0.25/0.2/0.15/0.1/0.05"
A = parse_pbm(f"PBM(w={W},e=1/0.8/0.6/0.4/0.2)")
SQUARE = parse_pbm(f"PBM(w={W},e=1/0.9/0.8/0.7/0.6/0.5/0.4/0.3/0.2/0.1,base=2>1>4>3>6>5>8>7>10>9)")


def users_of(problem, runs=1, seed=5):
    return RankingEnvironment([problem], [(0, run) for run in range(runs)], seed)


def steps(policy, users, horizon):
    """(t, lists, clicks) before the policy learns from them."""
    for t in range(1, horizon + 1):
        A = policy.recommend(t).copy()
        clicks = users.step(A)
        yield t, A, clicks
        policy.update(t, A, clicks)


# numbers worked out by hand, n = 10^5


def test_toprank_needs_29_one_sided_clicks():
    log_cn = math.log(toprank.C * 1e5)
    assert toprank.C == pytest.approx(3.3437, abs=5e-5)
    assert not toprank.is_below(28, 28, log_cn)
    assert toprank.is_below(29, 29, log_cn)


def test_bubblerank_needs_185_one_sided_clicks():
    assert not bubblerank.is_sure(184.0, 184.0, 4 * math.log(1e5))
    assert bubblerank.is_sure(185.0, 185.0, 4 * math.log(1e5))


def test_batchrank_stages():
    lengths = [batchrank.stage_length(stage, math.log(1e5)) for stage in range(4)]
    assert lengths == [185, 737, 2948, 11790]


def test_budget_of_a_leader():
    assert unirank.leader_budget(100) == pytest.approx(math.log(100) + 3 * math.log(math.log(100)))
    assert bounds.kl_upper(0.5, unirank.leader_budget(100) / 100) == pytest.approx(
        0.704843, abs=1e-6
    )
    assert unirank.leader_budget(2) == math.inf  # the index is 1


# block policies


@pytest.mark.parametrize("name", ["TopRank", "UniRank", "UniRank(optimism=loglog)"])
def test_pairs_and_blocks_stay_in_order(name):
    users = users_of(A, runs=3)
    policy = make(name, users, 3000)
    for _ in steps(policy, users, 3000):
        pass
    S, N = policy._pairs
    assert (np.abs(S) <= N).all()
    assert (S == -S.transpose(0, 2, 1)).all()
    assert (N == N.transpose(0, 2, 1)).all()
    assert N.max() > 20
    assert (np.sort(policy._blocks.items, axis=1) == np.arange(10)).all()
    assert (policy._blocks.beaten == policy._blocks.beats.sum(axis=1)).all()


def test_toprank_shows_every_item_everywhere_until_it_knows_better():
    users = users_of(A, runs=200)
    policy = make("TopRank", users, 10**9)
    count = np.zeros((10, 5))
    for _, lists, _ in steps(policy, users, 40):
        for k in range(5):
            count[:, k] += np.bincount(lists[:, k], minlength=10)
    assert not policy._blocks.beats.any()
    assert stats.chisquare(count.ravel()).pvalue > 1e-4


def test_a_circle_of_relations_is_one_block():
    blocks = toprank.one_block(1, np.array([4]))
    mine = toprank.blocks_of(0, 4, blocks)
    for i, j in [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3), (3, 1)]:
        toprank.relate(i, j, True, mine)
    toprank.peel(mine)
    assert mine.level.tolist() == [0, 1, 1, 1]


def test_unirank_plays_the_leader_or_a_neighbour():
    users = users_of(A)
    policy = make("UniRank", users, 2000)
    for t, _, _ in steps(policy, users, 2000):
        blocks, now = policy._blocks, policy._now
        if t < 100:
            continue
        level = blocks.level[0]
        start = 0
        for end in now.end[0]:
            members = set(level[now.items[0, start:end]].tolist())
            assert len(members) <= 2 or start == 0
            start = end
            if end >= 5:
                break


# leaders


def test_leaders_are_counted_as_in_a_dictionary_until_the_table_is_full():
    table = leaders.leaders_of(0, leaders.no_leaders(1))
    rng, counted = np.random.default_rng(0), {}
    for row in rng.integers(0, 4, (3000, 4)):
        leaders.lead(row, table)
        table.tau[table.now[0]] += 1
        counted[tuple(row)] = counted.get(tuple(row), 0) + 1
        assert table.tau[table.now[0]] == counted[tuple(row)]
    assert table.lost[0] == 0
    assert len(counted) == 256


def test_the_least_leader_is_forgotten():
    table = leaders.leaders_of(0, leaders.no_leaders(1))
    for i in range(200_000):
        leaders.lead(np.array([i, i]), table)
        table.tau[table.now[0]] += 1 + (i < 10)
    assert table.lost[0] == 200_000 - leaders.SETS * leaders.WAYS
    assert (table.tau > 1).sum() == 10


# assignments, GRAB


def test_assignment_stays_best_while_values_change():
    rng = np.random.default_rng(1)
    for L, K in [(5, 5), (7, 3), (1, 1), (30, 4)]:
        best = assignment.assignment_of(0, L, assignment.no_assignment(1, L, K))
        best.A[:] = np.arange(K)
        M, k = np.zeros((L, K)), np.arange(K)
        for _ in range(300):
            shown = rng.permutation(L)[:K]
            M[shown, k] = rng.integers(0, 5, K) / 4
            assignment.reassign(shown, M, best)
            rows, columns = optimize.linear_sum_assignment(-M.T)
            assert M[best.A, k].sum() == pytest.approx(M[columns, rows].sum())
            assert len(set(best.A.tolist())) == K


@pytest.mark.parametrize("name", ["GRAB", "S-GRAB"])
def test_grab_shows_the_leader_or_differs_in_two_places(name):
    users = users_of(A, runs=2)
    policy = make(name, users, 1500)
    gamma = 9 if name == "GRAB" else 35
    for _, lists, _ in steps(policy, users, 1500):
        for r in range(2):
            labels = policy._labels.label[r, lists[r]]
            leader = policy._best.A[r]
            differing = (labels != leader).sum()
            assert differing <= 2
            tau = policy._leaders.tau[r, policy._leaders.now[r, 0]] - 1  # counted by now
            if tau % gamma == 0:
                assert differing == 0


# BubbleRank


def inversions(A, best):
    rank = np.argsort(best)[A]
    return sum((rank[i] > rank[i + 1 :]).sum() for i in range(len(A)))


def test_bubblerank_is_safe():
    users = users_of(SQUARE, runs=4)
    policy = make("BubbleRank", users, 3000)
    start = inversions(users.offers["base_list"][0], users.best[0])
    assert start == 5
    for _, lists, _ in steps(policy, users, 3000):
        assert max(map(inversions, lists, users.best)) <= start + 5


def test_bubblerank_refuses_more_items_than_positions():
    problem = parse_pbm("PBM(w=0.5/0.4/0.3,e=1/0.5,base=3>1)")
    with pytest.raises(LogevalError, match="items=base"):
        make("BubbleRank", users_of(problem), 10)
    users = users_of(problem, runs=20)
    policy = make("BubbleRank(items=base)", users, 100)
    shown = {
        int(i)
        for _, lists, _ in steps(policy, users, 100)
        for i in users.labels.items(lists).ravel()
    }
    assert shown == {0, 2}


# what a policy must know


@pytest.mark.parametrize("name", ["PBM-UCB", "PBM-PIE", "PBM-TS", "BC-MPTS"])
def test_examination_is_refused_where_there_is_none(name):
    users = users_of(parse_cm(f"CM(w={W},K=5)"))
    with pytest.raises(LogevalError, match=r"examination.*kappa=estimated"):
        make(name, users, 10)
    make(f"{name}(kappa=estimated)", users, 10).recommend(1)


def test_the_base_list_is_refused_where_there_is_none():
    with pytest.raises(LogevalError, match="base_list"):
        make("BubbleRank", users_of(parse_dcm("DCM(w=0.5/0.4,v=0.5/0.5)")), 10)


# PBM


def test_pie_explores_at_the_last_place_only_and_among_all_items():
    users = users_of(A, runs=20)
    policy = make("PBM-PIE", users, 10**5)
    explored = set()
    for t, lists, _ in steps(policy, users, 600):
        for r in range(20):
            if t > 10:
                theta = policy._scores.theta[r]
                greedy = np.argsort(-theta, kind="stable")[:5]
                labels = policy._labels.label[r, lists[r]]
                assert labels[:4].tolist() == greedy[:4].tolist()
                if labels[4] != greedy[4]:
                    explored.add(int(labels[4]))
    assert explored == set(range(10))


def test_estimated_examination_finds_the_true_one():
    users = users_of(parse_pbm("PBM(w=0.9/0.8/0.7/0.6/0.5,e=0.3/1/0.6)"), runs=4)
    policy = make("PBM-UCB(kappa=estimated,lag=10)", users, 20_000)
    for _ in steps(policy, users, 20_000):
        pass
    assert policy._views.best.tolist() == [[1, 2, 0]] * 4


def test_pbm_ts_draws_from_the_posterior():
    """With kappa = 1 it is a Beta distribution; otherwise compared with an integral."""
    rng = np.random.default_rng(2)
    for e, shown in [((1.0,), 7), ((1.0, 0.5), 40), ((1.0, 0.5), 3000)]:
        K = len(e)
        text = f"PBM(w={'/'.join(['0.3'] * K)},e={'/'.join(map(str, e))})"
        users = users_of(parse_pbm(text))
        policy = make("PBM-TS", users, shown)
        for _ in steps(policy, users, shown):
            pass
        S, N = policy._views.S[0, 0], policy._views.N[0, 0]
        p = policy._posteriors
        u = rng.random(4000)
        draws = [pbm_ts.draw(x, p.low[0, 0], p.high[0, 0], p.mass[0, 0]) for x in u]
        x = np.linspace(0, 1, 200_001)[1:-1]
        log = S.sum() * np.log(x) + sum((N - S)[k] * np.log1p(-e[k] * x) for k in range(K))
        mass = np.cumsum(np.exp(log - log.max()))
        exact = np.interp(draws, x, mass / mass[-1])
        assert stats.kstest(exact, "uniform").pvalue > 1e-3
        assert np.abs(exact - u).max() < 2e-3
        if K == 1:
            beta = special.betainc(1 + S[0], 1 + N[0] - S[0], draws)
            assert np.abs(beta - u).max() < 2e-3


def test_pb_mhb_leaves_the_posterior_as_it_is():
    """One position, S clicks in N views: theta ~ Beta(1 + S, 1 + N - S)."""
    rng, S, N = np.random.default_rng(3), 6, 20
    cells = pb_mhb.cells_of(0, 1, pb_mhb.no_cells(1, 1, 1))
    cells.S[:], cells.T[:] = S, N
    moved = []
    for _ in range(4000):
        p = pb_mhb.Particle(rng.beta(1 + S, 1 + N - S, 1), np.ones(1))
        pb_mhb.sweep(0.3, rng.random(2), 0.0, cells, p)
        moved.append(p.theta[0])
    assert stats.kstest(moved, stats.beta(1 + S, 1 + N - S).cdf).pvalue > 1e-3


# draws


def test_quantiles_of_the_normal_distribution():
    p = np.concatenate([np.linspace(0.001, 0.999, 301), [1e-300, 1e-12, 1 - 1e-12]])
    ours = np.array([normal.quantile(x) for x in p])
    assert ours == pytest.approx(special.ndtri(p), rel=1e-12, abs=1e-13)


def test_quantiles_of_the_beta_distribution():
    rng = np.random.default_rng(4)
    for most in (0, 2, 30, 1000, 100_000):
        N = rng.integers(0, most + 1, 200)
        S = rng.integers(0, N + 1)
        u = rng.random(200)
        a, b = 1.0 + S, 1.0 + N - S
        log_B = special.betaln(a, b)
        start = [top_betas.near_quantile(*given) for given in zip(a, b, u, strict=True)]
        ours = [top_betas.quantile(*given) for given in zip(a, b, log_B, u, start, strict=True)]
        error = np.abs(ours - special.betaincinv(a, b, u))
        assert (error < 1e-8 * stats.beta(a, b).std()).all()


@pytest.mark.parametrize("level", [0.0, 0.1, 0.45, 0.9])
def test_the_largest_draws_do_not_depend_on_the_level(level):
    rng, L, K = np.random.default_rng(5), 60, 4
    betas = top_betas.betas_of(0, L, top_betas.uniform_betas(1, L))
    held, theta = np.empty(K, dtype=np.int64), np.empty(K)
    betas.level[0] = level
    for i in range(L):
        top_betas.set_beta(i, 1.0 + rng.integers(0, 20), 1.0 + rng.integers(0, 40), betas)
    for _ in range(50):
        u = rng.random(L)
        top_betas.top_draws(u, betas, held, theta)
        drawn = special.betaincinv(betas.a, betas.b, u)
        assert held.tolist() == np.argsort(-drawn)[:K].tolist()


# traps of published code


def test_clicks_at_different_positions_are_independent():
    """One uniform for all positions would make both or neither be clicked."""
    users = users_of(parse_pbm("PBM(w=0.5/0.5,e=1/1)"), runs=4000)
    clicks = users.step(np.tile([0, 1], (4000, 1)))
    both = clicks.all(axis=1).mean()
    assert abs(both - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 4000)


FIRST_LISTS = [
    "CTS", "TS-Cascade", "TopRank", "UniRank", "BatchRank", "PBM-UCB", "PBM-PIE", "PBM-TS",
    "BC-MPTS", "PB-MHB", "GRAB", "S-GRAB", "KL-CombUCB1",
]  # fmt: skip


@pytest.mark.parametrize("name", FIRST_LISTS)
def test_ties_are_broken_at_random(name):
    """The first list shows every item at every position equally often."""
    users = users_of(A, runs=400)
    lists = users.labels.items(make(name, users, 1000).recommend(1))
    count = np.stack([np.bincount(lists[:, k], minlength=10) for k in range(5)])
    assert (stats.chisquare(count, axis=1).pvalue > 1e-4).all()


def test_toprank_has_the_regret_of_independent_clicks():
    """Setting A, n = 10^4: 648 +- 8 of an independent prototype (100 runs); clicks that share
    one uniform give 509, a budget without the square root less."""
    users = users_of(A, runs=20, seed=1)
    policy = make("TopRank", users, 10_000)
    regret = np.zeros(20)
    for _, lists, _ in steps(policy, users, 10_000):
        regret += users.regret(lists)
    error = math.hypot(regret.std(ddof=1) / math.sqrt(20), 8)
    assert abs(regret.mean() - 648) < 3.5 * error
