"""The script of the page, in a real browser: sorting, values under the pointer, the picker.

A copy of the page gets a script that does what a reader does and writes what it sees into the
document; Chromium then prints the document.
"""

import json
import re
import shutil
import subprocess

import pytest

from logeval.reports.content import Content
from logeval.reports.page import Page
from logeval.reports.sections.queries import query_by_query
from logeval.reports.sections.regret import curves, final_tables, the_verdict
from tests.reports.tables import around, rows, runs_of

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium to open the page with"
)

READER = """
<script>
const seen = {};
const text = nodes => [...nodes].map(node => node.textContent.trim());
const visible = nodes => [...nodes].filter(node => node.getClientRects().length);
try {
  const table = document.querySelector("#table-summary-1");
  const policies = () => text(table.querySelectorAll("tbody td:first-child"));
  const button = i => table.tHead.rows[0].cells[i].querySelector("button");
  seen.before = policies();
  button(1).click(); seen.up = policies();
  button(1).click(); seen.down = policies();
  seen.sort = table.tHead.rows[0].cells[1].getAttribute("aria-sort");
  button(5).click(); seen.p = text(table.querySelectorAll("tbody td:nth-child(6)"));
  button(0).click(); seen.names = policies();

  const chart = document.querySelector("#figure-regret svg[data-chart]");
  const box = chart.getBoundingClientRect();
  const right = {clientX: box.right - 5, clientY: box.top + 60, bubbles: true};
  chart.dispatchEvent(new PointerEvent("pointermove", right));
  seen.tip = text(document.querySelectorAll("#figure-regret .tip div"));
  const tip = document.querySelector("#figure-regret .tip").getBoundingClientRect();
  seen.inside = tip.left >= box.left - 1 && tip.right <= box.right + 1;
  chart.dispatchEvent(new PointerEvent("pointerleave"));
  seen.left = document.querySelectorAll(".tip").length;

  const select = document.querySelector(".picker select");
  const panels = () => visible(document.querySelectorAll("#figure-queries-1 .panel")).length;
  const cells = () => visible(document.querySelectorAll("#table-queries td:first-child"));
  seen.options = text(select.options);
  seen.panels = [panels()];
  select.value = "query 10";
  select.dispatchEvent(new Event("change"));
  seen.panels.push(panels());
  seen.chosen = [...new Set(text(cells()))];
  select.value = "";
  select.dispatchEvent(new Event("change"));
  seen.panels.push(panels());
  seen.wide = document.documentElement.scrollWidth <= window.innerWidth;
} catch (error) { seen.error = String(error); }
const found = document.createElement("pre");
found.id = "seen";
found.textContent = JSON.stringify(seen);
document.body.append(found);
</script>
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser") / "site"
    base = around(10.0, 3.0)
    table = {
        "A": base,
        "B": [9.0 * x for x in base],
        "dcmKL-UCB": [30.0 * x for x in base],
        "Oracle": [0.0] * len(base),
    }
    content = Content([runs_of(rows(table))])
    made = Page(folder)
    for section in (the_verdict, curves, final_tables, query_by_query):
        section(made, content)
    made.write("A page", "for a browser")
    return folder / "index.html"


def opened(page, folder, width, script=READER):
    """What the reader's script saw in a window of this width; the browser must not complain."""
    copy = page.with_name(f"read-{width}.html")
    copy.write_text(page.read_text().replace("</body>", script + "</body>"))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
    flags += ["--disable-background-networking", "--disable-component-update", "--disable-quic"]
    done = subprocess.run(
        [CHROMIUM, *flags, f"--user-data-dir={folder / 'profile'}", "--enable-logging=stderr",
         f"--window-size={width},900", "--virtual-time-budget=5000", "--dump-dom", copy.as_uri()],
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert not re.findall(r":CONSOLE.*", done.stderr)
    text = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.DOTALL)
    assert text, "the script of the reader did not run"
    return json.loads(text[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


def test_sorting_hover_and_picker(page, tmp_path):
    seen = opened(page, tmp_path, 1280)
    assert "error" not in seen, seen["error"]
    order = ["Oracle", "A", "B", "dcmKL-UCB"]
    assert seen["before"] == seen["up"] == order
    assert seen["down"] == order[::-1]
    assert seen["sort"] == "descending"
    assert seen["p"][-2:] == ["", ""]  # what is missing stays last
    assert seen["names"] == ["A", "B", "dcmKL-UCB", "Oracle"]
    assert seen["tip"] == ["step 100", "dcmKL-UCB 300", "B 90", "A 10", "Oracle 0"]
    assert seen["inside"]
    assert seen["left"] == 0
    assert seen["options"] == ["all queries", *(f"query {q}" for q in range(12))]
    assert seen["panels"] == [12, 1, 12]
    assert seen["chosen"] == ["query 10"]
    assert seen["wide"]
