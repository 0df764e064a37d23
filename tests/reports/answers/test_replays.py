"""What replayed policies earned, in words: tables by hand, and a log that cannot follow."""

import numpy as np
import pandas as pd
import pytest

from logeval import replay_policy
from logeval.errors import LogevalError
from logeval.replay.policy import PolicyReplay
from tests.serps import Serp, write_serps


def rows_of(policy, clicks, reached=None, queries=("1",), serps=10_000):
    """Clicks per step of four shuffles at the steps 50 and 200; beyond what was reached, none."""
    rows = []
    for query in queries:
        end = (reached or {}).get(query, 200)
        for run, own in enumerate(clicks):
            for t in (50, 200):
                rows.append(
                    {"policy": policy, "query": query, "run": run, "t": t,
                     "clicks": own * t if t <= end else np.nan, "steps": end, "passed": 5 * end,
                     "serps": serps, "exhausted": end < 200}
                )  # fmt: skip
    return rows


def verdict(*rows, logged=0.5, **arguments):
    table = pd.DataFrame([row for rows_ in rows for row in rows_])
    known = dict.fromkeys(table["query"].unique(), logged)
    manifest = {"arguments": {"positions": 2, **arguments}}
    return PolicyReplay(table, known, manifest).verdict()


NEAR = (0.69, 0.7, 0.71, 0.7)
LOW = (0.19, 0.2, 0.21, 0.2)


def test_one_policy_is_set_beside_the_ranker_of_the_log():
    found = verdict(rows_of("A", NEAR))
    assert found.answer.startswith(
        "On the logged searches A earned 0.70 (0.68 to 0.72) clicks per "
    )
    assert "in the first 2 positions over its first 200 searches of each query." in found.answer
    assert found.answer.endswith("The log's own ranker earned 0.50, less than A.")
    assert found.limits == []


@pytest.mark.parametrize(
    ("logged", "said"), [(0.9, ", more than A."), (0.705, ", which cannot be told from it.")]
)
def test_the_ranker_of_the_log_may_be_better_or_not_told_apart(logged, said):
    assert verdict(rows_of("A", NEAR), logged=logged).answer.endswith(said)


def test_policies_whose_intervals_overlap_are_not_told_apart():
    found = verdict(rows_of("A", NEAR), rows_of("B", (0.6, 0.8, 0.7, 0.65)), rows_of("C", LOW))
    assert "B 0.69 (" in found.answer
    assert "It cannot be told apart from B: their intervals overlap." in found.answer
    assert found.because[1].startswith("C: 0.20 (")
    clear = verdict(rows_of("A", NEAR), rows_of("C", LOW))
    assert ", and no other policy's interval reaches up to its own." in clear.answer


def test_policies_are_compared_over_the_steps_that_all_reached():
    found = verdict(rows_of("A", NEAR), rows_of("B", LOW, reached={"1": 100}))
    assert "over its first 50 searches of each query" in found.answer
    assert "the log follows them no further than 50 searches on some query" in found.limits[0]
    assert "as 20.0% of the searches that pass show what is wanted" in found.limits[0]
    assert found.next == ["the log follows policies further with positions=1 or items=4"]


def test_queries_on_which_a_policy_never_started_are_left_out_and_named():
    found = verdict(rows_of("A", NEAR, queries=("1", "2"), reached={"2": 0}))
    assert "over its first 200 searches" in found.answer
    assert found.limits[0] == (
        "not covered are 1 of 2 queries, where the log does not show the first lists of some "
        "policy: 2"
    )


def test_one_shuffle_has_no_interval():
    assert "earned 0.70, the same." in verdict(rows_of("A", (0.7,)), logged=0.7).answer
    found = verdict(rows_of("A", (0.7,)))
    assert "A earned 0.70 clicks per search" in found.answer
    assert "though that may be chance" in found.answer
    assert found.limits == ["with one shuffle of the log there is no interval"]


def fixed_lists(n=40):
    """Every search shows the items 1 to 4 in this order."""
    return [Serp(0, [1, 2, 3, 4], [1, 0, 0, 0], session_id=i) for i in range(n)]


def test_policies_that_no_search_answers_are_an_error_that_names_the_remedy(tmp_path):
    log = write_serps(tmp_path, fixed_lists())
    said = (
        r"positions=4: the log never shows the lists that Random asked for: 0 of 80 searches of 1 "
        r"queries were accepted; ask for fewer positions, as positions=1"
    )
    with pytest.raises(LogevalError, match=said):
        replay_policy(log, "Random", positions=4, shuffles=2, seed=5, quiet=True)


def test_a_log_that_hardly_follows_a_policy_does_not_say_what_it_earns(tmp_path):
    log = write_serps(tmp_path, fixed_lists())
    found = replay_policy(log, "Random", positions=2, shuffles=8, quiet=True).verdict()
    assert found.answer.startswith(
        "The log cannot follow Random: it shows the lists that are asked "
    )
    assert found.answer.endswith("That is too little to say what would be earned.")
    assert "earned 0" not in found.text()
    assert "nan" not in found.text()
