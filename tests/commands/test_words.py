"""What commands say, refuse and take, from the shell."""

from __future__ import annotations

import json
import subprocess
import sys

import pandas as pd
import pytest
from typer.testing import CliRunner

import logeval
from logeval.cli import app
from logeval.clicks.models.registry import MODELS
from logeval.facts import Fact
from logeval.policies.registry import POLICIES, named_policies, parse_policies
from logeval.reports.page import content_of
from logeval.reports.report import Report
from logeval.reports.words import sentence
from logeval.running.words import cell
from tests.clicks.examples import three_queries
from tests.serps import Serp, write_serps

OWN = """
from dataclasses import dataclass
import numpy as np
import logeval
from logeval.clicks.models.counting import CM

@dataclass(frozen=True)
class Patient(CM):
    name = "Patient"
    @property
    def users(self):
        one, half = np.ones(self.L), np.full(self.K, 0.5)
        return logeval.Chain(self.w, one, half, 1.0, one, half)

NOTHING = 3
"""


@pytest.fixture(autouse=True)
def forget():
    """Click models that a test registers."""
    before = dict(MODELS)
    yield
    MODELS.clear()
    MODELS.update(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    (folder / "log").mkdir()
    three_queries(folder / "log")
    (folder / "other.csv").write_text("query_id,items,clicks\n" + "0,1 2,1 0\n" * 9)
    logeval.ingest(folder / "other.csv", folder / "other", format="table", quiet=True)
    logeval.fit_models(folder / "log", ["dcm", "pbm"], out=folder / "models", quiet=True)
    logeval.evaluate(
        folder / "models", policies=["Random", "dcmKL-UCB"], horizon=20, runs=2,
        out=folder / "runs", quiet=True,
    )  # fmt: skip
    logeval.replay_estimate(
        folder / "other", "logged", estimators=["IP"], rounds=0, out=folder / "replay", quiet=True
    )
    return folder


def run(*arguments, code=0):
    """What a command says, on both streams, in one line."""
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def test_json_and_csv_together_are_refused_before_anything_is_done(folder):
    for command in (
        ["models"],
        ["evaluate", folder / "models", "--policy", "Random"],
        ["fit-models", folder / "log", "-m", "dcm", "--out", folder / "both"],
    ):  # fmt: skip
        for flags in (["--json", "--csv"], ["--csv", "--json"]):
            assert "only one can be printed" in run(*command, *flags, code=2)
    assert not (folder / "both").exists()
    assert json.loads(CliRunner().invoke(app, ["models", "--json"]).stdout)["rows"]


def test_python_m_logeval_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "logeval", "--version"], capture_output=True, text=True
    )
    assert done.stdout == f"logeval {logeval.__version__}\n"


@pytest.mark.parametrize("command", [["policies"], ["models"]])
def test_catalogues_fit_80_columns_without_breaking_a_word(command):
    done = CliRunner().invoke(app, command)
    assert max(map(len, done.stdout.splitlines())) <= 80
    rows = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    rows = rows["rows"] if isinstance(rows, dict) else rows
    shown = set(done.stdout.replace("|", " ").split())
    options = [
        part for row in rows for part in str(row.get("options", "")).replace("|", " ").split()
    ]
    assert set(options) <= shown


def test_rounding_is_nothing_in_a_table():
    assert [cell(x) for x in (-7.4e-19, 3e-15, 1e-9, 0.0)] == ["0", "0", "1e-09", "0"]


def test_what_a_log_does_not_say_is_not_0(folder, tmp_path):
    text = run("describe", folder / "other", "--details")
    assert "the log does not say: users and days" in text
    assert "users 0" not in text
    totals = json.loads(
        CliRunner().invoke(app, ["describe", str(folder / "other"), "--json"]).stdout
    )
    assert (totals["totals"]["users"], totals["totals"]["days"]) == (None, None)
    assert totals["totals"]["clicks"] == 9
    days = write_serps(tmp_path, [Serp(0, [1], [0], i, day=i) for i in range(3)])
    assert "the log does not say: users" in run("describe", days, "--details")
    assert "clicks 0" in run("describe", days, "--details")


def test_ids_are_names_and_not_amounts(tmp_path):
    serps = [Serp(0, [1_234_567, 1002], [1, 0], i) for i in range(2000)]
    logeval.fit_models(write_serps(tmp_path / "log", serps), "dctr", out=tmp_path / "m", quiet=True)
    text = run("inspect", tmp_path / "m", "--query", 0)
    assert "1234567 2,000 2,000" in text
    assert "1,234,567" not in text


def test_a_method_that_no_model_has_is_refused_and_one_that_some_lack_is_said(folder, tmp_path):
    fit = ["fit-models", folder / "log", "-q", "--out"]
    refused = run(*fit, tmp_path / "a", "-m", "pbm", "--method", "guo", code=2)
    assert "method=guo: only DCM can be fitted so; PBM has em" in refused
    assert not (tmp_path / "a").exists()
    said = run(*fit, tmp_path / "b", "-m", "pbm", "-m", "dcm", "--method", "guo", "--details")
    assert "PBM: it has no method guo, so it was fitted by em" in said
    assert "DCM: it has no" not in said
    run(*fit, tmp_path / "c", "-m", "PBM(scope=per-query)", "-m", "dcm", "--method", "guo")
    assert "unknown method: 'gou' (did you mean guo" in run(
        *fit, tmp_path / "a", "-m", "pbm", "--method", "gou", code=2
    )


def test_a_reward_that_some_simulators_lack_names_those_that_have_it(folder):
    evaluate = ["evaluate", folder / "models", "--policy", "Random", "--reward"]
    assert (
        "reward=satisfaction: DCM has it, PBM has not; take reward=clicks, which all have, or "
        "fit and evaluate DCM alone"
    ) in run(*evaluate, "satisfaction", code=2)
    assert "unknown reward: 'joy'; known: any-click, clicks" in run(*evaluate, "joy", code=2)


def test_a_click_model_of_ones_own_is_fitted_by_name_and_imported_later(
    folder, tmp_path, monkeypatch
):
    (tmp_path / "own_model.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    fit = ["fit-models", folder / "log", "-q", "--out", "m", "-m"]
    for wrong, message in (
        ("own_model:Nobody", "there is no Nobody in own_model"),
        ("no_such_module:A", "cannot import no_such_module"),
        ("own_model:NOTHING", "is no click model; derive it from one"),
    ):
        assert message in run(*fit, wrong, code=2)
    said = run(*fit, "own_model:Patient")
    assert "Patient fitted to 3 queries" in said
    assert "more: logeval --import own_model:Patient inspect m" in said
    command = [sys.executable, "-m", "logeval"]
    later = ["inspect", "m", "--query", "1"]
    refused = subprocess.run([*command, *later], capture_output=True, text=True)
    assert refused.returncode == 2
    assert "with `logeval --import own_model:Patient COMMAND`" in refused.stderr
    done = subprocess.run(
        [*command, "--import", "own_model:Patient", *later], capture_output=True, text=True
    )
    assert done.stdout.startswith("Patient of query 1"), done.stderr
    (tmp_path / "own_model.py").write_text(OWN.replace("0.5", "0.4"))
    done = subprocess.run([*command, *map(str, fit), "own_model:Patient"], capture_output=True,
                          text=True)  # fmt: skip
    assert "holds other models already" in done.stderr, "it is never taken for current"


def test_all_policies_of_a_track():
    names = {spec.name.partition("(")[0] for spec in parse_policies("all")}
    of_track = {
        name for name, cls in POLICIES.items() if getattr(cls, "TRACK", "ranking") == "ranking"
    }
    assert of_track - names <= {"BubbleRank", "Logged"}, "which need the lists of a log"
    assert "Random" in names
    assert "Oracle" not in names
    assert "PBM-UCB(kappa=estimated)" in named_policies(["all"])
    assert [s.name for s in parse_policies("ALL", track="rank1")][-1] == "Random"
    assert {s.track for s in parse_policies("all", track="rank1")} == {"rank1", None}
    both = named_policies(["all", "dcmKL-UCB(init=sample)"])
    assert both[-1] == "dcmKL-UCB(init=sample)"
    assert "dcmKL-UCB" not in both


def test_all_policies_run_on_simulators_and_on_the_log(folder):
    done = run("evaluate", folder / "models", "--policy", "all", "--horizon", 3, "--runs", 1, "-q")
    assert "UniRank" in done
    done = run("evaluate", folder / "models", "--policy", "all", "--track", "rank1", "--horizon", 3,
               "--runs", 1, "-q")  # fmt: skip
    assert "Rank1ElimKL" in done
    assert "dcmKL-UCB" not in done
    done = run("replay", "policy", folder / "log", "--policy", "all", "--positions", 1, "--items",
               2, "--shuffles", 1, "--horizon", 20, "-q")  # fmt: skip
    assert "KL-CombUCB1" in done


def test_a_report_of_another_log_is_refused(folder, tmp_path):
    report = ["report", folder / "runs", "--out", tmp_path / "page", "-q"]
    assert "is not estimated from the log that the models of these runs were fitted to" in run(
        *report, "--replay", folder / "replay", code=2
    )
    assert "is not the log that the models of these runs were fitted to" in run(
        *report, "--log", folder / "other", code=2
    )
    assert not (tmp_path / "page").exists()
    own = content_of(Report(folder / "runs", tmp_path / "page", log=folder / "log"))
    assert own.log is not None
    assert own.log.path == folder / "log"


def test_a_folder_of_somebody_elses_is_refused_before_the_work(folder, tmp_path, monkeypatch):
    (tmp_path / "index.html").write_text("mine")
    monkeypatch.setattr("logeval.reports.writing.write_report", None)  # it is not even begun
    text = run("report", folder / "runs", "--out", tmp_path, code=2)
    assert "was not written by logeval, so it is not replaced" in text
    text = run("report", folder / "runs", "--out", folder / "models", code=2)
    assert "holds the output of fit-models; choose another folder" in text
    monkeypatch.setattr("logeval.replay.estimate.estimate", None)
    text = run("replay", "estimate", folder / "log", "--target", "logged", "--out", folder / "runs",
               code=2)  # fmt: skip
    assert "holds the output of evaluate" in text


def test_a_generated_log_needs_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "so the log needs a name; write it to a file" in run("generate", "-", code=2)
    assert list(tmp_path.iterdir()) == []


def test_verdicts_end_the_commands_of_replay_and_checks(folder):
    """And are in what programs read."""
    commands = {
        "replay estimate": ["--target", "logged", "--rounds", 20, "--refits", 2],
        "replay policy": ["--policy", "Random", "--positions", 1, "--shuffles", 2],
        "replay validate": ["--positions", 1, "--parts", 3, "-e", "IP"],
    }
    for name, more in commands.items():
        command = [*name.split(), folder / "log", *more, "-q"]
        shown = CliRunner().invoke(app, [str(a) for a in command])
        program = CliRunner().invoke(app, [str(a) for a in [*command, "--json"]])
        told = json.loads(program.stdout)
        assert sentence(Fact.of(told["facts"][0]))[1:] in " ".join(shown.stdout.split()), name
        assert "nan%" not in shown.stdout
        assert not shown.stdout.splitlines()[-1].startswith("|")
        assert isinstance(pd.DataFrame(told["rows"]), pd.DataFrame)
    done = run("check-models", folder / "models", folder / "log", "--simulations", 80, "-q")
    assert "checks on" in done
