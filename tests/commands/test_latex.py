"""Tables for a paper: what LaTeX reads, and bold only where the comparison allows it."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import logeval
from logeval.cli import app
from logeval.commands.evaluate import summary_latex, summary_tables
from logeval.commands.latex import escaped, latex_table
from logeval.evaluation.results import Runs

PROBLEM = "B_LB(L=6,K=2,p=0.5,gap=0.3,gamma=0.5)"


def evaluated(folder, policies, horizon=300, runs=8):
    logeval.evaluate(
        problem=[PROBLEM], policies=policies, horizon=horizon, runs=runs, out=folder, quiet=True
    )
    return Runs.load(folder)


def cells(text):
    rows = [line.removesuffix(r" \\") for line in text.splitlines() if line.endswith(r"\\")]
    return [row.split(" & ") for row in rows]


def test_a_table_has_booktabs_rules_and_escaped_text():
    text = latex_table("a % b", ["x_1", "n"], [["50% & more", 1.5], ["p<0.1", 2]], [(1, 0)])
    assert text == (
        "% a % b\n\\begin{tabular}{lr}\n\\toprule\nx\\_1 & n \\\\\n\\midrule\n"
        "50\\% \\& more & 1.5 \\\\\n\\textbf{p$<$0.1} & 2 \\\\\n\\bottomrule\n\\end{tabular}"
    )
    assert escaped(r"a\b~c^d") == r"a\textbackslash{}b\textasciitilde{}c\textasciicircum{}d"


def test_the_best_is_bold_only_where_it_is_told_apart_from_all_others(tmp_path):
    apart = evaluated(tmp_path / "apart", ["CascadeKL-UCB", "Random", "Oracle"])
    table = cells(summary_latex(apart))
    bold = [row[0] for row in table if row[0].startswith("\\textbf")]
    assert bold == ["\\textbf{CascadeKL-UCB}"]  # and not the Oracle, which knows the answer
    same = evaluated(tmp_path / "same", ["CascadeKL-UCB", "CascadeUCB1", "Random"], 20, 3)
    assert same.summary()["in_best_set"].sum() > 1
    assert "textbf" not in summary_latex(same)
    assert [one.alone for one in summary_tables(same)] == [False]
    alone = evaluated(tmp_path / "one", ["Random"])
    assert "textbf" not in summary_latex(alone)  # better than nobody


def test_names_signs_and_infinite_intervals_are_as_latex_wants_them():
    assert escaped("a&b%c_d#e{f}$") == r"a\&b\%c\_d\#e\{f\}\$"
    assert escaped("~^\\") == r"\textasciitilde{}\textasciicircum{}\textbackslash{}"
    assert escaped("-0.5 [-1.2, 3]") == "$-$0.5 [$-$1.2, 3]"
    assert escaped("dcmKL-UCB 2019-01-02") == "dcmKL-UCB 2019-01-02"
    assert escaped("inf information") == r"$\infty$ information"
    assert escaped("[x]") == "{}[x]"  # after a row's end LaTeX would take it for a length
    text = latex_table("t", ["a", "n"], [["x", float("inf")], ["y", -1.5]])
    assert "{lr}" in text


def test_the_commands_print_latex(tmp_path):
    def run(*arguments):
        done = CliRunner().invoke(app, [str(a) for a in arguments])
        assert done.exit_code == 0, done.output
        return done.stdout

    options = ["--horizon", 300, "--runs", 8, "-q", "--out"]
    run("evaluate", "--problem", PROBLEM, "--policy", "Random", *options, tmp_path / "a")
    asked = ["--problem", PROBLEM, "--policy", "Random", *options, tmp_path / "a", "--latex"]
    assert run("evaluate", *asked).count(r"\toprule") == 1
    run("evaluate", "--problem", PROBLEM, "--policy", "Random", *options, tmp_path / "b")
    text = run("compare", tmp_path / "a", tmp_path / "b", "--latex")
    assert "second - first" in text
    assert "textbf" not in text  # the same runs


@pytest.mark.parametrize("order", [["--latex", "--csv"], ["--json", "--latex"]])
def test_one_form_at_a_time(order, tmp_path):
    done = CliRunner().invoke(app, ["compare", str(tmp_path), str(tmp_path), *order])
    assert done.exit_code == 2
    assert "--latex" in done.stderr
    assert "only one of them" in done.stderr
