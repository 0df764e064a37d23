"""The page: self-contained, escaped, and with the numbers of the decision and of the runs table."""

import base64
import csv
import html
import json
import re
import shutil
from xml.etree import ElementTree

import pandas as pd
import pytest
from typer.testing import CliRunner

import logeval
from logeval.cli import app
from logeval.log.names import Names
from logeval.reports.page import Page
from logeval.running.words import cell, number
from logeval.storage import tables
from tests.undrawn import draw_nothing

PROBLEM = "B_LB(L=8,K=2,p=0.2,gap=0.15,gamma=0.5)"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    logeval.generate(folder / "log.tsv", sessions=3000, queries=20, quiet=True)
    log = logeval.ingest(folder / "log.tsv", folder / "log", quiet=True)
    logeval.fit_models(
        log, ["dcm", "pbm"], top_queries=3, holdout=0.2, draws=4, out=folder / "models", quiet=True
    )
    policies = ["dcmKL-UCB", "RankedExp3(gamma=0.05)", "Rank1ElimKL"]
    logeval.evaluate(
        folder / "models", policies=policies, horizon=200, runs=2, out=folder / "runs", quiet=True
    )
    logeval.decide(
        folder / "log", models=folder / "models", policies=["dcmKL-UCB", "TopRank"], draws=4,
        out=folder / "decision", quiet=True,
    )  # fmt: skip
    title = "<script>alert(1)</script> & co"
    logeval.report([folder / "decision", folder / "runs"], folder / "site", title=title, quiet=True)
    return folder


def page_of(site):
    return (site / "site" / "index.html").read_text()


def links(text):
    """What can be saved from the page, by file name."""
    found = re.findall(r'download="([^"]+)" href="data:[^;]+;base64,([^"]+)"', text)
    return {name: base64.b64decode(data) for name, data in found}


def test_one_file_is_complete_and_the_same_files_are_beside_it(site):
    saved = links(page_of(site))
    beside = {f.name: f.read_bytes() for f in (site / "site").glob("*/*")}
    assert saved == beside
    figures = re.findall(r'id="figure-([^"]+)"', page_of(site))
    assert {"earnings", "regret", "queries", "log", "v-DCM"} <= set(figures)
    assert 'id="table-checks"' in page_of(site)
    assert len(figures) == len(set(figures))
    assert all(f"{name}.svg" in saved for name in figures)
    for name, data in saved.items():
        if name.endswith(".svg"):
            ElementTree.fromstring(data)


def test_nothing_is_loaded_from_elsewhere(site):
    for source in re.findall(r'(?:src|href)="([^"]+)"', page_of(site)):
        assert source.startswith(("data:", "#")), source
    assert not re.search(r"@import|url\((?!#)", page_of(site))


def test_the_first_screen_is_the_decision_without_names_of_options_or_files(site):
    found = logeval.Decision.read(site / "decision")
    first = page_of(site).partition('<section class="first">')[2].partition("</section>")[0]
    first = html.unescape(re.sub(r"<svg.*?</svg>|<a .*?</a>", "", first, flags=re.S))
    assert f"<h1>{found.decision}" in first
    for one in found.choices:
        assert f">{one.policy}</td>" in first
    assert not re.search(r"--\w|\w+\(|\w/\w+/|\.parquet", first)


def test_runs_alone_make_a_page_of_regret(site, tmp_path, monkeypatch):
    draw_nothing(monkeypatch)
    text = logeval.report(site / "runs", tmp_path / "x", quiet=True).read_text()
    first = text.partition('<section class="first">')[2].partition("</section>")[0]
    assert 'id="table-summary-1"' in first
    assert "<h1>" not in first
    two = [site / "decision", shutil.copytree(site / "decision", tmp_path / "again")]
    with pytest.raises(logeval.LogevalError, match="a page is about one decision"):
        logeval.report(two, tmp_path / "y", quiet=True)


def test_what_is_written_for_a_folder_has_its_page(site, tmp_path, monkeypatch):
    draw_nothing(monkeypatch)
    asked = ["decide", site / "log", "--models", site / "models", "--policy", "TopRank"]
    asked += ["--draws", "4", "--out", tmp_path / "d", "-q"]
    done = CliRunner().invoke(app, [str(text) for text in asked], catch_exceptions=False)
    assert f"{tmp_path / 'd' / 'page' / 'index.html'}" in done.stdout
    assert (tmp_path / "d" / "page" / "index.html").exists()
    as_json = CliRunner().invoke(app, [*map(str, asked), "--json"]).stdout
    assert json.loads(as_json)["decision"] in ("TEST", "KEEP", "WAIT")


def test_no_table_has_more_than_seven_columns(site):
    for head in re.findall(r"<thead>(.*?)</thead>", page_of(site), re.DOTALL):
        assert head.count("<th ") <= 7


def test_ids_are_unique_and_every_reference_has_one(site):
    text = re.sub(r'href="data:[^"]*"', "", page_of(site))
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    used = re.findall(r'(?:url\(#|href="#)([^")]+)', text)
    assert set(used) <= set(ids)


def test_the_page_is_short(site):
    text = re.sub(r"<(svg|script|style).*?</\1>|<[^>]*>", " ", page_of(site), flags=re.S)
    assert len(html.unescape(text).split()) < 3_000


def test_queries_are_in_numeric_order_with_their_region_where_it_matters():
    assert Names().titles(["10@0", "9@0", "100@3"]) == {
        "9@0": "9",
        "10@0": "10",
        "100@3": "100",
    }
    assert Names().titles(["9@2", "9@1", "8@1"]) == {"8@1": "8", "9@1": "9@1", "9@2": "9@2"}
    assert Names().titles(["7", "2@0+1@0", "synthetic"]) == {
        "synthetic": "synthetic",
        "2@0+1@0": "2+1",
        "7": "7",
    }


def test_the_footer_has_date_version_and_command(site):
    footer = page_of(site).partition("<footer>")[2].partition("</footer>")[0]
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC, logeval \d", footer)
    both = f"{site / 'decision'} {site / 'runs'}"
    assert f"logeval report {both} --out {site / 'site'}" in html.unescape(footer)


def test_models_that_changed_since_the_runs_are_refused(site, tmp_path):
    other = tmp_path / "models"
    logeval.fit_models(
        site / "log", ["dcm"], top_queries=3, min_impressions=5, out=other, quiet=True
    )
    with pytest.raises(logeval.LogevalError, match=r"is not the models folder that .* made with"):
        logeval.report(site / "runs", tmp_path / "x", models=other, quiet=True)
    assert not (tmp_path / "x").exists()


def test_models_that_are_gone_are_said_to_be(site, tmp_path, monkeypatch):
    draw_nothing(monkeypatch)
    runs = shutil.copytree(site / "runs", tmp_path / "runs")
    manifest = tables.read_manifest(runs) | {"models_folder": str(tmp_path / "nowhere")}
    tables.write_records(runs, manifest)
    text = logeval.report([runs, site / "runs"], tmp_path / "x", quiet=True).read_text()
    assert f"the models of {runs} are no longer in {tmp_path / 'nowhere'}" in text
    assert "<h2>The click models</h2>" in text  # of the other


def test_text_from_data_is_escaped(site):
    assert "<script>alert" not in page_of(site)
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; co" in page_of(site)


def test_the_tables_hold_the_numbers_of_the_runs(site):
    summary = logeval.Runs.load(site / "runs").summary()
    first = summary[(summary["simulator"] == "DCM") & (summary["track"] == "ranking")]
    with open(site / "site" / "tables" / "summary-1.csv") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["regret"]) for row in rows] == pytest.approx(list(first["regret"]))
    text = page_of(site)
    table = text[text.index('id="table-summary-1"') :].split("</table>")[0]
    for row in first.itertuples():
        assert f">{number(row.regret)} " in table
        assert html.escape(row.policy) in table


def test_what_was_dropped_and_not_identified_is_said(site):
    assert "orphan clicks" in page_of(site)
    assert "whether a click at the last position ended" in page_of(site)


def test_runs_of_a_synthetic_problem_alone_make_a_page(tmp_path, monkeypatch):
    draw_nothing(monkeypatch)
    logeval.evaluate(
        problem=PROBLEM, policies=["Random"], horizon=50, runs=1, out=tmp_path / "r", quiet=True
    )
    page = logeval.report([tmp_path / "r", tmp_path / "r"], tmp_path / "site", quiet=True)
    assert "Random" in page.read_text()
    with pytest.raises(logeval.LogevalError, match="style='poster': must be"):
        logeval.report(tmp_path / "r", tmp_path / "x", style="poster", quiet=True)


def test_missing_values_are_empty_and_numbers_rounded():
    values = [None, float("nan"), True, 1234567, 1234.5, 0.123456, ["a", 1]]
    assert [cell(v) for v in values] == ["", "", "yes", "1,234,567", "1,234", "0.1235", "a, 1"]


def test_the_csv_has_all_digits(tmp_path):
    page = Page(tmp_path)
    with page.section("x"):
        page.table("t", pd.DataFrame({"a": [1 / 3]}), "", a=".2f")
    assert (tmp_path / "tables" / "t.csv").read_text() == f"a\n{1 / 3!r}\n"
