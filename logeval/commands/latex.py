"""Tables for a paper: LaTeX with booktabs, to be put into a table environment."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from logeval.running.words import cell

SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "±": r"$\pm$", "<": "$<$", ">": "$>$", "\n": " ", "−": "$-$", "∞": r"$\infty$",
    **{one: f"\\{one}" for one in "&%$#_{}"},
}  # fmt: skip
NUMBER = re.compile(r"[-+−<]?\s*([0-9]|inf\b|∞)|$")
SIGN = re.compile(r"(?<![\w.)-])-(?=[0-9.]|inf\b)")


def escaped(text: str) -> str:
    """Text as LaTeX prints it: minus signs, no hyphens, and no start that a row's end would eat."""
    text = re.sub(r"\binf\b", "∞", SIGN.sub("−", text))
    start = "{}" if text[:1] in ("[", "*") else ""
    return start + "".join(SPECIAL.get(one, one) for one in text)


def latex_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    bold: Collection[tuple[int, int]] = (),
) -> str:
    r"""A ``tabular`` with booktabs' rules; ``bold`` are the (row, column) of what is best.

    The title is a comment: captions are the author's. Needs \usepackage{booktabs}.
    """
    cells = [[cell(value) for value in row] for row in rows]
    numeric = [all(NUMBER.match(row[i]) for row in cells) for i in range(len(columns))]
    lines = [f"% {' '.join(title.split())}"]
    lines.append(f"\\begin{{tabular}}{{{''.join('r' if one else 'l' for one in numeric)}}}")
    lines += [r"\toprule", _row(escaped(name) for name in columns), r"\midrule"]
    for r, row in enumerate(cells):
        shown = (
            f"\\textbf{{{escaped(text)}}}" if (r, c) in bold else escaped(text)
            for c, text in enumerate(row)
        )
        lines.append(_row(shown))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"
