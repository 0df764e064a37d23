"""Classes are found again in clicks drawn from them: EM, posterior, tables, how many."""

import json

import numpy as np
import pytest

from logeval.clicks.collection import models_of_json, read_models
from logeval.clicks.estimation.classes import (
    chosen_number,
    fit_classes,
    in_words,
    number_of,
)
from logeval.clicks.estimation.driver import Problem, by_clicks
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.estimation.posterior import to_shares, to_sticks, with_uncertainty
from logeval.clicks.fit import fit_models
from logeval.clicks.inspection import inspect
from logeval.clicks.models.dcm import DCM
from logeval.clicks.models.registry import MODELS, model_names
from logeval.errors import LogevalError
from logeval.exports.export import export
from logeval.log.ingest import ingest
from logeval.log.queries import Query
from logeval.reports.figures.models import plot_parameters
from logeval.synthetic.generate import generate

ITEMS, K, N = 8, 4, 6000


def clicks_of(classes, share, n=N, seed=0, Q=1):
    """Patterns of Q queries with the same classes, each list a random one of ITEMS items."""
    rng = np.random.default_rng(seed)
    rows = []
    for q in range(Q):
        A = np.argsort(rng.random((n, ITEMS)), axis=1)[:, :K]
        z = rng.choice(len(share), n, p=share)
        clicks = np.zeros((n, K), dtype=bool)
        for c, model in enumerate(classes):
            mine = z == c
            clicks[mine] = model.sample(A[mine], rng.random((int(mine.sum()), K)))
        rows.append(np.column_stack([np.full(n, q), A + q * ITEMS, clicks]))
    folded, count = np.unique(np.concatenate(rows), axis=0, return_counts=True)
    return Patterns(
        [Query(q, 0) for q in range(Q)], folded[:, 0], folded[:, 1 : K + 1],
        folded[:, K + 1 :].astype(bool), np.full(len(folded), K), count.astype(float),
        np.tile(np.arange(ITEMS), Q), np.arange(Q + 1) * ITEMS,
    )  # fmt: skip


def dcm(w, v):
    return DCM(np.arange(ITEMS), K, np.array(w), np.full(K, v))


SELDOM = dcm(np.linspace(0.02, 0.08, ITEMS), 0.9)
MUCH = dcm(np.linspace(0.8, 0.2, ITEMS), 0.1)
TRUTH = [SELDOM, MUCH]
SHARE = [0.6, 0.4]


@pytest.fixture(scope="module")
def data():
    return clicks_of(TRUTH, SHARE)


def problem_of(data, C, kind=DCM, **options):
    asked = Options(kind.method("em"), **{"scope": "per-query", **options})
    return Problem(kind.beside(data, asked), data, asked, np.ones((data.Q, C), dtype=bool))


def test_em_never_lowers_the_penalised_likelihood(data):
    problem = problem_of(data, 2)
    users = problem.start(0)
    _, result = problem.maximise(users, 60, 0.0)
    assert (np.diff(result.trace) >= -1e-9 * np.abs(result.trace[:-1])).all()


@pytest.mark.parametrize("kind", [kind for name, kind in MODELS.items() if name != "Choice"])
def test_every_model_fitted_by_em_has_classes_and_em_climbs(kind, data):
    problem = problem_of(data, 2, kind)
    users, _ = problem.maximise(problem.start(0), 3, 0.0)
    _, result = problem.maximise(users, 25, 0.0)
    assert (np.diff(result.trace) >= -1e-7 * np.abs(result.trace[:-1])).all()


def test_the_likelihood_is_that_of_the_models(data):
    problem = problem_of(data, 2)
    users, _ = problem.fitted()
    _, total = problem.responsibilities(users)
    each = [
        np.exp(DCM(np.arange(ITEMS), K, x["w"], x["v"][0]).log_likelihood(data.items, data.clicks))
        for x in users.x
    ]
    assert total == pytest.approx(np.log(users.share[0] @ np.array(each)))


def test_planted_classes_are_found_again(data):
    """Within five standard errors, as if the class of every user were known: it is nearly so."""
    problem = problem_of(data, 2)
    users, result = problem.fitted()
    assert result.converged.all()
    assert abs(users.share[0, 0] - 0.6) < 5 * np.sqrt(0.6 * 0.4 / N)
    shown = data.impressions
    for c, true in enumerate(TRUTH):
        error = np.sqrt(true.w * (1 - true.w) / (shown * SHARE[c]))
        assert (np.abs(users.x[c]["w"] - true.w) < 5 * error + 0.02).all()
    assert users.x[0]["v"][0, 0] > 0.6
    assert users.x[1]["v"][0, 0] < 0.2


def test_classes_are_ordered_by_clicks_whatever_the_start(data):
    problem = problem_of(data, 2)
    users, _ = problem.fitted()
    users.share, users.x = users.share[:, ::-1].copy(), users.x[::-1]
    again = problem.ordered(users)
    assert again.x[0]["w"].mean() < again.x[1]["w"].mean()
    assert again.share[0, 0] == pytest.approx(0.6, abs=0.05)


def test_draws_hold_what_items_earn_and_belong_together(data):
    """An item at the top is clicked with probability sum_c share(c) w_c: 60 draws hold it."""
    problem = problem_of(data, 2, draws=60)
    users, _ = problem.fitted()
    share, parts = with_uncertainty("DCM", problem, users)
    assert share.draws.shape == (60, 1, 2)
    assert share.draws.sum(axis=2) == pytest.approx(1.0)
    drawn = sum(share.draws[:, 0, [c]] * parts[c]["w"].draws for c in range(2))  # (60, ITEMS)
    true = sum(s * model.w for s, model in zip((0.6, 0.4), TRUTH, strict=True))
    low, high = np.quantile(drawn, [0.005, 0.995], axis=0)
    assert ((low <= true) & (true <= high)).sum() >= ITEMS - 1
    assert (drawn.std(axis=0) < 0.03).all()  # 6,000 SERPs: about 3,000 with the item
    assert np.isnan(share.low).all()
    assert np.isnan(parts[0]["w"].high).all()
    assert parts[0]["w"].draws.shape == (60, ITEMS)
    mean = parts[1]["w"].draws.mean(axis=0)
    assert (np.abs(mean - parts[1]["w"].value) < 0.05).all()


def test_sticks_are_shares():
    share = np.random.default_rng(0).dirichlet(np.ones(4), 6)
    assert to_shares(to_sticks(share)) == pytest.approx(share)
    assert to_shares(np.zeros((3, 0))).tolist() == [[1.0]] * 3


def test_the_start_deals_serps_by_their_clicks(data):
    r = by_clicks(data, 3)
    assert r.sum(axis=1) == pytest.approx(1.0)
    assert (data.count @ r / data.count.sum()) == pytest.approx([1 / 3] * 3)
    rate = (data.count * data.clicks.sum(axis=1)) @ r
    assert (np.diff(rate) > 0).all()


# -- how many ----------------------------------------------------------------------------------


def test_held_out_serps_choose_two_classes_where_there_are_two():
    five = clicks_of(TRUTH, SHARE, n=2000, Q=5)
    assert chosen_number(DCM, five, Options("em", "per-query")) == 2


def test_held_out_serps_choose_one_class_where_users_do_not_differ():
    one = clicks_of([dcm(np.linspace(0.1, 0.6, ITEMS), 0.5)], [1.0])
    found = fit_classes(DCM, one, Options("em", "per-query", draws=0), "auto")
    assert (found.share.value > 0).sum(axis=1).tolist() == [1]


def test_classes_that_are_not_there_are_taken_out_and_said():
    one = clicks_of([dcm(np.full(ITEMS, 0.3), 0.5)], [1.0], n=40)
    found = fit_classes(DCM, one, Options("em", "per-query", draws=0), 4)
    assert (found.share.value > 0).sum() < 4
    assert found.share.value.sum() == pytest.approx(1.0)
    assert any("fewer than 4 classes" in note for note in found.notes)


def test_many_small_queries_are_fitted_together_in_the_classes_that_they_share():
    """None of them tells by its own SERPs that there are two; all of them do, and share priors."""
    many = clicks_of(TRUTH, SHARE, n=100, Q=20)
    options = Options("em", "partial", draws=0)
    found, fixed = (fit_classes(DCM, many, options, classes) for classes in ("auto", 2))
    assert (found.number, found.share.value.shape) == (2, (20, 2))
    assert (found.share.value > 0).all(axis=1).mean() > 0.8
    for one, other in zip(found.parts, fixed.parts, strict=True):
        assert (one.estimates["w"].value == other.estimates["w"].value).all()


def test_who_the_classes_are_in_words():
    rows = [
        {"users": 31.0, "no_click": 0.9, "one_click": 0.1, "clicks": 0.1},
        {"users": 45.0, "no_click": 0.1, "one_click": 0.8, "clicks": 1.0},
        {"users": 24.0, "no_click": 0.0, "one_click": 0.1, "clicks": 3.14},
    ]
    assert in_words(rows) == (
        "31% leave without a click; 45% take one result; 24% open 3.1 results on average"
    )


@pytest.mark.parametrize("text", ["0", "21", "two", "-1", "1.5"])
def test_numbers_of_classes_that_cannot_be(text):
    with pytest.raises(LogevalError, match="from 1 to 20, or auto"):
        number_of(text)


def test_names_with_classes():
    assert model_names(["dcm(classes=3)", "PBM(classes=1)", "ubm"]) == [
        "DCM(classes=3)", "PBM", "UBM"
    ]  # fmt: skip
    assert model_names(["dcm", "pbm(classes=2)"], "auto") == ["DCM(classes=auto)", "PBM(classes=2)"]


# -- from a log to simulators ------------------------------------------------------------------


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classes")
    generate(
        folder / "log.tsv", model="dcm(classes=3)", sessions=4000, queries=20, seed=3, quiet=True
    )
    ingest(folder / "log.tsv", folder / "log", quiet=True)
    return folder / "log"


def test_a_fit_is_the_same_read_from_its_folder(log, tmp_path):
    made = fit_models(log, "dcm", classes=2, top_queries=2, draws=3, out=tmp_path / "m", quiet=True)
    read = read_models(tmp_path / "m")
    assert list(made.fitted) == ["DCM(classes=2)"]
    for query in made.queries:
        a, b = (models["DCM(classes=2)", query] for models in (made, read))
        assert a.share == pytest.approx(b.share)
        for one, other in zip(a.classes, b.classes, strict=True):
            assert one.w == pytest.approx(other.w)
            assert one.v == pytest.approx(other.v)
        drawn = [m["DCM(classes=2)"].drawn(2).of(query) for m in (made, read)]
        assert drawn[0].classes[1].w == pytest.approx(drawn[1].classes[1].w, abs=1e-6)
    rows = made.table()
    assert set(rows["class"].dropna()) == {1, 2}
    assert set(rows.loc[rows["parameter"] == "share", "class"]) == {1, 2}


def test_what_was_chosen_is_said_and_recorded_also_without_draws(log, tmp_path):
    made = fit_models(log, "dcm", classes="auto", draws=0, out=tmp_path / "m", quiet=True)
    for models in (made, read_models(tmp_path / "m")):
        report = models.manifest["models"]["DCM(classes=auto)"]
        number = report["number_of_classes"]
        assert 1 <= max(map(int, report["classes"])) <= number <= 6
        assert report["who"].startswith(f"{number} class")
        assert models["dcm"].model == "DCM(classes=auto)"
    judged = export(tmp_path / "m", judgments="csv", model="dcm")
    assert len(judged.table) == len(made["dcm"].item_ids)


def test_a_name_that_several_models_have_is_refused(log):
    made = fit_models(log, ["dcm(classes=2)", "dcm(scope=pooled)"], draws=0, quiet=True)
    with pytest.raises(LogevalError, match=r"DCM\(classes=2\) and DCM\(scope=pooled\)"):
        made["dcm"]
    with pytest.raises(LogevalError, match=r"no DCM\(classes=3\) here"):
        made["dcm(classes=3)"]


def test_a_query_is_looked_at_class_by_class(log):
    """Columns of each class; what they click on the best list adds up to what it earns."""
    made = fit_models(log, "pbm", classes=2, top_queries=1, draws=0, quiet=True)
    (query,) = made.queries
    found, model = inspect(made, query), made["PBM(classes=2)", query]
    assert found.classes["class"].tolist() == ["1", "2"]
    assert found.classes["share"].to_numpy() == pytest.approx(model.share)
    assert (found.classes["share"] * found.classes["clicks"]).sum() == pytest.approx(found.value)
    for c, one in enumerate(model.classes):
        assert found.items[f"attraction {c + 1}"].to_numpy() == pytest.approx(one.w)
        assert found.positions[f"examination {c + 1}"].to_numpy() == pytest.approx(one.e)
    with pytest.raises(LogevalError, match=r"each class of users.*inspect"):
        plot_parameters(made, "attraction")


def test_the_truth_of_a_generated_log_has_its_classes(log):
    truth = read_models(log.parent / "log.truth")
    (name,) = truth.fitted
    assert name == "DCM(classes=3)"
    model = truth[name, truth.queries[0]]
    assert len(model.classes) == 3
    lists = np.tile(np.arange(10), (1, 1))
    clicks = [one.expected_reward(lists, "clicks")[0] for one in model.classes]
    assert clicks == sorted(clicks)


def test_shares_that_do_not_add_up_are_refused(log, tmp_path):
    made = fit_models(log, "dcm", classes=2, top_queries=1, draws=0, quiet=True)
    rows = json.loads(made.to_json())
    for row in rows["rows"]:
        if row["parameter"] == "share":
            row["value"] = 0.9
    with pytest.raises(LogevalError, match="must add up to 1"):
        models_of_json(json.dumps(rows))
