"""From a log of texts to the report: whoever reads finds names, tables keep ids."""

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

import logeval
from logeval.cli import app
from logeval.clicks.collection import models_of_json, read_models
from logeval.clicks.estimation.fold import fold
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.quality.predictive import Sample, against_log
from logeval.errors import LogevalError
from logeval.evaluation.results import Runs
from logeval.log.names import Names, apart
from logeval.replay.estimate import Estimates
from tests.log import written

PAGES = written.pages(400)
QUERY = PAGES[0]["query"]
ITEMS = {item for page in PAGES if page["query"] == QUERY for item in page["items"]}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Log, models and runs; the log is gone afterwards."""
    folder = tmp_path_factory.mktemp("named")
    log = logeval.ingest(pd.DataFrame(written.results(PAGES)), folder / "log", quiet=True)
    models = logeval.fit_models(
        log, ["dcm"], queries=QUERY, out=folder / "models", draws=0, verdict=False, quiet=True
    )
    runs = logeval.evaluate(
        folder / "models", policies=["Random"], horizon=20, runs=1, positions=2, quiet=True,
        out=folder / "runs",
    )  # fmt: skip
    return folder, log, models, runs


def test_a_query_is_named_and_tables_keep_ids(made):
    _, log, models, runs = made
    number = log.names.id_of("query", QUERY)
    assert [q.query_id for q in models.queries] == [number]
    assert models["DCM", QUERY].items.tolist() == models["DCM", number].items.tolist()
    assert set(runs.to_pandas()["query"]) == {str(models.queries[0])}
    assert log.serps("query_id", queries=QUERY)["query_id"].unique().to_pylist() == [number]


def test_models_and_runs_know_their_names_without_the_log(made):
    folder, _, models, runs = made
    for one in (models.names, read_models(folder / "models").names):
        assert set(one.table("item")["name"].to_pylist()) == ITEMS
        assert one.table("query")["name"].to_pylist() == [QUERY]
    for runs_names in (runs.names, Runs.load(folder / "runs").names):
        assert list(runs_names.titles(runs.to_pandas()["query"].unique()).values()) == [QUERY]


def test_runs_that_are_added_keep_the_names_of_the_earlier_ones(made, tmp_path):
    _, log, _, _ = made
    models = logeval.fit_models(log, ["dcm"], draws=0, verdict=False, quiet=True)
    asked = {"policies": ["Random"], "horizon": 20, "runs": 1, "positions": 1, "quiet": True}
    names = [models.names.query(q) for q in models.queries[:2]]
    for name in names:
        logeval.evaluate(models, queries=name, out=tmp_path / "runs", **asked)
    found = Runs.load(tmp_path / "runs").names
    assert sorted(found.table("query")["name"].to_pylist()) == sorted(names)


def test_an_unknown_query_is_an_error_with_the_closest(made):
    _, log, models, _ = made
    wrong = QUERY.replace(",", "")
    for call in (
        lambda: models["DCM", wrong],
        lambda: logeval.fit_models(log, ["dcm"], queries=wrong, quiet=True),
        lambda: logeval.evaluate(models, policies=["Random"], queries=wrong, quiet=True),
    ):
        with pytest.raises(LogevalError, match=f"no query {wrong!r}; did you mean .*{QUERY!r}"):
            call()


def test_names_with_commas_are_told_from_several_names():
    names = Names(None, {"query": dict(enumerate(["a", "a, b", "b", "c,d,e"]))})
    for text, ids in {"a": [0], "a, b": [1], "b,a": [2, 0], "b, a, b,c,d,e": [2, 1, 3]}.items():
        assert [q.query_id for q in names.all_meant(text)] == ids
    assert names.all_meant(["a, b", 2]) == [(1, None), (2, None)]
    assert Names().all_meant("9@1, 8,") == [(9, 1), (8, None)]


def test_inspect_and_describe_show_names(made):
    folder, log, _, _ = made
    asked = ["inspect", str(folder / "models"), "--query", QUERY, "--json"]
    found = json.loads(CliRunner().invoke(app, asked).stdout)
    assert found["query"] == QUERY
    assert {row["item"] for row in found["items"]} == ITEMS
    assert set(found["best"]) <= ITEMS
    assert all(set(row["list"]) <= ITEMS for row in found["lists"])
    top = log.describe(top=3).to_dict()["top_queries"]
    assert {row["query"] for row in top} <= {page["query"] for page in PAGES}


def test_the_report_speaks_of_names(made, tmp_path):
    folder, _, _, _ = made
    logeval.report(folder / "runs", out=tmp_path / "page", quiet=True)
    text = (tmp_path / "page" / "index.html").read_text()
    assert f"{QUERY}" in text
    assert "query 0" not in text


def test_a_target_names_queries_and_items(made, tmp_path):
    _, log, models, _ = made
    number, ids = log.names.id_of("query", QUERY), models.queries and models["DCM", QUERY].items
    named = log.names.names_of("item", ids[:2])
    rows = {"query": [QUERY] * 2 + ["never asked"], "rank": [1, 2, 1], "item": [*named, "new"]}
    pd.DataFrame(rows).to_csv(tmp_path / "target.csv", index=False)
    asked = {"positions": 1, "rounds": 2, "quiet": True, "estimators": ["IP"]}
    by_name = logeval.replay_estimate(
        log, str(tmp_path / "target.csv"), out=tmp_path / "e", **asked
    )
    by_frame = logeval.replay_estimate(log, pd.DataFrame(rows).head(2), **asked)
    pd.testing.assert_series_equal(by_name.table["value"], by_frame.table["value"])
    assert set(by_name.table["query"].dropna()) == {str(number)}
    names = Names.of(Estimates.read(tmp_path / "e").manifest)
    assert set(names.shown(by_name.table)["query"].dropna()) == {QUERY}


def test_long_names_are_shortened_unless_they_would_be_the_same():
    long = {0: "a" * 50 + "x", 1: "a" * 50 + "y"}
    middle = {2: "c" * 30 + "1" + "c" * 30, 3: "c" * 30 + "2" + "c" * 30}
    titles = Names(None, {"query": long | middle}).titles(map(str, range(4)))
    assert titles["0"] == f"{'a' * 20}…{'a' * 18}x"
    assert [titles[q] for q in "23"] == list(middle.values())
    assert Names(None, {"query": long}).titles(["1", "0+1"], None)["0+1"] == f"{long[0]}+{long[1]}"


def test_a_name_may_hold_what_a_region_is_told_by():
    names = Names(None, {"query": {0: "a@b", 1: "a"}, "region": {0: "b", 1: "c"}})
    assert names.meant("a@b") == (0, None)
    assert names.meant("a@c") == (1, 1)
    assert names.query((1, 1)) == "a@c"
    assert names.meant(1) == (1, None)
    with pytest.raises(LogevalError, match="no query '1'"):
        names.meant("1")


def test_what_programs_read_has_names_too(made):
    folder, log, models, _ = made
    every = {page["query"] for page in PAGES}

    def asked(*words):
        found = CliRunner().invoke(app, [*map(str, words), "--json"])
        assert found.exit_code == 0, found.output
        return json.loads(found.stdout)

    described = asked("describe", folder / "log")
    assert {row["query"] for row in described["support"]["queries"]} == every
    checked = asked("check-models", folder / "models", folder / "log", "-q")
    assert {row["query"] for row in checked["checks"]} <= {QUERY, None}
    named = Sample(patterns_of(fold(log)), names=log.names)
    overall, _ = against_log(models.fitted["DCM"], named, 80, 0)
    items = {each for each in overall.deviations.parts.label if each.startswith("item ")}
    assert items
    assert items <= {f"item {item}" for item in ITEMS}
    with pytest.raises(LogevalError, match=f"positions=9: the DCM of query {QUERY} has"):
        logeval.evaluate(models, policies=["Random"], positions=9, quiet=True)


def test_models_keep_their_names_as_json(made, tmp_path):
    _, _, models, _ = made
    again = models_of_json(models.to_json())
    again.write(tmp_path / "models")
    for one in (again, read_models(tmp_path / "models")):
        assert one["DCM", QUERY].items.tolist() == models["DCM", QUERY].items.tolist()
        assert one.names.kept() == models.names.kept()


def test_names_that_are_shortened_stay_apart():
    names = [f"https://shop.example/{i}/{'x' * 40}" for i in "ab"] + ["y" * 60]
    assert list(apart(names, 20).values()) == [
        "…a/xxxxxxx…xxxxxxxxx", "…b/xxxxxxx…xxxxxxxxx", "yyyyyyyyyy…yyyyyyyyy"
    ]  # fmt: skip
    middle = ["c" * 30 + i + "c" * 30 for i in "12"] + ["c" * 30]
    assert len(set(apart(middle, 10).values())) == 3
    assert apart(names, None) == dict(zip(names, names, strict=True))
