"""Judgments, propensities and training files: against counting by hand, and read by others."""

from __future__ import annotations

import csv
import io
import itertools
import json
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import logeval
from logeval.cli import app
from logeval.clicks.collection import FittedModels, models_of_json
from logeval.clicks.models.pbm import PBM
from tests.clicks.examples import random_lists, three_queries
from tests.serps import sampled_serps, write_serps
from tests.uncompiled import uncompiled

NEEDS = "pip install 'logeval[export]'"


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> FittedModels:
    log = three_queries(tmp_path_factory.mktemp("log"))
    return logeval.fit_models(log, ["dcm", "pbm", "ubm", "sdbn"], quiet=True)


@pytest.fixture(scope="module")
def named(tmp_path_factory) -> FittedModels:
    """A log with names instead of numbers, one with a blank."""
    folder = tmp_path_factory.mktemp("named")
    rows = ["query,items,clicks", *["red shoes,a b c,1 0 0"] * 30, *["hat,a c d,0 1 0"] * 30]
    (folder / "log.csv").write_text("\n".join(rows) + "\n")
    log = logeval.ingest(folder / "log.csv", folder / "log", quiet=True)
    return logeval.fit_models(log, ["dctr"], quiet=True)


def exported(models, **asked):
    return logeval.export(models, **asked)


def test_a_grade_is_the_number_of_thresholds_that_are_reached(models):
    cuts = [0.2, 0.4, 0.5]
    found = exported(models, judgments="csv", thresholds=cuts, uncertain="keep").table
    dcm = models["DCM"]
    w = dcm.estimates["w"]
    assert len(found) == len(dcm.item_ids)
    for row in range(len(found)):
        value, low, high = w.value[row], w.low[row], w.high[row]
        assert found["grade"].iloc[row] == sum(value >= cut for cut in cuts)
        spans = any(low < cut <= high for cut in cuts)
        assert found["uncertain"].iloc[row] == spans
    assert 0 < found["uncertain"].sum() < len(found)


def test_uncertain_items_are_withheld_or_kept_and_counted(models):
    found = exported(models, judgments="qrels")
    every = exported(models, judgments="csv", uncertain="keep").table
    left = [tuple(line.split()[::2]) for line in found.files[""].splitlines()]
    sure = every[~every["uncertain"]]
    assert left == list(zip(sure["query"], sure["item"], strict=True))
    n, of = every["uncertain"].sum(), len(every)
    assert f"{n:,} of {of:,} items ({n / of:.0%})" in found.words


def test_where_everything_is_withheld_the_remedy_is_said(models):
    cuts = np.linspace(0.001, 0.999, 500).tolist()  # every interval spans some
    found = exported(models, judgments="qrels", thresholds=cuts)
    assert found.files[""] == ""
    assert found.words.endswith("(100%) have a 95% interval that spans grades and are withheld; "
                                "keep them with uncertain=keep")  # fmt: skip
    assert json.loads(exported(models, judgments="json", thresholds=cuts).files[""])["name"]


def test_classes_of_users_are_graded_by_their_mean(tmp_path):
    log = three_queries(tmp_path)
    fitted = logeval.fit_models(log, ["dcm"], classes=2, quiet=True)
    found = exported(fitted, judgments="csv", uncertain="keep").table
    whole = next(iter(fitted.fitted.values()))
    for query in whole.queries:
        mine = found[found["query"] == str(query)].set_index("item_id")["relevance"]
        model = whole.of(query)
        assert np.allclose(mine.loc[model.items], model.users.w)


def test_names_stand_where_the_log_has_them(named):
    rows = list(csv.DictReader(io.StringIO(exported(named, judgments="csv").files[""])))
    assert {(r["query"], r["item"]) for r in rows} <= set(
        itertools.chain(itertools.product(["red shoes"], "abc"), itertools.product(["hat"], "acd"))
    )
    text = exported(named, judgments="qrels", uncertain="keep").files[""]
    assert "red%20shoes 0 a 3\n" in text
    assert all(len(line.split()) == 4 for line in text.splitlines())


def test_json_is_the_judgment_list_of_opensearch(named):
    # docs.opensearch.org, Search Relevance Workbench, "Importing judgments"
    found = json.loads(exported(named, judgments="json", uncertain="keep").files[""])
    assert found["type"] == "IMPORT_JUDGMENT"
    assert found["name"]
    ratings = {one["query"]: one["ratings"] for one in found["judgmentRatings"]}
    assert {"docId": "a", "rating": "3.0"} in ratings["red shoes"]


RANX = """
import json, ranx, sys
read = ranx.Qrels.from_file(sys.argv[1], kind="trec").to_dict()
print(json.dumps([[q, doc, int(grade)] for q, docs in read.items() for doc, grade in docs.items()]))
"""


@pytest.mark.parametrize("tool", ["ir_measures", "ranx"])
def test_other_programs_read_the_judgments(models, tmp_path, tool):
    if find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed ({NEEDS})")
    exported(models, judgments="qrels", uncertain="keep", out=tmp_path / "own.qrels")
    every = exported(models, judgments="csv", uncertain="keep").table
    ours = {(r.query, r.item): r.grade for r in every.itertuples()}
    if tool == "ir_measures":
        read = import_module(tool).read_trec_qrels(str(tmp_path / "own.qrels"))
        theirs = {(q.query_id, q.doc_id): q.relevance for q in read}
    else:
        theirs = {(q, doc): grade for q, doc, grade in uncompiled(RANX, tmp_path / "own.qrels")}
    assert theirs == ours


def test_propensities_of_a_pbm_are_its_examination(models):
    pbm = models["PBM"]
    pooled = exported(models, propensities=True, model="pbm").table
    e = np.array([pbm.of(q).e for q in pbm.queries])
    assert np.allclose(pooled["examination"], np.average(e, axis=0, weights=pbm.serps))
    assert (pooled["low"] <= pooled["examination"] + 1e-12).all()
    assert (pooled["high"][1:] > pooled["low"][1:]).all()


def test_features_are_counted_from_the_lists(models, tmp_path):
    exported(models, ltr="svmlight", uncertain="keep", out=tmp_path / "train.svm")
    text = (tmp_path / "train.svm").read_text().splitlines()
    names = dict(part.split(":") for part in text[0].lstrip("# ").split())
    number = {name: key for key, name in names.items()}
    assert "DCM.attraction" not in number  # the grades are made of it
    assert "PBM.attraction" in number
    log = logeval.load(models.manifest["log_folder"])
    serps = log.serps(columns=["query_id", "items", "clicks"]).to_pylist()
    for line in text[1:]:
        row, _, (query, item) = line.partition(" # ")[0], None, line.split(" # ")[1].split()
        values = dict(part.split(":") for part in row.split()[2:])
        mine = [
            (s["items"].index(int(item)), s["clicks"])
            for s in serps
            if s["query_id"] == int(query) and int(item) in s["items"]
        ]
        clicks = sum(c[k] for k, c in mine)
        assert float(values[number["log_shown"]]) == pytest.approx(np.log1p(len(mine)), rel=1e-5)
        assert float(values[number["ctr"]]) == pytest.approx(clicks / len(mine), rel=1e-5)
        place = np.mean([k + 1 for k, _ in mine])
        assert float(values[number["mean_position"]]) == pytest.approx(place, rel=1e-5)


def test_lightgbm_learns_a_ranker_from_the_files_and_their_positions(tmp_path):
    lightgbm = pytest.importorskip("lightgbm", reason=f"lightgbm is not installed ({NEEDS})")
    rng = np.random.default_rng(4)
    serps, truth = [], {}
    e = np.array([1.0, 0.5, 0.25, 0.12])
    for q in range(12):
        model = PBM(np.arange(100 * q, 100 * q + 8), 4, rng.uniform(0.05, 0.6, 8), e)
        A = random_lists(rng, 300, 8, 4)
        serps += sampled_serps(model, A, rng, query_id=q, first=len(serps))
        truth |= {(q, int(i)): w for i, w in zip(model.items, model.w, strict=True)}
    (tmp_path / "log").mkdir()
    models = logeval.fit_models(write_serps(tmp_path / "log", serps), ["pbm"], quiet=True)
    train = tmp_path / "train.txt"
    exported(models, ltr="lightgbm", out=train)
    data = lightgbm.Dataset(str(train), params={"verbosity": -1, "min_data_in_leaf": 5})
    options = {"objective": "lambdarank", "verbosity": -1, "num_threads": 1, "seed": 1}
    booster = lightgbm.train({**options, "min_data_in_leaf": 5}, data, num_boost_round=20)
    lines = train.read_text().splitlines()
    positions = (tmp_path / "train.txt.position").read_text().split()
    weights = [float(w) for w in (tmp_path / "train.txt.weight").read_text().split()]
    groups = [int(n) for n in (tmp_path / "train.txt.query").read_text().split()]
    assert len(positions) == len(weights) == len(lines) == sum(groups) == data.num_data()
    assert data.get_group().tolist() == groups
    assert data.get_weight() == pytest.approx(weights)
    assert len(set(positions)) == len(np.unique(data.get_position())) == 4  # it was read
    assert sum(weights) == 4 * 300 * 12  # every result of every SERP
    x = np.array([[float(p.split(":")[1]) for p in line.split()[1:]] for line in lines])
    scores = dict(zip(map(tuple, x), booster.predict(x), strict=True))  # by (query, item)
    assert len(scores) == len(truth)
    learned, w = np.array(list(scores.values())), np.array([truth[i] for i in sorted(truth)])
    agree = [np.corrcoef(learned[8 * q : 8 * q + 8], w[8 * q : 8 * q + 8])[0, 1] for q in range(12)]
    assert np.mean(agree) > 0.6
    # clicks weighed by the inverse propensities, as LightGBM's weights
    table = exported(models, propensities=True).table
    assert np.allclose(table["examination"], e, atol=0.1)
    ipw = table.set_index("position")["weight"]
    label = np.array([line.split()[0] == "1" for line in lines])
    by_position = np.array([ipw[int(k)] for k in positions])
    weight = np.array(weights) * np.where(label, by_position, 1.0)
    group = np.repeat(np.arange(len(scores)), [list(map(tuple, x)).count(row) for row in scores])
    item = np.eye(len(scores))[group]
    plain = {"objective": "binary", "verbosity": -1, "num_threads": 1, "min_data_in_leaf": 1}
    weighed = lightgbm.train(plain, lightgbm.Dataset(item, label, weight=weight), 50)
    assert np.corrcoef(weighed.predict(np.eye(96)), w)[0, 1] > 0.8


def test_models_without_draws_are_exported_without_intervals():
    same = {"model": "PBM", "query_id": 1}
    rows = [
        same | {"parameter": "attraction", "items": [7, 8, 9], "value": [0.5, 0.05, 0.3]},
        same | {"parameter": "examination", "value": [1.0, 0.5]},
    ]
    models = models_of_json(json.dumps({"rows": rows}))
    found = exported(models, judgments="qrels")
    assert found.files[""] == "1 0 7 2\n1 0 8 0\n1 0 9 2\n"  # 0.3 reaches 0.3
    assert "without intervals" in found.words
    assert exported(models, propensities=True).table["weight"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "nothing to export"),
        ({"judgments": "csv", "ltr": "svmlight"}, "judgments and ltr to export"),
        ({"judgments": "xml"}, "must be 'qrels', 'csv' or 'json'"),
        ({"judgments": "csv", "thresholds": [0.5, 0.2]}, "must ascend"),
        ({"judgments": "csv", "relevance": "satisfaction"}, "DCM has no satisfaction"),
        ({"ltr": "svmlight"}, "give out=FILE"),
    ],
)
def test_what_cannot_be_exported_is_refused(models, asked, said):
    with pytest.raises(logeval.LogevalError, match=said):
        exported(models, **asked)


def test_the_command_writes_a_file_once(models, tmp_path):
    models.write(tmp_path / "m")

    def run(*arguments):
        return CliRunner().invoke(app, ["export", str(tmp_path / "m"), *map(str, arguments)])

    printed = run("--judgments", "qrels", "--thresholds", "0.2,0.5")
    assert printed.stdout == exported(models, judgments="qrels", thresholds=[0.2, 0.5]).files[""]
    assert "withheld" in printed.stderr
    out = tmp_path / "own.qrels"
    assert run("--judgments", "qrels", "--out", out).exit_code == 0
    again = run("--judgments", "qrels", "--out", out)
    assert again.exit_code == 2
    assert "overwrite=True" in again.stderr
    assert run("--judgments", "qrels", "--out", out, "--overwrite").exit_code == 0


BREAKS = [
    "a\n3 qid:9 1:1 # x y",
    "b\r3 qid:9 1:1 # x y",
    "c\u2028d",
    "e\x85f",
    "g\x0ch",
    "i\x1b[1mj",
]


@pytest.fixture(scope="module")
def broken(tmp_path_factory) -> FittedModels:
    """Names of items that hold the ends of lines, and other control characters."""
    folder = tmp_path_factory.mktemp("broken")
    page = {"query": "red\nshoes", "items": BREAKS, "clicks": [1, 0, 1, 0, 1, 0]}
    (folder / "log.json").write_text((json.dumps(page) + "\n") * 30)
    log = logeval.ingest(folder / "log.json", folder / "log", quiet=True)
    return logeval.fit_models(log, ["pbm"], quiet=True)


def test_a_name_that_ends_a_line_forges_no_rows(broken, tmp_path):
    exported(broken, ltr="svmlight", uncertain="keep", out=tmp_path / "train.svm")
    rows = (tmp_path / "train.svm").read_text().splitlines()
    assert len(rows) == 1 + len(BREAKS)
    assert {row.split(" # ")[0].split()[1] for row in rows[1:]} == {"qid:1"}
    exported(broken, ltr="lightgbm", out=tmp_path / "train.txt")
    assert all(
        row[:4] in ("0 0:", "1 0:") for row in (tmp_path / "train.txt").read_text().splitlines()
    )
    qrels = exported(broken, judgments="qrels", uncertain="keep").files[""].splitlines()
    assert len(qrels) == len(BREAKS)
    assert all(len(row.split()) == 4 for row in qrels)
    text = exported(broken, judgments="csv", uncertain="keep").files[""]
    assert pd.read_csv(io.StringIO(text, newline=""))["item"].tolist() == BREAKS
    read = json.loads(exported(broken, judgments="json", uncertain="keep").files[""])
    assert [one["docId"] for one in read["judgmentRatings"][0]["ratings"]] == BREAKS


@pytest.mark.parametrize("form", ["qrels", "json"])
def test_the_command_prints_the_bytes_that_it_writes(broken, form, tmp_path):
    broken.write(tmp_path / "m")
    asked = ["export", tmp_path / "m", "--judgments", form, "--uncertain", "keep"]
    command = [sys.executable, "-m", "logeval", *map(str, asked)]
    printed = subprocess.run(command, capture_output=True, check=True, timeout=100).stdout
    exported(broken, judgments=form, uncertain="keep", out=tmp_path / "out")
    assert printed == (tmp_path / "out").read_bytes()


def test_every_click_model_is_exported_or_says_why_not(tmp_path):
    log = three_queries(tmp_path)
    models = logeval.fit_models(log, ["gctr", "dctr", "pbm", "dcm", "ubm"], quiet=True)
    for name in models.fitted:
        if name == "PBM":
            assert len(exported(models, propensities=True, model=name).table) == 4
        else:
            with pytest.raises(logeval.LogevalError, match="model=PBM"):
                exported(models, propensities=True, model=name)
        if name in ("GCTR", "RCTR"):
            with pytest.raises(logeval.LogevalError, match="has no attraction of items"):
                exported(models, judgments="qrels", model=name)
        else:
            assert len(exported(models, judgments="csv", model=name, uncertain="keep").table) == 21
