import pytest

from logeval.errors import LogevalError
from logeval.tracks.fitted import fitted_queries, shortened
from logeval.tracks.lists import b_lb
from logeval.tracks.registry import synthetic_problem
from tests.stand_in import lists, models


def test_b_lb_is_the_problem_of_the_papers():
    problem = synthetic_problem("b_lb(l=16, k=4, p=0.2, gap=0.15, gamma=0.5)")
    assert problem.simulator == "B_LB(L=16,K=4,p=0.2,gap=0.15,gamma=0.5)"
    assert problem.users.w.tolist() == pytest.approx([0.2] * 4 + [0.05] * 12)
    assert problem.best.tolist() == [0, 1, 2, 3]
    reward = problem.users.expected_reward(problem.best[None], "satisfaction")[0]
    assert reward == pytest.approx(1 - 0.9**4)


def test_without_gamma_it_is_the_cascade_model():
    assert (
        synthetic_problem("B_LB(L=3,K=2,p=0.5,gap=0.1)").checksum()
        == b_lb(3, 2, 0.5, 0.1).checksum()
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("B_LP(L=3)", "did you mean B_LB"),
        ("B_LB(L=3,K=2,p=0.5)", "gap is missing"),
        ("rank1:K=6,L=4,p=0.9,gap=0.5", "must hold"),
        ("B_LB(L=3,K=4,p=0.5,gap=0.1)", "K must be between"),
        ("B_LB(L=3,K=2,p=0.1,gap=0.5)", "must hold"),
        ("B_LB(L=three,K=2,p=0.1,gap=0.5)", "not a number"),
        ("B_LB(L=3,K=2,p=0.1,gap=0.05,delta=1)", "unknown parameter"),
    ],
)
def test_wrong_problems_are_named(text, message):
    with pytest.raises(LogevalError, match=message):
        synthetic_problem(text)


def test_queries_are_selected_and_unknown_ones_reported():
    given = models("DCM", (4, 5, 6), K=3)
    assert [p.query for p in lists(given, queries=["9@0", "7@0"])] == ["7@0", "9@0"]
    with pytest.raises(LogevalError, match=r"1@0.*2@0"):
        lists(given, queries=["1@0", "7@0", "2@0"])


def test_queries_with_fewer_items_than_positions_are_named():
    with pytest.raises(LogevalError, match="7@0"):
        lists(models("DCM", (2, 5), K=3))
    assert len(lists(models("DCM", (2, 5), K=3), positions=2)) == 2


def test_too_many_positions_and_unknown_rewards_are_refused():
    with pytest.raises(LogevalError, match="positions=4: the DCM of query 7@0 has 3"):
        lists(models("DCM", (5,), K=3), positions=4)
    with pytest.raises(LogevalError, match="unknown reward"):
        lists(models("PBM", (5,), K=3), reward="satisfaction")


def test_the_checksum_tells_problems_apart():
    one, two = lists(models("DCM", (5, 5), K=3))
    assert one.checksum() != two.checksum()
    assert lists(models("DCM", (5,), K=3), reward="clicks")[0].checksum() != one.checksum()


def test_a_needle_has_rows_and_columns():
    problem = synthetic_problem("rank1(K=6,L=4,p=0.25,gap=0.5)")
    assert (problem.rows, problem.positions) == (6, 4)
    assert synthetic_problem("RANK1:k=6,l=4,p=0.25,gap=0.5").checksum() == problem.checksum()


def test_lists_of_different_lengths_are_shortened_and_it_is_said():
    mixed = fitted_queries([*models("DCM", (5, 6), K=3), *models("PBM", (5,), K=2)])
    assert {fitted.K for fitted in mixed} == {2}
    (fact,) = shortened(mixed)
    assert (fact.value, fact.threshold) == (2, 3)
    assert fact.more == {"longest": 3, "positions": 2}
    assert shortened(fitted_queries(models("DCM", (5, 6), K=3), positions=2)) == []
