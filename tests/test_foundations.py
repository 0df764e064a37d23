"""Seeds, tables and progress."""

import io
import sys

import numpy as np
import pyarrow as pa
import pytest

from logeval import seeds, tables
from logeval.errors import LogevalError, unknown_names
from logeval.progress import Progress


def test_equal_paths_give_equal_streams_and_others_do_not():
    a, b = (seeds.generator(1, "env", 5).random(4) for _ in range(2))
    assert (a == b).all()
    others = [(2, "env", 5), (1, "env", 6), (1, "policy", 5), (1, "env"), (1, "env", 5, 0)]
    for path in others:
        assert (seeds.generator(*path).random(4) != a).any()


def test_a_path_is_not_just_its_concatenation():
    assert seeds.generator(1, "ab", "c").random() != seeds.generator(1, "a", "bc").random()


def test_streams_of_neighbouring_paths_are_uncorrelated():
    draws = np.array([seeds.generator(0, "run", i).random(1000) for i in range(50)])
    correlation = np.corrcoef(draws)[np.triu_indices(50, 1)]
    assert np.abs(correlation).max() < 5 / np.sqrt(1000)


def test_a_staged_folder_appears_whole_or_not_at_all(tmp_path):
    out = tmp_path / "out"

    def fail():
        with tables.staged(out) as staging:
            (staging / "half").write_text("x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not list(tmp_path.iterdir())
    with tables.staged(out) as staging:
        (staging / "whole").write_text("x")
        assert not out.exists()
    assert [p.name for p in out.iterdir()] == ["whole"]


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "out").write_text("precious")
    with pytest.raises(LogevalError, match="is a file"), tables.staged(tmp_path / "out"):
        pass
    assert (tmp_path / "out").read_text() == "precious"


def test_the_output_of_another_stage_is_not_replaced(tmp_path):
    for stage in ("ingest", "fit-models"):
        manifest = tables.manifest_of(stage, {}, [])

        def write(manifest=manifest):
            with tables.staged(tmp_path / "out") as staging:
                tables.write_manifest(staging, manifest)

        if stage == "ingest":
            write()
        else:
            with pytest.raises(LogevalError, match="holds the output of ingest"):
                write()
    assert tables.read_manifest(tmp_path / "out")["stage"] == "ingest"


def test_read_table_checks_the_schema(tmp_path):
    tables.write_manifest(tmp_path, {})
    tables.write_parquet(pa.table({"model": ["DCM"]}), tmp_path / "models.parquet")
    with pytest.raises(LogevalError, match="column 'method' is missing"):
        tables.read_table(tmp_path, "models")


def test_every_column_of_every_table_is_documented():
    for schema in tables.TABLES.values():
        assert schema.metadata[b"doc"]
        assert all(field.metadata[b"doc"] for field in schema)


def test_unknown_names_are_reported_at_once_with_the_closest():
    error = unknown_names("policy", ["dcmklucb", "zzz"], ["dcmKL-UCB", "RankedExp3"])
    assert str(error).startswith("unknown policy: 'dcmklucb' (did you mean dcmKL-UCB?), 'zzz'; ")


def test_plain_progress_has_speed_and_time_left_and_quiet_has_none(monkeypatch):
    for quiet in (False, True):
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        monkeypatch.setattr("logeval.progress.LINE_SECONDS", 0)
        with Progress("ingest", total=4e7, unit="bytes", quiet=quiet) as progress:
            progress.advance(1e7)
        text = sys.stderr.getvalue()
        assert ("ingest: 10 MB" in text and "25%" in text and "s left" in text) != quiet
        assert bool(text) != quiet
