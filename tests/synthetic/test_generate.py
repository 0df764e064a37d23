"""The synthetic log is like the real one, and its clicks come from the model beside it."""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import qmc

import logeval
from logeval.storage import files, tables
from logeval.synthetic.generate import generate, truth_folder
from logeval.synthetic.world import MODELS_OFFERED, radical_inverse, read_tastes

# Of 35,064 real Yandex SERPs of 20 frequent queries (docs/synthetic.md).
REAL_CTR = [0.257, 0.249, 0.170, 0.154, 0.106, 0.073, 0.069, 0.047, 0.050, 0.045]
REAL_CLICKS = [0.336, 0.406, 0.123, 0.059, 0.034, 0.042]  # 0, 1, 2, 3, 4, 5+ clicked results


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("synthetic")
    generate(folder / "log.tsv.gz", sessions=30_000, seed=1, quiet=True)
    return logeval.ingest(folder / "log.tsv.gz", folder / "log", quiet=True)


def test_it_has_the_ctr_by_rank_and_clicks_per_serp_of_the_real_log(log):
    found = log.describe()
    assert np.abs(found.ctr_by_rank["ctr"] - REAL_CTR).max() < 0.03
    share = found.clicks_per_serp["share"].to_numpy()
    assert np.abs(np.append(share[:5], share[5:].sum()) - REAL_CLICKS).max() < 0.03


def test_it_has_everything_that_makes_a_real_log_hard(log):
    found = log.describe()
    counts = log.counts
    assert counts["rejected"] == 0
    assert 0.10 < counts["clicks_repeat"] / counts["clicks_matched"] < 0.25
    assert 0.003 < counts["clicks_orphan"] / counts["clicks_matched"] < 0.02
    assert counts["test_queries"] > 0
    assert found.totals["days"] == 27
    assert 1.5 < found.totals["serps"] / found.totals["sessions"] < 2.2
    assert found.top_queries["items"].min() >= 10
    assert found.top_queries["items"].max() > 60
    assert list(found.ctr_by_rank["rank"]) == list(range(1, 11))
    serps = log.serps(columns=["session_id", "time", "clicks", "click_times"]).to_pandas()
    next_query = serps.groupby("session_id")["time"].shift(-1)
    last_click = serps["click_times"].map(lambda t: np.nanmax(np.append(t.astype(float), -1)))
    assert (last_click > next_query).any(), "late clicks on an earlier SERP"


def test_frequencies_are_zipf(log):
    serps = log.top_queries(50)["serps"].to_numpy()
    slope = np.polyfit(np.log(np.arange(1, 51)), np.log(serps), 1)[0]
    assert slope == pytest.approx(-1, abs=0.1)


@pytest.mark.parametrize(
    ("model", "fmt"),
    [("dcm", "yandex-personalized"), ("dcm", "yandex-relpred"), ("pbm", "yandex-personalized")],
)
def test_the_first_position_is_clicked_as_often_as_the_true_model_says(tmp_path, model, fmt):
    truth = generate(tmp_path / "log.tsv", model=model, format=fmt, sessions=20_000, quiet=True)
    true = logeval.read_models(truth).table()
    log = logeval.ingest(tmp_path / "log.tsv", tmp_path / "log", quiet=True)
    serps = log.serps().to_pandas()
    serps = serps[~serps["test"]]
    first = pd.DataFrame(
        {"item_id": serps["items"].str[0], "clicked": serps["clicks"].str[0] > 0}
    ).groupby("item_id")["clicked"].agg(["mean", "count"])  # fmt: skip
    w = true[(true["parameter"] == "attraction") & true["item_id"].notna()]
    w = w.set_index("item_id")["value"]
    first = first[first["count"] > 200]
    # PBM: the first position is always examined; DCM: likewise
    z = (first["mean"] - w[first.index]) / np.sqrt(w * (1 - w) / first["count"])[first.index]
    assert len(z) > 20
    assert np.abs(z).max() < 4.5
    assert np.sqrt((z**2).mean()) == pytest.approx(1, abs=0.4)


def test_queries_of_the_truth_are_those_of_the_log(tmp_path):
    truth = generate(tmp_path / "log.tsv", format="yandex-relpred", sessions=2000, quiet=True)
    true = logeval.read_models(truth).table()
    log = logeval.ingest(tmp_path / "log.tsv", tmp_path / "log", quiet=True)
    serps = log.serps(columns=["query_id", "region_id", "items"]).to_pandas()
    shown = serps.explode("items").rename(columns={"items": "item_id"}).drop_duplicates()
    known = true.dropna(subset="item_id")[["query_id", "region_id", "item_id"]]
    assert len(shown.merge(known.astype("int64"))) == len(shown)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        generate(tmp_path / f"{name}.tsv.gz", sessions=500, seed=seed, quiet=True)
    a, b, c = ((tmp_path / f"{name}.tsv.gz").read_bytes() for name in "abc")
    assert a == b != c


def test_plain_gz_and_zst_hold_the_same_log(tmp_path):
    logs = []
    for name in ("a.tsv", "b.tsv.gz", "c.tsv.zst"):
        generate(tmp_path / name, sessions=500, quiet=True)
        logs.append(logeval.ingest(tmp_path / name, tmp_path / name[0], quiet=True).serps())
    assert logs[0].equals(logs[1])
    assert logs[0].equals(logs[2])


def test_memory_does_not_grow_with_the_number_of_sessions(tmp_path, monkeypatch):
    monkeypatch.setattr("logeval.synthetic.sessions.BATCH", 1000)
    generate(tmp_path / "warm.tsv", sessions=1000, queries=50, quiet=True)
    peaks = []
    for sessions in (3_000, 30_000):
        tracemalloc.start()
        generate(tmp_path / f"{sessions}.tsv", sessions=sessions, queries=50, quiet=True)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_an_existing_log_is_kept_unless_it_is_the_same(tmp_path):
    out = tmp_path / "log.tsv"
    truth = generate(out, sessions=100, quiet=True)
    assert truth == truth_folder(out)
    before = out.stat().st_mtime_ns
    generate(out, sessions=100, quiet=True)
    assert out.stat().st_mtime_ns == before
    with pytest.raises(logeval.LogevalError, match="overwrite=True"):
        generate(out, sessions=101, quiet=True)
    generate(out, sessions=101, overwrite=True, quiet=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.truth", "log.tsv"]


def test_a_damaged_log_is_not_up_to_date(tmp_path):
    """Nor if its size and the time of its last change say so."""
    out = tmp_path / "log.tsv"
    generate(out, sessions=100, quiet=True)
    stat, damaged = out.stat(), bytearray(out.read_bytes())
    damaged[50] ^= 1
    out.write_bytes(damaged)
    os.utime(out, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(logeval.LogevalError, match="overwrite=True"):
        generate(out, sessions=100, quiet=True)


@pytest.mark.parametrize("exists", [True, False])
def test_a_log_and_its_truth_are_of_one_seed(tmp_path, exists, monkeypatch):
    """Another generate replaces both between the truth and the log of the first."""
    out, whole, put = tmp_path / "log.tsv", {}, files.put_in_place
    for seed in (2, 1):
        truth = generate(out, sessions=100, seed=seed, overwrite=True, quiet=True)
        whole[tables.identity(truth)] = out.read_bytes()
    if not exists:
        out.unlink()
        shutil.rmtree(truth)
    others = []

    def another_one_first(partial, path):
        if path == out and not others:
            code = f"import logeval; logeval.generate({str(out)!r}, sessions=100, seed=2, "
            others.append(
                subprocess.Popen([sys.executable, "-c", f"{code} overwrite=True, quiet=True)"])
            )
            with contextlib.suppress(subprocess.TimeoutExpired):
                others[0].wait(5)  # if nothing keeps it waiting, it is done by then
        put(partial, path)

    monkeypatch.setattr(files, "put_in_place", another_one_first)
    generate(out, sessions=100, seed=1, overwrite=True, quiet=True)
    others[0].wait()
    assert whole[tables.identity(truth)] == out.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.truth", "log.tsv"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"format": "yandex"}, "did you mean yandex-relpred"),
        ({"model": "dmc"}, "did you mean DCM"),
        ({"sessions": 0}, "sessions=0: must be at least 1"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, arguments, message):
    with pytest.raises(logeval.LogevalError, match=message):
        generate(tmp_path / "log.tsv", quiet=True, **arguments)
    assert not list(tmp_path.iterdir())


def test_every_log_has_its_own_truth(tmp_path):
    one = generate(tmp_path / "run.1.tsv", sessions=10, quiet=True)
    two = generate(tmp_path / "run.2.tsv.gz", sessions=10, quiet=True)
    assert (one.name, two.name) == ("run.1.truth", "run.2.truth")
    with pytest.raises(logeval.LogevalError, match=r"run.1.truth: exists already"):
        generate(tmp_path / "run.1.tsv.zst", sessions=10, quiet=True)


@pytest.mark.parametrize("model", MODELS_OFFERED)
def test_lists_are_clicked_as_often_as_the_true_model_says(tmp_path, model):
    truth = logeval.read_models(
        generate(tmp_path / "log.tsv", model=model, sessions=6_000, queries=5, quiet=True)
    )
    log = logeval.ingest(tmp_path / "log.tsv", tmp_path / "log", quiet=True)
    serps = log.serps(queries="1").to_pandas()
    serps = serps[~serps["test"]]
    own = truth[model, "1"]
    p = own.click_probs(np.stack(serps["items"].to_numpy()))
    clicked = np.stack(serps["clicks"].to_numpy()) > 0
    z = (clicked.mean(axis=0) - p.mean(axis=0)) / np.sqrt((p * (1 - p)).mean(axis=0) / len(p))
    assert len(p) > 2000
    assert np.abs(z).max() < 4


def test_without_tastes_the_bytes_are_as_they_were(tmp_path):
    """SHA-256 of logs written before there were tastes."""
    known = {
        ("DCM", "yandex-personalized"): "d5d90de88a5e",
        ("DCM", "yandex-relpred"): "ce601fce9fed",
        ("PBM", "yandex-personalized"): "d4a65569c582",
    }
    for (model, fmt), start in known.items():
        out = tmp_path / f"{model}-{fmt}.tsv"
        generate(out, format=fmt, sessions=1500, queries=50, model=model, seed=3, quiet=True)
        assert hashlib.sha256(out.read_bytes()).hexdigest().startswith(start)


def test_with_tastes_clicks_follow_the_agreement_of_user_and_item(tmp_path):
    """The slope of the logit of a first position's click on p_u . q_j, by logistic regression.

    With some 15,000 SERPs its standard error is about 0.02.
    """
    generate(
        tmp_path / "log.tsv", sessions=8000, queries=3, users=300, taste=1.0, factors=2, seed=5,
        quiet=True,
    )  # fmt: skip
    log = logeval.ingest(tmp_path / "log.tsv", tmp_path / "log", quiet=True)
    taste, users, items = read_tastes(tmp_path / "log.truth")
    truth = logeval.read_models(tmp_path / "log.truth").table()
    base = truth[truth["parameter"] == "attraction"].dropna(subset="item_id")
    base = dict(zip(base["item_id"].astype(int), logit(base["value"]), strict=True))
    serps = [s for s in log.serps(["user_id", "test", "items", "clicks"]).to_pylist()
             if not s["test"]]  # fmt: skip
    first = [(s["user_id"], s["items"][0], s["clicks"][0] > 0) for s in serps]
    x = np.array([users[u] @ items[j] for u, j, _ in first])
    offset = np.array([base[j] for _, j, _ in first])
    y = np.array([c for _, _, c in first], dtype=float)
    slope = 0.0
    for _ in range(20):
        p = expit(offset + slope * x)
        slope += x @ (y - p) / (x**2 * p * (1 - p)).sum()
    assert taste == 1.0
    assert slope == pytest.approx(1.0, abs=4.5 / np.sqrt((x**2 * p * (1 - p)).sum()))


def test_the_effects_of_queries_are_halton_points():
    points = np.stack([radical_inverse(5000, base) for base in (2, 3, 5)], axis=1)
    assert np.array_equal(points, qmc.Halton(d=3, scramble=False).random(5000))
