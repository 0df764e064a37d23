"""The truth of one seed beside the log of another: check-models takes no such pair."""

import os
import shutil

import pytest

import logeval
from logeval import LogevalError
from logeval.clicks.collection import read_models
from logeval.clicks.quality.stages import check_models
from logeval.storage import files, tables
from tests.faults.commands import Command

SETTINGS = {"sessions": 150, "queries": 2, "quiet": True}
REFUSED = (
    r"log: was made from log.tsv, but .*truth is of another log.tsv; ingest that, or make both"
)


def generate(raw, seed):
    return logeval.generate(raw, seed=seed, overwrite=True, **SETTINGS)


def check(raw, truth):
    """Ingest a log, fit it, and compare with the truth."""
    log = logeval.ingest(raw, raw.with_name("log"), overwrite=True, quiet=True)
    models = logeval.fit_models(log, "DCM", quiet=True)
    settings = {"simulations": 80, "quiet": True}
    return check_models(models, log, truth=truth, **settings)


def test_the_truth_of_another_seed_is_refused(tmp_path):
    raw, kept = tmp_path / "log.tsv", tmp_path / "kept" / "log.truth"
    shutil.copytree(generate(raw, 1), kept)
    truth = generate(raw, 2)
    assert check(raw, truth).truth is not None
    for given in (kept, read_models(kept)):
        with pytest.raises(LogevalError, match=REFUSED):
            check(raw, given)


def test_a_generate_that_is_killed_between_the_truth_and_the_log(tmp_path):
    raw = tmp_path / "log.tsv"
    truth = generate(raw, 1)
    before = raw.read_bytes(), tables.identity(truth)

    plain = files.put_in_place

    def killed_at_the_log(temporary, path):
        if path == raw:
            os._exit(9)
        plain(temporary, path)

    def run():
        files.put_in_place = killed_at_the_log
        generate(raw, 2)

    assert Command(call=run).wait().code == 9
    assert raw.read_bytes() == before[0]
    assert tables.identity(truth) != before[1]
    with pytest.raises(LogevalError, match=REFUSED):
        check(raw, truth)
    generate(raw, 2)  # the remedy
    assert check(raw, truth).truth is not None


def test_a_truth_that_is_replaced_while_it_is_read(tmp_path, monkeypatch):
    raw, read, calls = tmp_path / "log.tsv", tables.read_table, []
    truth = generate(raw, 1)

    def replaced_before(*arguments):
        if not calls:
            calls.append(generate(raw, 2))
        return read(*arguments)

    monkeypatch.setattr(tables, "read_table", replaced_before)
    assert read_models(truth).manifest == tables.read_manifest(truth)
