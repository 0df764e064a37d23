"""Reports without their figures: drawing takes seconds, and most tests look at something else."""

from logeval.reports import page
from logeval.reports.figures.canvas import Inline


def draw_nothing(monkeypatch):
    def one_for_each(figure, svg, prefix):
        return Inline("", ["<svg></svg>" for ax in figure.axes if ax.get_visible()])

    monkeypatch.setattr(page, "drawn", lambda figure, kind: b"a figure")
    monkeypatch.setattr(page, "inline", one_for_each)
