"""The commands as a user types them."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

import logeval
from logeval.cli import app
from logeval.storage import tables
from tests.faults.commands import Command
from tests.faults.commands import logeval as forked

STAGES = ["generate", "ingest", "describe"]


def test_every_command_is_listed_with_a_whole_sentence():
    for group in ([], ["replay"]):
        listed = forked(*group, "--help").said.partition("Commands:")[2]
        assert listed.count("  ") > 3
        assert "..." not in listed


CONSOLE = "from logeval.cli import console; console()"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [(["--version"], 0, logeval.__version__), (["policies", "--no-such"], 2, "No such option")],
)
def test_the_console_script_ends_with_all_that_was_said_and_its_exit_code(arguments, code, said):
    """Libraries are not torn down; exit functions are called."""
    before = "import atexit; atexit.register(print, 'the end'); "
    done = subprocess.run(
        [sys.executable, "-c", before + CONSOLE, *arguments], capture_output=True, text=True
    )
    assert done.returncode == code
    assert said in done.stdout + done.stderr
    assert "the end" in done.stdout


def run(*arguments, code=0):
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    assert forked("generate", folder / "log.tsv.gz", "--sessions", 2000, "--seed", 1).code == 0
    assert forked("ingest", folder / "log.tsv.gz", "--out", folder / "log").code == 0
    return folder


def test_help_shows_the_stages_in_their_order():
    text = run("--help").stdout
    places = [text.index(f"\n  {stage} ") for stage in STAGES]
    assert places == sorted(places)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["evaluate", "--horizon", "x"], ["demo", "--help"], ["plot"]]
)
def test_help_and_a_usage_error_import_nothing_heavy(arguments):
    code = "import sys; from logeval.cli import app\ntry: app(sys.argv[1:])\nfinally: "
    code += "print(sorted({'numpy', 'pyarrow', 'numba', 'webbrowser'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("arguments", [["fit-models", "x", "-m", "dcm"], ["evaluate", "x"]])
def test_a_folder_that_is_not_there_is_said_before_numba_is_imported(tmp_path, arguments):
    code = "import sys; from logeval.cli import app\ntry: app(sys.argv[1:])\nfinally: "
    code += "print('numba' in sys.modules)"
    command = [sys.executable, "-c", code, *arguments, "--out", "y"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == "logeval: x: there is no manifest.json here; check the path\n"
    assert done.stdout == "False\n"


def test_the_shell_completes_commands():
    code = "from logeval.cli import main; main()"
    words = {"_LOGEVAL_COMPLETE": "complete_bash", "COMP_WORDS": "logeval inge", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | words, capture_output=True, text=True
    )
    assert done.stdout.split() == ["ingest"]


def test_ingest_prints_counts_that_add_up(folder):
    text = run("ingest", folder / "log.tsv.gz", "--out", folder / "again").stdout
    rows = re.findall(r"^ *(\S.*?) {2,}([\d,]+) *$", text, re.MULTILINE)
    numbers = {name: int(count.replace(",", "")) for name, count in rows}
    assert numbers.pop("test SERPs among the queries") > 0
    assert numbers.pop("lines read") == sum(numbers.values()) > 0


def test_ingest_reads_standard_input(folder):
    def piped():
        os.dup2(os.open(folder / "log.tsv.gz", os.O_RDONLY), 0)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115

    end = forked("ingest", "-", "--out", folder / "stdin", "--quiet", before=piped)
    assert end.code == 0, end.said
    assert logeval.load(folder / "stdin").serps().equals(logeval.load(folder / "log").serps())


def test_describe_for_people_and_for_programs(folder):
    assert "CTR by rank" in run("describe", folder / "log", "--details").stdout
    done = run("describe", folder / "log", "--json", "--top", 3, "--figure", folder / "log.png")
    found = json.loads(done.stdout)
    assert len(found["top_queries"]) == 3
    assert found["totals"]["sessions"] == 2000
    assert (folder / "log.png").stat().st_size > 10_000


def test_a_wrong_input_is_one_line_and_exit_code_2(folder):
    done = run("ingest", folder / "nothing.gz", "--out", folder / "x", code=2)
    assert done.stdout == ""
    assert done.stderr == f"logeval: {folder}/nothing.gz: no such file; check the path\n"
    done = run("ingest", folder / "log.tsv.gz", "--out", folder / "x", "--map", "oops", code=2)
    assert "query_id=qid" in done.stderr


def test_ctrl_c_leaves_nothing_and_says_so(tmp_path):
    command = Command("generate", tmp_path / "big.tsv", "--sessions", 100_000_000)
    while not list(tmp_path.glob(".big.tsv.partial")):
        assert command.poll() is None
        time.sleep(0.01)
    time.sleep(0.3)
    os.kill(command.pid, signal.SIGINT)
    end = command.wait(60)
    assert end.code == 130
    assert "nothing is left half-written" in end.said
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "log.tsv"
    logeval.generate(path, sessions=150_000, quiet=True)
    return path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_ingest_leaves_nothing(large, tmp_path, number):
    command = Command("ingest", large, "--out", tmp_path / "out")
    while not list(tmp_path.glob("out/.logeval.partial/serps/*.parquet")):
        assert command.poll() is None
        time.sleep(0.002)
    os.kill(command.pid, number)
    end = command.wait(60)
    assert "nothing is left half-written" in end.said
    assert end.code == 128 + number
    assert not list(tmp_path.iterdir())


def test_paths_that_cannot_be_written_are_named_in_one_line(folder):
    for arguments in (
        ["ingest", folder / "log.tsv.gz", "--out", folder / "log.tsv.gz" / "x"],
        ["describe", folder / "log", "--figure", folder / "log.tsv.gz" / "x.png"],
        ["describe", folder / "log", "--figure", folder / "x.foo"],
        ["generate", folder],
        ["ingest", folder / "log.tsv.gz", "--out", "/"],
        ["ingest", folder / "log.tsv.gz", "--out", "/", "--overwrite"],
        ["fit-models", folder / "log", "-m", "dctr", "--out", "/"],
    ):
        end = forked(*arguments)
        assert end.code == 2, arguments
        assert end.said.splitlines()[-1].startswith("logeval: ")
        assert end.is_clear()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
@pytest.mark.parametrize("arguments", [["export", "--help"], ["describe", "log"]])
def test_output_that_cannot_be_written_is_an_error_in_one_line(arguments, folder):
    """However short it is: what stands in a buffer to the end would be lost without a word."""
    end = forked(*[folder / a if a == "log" else a for a in arguments], before=to_a_full_device)
    assert end.code == 2
    assert end.said.count("\n") == 1
    assert "No space left on device" in end.said


def to_a_full_device():
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)


def test_what_to_type_next_is_quoted(tmp_path, folder):
    """A folder with a blank in its name, in every command that a command proposes."""
    models, runs = tmp_path / "my models", tmp_path / "my runs"
    few = ["--top-queries", 1, "--no-verdict"]
    fitted = run("fit-models", folder / "log", "-m", "pbm", *few, "--out", models)
    asked = ["evaluate", models, "--policy", "Random", "--horizon", 5, "--runs", 1, "--out", runs]
    evaluated = run(*asked)
    for end, path in ((fitted, models), (evaluated, runs)):
        (line,) = (one for one in end.stderr.splitlines() if one.startswith("more: "))
        assert str(path) in shlex.split(line)
    tables.path_of(models, "models").write_bytes(b"")
    again = run("inspect", models, "--query", 1, code=2).stderr.partition("logeval fit-models")
    assert str(models) in shlex.split(again[2].replace("`", " "))


def test_output_cut_short_by_the_reader_is_no_error(folder):
    read, write = os.pipe()

    def piped():
        os.dup2(write, 1)
        os.close(read)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115

    command = Command("describe", folder / "log", "--json", before=piped)
    os.close(write)
    first = os.read(read, 2)
    os.close(read)
    end = command.wait()
    assert first == b"{\n", end
    assert (end.code, end.said) in ((141, ""), (0, "")), "before it is noticed, or after the end"
