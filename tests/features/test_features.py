"""Features from a log: the click matrix, its SVD, the table, and what is refused."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import logeval
from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.features.make import make_features
from logeval.features.table import click_matrix, read_features
from logeval.features.vectors import CONTEXTS, dimension, item_contexts, normalised, truncated_svd
from logeval.log.ingest import ingest
from logeval.synthetic.generate import generate
from logeval.tracks.worlds import fill_contexts

ALL = slice(None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("features")


@pytest.fixture(scope="module")
def log(folder):
    generate(folder / "log.tsv", sessions=1500, queries=5, users=60, taste=1.0, seed=1, quiet=True)
    return ingest([str(folder / "log.tsv")], folder / "log", quiet=True)


@pytest.fixture(scope="module")
def models(folder, log):
    return logeval.fit_models(
        log, "DCM", top_queries=3, holdout=0.5, out=folder / "models", quiet=True
    )


def test_the_matrix_counts_clicked_serps_of_users(log):
    found = click_matrix(log)
    cells = {}
    serps = log.serps(columns=["user_id", "test", "items", "clicks"]).to_pylist()
    for serp in serps:
        for item, clicks in zip(serp["items"], serp["clicks"], strict=True):
            if clicks and not serp["test"]:
                key = serp["user_id"], item
                cells[key] = cells.get(key, 0) + 1
    u, j = found.clicks.nonzero()
    mine = {(int(found.user_ids[a]), int(found.item_ids[b])): int(found.clicks[a, b])
            for a, b in zip(u, j, strict=True)}  # fmt: skip
    assert mine == cells


def test_of_too_many_items_those_clicked_most_are_used(log, monkeypatch):
    whole = click_matrix(log)
    monkeypatch.setattr("logeval.features.table.MOST", 20)
    clicks = whole.clicks.sum(axis=0)
    rare = whole.item_ids[np.flatnonzero(clicks == 1)[:2]]
    found = click_matrix(log, wanted=np.array([*rare, -7]))
    most = whole.item_ids[np.lexsort((whole.item_ids, -clicks))[:20]]
    assert found.item_ids.tolist() == sorted({*most, *rare})
    kept = np.isin(whole.item_ids, found.item_ids)
    assert found.used == pytest.approx(clicks[kept].sum() / clicks.sum())
    rows = np.isin(whole.user_ids, found.user_ids)
    assert (found.clicks != whole.clicks[rows][:, kept]).nnz == 0
    assert whole.clicks[~rows][:, kept].nnz == 0


def test_batches_may_end_within_a_user(log, monkeypatch):
    whole = click_matrix(log)
    monkeypatch.setattr("logeval.features.table.CHUNK", 3)
    found = click_matrix(log)
    assert (found.user_ids == whole.user_ids).all()
    assert (found.clicks != whole.clicks).nnz == 0


def test_without_users_a_row_is_a_session(folder):
    generate(folder / "old.tsv", format="yandex-relpred", sessions=300, queries=5, quiet=True)
    old = ingest([str(folder / "old.tsv")], folder / "old", quiet=True)
    assert click_matrix(old).rows == "session"
    with pytest.raises(LogevalError, match="has no users; use the context 'item'"):
        make_features(old, context="user+item", quiet=True)


def random_clicks(shape, density, seed):
    rng = np.random.default_rng(seed)
    cells = int(density * shape[0] * shape[1])
    u, j = (rng.integers(0, size, cells) for size in shape)
    return sparse.csr_array((rng.random(cells), (u, j)), shape=shape)


@pytest.mark.parametrize("shape", [(40, 12), (12, 40)])
def test_the_svd_is_numpys(shape):
    A = random_clicks(shape, 0.3, seed=0)
    found = truncated_svd(A, 5)
    U, s, Vt = np.linalg.svd(A.toarray(), full_matrices=False)
    assert found.values == pytest.approx(s[:5])
    users, items = found.users.of(ALL), found.items.of(ALL)
    assert np.abs(items.T) == pytest.approx(np.abs(Vt[:5]), abs=1e-8)
    assert users @ items.T == pytest.approx((U[:, :5] * s[:5]) @ Vt[:5], abs=1e-8)
    assert (items[np.abs(items).argmax(axis=0), np.arange(5)] > 0).all()


@pytest.mark.parametrize("shape", [(60, 50), (50, 60)])
def test_arpack_and_the_dense_way_agree(monkeypatch, shape):
    A = random_clicks(shape, 0.2, seed=1)
    dense = truncated_svd(A, 8)
    monkeypatch.setattr("logeval.features.vectors.DENSE", 10)
    arpack = truncated_svd(A, 8)
    assert arpack.values == pytest.approx(dense.values)
    assert arpack.items.of(ALL) == pytest.approx(dense.items.of(ALL), abs=1e-7)
    assert arpack.users.of(ALL) == pytest.approx(dense.users.of(ALL), abs=1e-7)


@pytest.mark.parametrize("shape", [(60, 50), (50, 60)])
def test_vectors_looked_at_in_blocks_are_the_same(monkeypatch, shape):
    A = random_clicks(shape, 0.2, seed=1)
    whole = truncated_svd(A, 8)
    monkeypatch.setattr("logeval.features.vectors.BLOCK", 7)
    blocks = truncated_svd(A, 8)
    for one, other in ((whole.users, blocks.users), (whole.items, blocks.items)):
        assert other.of(ALL) == pytest.approx(one.of(ALL), abs=1e-12)
        all_vectors = one.of(ALL)
        scaled = all_vectors / np.linalg.norm(all_vectors, axis=1).max()
        assert other.scaled(np.array([5, 3])) == pytest.approx(scaled[[5, 3]], abs=1e-12)


@pytest.mark.parametrize("shape", [(30_000, 3000), (3000, 30_000)])
def test_the_larger_side_is_never_held(shape):
    """Neither users x d nor items x d, whichever are more: 30,000 x 40 numbers are 9.6 MB."""
    A = random_clicks(shape, 1e-3, seed=5)
    tracemalloc.start()
    found = truncated_svd(A, 40)
    some = np.arange(10)
    found.users.scaled(some), found.items.scaled(some)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    smaller, d = 3000, 40
    assert peak < 8 * smaller * (2.25 * d + 40) + 5e6


def test_a_smaller_rank_is_used():
    rng = np.random.default_rng(2)
    low = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 20))
    assert len(truncated_svd(sparse.csr_array(low), 10).values) == 3


def user_contexts(context, user, items, r):
    """The contexts of all items for one user, by the kernel of the environment."""
    X = np.empty((1, len(items), dimension(context, items.shape[1], r)))
    q, p = normalised(items[:, :r]), normalised(user[None, :r])
    arm, product = np.arange(len(items))[None], context == "user*item"
    fill_contexts(product, np.zeros(1, dtype=int), arm, items, user[None], q, p, X)
    return X[0]


def test_contexts_are_what_their_table_says():
    rng = np.random.default_rng(5)
    items, user = rng.standard_normal((4, 5)), rng.standard_normal(5)
    for j, v in enumerate(items):
        beside = np.array([1.0, *v, *user]) / np.sqrt(3.0)
        assert user_contexts("user+item", user, items, 2)[j] == pytest.approx(beside)
        q, p = (x[:2] / np.linalg.norm(x[:2]) for x in (v, user))
        product = np.array([1.0, *v, *np.outer(q, p).ravel()]) / np.sqrt(3.0)
        assert user_contexts("user*item", user, items, 2)[j] == pytest.approx(product)


@pytest.mark.parametrize("context", CONTEXTS)
def test_contexts_have_norm_at_most_1_and_a_constant(context):
    rng = np.random.default_rng(3)
    items, user = (
        normalised(rng.standard_normal((9, 4))),
        normalised(rng.standard_normal((1, 4)))[0],
    )
    items[2] = 0.0
    x = item_contexts(items) if context == "item" else user_contexts(context, user, items, 3)
    assert np.linalg.norm(x, axis=1).max() <= 1 + 1e-12
    assert np.ptp(x[:, 0]) == 0.0
    assert x[0, 0] > 0


def test_concatenation_cannot_change_a_ranking_and_the_product_can():
    rng = np.random.default_rng(4)
    items, users = normalised(rng.standard_normal((9, 4))), normalised(rng.standard_normal((20, 4)))
    for context, rankings in (("user+item", 1), ("user*item", 2)):
        theta = rng.standard_normal(user_contexts(context, users[0], items, 3).shape[1])
        found = {
            tuple(np.argsort(user_contexts(context, user, items, 3) @ theta)) for user in users
        }
        assert (len(found) == 1) == (rankings == 1)


def test_the_table_is_read_as_it_was_written(folder, log):
    ask = {"top_queries": 3, "items": 20, "dim": 8, "context": "user*item", "users": 25}
    ask["quiet"] = True
    made = make_features(log, **ask, out=folder / "f1")
    found = read_features(folder / "f1")
    assert found.items.equals(made.items)
    assert found.users.equals(made.users)
    assert found.users.num_rows == 25
    ids, vectors = found.of_query(found.queries[0])
    assert len(ids) <= 20
    assert vectors.shape == (len(ids), 8)
    assert np.linalg.norm(vectors, axis=1).max() <= 1 + 1e-12
    assert make_features(log, **ask).items.equals(made.items)


def test_dim_above_the_rank_is_cut_to_it(log):
    made = make_features(log, top_queries=2, dim=500, quiet=True)
    assert made.d == made.manifest["rank"] < 500
    assert made.of_query(made.queries[0])[1].shape[1] == made.d


def test_an_item_never_clicked_has_the_vector_0(log):
    made = make_features(log, top_queries=3, quiet=True)
    norms = np.concatenate([np.linalg.norm(made.of_query(q)[1], axis=1) for q in made.queries])
    assert (norms == 0).sum() == made.manifest["never_clicked"] > 0


def test_features_and_models_share_no_session(folder, log, models):
    """Moving a session from one half to the other moves it from features to models."""
    from logeval.clicks.estimation.fold import Holdout

    with log.connect() as db:
        half = Holdout(share=0.5).sql(0)
        ((mine, theirs, both),) = db.execute(
            f"SELECT count(*) FILTER ({half}), count(*) FILTER (NOT {half}), count(*) FROM serps"
        ).fetchall()
    assert mine + theirs == both
    assert 0.4 < mine / both < 0.6
    made = make_features(log, top_queries=3, quiet=True)
    assert made.manifest["matrix"]["cells"] == click_matrix(log, half).clicks.nnz


def run(models, features, **more):
    return evaluate(
        models, features=features, policies=["GL-CDCM", "Random"], horizon=60, runs=2, block=20,
        quiet=True, **more,
    )  # fmt: skip


def test_evaluate_runs_on_fitted_queries_in_turn(folder, log, models):
    features = make_features(log, top_queries=3, items=30, dim=20, quiet=True)
    rows = run(folder / "models", features).to_pandas()
    assert set(rows["query"]) == {"+".join(features.queries)}
    assert set(rows["track"]) == {"contextual"}
    assert rows["cosine_distance"].isna().all()


def test_a_leak_is_refused_unless_allowed_and_then_said(folder, log):
    leaky = make_features(log, top_queries=3, dim=20, same_log=True, quiet=True)
    with pytest.raises(LogevalError, match="share sessions"):
        run(folder / "models", leaky)
    assert run(folder / "models", leaky, same_log=True).facts[0].code == "features-leak"
    other_half = make_features(log, top_queries=3, dim=20, seed=1, quiet=True)
    with pytest.raises(LogevalError, match="share sessions"):
        run(folder / "models", other_half)


def test_features_of_another_log_are_refused(folder, models):
    generate(folder / "other.tsv", sessions=400, queries=5, seed=2, quiet=True)
    other = ingest([str(folder / "other.tsv")], folder / "other", quiet=True)
    with pytest.raises(LogevalError, match="another log"):
        run(folder / "models", make_features(other, dim=10, quiet=True))


def test_features_of_queries_that_are_not_fitted_are_refused(folder, log, models):
    features = make_features(log, top_queries=5, dim=10, quiet=True)
    with pytest.raises(LogevalError, match="which the models do not have"):
        run(folder / "models", features)


def test_too_few_items_are_refused(folder, log, models):
    features = make_features(log, top_queries=3, items=6, dim=10, quiet=True)
    with pytest.raises(LogevalError, match="only 6 of its items have features"):
        run(folder / "models", features)


def test_a_query_may_have_fewer_items_than_asked_for(folder, log, models):
    features = make_features(log, top_queries=3, items=10_000, dim=10, quiet=True)
    sizes = [len(features.of_query(q)[0]) for q in features.queries]
    assert len(set(sizes)) > 1
    run(folder / "models", features)


@pytest.mark.parametrize("context", CONTEXTS)
def test_tastes_of_the_truth_make_users_differ(folder, log, context):
    features = make_features(log, top_queries=2, dim=10, context=context, quiet=True)
    done = evaluate(
        folder / "log.truth", features=features, policies=["Oracle(users=common)", "GL-CDCM"],
        horizon=60, runs=2, quiet=True,
    )  # fmt: skip
    assert (done.to_pandas().query("t == 60")["regret"] > 0).all()


def test_other_click_models_are_refused(folder, log):
    logeval.fit_models(log, "PBM", top_queries=3, holdout=0.5, out=folder / "pbm", quiet=True)
    with pytest.raises(LogevalError, match="needs a DCM"):
        run(folder / "pbm", make_features(log, top_queries=3, dim=10, quiet=True))
