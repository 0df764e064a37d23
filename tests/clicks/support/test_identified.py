"""What the clicks decide: the table of conditions against ranks of Jacobians, and planted parts."""

import itertools

import numpy as np
import pytest

from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.models.registry import MODELS
from logeval.clicks.support.graph import CARRIES, FIRM, _join, expected_clicks, parts_of
from logeval.clicks.support.identified import _cells, identified
from tests.clicks.examples import all_patterns, random_model, statistics_from, table_of

K, L = 4, 5
ONE_LIST = np.arange(4)[None]
ALL_LISTS = np.array(list(itertools.permutations(range(L), K)))
# two blocks, which never mix: items 0, 1 at the first two positions, 2, 3 at the others
BLOCKS = np.array([a + b for a in ([0, 1], [1, 0]) for b in ([2, 3], [3, 2])])


def jacobian(name, lists):
    """Of the probabilities of all clicks on lists, in the parameters: by central differences."""
    model = random_model(name, np.random.default_rng(3), L=L, K=K, low=0.2, high=0.8)
    shown = np.unique(lists)
    every = all_patterns(K).astype(bool)
    A = np.repeat(lists, len(every), axis=0)
    clicks = np.tile(every, (len(lists), 1))
    at = []
    for p in model.PARAMETERS:
        places = {"item": shown[:, None], "position": np.arange(K)[:, None], "scalar": [()]}
        steps = [(k, r) for k in range(K) for r in range(k + 1)]
        at += [(p.field, tuple(i)) for i in places.get(p.kind, steps)]

    def moved(field, place, by):
        value = np.array(getattr(model, field), dtype=float)
        value[place] += by
        other = type(model)(**{**vars(model), field: value if value.ndim else float(value)})
        return np.exp(other.log_likelihood(A, clicks))

    columns = [(moved(f, i, 1e-5) - moved(f, i, -1e-5)) / 2e-5 for f, i in at]
    return np.array(columns).T


def undecided(name, lists):
    """How many directions of parameters of the shown items no click on these lists depends on."""
    J = jacobian(name, lists)
    return J.shape[1] - np.linalg.matrix_rank(J, tol=1e-6)


@pytest.mark.parametrize(
    ("name", "one", "blocks", "every"),
    [
        ("CM", 0, 0, 0),
        ("DCTR", 0, 0, 0),
        ("DCM", 1, 1, 1),  # termination at the last position, after which nothing is seen
        ("SDBN", 1, 0, 0),  # the satisfaction of the item at the last position
        ("DBN", 2, 0, 0),  # gamma besides; items that change places at all decide it
        ("CCM", 0, 0, 0),  # one list decides tau1 in principle: see below
        ("PBM", 4, 2, 1),  # a factor for each part
        ("UBM", 4, 2, 1),
    ],
)
def test_conditions_of_the_models(name, one, blocks, every):
    assert [undecided(name, lists) for lists in (ONE_LIST, BLOCKS, ALL_LISTS)] == [
        one,
        blocks,
        every,
    ]


def test_one_list_says_next_to_nothing_of_the_ccm_s_continuation():
    size = np.linalg.svd(jacobian("CCM", ONE_LIST), compute_uv=False)
    assert size[-1] < size[-2] / 50  # of one click in 2,500, as it were
    size = np.linalg.svd(jacobian("CCM", BLOCKS), compute_uv=False)
    assert size[-1] > size[-2] / 5


def clicked(lists, n, p=0.5, seed=0):
    """n SERPs of lists of items in turn, clicked with probability p at every position."""
    A = np.tile(lists, (-(-n // len(lists)), 1))[:n]
    return patterns_of(statistics_from(A, np.random.default_rng(seed).random(A.shape) < p))


def test_ties_are_those_of_the_information_matrix():
    """W is the Laplacian of log e in a Poisson model, items profiled out."""
    rng = np.random.default_rng(1)
    C = rng.poisson(4.0, (7, 5)).astype(float)
    full = np.block([[np.diag(C.sum(1)), C], [C.T, np.diag(C.sum(0))]])
    profiled = full[7:, 7:] - full[7:, :7] @ np.linalg.solve(full[:7, :7], full[:7, 7:])
    from logeval.clicks.support.graph import tie

    W = np.zeros((5, 5))
    item, place = np.nonzero(C)
    tie(item, place, C[item, place], W)
    assert np.allclose(np.diag(W.sum(1)) - W, profiled)


def test_the_last_tie_is_a_cut_and_planted_parts_are_found():
    data = clicked(BLOCKS, 400)
    found = identified(MODELS["PBM"], data, "per-query")
    assert found.cut == [0.0]
    assert found.share == [0.5]
    assert not found.carried[0]
    assert found.items.sum() == 2
    # now 30 of the SERPs mix the blocks, in both directions
    mixed = np.array([[2, 1, 0, 3]] * 30)
    rng = np.random.default_rng(0)
    A = np.concatenate([np.tile(BLOCKS, (100, 1)), mixed])
    data = patterns_of(statistics_from(A, rng.random(A.shape) < 0.5))
    found = identified(MODELS["PBM"], data, "per-query")
    assert found.cut[0] >= FIRM
    assert found.carried[0]
    assert found.items.all()


@pytest.mark.parametrize("seed", range(5))
def test_parts_are_those_of_a_search_over_all_cuts(seed):
    """No cut within a part is weaker than the weakest step that closed it; none between is firm."""
    rng = np.random.default_rng(seed)
    lists = np.array([rng.permutation(8)[:5] for _ in range(6)])
    data = clicked(lists, 60, 0.3, seed)
    cells = _cells(data, "per-query", lambda block: block.shown.position, 5)
    graph = parts_of(cells)
    from logeval.clicks.support.graph import tie

    W = np.zeros((5, 5))
    tie(cells.item, cells.cell, expected_clicks(cells), W)
    names = np.unique(graph.part[0])
    for a, b in itertools.combinations(names, 2):
        assert W[np.ix_(graph.part[0] == a, graph.part[0] == b)].sum() < FIRM
    on = graph.side[0]
    assert np.isclose(graph.cut[0], W[np.ix_(on, ~on)].sum())


def test_models_that_read_from_the_top_need_one_list():
    data = clicked(ONE_LIST, 300)
    for name, carried in {"DCM": True, "SDBN": True, "CM": True, "DCTR": True, "DBN": False,
                          "CCM": False, "PBM": False, "UBM": False}.items():  # fmt: skip
        assert identified(MODELS[name], data, "per-query").carried[0] == carried, name
    assert identified(MODELS["RCTR"], data, "per-query") is None
    every = clicked(ALL_LISTS, 1200)
    for name in ("DCM", "DBN", "CCM", "PBM", "UBM"):
        assert identified(MODELS[name], every, "per-query").carried[0], name


def test_without_clicks_nothing_is_known():
    data = clicked(ALL_LISTS, 300, p=0.0)
    for name in ("DCM", "DBN", "PBM", "UBM"):
        assert not identified(MODELS[name], data, "per-query").carried[0], name


def test_what_is_joined_after_a_loose_tie_is_no_part():
    """A and C are tied by 6 clicks, less than FIRM; both together to B by 11, either by less."""
    W = np.array([[0.0, 5.0, 6.0], [5.0, 0.0, 6.0], [6.0, 6.0, 0.0]])
    part, joined, side = np.arange(3), np.arange(3), np.zeros(3, dtype=np.bool_)
    last, hold = _join(W, np.array([1.0, 1.0, 1.0]), False, FIRM, part, joined, side)
    assert last == 11.0
    assert hold == 6.0  # without C, or A, there are two thirds; what came before is as weak
    assert len(set(part.tolist())) == 3
    assert side.sum() == 1


def parts_at(cells, firm):
    """The share of impressions in the largest part of the only query."""
    graph = parts_of(cells, firm)
    shown = cells.sums(cells.impressions)[1]
    return max(shown[graph.part[0] == name].sum() for name in set(graph.part[0])) / shown.sum()


@pytest.mark.parametrize("seed", range(5))
def test_what_holds_a_query_is_the_firmness_at_which_it_is_carried(seed):
    """``hold`` by trying: just below it 80% of the impressions are together, just above not."""
    rng = np.random.default_rng([9, seed])
    lists = np.array([rng.permutation(9)[:5] for _ in range(4)])
    cells = _cells(clicked(lists, 80, 0.3, seed), "per-query", lambda b: b.shown.position, 5)
    hold = parts_of(cells).hold[0]
    assert hold > 0
    assert parts_at(cells, hold * 0.999) >= CARRIES
    assert parts_at(cells, hold * 1.001) < CARRIES


def test_so_many_times_the_serps_would_carry_it():
    rng = np.random.default_rng(4)
    A = ALL_LISTS[rng.integers(0, len(ALL_LISTS), 25)]
    found = identified(MODELS["PBM"], clicked(A, 25, 0.2), "per-query")
    assert not found.carried[0]
    assert not found.apart[0]  # too few SERPs
    times = found.times_needed[0]
    for more, carried in ((0.97 * times, False), (1.03 * times, True)):
        cells = _cells(clicked(A, 25, 0.2), "per-query", lambda b: b.shown.position, K)
        grown = expected_clicks(cells) * more
        assert (parts_of(cells, clicks=grown).hold[0] >= FIRM) == carried


def test_lists_that_mix_are_told_from_those_that_do_not_whatever_their_number():
    """One list, blocks, blocks mixed in one of a hundred SERPs, any order: by what was shown."""
    rare = np.concatenate([np.tile(BLOCKS, (25, 1)), [[2, 3, 0, 1]]])
    for n in (101, 10_100):
        shown = {"one": ONE_LIST, "blocks": BLOCKS, "rare": rare, "any": ALL_LISTS}
        found = {
            name: identified(MODELS["PBM"], clicked(lists, n, 0.02), "per-query")
            for name, lists in shown.items()
        }
        mix = {name: one.mix[0] for name, one in found.items()}
        assert mix["one"] == mix["blocks"] == 0.0
        assert 0.0 < mix["rare"] < 0.1
        assert mix["any"] == pytest.approx(1.0, abs=0.05)
        assert [name for name, one in found.items() if one.apart[0]] == ["one", "blocks", "rare"]


def test_expected_clicks_add_up_and_are_what_an_item_has_elsewhere():
    """Of items shown often at all places: those of a product of two factors, fitted by loops."""
    rng = np.random.default_rng(6)
    A = ALL_LISTS[rng.integers(0, len(ALL_LISTS), 4000)]
    w, e = np.array([0.9, 0.5, 0.4, 0.3, 0.2]), np.array([1.0, 0.7, 0.5, 0.2])
    data = patterns_of(statistics_from(A, rng.random(A.shape) < w[A] * e))
    cells = _cells(data, "per-query", lambda b: b.shown.position, K)
    m = expected_clicks(cells)
    assert cells.sums(m)[1] == pytest.approx(cells.sums(cells.clicks)[1], rel=0.02)
    truth = cells.impressions * w[data.item_ids[cells.item]] * e[cells.cell]
    assert m == pytest.approx(truth, rel=0.12)
    never = cells._replace(clicks=np.zeros(len(cells.item)))
    assert not expected_clicks(never).any()


def test_lists_that_hardly_mix_are_not_apart_where_there_are_enough_of_them():
    rare = np.concatenate([np.tile(BLOCKS, (12, 1)), [[2, 3, 0, 1]]])
    found = identified(MODELS["PBM"], clicked(rare, 9_800, 0.5), "per-query")
    assert found.mix[0] < 0.1
    assert found.carried[0]
    assert not found.apart[0]


def test_what_a_click_says_was_read_differs_by_model():
    """Clicked at ranks 1 and 3 of 4: the CM is sure of the first, the DCM of three, DCTR of all."""
    data = patterns_of(table_of([(0, [1, 2, 3, 4], 0b101, 50)]))
    known = {"CM": [1], "DCM": [1, 2, 3], "DCTR": [1, 2, 3, 4]}
    for name, items in known.items():
        found = identified(MODELS[name], data, "per-query")
        assert sorted(data.item_ids[found.items]) == items, name
        assert found.share[0] == pytest.approx(len(items) / 4)
        assert not found.apart[0]
        assert np.isnan(found.times_needed[0])
