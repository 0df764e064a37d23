"""Logs of single placements: against loops over their rows, and against a known truth."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from logeval import LogevalError, replay_estimate, replay_policy, replay_validate
from logeval.replay.logged import read_logged
from logeval.replay.validate import PER_QUERY
from logeval.storage import tables
from logeval.storage.schemas import PLACEMENTS
from tests.serps import Serp, write_serps

L, K = 5, 3
E = np.array([1.0, 0.7, 0.4])
W = np.array([0.5, 0.4, 0.3, 0.2, 0.1])
UNIFORM = np.full((L, K), 1 / L)
SKEWED = np.array([[0.5, 0.3, 0.1], [0.2, 0.3, 0.1], [0.1, 0.2, 0.2], [0.1, 0.1, 0.2],
                   [0.1, 0.1, 0.4]])  # fmt: skip
SHARES = np.array([0.5, 0.3, 0.2])  # of the positions


def drawn(policies, n, seed, shares=SHARES):
    """Rows of (item, position, click, propensity); each row is of one of the policies."""
    rng = np.random.default_rng(seed)
    k, which = rng.choice(K, n, p=shares), rng.integers(len(policies), size=n)
    p = np.stack(policies)[which, :, k]
    a = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    clicks = rng.random(n) < W[a] * E[k]
    rows = {"item_id": a + 10, "position": k + 1, "clicks": clicks.astype(int)}
    return pd.DataFrame(rows | {"propensity": p[np.arange(n), a]})


def write_placements(folder, rows):
    """An ingested log of these placements."""
    n = len(rows)
    columns = [
        pa.array(rows[f.name]).cast(f.type)
        if f.name in rows
        else pa.array([0] * n if f.name == "query_id" else [None] * n, f.type)
        for f in PLACEMENTS
    ]
    with tables.staged(folder) as out:
        (out / "placements").mkdir()
        table = pa.Table.from_arrays(columns, schema=PLACEMENTS)
        tables.write_parquet(table, out / "placements" / "part-0.parquet")
        manifest = tables.manifest_of("ingest", {}, [{"name": "rows"}])
        counts = {"placements": n, "clicks": int(rows["clicks"].sum())}
        tables.write_manifest(out, manifest | {"holds": "placements", "counts": counts})
    return folder


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """One whose logger changed, and one of another ranker that shows other positions."""
    folder = tmp_path_factory.mktemp("placements")
    own, other = drawn([UNIFORM, SKEWED], 3000, 1), drawn([SKEWED], 2000, 2, np.full(K, 1 / K))
    return (write_placements(folder / "own", own), own,
            write_placements(folder / "other", other), other)  # fmt: skip


def estimated(log, target, *estimators, **more):
    found = replay_estimate(log, target, estimators=estimators, rounds=20, quiet=True, **more)
    return found.overall().set_index("estimator")


def test_a_placement_is_a_list_with_holes(logs):
    logged = read_logged(logs[0], propensities=True)
    patterns, rows = logged.patterns, logs[1]
    assert logged.placed
    assert ((patterns.items >= 0).sum(axis=1) == 1).all()
    counted = rows.groupby(["item_id", "position", "clicks", "propensity"]).size()
    p, k = np.nonzero(patterns.items >= 0)
    ids, clicked = patterns.item_ids[patterns.items[p, k]], patterns.clicks[p, k]
    keys = zip(ids, k + 1, clicked.astype(int), logged.given[p, k], strict=True)
    assert dict(zip(keys, patterns.count, strict=True)) == counted.to_dict()
    assert logged.shares[0] == pytest.approx(
        rows["position"].value_counts(normalize=True).sort_index()
    )


def test_weights_are_those_of_the_rows(logs):
    """h over p of every row, each position as often as the target has it; and their ratio."""
    log, rows, other, theirs = logs
    found = estimated(log, f"log:{other}", "IP", "IP(normalised)")
    joint = theirs.groupby(["item_id", "position"]).size() / len(theirs)
    share = rows["position"].value_counts(normalize=True)
    rho, total = np.zeros(len(rows)), 0.0
    for i, row in enumerate(rows.itertuples()):
        h = joint.get((row.item_id, row.position), 0.0)
        rho[i] = h / (row.propensity * share[row.position])
    assert found.loc["IP", "value"] == pytest.approx((rho * rows["clicks"]).mean())
    for k in range(1, K + 1):
        mine, mass = rows["position"] == k, (theirs["position"] == k).mean()
        total += mass * (rho * rows["clicks"])[mine].sum() / rho[mine].sum()
    assert found.loc["IP(normalised)", "value"] == pytest.approx(total)
    assert found["truth"].to_numpy() == pytest.approx(theirs["clicks"].mean())
    half = 1.959964 * theirs["clicks"].std() / np.sqrt(len(theirs))
    assert (found["truth_high"] - found["truth"]).to_numpy() == pytest.approx(half, rel=1e-6)


def test_by_default_it_is_the_estimators_that_need_no_lists(logs):
    found = replay_estimate(logs[0], f"log:{logs[2]}", rounds=20, refits=2, quiet=True)
    assert found.overall()["estimator"].tolist() == ["DR", "IP", "IP(normalised)", "DM"]
    assert found.overall()["logged"].to_numpy() == pytest.approx(logs[1]["clicks"].mean())
    assert "clicks per placement" in found.verdict().text()


def test_doubly_robust_is_the_model_and_weighted_residuals(logs):
    """The direct method and DR differ by IP of what the model leaves over."""
    log, rows, other, theirs = logs
    found = estimated(log, f"log:{other}", "DM(rctr)", "DR(rctr)", refits=0)
    rate = rows.groupby("position")["clicks"].mean()
    model = theirs["position"].map(rate).mean()
    assert found.loc["DM(rctr)", "value"] == pytest.approx(model, abs=0.01)  # it has a prior
    joint = theirs.groupby(["item_id", "position"]).size() / len(theirs)
    share = rows["position"].value_counts(normalize=True)
    h = [joint.get(key, 0.0) for key in zip(rows["item_id"], rows["position"], strict=True)]
    rho = np.array(h) / (rows["propensity"] * rows["position"].map(share))
    more = (rho * (rows["clicks"] - rows["position"].map(rate))).mean()
    assert found.loc["DR(rctr)", "value"] == pytest.approx(model + more, abs=0.01)


def table(policy):
    rows = [(0, k + 1, a + 10, policy[a, k]) for k in range(K) for a in range(L) if policy[a, k]]
    return pd.DataFrame(rows, columns=["query", "rank", "item", "probability"])


def test_a_table_chooses_the_item_and_the_positions_are_those_of_the_log(logs):
    log, rows = logs[:2]
    found = estimated(log, table(SKEWED), "IP", propensities="estimated")
    rate = rows.groupby(["item_id", "position"])["clicks"].mean()
    share = rows["position"].value_counts(normalize=True)
    expected = sum(share[k + 1] * SKEWED[a, k] * rate[a + 10, k + 1]
                   for a in range(L) for k in range(K))  # fmt: skip
    assert found.loc["IP", "value"] == pytest.approx(expected)
    anything = estimated(log, "random", "IP", propensities="estimated").loc["IP", "value"]
    assert anything == pytest.approx(
        sum(share[k + 1] * rate[a + 10, k + 1] / L for a in range(L) for k in range(K))
    )


def test_an_item_may_be_placed_everywhere(logs):
    log, rows = logs[:2]
    always = np.zeros((L, K))
    always[0] = 1.0
    found = estimated(log, table(always), "IP", propensities="estimated")
    rate = rows[rows["item_id"] == 10].groupby("position")["clicks"].mean()
    share = rows["position"].value_counts(normalize=True)
    assert found.loc["IP", "value"] == pytest.approx(sum(share[k] * rate[k] for k in (1, 2, 3)))


def test_fewer_positions_are_a_log_of_these(logs):
    log, rows = logs[:2]
    found = estimated(log, table(SKEWED), "IP", "RCTR", propensities="estimated", positions=2)
    few = rows[rows["position"] <= 2]
    rate = few.groupby(["item_id", "position"])["clicks"].mean()
    share = few["position"].value_counts(normalize=True)
    expected = sum(share[k + 1] * SKEWED[a, k] * rate[a + 10, k + 1]
                   for a in range(L) for k in range(2))  # fmt: skip
    assert found.loc["IP", "value"] == pytest.approx(expected)
    assert found.loc["RCTR", "logged"] == pytest.approx(few["clicks"].mean())


def test_one_propensity_of_an_item_at_a_position_says_those_elsewhere(tmp_path):
    """Item weighs by the sum over the positions, which a logger that never changes tells."""
    rows = drawn([SKEWED], 2000, 3)
    log = write_placements(tmp_path / "log", rows)
    found = estimated(log, table(UNIFORM), "Item", "PBM", "INTERPOL(window=1)")
    share = rows["position"].value_counts(normalize=True).sort_index().to_numpy()
    rho = (UNIFORM @ share) / (SKEWED @ share)
    expected = (rows["clicks"] * rho[rows["item_id"] - 10]).mean()
    assert found.loc["Item", "value"] == pytest.approx(expected)
    truth = float(share @ E * W.mean())
    assert found.loc[["PBM", "INTERPOL(window=1)"], "value"].to_numpy() == pytest.approx(
        truth, abs=0.03
    )


def test_propensities_that_change_do_not(logs):
    for name in ("Item", "PBM", "INTERPOL(window=1)"):
        with pytest.raises(LogevalError, match="differ between searches; take IP or DR"):
            estimated(logs[0], table(UNIFORM), name)


@pytest.mark.parametrize("direction", [(UNIFORM, SKEWED), (SKEWED, UNIFORM)])
def test_the_interval_holds_the_truth(tmp_path, direction):
    logger, wanted = direction
    truth = float(SHARES @ (wanted * W[:, None] * E).sum(axis=0))
    held = np.zeros(3)
    for seed in range(30):
        log = write_placements(tmp_path / f"log{seed}", drawn([logger], 2000, 100 + seed))
        found = estimated(log, table(wanted), "IP", "IP(normalised)", "DR", refits=5)
        held += ((found["low"] < truth) & (truth < found["high"])).to_numpy()
    assert (held >= 25).all()  # P(fewer than 25 of 30 | .95) < 0.01


def test_what_needs_lists_is_refused(logs, tmp_path):
    log = logs[0]
    with pytest.raises(LogevalError, match="Prefix needs lists"):
        estimated(log, "random", "Prefix")
    with pytest.raises(LogevalError, match="DCM: needs lists"):
        estimated(log, "random", "DM(dcm)")
    lists = write_serps(tmp_path / "lists", [Serp(0, [10, 11], [1, 0], 1)])
    with pytest.raises(LogevalError, match="holds serps and the log placements"):
        estimated(log, f"log:{lists}", "IP")


def test_parts_are_predicted(logs):
    found = replay_validate(logs[0], positions=[K], parts=3, clips=[1000.0], quiet=True)
    names = list(dict.fromkeys(found.table["estimator"]))
    assert names == ["IP", "PBM", "INTERPOL(window=1)", "Item", "RCTR", "DM", "DR", PER_QUERY]
    assert np.isfinite(found.table["rmse"]).all()
    assert (found.table["serps"] == len(logs[1])).all()


def test_pairs_are_replayed_without_bias(tmp_path):
    """What a pair earns in the replay of a uniformly random log is its click rate."""
    rows = drawn([UNIFORM], 6000, 5, np.full(K, 1 / K))
    log = write_placements(tmp_path / "log", rows)

    class Pair:
        """Always the first labels."""

        TRACK = "rank1"

        def __init__(self, setting):
            self.A = np.zeros((setting.R, 2), dtype=int)

        def recommend(self, t):
            return self.A

        def update(self, t, A, clicks):
            assert clicks.shape == (len(A), 1)

    found = replay_policy(log, [Pair], shuffles=6, quiet=True)
    assert found.facts == []
    rate = rows.groupby(["item_id", "position"])["clicks"].agg(["sum", "size"])
    for (_, _, run), (item, position) in found.lists.items():
        mine = found.table[(found.table["run"] == run)]
        clicked, shown = rate.loc[(item, position)]
        assert (mine["steps"] == shown).all()
        done = mine[mine["t"] <= shown].iloc[-1]
        assert done["clicks"] <= clicked
    learned = replay_policy(log, ["Rank1ElimKL", "UCB1", "Random"], shuffles=3, quiet=True)
    assert not learned.table["clicks"].isna().all()
    with pytest.raises(LogevalError, match="only policies that choose a pair"):
        replay_policy(log, ["dcmKL-UCB"], quiet=True)


def test_a_logger_with_preferences_is_said(tmp_path):
    log = write_placements(tmp_path / "log", drawn([SKEWED], 3000, 6))
    (fact,) = replay_policy(log, ["UCB1"], shuffles=2, quiet=True).facts
    assert (fact.code, fact.value, fact.threshold) == ("not-uniform", 3, 3)
