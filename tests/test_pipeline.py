"""Recipes: checked, run in order, skipped when up to date, resumed, and run again from the copy."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import logeval
from logeval.cli import app
from logeval.errors import LogevalError
from logeval.pipeline import read_recipe, records, run
from logeval.replay.estimate import Estimates
from logeval.running.console import has_display
from tests.undrawn import draw_nothing

ROOT = Path(__file__).parent.parent
SMALL = """
out = "out"
seed = 1
[generate]
sessions = 3000
queries = 20
[fit-models]
models = ["pbm"]
top_queries = 2
[evaluate]
policies = ["dcmKL-UCB", "Rank1ElimKL"]
horizon = 100
runs = 2
"""


REPLAY = """
[replay]
target = ["by-ctr", "random"]
estimators = ["IP", "PBM"]
positions = 1
rounds = 10
force = true
"""


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    """A recipe whose figures are not drawn."""
    draw_nothing(monkeypatch)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The output of the recipe."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "small.toml").write_text(SMALL)
    with pytest.MonkeyPatch.context() as patch:
        draw_nothing(patch)
        patch.chdir(folder)
        run(read_recipe("small.toml"), quiet=True)
    return folder / "out"


@pytest.fixture
def done(recipe, whole):
    """The recipe, which was run."""
    shutil.copytree(whole, "out")
    return recipe


def test_a_link_to_itself_in_the_output_is_named(done, tmp_path):
    models = next(tmp_path.rglob("models"))
    shutil.rmtree(models)
    models.symlink_to(models)
    with pytest.raises(LogevalError, match="models: cannot be a folder for the output"):
        run(read_recipe(done), quiet=True)


def reasons(steps):
    return {step.stage: step.reason for step in steps}


def test_units_that_a_killed_process_had_merged_already_are_tidied_up(recipe, monkeypatch):
    with monkeypatch.context() as killed:  # after the table is in place, before its units go
        killed.setattr(Path, "unlink", lambda self, missing_ok=False: None)
        run(read_recipe(recipe), quiet=True)
    (units,) = Path("out").rglob("units")
    assert list(units.glob("*.parquet"))
    again = reasons(run(read_recipe(recipe), quiet=True))
    assert again["evaluate"] == "a process was killed while it merged its runs"
    assert not units.exists()
    assert not any(reasons(run(read_recipe(recipe), quiet=True)).values())


def test_a_dry_run_imports_no_policy_and_a_run_runs_it_again(recipe, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    own = (ROOT / "tests/evaluation/my_policy.py").read_text()
    module, ran = tmp_path / "stranger.py", tmp_path / "ran"
    module.write_text(f"open({str(ran)!r}, 'a').close()\n{own}")
    asked = ["evaluate.policies=['dcmKL-UCB', 'stranger:Greedy']", "evaluate.runs=1"]
    run(read_recipe(recipe, asked), dry_run=True)
    assert not ran.exists()
    run(read_recipe(recipe, asked), quiet=True)
    assert ran.exists()
    again = reasons(run(read_recipe(recipe, asked), quiet=True))
    assert "stranger:Greedy is a class of your own" in again.pop("evaluate")
    assert set(again.values()) == {None}, "the same runs have the same report"
    ran.unlink()
    sys.modules.pop("stranger")
    dry = reasons(run(read_recipe(recipe, asked), dry_run=True))
    assert dry["evaluate"] == "a dry run does not import stranger:Greedy, so it may run"
    assert not ran.exists()


def test_a_recipe_runs_to_the_report_and_then_has_nothing_to_do(recipe, tmp_path):
    dry = reasons(run(read_recipe(recipe), dry_run=True))
    assert dry["generate"] == "there is no output yet"
    assert not (tmp_path / "out").exists()
    steps = run(read_recipe(recipe), quiet=True)
    assert [s.stage for s in steps] == ["generate", "ingest", "fit-models", "evaluate", "report"]
    page = (steps[-1].out / "index.html").read_text()
    assert "Rank1ElimKL" in page
    assert set(reasons(run(read_recipe(recipe), quiet=True)).values()) == {None}

    more = read_recipe(recipe, ["evaluate.runs=3"])
    assert reasons(run(more, dry_run=True)) == {
        "generate": None,
        "ingest": None,
        "fit-models": None,
        "evaluate": "4 of 12 runs are missing",
        "report": "evaluate runs before it",
    }
    run(more, quiet=True)
    runs = logeval.Runs.load(steps[3].out)
    assert runs.to_pandas()["run"].nunique() == 3
    other = run(read_recipe(recipe, ["evaluate.horizon=50"]), quiet=True)
    assert other[3].out != steps[3].out, "the runs before are kept"
    assert logeval.Runs.load(steps[3].out).horizon == 100

    fewer = read_recipe(recipe, ["evaluate.policies=['dcmKL-UCB']", "evaluate.runs=1"])
    shown = (run(fewer, quiet=True)[-1].out / "tables" / "summary-1.csv").read_text()
    assert "Rank1ElimKL" not in shown
    titled = run(read_recipe(recipe, ["title=Another 😀"]), quiet=True)
    assert reasons(titled)["report"]
    assert "Another 😀" in (titled[-1].out / "index.html").read_text()
    run(read_recipe(recipe, ["evaluate.horizon=50"]), quiet=True)

    copy = tmp_path / "out" / "recipe.toml"
    assert copy.read_text().startswith(f"# logeval {logeval.__version__}, Python ")
    again = read_recipe(copy)
    assert again.stages["evaluate"]["horizon"] == 50
    assert set(reasons(run(again, quiet=True)).values()) == {None}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("horizon", "horizn", r"unknown key in \[evaluate\].*did you mean horizon"),
        ("[evaluate]", "[evaluat]", "unknown key in .*did you mean evaluate"),
        ('out = "out"', "", "says nowhere to put the output"),
        ("[generate]\nsessions = 3000\nqueries = 20", "", "names no log"),
        ("seed = 1", "seed = ", "not a recipe"),
        ("seed = 1", 'seed = "one"', "seed = 'one' must be int"),
        (
            "horizon = 100",
            'horizon = "abc"',
            r"\[evaluate\] horizon='abc': must be a valid int",
        ),
        ('models = ["pbm"]', "", "missing a required argument: 'models'"),
        ("[generate]", '[ingest]\nlogs = "a.tsv"\n[generate]', "names no log, or two"),
        ("[evaluate]", "[evaluate]\nproblem = 3", "unknown key"),
        (
            'models = ["pbm"]',
            "models = 5",
            r"\[fit-models\] models=5: must be a list",
        ),
        ("runs = 2", "runs = true", r"\[evaluate\] runs=True: must be a valid integer"),
        ('["dcmKL-UCB", "Rank1ElimKL"]', "[3]", r"policies=\[3\]: must be a valid string"),
        ("seed = 1", "seed = true", "seed = True must be int"),
        ("[evaluate]", '[evaluate]\nqueries = "7"\ncheckpoints = 1.5', "checkpoints=1.5"),
        ("[generate]\nsessions = 3000\nqueries = 20", "[ingest]\nlogs = [1]", "logs="),
    ],
)
def test_a_wrong_recipe_is_an_error_that_names_the_place(recipe, old, new, message):
    recipe.write_text(SMALL.replace(old, new))
    with pytest.raises(logeval.LogevalError, match=message):
        read_recipe(recipe)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("generate.model=xyz", r"\[generate\] unknown model: 'xyz'"),
        ("generate.sessions=0", r"\[generate\] sessions=0: must be at least 1"),
        ("ingest.format=csv", r"\[ingest\] unknown format"),
        ("ingest.workers=99", r"\[ingest\] workers=99"),
        ("fit-models.models=dmc", r"\[fit-models\] unknown click model: 'dmc' \(did you mean"),
        ("fit-models.holdout=2", r"\[fit-models\] .*holdout"),
        ("fit-models.min_impressions=-1", r"\[fit-models\] min_impressions=-1"),
        ("evaluate.policies=dcmKLUCB", r"\[evaluate\] unknown policy: 'dcmKLUCB'"),
        ("evaluate.horizon=0", r"\[evaluate\] horizon=0"),
        ("evaluate.runs=0", r"\[evaluate\] runs=0"),
        ("evaluate.track=rank2", r"\[evaluate\] unknown track: 'rank2'"),
        ("evaluate.reward=money", r"\[evaluate\] unknown reward"),
        ("report.style=cubist", r"\[report\] style='cubist': must be 'paper' or 'slides'"),
    ],
)
def test_wrong_values_are_found_before_the_first_stage(recipe, tmp_path, override, message):
    for dry_run in (True, False):
        with pytest.raises(logeval.LogevalError, match=message):
            run(read_recipe(recipe, [override]), dry_run=dry_run, quiet=True)
    assert not (tmp_path / "out").exists()


def test_a_log_that_is_not_there_is_found_before_the_first_stage(recipe, tmp_path):
    generated = "[generate]\nsessions = 3000\nqueries = 20"
    recipe.write_text(SMALL.replace(generated, '[ingest]\nlogs = "no.gz"'))
    with pytest.raises(logeval.LogevalError, match=r"\[ingest\] no.gz: no such file") as error:
        run(read_recipe(recipe), dry_run=True)
    assert f"`logeval run {recipe} --set ingest.logs=FILE`" in str(error.value)


@pytest.mark.parametrize(
    ("override", "section", "name", "value"),
    [
        ("evaluate.policies=dcmKL-UCB,Random", "evaluate", "policies", ["dcmKL-UCB", "Random"]),
        ("evaluate.policies=dcmKL-UCB, Random", "evaluate", "policies", ["dcmKL-UCB", "Random"]),
        ("evaluate.policies=dcmKL-UCB", "evaluate", "policies", "dcmKL-UCB"),
        ("evaluate.policies=all", "evaluate", "policies", "all"),
        ('evaluate.policies=["Random"]', "evaluate", "policies", ["Random"]),
        (
            "evaluate.policies=RankedExp3(gamma=0.05,collision=random),Random",
            "evaluate", "policies", ["RankedExp3(gamma=0.05,collision=random)", "Random"],
        ),
        ("evaluate.queries=1@0,2", "evaluate", "queries", ["1@0", "2"]),
        ("evaluate.checkpoints=10,50", "evaluate", "checkpoints", [10, 50]),
        ("evaluate.checkpoints=10", "evaluate", "checkpoints", 10),
        ("fit-models.models=dcm,pbm", "fit-models", "models", ["dcm", "pbm"]),
        ("title=one, two", None, "title", "one, two"),
    ],
)  # fmt: skip
def test_several_values_of_an_override_stand_between_commas(recipe, override, section, name, value):
    found = read_recipe(recipe, [override])
    got = found.title if section is None else found.stages[section][name]
    assert got == value


def test_a_file_with_a_comma_in_its_name_is_one_file(recipe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a,b.tsv").write_text("x")
    generated = "[generate]\nsessions = 3000\nqueries = 20"
    recipe.write_text(SMALL.replace(generated, '[ingest]\nlogs = "no.gz"'))
    one, two = (read_recipe(recipe, [f"ingest.logs={text}"]) for text in ("a,b.tsv", "c,d.tsv"))
    assert one.stages["ingest"]["logs"] == "a,b.tsv"
    assert two.stages["ingest"]["logs"] == ["c", "d.tsv"]


def test_the_command_ends_with_the_verdict_and_where_more_is(recipe):
    recipe.write_text(SMALL + REPLAY)
    done = CliRunner().invoke(app, ["run", str(recipe), "-q"])
    assert done.exit_code == 0, done.output
    found = read_recipe(recipe)
    steps = {s.stage: s.out for s in run(found, quiet=True)}
    runs = logeval.Runs.load(steps["evaluate"])
    assert runs.verdict().text() in done.stdout
    said = Estimates.read(steps["replay"]).verdict().text()
    assert f"Without a simulator, from the log itself:\n{said}" in done.stdout
    assert done.stdout.rstrip().endswith(f"more: {steps['report'] / 'index.html'}")


def test_a_name_given_where_a_list_is_expected_is_a_list_of_one(recipe):
    recipe.write_text(SMALL.replace('["dcmKL-UCB", "Rank1ElimKL"]', '"dcmKL-UCB"'))
    stages = records(read_recipe(recipe))
    assert [spec.name for spec in stages["evaluate"].specs()] == ["dcmKL-UCB"]
    assert stages["report"].policies == ["dcmKL-UCB"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("positions", "position", r"unknown key in \[replay\].*did you mean positions"),
        ('target = ["by-ctr", "random"]', "", "missing a required argument: 'target'"),
        ('"IP"', '"IPP"', r"\[replay\] unknown estimator.*did you mean IP"),
        ('"by-ctr"', '"mine.csv"', r"\[replay\] target mine.csv: there is no such file"),
        ('"by-ctr"', '"log:nowhere"', r"\[replay\] nowhere: there is no manifest.json"),
        ('"by-ctr"', '"best:none"', r"\[replay\] unknown click model"),
        (
            "positions = 1",
            'positions = "all"',
            r"\[replay\] positions='all': must be a valid int",
        ),
        ("rounds = 10", "rounds = 1", "must be 0 .* or at least 2"),
        ("rounds = 10", "clip = 0", "the largest weight must be above 0"),
    ],
)
def test_a_wrong_replay_is_found_before_the_first_stage(recipe, old, new, message):
    recipe.write_text(SMALL + REPLAY.replace(old, new))
    with pytest.raises(logeval.LogevalError, match=message):
        run(read_recipe(recipe), dry_run=True)


def test_replay_is_a_stage_that_is_skipped_while_up_to_date(done, tmp_path):
    recipe = done
    recipe.write_text(SMALL + REPLAY)
    with_replay = read_recipe(recipe)
    assert reasons(run(with_replay, dry_run=True))["replay"] == "there is no output yet"
    steps = run(with_replay, quiet=True)
    assert [s.stage for s in steps][-2:] == ["replay", "report"]
    assert [s.stage for s in steps if s.reason] == ["replay", "report"], "the rest is kept"
    found = Estimates.read(tmp_path / "out" / "replay")
    assert set(found.table["target"]) == {"by-ctr", "random"}
    assert found.manifest["arguments"]["seed"] == 1, "the recipe's"
    assert set(reasons(run(with_replay, quiet=True)).values()) == {None}
    deeper = reasons(run(read_recipe(recipe, ["replay.rounds=12"]), dry_run=True))
    assert deeper["replay"] == "rounds was 10, and is 12"
    assert deeper["evaluate"] is None


def test_a_wrong_override_is_an_error(recipe):
    with pytest.raises(logeval.LogevalError, match=r"evaluate.horizon=1000"):
        read_recipe(recipe, ["horizon"])
    with pytest.raises(logeval.LogevalError, match="did you mean horizon"):
        read_recipe(recipe, ["evaluate.horizo=3"])
    with pytest.raises(logeval.LogevalError, match="title is not a section"):
        read_recipe(recipe, ["title=x", "title.y=1"])
    with pytest.raises(logeval.LogevalError, match="evaluate must be a section"):
        read_recipe(recipe, ["evaluate=3"])


def test_values_survive_the_copy(recipe):
    found = read_recipe(recipe, ['ingest.columns={query_id = "q\\"id"}', "title=it's"])
    recipe.write_text(found.text())
    assert read_recipe(recipe) == found


@pytest.mark.parametrize("path", sorted((ROOT / "pipelines").glob("*.toml")), ids=lambda p: p.stem)
def test_the_recipes_that_are_shipped_are_valid(path):
    recipe = read_recipe(path)
    assert recipe.stages["evaluate"]["policies"]


def test_make_demo_sets_up_what_a_user_needs_and_runs_the_demo():
    dry = ["make", "-n", "demo", "VENV=nowhere"]
    env = {key: value for key, value in os.environ.items() if "MAKE" not in key}  # make runs tests
    said = subprocess.run(dry, cwd=ROOT, check=True, capture_output=True, text=True, env=env).stdout
    assert "install" in said
    assert "[dev]" not in said
    assert said.rstrip().endswith("nowhere/bin/logeval demo")


SMALL_DEMO = ["--set", "fit-models.top_queries=2", "--set", "evaluate.horizon=100",
              "--set", "fit-models.draws=4", "--set", "evaluate.draws=2",
              "--set", "generate.sessions=3000", "--set", "generate.queries=20", "-q"]  # fmt: skip


def test_the_demo_ends_with_the_decision_and_opens_its_page(tmp_path, monkeypatch):
    draw_nothing(monkeypatch)
    monkeypatch.chdir(tmp_path)
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    said = CliRunner().invoke(app, ["demo", *SMALL_DEMO], catch_exceptions=False).stdout
    assert logeval.Decision.read(tmp_path / "demo" / "decision").text() in said
    assert said.endswith("more: demo/report/index.html\n")
    page = tmp_path / "demo" / "report" / "index.html"
    assert 'class="answer' in page.read_text()
    assert opened == [], "there is no display"
    CliRunner().invoke(app, ["demo", *SMALL_DEMO, "--open"], catch_exceptions=False)
    assert opened == [page.as_uri()]


def test_a_page_is_opened_only_where_a_person_sees_it(monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: True))
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "CI"):
        monkeypatch.delenv(name, raising=False)
    assert not has_display()
    monkeypatch.setenv("DISPLAY", ":0")
    assert has_display()
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: False))
    assert not has_display()


def test_the_recipe_of_all_algorithms_chooses_its_simulators():
    fit = read_recipe(ROOT / "pipelines" / "yandex-all.toml").stages["fit-models"]
    assert fit["models"] == "auto"


def test_run_notices_what_was_done_to_its_output_by_hand(done, tmp_path):
    recipe = done
    first = run(read_recipe(recipe), quiet=True)
    logeval.fit_models("out/log", "pbm", top_queries=1, seed=1, out="out/models", overwrite=True,
                       quiet=True)  # fmt: skip
    found = reasons(run(read_recipe(recipe), dry_run=True))
    assert found["fit-models"] == "top_queries was 1, and is 2"
    again = run(read_recipe(recipe), quiet=True)
    assert reasons(again)["evaluate"] is None, "an identical refit does not evaluate again"
    assert again[3].out == first[3].out
    assert len(logeval.read_models("out/models").queries) == 2

    shard = next((tmp_path / "out" / "log" / "serps").iterdir())
    damaged = bytearray(shard.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    shard.write_bytes(damaged)
    with pytest.raises(logeval.LogevalError, match=r"is damaged .* logeval ingest"):
        logeval.load("out/log").serps()
    assert "is damaged" in reasons(run(read_recipe(recipe), dry_run=True))["ingest"]
    assert reasons(run(read_recipe(recipe), quiet=True))["fit-models"] is None
    shard.with_name("part-99999.parquet").write_bytes(shard.read_bytes())
    before = logeval.load("out/log").serps()
    assert before.num_rows == logeval.load("out/log").counts["queries"], (
        "what is not named is not read"
    )


@pytest.mark.parametrize("name", ["recipe.toml", "log.tsv.gz", "log/rejects.tsv"])
def test_a_recipe_never_overwrites_what_the_user_has(recipe, tmp_path, name):
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("precious")
    with pytest.raises(logeval.LogevalError, match="was not written by logeval"):
        run(read_recipe(recipe, ["out=."]), quiet=True)
    assert file.read_text() == "precious"
