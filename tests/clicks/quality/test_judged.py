"""Orders of models against judgments: as ir_measures and ranx compute them, with intervals."""

from __future__ import annotations

import json
from importlib.util import find_spec

import numpy as np
import pytest
from typer.testing import CliRunner

import logeval
from logeval.cli import app
from logeval.clicks.quality.judged import judged_rows, measured, model_order, read_qrels
from tests.clicks.examples import random_model, three_queries
from tests.uncompiled import uncompiled

NEEDS = "pip install 'logeval[export]'"


def random_judgments(rng):
    """Grades of some items, a model's order of others, and which are in both."""
    judged = {f"d{i}": int(g) for i, g in enumerate(rng.integers(0, 4, 25)) if rng.random() < 0.6}
    judged["d99"] = 2  # one that the model does not know
    order = [f"d{i}" for i in rng.permutation(30)]
    return judged, order


def ours(judged, order):
    gains = np.array([float(judged.get(item, 0)) for item in order])
    return measured(gains, np.array(list(judged.values()), dtype=float))


def test_measures_are_those_of_ir_measures():
    irm = pytest.importorskip("ir_measures", reason=f"ir_measures is not installed ({NEEDS})")
    rng = np.random.default_rng(2)
    for _ in range(20):
        judged, order = random_judgments(rng)
        run = {"q": {item: float(-rank) for rank, item in enumerate(order)}}
        wanted = [irm.nDCG @ 10, irm.RR, irm.AP]
        found = irm.calc_aggregate(wanted, {"q": judged}, run)
        assert ours(judged, order) == pytest.approx([found[m] for m in wanted])


RANX = """
import json, ranx, sys
judged, run = map(json.loads, sys.argv[1:])
found = ranx.evaluate(ranx.Qrels(judged), ranx.Run(run), ["ndcg@10", "mrr", "map"])
print(json.dumps([float(found[m]) for m in ("ndcg@10", "mrr", "map")]))
"""


@pytest.mark.skipif(find_spec("ranx") is None, reason=f"ranx is not installed ({NEEDS})")
def test_measures_are_those_of_ranx():
    judged, order = random_judgments(np.random.default_rng(3))
    run = {item: float(100 - rank) for rank, item in enumerate(order)}
    found = uncompiled(RANX, *(json.dumps({"q": one}) for one in (judged, run)))
    assert ours(judged, order) == pytest.approx(found)


@pytest.mark.parametrize("name", ["DCM", "PBM", "UBM"])
def test_a_model_orders_by_attraction(name):
    model = random_model(name, np.random.default_rng(1), L=9)
    assert model_order(model).tolist() == np.argsort(-model.w).tolist()


def test_ties_are_not_in_the_order_of_ids():
    model = random_model("GCTR", np.random.default_rng(1), L=50)
    assert not (np.diff(model_order(model)) > 0).all()


def test_intervals_are_students_over_queries_and_differences_are_paired():
    rng = np.random.default_rng(5)
    a = {str(q): rng.random(3) for q in range(12)}
    b = {q: 0.5 * x for q, x in a.items()}
    rows = judged_rows({"A": a, "B": b, "C": {**b, "99": np.ones(3)}})
    x = np.stack(list(a.values()))
    se = x.std(axis=0, ddof=1) / np.sqrt(12)
    first = next(r for r in rows if r["model"] == "A")
    assert first["value"] == pytest.approx(x[:, 0].mean())
    assert first["high"] - first["value"] == pytest.approx(2.200985 * se[0], rel=1e-5)
    assert {r["queries"] for r in rows} == {12}  # those that all have
    differences = [r for r in rows if r["baseline"] is not None]
    assert {(r["model"], r["baseline"]) for r in differences} == {("B", "A"), ("C", "A")}
    assert differences[0]["value"] == pytest.approx(-0.5 * x[:, 0].mean())
    assert differences[0]["high"] < 0 or 0.5 * x[:, 0].mean() < 1.1 * se[0]


def test_score_and_compare_models_take_judgments(tmp_path):
    log = three_queries(tmp_path)
    models = logeval.fit_models(log, ["dcm", "gctr"], out=tmp_path / "m", quiet=True)
    qrels = tmp_path / "own.qrels"
    logeval.export(models, judgments="qrels", uncertain="keep", thresholds=[0.3, 0.5], out=qrels)

    def run(*arguments):
        done = CliRunner().invoke(app, [str(a) for a in arguments])
        assert done.exit_code == 0, done.output
        return done.stdout

    found = json.loads(run("score", tmp_path / "m", log, "--qrels", qrels, "--json"))["judged"]
    best = {r["measure"]: r["value"] for r in found if r["model"] == "DCM" and not r["baseline"]}
    assert best == pytest.approx({"NDCG@10": 1.0, "MRR": 1.0, "AP": 1.0})  # its own judgments
    worse = next(r for r in found if r["baseline"] == "DCM")
    assert worse["model"] == "GCTR"
    assert worse["value"] < 0
    asked = ["-m", "dcm", "-m", "gctr", "--qrels", qrels, "-q", "--out", tmp_path / "q"]
    text = run("compare-models", log, *asked)
    assert "Against the judgments, over 3 queries" in text
    again, start = run("compare-models", log, *asked), text.index("Against")
    assert again[again.index("Against") :] == text[start:]  # read from its folder
    qrels.write_text("0 0 100 1\n")
    assert "over 1 queries" in run("compare-models", log, *asked)  # and not another's


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "holds no judgments"), ("1 0 7\n", "line 1"), ("\n1 0 7 high\n", "line 2")],
)
def test_what_is_no_judgment_is_named(tmp_path, text, said):
    (tmp_path / "x").write_text(text)
    with pytest.raises(logeval.LogevalError, match=said):
        read_qrels(tmp_path / "x")
    with pytest.raises(logeval.LogevalError, match="cannot be read"):
        read_qrels(tmp_path / "absent")


def test_judgments_of_other_queries_are_refused(tmp_path):
    log = three_queries(tmp_path)
    models = logeval.fit_models(log, ["dctr"], quiet=True)
    (tmp_path / "x").write_text("77 0 100 1\n")
    with pytest.raises(logeval.LogevalError, match="no query of DCTR has a relevant judgment"):
        logeval.score(models, log, qrels=tmp_path / "x")
