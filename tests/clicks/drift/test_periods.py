"""Click models by period: what is folded, what is chosen, what is stored, what is said."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from logeval.clicks.collection import read_models
from logeval.clicks.drift.evidence import FEWEST, evidence
from logeval.clicks.drift.fit import RHO, exchanged, fit_by_period, fits_of
from logeval.clicks.drift.fold import fold_by_period, periods_of
from logeval.clicks.drift.words import changes, in_words
from logeval.clicks.fit import Fit, fit_models
from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.log.ingest import ingest
from logeval.log.log import load
from logeval.reports.trust import trust
from logeval.synthetic.generate import generate
from logeval.synthetic.world import make_world
from logeval.tracks.fitted import by_period, fitted_queries


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
    assert held_out[data.half == 1].sum() == pytest.approx(held_out[data.half == 2].sum(), rel=0.1)


def test_weights_fall_with_the_distance_of_periods(logs):
    data = fold_by_period(load(logs / "constant"), "3", None, None, 0.2, 0)
    asked, seen = Fit(logs / "constant", ["pbm"], draws=0), []

    def fit(patterns):
        seen.append([patterns.count[data.train_period == j].sum() for j in range(3)])
        return asked.fit("PBM", patterns, intervals=False)

    found = fit_by_period(fit, data, lambda n: None)
    whole = np.array(seen[0])
    assert len(seen) == fits_of(3) == 1 + 2 * 3 * len(RHO)
    for i, rho in enumerate(RHO):
        for j in range(3):
            expected = whole * rho ** np.abs(np.arange(3) - j)
            assert seen[1 + 3 * i + j] == pytest.approx(expected)
    # users who do not change have the constant model in every period
    assert not found.queries.drifts.any()
    constant = fit(data.train)
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
    rows = runs.table()
    assert rows[rows.policy == "Oracle"].regret.max() == 0.0
    query = rows["query"].iloc[0]
    mine = rows[(rows["query"] == query) & (rows.policy == "Oracle")].sort_values("t")
    best = []
    for period in fitted["changing"].periods:
        model = period["PBM", query]
        lists = model.best_rows(3, model.rewards[0])
        best.append(model.users.expected_reward(lists[None], model.rewards[0])[0])
    assert mine.optimal_reward.tolist() == pytest.approx(np.cumsum(10 * np.array(best)).tolist())
    (said,) = [note for note in runs.notes if "3 periods of equal length" in note]
    model, first = fitted["changing"]["PBM"], fitted["changing"].periods[0]["PBM"]
    moved = [
        any(p["PBM", q].w.tolist() != first.of(q).w.tolist() for p in fitted["changing"].periods)
        for q in model.queries
    ]
    assert f"users change (PBM: {sum(moved)} of 4 queries)" in said
    assert "mixes the lists of the whole log" in said
    assert runs.simulators["PBM"]["periods"] == 3
    (exact,) = [line for line in trust(runs) if "taken as exact" in line]
    assert "models by period have no draws" in exact
    constant = evaluate(folder, policies="Random", horizon=5, runs=1, quiet=True)
    assert any("compare policies that forget with evaluate --drift" in n for n in constant.notes)


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


def with_absent_items(models):
    """A query of which every period lacks some items."""
    fits = [period["PBM"] for period in models.periods]
    for q, query in enumerate(fits[0].queries):
        if not any(fit.shown[fit.span(q)].all() for fit in fits):
            return query
    raise AssertionError("all items are always there")


@pytest.mark.parametrize("policy", ["Oracle", "Random"])
def test_items_come_and_go(fitted, logs, policy):
    """The best list of each moment by brute force over the items that the period showed."""
    query, K = with_absent_items(fitted["changing"]), 2
    runs = evaluate(
        logs / "changing-models", policies=policy, drift=True, come_and_go=True, horizon=30, runs=1,
        positions=K, queries=[query], checkpoints=[10, 20, 30], quiet=True,
    )  # fmt: skip
    best = []
    for period in fitted["changing"].periods:
        fit = period["PBM"]
        model, shown = fit.of(query), fit.shown[fit.span(fit.index[query])]
        lists = np.array(list(permutations(np.flatnonzero(shown), K)))
        best.append(model.users.expected_reward(lists, model.rewards[0]).max())
    rows = runs.table().sort_values("t")
    assert rows.optimal_reward.tolist() == pytest.approx(np.cumsum(10 * np.array(best)).tolist())
    assert (rows.regret.max() == 0.0) == (policy == "Oracle")
    assert not any("users change" in note for note in runs.notes)  # items do, whoever else does
    assert any("walk through 3 periods" in note for note in runs.notes)
    (said,) = [note for note in runs.notes if "come and go" in note]
    at = fit.span(fit.index[query])
    flags = [p["PBM"].shown[at] for p in fitted["changing"].periods]
    assert f"{1 - np.mean(flags):.0%} of a query's items" in said


def test_nobody_clicks_an_item_that_is_away(fitted, logs):
    """What any list earns: as if its absent items had no attraction."""
    query = with_absent_items(fitted["changing"])
    asked = fitted_queries(fitted["changing"], 3, None, [query])
    (mine,) = by_period(asked, fitted["changing"], come_and_go=True)
    for model, period in zip((mine.model, *mine.later), fitted["changing"].periods, strict=True):
        fit = period["PBM"]
        shown, whole = fit.shown[fit.span(fit.index[query])], fit.of(query)
        assert model.w.tolist() == np.where(shown, whole.w, 0.0).tolist()
        assert model.e.tolist() == whole.e.tolist()
    assert mine.ranker is None


def test_come_and_go_needs_periods_that_know_their_items(fitted, logs):
    with pytest.raises(LogevalError, match="add drift"):
        evaluate(logs / "changing-models", policies="Random", come_and_go=True, horizon=5)
    old = [
        replace(one, fitted={"PBM": replace(one["PBM"], shown=None)})
        for one in fitted["changing"].periods
    ]
    models = replace(fitted["changing"], periods=tuple(old))
    with pytest.raises(LogevalError, match="fit them again"):
        evaluate(models, policies="Random", drift=True, come_and_go=True, horizon=5, quiet=True)


def test_constant_users_are_not_remarked_upon(logs, fitted):
    given = {"policies": "Random", "horizon": 5, "runs": 1, "quiet": True}
    runs = evaluate(logs / "constant-models", **given)
    assert not any("change" in note for note in runs.notes)
    (exact,) = [line for line in trust(runs) if "taken as exact" in line]
    assert exact.endswith("; --draws 8 includes what the log leaves open")


def test_without_a_change_drift_says_that_nothing_is_different(logs, fitted):
    given = {"policies": "Random", "horizon": 50, "runs": 2, "quiet": True}
    with_drift = evaluate(logs / "constant-models", drift=True, **given)
    without = evaluate(logs / "constant-models", **given)
    assert with_drift.table().regret.tolist() == pytest.approx(without.table().regret.tolist())
    assert any("shows no change of users" in note for note in with_drift.notes)
    assert not any("users change" in note for note in with_drift.notes)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"periods": "month"}, "day, week"),
        ({"periods": "1"}, "day, week"),
        ({"periods": "week", "classes": 2}, "classes"),
        ({"periods": "week", "scope": "pooled"}, "pooled"),
        ({"periods": "week", "min_impressions": 5}, "min_impressions"),
        ({"periods": "week", "holdout": "days:25-27"}, "share"),
        ({"periods": "week", "alternatives": True}, "alternatives"),
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


def say(score, *more):
    """The evidence where exchanged periods predict as the constant model does."""
    return evidence(score, np.tile(score[-1], (len(score), 1)), *more)


def scores_of(gain, n=400, seed=0):
    """One candidate that is better than the constant model by ``gain`` per SERP."""
    rng = np.random.default_rng(seed)
    constant = -rng.exponential(size=n)
    return np.stack([constant + gain + rng.normal(0, 0.2, n), constant])


@pytest.mark.parametrize(("gain", "drifts"), [(0.1, True), (0.0, False), (-0.1, False)])
def test_say(gain, drifts):
    half = np.arange(400) % 2 + 1
    found = say(scores_of(gain), np.ones(400), np.zeros(400, np.int64), half, 1)
    assert found.drifts.tolist() == [drifts]
    assert found.enough.all()


def test_what_exchanged_periods_predict_as_well_is_no_evidence():
    half, score = np.arange(400) % 2 + 1, scores_of(0.3)
    noise = np.random.default_rng(5).normal(0, 0.2, score.shape)
    given = np.ones(400), np.zeros(400, np.int64), half, 1
    assert say(score, *given).drifts.all()
    assert not evidence(score, score + noise, *given).drifts.any()


def test_periods_are_exchanged_among_the_same_lists(logs):
    train = fold_by_period(load(logs / "changing"), "3", None, None, 0.2, 0)
    data, old = train.train, train.train_period
    serp = np.repeat(np.arange(data.P), data.count.astype(int))
    new = exchanged(data, serp, old[serp], seed=1)
    lists = np.unique(data.items, axis=0, return_inverse=True)[1].ravel()[serp]
    before, after = (np.sort(lists * 3 + x) for x in (old[serp], new))
    assert before.tolist() == after.tolist()
    assert (old[serp] != new).mean() > 0.2


def test_nothing_is_said_of_few_serps():
    n = 2 * FEWEST - 1
    found = say(scores_of(1.0, n), np.ones(n), np.zeros(n, np.int64), np.arange(n) % 2 + 1, 1)
    assert not found.enough.any()
    assert not found.drifts.any()


def test_a_group_is_judged_by_its_own_serps():
    score = np.concatenate([scores_of(0.3), scores_of(-0.3, seed=1)], axis=1)
    group, half = np.repeat([0, 1], 400), np.tile(np.arange(400) % 2 + 1, 2)
    found = say(score, np.ones(800), group, half, 2)
    assert found.drifts.tolist() == [True, False]
    assert found.choice.tolist() == [0, 1]


def test_counts_are_serps():
    score, half = scores_of(0.1, 200), np.arange(200) % 2 + 1
    once = say(
        np.repeat(score, 3, axis=1), np.ones(600), np.zeros(600, np.int64), np.repeat(half, 3), 1
    )
    thrice = say(score, np.full(200, 3.0), np.zeros(200, np.int64), half, 1)
    assert thrice.z == pytest.approx(once.z)
    assert thrice.gain == pytest.approx(once.gain)


def test_words():
    report = {"periods": ["1-7", "8-14"], "queries_tested": 20, "queries_drifting": 0,
              "log_drifts": False, "serps_drifting": 0.0}  # fmt: skip
    assert "no change of users is visible" in in_words("DCM", report)
    changing = in_words("DCM", report | {"queries_drifting": 7, "serps_drifting": 0.6})
    assert "users change over the 2 periods: 7 of 20 queries tested, with 60%" in changing
    few = report | {"queries_drifting": 2, "serps_drifting": 0.1}  # of 20, by chance in one of 4
    assert "no more than chance" in in_words("DCM", few)
    assert "Use the constant model" in in_words("DCM", few)
    assert not changes(few)
    assert not changes(few | {"queries_drifting": 3})  # by chance in one of 13
    assert changes(few | {"queries_drifting": 4})  # by chance in one of 60
    whole = in_words("DCM", report | {"log_drifts": True})
    assert "all queries together show it, none of the 20 tested by itself" in whole
    assert "evaluate --drift" in changing
    assert "longer periods" in in_words("DCM", report | {"queries_tested": 0})


def test_choosing_among_many_candidates_raises_no_false_alarms():
    rng, G, n = np.random.default_rng(2), 400, 120
    score = np.concatenate([rng.normal(0, 1, (20, G * n)), np.zeros((1, G * n))])  # no better
    group, half = np.repeat(np.arange(G), n), np.tile(np.arange(n) % 2 + 1, G)
    found = say(score, np.ones(G * n), group, half, G)
    assert found.drifts.mean() < 0.05 + 3 * np.sqrt(0.05 * 0.95 / G)
