"""The page in a real browser: on screens of two widths, in the dark, on paper, and its script."""

import pytest

import logeval
from logeval.reports.page import Content, Page
from logeval.reports.sections import SECTIONS
from tests.decision.test_decision import answer
from tests.reports.browser import CHROMIUM, Browser
from tests.reports.tables import around, problem, rows, runs_of

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium to open the page with"
)
TALLEST = 5 * 900  # px: five screens
HELPERS = """
const text = nodes => [...nodes].map(node => node.textContent.trim());
const visible = nodes => [...nodes].filter(node => node.checkVisibility());
"""
SORTING = """(() => {
  const table = document.querySelector("#table-summary-1"), seen = {};
  const policies = () => text(table.querySelectorAll("tbody td:first-child"));
  const button = i => table.tHead.rows[0].cells[i].querySelector("button");
  seen.before = policies();
  button(1).click(); seen.up = policies();
  button(1).click(); seen.down = policies();
  seen.sort = table.tHead.rows[0].cells[1].getAttribute("aria-sort");
  button(3).click(); seen.p = text(table.querySelectorAll("tbody td:nth-child(4)"));
  button(0).click(); seen.names = policies();
  return seen;
})()"""
HOVER = """(name => {
  const seen = {}, chart = document.querySelector(`#figure-${name} svg[data-chart]`);
  const box = chart.getBoundingClientRect();
  const right = {clientX: box.right - 5, clientY: box.top + 60, bubbles: true};
  chart.dispatchEvent(new PointerEvent("pointermove", right));
  seen.tip = text(document.querySelectorAll(`#figure-${name} .tip div`));
  const tip = document.querySelector(`#figure-${name} .tip`).getBoundingClientRect();
  seen.inside = tip.left >= box.left - 1 && tip.right <= box.right + 1;
  chart.dispatchEvent(new PointerEvent("pointerleave"));
  seen.left = document.querySelectorAll(".tip").length;
  return seen;
})"""
# of every text on the page, by its class: its contrast with what is behind it (WCAG 2.1)
CONTRASTS = """(() => {
  const parts = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = colour => parts(colour).slice(0, 3).map(c => c / 255)
    .map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  const behind = node => {
    for (; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor;
      if ((parts(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const found = {};
  for (const node of visible(document.querySelectorAll("h1, p, li, td, th, summary, a, h2"))) {
    const both = [light(getComputedStyle(node).color), light(behind(node))].sort((a, b) => b - a);
    const name = node.tagName + " " + node.className;
    found[name] = Math.min(found[name] ?? 99, (both[0] + .05) / (both[1] + .05));
  }
  return found;
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def no_complaints(browser):
    yield
    assert browser.complaints == []


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A page of runs that were written by hand."""
    folder = tmp_path_factory.mktemp("browser") / "site"
    base = around(10.0, 3.0)
    table = {
        "A": base,
        "B": [9.0 * x for x in base],
        "dcmKL-UCB": [30.0 * x for x in base],
        "Oracle": [0.0] * len(base),
    }
    problems = [problem(f"{q}@0", ranker=0.6) for q in range(len(base))]
    made = Page(folder)
    for section in SECTIONS:
        section(made, Content([runs_of(rows(table), problems=problems)]))
    made.write("A page", "for a browser")
    return folder / "index.html"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A page with all sections, as users get it."""
    folder = tmp_path_factory.mktemp("whole")
    logeval.generate(folder / "log.tsv", sessions=6000, queries=30, quiet=True)
    log = logeval.ingest(folder / "log.tsv", folder / "log", quiet=True)
    logeval.fit_models(
        log, ["dcm", "pbm"], top_queries=8, holdout=0.2, draws=4, out=folder / "models", quiet=True
    )
    logeval.evaluate(
        folder / "models", policies=["dcmKL-UCB", "RankedKL-UCB"],
        horizon=500, draws=2, runs=1, out=folder / "runs", quiet=True,
    )  # fmt: skip
    logeval.decide(
        folder / "log", models=folder / "models", draws=4, out=folder / "decision", quiet=True
    )
    return logeval.report(
        [folder / "decision", folder / "runs"], folder / "site", title="A question", quiet=True
    )


def seen(browser, page, script, **look):
    browser.page(page, **look)
    return browser.see(f"{HELPERS}{script}")


def test_the_table_is_sorted(browser, small):
    found = seen(browser, small, SORTING)
    order = ["Oracle", "A", "B", "dcmKL-UCB"]
    assert found["before"] == found["up"] == order
    assert found["down"] == order[::-1]
    assert found["sort"] == "descending"
    assert found["p"][-1:] == [""]  # what is missing stays last
    assert found["names"] == ["A", "B", "dcmKL-UCB", "Oracle"]


@pytest.mark.parametrize("width", [1280, 390])
def test_values_under_the_pointer(browser, small, whole, width):
    found = seen(browser, small, f"{HOVER}('regret')", width=width)
    assert found["tip"] == ["100 searches", "dcmKL-UCB 300", "B 90", "A 10", "Oracle 0"]
    assert found["inside"]
    assert found["left"] == 0
    tip = seen(browser, whole, f"{HOVER}('earnings')", width=width)["tip"]
    assert tip[0] == "day 27"
    assert any(line.startswith("today's ranker ") for line in tip)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("decision", ["TEST", "KEEP", "WAIT"])
def test_green_only_where_it_says_test(browser, tmp_path, decision, scheme):
    made = Page(tmp_path / "site")
    for section in SECTIONS[:2]:
        section(made, Content(decision=answer(decision=decision)))
    made.write("A page", "")
    browser.page(tmp_path / "site" / "index.html", scheme=scheme)
    line = browser.see("getComputedStyle(document.querySelector('.answer')).borderLeftColor")
    red, green, blue = map(int, line.removeprefix("rgb(").removesuffix(")").split(","))
    assert (green > red and green > blue + 20) == (decision == "TEST")


@pytest.mark.parametrize("width", [1280, 390])
def test_the_whole_page_fits_its_screen(browser, whole, width):
    browser.page(whole, width=width)
    root = "document.documentElement"
    assert browser.see(f"{root}.scrollWidth <= {root}.clientWidth")
    assert browser.see(f"{root}.scrollHeight") < TALLEST
    wider = "[...document.querySelectorAll('.first :is(.panel, .scroll)')]"
    assert browser.see(f"{wider}.every(x => x.scrollWidth <= x.clientWidth)")
    assert not any(browser.see("[...document.querySelectorAll('details')].map(x => x.open)"))


def test_the_first_screen_has_answer_figure_and_numbers(browser, whole):
    browser.page(whole, width=1280, height=900)
    script = "[...document.querySelectorAll('.first :is(.answer, figure, table, aside)')]"
    bottoms = browser.see(f"{script}.map(x => x.getBoundingClientRect().bottom)")
    assert len(bottoms) == 4
    assert max(bottoms) <= 900
    heads = browser.see("[...document.querySelectorAll('.first th')].map(x => x.textContent)")
    assert {"vs today", "worse", "pays back", "worst query"} <= set(heads)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read(browser, whole, scheme):
    found = seen(browser, whole, CONTRASTS, scheme=scheme)
    assert len(found) > 8
    assert {name: ratio for name, ratio in found.items() if ratio < 4.5} == {}


def test_on_paper_the_answer_is_there(browser, whole):
    browser.page(whole, width=390)
    assert browser.pdf().startswith(b"%PDF")
    assert browser.see("document.querySelector('.answer').checkVisibility()")
