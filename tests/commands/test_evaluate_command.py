from typer.testing import CliRunner

import logeval
from logeval.cli import app
from logeval.commands.evaluate import print_relative
from logeval.evaluation.evaluate import evaluate
from logeval.evaluation.results import Runs
from logeval.storage.tables import path_of
from tests.stand_in import models

PROBLEM = "B_LB(L=8,K=3,p=0.4,gap=0.3,gamma=0.5)"


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_evaluate_prints_a_table_and_draws(tmp_path):
    out = tmp_path / "runs"
    result = run("evaluate", "--problem", PROBLEM, "--policy", "dcmkl-ucb", "--policy",
                 "RankedExp3(gamma=0.05)", "--horizon", 200, "--runs", 3, "--out", out)  # fmt: skip
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("policy"))
    assert lines[at + 1].split()[0] == "dcmKL-UCB"
    assert lines[at + 2].split()[0] == "RankedExp3(gamma=0.05)"
    assert max(map(len, lines)) <= 80
    assert path_of(out, "runs").exists()
    assert (out / "regret.pdf").stat().st_size > 1000
    for options in ([], ["--log-x"], ["--per-query"]):
        figure = tmp_path / "figure.svg"
        assert run("plot", out, "--out", figure, *options).exit_code == 0
        assert "<svg" in figure.read_text()


def test_steps_of_the_curves_and_draws_of_the_parameters(tmp_path):
    logeval.generate(tmp_path / "log.tsv", sessions=300, queries=2, quiet=True)
    log = logeval.ingest(tmp_path / "log.tsv", tmp_path / "log", quiet=True)
    folder, out = tmp_path / "models", tmp_path / "runs"
    logeval.fit_models(log, "dcm", out=folder, quiet=True)
    result = run("evaluate", folder, "--policy", "Random", "--horizon", 50, "--runs", 2,
                 "--checkpoints", "10,50", "--draws", 3, "--out", out)  # fmt: skip
    assert result.exit_code == 0, result.output
    rows = Runs.load(out).rows
    assert sorted(set(rows["t"].to_pylist())) == [10, 50]
    assert sorted(set(rows["draw"].to_pylist())) == [1, 2, 3]
    wrong = run("evaluate", folder, "--policy", "Random", "--checkpoints", "x")
    assert "checkpoints=x: write a number, or steps like 10,100" in wrong.stderr


def test_both_tracks_stand_in_one_table_with_their_rewards(capsys):
    runs = evaluate(models("PBM", (5,), K=3), policies=["dcmKL-UCB", "UCB1"], horizon=60, runs=2,
                    quiet=True)  # fmt: skip
    print_relative(runs)
    found = {tuple(line.split()[:3]) for line in capsys.readouterr().out.splitlines()}
    assert found >= {("dcmKL-UCB", "ranking", "list"), ("dcmKL-UCB", "ranking", "top"),
                     ("UCB1", "rank1", "pair")}  # fmt: skip


def test_one_simulator_can_be_plotted_and_an_unknown_one_is_named(tmp_path):
    evaluate(models("PBM", (5, 6), K=3), policies="Random", horizon=20, runs=1, quiet=True,
             out=tmp_path / "runs")  # fmt: skip
    figure = tmp_path / "figure.svg"
    plot = ["plot", tmp_path / "runs", "--out", figure]
    assert run(*plot, "--per-query", "--simulator", "pbm").exit_code == 0
    assert "<svg" in figure.read_text()
    for wrong in (["--simulator", "UBM"], ["--track", "rank1"], ["--what", "attraction"]):
        assert "unknown" in run(*plot, *wrong).stderr


def test_unknown_policies_are_an_error():
    result = run("evaluate", "--problem", PROBLEM, "--policy", "dcm", "--policy", "Orcale")
    assert result.exit_code == 2
    assert "dcm" in result.stderr
    assert "Oracle" in result.stderr


def test_several_simulators_get_a_panel_each(tmp_path):
    out = tmp_path / "runs"
    other = PROBLEM.replace("L=8", "L=9")
    result = run("evaluate", "--problem", PROBLEM, "--problem", other, "--policy", "Random",
                 "--horizon", 50, "--runs", 2, "--out", out)  # fmt: skip
    assert result.exit_code == 0, result.output
    first, table, _ = result.stdout.split("\n\n", 2)
    assert table.count("Random") == 2
    assert first.startswith("Only Random was run on B_LB(L=8,")


def test_tracks_share_an_axis(tmp_path):
    out = tmp_path / "runs"
    problem = "rank1:K=4,L=3,p=0.25,gap=0.5"
    result = run("evaluate", "--problem", problem, "--policy", "Rank1ElimKL", "--policy", "TS",
                 "--horizon", 60, "--runs", 2, "--out", out)  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "one axis" not in result.stdout
    for kind in ("relative",):
        figure = tmp_path / f"{kind}.svg"
        assert run("plot", out, "--what", kind, "--out", figure, "--log-x").exit_code == 0
        assert "<svg" in figure.read_text()
