"""The rules that say which SERP a click belongs to, one by one, on logs written by hand."""

from tests.log.helpers import adds_up, ingest, lines


def clicks(serps):
    return [serp["clicks"] for serp in serps]


def test_a_personalized_log_becomes_serps():
    (serp,), counts = ingest(
        lines("7 M 3 42", "7 5 Q 0 100 8,9 11,1 12,2 13,3", "7 9 C 0 12"), "yandex-personalized"
    )
    assert serp == {
        "session_id": 7,
        "user_id": 42,
        "day": 3,
        "time": 5,
        "serp_id": 0,
        "query_id": 100,
        "region_id": None,
        "test": False,
        "items": [11, 12, 13],
        "domains": [1, 2, 3],
        "clicks": [0, 1, 0],
        "click_times": [None, 9, None],
        "propensities": None,
        "random": None,
        "rewards": None,
        "first": None,
    }
    assert adds_up(counts)


def test_a_relpred_log_becomes_serps():
    (serp,), _ = ingest(lines("7 5 Q 100 2 11 12 13", "7 9 C 12"), "yandex-relpred")
    assert serp["region_id"] == 2
    assert serp["items"] == [11, 12, 13]
    assert serp["clicks"] == [0, 1, 0]
    assert serp["user_id"] is serp["day"] is serp["domains"] is None


def test_a_late_personalized_click_belongs_to_the_earlier_serp_of_its_session():
    serps, counts = ingest(
        lines("1 M 1 1", "1 0 Q 0 5 9 11,1 12,1", "1 5 Q 1 6 9 21,1", "1 9 C 0 12", "1 10 C 1 21")
    )
    assert clicks(serps) == [[0, 1], [1]]
    assert counts["clicks_orphan"] == 0


def test_a_personalized_click_finds_its_serp_even_when_it_stands_later():
    serps, _ = ingest(lines("1 0 Q 0 5 9 11,1", "1 4 C 1 21", "1 5 Q 1 6 9 21,1"))
    assert clicks(serps) == [[0], [1]]


def test_the_serp_of_another_session_is_not_clicked():
    serps, counts = ingest(lines("1 0 Q 0 5 9 11,1", "2 0 Q 1 5 9 11,1", "2 3 C 0 11"))
    assert clicks(serps) == [[0], [0]]
    assert counts["clicks_orphan"] == 1


def test_a_relpred_click_belongs_to_the_most_recent_serp_that_shows_the_url():
    serps, _ = ingest(
        lines("1 0 Q 5 0 11 12", "1 1 Q 6 0 11 13", "1 2 Q 7 0 14", "1 3 C 11", "1 4 C 12")
    )
    assert clicks(serps) == [[0, 1], [1, 0], [0]]


def test_a_relpred_click_on_nothing_shown_is_an_orphan():
    serps, counts = ingest(lines("1 0 Q 5 0 11", "1 3 C 99"))
    assert clicks(serps) == [[0]]
    assert counts["clicks_orphan"] == 1
    assert adds_up(counts)


def test_a_click_before_any_query_is_an_orphan_in_both_formats():
    for log in (
        lines("1 M 1 1", "1 0 C 0 11", "1 1 Q 0 5 9 11,1"),
        lines("1 0 C 11", "1 1 Q 5 0 11"),
    ):
        serps, counts = ingest(log)
        assert clicks(serps) == [[0]]
        assert counts["clicks_orphan"] == 1


def test_a_click_on_a_url_that_its_serp_does_not_show_is_an_orphan():
    serps, counts = ingest(lines("1 0 Q 0 5 9 11,1", "1 1 Q 1 5 9 12,1", "1 2 C 0 12"))
    assert clicks(serps) == [[0], [0]]
    assert counts["clicks_orphan"] == 1


def test_the_same_query_in_two_regions_is_two_queries(tmp_path):
    serps, _ = ingest(lines("1 0 Q 5 0 11", "2 0 Q 5 1 11"))
    assert [(s["query_id"], s["region_id"]) for s in serps] == [(5, 0), (5, 1)]


def test_repeat_clicks_keep_their_count_and_the_time_of_the_first():
    (serp,), counts = ingest(lines("1 0 Q 5 0 11 12", "1 3 C 12", "1 7 C 12", "1 9 C 12"))
    assert serp["clicks"] == [0, 3]
    assert serp["click_times"] == [None, 3]
    assert (counts["clicks_matched"], counts["clicks_repeat"]) == (1, 2)


def test_a_url_twice_on_a_serp_is_clicked_at_its_first_place():
    (serp,), _ = ingest(lines("1 0 Q 5 0 11 12 11", "1 3 C 11"))
    assert serp["clicks"] == [1, 0, 0]


def test_test_records_are_kept_and_marked():
    serps, counts = ingest(lines("1 M 1 1", "1 0 Q 0 5 9 11,1", "1 1 T 1 6 9 12,1"))
    assert [s["test"] for s in serps] == [False, True]
    assert (counts["queries"], counts["test_queries"]) == (2, 1)


def test_lists_may_have_any_length_from_1_to_50():
    fifty = " ".join(str(i) for i in range(50))
    serps, counts = ingest(lines("1 0 Q 5 0 11", f"1 0 Q 5 0 {fifty}", f"1 0 Q 5 0 {fifty} 50"))
    assert [len(s["items"]) for s in serps] == [1, 50]
    assert counts["rejected"] == 1


def test_metadata_holds_for_its_session_only():
    serps, _ = ingest(lines("1 M 3 42", "1 0 Q 0 5 9 11,1", "2 0 Q 0 5 9 11,1"))
    assert [(s["user_id"], s["day"]) for s in serps] == [(42, 3), (None, None)]


def test_a_bad_line_does_not_end_a_session():
    serps, counts = ingest(lines("1 0 Q 5 0 11", "oops", "2 x Q 1", "1 3 C 11"), "yandex-relpred")
    assert clicks(serps) == [[1]]
    assert counts["rejected"] == 2
