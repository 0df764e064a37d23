"""Propensities from swaps: against known users, against the pivot by hand, and in LightGBM."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import logeval
from logeval.clicks.models.pbm import PBM
from tests.serps import sampled_serps, write_serps

E = np.array([1.0, 0.5, 0.25, 0.12])
Q, L, K = 6, 8, 4


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Models of PBM users, the true attractions, and the SERPs."""
    rng, serps, truth = np.random.default_rng(5), [], {}
    for q in range(Q):
        model = PBM(np.arange(100 * q, 100 * q + L), K, rng.uniform(0.05, 0.6, L), E)
        # attractive items stand on top more often, so that click-through rates mislead
        A = np.argsort(rng.gumbel(0, 1, (900, L)) - 6 * model.w, axis=1)[:, :K]
        serps += sampled_serps(model, A, rng, query_id=q, first=len(serps))
        truth |= {(q, int(i)): w for i, w in zip(model.items, model.w, strict=True)}
    log = write_serps(tmp_path_factory.mktemp("log"), serps)
    return logeval.fit_models(log, ["pbm", "dcm"], quiet=True), truth, serps


def ctr_of(serps):
    """Clicks over impressions of every (query, item), in their order."""
    rows = [(s.query_id, i, bool(c)) for s in serps for i, c in zip(s.items, s.clicks, strict=True)]
    return pd.DataFrame(rows).groupby([0, 1])[2].mean().to_numpy()


def test_swaps_find_the_examination_beside_the_models(world):
    models, _, _ = world
    found = logeval.export(models, propensities=True, propensities_from="swaps")
    table = found.table
    assert table["position"].tolist() == [1, 2, 3, 4]
    assert (table["low"] <= E).all()
    assert (table["high"] >= E).all()
    assert (table["high"][1:] - table["low"][1:] < 0.15).all()
    assert np.allclose(table["weight"], 1 / table["examination"])
    of_model = logeval.export(models, propensities=True, model="pbm").table["examination"]
    assert np.allclose(table["PBM"], of_model / of_model[0])
    assert "from swaps" in found.words


@pytest.mark.parametrize("order", [["dcm", "pbm"], ["dcm"]])
def test_propensities_are_from_swaps_whichever_model_is_first(world, order):
    """And of a cascade, which the first model may be, they are no propensities of positions."""
    models = logeval.fit_models(world[0].manifest["log_folder"], order, quiet=True)
    table = logeval.export(models, propensities=True).table
    wanted = logeval.export(models, propensities=True, propensities_from="swaps").table
    pd.testing.assert_frame_equal(table, wanted)
    assert np.abs(table["examination"] - E).max() < 0.03
    assert "DCM" not in table.columns
    for asked in ({"model": "dcm"}, {"propensities_from": "model", "model": "dcm"}):
        with pytest.raises(logeval.LogevalError, match="propensities_from=swaps"):
            logeval.export(models, propensities=True, **asked)
    asked = {"propensities": True, "propensities_from": "model"}
    if order == ["dcm"]:
        with pytest.raises(logeval.LogevalError, match="fit pbm"):
            logeval.export(models, **asked)
    else:
        assert logeval.export(models, **asked).words.endswith("by PBM")


def test_positions_without_swaps_are_blank_and_counted(tmp_path):
    rng = np.random.default_rng(6)
    model = PBM(np.arange(4), K, rng.uniform(0.2, 0.6, 4), E)
    fixed = np.repeat(np.arange(4)[None], 200, axis=0)
    models = logeval.fit_models(
        write_serps(tmp_path, sampled_serps(model, fixed, rng)), ["pbm"], quiet=True
    )
    by_default = logeval.export(models, propensities=True)
    assert "by PBM, for swaps do not reach every position" in by_default.words
    asked = {"propensities_from": "swaps"}
    found = logeval.export(models, propensities=True, **asked)
    assert found.table["examination"].isna().tolist() == [False, True, True, True]
    assert "3 are blank" in found.words
    told = logeval.export(models, ltr="lightgbm", out=tmp_path / "t.txt", **asked).words
    assert "600 results at positions without a propensity are left out" in told


def test_lightgbm_learns_the_attraction_from_weighed_clicks(world, tmp_path):
    lightgbm = pytest.importorskip("lightgbm", reason="pip install 'logeval[export]'")
    models, truth, serps = world
    out = tmp_path / "train.txt"
    logeval.export(models, ltr="lightgbm", propensities_from="swaps", out=out)
    assert not (tmp_path / "train.txt.position").exists()  # the bias is taken out already
    lines = out.read_text().splitlines()
    weights = np.array((tmp_path / "train.txt.weight").read_text().split(), dtype=float)
    label = np.array([line.split()[0] == "1" for line in lines])
    rows = [tuple(line.split()[1:]) for line in lines]
    assert len(set(rows)) == Q * L
    # the weights of an item are the SERPs that showed it, and its share of them its attraction
    cells = pd.DataFrame({"row": rows, "up": weights * label, "all": weights})
    cells = cells.groupby("row", sort=False).sum()  # in the order of queries and items
    assert cells["all"].sum() == pytest.approx(Q * 900 * K, rel=0.01)
    share = (cells["up"] / cells["all"]).to_numpy()
    w = np.array([truth[key] for key in sorted(truth)])
    assert np.abs(share - w).mean() < 0.05
    assert np.abs(ctr_of(serps) - w).mean() > 0.1
    data = lightgbm.Dataset(str(out), params={"verbosity": -1, "min_data_in_leaf": 1})
    options = {"objective": "binary", "verbosity": -1, "num_threads": 1, "min_data_in_leaf": 1}
    booster = lightgbm.train({**options, "min_sum_hessian_in_leaf": 0.0}, data, 60)
    assert data.get_weight() == pytest.approx(weights, rel=1e-5)
    assert data.get_position() is None
    x = np.array([[float(cell.split(":")[1]) for cell in row] for row in cells.index])
    learned = booster.predict(x)
    assert np.abs(learned - w).mean() < 0.05
    ranked = lightgbm.train({**options, "objective": "lambdarank"}, data.construct(), 5)
    assert ranked.num_trees() == 5  # its queries were read


def test_what_has_no_swaps_is_refused(world, tmp_path):
    models, _, _ = world
    asked = {"propensities": True, "propensities_from": "swaps"}
    lost = replace(models, manifest={**models.manifest, "log_folder": str(tmp_path / "gone")})
    with pytest.raises(logeval.LogevalError, match="log=FOLDER"):
        logeval.export(lost, **asked)
    again = logeval.export(lost, log=models.manifest["log_folder"], **asked).table
    pd.testing.assert_frame_equal(again, logeval.export(models, **asked).table)
    assert "by PBM; swaps are counted from the log" in logeval.export(lost, propensities=True).words
    with pytest.raises(logeval.LogevalError, match="goes with propensities"):
        logeval.export(models, judgments="csv", propensities_from="swaps")
    rows = ["query,item,position,impressions,clicks", "a,x,1,9,3", "a,y,2,9,2", "a,x,2,9,2"]
    (tmp_path / "counts.csv").write_text("\n".join(rows) + "\n")
    counts = logeval.ingest(tmp_path / "counts.csv", tmp_path / "counts", quiet=True)
    with pytest.raises(logeval.LogevalError, match="table of counts"):
        logeval.export(models, log=counts, **asked)
