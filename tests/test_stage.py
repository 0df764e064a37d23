"""A stage is a record: everything about an argument follows from its field."""

import inspect
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import KW_ONLY
from pathlib import Path
from typing import Annotated, Literal

import pytest
import typer
from typer.testing import CliRunner

import logeval
from logeval.clicks.fit import Fit
from logeval.commands.command import command_of
from logeval.errors import LogevalError
from logeval.pipeline import STAGES
from logeval.stage import Arg, Stage, arguments_of, fits, function, recipe_keys, stage


@stage("count", example="logeval count t --word a", again="logeval count {folder}")
class Count(Stage[int]):
    """Count words.

    This part is for readers of the function.
    """

    text: Annotated[Path | str, Arg("The text.", "input")]
    _: KW_ONLY
    words: Annotated[Sequence[str], Arg("Words to count.", option="--word/-w")] = ()
    least: Annotated[int, Arg("Shorter words do not count.", least=1, most=9)] = 3
    kind: Annotated[Literal["upper", "lower"], Arg("Which letters.")] = "lower"
    out: Annotated[Path | str | None, Arg("Folder for the count.", "output")] = None

    def inputs(self):
        return [{"text": str(self.text)}]

    def make(self, manifest):
        return len([word for word in self.words if len(word) >= self.least])


def test_the_function_has_the_arguments_of_the_record_and_their_help():
    count = function(Count)
    assert list(inspect.signature(count).parameters) == ["text", "words", "least", "kind", "out"]
    assert count("t", words=["one", "a"]) == 1
    assert "least: Shorter words do not count." in count.__doc__


def test_the_command_has_the_options_of_the_record_and_prints_by_hand():
    app = typer.Typer(rich_markup_mode=None)

    def show(found, asked, *, loud: "Annotated[bool, typer.Option('--loud')]" = False):
        print(f"{found} of {asked.text}{'!' if loud else ''}")

    app.command()(command_of(Count, show))
    run = CliRunner().invoke
    asked = ["t", "-w", "one", "--word", "two", "-w", "a", "--loud"]
    assert run(app, asked).output == "2 of t!\n"
    assert run(app, ["t", "--least", "0"]).exit_code == 2
    told = run(app, ["--help"]).output
    assert "Shorter words do not count." in told
    assert "logeval count t --word a" in told
    assert "for readers of the function" not in told


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"least": 0}, "least=0: must be at least 1"),
        ({"least": 10}, "least=10: must be at most 9"),
        ({"least": 1.5}, "least=1.5: must be a valid integer"),
        ({"least": True}, "least=True: must be a valid integer"),
        ({"words": [1]}, "words=[1]: must be a valid string"),
        ({"kind": "uper"}, "kind='uper': must be 'upper' or 'lower'"),
    ],
)
def test_a_wrong_value_is_named_with_what_it_must_be(given, message):
    with pytest.raises(LogevalError) as error:
        Count("t", **given)
    assert message in str(error.value)


def test_a_text_where_a_list_is_wanted_is_a_list_of_one():
    assert Count("t", words="one").words == ["one"]


def test_what_is_missing_is_named():
    with pytest.raises(LogevalError, match="missing a required argument: 'text'"):
        Count.of(words=["one"])


def test_the_manifest_records_settings_and_nothing_else():
    asked = Count("t", words=("one",), out="o")
    manifest = asked.manifest()
    assert manifest["arguments"] == {"words": ["one"], "least": 3, "kind": "lower"}
    assert manifest["inputs"] == [{"text": "t"}]
    assert manifest["again"] == "logeval count {folder}"
    assert list(recipe_keys(Count)) == ["words", "least", "kind"]


def test_types():
    assert fits(None, int | None)
    assert not fits("a", int | None)
    assert fits([1, 2], Sequence[int])
    assert not fits([1, "a"], Sequence[int])


@pytest.mark.parametrize("name", STAGES)
def test_every_argument_of_a_stage_says_what_it_is(name):
    assert not [field for field, _, arg in arguments_of(STAGES[name]) if not arg.help]


def test_options_of_models_may_be_given_as_arguments():
    asked = Fit.of("log", "dcm", last_termination="raw")
    assert asked.options == {"last_termination": "raw"}
    with pytest.raises(LogevalError, match=r"unknown argument.*did you mean last_termination"):
        logeval.fit_models("log", "dcm", last_terminatoin="raw")
    with pytest.raises(LogevalError, match="unknown last termination: '3'"):
        logeval.fit_models("log", "dcm", last_termination=3)


def test_the_records_are_read_without_anything_heavy():
    """The command line reads them for --help."""
    modules = ", ".join(sorted({record.__module__ for record in STAGES.values()}))
    heavy = "{'numpy', 'pyarrow', 'pandas', 'scipy', 'numba', 'duckdb', 'matplotlib'}"
    code = f"import sys, {modules}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_signatures_are_what_a_person_would_write_and_help_fits_a_screen():
    shown = str(inspect.signature(logeval.evaluate))
    assert "horizon: int = 10000" in shown
    assert shown.endswith("-> 'Runs'")
    for name in logeval.__all__:
        if inspect.isfunction(call := getattr(logeval, name)):
            assert call.__name__ == name
            assert not re.search("Annotated|ForwardRef|factory", str(inspect.signature(call)))
            assert len(inspect.getdoc(call).splitlines()) < 50
