"""What is said of a model from the deviations of its checks, made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from logeval.clicks.quality.deviations import (
    CHECKS,
    Components,
    Deviations,
    Layout,
    ModelVerdict,
    verdict_of,
    words,
)

CRITICAL = 4.0


def level(deviating, judged=None, parts=None, K=4):
    """Deviations z of the components {(check, label): (z, simulated, log)}; those of others 0."""
    parts = parts or Layout(K).components
    C = len(parts.check)
    z, expected, observed = np.zeros((1, C)), np.full(C, 0.5), np.full(C, 0.5)
    for i, key in enumerate(zip(parts.check, parts.label, strict=True)):
        if key in deviating:
            z[0, i], expected[i], observed[i] = deviating[key]
    there = np.array([judged is None or check in judged for check in parts.check])
    return Deviations(parts, z, there, observed, expected, expected, observed, np.ones(C))


def said(check, of, **options):
    """The words for {label: (z, simulated, log)} of one check."""
    return words(check, level({(check, k): v for k, v in of.items()}, **options), CRITICAL)


# -- one deviation ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "label", "more", "less"),
    [
        ("clicks-per-serp", "2 clicks", "few SERPs with 2 clicks", "many SERPs with 2 clicks"),
        ("clicks-per-serp", "1 click", "few SERPs with 1 click", "many SERPs with 1 click"),
        ("first-click", "rank 3", "few first clicks at rank 3", "many first clicks at rank 3"),
        ("last-click", "rank 3", "few last clicks at rank 3", "many last clicks at rank 3"),
        ("distance", "distance 2", "few clicks at distance 2, in ranks, from the click before",
         "many clicks at distance 2, in ranks, from the click before"),
    ],
)  # fmt: skip
def test_where_the_log_has_more_the_model_has_too_few(check, label, more, less):
    numbers = "(.021 in simulation, .042 in the log)"
    assert said(check, {label: (9.0, 0.021, 0.042)}) == f"too {more} {numbers}"
    assert said(check, {label: (-9.0, 0.021, 0.042)}) == f"too {less} {numbers}"


@pytest.mark.parametrize(
    ("check", "label", "text"),
    [
        ("ctr-by-rank", "rank 2", "CTR too {} at rank 2"),
        ("after-click", "rank 3 after 1", "CTR at rank 3 after a click at 1 too {}"),
        ("calibration", "0.05 to 0.1", "click probabilities of 0.05 to 0.1 too {}"),
    ],
)
def test_where_the_log_clicks_more_the_model_is_too_low(check, label, text):
    numbers = " (.100 in simulation, .300 in the log)"
    assert said(check, {label: (9.0, 0.1, 0.3)}) == text.format("low") + numbers
    assert said(check, {label: (-9.0, 0.1, 0.3)}) == text.format("high") + numbers


def test_shares_have_three_digits_and_1_stays_1():
    text = said("ctr-by-rank", {"rank 1": (-9.0, 1.0, 0.00049)})
    assert text.endswith("(1.000 in simulation, .000 in the log)")
    text = said("ctr-by-rank", {"rank 1": (-9.0, 0.0625, 0.9996)})
    assert text.endswith("(.062 in simulation, 1.000 in the log)")


# -- several beside each other ----------------------------------------------------------------


def test_neighbours_that_deviate_likewise_are_one_run():
    text = said("ctr-by-rank", {f"rank {k}": (z, 0.1 * k, 0.2 * k) for k, z in
                                ((1, 3.9), (2, 4.0), (3, 9.0), (4, 5.0))})  # fmt: skip
    assert text == "CTR too low at ranks 2 to 4 (rank 3: .300 in simulation, .600 in the log)"


def test_neighbours_that_deviate_the_other_way_are_not():
    text = said("ctr-by-rank", {"rank 1": (-8.0, 0.3, 0.2), "rank 2": (9.0, 0.1, 0.2),
                                "rank 3": (-8.0, 0.3, 0.2)})  # fmt: skip
    assert text == "CTR too low at rank 2 (.100 in simulation, .200 in the log)"
    text = said("ctr-by-rank", {"rank 1": (8.0, 0.3, 0.2), "rank 2": (-9.0, 0.1, 0.2),
                                "rank 3": (-4.0, 0.3, 0.2)})  # fmt: skip
    assert text == "CTR too high at ranks 2 to 3 (rank 2: .100 in simulation, .200 in the log)"


def test_a_run_ends_where_the_check_does():
    """The last rank of one check stands beside the first of the next."""
    both = {("ctr-by-rank", "rank 4"): (9.0, 0.1, 0.2), ("first-click", "rank 1"): (9.0, 0.3, 0.4)}
    beside = level(both)
    assert words("ctr-by-rank", beside, CRITICAL).startswith("CTR too low at rank 4 (")
    assert words("first-click", beside, CRITICAL).startswith("too few first clicks at rank 1 (")
    beside = level(both | {("ctr-by-rank", "rank 3"): (5.0, 0.1, 0.2)})
    assert words("ctr-by-rank", beside, CRITICAL).startswith("CTR too low at ranks 3 to 4 (")
    some = {"rank 1": (5.0, 0.1, 0.2), "rank 2": (9.0, 0.1, 0.2)}
    assert said("first-click", some).startswith("too few first clicks at ranks 1 to 2 (rank 2: ")


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        (["1 click", "2 clicks"], "1 to 2 clicks"),
        (["0 clicks", "1 click"], "0 to 1 click"),
        (["3 clicks", "4 clicks", "5+ clicks"], "3+ clicks"),
        (["5+ clicks"], "5+ clicks"),
    ],
)
def test_numbers_of_clicks_in_a_row(labels, text):
    found = said("clicks-per-serp", dict.fromkeys(labels, (9.0, 0.1, 0.2)))
    assert found.startswith(f"too few SERPs with {text} (")


def test_ranks_distances_and_ranges_in_a_row():
    some = (9.0, 0.1, 0.2)
    assert said("last-click", {"rank 2": some, "rank 3": some}).startswith(
        "too few last clicks at ranks 2 to 3 ("
    )
    assert said("distance", {"distance 1": some, "distance 2": some}).startswith(
        "too few clicks at distances 1 to 2, in ranks, from the click before ("
    )
    assert said("calibration", {"0.05 to 0.1": some, "0.1 to 0.2": some}) == (
        "click probabilities of 0.05 to 0.2 too low (0.05 to 0.1: .100 in simulation, .200 in the "
        "log)"
    )


def test_pairs_of_ranks_are_counted_not_joined():
    pairs = {"rank 2 after 1": (9.0, 0.1, 0.2), "rank 3 after 1": (4.0, 0.3, 0.4),
             "rank 4 after 1": (3.9, 0.3, 0.2), "rank 4 after 2": (-4.0, 0.3, 0.2)}  # fmt: skip
    assert said("after-click", pairs) == (
        "CTR at rank 2 after a click at 1 too low (.100 in simulation, .200 in the log; 3 of 6 "
        "pairs of ranks off)"
    )


def test_items_are_counted_and_the_clearest_is_named():
    labels = ["item 7", "item 8", "item 9"]
    parts = Components(["top-items"] * 3, labels, np.arange(3.0), np.arange(3), np.arange(3))
    some = {"item 7": (4.0, 0.3, 0.4), "item 8": (-9.0, 0.2, 0.1), "item 9": (3.9, 0.5, 0.6)}
    assert said("top-items", some, parts=parts) == (
        "CTR of 2 of 3 items shown most off (item 8: .200 in simulation, .100 in the log)"
    )


def test_what_is_not_judged_is_not_named():
    found = level({("ctr-by-rank", "rank 1"): (99.0, 0.1, 0.2), ("ctr-by-rank", "rank 3"):
                   (-5.0, 0.3, 0.2)})  # fmt: skip
    first = found.parts.label.index("rank 1")
    found.judged[first] = False
    assert words("ctr-by-rank", found, CRITICAL).startswith("CTR too high at rank 3 (")


# -- all checks of a model --------------------------------------------------------------------


def row(check, query=None, faulted=False, components=4, serps=1234, error=0.125):
    return {"check": check, "query": query, "faulted": faulted, "components": components,
            "serps": serps, "error": error}  # fmt: skip


def everything(faulted=(), unjudged=()):
    return [row(c, None, c in faulted, 0 if c in unjudged else 4) for c in CHECKS]


def test_a_model_is_cleared_when_nothing_faults_it():
    found = verdict_of("DCM", everything(), level({}), CRITICAL)
    assert found.cleared
    assert found.line == "DCM: no check over all queries faults it (1,234 SERPs)"
    assert (found.queries, found.faulted_queries) == (0, 0)
    assert found.right == list(CHECKS)


def test_faults_come_with_the_clearest_first_then_what_is_right():
    deviating = {("ctr-by-rank", "rank 2"): (5.0, 0.1, 0.2),
                 ("last-click", "rank 1"): (-9.0, 0.4, 0.2)}  # fmt: skip
    rows = everything(["ctr-by-rank", "last-click"], ["distance", "after-click", "top-items"])
    found = verdict_of("PBM", rows, level(deviating), CRITICAL)
    assert not found.cleared
    assert found.faulted == ["last-click", "ctr-by-rank"]
    assert found.line == (
        "PBM: too many last clicks at rank 1 (.400 in simulation, .200 in the log); CTR too low at "
        "rank 2 (.100 in simulation, .200 in the log); right: number of clicks, first clicks, "
        "examination by swaps, calibration; too few clicks to judge distance between clicks, CTR "
        "after a click, CTR of the items shown most (1,234 SERPs)"
    )


def test_all_that_is_right_is_named():
    deviating = {("clicks-per-serp", "0 clicks"): (5.0, 0.1, 0.2)}
    found = verdict_of("CM", everything(["clicks-per-serp"]), level(deviating), CRITICAL)
    assert found.line.endswith(
        "; right: CTR by rank, first clicks, last clicks, distance between clicks, CTR after a "
        "click, CTR of the items shown most, examination by swaps, calibration (1,234 SERPs)"
    )


def test_queries_are_faulted_by_any_of_their_checks():
    rows = everything()
    rows += [row("ctr-by-rank", "1@0", True, serps=9), row("first-click", "1@0", serps=9)]
    rows += [row("ctr-by-rank", "2@0", serps=9), row("first-click", "2@0", serps=9)]
    rows += [row("ctr-by-rank", "3@0", serps=9), row("first-click", "3@0", True, serps=9)]
    found = verdict_of("DCM", rows, level({}), CRITICAL)
    assert (found.queries, found.faulted_queries) == (3, 2)
    assert found.faulted == []
    assert not found.cleared
    assert found.line == (
        "DCM: no check over all queries faults it; faulted by itself in 2 of 3 queries (1,234 "
        "SERPs)"
    )


def test_a_model_that_is_right_in_nothing_is_not_said_to_be():
    found = ModelVerdict("CM", ["wrong"], ["ctr-by-rank"], [], [], 0, 0, 10)
    assert found.line == "CM: wrong (10 SERPs)"
    assert not found.cleared
