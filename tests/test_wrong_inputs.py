"""What users did wrong, or met, and got a traceback or nothing for: now an error that says it."""

import json
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

import logeval
from logeval.cli import app
from logeval.errors import LogevalError
from tests.clicks.examples import three_queries
from tests.serps import Serp, write_serps

PROBLEM = "B_LB(L=5,K=2,p=0.5,gap=0.4)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "log").mkdir()
    log = three_queries(folder / "log")
    models = logeval.fit_models(log, ["dctr", "pbm"], out=folder / "models", quiet=True)
    logeval.evaluate(
        models, policies=["Random", "Oracle"], horizon=20, runs=2, out=folder / "runs", quiet=True
    )
    return folder


def run(*arguments):
    """The exit code and what a command says on both streams."""
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped"])
@pytest.mark.parametrize(
    ("stage", "file", "commands"),
    [
        ("log", "serps/*.parquet", ["describe X", "fit-models X -m dctr --out Y", "score M X"]),
        (
            "models",
            "models-*.parquet",
            ["inspect X", "evaluate X --policy Random", "score X L"],
        ),
        ("models", "queries-*.parquet", ["inspect X"]),
        ("runs", "runs-*.parquet", ["report X --out Y", "plot X --out Y.png"]),
    ],
)
def test_a_damaged_table_is_said_by_every_command(folder, tmp_path, damage, stage, file, commands):
    damaged = shutil.copytree(folder / stage, tmp_path / "damaged")
    shutil.rmtree(damaged / "click_statistics", ignore_errors=True)  # else the log is not read
    for path in damaged.glob(file):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 255
        kept = {"cut": len(content) // 2, "empty": 0, "flipped": None}[damage]
        path.write_bytes(content[:kept])
    places = {"X": damaged, "Y": tmp_path / "out", "M": folder / "models", "L": folder / "log"}
    for command in commands:
        code, text = run(*(places.get(word, word) for word in command.split()))
        assert (code, "is damaged" in text) == (2, True), (command, text)


@pytest.mark.parametrize("content", ["[]", "3", "{}", '{"stage": 1}', "", "null"])
def test_a_manifest_that_is_none_is_an_error(folder, tmp_path, content):
    for stage, command in (
        ("log", "describe"),
        ("models", "inspect"),
        ("runs", "plot"),
    ):
        broken = shutil.copytree(folder / stage, tmp_path / stage)
        (broken / "manifest.json").write_text(content)
        code, text = run(*command.split(), broken)
        assert (code, "not a manifest" in text) == (2, True), text


def test_a_horizon_beyond_all_numbers_is_an_error():
    for horizon in (99999999999999999999, 10**13):
        code, text = run(
            "evaluate", "--problem", PROBLEM, "--policy", "Random", "--horizon", horizon
        )
        assert code == 2
        assert "is too long" in text


HUGE = 10**20  # beyond 64 bits


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (f"evaluate --problem {PROBLEM} --policy Random --runs 99999999999", "at most 10,000,000"),
        (f"evaluate --problem {PROBLEM} --policy Random --checkpoints {HUGE}", "1 to 100,000"),
        (f"evaluate --problem {PROBLEM} --policy Random --checkpoints 1,{HUGE}", "not between 1"),
        (f"evaluate --problem {PROBLEM} --policy Random --checkpoints 1000000000", "1 to 100,000"),
        ("evaluate --problem B_LB(L=1000000000,K=4,p=0.2,gap=0.1) --policy Random", "L=1000000000"),
        (
            f"replay estimate LOG --target by-ctr --force --rounds {HUGE}",
            "less than or equal to 1000000",
        ),
        ("replay estimate LOG --target day:²", "write a day of the log"),
        (f"replay estimate LOG --target day:{HUGE}", "write a day of the log"),
        ("replay estimate LOG --target by-ctr -e INTERPOL(window=²)", "is not known"),
        ("replay validate LOG --clip nan --positions 1", "clip=nan"),
        (f"replay policy LOG --policy Random --shuffles {HUGE}", "less than or equal to 100000"),
        (f"replay policy LOG --policy Random --positions {HUGE}", ": must be at most 1,000"),
        (f"check-models MODELS LOG --simulations {HUGE}", "at most 1,000,000"),
        (f"features LOG --dim {HUGE} --out OUT", "less than or equal to 1000"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_starts(folder, command, said):
    places = {"LOG": folder / "log", "MODELS": folder / "models", "OUT": folder / "nothing"}
    code, text = run(*(places.get(word, word) for word in command.split()))
    assert (code, said in text) == (2, True), text
    assert not (folder / "nothing").exists()


@pytest.mark.parametrize(
    "command",
    [
        f"describe LOG --top {HUGE}",
        f"fit-models LOG -m dctr --top-queries {HUGE} --out OUT",
        f"replay policy LOG --policy Random --positions 1 --top-queries {HUGE}",
    ],
)
def test_more_queries_than_there_are_means_all_of_them(folder, tmp_path, command):
    places = {"LOG": folder / "log", "OUT": tmp_path / "out"}
    code, text = run(*(places.get(word, word) for word in command.split()))
    assert code == 0, text


def test_what_is_nested_without_end_is_an_error(folder, tmp_path):
    (tmp_path / "models.json").write_text("[" * 100_000)
    code, text = run("import-models", tmp_path / "models.json", "--out", tmp_path / "out")
    assert (code, "not rows of the models table" in text) == (2, True), text
    (tmp_path / "recipe.toml").write_text("out = " + "[" * 100_000)
    code, text = run("run", tmp_path / "recipe.toml", "--dry-run")
    assert (code, "not a recipe" in text) == (2, True), text


class Fails:
    """A policy that raises where it is told to."""

    def __init__(self, setting, where="init", step=1):
        self.setting, self.where, self.step = setting, where, step
        if where == "init":
            raise KeyError("made wrongly")

    def recommend(self, t):
        if self.where == "recommend" and t == self.step:
            self.helper()
        return np.tile(np.arange(self.setting.K), (self.setting.R, 1))

    def update(self, t, A, clicks):
        if self.where == "update" and t == self.step:
            raise ZeroDivisionError("in the update")

    def helper(self):
        raise IndexError("deep inside")


@pytest.mark.parametrize(
    ("policy", "said", "own"),
    [
        ("Fails", "cannot be made", ["__init__", "KeyError: 'made wrongly'"]),
        ("Fails(where=recommend,step=3)", "recommend fails at step 3",
         ["recommend", "helper", "IndexError: deep inside"]),
        ("Fails(where=update,step=2)", "update fails at step 2",
         ["update", "ZeroDivisionError: in the update"]),
        ("Fails(nothing=1)", "cannot be made", ["unexpected keyword argument"]),
    ],
)  # fmt: skip
def test_a_policy_that_raises_is_named_with_its_own_traceback_only(policy, said, own):
    name = f"tests.test_wrong_inputs:{policy}"
    with pytest.raises(LogevalError) as caught:
        logeval.evaluate(problem=PROBLEM, policies=[name], horizon=5, runs=2, quiet=True)
    text = str(caught.value)
    first = text.splitlines()[0]
    assert first.startswith(f"policy {name}: {said}")
    assert "query synthetic run 0 to query synthetic run 1" in first
    assert all(part in text for part in own)
    assert "evaluation/" not in text
    assert "registry.py" not in text
    assert caught.value.__cause__ is None


def test_an_empty_selection_of_queries_is_an_error_and_spoils_nothing(folder, tmp_path):
    out = tmp_path / "m"
    for empty in ("", " , "):
        code, text = run(
            "fit-models", folder / "log", "-m", "dctr", "--queries", empty, "--out", out
        )
        assert (code, "--queries is empty" in text) == (2, True), text
        code, text = run("evaluate", folder / "models", "--policy", "Random", "--queries", empty)
        assert (code, "--queries is empty" in text) == (2, True), text
    with pytest.raises(LogevalError, match="queries is empty"):
        logeval.fit_models(folder / "log", "dctr", queries=[])
    with pytest.raises(LogevalError, match="queries is empty"):
        logeval.evaluate(folder / "models", policies="Random", queries=[])
    assert not out.exists()


def test_click_statistics_of_no_query_are_not_taken_for_those_of_all(folder):
    from logeval.clicks.estimation.fold import fold

    log = logeval.load(folder / "log")
    assert fold(log, queries=[]).num_rows == 0
    assert fold(log).num_rows > 0


def test_impressions_that_leave_no_item_are_an_error(folder, tmp_path):
    with pytest.raises(LogevalError, match=r"min_impressions=100000 leaves no item; .* \d+ t"):
        logeval.fit_models(folder / "log", "dctr", min_impressions=100_000, out=tmp_path / "m")
    with pytest.raises(LogevalError, match="min_impressions=-1: must be at least 0"):
        logeval.fit_models(folder / "log", "dctr", min_impressions=-1)
    with pytest.raises(LogevalError, match="top_queries=0"):
        logeval.fit_models(folder / "log", "dctr", top_queries=0)
    assert run("fit-models", folder / "log", "-m", "dctr", "--min-impressions", -1)[0] == 2
    assert not (tmp_path / "m").exists()


def test_models_are_not_replaced_unless_asked(folder, tmp_path):
    out = tmp_path / "m"
    fit = ["fit-models", folder / "log", "--out", out, "-q", "-m"]
    assert run(*fit, "dctr")[0] == 0
    assert run(*fit, "dctr")[0] == 0, "the same again is no change"
    code, text = run(*fit, "rctr")
    assert (code, "holds other models already" in text) == (2, True)
    assert list(logeval.load(out).fitted) == ["DCTR"]
    (tmp_path / "m.json").write_text(run("inspect", folder / "models", "--json")[1])
    assert run("import-models", tmp_path / "m.json", "--out", out)[0] == 2
    assert list(logeval.load(out).fitted) == ["DCTR"]
    assert run("import-models", tmp_path / "m.json", "--out", out, "--overwrite")[0] == 2, (
        "what another stage made is not replaced even then"
    )
    assert run(*fit, "rctr", "--overwrite")[0] == 0
    assert list(logeval.load(out).fitted) == ["RCTR"]


def test_a_log_without_clicks_is_warned_about(tmp_path, capsys):
    source = tmp_path / "log.tsv"
    source.write_text("0\tM\t1\t5\n0\t0\tQ\t0\t7\t1,2\t11,1\t12,1\n")
    log = logeval.ingest(source, tmp_path / "log", format="yandex-personalized", quiet=True)
    assert "holds no clicks" in capsys.readouterr().err
    models = logeval.fit_models(log, "dctr", quiet=True)
    assert "no click" in models.fitted["DCTR"].report["notes"][-1]
    source.write_text("0\tM\t1\t5\n1\tM\t1\t5\n")
    empty = logeval.ingest(source, tmp_path / "empty", format="yandex-personalized", quiet=True)
    assert "holds no result pages" in capsys.readouterr().err
    assert empty.cautions()


def test_scores_on_the_training_log_are_not_called_held_out(folder, tmp_path):
    text = run("score", folder / "models", folder / "log")[1]
    assert "fitted to" in text.splitlines()[0]
    assert "Held-out" not in text
    other = write_serps(tmp_path, [Serp(0, [100, 101, 102], [0, 1, 0], session_id=0)])
    assert logeval.score(folder / "models", other).scored_on == f"all SERPs of {other}"
    text = run("compare-models", folder / "log", "-m", "dctr", "-m", "rctr", "-q")[1]
    assert "held-out SERPs" in text.splitlines()[0]


def test_wrong_objects_in_python_are_errors_that_say_what_is_wanted(folder):
    log, models = logeval.load(folder / "log"), logeval.load(folder / "models")
    runs = logeval.load(folder / "runs")
    for wrong, message in (
        (lambda: models["DCM"], "there is no DCM here"),
        (lambda: models[3], r'write \["DCM"\]'),
        (lambda: models["PBM", 99], "PBM was not fitted for query 99; it was for 0, 1, 2"),
        (lambda: runs.summary(17.5), "is a step"),
        (lambda: runs.summary(21), "the nearest that was is 20"),
        (lambda: logeval.evaluate(log, policies="Random"), "a Log cannot be simulated"),
        (lambda: logeval.evaluate(models, policies=[object()]), "must be a valid string"),
        (lambda: logeval.evaluate(models, policies=[dict]), "has no method recommend"),
        (lambda: logeval.load(3), "cannot be loaded"),
    ):
        with pytest.raises(LogevalError, match=message):
            wrong()


def test_python_takes_names_numbers_and_ids_as_they_are(folder, tmp_path):
    models, runs = logeval.load(folder / "models"), logeval.load(folder / "runs")
    assert models["pbm"] is models.fitted["PBM"]
    for query in (1, "1", np.int64(1), (1, None)):
        assert np.array_equal(models["PBM", query].items, models["PBM", "1"].items)
    one = logeval.evaluate(models, policies="Random", queries=1, horizon=3, runs=1, quiet=True)
    assert set(one.to_pandas()["query"]) == {"1"}
    fitted = logeval.fit_models(folder / "log", "dctr", queries=2, quiet=True)
    assert [str(q) for q in fitted.queries] == ["2"]
    assert "DCTR (counting, 1 queries)" in repr(fitted)
    assert "result pages" in repr(logeval.load(folder / "log"))
    assert repr(runs).startswith("Runs: 2 policies, 3 queries, 2 runs of 20 searches on DCTR, PBM")
    assert "Random" in str(runs)
    for thing in (models, runs, logeval.load(folder / "log")):
        assert "<table" in thing._repr_html_()
    page = runs.only(["Random"]).report(tmp_path / "report", quiet=True)
    assert "Random" in page.read_text()
    kept = logeval.evaluate(models, policies="Random", horizon=9, runs=1, quiet=True)
    for made in (kept.report(tmp_path / "a", quiet=True), logeval.report(kept, tmp_path / "b")):
        assert "DCTR" in made.read_text()
    assert runs.plot("relative", simulator="PBM") is not None
    with pytest.raises(LogevalError, match="name the simulator: DCTR, PBM"):
        runs.plot("relative")


@pytest.mark.parametrize("command", ["evaluate", "fit-models"])
def test_output_for_programs(folder, tmp_path, command):
    arguments = {
        "evaluate": ["evaluate", folder / "models", "--policy", "Random", "--horizon", 5, "-q"],
        "fit-models": ["fit-models", folder / "log", "-m", "dctr", "--out", tmp_path / "m", "-q"],
    }[command]
    done = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    rows = json.loads(done.stdout)["rows"]
    done = CliRunner().invoke(app, [*map(str, arguments), "--csv"])
    lines = done.stdout.splitlines()
    assert lines[0].split(",") == list(rows[0])
    assert len(lines) == len(rows) + 1
