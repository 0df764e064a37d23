"""The models table: written, read, exported, imported, scored, compared, drawn."""

from __future__ import annotations

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from logeval.clicks.collection import models_of_json, read_models
from logeval.clicks.fit import fit_models
from logeval.clicks.quality.compare import compare_models, score
from logeval.commands import models as commands
from logeval.commands.plot import plot_app
from logeval.errors import LogevalError
from logeval.log.queries import Query
from tests.clicks.examples import ALL, random_lists, random_model
from tests.serps import Serp, sampled_serps, write_serps


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    rng = np.random.default_rng(8)
    serps: list[Serp] = []
    for q in range(3):
        model = random_model("DCM", rng, L=7, K=4, low=0.1, high=0.7)
        lists = random_lists(rng, 400 - 100 * q, 7, 4)
        serps += sampled_serps(model, lists, rng, query_id=q, first=len(serps))
    serps.append(Serp(0, [100, 101], [0, 1], session_id=len(serps)))  # a short list
    return write_serps(tmp_path_factory.mktemp("log"), serps, parts=2)


@pytest.fixture(scope="module", params=["per-query", "pooled"])
def models(request, log):
    return fit_models(log, ALL, scope=request.param, holdout=0.2, quiet=True)


def same(one, other):
    assert list(one.fitted) == list(other.fitted)
    for name, fitted in one.fitted.items():
        for query in [*fitted.queries, Query(99)]:
            for unseen in (False, True):
                a, b = fitted.of(query, unseen), other.fitted[name].of(query, unseen)
                assert (a.items == b.items).all()
                assert a.K == b.K
                for p in a.PARAMETERS:
                    assert getattr(a, p.field) == pytest.approx(getattr(b, p.field), abs=1e-12)


def test_models_survive_writing_and_reading(models, tmp_path):
    models.write(tmp_path / "models")
    back = read_models(tmp_path / "models")
    same(models, back)
    assert models.table().equals(back.table())
    assert back.summary()["serps"].tolist() == models.summary()["serps"].tolist()


def test_models_survive_json(models):
    same(models, models_of_json(models.to_json()))


def test_every_parameter_lies_in_its_interval(models):
    table = models.table()
    rows = table[table["low"].notna()]
    assert (rows["low"] <= rows["value"] + 1e-9).all()
    assert (rows["value"] <= rows["high"] + 1e-9).all()
    assert rows["observations"].notna().all()
    estimated = table[table["item_id"].notna() & (table["parameter"] != "items")]
    assert len(estimated) == len(estimated.dropna(subset=["low", "high"]))


def test_iterating_gives_models_of_queries(models):
    triples = list(models)
    assert len(triples) == len(models) == 3 * len(ALL)
    name, query, model = triples[0]
    assert (name, str(query), model.K) == ("GCTR", "0", 4)
    assert models["dcm", "1"].L == 7
    with pytest.raises(LogevalError, match="was not fitted for query 9"):
        models["DCM", "9"]


def test_parameters_from_elsewhere_can_be_imported():
    rows = [
        {"model": "dcm", "query_id": 5, "parameter": "attraction", "item_id": i, "value": w}
        for i, w in ((7, 0.5), (9, 0.1), (8, 0.3))
    ]
    rows += [
        {"model": "dcm", "query_id": 5, "parameter": "termination", "position": k, "value": v}
        for k, v in ((2, 0.25), (1, 0.75))
    ]
    model = models_of_json(json.dumps(rows))["DCM", Query(5)]
    assert model.items.tolist() == [7, 9, 8]
    assert model.v.tolist() == [0.75, 0.25]
    assert model.items[model.best_list()].tolist() == [7, 8]
    with pytest.raises(LogevalError, match="lacks its parameter 'termination'"):
        models_of_json(json.dumps(rows[:3]))
    with pytest.raises(LogevalError, match=r"attraction = 1.5 of dcm is not a probability"):
        models_of_json(json.dumps([{**rows[0], "value": 1.5}]))
    with pytest.raises(LogevalError, match="unknown columns colour"):
        models_of_json(json.dumps([{**rows[0], "colour": 1}]))
    with pytest.raises(LogevalError, match="termination is incomplete"):
        models_of_json(json.dumps([*rows[:3], {**rows[3], "position": 2}]))
    with pytest.raises(LogevalError, match="not rows of the models table"):
        models_of_json("[1, 2")


def dcm_row(parameter, value=0.5, **more):
    return {"model": "DCM", "query_id": 1, "parameter": parameter, "value": value, **more}


def without(row, name):
    return {key: value for key, value in row.items() if key != name}


ITEM, OTHER = dcm_row("attraction", item_id=7), dcm_row("attraction", item_id=8)
FIRST, SECOND = dcm_row("termination", position=1), dcm_row("termination", position=2)
UBM_ITEM = {**ITEM, "model": "UBM"}
UBM_FIRST = {**FIRST, "model": "UBM", "parameter": "examination"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "there are no rows"),
        ([ITEM, without(FIRST, "model")], "row 2 has no model"),
        ([ITEM, without(FIRST, "parameter")], "row 2 has no parameter"),
        ([ITEM, without(FIRST, "position")], "termination of DCM: the position is missing"),
        ([UBM_ITEM, UBM_FIRST], "examination of UBM: previous is missing"),
        ([UBM_ITEM, {**UBM_FIRST, "previous": 1}], "previous must be from 0"),
        ([ITEM, OTHER, FIRST, SECOND, dcm_row("positions", 1)], "position 2, beyond the positions"),
        ([ITEM, FIRST, dcm_row("positions", 1.5)], "whole number"),
        ([ITEM, FIRST, without(dcm_row("positions", 1), "query_id")], "query_id is missing"),
        ([ITEM, {**FIRST, "position": 0}, FIRST], "positions begin at 1"),
        ([{**ITEM, "scope": "poold"}, FIRST], "unknown scope.*did you mean pooled"),
        ([{**ITEM, "scope": "pooled"}, FIRST], "of scope per-query and of scope pooled"),
        ([ITEM, ITEM, FIRST], "two rows of the same value"),
        ([ITEM, {**ITEM, "model": "dcm"}, FIRST], "two rows of the same value"),
        ([without(ITEM, "query_id"), FIRST], "an item needs its query_id"),
        (
            [dcm_row("attraction") | {"query_id": None}, without(FIRST, "query_id")],
            "DCM has no query",
        ),
    ],
)
def test_wrong_rows_are_refused(rows, message):
    with pytest.raises(LogevalError, match=message):
        models_of_json(json.dumps({"rows": rows}))


def test_rare_items_are_dropped_and_counted(log):
    all_items = fit_models(log, "DCTR", quiet=True)
    few = fit_models(log, "DCTR", min_impressions=200, quiet=True)
    report = few.fitted["DCTR"].report
    assert report["dropped_items"] > 0
    assert report["items"] + report["dropped_items"] == all_items.fitted["DCTR"].report["items"]
    for name, query, model in few:
        whole = dict(zip(all_items[name, query].items, all_items[name, query].ctr, strict=True))
        assert all(whole[i] == c for i, c in zip(model.items, model.ctr, strict=True))


def test_fitted_models_are_not_fitted_again(log, tmp_path):
    out = tmp_path / "models"
    fit_models(log, "PBM", out=out, quiet=True)
    stamp = (out / "models.parquet").stat().st_mtime_ns
    again = fit_models(log, "PBM", out=out, quiet=True)
    assert (out / "models.parquet").stat().st_mtime_ns == stamp
    assert again.fitted["PBM"].report["converged"] == "3 of 3"
    fit_models(log, "PBM", out=out, smoothing="none", quiet=True)
    assert (out / "models.parquet").stat().st_mtime_ns != stamp


def test_wrong_names_are_refused(log):
    for wrong in ({"method": "mcmc"}, {"scope": "global"}, {"smoothing": "beta"},
                  {"last_termination": "one"}):  # fmt: skip
        with pytest.raises(LogevalError, match="unknown"):
            fit_models(log, "DCM", quiet=True, **wrong)


def test_unseen_items_and_queries_are_scored_by_the_prior(log, tmp_path):
    models = fit_models(log, ["DCM", "UBM"], quiet=True)
    other = write_serps(
        tmp_path / "other",
        [
            Serp(0, [100, 555, 101, 102, 103], [1, 0, 0, 0, 0], session_id=0),  # longer, one unseen
            Serp(77, [1, 2], [0, 1], session_id=1),  # unseen
        ],
    )
    coverage = score(models, other).coverage.set_index("model")
    assert coverage.loc["DCM", "unseen_items"] == pytest.approx(3 / 7)
    assert coverage.loc["UBM", "unseen_queries"] == pytest.approx(1 / 2)
    known = score(models, other, known_queries=True)
    assert known.coverage["serps"].tolist() == [1, 1]
    assert np.isfinite(known.table["value"]).all()


@pytest.fixture(scope="module")
def two_lengths(tmp_path_factory):
    """Query 0 with lists of 3, query 1 with lists of 6."""
    rng = np.random.default_rng(9)
    serps: list[Serp] = []
    for q, K in enumerate((3, 6)):
        model = random_model("DCM", rng, L=12, K=K, low=0.1, high=0.6)
        lists = random_lists(rng, 600, 12, K)
        serps += sampled_serps(model, lists, rng, query_id=q, first=len(serps))
    return write_serps(tmp_path_factory.mktemp("two"), serps)


def test_longer_lists_are_examined_as_at_the_same_distance_from_the_click(two_lengths):
    fitted = fit_models(two_lengths, "UBM", quiet=True).fitted["UBM"]
    e = fitted.of(Query(0), K=5).e
    assert e.shape == (5, 6)
    assert e[:3, :4] == pytest.approx(fitted.of(Query(0)).e)
    assert e[3:, 0] == pytest.approx(e[2, 0])
    assert e[3, [3, 2, 1]] == pytest.approx(e[2, [2, 1, 1]])  # the click 1, 2, 3 above
    assert e[4, [4, 3, 2, 1]] == pytest.approx(e[2, [2, 1, 1, 1]])
    assert (e[np.tril_indices(5)] > 0).all()


def test_pooled_values_hold_beyond_the_longest_list_of_a_query(two_lengths):
    models = fit_models(two_lengths, ["PBM", "UBM"], scope="pooled", quiet=True)
    for fitted in models.fitted.values():
        e = fitted.estimates["e"].value[0]
        assert fitted.of(Query(0)).K == 3
        assert fitted.of(Query(0), K=6).e == pytest.approx(e)
        assert fitted.of(Query(0)).e == pytest.approx(e[:3] if e.ndim == 1 else e[:3, :4])


def test_an_unseen_query_averages_over_the_queries_that_have_the_position(two_lengths):
    models = fit_models(two_lengths, ["PBM", "UBM"], quiet=True)
    rows = json.loads(models.to_json())["rows"]
    imported = models_of_json(json.dumps([row for row in rows if "query_id" in row]))
    for source in (models, imported):
        for name in ("PBM", "UBM"):
            unseen = source.fitted[name].of(Query(99)).e
            own = models[name, "1"].e
            assert unseen[3:] == pytest.approx(own[3:])


def test_the_model_behind_the_clicks_wins_the_comparison(log, tmp_path):
    names = ["GCTR", "RCTR", "PBM", "CM", "DCM"]
    comparison = compare_models(log, names, holdout=0.3, method="em", out=tmp_path, quiet=True)
    overall = comparison.overall()
    assert overall.index[0] == "DCM"
    assert (overall["low"] <= overall["value"]).all().all()
    assert (overall["value"] <= overall["high"]).all().all()
    differences = comparison.table[comparison.table["baseline"].notna()]
    paired = differences[differences["measure"] == "log-likelihood"].set_index("model")
    assert paired.loc["GCTR", "high"] < 0
    cm = comparison.coverage.set_index("model").loc["CM"]
    assert cm["impossible"] > 0
    assert (tmp_path / "quality.parquet").exists()


@pytest.fixture
def run(log):
    app = typer.Typer()
    commands.register(app)
    app.add_typer(plot_app, name="plot")

    def invoke(*arguments):
        result = CliRunner().invoke(app, [str(a) for a in arguments])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


def test_the_commands(run, log, tmp_path):
    out = tmp_path / "m"
    result = run(
        "fit-models", log, "-m", "dcm", "-m", "pbm", "--out", out, "--holdout", "0.2", "-q"
    )
    assert "v_K is not identified" in result.stdout
    for what, model in (("termination", "dcm"), ("attraction", "pbm"), ("examination", "pbm")):
        figure = tmp_path / f"{what}.png"
        run("plot", "models", out, "--what", what, "--model", model, "--out", figure)
        assert figure.read_bytes().startswith(b"\x89PNG")
    run("models", "export", out, "--out", tmp_path / "m.json")
    result = run("models", "import", tmp_path / "m.json", "--out", tmp_path / "m2")
    assert "DCM (3 queries), PBM (3 queries)" in result.stdout
    result = run("score", tmp_path / "m2", log, "--json")
    scored = json.loads(result.stdout)
    assert {row["model"] for row in scored["quality"]} == {"DCM", "PBM"}
    assert scored["coverage"][0]["unseen_items"] == 0
    result = run("compare-models", log, "-m", "dcm", "-m", "cm", "--out", tmp_path / "q", "-q")
    assert "DCM" in result.stdout
    assert (tmp_path / "q" / "perplexity.png").exists()
    with pytest.raises(LogevalError, match="there is no CM here"):
        run("plot", "models", out, "--model", "cm", "--out", tmp_path / "x.png")
    with pytest.raises(LogevalError, match="has no such parameter"):
        run("plot", "models", out, "--model", "pbm", "--out", tmp_path / "x.png")


def test_the_figures_hold_the_numbers(models):
    termination = models.plot("termination", "dcm", queries=["1"])
    drawn = termination.lines[0].get_ydata()
    np.testing.assert_array_equal(drawn, models["dcm", "1"].v)
    assert models.plot("attraction", "pbm").get_legend() is not None
    with pytest.raises(LogevalError, match="did you mean termination"):
        models.plot("terminaton", "dcm")


def test_differences_are_drawn_from_the_best_model(log):
    comparison = compare_models(log, ["rctr", "dcm", "gctr"], holdout=0.3, quiet=True)
    axes = comparison.plot_differences()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["RCTR", "GCTR"]
    assert axes.get_xlabel() == "log likelihood, difference to DCM"
    assert (axes.lines[1].get_xdata() < 0).all()
    assert len(comparison.plot().containers) == 3
    with pytest.raises(LogevalError, match="needs two"):
        compare_models(log, ["dcm"], quiet=True).plot_differences()
