"""Tables for people and for papers; one form at a time."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import logeval
from logeval.cli import app
from logeval.commands.evaluate import summary_latex
from logeval.commands.show import latex_table, table_text
from logeval.evaluation.results import Runs
from logeval.running.words import cell

PROBLEM = "B_LB(L=6,K=2,p=0.5,gap=0.3,gamma=0.5)"


def test_pieces_of_a_wide_table_repeat_its_keys_and_break_no_number():
    names = ["query", "K", *(f"number {i}" for i in range(12))]
    rows = [[f"q{i % 3}", i, *(1000.5 + i + j for j in range(12))] for i in range(6)]
    pieces = table_text(names, rows, keys=2).split("\n\n")
    assert len(pieces) > 1
    for piece in pieces:
        head, *lines = piece.splitlines()
        assert head.split()[:2] == ["query", "K"]
        assert [line.split()[:2] for line in lines] == [[r[0], str(r[1])] for r in rows]
        assert max(map(len, lines)) <= 80
    shown = [x for piece in pieces for line in piece.splitlines()[1:] for x in line.split()[2:]]
    assert sorted(shown) == sorted(cell(x) for row in rows for x in row[2:])


def test_text_is_folded_between_words_and_only_cut_where_one_is_too_long():
    rows = [["a" * 20, "one two=three|four five " * 5, 12345.0, "word " * 20]]
    text = table_text(["name", "options", "number", "about"], rows)
    assert max(map(len, text.splitlines())) <= 80
    assert set(text.split()) == {
        "name", "options", "number", "about", "a" * 20, "one", "two=three|four", "five",
        "12,345", "word",
    }  # fmt: skip
    text = table_text(["a", "b"], [["x" * 60, "y" * 60]])
    assert max(map(len, text.splitlines())) <= 80
    assert (text.count("x"), text.count("y")) == (60, 60)


def test_names_of_others_are_no_markup_and_no_control_characters():
    text = table_text(["a"], [["[bold]x[/bold] :smile: \x1b[31m"]])
    assert text.splitlines()[1] == "[bold]x[/bold] :smile: \\x1b[31m"
    assert table_text(["a", "b\nc"], []).split() == ["b", "a", "c"]


def test_latex_has_booktabs_rules_and_escaped_text():
    rows = [["50% & more", 1.5], ["p<0.1", -2], ["dcmKL-UCB 2019-01-02", float("inf")]]
    assert latex_table("a % b", ["x_1", "n"], rows, [(1, 0)]) == (
        "% a % b\n\\begin{tabular}{lr}\n\\toprule\nx\\_1 & n \\\\\n\\midrule\n"
        "50\\% \\& more & 1.5 \\\\\n\\textbf{p$<$0.1} & $-$2 \\\\\n"
        "dcmKL-UCB 2019-01-02 & $\\infty$ \\\\\n\\bottomrule\n\\end{tabular}"
    )


def evaluated(folder, policies, horizon=300, runs=8):
    logeval.evaluate(
        problem=[PROBLEM], policies=policies, horizon=horizon, runs=runs, out=folder, quiet=True
    )
    return Runs.load(folder)


def test_the_best_is_bold_only_where_it_is_told_apart_from_all_others(tmp_path):
    text = summary_latex(evaluated(tmp_path / "a", ["CascadeKL-UCB", "Random", "Oracle"]))
    (bold,) = (line for line in text.splitlines() if "textbf" in line)
    assert bold.startswith("\\textbf{CascadeKL-UCB}")  # and not the Oracle, which knows the answer
    same = evaluated(tmp_path / "b", ["CascadeKL-UCB", "CascadeUCB1", "Random"], 20, 3)
    assert same.summary()["in_best_set"].sum() > 1
    assert "textbf" not in summary_latex(same)
    assert "textbf" not in summary_latex(evaluated(tmp_path / "c", ["Random"]))


@pytest.mark.parametrize("order", [["--latex", "--csv"], ["--json", "--latex"]])
def test_one_form_at_a_time(order):
    done = CliRunner().invoke(app, ["evaluate", "--problem", PROBLEM, "--policy", "x", *order])
    assert done.exit_code == 2
    assert order[0] in done.stderr
    assert order[1] in done.stderr
