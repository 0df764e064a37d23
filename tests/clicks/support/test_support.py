"""What a log supports: in tables, in words, and what evaluate and the verdict make of it."""

import numpy as np
import pytest

from logeval import evaluate, fit_models
from logeval.clicks.collection import models_of_json, read_models
from logeval.clicks.support.graph import CARRIES
from logeval.clicks.support.support import support
from logeval.errors import LogevalError
from logeval.log.log import load
from logeval.reports.answers.models import of_fits
from logeval.storage import tables
from tests.serps import Serp, write_serps

K = 4
E = np.array([1.0, 0.8, 0.6, 0.4])


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Query 1 shows six items in any order, query 2 always the same list."""
    rng = np.random.default_rng(2)
    w = np.linspace(0.6, 0.2, 6)
    serps = []
    for n in range(1200):
        for query in (1, 2):
            A = rng.permutation(6)[:K] if query == 1 else np.arange(K)
            clicks = rng.random(K) < w[A] * E
            serps.append(Serp(query, (10 * query + A).tolist(), clicks.astype(int).tolist(), n))
    return load(write_serps(tmp_path_factory.mktemp("two"), serps))


@pytest.fixture(scope="module")
def models(log, tmp_path_factory):
    out = tmp_path_factory.mktemp("models") / "m"
    fit_models(log, ["pbm", "dcm"], out=out, quiet=True, draws=4)
    return read_models(out)


def test_describe_says_which_queries_carry_which_models(log):
    found = support(log)
    table = found.table.set_index("query")
    assert table.loc["1", "share_pbm"] == 1.0
    assert table.loc["2", "share_pbm"] == 0.25
    assert table.loc["2", "share_dcm"] == 1.0
    assert table.loc["2", "top_list"] == 1.0
    assert table.loc["2", "cut_clicks"] == 0
    facts = {fact.code: fact for fact in found.facts}
    assert facts["carries"].more == {"models": {"DCM": 2, "DBN": 1, "PBM": 1, "UBM": 1}}
    assert facts["one-list"].value == 1.0
    assert facts["lists-apart"].more == {"queries": ["2"]}
    assert facts["width"].low > 0.0


def test_parameters_that_rest_on_the_prior_are_marked_and_read_back(models):
    rows = models.table()
    pbm = rows[(rows["model"] == "PBM") & rows["query_id"].notna()]
    items = pbm[(pbm["parameter"] == "attraction") & pbm["item_id"].notna()]
    assert not items[items["query_id"] == 1]["prior"].any()
    assert items[items["query_id"] == 2]["prior"].sum() == 3  # all but those of the largest part
    places = pbm[(pbm["parameter"] == "examination") & (pbm["query_id"] == 2)]
    assert places["prior"].sum() == 3
    dcm = rows[(rows["model"] == "DCM") & rows["item_id"].notna()]
    assert not dcm["prior"].any()
    assert (models["PBM"].identified >= CARRIES).tolist() == [True, False]
    again = models_of_json(models.to_json())
    for name in models.fitted:
        assert (again[name].identified == models[name].identified).all()
        for field, marks in models[name].prior.items():
            assert (again[name].prior[field] == marks).all()


def test_a_fit_says_how_many_queries_can_carry_it(models):
    said = {f.about: f for f in of_fits(models).facts if f.code == "model-carried"}
    assert (said["PBM"].value, said["PBM"].threshold, said["PBM"].level) == (1.0, 2.0, "caution")
    assert (said["DCM"].value, said["DCM"].level) == (2.0, "fine")


def test_tables_of_older_versions_are_read(models, tmp_path):
    models.write(tmp_path / "old")
    manifest = tables.read_manifest(tmp_path / "old")
    with tables.staged(tmp_path / "older", overwrite=True) as folder:
        rows = tables.read_table(tmp_path / "old", "models").drop_columns(["prior"])
        queries = tables.read_table(tmp_path / "old", "queries").drop_columns(["identified"])
        tables.write_parquet(rows, folder / "models.parquet")
        tables.write_parquet(queries, folder / "queries.parquet")
        keep = {k: v for k, v in manifest.items() if k != "files"}
        tables.write_manifest(folder, keep)
    old = read_models(tmp_path / "older")
    assert old["PBM"].identified is None
    assert not old["PBM"].prior
    with pytest.raises(LogevalError, match="do not say which queries"):
        evaluate(old, policies=["Random"], horizon=10, runs=1, identified=True, quiet=True)


def test_evaluate_leaves_them_out_on_request_and_the_verdict_counts_them(models):
    asked = {"policies": ["Random"], "horizon": 10, "runs": 1, "quiet": True}
    runs = evaluate(models, **asked)
    assert set(runs.to_pandas()["query"]) == {"1", "2"}
    prior = runs.verdict().fact("rests-on-prior")
    assert (prior.about, prior.value, prior.threshold) == ("PBM", 1.0, 2.0)
    runs = evaluate(models, **asked, identified=True)
    assert set(runs.to_pandas()["query"]) == {"1"}
    assert "queries-left-out" in [fact.code for fact in runs.facts]
    assert runs.verdict().fact("rests-on-prior") is None
    with pytest.raises(LogevalError, match="no query can carry"):
        evaluate(models, **asked, identified=True, queries=[2])


def test_lists_that_are_apart_and_too_few_serps_have_different_words(tmp_path):
    rng = np.random.default_rng(5)
    serps = [Serp(2, [1, 2, 3, 4], [1, 0, 0, 1], n) for n in range(60)]
    for n in range(60):
        A = rng.permutation(6)[:K]
        serps.append(Serp(1, A.tolist(), (rng.random(K) < 0.3 * E).astype(int).tolist(), 100 + n))
    found = support(load(write_serps(tmp_path, serps)))
    rows, facts = found.table.set_index("query"), {fact.code: fact for fact in found.facts}
    assert rows.loc["2", "mix"] == 0.0
    assert np.isnan(rows.loc["2", "serps_pbm"])  # none would do
    assert rows.loc["1", "mix"] > 0.5
    assert rows.loc["1", "serps_pbm"] > 60
    assert facts["lists-apart"].more == {"queries": ["2"]}
    assert facts["too-few-searches"].more == {"queries": ["1"]}


def test_what_is_needed_is_said_of_each_query(tmp_path):
    """Two queries that need more, one ten times as much: no number for both."""
    rng = np.random.default_rng(6)
    serps = [
        Serp(
            query, rng.permutation(6)[:K].tolist(), (rng.random(K) < p * E).astype(int).tolist(), n
        )
        for query, p in ((1, 0.2), (2, 0.02))
        for n in range(60 if query == 1 else 240)
    ]
    found = support(load(write_serps(tmp_path, serps)))
    rows = found.table.set_index("query")
    assert (rows["share_pbm"] < CARRIES).all()
    assert (rows["serps_pbm"] > rows["serps"]).all()
    assert rows["serps_pbm"].max() > 1.5 * rows["serps_pbm"].min()
    (said,) = [fact for fact in found.facts if fact.code == "too-few-searches"]
    assert said.value == 2.0


@pytest.mark.parametrize("positions", [1, 3])
def test_clicks_alone_are_refused(positions, tmp_path):
    """The rows of a log that were clicked, without those that were not."""
    items = list(range(positions))
    log = load(write_serps(tmp_path, [Serp(1, items, [1] * positions, n) for n in range(100)]))
    found = support(log)
    assert [(fact.code, fact.level) for fact in found.facts] == [("clicks-alone", "stop")]
    with pytest.raises(LogevalError, match="every result was clicked"):
        fit_models(log, ["dcm"], quiet=True)


def test_checks_that_judge_nothing_are_no_checks(tmp_path):
    rng = np.random.default_rng(3)
    serps = [Serp(1, rng.permutation(4).tolist(), [1, 0, 0, 0], n) for n in range(4)]
    models = fit_models(load(write_serps(tmp_path, serps)), ["dcm"], draws=4, quiet=True)
    assert models["DCM"].report["checks"]["judged"] == 0
    runs = evaluate(models, policies=["Random"], horizon=10, runs=1, quiet=True)
    assert runs.verdict().fact("unchecked").more == {"names": ["DCM"]}
    assert runs.verdict().fact("checks-pass") is None
