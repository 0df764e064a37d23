"""Counted logs: rows are added up, and models that need no page are the same as from pages."""

import numpy as np
import pandas as pd
import pytest

import logeval
from logeval.clicks.collection import read_models
from logeval.clicks.inspection import inspect
from logeval.errors import LogevalError
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
def test_models_are_those_of_the_pages_that_were_counted(logs, scope):
    log, _, counts = logs
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
    for call in (counts.describe, counts.serps, counts.top_queries):
        with pytest.raises(LogevalError, match="a table of counts, and this needs serps"):
            call()
    with pytest.raises(LogevalError, match="a table of counts, and this needs serps"):
        logeval.replay_estimate(counts, "logged", quiet=True)


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
