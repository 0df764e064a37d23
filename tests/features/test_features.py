"""Features from a log: the click matrix, its SVD, the table, and what is refused."""

import numpy as np
import pytest
from scipy import sparse

import logeval
from logeval.errors import LogevalError
from logeval.evaluation import evaluate
from logeval.features.contexts import CONTEXTS, item_contexts, user_contexts
from logeval.features.factors import scaled, truncated_svd
from logeval.features.matrix import click_matrix
from logeval.features.table import make_features, read_features
from logeval.log.ingest import ingest
from logeval.synthetic.generate import generate


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


def test_without_users_a_row_is_a_session(folder):
    generate(folder / "old.tsv", format="yandex-relpred", sessions=300, queries=5, quiet=True)
    old = ingest([str(folder / "old.tsv")], folder / "old", quiet=True)
    assert click_matrix(old).rows == "session"
    with pytest.raises(LogevalError, match="has no users; use the context 'item'"):
        make_features(old, context="user+item", quiet=True)


@pytest.mark.parametrize("shape", [(40, 12), (12, 40)])
def test_the_svd_is_numpys(shape):
    A = sparse.random_array(shape, density=0.3, rng=np.random.default_rng(0)).tocsr()
    found = truncated_svd(A, 5)
    U, s, Vt = np.linalg.svd(A.toarray(), full_matrices=False)
    assert found.values == pytest.approx(s[:5])
    assert np.abs(found.items.T) == pytest.approx(np.abs(Vt[:5]), abs=1e-8)
    assert found.users @ found.items.T == pytest.approx((U[:, :5] * s[:5]) @ Vt[:5], abs=1e-8)


def test_arpack_and_the_dense_way_agree(monkeypatch):
    A = sparse.random_array((60, 50), density=0.2, rng=np.random.default_rng(1)).tocsr()
    dense = truncated_svd(A, 8)
    monkeypatch.setattr("logeval.features.factors.DENSE", 10)
    arpack = truncated_svd(A, 8)
    assert arpack.values == pytest.approx(dense.values)
    assert arpack.items == pytest.approx(dense.items, abs=1e-7)
    assert arpack.users == pytest.approx(dense.users, abs=1e-7)


def test_a_smaller_rank_is_used():
    rng = np.random.default_rng(2)
    low = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 20))
    assert len(truncated_svd(sparse.csr_array(low), 10).values) == 3


@pytest.mark.parametrize("context", CONTEXTS)
def test_contexts_have_norm_at_most_1_and_a_constant(context):
    rng = np.random.default_rng(3)
    items, user = scaled(rng.standard_normal((9, 4))), scaled(rng.standard_normal((1, 4)))[0]
    items[2] = 0.0
    x = item_contexts(items) if context == "item" else user_contexts(context, user, items, 3)
    assert np.linalg.norm(x, axis=1).max() <= 1 + 1e-12
    assert np.ptp(x[:, 0]) == 0.0
    assert x[0, 0] > 0


def test_concatenation_cannot_change_a_ranking_and_the_product_can():
    rng = np.random.default_rng(4)
    items, users = scaled(rng.standard_normal((9, 4))), scaled(rng.standard_normal((20, 4)))
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
    from logeval.clicks.estimation.click_statistics import Holdout

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
    rows = run(folder / "models", features).table()
    assert set(rows["query"]) == {"+".join(features.queries)}
    assert set(rows["track"]) == {"contextual"}
    assert rows["cosine_distance"].isna().all()


def test_a_leak_is_refused_unless_allowed_and_then_said(folder, log):
    leaky = make_features(log, top_queries=3, dim=20, same_log=True, quiet=True)
    with pytest.raises(LogevalError, match="share sessions"):
        run(folder / "models", leaky)
    assert "share sessions" in run(folder / "models", leaky, same_log=True).notes[0]
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
    assert (done.table().query("t == 60")["regret"] > 0).all()


def test_other_click_models_are_refused(folder, log):
    logeval.fit_models(log, "PBM", top_queries=3, holdout=0.5, out=folder / "pbm", quiet=True)
    with pytest.raises(LogevalError, match="needs a DCM"):
        run(folder / "pbm", make_features(log, top_queries=3, dim=10, quiet=True))
