"""Figures leave matplotlib's global state alone, and are written whole or not at all."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure

from logeval.errors import LogevalError
from logeval.reports.figures.canvas import drawn, inline, new_panels, save_figure
from logeval.reports.figures.regret import lower_bounds
from logeval.tracks.keys import Panel
from tests.reports.tables import rows, runs_of

USER = """
import sys
import matplotlib
matplotlib.use("svg")
from matplotlib import pyplot
mine = pyplot.figure()
settings = dict(matplotlib.rcParams)
import logeval
from logeval.reports.figures.canvas import save_figure
from logeval.reports.figures.regret import regret_figure
from logeval.reports.figures.canvas import styled
runs = logeval.evaluate(
    problem="B_LB(L=4,K=2,p=0.2,gap=0.1)", policies=["Random"], horizon=5, runs=2, quiet=True
)
with styled("slides"):
    save_figure(regret_figure(runs), sys.argv[1] + "/a.pdf")
    save_figure(regret_figure(runs, per_query=True), sys.argv[1] + "/b.png")
runs.plot()
assert matplotlib.get_backend() == "svg"
assert pyplot.get_fignums() == [mine.number]
assert dict(matplotlib.rcParams) == settings
"""


def test_the_users_backend_figures_and_settings_stay_as_they_are(tmp_path):
    subprocess.run([sys.executable, "-c", USER, str(tmp_path)], check=True)
    assert {p.name for p in tmp_path.iterdir()} == {"a.pdf", "b.png"}


@pytest.mark.parametrize("kind", ["pdf", "png", "svg"])
def test_a_full_disk_leaves_no_half_figure(tmp_path, monkeypatch, kind):
    write = Path.write_bytes

    def full(self, data):
        write(self, bytes(data)[:10])
        raise OSError(28, "No space left on device")

    out = tmp_path / f"figure.{kind}"
    figure = new_panels(2)[0]
    save_figure(figure, out)
    before = out.read_bytes()
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        save_figure(figure, out)
    assert [p.name for p in tmp_path.iterdir()] == [out.name]
    assert out.read_bytes() == before


def test_the_same_figure_has_the_same_bytes(tmp_path):
    for kind in ("pdf", "png", "svg"):
        saved = []
        for i in (1, 2):
            figure, (ax,) = new_panels(1)
            ax.plot([1, 2], marker="o")  # an SVG names its clips and markers
            saved.append(save_figure(figure, tmp_path / f"{i}.{kind}").read_bytes())
        assert saved[0] == saved[1]


def test_a_figure_is_laid_out_and_drawn_once(tmp_path, monkeypatch):
    figure, (ax,) = new_panels(1)
    ax.set_title("a title that needs room\n" * 5)
    engine, (before,) = figure.get_layout_engine(), figure.axes
    unlaid, drawn, draw = before.get_position().y1, [], Figure.draw
    monkeypatch.setattr(Figure, "draw", lambda self, to: (drawn.append(self), draw(self, to)))
    with rc_context({"figure.autolayout": True}):
        for n, kind in enumerate(("pdf", "png", "svg"), 1):
            save_figure(figure, tmp_path / f"figure.{kind}")
            assert len(drawn) == n
            assert figure.get_layout_engine() is engine
    assert figure.axes[0].get_position().y1 < unlaid - 0.1


def test_an_unknown_kind_is_named(tmp_path):
    with pytest.raises(LogevalError, match=r"a.xyz: cannot write this kind of figure; use .pdf"):
        save_figure(new_panels(1)[0], tmp_path / "a.xyz")


def test_the_values_of_a_panel_are_those_of_its_curves():
    runs = runs_of(rows({"A": [4.0, 6.0]}))
    ax = runs.plot()
    ax.set_title("DCM <1>")
    (panel,) = inline(ax.figure, drawn(ax.figure, "svg").decode(), "x").panels
    assert 'aria-label="DCM &lt;1&gt;"' in panel
    data = json.loads(re.search(r'data-chart="([^"]+)"', panel)[1].replace("&quot;", '"'))
    assert data["t"] == [1, 50, 100]
    assert data["lines"][0][2] == pytest.approx([2.5, 4.5, 5.0])
    assert data["x"] == sorted(data["x"])


def test_every_axes_is_a_panel_with_what_it_refers_to():
    figure, axes = new_panels(3)
    for ax in axes:
        ax.plot([1, 2], marker="o", label="A")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center")
    found = inline(figure, drawn(figure, "svg").decode(), "name")
    assert len(found.panels) == 3
    assert "A</text>" in found.legend
    for panel in found.panels:
        clips = set(re.findall(r"url\(#([^)]+)\)", panel))
        assert clips
        assert clips <= set(re.findall(r'id="([^"]+)"', panel))


def test_the_lower_bound_is_that_of_the_paper():
    # Theorem 3 of dcm-bandits: gamma (L - K) gap (1 - p)^(K - 1) / KL(p - gap, p)
    p, q = 0.2, 0.05
    divergence = q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p))
    found = lower_bounds(Panel("B_LB(L=8,K=2,p=0.2,gap=0.15,gamma=0.5)", "ranking"))["lower bound"]
    assert found == pytest.approx(0.5 * 6 * 0.15 * 0.8 / divergence)
    for simulator, track in (
        ("DCM", "ranking"),
        ("B_LB(L=4,K=2,p=0,gap=0)", "ranking"),  # no gap, no bound
        ("rank1(K=6,L=4,p=0.25,gap=0.5)", "rank1"),
    ):
        assert lower_bounds(Panel(simulator, track)) == {}
