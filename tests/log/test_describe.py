"""The description of a log, against the same figures counted in plain Python."""

import json
import math
from collections import Counter
from pathlib import Path

import pytest

import logeval

GOLDEN = Path(__file__).parent.parent / "golden"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    source = folder / "log.tsv"
    tests = "".join(f"9{i}\t0\tT\t0\t5\t1\t5000,1\n" for i in range(3))
    source.write_text((GOLDEN / "tiny.personalized.tsv").read_text() + tests)
    return logeval.ingest(source, folder / "out", quiet=True)


def test_totals(log):
    serps = log.serps().to_pylist()
    totals = log.describe().totals
    assert totals == {
        "sessions": len({s["session_id"] for s in serps}),
        "serps": 1803,
        "test_serps": 3,
        "queries": len({s["query_id"] for s in serps}),
        "items": len({i for s in serps for i in s["items"]}),
        "users": len({s["user_id"] for s in serps} - {None}),
        "days": len({s["day"] for s in serps} - {None}),
        "clicked_results": sum(c > 0 for s in serps for c in s["clicks"]),
        "clicks": sum(sum(s["clicks"]) for s in serps),
    }


def test_ctr_by_rank_and_clicks_per_serp(log):
    serps = [s for s in log.serps().to_pylist() if not s["test"]]
    found = log.describe()
    for row in found.ctr_by_rank.itertuples():
        shown = [s for s in serps if len(s["items"]) >= row.rank]
        assert row.serps == len(shown)
        assert row.ctr == pytest.approx(
            sum(s["clicks"][row.rank - 1] > 0 for s in shown) / len(shown)
        )
    counts = Counter(sum(c > 0 for c in s["clicks"]) for s in serps)
    assert (
        dict(zip(found.clicks_per_serp["clicked"], found.clicks_per_serp["serps"], strict=True))
        == counts
    )
    assert found.clicks_per_serp["share"].sum() == pytest.approx(1)


def test_top_queries(log):
    serps = [s for s in log.serps().to_pylist() if not s["test"]]
    frequency = Counter(s["query_id"] for s in serps)
    top = log.describe(3).top_queries
    assert list(top["serps"]) == [n for _, n in frequency.most_common(3)]
    assert list(log.top_queries(3)["serps"]) == list(top["serps"])
    for row in top.itertuples():
        own = [s for s in serps if str(s["query_id"]) == row.query]
        lists = Counter(tuple(s["items"]) for s in own)
        assert row.items == len({i for items in lists for i in items})
        assert row.lists == len(lists)
        assert row.clicks_per_serp == pytest.approx(
            sum(c > 0 for s in own for c in s["clicks"]) / len(own)
        )
        entropy = -sum(n / len(own) * math.log2(n / len(own)) for n in lists.values())
        assert row.list_entropy == pytest.approx(entropy, abs=1e-9)


def test_frequencies_count_every_query_once(log):
    frequency = log.describe().frequency
    assert frequency["queries"].sum() == log.describe().totals["queries"]
    assert (frequency["queries"] * frequency["serps"]).sum() == 1800


def test_the_description_is_json(log):
    again = json.loads(json.dumps(log.describe().to_dict()))
    assert again["totals"]["serps"] == 1803
    assert again["ctr_by_rank"][0]["rank"] == 1


def test_serps_can_be_chosen_by_query_and_column(tmp_path):
    log = logeval.ingest(GOLDEN / "tiny.relpred.tsv", tmp_path / "out", quiet=True)
    every = log.serps().to_pylist()
    some = log.serps(columns=["query_id", "items"], queries=["5@0", 6]).to_pylist()
    assert some == [
        {"query_id": s["query_id"], "items": s["items"]} for s in every if s["query_id"] in (5, 6)
    ]
    assert log.serps(queries=["5@9"]).num_rows == 0
    with pytest.raises(logeval.LogevalError, match="did you mean items"):
        log.serps(columns=["item"])
    with pytest.raises(logeval.LogevalError, match="'x' is not a query"):
        log.serps(queries=["x"])


def test_load_says_what_is_missing(tmp_path):
    with pytest.raises(logeval.LogevalError, match="check the path"):
        logeval.load(tmp_path / "nothing")
    with pytest.raises(logeval.LogevalError, match="no manifest"):
        logeval.load(tmp_path)


def test_a_single_query_may_be_named_and_regions_are_apart(tmp_path):
    source = tmp_path / "log.tsv"
    source.write_text("1\t0\tQ\t12\t0\t11\n2\t0\tQ\t12\t1\t11\n3\t0\tQ\t1\t0\t11\n")
    log = logeval.ingest(source, tmp_path / "out", quiet=True)
    assert log.describe().totals["queries"] == 3
    assert log.serps(queries="12").num_rows == log.serps(queries=12).num_rows == 2
    assert log.serps(queries="12@1", columns="session_id").to_pylist() == [{"session_id": 2}]
    with pytest.raises(logeval.LogevalError, match="no column"):
        log.serps(columns=[])


def test_the_figure_holds_the_rates(log):
    description = log.describe()
    bars = description.plot()[0].patches
    assert [bar.get_height() for bar in bars] == description.ctr_by_rank["ctr"].tolist()
