"""Click models by period: what is folded, what is chosen, what is stored, what is said."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit, logit

from logeval.clicks.collection import read_models
from logeval.clicks.drift import (
    RHO,
    SIZE,
    Strata,
    changes,
    changes_of,
    deviations,
    fit_by_period,
    fits_of,
    fold_by_period,
    in_words,
    of_log,
    periods_of,
)
from logeval.clicks.fit import Fit, fit_models
from logeval.clicks.quality.stages import check_models
from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.log.ingest import ingest
from logeval.log.log import load
from logeval.log.queries import Query
from logeval.synthetic.generate import generate
from logeval.synthetic.world import make_world
from tests.serps import Serp, write_serps


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """A log whose users change, and one whose users do not."""
    folder = tmp_path_factory.mktemp("logs")
    for name, drift in (("changing", 3.0), ("constant", 0.0)):
        log = folder / f"{name}.tsv"
        generate(log, sessions=9000, queries=4, model="pbm", drift=drift, seed=7, quiet=True)
        ingest(log, out=folder / name, quiet=True)
    return folder


@pytest.fixture(scope="module")
def fitted(logs):
    return {
        name: fit_models(
            logs / name, ["pbm"], periods="3", draws=0, verdict=False, quiet=True,
            out=logs / f"{name}-models",
        )
        for name in ("changing", "constant")
    }  # fmt: skip


def test_periods():
    assert list(map(str, periods_of(1, 27, "week"))) == ["1-7", "8-14", "15-21", "22-27"]
    assert list(map(str, periods_of(1, 16, "week"))) == ["1-7", "8-16"]  # two days are no week
    assert list(map(str, periods_of(5, 7, "day"))) == ["5", "6", "7"]
    assert list(map(str, periods_of(1, 10, "3"))) == ["1-3", "4-6", "7-10"]
    for wrong in ("11", "week"):
        with pytest.raises(LogevalError, match="ask for"):
            periods_of(1, 5, wrong)


def test_every_serp_is_in_its_period_once(logs):
    log = load(logs / "changing")
    data = fold_by_period(log, "week", None, None, 0.2, 0)
    with log.connect() as db:
        rows = db.execute(
            "SELECT least((day - 1) // 7, 3), count(*), sum(len([c FOR c IN clicks IF c > 0])) "
            "FROM serps WHERE NOT test GROUP BY 1 ORDER BY 1"
        ).fetchall()
    for j, serps, clicks in rows:
        both = [(data.train, data.train_period), (data.held_out, data.held_out_period)]
        mine = [(part.take(period == j), part) for part, period in both]
        assert sum(part.count.sum() for part, _ in mine) == serps
        assert sum((part.count[:, None] * part.clicks).sum() for part, _ in mine) == clicks
    held_out = data.held_out.count
    share = held_out.sum() / (held_out.sum() + data.train.count.sum())
    assert share == pytest.approx(0.2, abs=0.02)


def test_weights_fall_with_the_distance_of_periods(logs):
    data = fold_by_period(load(logs / "constant"), "3", None, None, 0.2, 0)
    asked, seen = Fit(logs / "constant", ["pbm"], draws=0), []

    def fit(patterns):
        seen.append([patterns.count[data.train_period == j].sum() for j in range(3)])
        return asked.fit("PBM", patterns, intervals=False)

    constant = fit(data.train)
    found = fit_by_period(constant, fit, data, lambda n: None)
    whole = np.array(seen.pop(0))
    assert len(seen) == fits_of(3) == 3 * len(RHO)
    for i, rho in enumerate(RHO):
        for j in range(3):
            expected = whole * rho ** np.abs(np.arange(3) - j)
            assert seen[3 * i + j] == pytest.approx(expected)
    # users who do not change have the constant model in every period
    assert not found.queries.found.any()
    for model in found.models:
        for name, x in constant.estimates.items():
            assert model.estimates[name].value.tolist() == x.value.tolist()


def test_users_who_change_are_found_and_followed(fitted):
    report = fitted["changing"]["PBM"].report["drift"]
    assert report["log_drifts"]
    assert report["queries_drifting"] >= 3
    assert not fitted["constant"]["PBM"].report["drift"]["log_drifts"]
    world = make_world("pbm", 4, 7, drift=3.0)
    models = fitted["changing"]
    often = models["PBM"].estimates["w"].observations > 400
    item = models["PBM"].item_ids - 1
    first, last = (models.periods[j]["PBM"].estimates["w"].value for j in (0, -1))
    true = world.attraction(5 / 6) - world.attraction(1 / 6)
    assert np.corrcoef((last - first)[often], true[item][often])[0, 1] > 0.8


def test_periods_are_stored_beside_the_models(fitted, logs):
    models = read_models(logs / "changing-models")
    assert len(models.periods) == 3
    for read, made in zip(models.periods, fitted["changing"].periods, strict=True):
        for name, x in made["PBM"].estimates.items():
            assert read["PBM"].estimates[name].value == pytest.approx(x.value, nan_ok=True)
    assert not read_models(logs / "constant-models")["PBM"].report["drift"]["queries"]


def test_evaluate_walks_through_the_periods(fitted, logs):
    folder = logs / "changing-models"
    runs = evaluate(
        folder, policies=["Oracle", "Random"], drift=True, horizon=30, runs=1, positions=3,
        checkpoints=[10, 20, 30], quiet=True,
    )  # fmt: skip
    rows = runs.to_pandas()
    assert rows[rows.policy == "Oracle"].regret.max() == 0.0
    query = rows["query"].iloc[0]
    mine = rows[(rows["query"] == query) & (rows.policy == "Oracle")].sort_values("t")
    best = []
    for period in fitted["changing"].periods:
        model = period["PBM", query]
        lists = model.best_rows(3, model.rewards[0])
        best.append(model.users.expected_reward(lists[None], model.rewards[0])[0])
    assert mine.optimal_reward.tolist() == pytest.approx(np.cumsum(10 * np.array(best)).tolist())
    said = {fact.code: fact for fact in runs.facts}
    assert said["periods"].value == 3
    model, first = fitted["changing"]["PBM"], fitted["changing"].periods[0]["PBM"]
    moved = [
        any(p["PBM", q].w.tolist() != first.of(q).w.tolist() for p in fitted["changing"].periods)
        for q in model.queries
    ]
    change = said["users-change"]
    assert (change.about, change.value, change.threshold) == ("PBM", sum(moved), 4)
    assert "ranker-of-all-periods" in said
    assert runs.simulators["PBM"]["periods"] == 3
    exact = runs.verdict().fact("taken-as-exact")
    assert exact.more["names"] == ["PBM"]
    constant = evaluate(folder, policies="Random", horizon=5, runs=1, quiet=True)
    assert any(fact.code == "log-changes" for fact in constant.facts)


def test_which_items_a_period_showed(fitted, logs):
    """Of every (query, item), against the SERPs of the period, held out ones among them."""
    with load(logs / "changing").connect() as db:
        rows = db.execute(
            "SELECT DISTINCT (day - 1) // 9, query_id, unnest(items) FROM serps WHERE NOT test"
        ).fetchall()
    for periods in (fitted["changing"].periods, read_models(logs / "changing-models").periods):
        for j, period in enumerate(periods):
            model = period["PBM"]
            queries = [model.queries[q].query_id for q in model.item_query]
            found = zip(queries, model.item_ids.tolist(), strict=True)
            expected = {(q, item) for k, q, item in rows if k == j}
            assert model.shown.tolist() == [pair in expected for pair in found]
            assert 0 < model.shown.sum() < len(model.shown)


def test_constant_users_are_not_remarked_upon(logs, fitted):
    given = {"policies": "Random", "horizon": 5, "runs": 1, "quiet": True}
    runs = evaluate(logs / "constant-models", **given)
    assert not any("change" in fact.code for fact in runs.facts)
    exact = runs.verdict().fact("taken-as-exact")
    assert exact.more["names"] == ["PBM"]


def test_without_a_change_drift_says_that_nothing_is_different(logs, fitted):
    given = {"policies": "Random", "horizon": 50, "runs": 2, "quiet": True}
    with_drift = evaluate(logs / "constant-models", drift=True, **given)
    without = evaluate(logs / "constant-models", **given)
    assert with_drift.to_pandas().regret.tolist() == pytest.approx(
        without.to_pandas().regret.tolist()
    )
    codes = [fact.code for fact in with_drift.facts]
    assert "periods-alike" in codes
    assert "users-change" not in codes


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"periods": "month"}, "day, week"),
        ({"periods": "1"}, "day, week"),
        ({"periods": "week", "classes": 2}, "classes"),
        ({"periods": "week", "scope": "pooled"}, "pooled"),
        ({"periods": "week", "min_impressions": 5}, "min_impressions"),
        ({"periods": "week", "holdout": "days:25-27"}, "share"),
    ],
)
def test_what_cannot_be_fitted_by_period(logs, given, message):
    with pytest.raises(LogevalError, match=message):
        Fit(logs / "constant", ["pbm"], **given)


def test_drift_needs_periods(logs, fitted):
    with pytest.raises(LogevalError, match="--periods week"):
        evaluate(logs / "constant.truth", policies="Random", drift=True, horizon=5, quiet=True)
    with pytest.raises(LogevalError, match="changes=3"):
        evaluate(problem=["B_LB(L=5,K=2,p=0.5,gap=0.2)"], policies="Random", drift=True, horizon=5)


def strata_of(n, p, seed, slope=0.0, items=8, at=None):
    """``n`` searches of an item at a position in each of 4 periods, clicked with p, moving."""
    rng = np.random.default_rng(seed)
    item, period = (x.ravel() for x in np.meshgrid(np.arange(items), np.arange(4), indexing="ij"))
    moves = slope * rng.choice([-1.0, 1.0], items)[item] * np.linspace(-0.5, 0.5, 4)[period]
    clicked = rng.binomial(n, expit(logit(p) + moves)).astype(float)
    position = np.zeros_like(item) if at is None else at[period]
    query = np.zeros_like(item)
    return Strata(4, [Query(1)], query, item, position, period, np.full(len(item), n), clicked)


def test_deviations_are_those_of_the_hypergeometric_distribution():
    """Mean and covariance by brute force: every way in which 3 of 7 searches can be clicked."""
    n = np.array([2.0, 4.0, 1.0])
    of_search = np.repeat(np.arange(3), n.astype(int))
    each = [np.bincount(of_search[list(some)], minlength=3) for some in combinations(range(7), 3)]
    zero = np.zeros(3, np.int64)
    data = Strata(3, [Query(1)], zero, zero, zero, np.arange(3), n, each[5].astype(float))
    U, V = deviations(data, slice(0, 3))
    assert U[0] == pytest.approx(each[5] - np.mean(each, axis=0))
    assert V[0] == pytest.approx(np.cov(np.array(each).T, bias=True))


@pytest.mark.parametrize("n", [300, 3000])
def test_false_alarms_and_power_are_those_promised(n):
    """Of changes as large as may be: however many searches there are."""
    at = SIZE / np.std(np.linspace(-0.5, 0.5, 4), ddof=1)
    p = np.array([changes_of(strata_of(n, 0.2, seed, slope=at))[0].p[0] for seed in range(400)])
    for level in (0.05, 0.5):
        error = np.sqrt(level * (1 - level) / 400)
        assert (p < level).mean() == pytest.approx(level, abs=3 * error)
    found = [changes_of(strata_of(n, 0.2, seed, slope=2 * at))[0] for seed in range(200)]
    assert np.mean([x.found[0] for x in found]) == pytest.approx(found[0].power[0], abs=0.1)
    assert np.mean([x.size[0] for x in found]) == pytest.approx(2 * SIZE, rel=0.05)
    assert not any(changes_of(strata_of(n, 0.2, s, slope=at / 2))[0].found[0] for s in range(50))


def test_items_that_never_recur_at_a_position_cannot_be_tested():
    by_query, log = changes_of(strata_of(500, 0.3, 1, slope=4.0, at=np.arange(4)))
    for change in (by_query, log):
        assert change.power[0] == 0.0
        assert change.p[0] == 1.0
        assert not change.found[0]
        assert not change.tested[0]


def write_log(folder, users, lists, move, seed):
    """2 queries x 1,500 searches in 28 days, of which no list, or every one, recurs in a week."""
    rng, serps, L, size = np.random.default_rng(seed), [], 15, 5
    for query in (1, 2):
        w = expit(rng.normal(-1, 1, L))
        slope, e = move * rng.choice([-1, 1], L), np.array([1, 0.8, 0.6, 0.45, 0.35])
        pool = [[rng.permutation(L)[:size] for _ in range(4)] for _ in range(4)]
        for n in range(1500):
            week, now = 4 * n // 1500, expit(logit(w) + slope * (n / 1500 - 0.5))
            A = pool[week if lists == "weekly" else 0][n % 4]
            clicks = rng.random(size) < now[A] * (e if users == "pbm" else 1.0)
            if users == "dcm" and clicks.any():
                clicks[int(np.argmax(clicks)) + 1 :] &= rng.random() < 0.5
            items = (100 * query + A).tolist()
            serps.append(Serp(query, items, clicks.astype(int).tolist(), n, day=1 + 28 * n // 1500))
    return load(write_serps(folder, serps))


@pytest.mark.parametrize("users", ["pbm", "dcm"])
@pytest.mark.parametrize("lists", ["weekly", "always"])
def test_a_change_is_found_whether_lists_recur_or_not(users, lists, tmp_path):
    for move in (0.0, 2.0):
        found = of_log(write_log(tmp_path / str(move), users, lists, move, seed=5), None, None)
        assert found.tested[0]
        assert found.found[0] == (move > 0)


def test_users_who_change_are_a_fault_of_every_model(logs):
    for name in ("changing", "constant"):
        folder = logs / f"{name}-checked"
        fitted = fit_models(logs / name, ["pbm"], draws=8, periods="3", out=folder, quiet=True)
        checks = fitted["PBM"].report["checks"]
        assert ("drift" in checks["faulted"]) == (name == "changing")
        found = check_models(folder, logs / name, simulations=80, quiet=True)
        assert ("drift" in found.verdicts["PBM"].faulted) == (name == "changing")
        for drift in (False, True):  # those who change as the log's do are not at fault
            runs = evaluate(folder, policies="Random", horizon=5, runs=1, drift=drift, quiet=True)
            known = runs.simulators["PBM"]["checks"]["faulted"]
            assert ("drift" in known) == (name == "changing" and not drift)


def test_a_log_of_one_day_has_no_check_of_days(tmp_path):
    assert of_log(load(write_serps(tmp_path / "one", [Serp(1, [1, 2], [1, 0], 1, day=3)])), None,
                  None) is None  # fmt: skip
    assert of_log(load(write_serps(tmp_path / "no", [Serp(1, [1, 2], [1, 0], 1)])), None,
                  None) is None  # fmt: skip


def test_words():
    report = {"periods": ["1-7", "8-14"], "queries_tested": 20, "queries_drifting": 0,
              "log_drifts": False, "serps_drifting": 0.0,
              "log": {"tested": True, "power": 0.9, "size": 0.5}}  # fmt: skip
    assert "no change of users that matters is visible" in in_words("DCM", report)
    assert "90% of such logs" in in_words("DCM", report)
    changing = in_words("DCM", report | {"queries_drifting": 7, "serps_drifting": 0.6})
    assert "users change over the 2 periods: 7 of 20 queries tested, with 60%" in changing
    few = report | {"queries_drifting": 2, "serps_drifting": 0.1}  # of 20, by chance in one of 4
    assert "Use the constant model" in in_words("DCM", few)
    assert not changes(few)
    assert not changes(few | {"queries_drifting": 3})  # by chance in one of 13
    assert changes(few | {"queries_drifting": 4})  # by chance in one of 60
    whole = in_words("DCM", report | {"log_drifts": True})
    assert "all queries together show it, none of the 20 tested by itself" in whole
    assert "evaluate --drift" in changing
    untested = in_words("DCM", report | {"log": {"tested": False, "power": 0.02}})
    assert "cannot be tested" in untested
    assert "no change" not in untested
