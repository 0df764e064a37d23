"""What is said of each policy."""

import pytest

from logeval.policies.registry import POLICIES, catalogue, parse_policies
from logeval.running.names import options
from logeval.tracks.registry import TRACKS


@pytest.mark.parametrize("track", [None, *TRACKS])
def test_everything_is_said_of_every_policy(track):
    for row in catalogue(track):
        assert row["about"].endswith(".")
        assert row["must know"]
        assert row["feedback"]
        assert row["cost of a step"]
        assert row["paper"] or row["policy"] in ("Random", "Oracle", "Logged")


def test_a_track_lists_policies_as_they_are_there():
    rows = {row["policy"]: row for row in catalogue("contextual")}
    assert rows["dcmKL-UCB"]["options"].startswith("restart=never|block")
    assert rows["Oracle"]["options"] == "users=each|common"
    assert [rows[name]["track"] for name in ("dcmKL-UCB", "Oracle")] == ["contextual", "any"]
    assert "Rank1ElimKL" not in rows


def test_no_two_policies_have_the_same_place_in_figures():
    places = [cls.FIGURE for cls in POLICIES.values() if hasattr(cls, "FIGURE")]
    assert sorted(places) == list(range(len(places)))


def test_the_options_parse_as_they_are_printed():
    assert options(POLICIES["UniRank"]) == "order=descending, optimism=none|loglog"
    assert "c=0.5," in options(POLICIES["CascadeLinUCB"])
    assert options(POLICIES["RankedExp3"]).startswith("gamma=computed")
    for row in catalogue():
        for option in filter(None, row["options"].split(", ")):
            key, values = option.split("=", 1)
            for value in values.split("|"):
                if value != "computed":
                    parse_policies([f"{row['policy']}({key}={value})"])


def test_what_a_policy_must_know_is_what_it_asks_for():
    for row in catalogue():
        assert ("examination" in row["asks the simulator for"]) == (
            "examination," in row["must know"]
        )
        assert ("base_list" in row["asks the simulator for"]) == ("base list" in row["must know"])
