"""Policies, folders and models that are not as they should be."""

import numpy as np
import pytest

import logeval
from logeval.evaluation.store import Store
from logeval.storage import files, tables
from tests.stand_in import models

PROBLEM = "B_LB(L=8,K=2,p=0.5,gap=0.4)"


class Worst:
    """The worst list, always."""

    NEEDS = ("best",)

    def __init__(self, setting):
        self.A = np.tile(setting.L[:, None] - 1 - np.arange(setting.K), 1)
        self.best = setting.ask("best")

    def recommend(self, t):
        return self.A

    def update(self, t, A, clicks):
        pass


class Cheating(Worst):
    """The worst list, and the best one written over it afterwards."""

    def update(self, t, A, clicks):
        A[:] = self.best
        self.A[:] = 10**6

    def recommend(self, t):
        self.A = np.tile(np.arange(8)[None, ::-1][:, :2], (len(self.best), 1)).copy()
        return self.A


class Elsewhere(Worst):
    TRACK = "rank-1"


def regret(policy, **options):
    options = {"horizon": 50, "runs": 1, "quiet": True} | options
    return logeval.evaluate(problem=PROBLEM, policies=[policy], **options).summary()["regret"][0]


def test_a_policy_cannot_change_what_it_has_shown():
    assert regret(Cheating) == regret(Worst) > 0


def test_a_policy_of_an_unknown_track_is_refused():
    with pytest.raises(logeval.LogevalError, match="unknown track of a policy: 'rank-1'"):
        regret(Elsewhere)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (":M", "cannot import"),
        ("tests.evaluation.test_hostile:Worst(x=1)", "cannot be made"),
        ("tests.evaluation.nothing:M", "cannot import"),
        ("tests.evaluation.test_hostile:Nobody", "there is no Nobody"),
    ],
)
def test_a_policy_that_cannot_be_made_is_named(name, message):
    with pytest.raises(logeval.LogevalError, match=message):
        regret(name)


def test_a_run_that_was_killed_at_its_very_start_can_be_run_again(tmp_path):
    (tmp_path / "out" / "units").mkdir(parents=True)
    (tmp_path / "out" / tables.STAGING).mkdir()
    assert regret("Random", out=tmp_path / "out") > 0
    assert not (tmp_path / "out" / "units").exists()


def with_unit(folder, rows):
    """A folder of runs to which a unit was added, and which was not merged then."""
    store = Store(folder)
    store.units.mkdir()
    store.add(rows)
    (unit,) = store.units.glob("*.parquet")
    return unit


def runs_of(folder):
    return tables.path_of(folder, "runs").read_bytes()


def test_a_damaged_unit_is_computed_again(tmp_path):
    expected = regret("Random", out=tmp_path / "whole")
    rows = tables.read_table(tmp_path / "whole", "runs")
    for place in (0, 100, -1):
        out = tmp_path / f"{place}"
        regret("Oracle", out=out)
        unit = with_unit(out, rows)
        content = bytearray(unit.read_bytes())
        content[place] ^= 1
        unit.write_bytes(content)
        (out / "units" / "mine.parquet").write_text("precious")
        assert regret("Random", out=out) == expected
        assert [p.name for p in (out / "units").iterdir()] == ["mine.parquet"]


def test_a_unit_is_read_again_if_the_journal_was_cut(tmp_path):
    """Of a journal whose last line is half there, the others count."""
    rows = {}
    for policy in ("Random", "Oracle"):
        regret(policy, out=tmp_path / policy)
        rows[policy] = tables.read_table(tmp_path / policy, "runs")
    out = tmp_path / "out"
    regret("Oracle", out=out)
    with_unit(out, rows["Random"])
    Store(out).add(rows["Oracle"])
    journal = out / "units" / "journal"
    journal.write_text(journal.read_text()[:-5])
    store = Store(out)
    assert [t.equals(rows["Random"]) for _, t in store._read_units()] == [True]
    regret("Random", out=out)
    assert logeval.Runs.load(out).to_pandas()["policy"].nunique() == 2


def test_a_unit_of_other_settings_is_not_used(tmp_path):
    """The journal of a folder names its own."""
    expected = regret("Random", seed=1, out=tmp_path / "one")
    regret("Random", seed=2, out=tmp_path / "two")
    regret("Oracle", seed=1, out=tmp_path / "out")
    unit = with_unit(tmp_path / "two", tables.read_table(tmp_path / "two", "runs"))
    (tmp_path / "out" / "units").mkdir()
    unit.rename(tmp_path / "out" / "units" / unit.name)
    assert regret("Random", seed=1, out=tmp_path / "out") == expected


def test_a_unit_that_overlaps_what_is_there_adds_no_row_twice(tmp_path):
    regret("Random", runs=3, out=tmp_path / "three")
    regret("Random", runs=2, out=tmp_path / "two")
    with_unit(tmp_path / "two", tables.read_table(tmp_path / "three", "runs"))
    regret("Random", runs=3, out=tmp_path / "two")
    assert runs_of(tmp_path / "two") == runs_of(tmp_path / "three")
    assert not (tmp_path / "two" / "units").exists()


def test_damaged_runs_are_refused_when_read_and_computed_again(tmp_path):
    expected = regret("Random", out=tmp_path)
    whole = runs_of(tmp_path)
    file = tables.path_of(tmp_path, "runs")
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2] ^= 255
    file.write_bytes(damaged)
    with pytest.raises(logeval.LogevalError, match=rf"{file.name}: is damaged"):
        logeval.Runs.load(tmp_path)
    assert regret("Random", out=tmp_path) == expected
    assert runs_of(tmp_path) == whole
    assert file.with_name(f"{file.name}.damaged").read_bytes() == damaged


def test_killed_before_the_manifest_the_old_table_counts(tmp_path, monkeypatch):
    before = regret("Random", runs=2, out=tmp_path)
    old = runs_of(tmp_path)

    def killed(temporary, path):
        if len(list(tmp_path.glob("runs-*.parquet"))) == 2:
            raise SystemExit
        return put(temporary, path)

    put = files.put_in_place
    with monkeypatch.context() as patch:
        patch.setattr(files, "put_in_place", killed)
        with pytest.raises(SystemExit):
            regret("Random", runs=3, out=tmp_path)
    assert runs_of(tmp_path) == old
    assert len(list(tmp_path.glob("runs-*.parquet"))) == 1
    assert logeval.Runs.load(tmp_path).summary()["regret"][0] == before
    regret("Random", runs=3, out=tmp_path)
    assert logeval.Runs.load(tmp_path).to_pandas()["run"].nunique() == 3


def test_two_models_of_the_same_query_are_refused():
    given = models("DCM", (5,), K=3)
    with pytest.raises(logeval.LogevalError, match="two models DCM of query 7@0"):
        logeval.evaluate(given + given, policies=["Random"], horizon=5, runs=1, quiet=True)


def test_an_optimum_of_zero_is_no_share():
    runs = logeval.evaluate(
        problem="B_LB(L=4,K=2,p=0,gap=0)", policies=["Random"], horizon=5, runs=1, quiet=True
    )
    assert runs.summary()["relative_regret"][0] == 0


def test_synthetic_problems_of_both_tracks_run_side_by_side():
    runs = logeval.evaluate(
        problem=[PROBLEM, "rank1(K=2,L=2,p=0.2,gap=0.5)"],
        policies=["dcmKL-UCB", "Rank1ElimKL"],
        horizon=20,
        runs=1,
        quiet=True,
    )
    assert set(runs.summary()["track"]) == {"ranking", "rank1"}
