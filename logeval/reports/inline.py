"""A figure of matplotlib as an inline SVG that follows the light and dark of its page."""

from __future__ import annotations

import io
import re
from typing import Any

from logeval.reports.style import css_colour


def inline_svg(figure: Any, prefix: str) -> str:
    """A ``laid_out`` figure in the page's colours; ``prefix`` keeps its ids apart from others'."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "logeval"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", text)
    width = float(re.search(r'width="([\d.]+)pt"', text)[1])  # type: ignore[index]
    text = re.sub(r' (width|height)="[\d.]+pt"', "", text, count=2)
    text = text.replace(
        "<svg ", f'<svg class="plot" stroke-linejoin="round" style="max-width:{width:.0f}pt" ', 1
    )
    text = re.sub(r"font: ([^;\"]*?)px [^;\"]*", r"font: \1px system-ui, sans-serif", text)
    return re.sub(r"#[0-9a-fA-F]{6}\b", lambda match: _colour(match[0]), text)


def _colour(value: str) -> str:
    value = value.upper()
    if value == "#000000":
        return "currentColor"
    return "var(--page, #fff)" if value == "#FFFFFF" else css_colour(value)
