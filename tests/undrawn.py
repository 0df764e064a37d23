"""Reports without their figures: drawing takes seconds, and most tests look at something else."""

from logeval.reports import page


def draw_nothing(monkeypatch):
    def not_drawn(figure, out):
        out.write_text("a figure")
        return out

    monkeypatch.setattr(page, "save_figure", not_drawn)
    monkeypatch.setattr(page, "inline_svg", lambda figure, name: "<svg></svg>")
