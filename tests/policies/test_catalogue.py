"""What is said of each policy."""

from logeval.policies.catalogue import ENTRIES, catalogue, options
from logeval.policies.registry import POLICIES, parse_policies


def test_every_list_and_pair_policy_has_an_entry():
    known = [name for name in POLICIES if parse_policies([name])[0].track in ("ranking", "rank1")]
    assert set(known) <= set(ENTRIES) <= set(POLICIES)


def test_the_options_parse_as_they_are_printed():
    assert options(POLICIES["UniRank"]) == "order=descending, optimism=none|loglog"
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
