"""Lists in random order as the truth of estimators: rankers, scores by hand, from the log on."""

import numpy as np
import pytest

from logeval import generate, ingest, replay_validate
from logeval.clicks.estimation.patterns import patterns_of
from logeval.errors import LogevalError
from logeval.replay import validation
from logeval.replay.estimators import parse_estimators
from logeval.replay.logged import read_logged
from logeval.replay.validation import RANKERS, Judged, Validation, against_random, rankers, scores
from tests.clicks.examples import table_of


def test_rankers_are_cut_by_the_rank_that_the_first_item_has_in_ranked_lists():
    items = list(range(1, 9))
    ranked = patterns_of(table_of([(0, items, 0, 9), (0, items, 1, 1)]))
    rows = [(0, [i, *(x for x in items if x != i)], 0, 5) for i in items]
    random = patterns_of(table_of([*rows, (0, [99, *items[:7]], 0, 5)]))
    group = rankers(random, ranked)
    first = random.item_ids[random.items[:, 0]]
    order = [*items, 99]  # what the ranker never showed is last
    assert [int(group[first == i][0]) for i in order] == [n * RANKERS // 9 for n in range(9)]


def test_scores_by_hand():
    truth = np.array([[1.0, 2.0], [0.5, 2.0], [np.nan, 1.0]])
    error = np.full((3, 2), 0.1)
    value = np.array([[[1.3, 2.15], [0.5, 2.4], [1.0, 2.2]]])
    half = np.array([[[0.1, 0.1], [0.1, np.nan], [0.1, 0.1]]])
    (row,) = scores(Judged(truth, error, value, half), ["X"], 3)
    # widths are hypot(0.1, 0.196) = 0.22; judged: 1.3 - 1.0, 2.15 - 2.0, 0.5 - 0.5 and 2.2 - 1.0
    assert row == {"estimator": "X", "positions": 3, "lists": 4, "within": 0.5, "pairs": 3,
                   "order": pytest.approx(2 / 3)}  # fmt: skip
    # pairs told apart: 1.0 and 0.5 (right); 2.0 and 1.0, twice: 2.15 against 2.2 is wrong


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rankers")
    generate(folder / "log.csv", format="table", sessions=4000, queries=3, explore=0.3,
             randomised=0.3, seed=5, quiet=True)  # fmt: skip
    return ingest(folder / "log.csv", out=folder / "log", quiet=True)


def test_validation_scores_intervals_and_order_on_random_lists(log, tmp_path):
    asked = {"parts": 4, "positions": [1, 3], "clips": [10.0], "quiet": True}
    out = tmp_path / "v"
    found = replay_validate(log, randomised=True, estimators=["Item", "RCTR"], out=out, **asked)
    rows = {row["estimator"]: row for row in found.randomised}
    assert {row["positions"] for row in found.randomised} == {3}  # the largest
    assert rows["Item"]["within"] > rows["RCTR"]["within"]
    assert rows["Item"]["order"] > 0.5
    assert rows["RCTR"]["order"] == 0.0  # it gives all rankers of a query one value
    assert Validation.read(out).randomised == found.randomised
    text = " ".join(found.verdict().text().split())
    assert "RCTR's 95% intervals hold in" in text
    assert "too few: its assumptions fail on this log" in text
    assert replay_validate(log, estimators=["Item"], **asked).randomised is None


def test_words_say_what_stands_in_for_lists_that_were_not_shown(log):
    asked = {"parts": 4, "positions": [3], "clips": [10.0], "quiet": True}
    found = replay_validate(log, randomised=True, estimators=["List", "DR(dcm)"], **asked)
    found.table.loc[found.table["estimator"] != "RCTR", "support"] = 0.3
    for row in found.randomised:
        row["lists"] = 0 if row["estimator"] == "List" else 20
        row["within"] = 0.95
    text = " ".join(found.verdict().text().split())
    shown = "at K = 3 the rest of the log has shown 30% of a part (at the smallest), and "
    assert f"List: {shown}what it has not shown counts as no clicks" in text
    assert f"DR(dcm): {shown}for what it has not shown its DCM answers" in text
    assert "- List: intervals and the order of rankers were not judged" in text


def test_estimators_see_the_ranked_lists_alone(log, monkeypatch):
    seen = []

    def spied(*args, **asked):
        seen.append(read_logged(*args, **asked))
        return seen[-1]

    monkeypatch.setattr(validation, "read_logged", spied)
    whole = read_logged(log, part="CASE WHEN random THEN 0 ELSE -1 END")
    random = whole.patterns.take(whole.part >= 0)
    list(against_random(log, random, 2, parse_estimators(["RCTR"]), "per-query", 0.0, 0, True))
    (ranked,) = seen
    flags = log.serps("random")["random"].to_pandas()
    assert ranked.patterns.count.sum() == (~flags).sum()
    assert random.count.sum() == flags.sum()


def test_propensities_in_place_of_a_mark_are_refused_with_the_reason(tmp_path):
    rows = "".join(f"{n},1,{n % 2},a b,{n % 2} 0,0.5 0.5\n" for n in range(40))
    head = "session,query,day,items,clicks,propensities\n"
    (tmp_path / "log.csv").write_text(head + rows)
    log = ingest(tmp_path / "log.csv", out=tmp_path / "log", quiet=True)
    with pytest.raises(LogevalError, match="propensities are of single results, which do not say"):
        replay_validate(log, randomised=True, positions=[1], quiet=True)
