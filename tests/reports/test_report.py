"""The page: self-contained, escaped, and with the numbers of the runs table."""

import csv
import html
import math
import re
import shutil
import subprocess

import pandas as pd
import pytest

import logeval
from logeval.reports.page import Page, cell
from logeval.reports.sections import lower_bounds

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PROBLEM = "B_LB(L=8,K=2,p=0.2,gap=0.15,gamma=0.5)"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    logeval.generate(folder / "log.tsv", sessions=3000, queries=20, quiet=True)
    log = logeval.ingest(folder / "log.tsv", folder / "log", quiet=True)
    logeval.fit_models(
        log, ["dcm", "pbm"], top_queries=3, holdout=0.2, out=folder / "models", quiet=True
    )
    policies = ["dcmKL-UCB", "RankedExp3(gamma=0.05)", "Rank1ElimKL"]
    logeval.evaluate(
        folder / "models", policies=policies, horizon=200, runs=2, out=folder / "runs", quiet=True
    )
    title = "<script>alert(1)</script> & co"
    logeval.report(folder / "runs", folder / "site", title=title, quiet=True)
    return folder


def test_every_figure_and_table_is_beside_the_page(site):
    text = (site / "site" / "index.html").read_text()
    for link in re.findall(r'href="((?:figures|tables)/[^"]+)"', text):
        assert (site / "site" / link).stat().st_size > 0
    figures = re.findall(r'id="figure-([^"]+)"', text)
    assert {"log", "regret-1", "relative-1", "queries-1", "termination-DCM"} <= set(figures)
    assert len(figures) == len(set(figures))


def test_nothing_is_loaded_from_elsewhere(site):
    text = (site / "site" / "index.html").read_text()
    for source in re.findall(r'(?:src|href)="([^"]+)"', text):
        assert source.startswith(("data:", "#", "figures/", "tables/")), source


def test_text_from_data_is_escaped(site):
    text = (site / "site" / "index.html").read_text()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; co" in text


def test_the_tables_hold_the_numbers_of_the_runs(site):
    summary = logeval.Runs.load(site / "runs").summary()
    with open(site / "site" / "tables" / "summary.csv") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["regret"]) for row in rows] == pytest.approx(list(summary["regret"]))
    text = (site / "site" / "index.html").read_text()
    table = text[text.index('id="table-summary"') :].split("</table>")[0]
    for row in summary.itertuples():
        assert f"{row.regret:,.1f}" in table
        assert html.escape(row.policy) in table


def test_what_was_dropped_and_not_identified_is_said(site):
    text = (site / "site" / "index.html").read_text()
    assert "orphan clicks" in text
    assert "v_K is not identified" in text


def test_runs_of_a_synthetic_problem_alone_make_a_page(tmp_path):
    logeval.evaluate(
        problem=PROBLEM, policies=["Random"], horizon=50, runs=1, out=tmp_path / "r", quiet=True
    )
    page = logeval.report([tmp_path / "r", tmp_path / "r"], tmp_path / "site", quiet=True)
    assert "Random" in page.read_text()
    with pytest.raises(logeval.LogevalError, match="unknown style"):
        logeval.report(tmp_path / "r", tmp_path / "x", style="poster", quiet=True)


def test_the_lower_bound_is_that_of_the_paper():
    # Theorem 3 of dcm-bandits: gamma (L - K) gap (1 - p)^(K - 1) / KL(p - gap, p)
    p, q = 0.2, 0.05
    divergence = q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p))
    found = lower_bounds(PROBLEM)["lower bound"]
    assert found == pytest.approx(0.5 * 6 * 0.15 * 0.8 / divergence)
    assert lower_bounds("DCM") == lower_bounds("B_LB(L=4,K=2,p=0,gap=0)") == {}


def test_missing_values_are_empty_and_numbers_rounded():
    values = [None, float("nan"), True, 1234567, 1234.5, 0.123456, ["a", 1]]
    assert [cell(v) for v in values] == ["", "", "yes", "1,234,567", "1,234", "0.1235", "a, 1"]


def test_the_csv_has_all_digits(tmp_path):
    page = Page(tmp_path)
    page.section("x")
    page.table("t", pd.DataFrame({"a": [1 / 3]}), "", a=".2f")
    assert (tmp_path / "tables" / "t.csv").read_text() == f"a\n{1 / 3!r}\n"


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open the page with")
def test_the_page_opens_in_a_browser_without_errors(site, tmp_path):
    page = (site / "site" / "index.html").as_uri()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
    flags += ["--disable-background-networking", "--disable-component-update", "--disable-quic"]
    done = subprocess.run(
        [CHROMIUM, *flags, f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr",
         "--virtual-time-budget=5000", "--dump-dom", page],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0
    assert not re.findall(r":CONSOLE.*", done.stderr)
    regret = logeval.Runs.load(site / "runs").summary()["regret"].iloc[0]
    assert f"{regret:,.1f}" in done.stdout
