"""Single placements, clicks in a second file, a second reward, Metarank, pages that begin later."""

import json

import numpy as np
import pandas as pd
import pytest

import logeval
from logeval.errors import LogevalError
from tests.log.named import adds_up, named

PLACED = pd.DataFrame(
    {
        "timestamp": [f"2024-01-0{1 + k // 30} 10:00:{k % 30:02d}+00:00" for k in range(60)],
        "item_id": [f"item-{k % 4}" for k in range(60)],
        "position": [1 + (k // 4) % 3 for k in range(60)],
        "click": [int(k % 7 == 0) for k in range(60)],
        "propensity_score": [0.25] * 60,
    }
)


@pytest.fixture(scope="module")
def placements():
    return logeval.ingest(PLACED, quiet=True)


def test_single_placements_stay_as_they_are(placements):
    assert placements.holds == "placements"
    assert adds_up(placements)
    with placements.connect(holds="placements") as db:
        rows = db.execute("SELECT * FROM placements").df()
    names = placements.names.names_of("item", rows["item_id"])
    assert names == PLACED["item_id"].tolist()
    assert rows["position"].tolist() == PLACED["position"].tolist()
    assert rows["clicks"].tolist() == PLACED["click"].tolist()
    assert set(rows["propensity"]) == {0.25}
    assert set(rows["query_id"]) == {0}
    assert rows["day"].tolist() == [1] * 30 + [2] * 30
    assert rows["time"].tolist()[:2] == [36_000, 36_001]


def test_placements_are_counted_to_be_described_and_fitted(placements):
    found = placements.describe()
    assert found.totals == {
        "queries": 1, "items": 4, "positions": 3, "impressions": 60, "clicks": 9,
    }  # fmt: skip
    by_rank = PLACED.groupby("position")["click"].mean()
    assert np.allclose(found.ctr_by_rank["ctr"], by_rank)
    fitted = logeval.fit_models(placements, ["rctr", "dctr"], quiet=True)
    assert {model for model, *_ in fitted.table()[["model"]].itertuples(index=False)} == {
        "RCTR",
        "DCTR",
    }
    with pytest.raises(LogevalError, match=r"placements.*DCM depends"):
        logeval.fit_models(placements, ["dcm"], quiet=True)
    with pytest.raises(LogevalError, match="placements"):
        placements.serps()


def test_bad_placements_are_rejected_with_their_rows(tmp_path):
    frame = PLACED.astype(object)
    frame.loc[3, "position"], frame.loc[5, "propensity_score"] = "top", 1.5
    frame.to_csv(tmp_path / "a.csv", index=False)
    log = logeval.ingest(tmp_path / "a.csv", tmp_path / "out", max_bad=0.1, quiet=True)
    assert (log.counts["placements"], log.counts["rejected"]) == (58, 2)
    rows = pd.read_csv(tmp_path / "out" / "rejects.tsv", sep="\t")
    assert rows["line"].tolist() == [4, 6]
    assert rows["text"].tolist() == ["top", "1.5"]


ROWS = (
    "search_id,query,product_url,position,bought\ns1,q,a,1,0\ns1,q,b,2,1\ns2,r,c,1,2.5\ns2,r,a,2,\n"
)
CLICKS = "search_id,product_url,time\ns1,b,2024-01-01\ns1,zz,2024-01-01\ns9,a,2024-01-01\ns2,c,\n"


@pytest.fixture
def two_files(tmp_path):
    (tmp_path / "rows.csv").write_text(ROWS)
    (tmp_path / "clicks.csv").write_text(CLICKS)
    return tmp_path / "rows.csv", tmp_path / "clicks.csv"


def test_clicks_may_be_in_a_second_file(two_files):
    rows, clicks = two_files
    log = logeval.ingest(rows, clicks=clicks, quiet=True)
    assert [(page["items"], page["clicks"]) for page in named(log)] == [
        (["a", "b"], [0, 1]),
        (["c", "a"], [1, 0]),
    ]
    assert (log.counts["clicks_apart"], log.counts["clicks_orphan"]) == (2, 2)
    assert adds_up(log)
    with pytest.raises(LogevalError, match=r"no column for clicks \(clicks on the result\) in"):
        logeval.ingest(rows, format="long", quiet=True)
    clicks.write_text(CLICKS.replace("search_id", "visit"))
    with pytest.raises(LogevalError, match=r"clicks\.csv: there is no column for search"):
        logeval.ingest(rows, clicks=clicks, quiet=True)


def test_a_second_reward_stands_beside_the_clicks(two_files):
    rows, clicks = two_files
    log = logeval.ingest(rows, clicks=clicks, reward_column="bought", quiet=True)
    assert log.serps("rewards")["rewards"].to_pylist() == [[0, 1], [2.5, None]]
    pages = pd.DataFrame({"query": ["q"], "items": [["a", "b"]], "clicks": [[1, 0]]})
    log = logeval.ingest(pages.assign(sold=[[3.0, 0.5]]), reward_column="sold", quiet=True)
    assert log.serps("rewards")["rewards"].to_pylist() == [[3.0, 0.5]]
    assert logeval.ingest(pages, quiet=True).serps("rewards")["rewards"].to_pylist() == [None]
    with pytest.raises(LogevalError, match="no column 'bough'"):
        logeval.ingest(rows, clicks=clicks, reward_column="bough", quiet=True)


def test_pages_that_begin_later_keep_their_rank_and_are_not_fitted():
    frame = pd.DataFrame(
        [
            {"search_id": s, "query": "q", "item": f"i{k}", "position": k, "clicks": int(k == s)}
            for s, first in enumerate([1, 1, 11, 1])
            for k in range(first, first + 3)
        ]
    )
    log = logeval.ingest(frame, quiet=True)
    assert log.serps("first")["first"].to_pylist() == [None, None, 11, None]
    assert (log.counts["pages_later"], log.counts["pages_with_gaps"]) == (1, 0)
    assert log.describe().ctr_by_rank["rank"].tolist() == [1, 2, 3, 11, 12, 13]
    fitted = logeval.fit_models(log, ["rctr"], quiet=True)
    assert fitted.table()["position"].max() == 3


def test_rankings_of_metarank_and_their_interactions(tmp_path):
    records = [
        {"event": "ranking", "id": "r1", "timestamp": "1599391467000", "user": "u",
         "fields": [{"name": "query", "value": "jacket"}, {"name": "size", "value": 3}],
         "items": [{"id": "c", "relevancy": 2.0}, {"id": "a"}, {"id": "b"}]},
        {"event": "interaction", "id": "i1", "ranking": "r1", "timestamp": "1599391468000",
         "user": "u", "type": "click", "item": "a"},
        {"event": "interaction", "id": "i2", "ranking": "r1", "timestamp": "1599391469000",
         "user": "u", "type": "purchase", "item": "a"},
        {"event": "item", "id": "x", "timestamp": "1599391400000", "item": "a", "fields": []},
    ]  # fmt: skip
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    log = logeval.ingest(path, reward_column="purchase", quiet=True)
    assert log.manifest["formats"] == ["metarank"]
    (page,) = named(log, "rewards", "click_times")
    assert page == {
        "query": "jacket", "user": "u", "items": ["c", "a", "b"], "clicks": [0, 1, 0],
        "rewards": [0, 1, 0], "click_times": [None, 41_068, None],
    }  # fmt: skip
    assert adds_up(log)


def ubi(name, search="1", **more):
    event = {"action_name": name, "query_id": search, "timestamp": "2024-01-01T00:00:05Z"}
    item, ordinal = more.pop("item", None), more.pop("ordinal", None)
    attributes = {"object": {"object_id": item}, "position": {"ordinal": ordinal}}
    return event | {"event_attributes": attributes} | more


def shown(tmp_path, *records, **options):
    path = tmp_path / "ubi.ndjson"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    log = logeval.ingest(path, format="ubi", quiet=True, **options)
    return log, [(page["query"], page["items"], page["clicks"]) for page in named(log)]


def test_of_two_items_at_a_place_that_counts_which_was_shown_last_before_the_click(tmp_path):
    events = [
        ubi("impression", item="old", ordinal=0, user_query="shoes"),
        ubi("impression", item="new", ordinal=0, timestamp="2024-01-01T00:01:00Z"),
        ubi("impression", item="b", ordinal=1),
    ]
    assert shown(tmp_path, *events)[1] == [("shoes", ["new", "b"], [0, 0])]
    click = ubi("click", item="old", ordinal=0, timestamp="2024-01-01T00:00:09Z")
    log, pages = shown(tmp_path, *events, click)
    assert pages == [("shoes", ["old", "b"], [1, 0])]
    assert log.counts["views_doubled"] == 1


def test_applications_and_conversions_of_ubi(tmp_path):
    events = [
        ubi("impression", item="a", ordinal=1, user_query="q", application="shop"),
        ubi("add_to_cart", item="a", application="shop"),
        ubi("impression", search="2", item="a", ordinal=1, user_query="r", application="help"),
    ]
    log, pages = shown(tmp_path, *events, applications=["shop"], reward_column="add_to_cart")
    assert pages == [("q", ["a"], [0])]
    assert log.serps("rewards")["rewards"].to_pylist() == [[1.0]]
    assert log.counts["other_applications"] == 1
    assert adds_up(log)


@pytest.mark.parametrize("shuffled", [True, False])
def test_a_log_in_which_order_means_nothing_says_so(shuffled):
    rng = np.random.default_rng(4)
    pages = []
    for _ in range(3_000):
        clicks = (rng.random(8) < 0.6 / np.arange(1, 9)).astype(int)
        order = rng.permutation(8) if shuffled else np.arange(8)
        items = rng.permutation(8)
        pages.append({"query": f"q{rng.integers(2_000)}", "items": items[order].tolist(),
                      "clicks": clicks[order].tolist()})  # fmt: skip
    found = logeval.ingest(pd.DataFrame(pages), quiet=True).describe()
    assert found.ordered != shuffled
    assert found.sparse
    codes = [fact.code for fact in found.facts]
    assert codes == (["order-lost"] if shuffled else []) + ["sparse-log"]
