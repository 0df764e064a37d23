"""The page in a real browser: on screens of two widths, in the dark, on paper, and its script."""

import pytest

import logeval
from logeval.reports.page import Content, Page
from logeval.reports.sections.regret import curves, final_tables, query_by_query
from logeval.reports.sections.verdict import the_verdict
from logeval.reports.verdict import Verdict
from tests.reports.browser import CHROMIUM, Browser
from tests.reports.tables import around, problem, rows, runs_of

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium to open the page with"
)
TALLEST = 8_000  # px on a phone
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
  button(5).click(); seen.p = text(table.querySelectorAll("tbody td:nth-child(6)"));
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
PICKER = """(() => {
  const select = document.querySelector(".picker select"), seen = {panels: []};
  const count = () =>
    seen.panels.push(visible(document.querySelectorAll("#figure-queries-1 .panel")).length);
  const choose = query => { select.value = query; select.dispatchEvent(new Event("change")); };
  seen.options = text(select.options);
  count();
  choose("10"); count();
  seen.chosen = text(visible(document.querySelectorAll("#table-queries td:first-child")));
  choose(""); count();
  return seen;
})()"""
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
  for (const node of visible(document.querySelectorAll("p, li, td, th, summary, a, h2"))) {
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
    content = Content([runs_of(rows(table), problems=problems)])
    made = Page(folder)
    for section in (the_verdict, curves, final_tables, query_by_query):
        section(made, content)
    made.write("A page", "for a browser")
    return folder / "index.html"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A page with all sections, as users get it."""
    folder = tmp_path_factory.mktemp("whole")
    logeval.generate(folder / "log.tsv", sessions=6000, queries=30, quiet=True)
    log = logeval.ingest(folder / "log.tsv", folder / "log", quiet=True)
    logeval.fit_models(
        log, ["dcm", "pbm"], top_queries=8, holdout=0.2, out=folder / "models", quiet=True
    )
    logeval.evaluate(
        folder / "models", policies=["dcmKL-UCB", "RankedKL-UCB", "RankedExp3", "Rank1ElimKL"],
        horizon=500, draws=2, runs=1, out=folder / "runs", quiet=True,
    )  # fmt: skip
    return logeval.report(folder / "runs", folder / "site", quiet=True)


def seen(browser, page, script, **look):
    browser.page(page, **look)
    return browser.see(f"{HELPERS}{script}")


def test_the_table_is_sorted(browser, small):
    found = seen(browser, small, SORTING)
    order = ["Oracle", "A", "B", "dcmKL-UCB"]
    assert found["before"] == found["up"] == order
    assert found["down"] == order[::-1]
    assert found["sort"] == "descending"
    assert found["p"][-2:] == ["", ""]  # what is missing stays last
    assert found["names"] == ["A", "B", "dcmKL-UCB", "Oracle"]


@pytest.mark.parametrize("width", [1280, 390])
def test_values_under_the_pointer(browser, small, width):
    found = seen(browser, small, f"{HOVER}('regret')", width=width)
    assert found["tip"] == ["100 searches", "dcmKL-UCB 300", "B 90", "A 10", "Oracle 0"]
    assert found["inside"]
    assert found["left"] == 0
    levels = seen(browser, small, f"{HOVER}('reward')", width=width)["tip"]
    assert "the best list 1" in levels
    assert "today's ranker 0.6" in levels
    assert levels.index("the best list 1") < levels.index("today's ranker 0.6")


def test_one_query_can_be_chosen(browser, small):
    found = seen(browser, small, PICKER)
    assert found["options"] == ["all", *map(str, range(12))]
    assert found["panels"] == [4, 1, 4]  # the others are folded
    assert set(found["chosen"]) == {"10"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("sound", [True, False])
def test_green_only_where_it_is_sound(browser, tmp_path, sound, scheme):
    made = Page(tmp_path / "site")
    made.section("Verdict")
    made.verdict(Verdict("A is best.", ["Believe it."], ["But."], ["Because."], sound=sound))
    made.write("A page", "")
    script = (
        "[...document.querySelectorAll('.verdict')].map(x => getComputedStyle(x).borderLeftColor)"
    )
    browser.page(tmp_path / "site" / "index.html", scheme=scheme)
    answer, beside, below = browser.see(script)
    assert answer == beside == below
    red, green, blue = map(int, answer.removeprefix("rgb(").removesuffix(")").split(","))
    assert (green > red) == sound
    assert (blue < 60) != sound  # amber has hardly any


@pytest.mark.parametrize("width", [1280, 390])
def test_the_whole_page_fits_its_screen(browser, whole, width):
    browser.page(whole, width=width)
    root = "document.documentElement"
    assert browser.see(f"{root}.scrollWidth <= {root}.clientWidth")
    if width == 390:
        assert browser.see(f"{root}.scrollHeight") < TALLEST
    folds = browser.see("[...document.querySelectorAll('section > .background')].map(x => x.open)")
    assert len(folds) >= 5
    assert set(folds[:-1]) == {width == 1280}
    assert not folds[-1]  # the glossary, on every screen


def test_the_first_screen_has_answer_figure_and_numbers(browser, whole):
    browser.page(whole, width=1280, height=900)
    script = "[...document.querySelectorAll('.first .answer, .first figure, .first table')]"
    bottoms = browser.see(f"{script}.map(x => x.getBoundingClientRect().bottom)")
    assert len(bottoms) == 4  # two simulators have a table each
    assert max(bottoms) <= 900
    heads = browser.see("[...document.querySelectorAll('.first th')].map(x => x.textContent)")
    assert {"reward at the end", "break-even, searches", "cost until then"} <= set(heads)


def test_a_link_of_the_contents_opens_what_it_leads_to(browser, whole):
    browser.page(whole, width=390)
    link = "[...document.querySelectorAll('nav a')].at(-1)"
    assert not browser.see(f"document.querySelector({link}.hash + ' > details').open")
    browser.see(f"{link}.click()")
    assert browser.see(f"document.querySelector({link}.hash + ' > details').open")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read(browser, whole, scheme):
    found = seen(browser, whole, CONTRASTS, scheme=scheme)
    assert len(found) > 8
    assert {name: ratio for name, ratio in found.items() if ratio < 4.5} == {}


def test_on_paper_all_of_the_verdict_is_there(browser, whole):
    browser.page(whole, width=390)
    assert browser.pdf().startswith(b"%PDF")
    closed = "document.querySelectorAll('.background:not([open]), .verdict details:not([open])')"
    assert browser.see(f"{closed}.length") == 0
    # the details come after what they are the details of
    above = "document.querySelector('.evidence').getBoundingClientRect().top"
    assert browser.see(
        f"{above} < [...document.querySelectorAll('.first details')].at(-1)"
        ".getBoundingClientRect().top"
    )
