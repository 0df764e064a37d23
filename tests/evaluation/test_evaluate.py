import itertools
import os
import signal
import sys
import time
from types import ModuleType

import numpy as np
import pytest

from logeval.clicks.models.classes import Classes
from logeval.clicks.models.ubm import UBM
from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.evaluation.plan import checkpoints_of
from logeval.evaluation.results import Runs
from logeval.storage import tables
from logeval.storage.schemas import RUNS
from tests.evaluation.my_policy import Greedy
from tests.faults.commands import Command
from tests.stand_in import NAMES, models

PROBLEM = "B_LB(L=8,K=3,p=0.4,gap=0.3,gamma=0.5)"
SMALL = {"policies": ["dcmKL-UCB", "RankedExp3"], "horizon": 300, "runs": 20, "quiet": True}


def bytes_of(folder):
    return tables.path_of(folder, "runs").read_bytes()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "out"
    evaluate(problem=PROBLEM, out=folder, **SMALL)
    return folder


def test_the_table_has_its_schema_and_adds_up(finished):
    runs = Runs.load(finished)
    assert runs.rows.schema.names == RUNS.names
    table = runs.to_pandas()
    assert len(table) == 2 * 20 * len(checkpoints_of(300))
    assert table["regret"].to_numpy() == pytest.approx(
        (table["optimal_reward"] - table["reward"]).to_numpy(), abs=1e-9
    )
    assert (table["optimal_steps"] <= table["t"]).all()
    regrets = table.sort_values(["policy", "query", "run", "t"]).groupby(["policy", "query", "run"])
    assert (regrets["regret"].diff().dropna() >= 0).all()


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(finished, tmp_path):
    evaluate(problem=PROBLEM, out=tmp_path / "again", **SMALL)
    assert bytes_of(tmp_path / "again") == bytes_of(finished)
    evaluate(problem=PROBLEM, out=tmp_path / "other", **SMALL, seed=1)
    assert bytes_of(tmp_path / "other") != bytes_of(finished)


def test_two_workers_give_the_same_bytes(finished, tmp_path):
    evaluate(problem=PROBLEM, out=tmp_path / "two", workers=2, **SMALL)
    assert bytes_of(tmp_path / "two") == bytes_of(finished)


def test_a_dask_cluster_gives_the_same_bytes(finished, tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        evaluate(
            problem=PROBLEM, out=tmp_path / "dask", scheduler=cluster.scheduler_address, **SMALL
        )
    assert bytes_of(tmp_path / "dask") == bytes_of(finished)


def test_more_runs_and_policies_compute_only_what_is_missing(finished, tmp_path, monkeypatch):
    from logeval.evaluation import loop

    some = {**SMALL, "runs": 3, "policies": ["RankedExp3"]}
    evaluate(problem=PROBLEM, out=tmp_path / "grown", **some)
    computed = []
    original = loop.run_unit

    def counting(unit, tick):
        computed.extend((unit.policy.name, run) for _, run in unit.replicas)
        return original(unit, tick)

    monkeypatch.setattr("logeval.evaluation.simulation.run_unit", counting)
    evaluate(problem=PROBLEM, out=tmp_path / "grown", **SMALL)
    assert len(computed) == 40 - 3
    assert ("RankedExp3", 2) not in computed
    assert bytes_of(tmp_path / "grown") == bytes_of(finished)
    computed.clear()
    evaluate(problem=PROBLEM, out=tmp_path / "grown", **SMALL)
    assert computed == []


def test_the_result_covers_what_was_asked_for(finished):
    runs = evaluate(
        problem=PROBLEM, out=finished, **{**SMALL, "runs": 2, "policies": ["dcmKL-UCB"]}
    )
    assert runs.summary()["policy"].tolist() == ["dcmKL-UCB"]
    assert runs.to_pandas()["run"].max() == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizon": 301}, "horizon is 300 there and 301 here"),
        ({"seed": 9}, "seed is 0 there and 9 here"),
        ({"checkpoints": 3}, "checkpoints"),
        ({"reward": "clicks"}, "rewards"),
    ],
)
def test_other_settings_in_the_same_folder_are_refused(finished, change, message):
    with pytest.raises(LogevalError, match=message):
        evaluate(problem=PROBLEM, out=finished, **{**SMALL, **change})


def test_other_models_in_the_same_folder_are_refused(tmp_path):
    settings = {**SMALL, "runs": 1, "out": tmp_path / "out", "policies": ["Random"]}
    evaluate(models("DCM", (4, 5), K=2, seed=0), **settings)
    evaluate(models("DCM", (4, 5, 6), K=2, seed=0), **settings)  # one more query is fine
    with pytest.raises(LogevalError, match=r"the model of DCM 7@0 .* is not the same"):
        evaluate(models("DCM", (4, 5), K=2, seed=50), **settings)


def test_a_folder_with_other_things_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(LogevalError, match="holds other files"):
        evaluate(problem=PROBLEM, out=tmp_path, **SMALL)


def test_killed_at_random_moments_it_goes_on_to_the_same_bytes(tmp_path):
    settings = {"policies": ["dcmKL-UCB", "RankedKL-UCB"], "horizon": 3000, "runs": 32}

    def start(out):
        return Command(call=lambda: evaluate(problem=PROBLEM, out=out, **settings, quiet=True))

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    evaluate(problem=PROBLEM, out=tmp_path / "compiled", **settings, quiet=True)
    began = time.monotonic()
    assert start(whole).wait().code == 0
    seconds = time.monotonic() - began
    rng = np.random.default_rng(7)
    interrupted = 0
    for _ in range(3):
        process = start(killed)
        while not (killed / "manifest.json").exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(rng.random() * seconds / 2)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            interrupted += 1
        process.wait()
    assert start(killed).wait().code == 0
    assert interrupted > 0
    assert bytes_of(killed) == bytes_of(whole)
    assert not (killed / "units").exists()


@pytest.mark.parametrize("name", NAMES)
def test_every_simulator_with_every_kind_of_policy(name):
    policies = ["dcmKL-UCB", "RankedKL-UCB", "RankedExp3", "Random", "Oracle"]
    runs = evaluate(models(name, (4, 6), K=3), policies=policies, horizon=400, runs=2, quiet=True)
    summary = runs.summary().set_index("policy")
    assert summary.loc["Oracle", "regret"] == 0.0
    assert summary.loc["Oracle", "share_of_optimum"] == pytest.approx(1.0)
    assert (summary["regret"] >= 0).all()


def test_a_users_own_policy_runs_in_the_same_loop(tmp_path):
    given = models("DCM", (6, 9), K=3)
    policies = [Greedy, "tests.evaluation.my_policy:Greedy(epsilon=0.5)", "Random", "Oracle"]
    runs = evaluate(given, policies=policies, horizon=500, runs=5, workers=2, quiet=True)
    regret = runs.summary().set_index("policy")["regret"]
    assert 0 < regret["tests.evaluation.my_policy:Greedy"] < regret["Random"]
    assert 0 < regret["tests.evaluation.my_policy:Greedy(epsilon=0.5)"] < regret["Random"]


def test_wrong_lists_of_a_users_policy_are_named():
    with pytest.raises(LogevalError, match=r"at step 1 the choice \[0, 0\].*different labels"):
        evaluate(
            problem="B_LB(L=4,K=2,p=0.2,gap=0.1)",
            policies=["tests.evaluation.my_policy:Repeating"],
            horizon=5,
            runs=1,
        )


def test_a_wrong_optimum_is_noticed():
    from logeval.tracks.lists import b_lb

    class Wrong:
        name, K, items, rewards = "CM", 2, np.arange(4), ("satisfaction",)
        users = b_lb(4, 2, 0.5, 0.3).users

        def best_rows(self, K, reward):
            return np.array([2, 3])

    with pytest.raises(LogevalError, match="more expected reward than"):
        evaluate([("CM", "1", Wrong())], policies=["dcmKL-UCB"], horizon=50, runs=1, quiet=True)


@pytest.fixture
def poorly_searched(monkeypatch):
    """Users in classes, whose best list is one that nearly any policy beats."""
    from logeval.clicks.users import mixture

    def worst(users, K, reward, starts, items, kicks=0):
        A = np.argsort(users.w, kind="stable")[:K]
        return A, float(users.expected_reward(A[None], reward)[0])

    monkeypatch.setattr(mixture, "searched", worst)
    rng, items = np.random.default_rng(0), np.arange(8)
    classes = tuple(
        UBM(items, 3, rng.uniform(0.1, 0.9, 8), rng.uniform(0.2, 1.0, (3, 4))) for _ in range(3)
    )
    return [
        ("UBM", str(q), Classes(items, 3, np.roll([0.5, 0.3, 0.2], q), classes)) for q in (0, 1)
    ]


UNPROVEN = {"horizon": 400, "runs": 3, "reward": "clicks", "checkpoints": 8, "quiet": True}


def test_where_the_best_list_is_not_proven_regret_is_against_the_best_one_known(poorly_searched):
    runs = evaluate(poorly_searched, policies=["dcmKL-UCB", "Random"], **UNPROVEN)
    for query, rows in runs.to_pandas().groupby("query"):
        model = poorly_searched[int(query)][2]
        lists = np.array(list(itertools.permutations(range(8), 3)))
        every = model.expected_reward(lists, "clicks")
        known = runs.problems().set_index("query").loc[query]
        best = rows["best_known"].unique()
        assert len(best) == 1
        assert known["best"] + 0.1 < best[0] <= every.max() + 1e-12
        assert not known["proven"]
        assert known["best"] + known["gap"] >= every.max() - 1e-12
        assert rows["optimal_reward"].to_numpy() == pytest.approx(best[0] * rows["t"].to_numpy())
        assert rows["regret"].to_numpy() == pytest.approx(
            (rows["optimal_reward"] - rows["reward"]).to_numpy(), abs=1e-9
        )
        steps = rows.sort_values("t").groupby(["policy", "run"])["regret"]
        assert (steps.diff().fillna(0.0) >= -1e-9).all()
        assert (rows["regret"] >= 0).all()
        last = rows[rows["t"] == 400].set_index(["policy", "run"])["optimal_steps"]
        assert last["dcmKL-UCB"].max() > last["Random"].max()
        assert last.max() < 400


def test_the_best_list_known_does_not_depend_on_the_order_of_work(poorly_searched, tmp_path):
    both = ["dcmKL-UCB", "Random"]
    evaluate(poorly_searched, policies=both, out=tmp_path / "once", **UNPROVEN)
    for policies, runs in ((both[1:], 1), (both[:1], 2), (both[1:], 3), (both, 3)):
        parts = {**UNPROVEN, "runs": runs}
        evaluate(poorly_searched, policies=policies, out=tmp_path / "parts", **parts)
    assert bytes_of(tmp_path / "parts") == bytes_of(tmp_path / "once")


def test_checkpoints():
    assert checkpoints_of(100, [10, 50]) == (10, 50, 100)
    assert checkpoints_of(100, 2) == (1, 50, 100)
    assert checkpoints_of(1) == (1,)
    assert {1, 500, 1000} <= set(checkpoints_of(1000))
    with pytest.raises(LogevalError, match="checkpoint 200"):
        checkpoints_of(100, [200])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"runs": 0}, "runs=0"),
        ({"horizon": 0}, "horizon=0"),
        ({"workers": 0}, "workers=0"),
        ({"policies": []}, "no policy"),
        ({"positions": 2}, "its own K"),
        ({"models": []}, "either"),
        ({"problem": None}, "either"),
        ({"problem": [PROBLEM, PROBLEM]}, "twice"),
        ({"scheduler": "tcp://127.0.0.1:1"}, "no Dask scheduler"),
    ],
)
def test_wrong_arguments_are_named(change, message, monkeypatch):
    monkeypatch.setattr("logeval.running.work.CONNECT_SECONDS", 0.2)
    with pytest.raises(LogevalError, match=message):
        evaluate(**{"problem": PROBLEM, **SMALL, **change})


def test_a_policy_of_a_notebook_needs_a_file_for_several_workers(monkeypatch):
    notebook = ModuleType("__main__")  # it has no __file__, as in a notebook
    monkeypatch.setitem(sys.modules, "__main__", notebook)
    mine = type("Mine", (Greedy,), {"__module__": "__main__"})
    small = {"problem": PROBLEM, "policies": [mine], "horizon": 10, "runs": 2, "quiet": True}
    with pytest.raises(LogevalError, match="Mine: workers cannot import it from a notebook"):
        evaluate(workers=2, **small)
    assert set(evaluate(**small).to_pandas()["policy"]) == {"Mine"}
