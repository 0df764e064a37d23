"""Counted logs: rows are added up, and models that need no page are the same as from pages."""

import numpy as np
import pandas as pd
import pytest

import logeval
from logeval.clicks.collection import read_models
from logeval.clicks.inspection import inspect
from logeval.clicks.settings import Fitting
from logeval.clicks.support.support import support
from logeval.errors import LogevalError
from logeval.storage import tables
from tests.log import written

PAGES = written.pages(300)
RESULTS = pd.DataFrame(written.results(PAGES))


def counted():
    """The rows of the pages, counted with pandas."""
    log = logeval.ingest(RESULTS, quiet=True)
    serps = log.serps(["query_id", "items", "clicks"]).to_pandas()
    rows = [
        (log.names.name_of("query", q), log.names.name_of("item", i), k, c > 0)
        for q, items, clicks in serps.itertuples(index=False)
        for k, (i, c) in enumerate(zip(items, clicks, strict=True), 1)
    ]
    frame = pd.DataFrame(rows, columns=["query", "item", "position", "clicked"])
    keys = ["query", "item", "position"]
    found = frame.groupby(keys, as_index=False).agg(
        impressions=("clicked", "size"), clicks=("clicked", "sum")
    )
    return log, found


@pytest.fixture(scope="module")
def logs():
    log, frame = counted()
    return log, frame, logeval.ingest(frame, quiet=True)


@pytest.mark.parametrize("scope", ["per-query", "partial", "pooled"])
def test_models_are_those_of_the_pages_that_were_counted(logs, scope, monkeypatch):
    """By EM: a sampled posterior depends on the order of the patterns."""
    log, _, counts = logs
    fit = Fitting.fit
    em = lambda self, *given, **_: fit(self, *given, intervals=False)  # noqa: E731
    monkeypatch.setattr(Fitting, "fit", em)
    asked = {"scope": scope, "draws": 0, "verdict": False, "quiet": True}
    pages, rows = (
        logeval.fit_models(one, ["pbm", "gctr", "rctr", "dctr"], **asked) for one in (log, counts)
    )
    for name, fitted in pages.fitted.items():
        for query in fitted.queries:
            title = pages.names.query(query)
            a, b = pages[name, title], rows[name, title]
            mine = dict(zip(rows.names.names_of("item", b.items), range(b.L), strict=True))
            order = [mine[item] for item in pages.names.names_of("item", a.items)]
            for p in fitted.kind.PARAMETERS:
                x, y = getattr(a, p.field), np.asarray(getattr(b, p.field))
                np.testing.assert_allclose(x, y[order] if p.kind == "item" else y, rtol=1e-6)


def test_a_query_has_the_serps_of_its_most_shown_position(logs, tmp_path):
    _, frame, counts = logs
    asked = {"draws": 0, "verdict": False, "quiet": True}
    models = logeval.fit_models(counts, ["pbm"], out=tmp_path / "m", **asked)
    shown = frame.groupby(["query", "position"])["impressions"].sum().groupby("query").max()
    for query, serps in zip(models["PBM"].queries, models["PBM"].serps, strict=True):
        assert serps == shown[models.names.query(query)]
    assert read_models(tmp_path / "m").lists is None
    found = inspect(models, models.names.query(models.queries[0]), log=counts)
    assert found.items["shown"].sum() == frame.groupby("query")["impressions"].sum().max()
    assert found.lists.empty


def test_what_needs_pages_is_refused_with_the_reason(logs):
    _, _, counts = logs
    for wrong, message in (
        ({"models": ["dcm"]}, "what else was clicked on a page, and DCM depends on that; fit GCTR"),
        ({"models": ["pbm"], "classes": 2}, "what else was clicked"),
        ({"models": ["pbm"], "holdout": 0.1}, "no session can be held out"),
        ({"models": ["auto"]}, "no session can be held out"),
    ):
        with pytest.raises(LogevalError, match=message):
            logeval.fit_models(counts, quiet=True, **wrong)
    with pytest.raises(LogevalError, match="a table of counts, and this needs serps"):
        counts.serps()
    with pytest.raises(LogevalError, match="a table of counts, and this needs serps"):
        logeval.replay_estimate(counts, "logged", quiet=True)


def test_a_description_says_of_counts_what_it_says_of_pages(logs):
    log, frame, counts = logs
    pages, found = log.describe(), counts.describe()
    assert found.ctr_by_rank["impressions"].tolist() == pages.ctr_by_rank["serps"].tolist()
    np.testing.assert_allclose(found.ctr_by_rank["ctr"], pages.ctr_by_rank["ctr"])
    totals = {"queries", "items"}
    assert {t: found.totals[t] for t in totals} == {t: pages.totals[t] for t in totals}
    assert found.totals["impressions"] == frame["impressions"].sum()
    assert found.totals["clicks"] == frame["clicks"].sum() == pages.totals["clicked_results"]
    top = found.to_dict()["top_queries"][0]
    mine = frame[frame["query"] == top["query"]]
    places = mine.groupby("item")["position"].nunique()
    assert top["impressions"] == mine["impressions"].sum()
    assert [top[name] for name in ("items", "moved", "positions")] == [
        len(places), (places > 1).sum(), mine["position"].max()
    ]  # fmt: skip
    assert top["ctr"] == pytest.approx(mine["clicks"].sum() / mine["impressions"].sum())
    assert found.clicks_per_serp.empty
    assert found.plot()[1].get_ylabel() == "impressions"


def test_swaps_and_what_a_pbm_can_be_fitted_to_are_those_of_the_pages(logs):
    log, _, counts = logs
    pages, found = support(log), support(counts)
    for name in ("examination", "rank"):
        np.testing.assert_allclose(found.examination[name], pages.examination[name])
    share = [
        {row["query"]: row["share_pbm"] for row in one.to_dict()["queries"]}
        for one in (pages, found)
    ]
    assert share[0] == pytest.approx(share[1])
    assert set(share[1]) == set(RESULTS["search_term"])  # by their names
    (carries, *_) = found.facts
    assert (carries.threshold, set(carries.more["models"])) == (6.0, {"PBM"})


def test_examination_is_checked_beside_that_from_swaps_and_nothing_else(logs, tmp_path):
    log, _, counts = logs
    asked = {"draws": 0, "verdict": False, "quiet": True}
    models = logeval.fit_models(counts, ["pbm", "dctr"], **asked)
    found = logeval.check_models(models, counts, out=tmp_path / "checks", quiet=True)
    assert found.table.empty
    assert tables.read_table(tmp_path / "checks", "checks").num_rows == 0
    assert found.verdicts == {}
    table = found.examination
    truth = support(log).examination["examination"]
    mine = table[table["method"] == "all pairs"]
    np.testing.assert_allclose(mine["examination"], truth)
    assert "PBM" in table
    assert "DCTR" not in table
    fact = found.verdict().fact("swaps-agree")
    held = ((mine["low"] <= mine["PBM"]) & (mine["PBM"] <= mine["high"]))[mine["rank"] > 1]
    known = mine["low"].notna()[mine["rank"] > 1]
    assert (fact.about, fact.value, fact.threshold) == ("PBM", held.sum(), known.sum())
    assert "nothing else can be checked" in found.verdict().text().replace("\n", " ")
    with pytest.raises(LogevalError, match="DCTR has none by position; fit a PBM"):
        logeval.check_models(logeval.fit_models(counts, ["dctr"], **asked), counts, quiet=True)


def test_rows_are_added_up_shifted_cut_capped_and_rejected(tmp_path):
    (tmp_path / "a.csv").write_text(
        "query,item,position,impressions,clicks\n"
        "a,x,0,10,3\na,x,0,5,1\na,y,1,7,9\na,z,2,4,0\n"
        "a,,1,4,0\na,x,one,4,0\na,x,1,4.5,0\na,x,-1,4,0\n"
    )
    log = logeval.ingest(tmp_path / "a.csv", tmp_path / "log", positions=2, max_bad=1, quiet=True)
    with log.connect(holds="counts") as db:
        rows = db.execute("SELECT position, impressions, clicks FROM counts").fetchall()
    assert rows == [(1, 15, 4), (2, 7, 7)]
    names = ("rows", "results", "rows_repeated", "rows_cut", "rejected", "clicks_capped")
    assert [log.counts[name] for name in names] == [8, 2, 1, 1, 4, 1]
    rejected = (tmp_path / "log" / "rejects.tsv").read_text().splitlines()[1:]
    assert [line.split("\t")[1] for line in rejected] == ["5", "6", "7", "8"]
