"""Every policy takes the same actions as its reference, the paper's pseudocode, step by step."""

import inspect
import re
import sys

import numpy as np
import pytest
from scipy import stats

from logeval.clicks.users.chain import Chain
from logeval.policies.registry import POLICIES, parse_policies
from logeval.tracks.lists import RankingProblem
from logeval.tracks.rank1 import Rank1Environment, Rank1Problem, needle
from logeval.tracks.ranking import RankingEnvironment
from logeval.tracks.registry import synthetic_problem
from tests.policies.running import make, setting_of
from tests.references import CONTEXTUAL, REFERENCES, as_policy
from tests.stand_in import large_dcm


def needs(name):
    return getattr(parse_policies([name])[0].cls, "NEEDS", ())


VARIANTS = {
    "CascadeKL-UCB": ["order=ascending", "init=sample"],
    "CascadeUCB1": ["init=sample", "corruption=20"],
    "dcmKL-UCB": ["order=2>3>1,init=sample", "order=known"],
    "CascadeSWUCB": ["tau=7", "tau=1,order=ascending", "eps=0.1,tau=30"],
    "CascadeDUCB": ["gamma=0.8", "gamma=0.99,eps=0.1", "gamma=1"],
    "SW-dcmKL-UCB": ["tau=7", "tau=40,order=2>3>1"],
    "D-dcmKL-UCB": ["gamma=0.8", "gamma=0.99", "gamma=1,order=ascending"],
    "GLRT-CascadeUCB": ["p=0.3,delta=0.9", "p=0", "p=1,order=ascending"],
    "GLRT-CascadeKL-UCB": ["p=0.3,delta=0.9", "p=0,delta=0.5"],
    "CascadeUCB-V": ["init=sample"],
    "RankedKL-UCB": ["collision=random", "init=sample", "collision=random,init=sample"],
    "RankedUCB1": ["collision=random"],
    "RankedExp3": ["collision=random", "gamma=0.9", "gamma=1"],
    "TopRank": ["order=ascending"],
    "UniRank": ["optimism=loglog"],
    "CTS": ["feedback=last"],
    "PB-MHB": ["c=1"],
    "PBM-UCB": ["kappa=estimated"],
    "PBM-PIE": ["kappa=estimated,lag=7"],
    "PBM-TS": ["kappa=estimated,lag=50"],
    "BC-MPTS": ["kappa=estimated,lag=50"],
    "BubbleRank": ["items=base"],
    "Rank1ElimKL": ["budget=authors,partner=fresh", "budget=authors", "partner=fresh"],
    "Rank1Elim": ["budget=authors,partner=fresh"],
}

IN_DISTRIBUTION = ["TS"]  # their kernels draw other random numbers
ALL = [  # test_logged.py compares Logged, which needs a log
    *(name for name in POLICIES if name not in [*IN_DISTRIBUTION, "Logged"]),
    *(f"{name}({inside})" for name, found in VARIANTS.items() for inside in found),
]
LISTS = [name for name in ALL if parse_policies([name])[0].track in ("ranking", None)]
PBM_ONLY = [name for name in LISTS if {"examination", "base_list"} & set(needs(name))]
PAIRS = [name for name in ALL if parse_policies([name])[0].track in ("rank1", None)]


def dcm(w, K=3):
    """Users of a DCM with these attractions, who leave after half of the clicks."""
    L = len(w)
    users = Chain(np.array(w), np.ones(L), np.full(K, 0.5), 1.0, np.ones(L), np.full(K, 0.5))
    return RankingProblem("DCM", str(w), users, np.argsort(-np.array(w))[:K])


ODD_LISTS = {
    "different L in one batch": (
        [
            dcm([0.9, 0.2, 0.6]),  # K = L
            dcm([0.3] * 6),  # ties
            dcm([0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0]),
            dcm([0.0] * 4),
            dcm([1.0] * 4),
            large_dcm(70, 3),
        ],
        60,
    ),
    "L = 1": ([dcm([0.4], K=1), dcm([0.0], K=1), dcm([1.0], K=1)], 40),
    "K = 1": ([dcm([0.4, 0.5], K=1), dcm([0.2, 0.2, 0.9], K=1)], 150),
    "horizon 1": ([large_dcm(9, 3)], 1),
    "horizon below L": ([large_dcm(9, 3)], 5),
    "many steps": ([dcm([0.5, 0.4, 0.4, 0.1, 0.1, 0.05])], 700),
}
LIST_CASES = [
    (name, odd)
    for name in LISTS
    for odd in ODD_LISTS
    if name not in PBM_ONLY and (name in POLICIES or "different" in odd or "below" in odd)
]  # two of them for variants


@pytest.mark.parametrize("name", ["dcmKL-UCB(order=known)", "Oracle(order=assumed)"])
def test_each_query_has_its_own_order_of_positions(name):
    problems = [
        synthetic_problem(f"DCM(w=0.2/0.6/0.4/0.5,v={v})") for v in ("0.1/0.9/0.5", "0.5/0.4/0.8")
    ]
    users = RankingEnvironment(problems, [(0, 0), (1, 0), (1, 1)], seed=5)
    compare(name, users, 60)
    shown = users.items(make(name, users, 60).recommend(1))
    if name.startswith("Oracle"):
        assert shown.tolist() == [[1, 3, 2]] * 3  # the most attractive first
    else:
        assert users.offers["position_order"].tolist() == [[1, 2, 0], [2, 0, 1], [2, 0, 1]]


def pairs(u_bar, v_bar):
    return Rank1Problem("PBM", str((u_bar, v_bar)), np.array(u_bar), np.array(v_bar))


ODD_PAIRS = {
    "different rows in one batch": (
        [
            pairs([0.4, 0.9], [0.5, 1.0]),
            pairs([0.3] * 5, [0.7, 0.7]),  # ties
            pairs([0.0, 1.0, 1.0], [1.0, 0.0]),
            pairs([0.0] * 3, [0.0, 0.0]),
            pairs([1.0] * 3, [1.0, 1.0]),
            pairs(np.linspace(0, 1, 70).tolist(), [1.0, 0.3]),
        ],
        400,
    ),
    "one row and column": ([pairs([0.4], [0.6])], 40),
    "one row": ([pairs([0.5], [0.1, 0.9, 0.5])], 300),
    "one column": ([pairs([0.1, 0.9], [0.5])], 300),
    "horizon 1": ([needle(4, 3, 0.25, 0.5)], 1),
    "horizon below the number of pairs": ([needle(4, 3, 0.25, 0.5)], 7),
    "many steps": ([needle(5, 4, 0.05, 0.95)], 3000),
}


def compare(name, users, horizon):
    """Both see the same clicks, on the actions that they must agree on."""
    policy = make(name, users, horizon)
    reference = as_policy(name, setting_of(users, horizon))
    for t in range(1, horizon + 1):
        A = policy.recommend(t)
        assert A.tolist() == reference.recommend(t).tolist(), f"step {t}"
        clicks = users.step(A)
        policy.update(t, A, clicks)
        reference.update(t, A, clicks)
    assert hasattr(policy, "remaining") == hasattr(reference, "remaining")
    if hasattr(policy, "remaining"):
        assert policy.remaining().tolist() == reference.remaining().tolist()
    return policy


def test_references_import_no_kernel():
    for paper in sorted({one.__module__ for one in [*REFERENCES.values(), *CONTEXTUAL.values()]}):
        text = inspect.getsource(sys.modules[paper])
        for imported in re.findall(r"^from ([\w.]+) import", text, re.MULTILINE):
            if imported.startswith(("logeval.", "tests.")):
                assert "njit" not in inspect.getsource(sys.modules[imported])


@pytest.mark.parametrize(("name", "odd"), LIST_CASES)
def test_lists(name, odd):
    problems, horizon = ODD_LISTS[odd]
    if "2>3>1" in name and problems[0].positions != 3:
        name = "dcmKL-UCB"
    replicas = [(q, 0) for q in range(len(problems))]
    compare(name, RankingEnvironment(problems, replicas, seed=5), horizon)


def test_batches_are_split_until_every_position_has_its_own():
    problems = [dcm([0.98, 0.7, 0.35, 0.1, 0.02], K=4), dcm([0.95, 0.02, 0.6, 0.9, 0.3, 0.0], K=4)]
    users = RankingEnvironment(problems, [(0, 0), (0, 1), (1, 0)], seed=5)
    policy = compare("BatchRank", users, 6000)
    assert policy.memory.number[:, 0].tolist() == [4, 3, 3]


ODD_PBM = {
    "different L in one batch": (
        [
            "PBM(w=0.9/0.2/0.6,e=0.2/1/0.6,base=3>1>2)",
            "PBM(w=0.3/0.3/0.3/0.3/0.3,e=1/1/1,base=4>1>5)",  # ties
            "PBM(w=0/1/1/0,e=1/0.5/0.25,base=1>2>3)",
            "PBM(w=0.9/0.1/0.5/0.1/0.6/0.1/0.8/0.3/0.2/0.7/0.1/0.4,e=0.9/0.5/0.3,base=2>1>3)",
        ],
        130,
    ),
    "L = 1": (["PBM(w=0.4,e=0.5,base=1)", "PBM(w=1,e=1,base=1)"], 40),
    "horizon below L": (
        [
            "PBM(w=0.4/0.5/0.6/0.3,e=0.5/1/0.2,base=3>2>4)",
            "PBM(w=0.4/0.5/0.6,e=0.5/1/0.2,base=3>2>1)",
        ],
        2,
    ),
    "many steps": (["PBM(w=0.7/0.5/0.3/0.2,e=1/0.5/0.3/0.1,base=4>2>3>1)"], 1000),
}


@pytest.mark.parametrize("name", PBM_ONLY)
@pytest.mark.parametrize("odd", ODD_PBM)
def test_lists_of_a_pbm(name, odd):
    texts, horizon = ODD_PBM[odd]
    problems = [synthetic_problem(text) for text in texts]
    if name == "BubbleRank":  # it ranks all items
        problems = [p for p in problems if p.size == p.positions]
    if name.startswith("PBM-TS"):  # its reference takes milliseconds a draw
        horizon = min(horizon, 60 if len(problems) > 1 else 200)
    replicas = [(q, 0) for q in range(len(problems))]
    compare(name, RankingEnvironment(problems, replicas, seed=5), horizon)


def test_items_change_places_for_good_until_the_base_list_is_in_order():
    problem = synthetic_problem("PBM(w=0.95/0.5/0.05,e=1/1/0.9,base=3>2>1)")
    users = RankingEnvironment([problem], [(0, 0), (0, 1)], seed=5)
    policy = compare("BubbleRank", users, 4000)
    assert policy.memory.base.tolist() == [[2, 1, 0]] * 2


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("odd", ODD_PAIRS)
def test_pairs(name, odd):
    problems, horizon = ODD_PAIRS[odd]
    replicas = [(q, 0) for q in range(len(problems))]
    compare(name, Rank1Environment(problems, replicas, seed=5), horizon)


@pytest.mark.parametrize(
    ("name", "horizon"),
    [
        ("Rank1ElimKL", 20_000),
        ("Rank1ElimKL(budget=authors,partner=fresh)", 20_000),
        ("Rank1Elim", 25_000),
        ("UCB1Elim", 20_000),
    ],
)
def test_elimination_until_one_pair_is_left(name, horizon):
    users = Rank1Environment([needle(5, 4, 0.05, 0.95)], [(0, 0)], seed=5)
    assert compare(name, users, horizon).remaining().tolist() == [[1, 1]]


@pytest.mark.parametrize("name", IN_DISTRIBUTION)
def test_actions_are_distributed_as_those_of_the_reference(name):
    """From the same history both choose pair i with the same probability.

    So the difference D_i of how often they did is a martingale with the variation V_i, the number
    of steps at which exactly one of them did, and D_i / sqrt(V_i) is standard normal.
    """
    problem, horizon, runs = needle(3, 2, 0.4, 0.4), 400, 8
    users = Rank1Environment([problem], [(0, run) for run in range(runs)], seed=5)
    policy = make(name, users, horizon)
    reference = as_policy(name, setting_of(users, horizon, seed=6))
    D, V = np.zeros(6), np.zeros(6)
    for t in range(1, horizon + 1):
        A = policy.recommend(t)
        ours, theirs = (a @ [2, 1] for a in (A, reference.recommend(t)))
        for i in range(6):
            D[i] += ((ours == i).astype(int) - (theirs == i)).sum()
            V[i] += ((ours == i) != (theirs == i)).sum()
        clicks = users.step(A)
        policy.update(t, A, clicks)
        reference.update(t, A, clicks)
    assert (V > 50).all()
    assert (2 * stats.norm.sf(abs(D) / np.sqrt(V)) > 1e-4).all()
