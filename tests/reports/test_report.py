"""The page: self-contained, escaped, and with the numbers of the runs table."""

import base64
import csv
import html
import math
import re
import shutil
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

import logeval
from logeval.evaluation import results
from logeval.log.names import Names
from logeval.reports.figures.regret import lower_bounds
from logeval.reports.glossary import GLOSSARY, PAGES, anchor
from logeval.reports.page import Content, Page
from logeval.reports.sections.regret import curves, ends_first, final_tables, query_by_query
from logeval.reports.sections.simulators import the_simulators
from logeval.reports.sections.verdict import the_verdict
from logeval.reports.verdict import verdict
from logeval.running.words import cell, number
from logeval.storage import tables
from logeval.tracks.keys import Panel
from tests.reports.tables import around, problem, rows, runs_of
from tests.undrawn import draw_nothing

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
    assert {"differences", "regret", "queries-1", "log", "termination-DCM"} <= set(figures)
    assert len(figures) == len(set(figures))
    assert all(f"{name}.svg" in saved for name in figures)
    for name, data in saved.items():
        if name.endswith(".svg"):
            ElementTree.fromstring(data)


def test_nothing_is_loaded_from_elsewhere(site):
    for source in re.findall(r'(?:src|href)="([^"]+)"', page_of(site)):
        assert source.startswith(("data:", "#")), source
    assert not re.search(r"@import|url\((?!#)", page_of(site))


def test_the_order_of_the_sections(site):
    titles = re.findall(r"<h2>([^<]+)</h2>", page_of(site))
    assert titles == [
        "Verdict",
        "The simulators",
        "Regret over time",
        "Final regret",
        "Query by query",
        "Lists and pairs on one axis",
        "Sensitivity to the click model",
        "Where the uncertainty comes from",
        "The click models",
        "The log",
        "What was run",
        "Glossary",
    ]


def test_the_page_explains_its_words_offline_folded_at_its_end(site):
    folded = '<details class="background"><summary><h2>Glossary</h2>'
    end = html.unescape(page_of(site).rpartition(folded)[2])
    for word in ("regret", "reward", "examination", "attraction", "termination", "support",
                 "effective SERPs", "cannot be told apart", "break-even", "draw",
                 "class of users"):  # fmt: skip
        assert f'<dt id="{anchor(word)}">{word}</dt><dd>{GLOSSARY[word]}</dd>' in end


def test_every_section_links_to_the_words_and_names_the_page_that_explain_it(site):
    text = html.unescape(page_of(site))
    sections = re.findall(r'<section id="s\d+".*?</section>', text, re.DOTALL)
    *explained, glossary = sections
    for section in explained:
        about = re.search(r'<p class="about">(.*?)</p>', section)
        assert about, section[:200]
        links = re.findall(r'href="#([^"]+)">([^<]+)<', about[1])
        assert links
        assert all(f'<dt id="{place}">{word}</dt>' in glossary for place, word in links)
        ((name, title),) = re.findall(r"docs/([\w-]+)\.md \((.+)\)", about[1])
        assert PAGES[name] == title


def test_the_pages_that_reports_name_have_these_headings():
    docs = Path(__file__).parents[2] / "docs"
    assert PAGES == {
        name: (docs / f"{name}.md").read_text().splitlines()[0].removeprefix("# ") for name in PAGES
    }


def test_no_table_has_more_than_seven_columns(site):
    for head in re.findall(r"<thead>(.*?)</thead>", page_of(site), re.DOTALL):
        assert head.count("<th ") <= 7


def test_the_page_begins_with_the_verdict(site):
    found = verdict(logeval.Runs.load(site / "runs"))
    text = html.unescape(page_of(site))
    assert found.answer in text
    assert all(line in text for line in (*found.trust, *found.limits, *found.details))


def test_ids_are_unique_and_every_reference_has_one(site):
    text = re.sub(r'href="data:[^"]*"', "", page_of(site))
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    used = re.findall(r'(?:url\(#|href="#)([^")]+)', text)
    assert set(used) <= set(ids)


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


def test_a_query_has_one_name_on_the_page(site):
    text = html.unescape(page_of(site))
    for name, data in links(page_of(site)).items():
        frame = data.decode() if name.endswith(".csv") else ""
        if frame.startswith("query,") or ",query," in frame.partition("\n")[0]:
            queries = {row["query"] for row in csv.DictReader(frame.splitlines())}
            assert all(query.isdigit() for query in queries if query), name
    ids = {q.partition("@")[0] for q in logeval.Runs.load(site / "runs").table()["query"]}
    assert set(re.findall(r'data-query="([^"]+)"', text)) == ids
    titles = set(re.findall(r'aria-label="query (\S+): \d+% lost"', text))
    assert titles == ids
    assert not re.search(
        r"\b\d+@\d", re.sub(r"<pre>.*?</pre>|\"data:[^\"]*\"", "", text, flags=re.S)
    )


def test_of_many_simulators_three_are_shown_and_the_others_folded(tmp_path, monkeypatch):
    draw_nothing(monkeypatch)
    table = {"A": around(10.0, 3.0), "B": around(15.0, 3.0, seed=1)}
    names = ["DCM", "PBM", "UBM", "DBN", "CCM"]
    problems = [problem(f"{q}@0", name) for name in names for q in range(12)]
    runs = runs_of(*(rows(table, simulator=name) for name in names), problems=problems)
    page = Page(tmp_path / "site")
    for section in (the_verdict, the_simulators, curves, final_tables, query_by_query):
        section(page, Content([runs]))
    blocks = {s.title: s.blocks for s in page.sections}

    def shown(title, kind):
        return [block for block in blocks[title] if block["kind"] == kind]

    (reward,) = shown("Verdict", "figure")
    assert len(reward["panels"]) == len(shown("Verdict", "table")) == 2
    assert [fold["caption"] for fold in shown("The simulators", "fold")] == [
        "Reward over time on the others (3)"
    ]
    # of the curves, which flatten, there are panels with a logarithmic axis as well
    for title, folded in (("Regret over time", 7), ("Final regret", 2)):
        (figure,) = shown(title, "figure")
        assert (len(figure["panels"]), len(figure["more"])) == (3, folded)
    (fold,) = shown("Final regret", "fold")
    assert fold["caption"] == "2 more"
    assert len([b for b in fold["blocks"] if b["kind"] == "table"]) == 2
    figures = shown("Query by query", "figure")
    assert [(len(f["panels"]), len(f["more"])) for f in figures] == [(4, 8)] * 2


def test_the_worst_and_the_best_queries_come_first():
    assert ends_first(list("abcdefgh")) == list("abghcdef")
    assert ends_first(list("abcdef")) == list("abcdef")


def test_a_bound_that_says_nothing_is_said_in_words(site):
    text = page_of(site)
    assert "more than the 200 searches could cost: it says nothing here" in html.unescape(text)
    table = text[text.index('id="table-hardness"') :].split("</table>")[0]
    assert ">bound<" not in table


def test_the_footer_has_date_version_and_command(site):
    footer = page_of(site).partition("<footer>")[2].partition("</footer>")[0]
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC, logeval \d", footer)
    assert f"logeval report {site / 'runs'} --out {site / 'site'}" in html.unescape(footer)


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
    text = (site / "site" / "index.html").read_text()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; co" in text


def test_the_tables_hold_the_numbers_of_the_runs(site):
    summary = logeval.Runs.load(site / "runs").summary()
    first = summary[(summary["simulator"] == "DCM") & (summary["track"] == "ranking")]
    with open(site / "site" / "tables" / "summary-1.csv") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["regret"]) for row in rows] == pytest.approx(list(first["regret"]))
    text = page_of(site)
    table = text[text.index('id="table-summary-1"') :].split("</table>")[0]
    for row in first.itertuples():
        assert f">{number(row.regret)}</td>" in table
        assert html.escape(row.policy) in table


def test_what_was_dropped_and_not_identified_is_said(site):
    text = (site / "site" / "index.html").read_text()
    assert "orphan clicks" in text
    assert "whether a click at the last position ended" in text


def test_runs_of_a_synthetic_problem_alone_make_a_page(tmp_path):
    logeval.evaluate(
        problem=PROBLEM, policies=["Random"], horizon=50, runs=1, out=tmp_path / "r", quiet=True
    )
    page = logeval.report([tmp_path / "r", tmp_path / "r"], tmp_path / "site", quiet=True)
    assert "Random" in page.read_text()
    with pytest.raises(logeval.LogevalError, match="style='poster': must be"):
        logeval.report(tmp_path / "r", tmp_path / "x", style="poster", quiet=True)


def test_the_lower_bound_is_that_of_the_paper():
    # Theorem 3 of dcm-bandits: gamma (L - K) gap (1 - p)^(K - 1) / KL(p - gap, p)
    p, q = 0.2, 0.05
    divergence = q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p))
    found = lower_bounds(Panel(PROBLEM, "ranking"))["lower bound"]
    assert found == pytest.approx(0.5 * 6 * 0.15 * 0.8 / divergence)
    for simulator, track in (
        ("DCM", "ranking"),
        ("B_LB(L=4,K=2,p=0,gap=0)", "ranking"),  # no gap, no bound
        ("rank1(K=6,L=4,p=0.25,gap=0.5)", "rank1"),
    ):
        assert lower_bounds(Panel(simulator, track)) == {}


def test_missing_values_are_empty_and_numbers_rounded():
    values = [None, float("nan"), True, 1234567, 1234.5, 0.123456, ["a", 1]]
    assert [cell(v) for v in values] == ["", "", "yes", "1,234,567", "1,234", "0.1235", "a, 1"]


def test_the_csv_has_all_digits(tmp_path):
    page = Page(tmp_path)
    page.section("x")
    page.table("t", pd.DataFrame({"a": [1 / 3]}), "", a=".2f")
    assert (tmp_path / "tables" / "t.csv").read_text() == f"a\n{1 / 3!r}\n"


def test_expensive_tables_are_computed_once(site, tmp_path, monkeypatch):
    draw_nothing(monkeypatch)
    calls, names = Counter(), ("summary", "pairs", "cautions")

    def counted(name, compute):
        def count(rows):
            calls[name, rows["simulator"].iloc[0], rows["track"].iloc[0]] += 1
            return compute(rows)

        return count

    for name in names:
        monkeypatch.setattr(results, name, counted(name, getattr(results, name)))
    logeval.report(site / "runs", tmp_path / "x", quiet=True)
    panels = logeval.Runs.load(site / "runs").panels()
    assert calls == Counter((name, *panel) for name in names for panel in panels)


def test_curves_of_queries_are_those_with_intervals(site):
    runs = logeval.Runs.load(site / "runs")
    for panel in runs.panels():
        for query, curves_ in runs.query_curves(panel).items():
            known = runs.curves(panel.simulator, query, panel.track)
            assert curves_.keys() == known.keys()
            for policy, curve in curves_.items():
                pd.testing.assert_frame_equal(curve, known[policy][["t", "regret"]])


def test_a_table_of_runs_can_be_changed_without_changing_the_next(site):
    runs = logeval.Runs.load(site / "runs")
    changed = runs.summary()
    changed["regret"] = 0.0
    assert (runs.summary()["regret"] > 0.0).any()
    with pytest.raises(logeval.LogevalError, match="is a step, a whole number"):
        runs.summary(True)
