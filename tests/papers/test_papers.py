"""Small versions of the published experiments."""

import numpy as np
import pytest

from logeval.errors import LogevalError
from logeval.evaluation import evaluate
from logeval.log.ingest import ingest
from logeval.papers import cascading, dcm, gl_cdcm, rank1
from logeval.synthetic.generate import generate

RUNS = 4
CELLS = [(16, 8, 0.15)]


@pytest.mark.parametrize("table", [1, 2])
def test_cascading_tables(table):
    """Four runs of a cell; the published spread gives the tolerance."""
    policies = cascading._POLICIES[table]
    summary = evaluate(
        problem=[cascading.problem_name(*cell) for cell in CELLS],
        policies=policies, horizon=cascading.HORIZON, runs=RUNS, checkpoints=1, quiet=True,
    ).summary().set_index(["simulator", "policy"])  # fmt: skip
    published = {1: cascading.TABLE_1, 2: cascading.TABLE_2}[table]
    for cell in CELLS:
        for policy, value in zip(policies, published[cell], strict=True):
            regret = summary.loc[(cascading.problem_name(*cell), policy), "regret"]
            stderr = value.stderr * np.sqrt(1 + cascading.RUNS / RUNS)
            assert abs(regret - value.regret) < max(4 * stderr, 0.08 * value.regret)


def test_both_tables_have_all_cells():
    cells = cascading.reproduce(horizon=20, runs=2, quiet=True)
    assert len(cells) == 36
    assert cells["doubtful"].sum() == 1
    assert cells["regret"].notna().all()


def test_dcm_figure_3():
    policies = ("dcmKL-UCB", "First-Click", "Last-Click", "RankedKL-UCB")
    summary = evaluate(
        problem=dcm.FIGURES["3a"].problems, policies=policies, horizon=dcm.HORIZON, runs=RUNS,
        checkpoints=1, quiet=True,
    ).summary().set_index("policy")  # fmt: skip
    for policy, value in dcm.INDEPENDENT.items():
        tolerance = 4 * summary.loc[policy, "stderr"] + 0.04 * value
        assert abs(summary.loc[policy, "regret"] - value) < tolerance
    assert summary["regret"].idxmin() == "dcmKL-UCB"


def test_dcm_figure_2a_trends():
    runs = dcm.reproduce("2a", horizon=3000, runs=10, quiet=True)
    regret = runs.summary().set_index("simulator")["regret"]

    def of(L, K, gap):
        return regret[f"B_LB(L={L},K={K},p=0.2,gap={gap},gamma=0.8)"]

    for gap in (0.15, 0.075):
        for K in (2, 4, 8):
            assert of(32, K, gap) > of(16, K, gap)
        for L in (16, 32):
            assert of(L, 8, gap) < of(L, 4, gap)


def test_rank1_figure_1_on_small_needles():
    """Policies on pairs quadruple; the doubling of Rank1ElimKL needs the paper's horizon."""
    sizes = (4, 8)
    runs = rank1.reproduce(horizon=20_000, runs=4, quiet=True, sizes=sizes)
    table = rank1.growth(runs, sizes).set_index(["policy", "K = L"])
    for policy in ("UCB1", "KL-UCB", "TS"):
        assert 3.3 < table.loc[(policy, 8), "growth"] < 4.7
    regret = table["regret"]
    assert (regret["Rank1ElimKL"] < regret["Rank1Elim"]).all()
    assert (regret["TS"] < regret["KL-UCB"]).all()
    assert (regret["KL-UCB"] < regret["UCB1"]).all()


def test_gl_cdcm_figure_1_has_regret_and_cosine_distance(tmp_path):
    done = gl_cdcm.reproduce("1a", horizon=60, runs=2, quiet=True, out=tmp_path / "runs")
    assert set(done.table()["policy"]) == set(gl_cdcm.SYNTHETIC)
    for figure in ("1a", "1b"):
        assert gl_cdcm.save_figure(figure, done, tmp_path).stat().st_size > 0


def test_gl_cdcm_figure_2_needs_a_log_and_2b_one_with_users(tmp_path):
    with pytest.raises(LogevalError, match="needs an ingested log"):
        gl_cdcm.reproduce("2a", horizon=10, quiet=True)
    generate(tmp_path / "log.tsv", sessions=600, queries=3, seed=1, quiet=True)
    log = ingest([str(tmp_path / "log.tsv")], tmp_path / "log", quiet=True)
    done = gl_cdcm.reproduce("2b", horizon=20, runs=1, log=log.path, quiet=True)
    assert set(done.table()["policy"]) == set(gl_cdcm.WEB)
    assert set(gl_cdcm.PUBLISHED["2a"]) <= set(gl_cdcm.WEB)
