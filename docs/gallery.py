"""Makes the figures in docs/images/ and the first result in the README.

``make demo && python docs/gallery.py demo`` takes the figures of the demo's report, and runs the
experiments of the papers below (two to three minutes on one core).
``python docs/gallery.py demo --only demo`` leaves these out.
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import logeval

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
B_LB = "B_LB(L=16,K=4,p=0.2,gap=0.15,gamma={gamma})"
PAPERS = {  # by name of the figure: problem, policies, steps
    "dcm-bandits": (
        B_LB.format(gamma=0.5),
        ["dcmKL-UCB", "First-Click", "Last-Click", "RankedKL-UCB"],
        100_000,
    ),
    "cascading-bandits": (B_LB.format(gamma=1), ["CascadeKL-UCB", "CascadeUCB1"], 100_000),
    "rank-1-bandits": (
        "rank1(K=8,L=8,p=0.25,gap=0.5)",
        ["Rank1ElimKL", "Rank1Elim", "UCB1Elim"],
        500_000,
    ),
}
RUNS = 20
RESULT = re.compile(r"(<!-- the demo's answer -->\n).*?(\n<!-- end -->)", re.DOTALL)


def demo_figures(demo: Path) -> None:
    """Copy the first figure of the demo's report, and its answer into the README."""
    shutil.copyfile(demo / "report" / "figures" / "earnings.svg", IMAGES / "demo-earnings.svg")
    answer = logeval.Decision.read(demo / "decision").text()
    readme = ROOT / "README.md"
    text = RESULT.sub(
        lambda m: f"{m[1]}```text\n{answer}\n```{m[2]}", readme.read_text(encoding="utf-8")
    )
    readme.write_text(text, encoding="utf-8")


def paper_figure(name: str) -> None:
    """Run one experiment and keep its regret curves."""
    problem, policies, horizon = PAPERS[name]
    with TemporaryDirectory() as folder:
        runs, page = Path(folder) / "runs", Path(folder) / "report"
        logeval.evaluate(problem=problem, policies=policies, horizon=horizon, runs=RUNS, out=runs)
        logeval.report(runs, page, quiet=True)
        shutil.copyfile(page / "figures" / "regret.svg", IMAGES / f"{name}.svg")


def main() -> None:
    """See the top of this file."""
    parser = argparse.ArgumentParser(description="Make the figures of the gallery.")
    parser.add_argument("demo", type=Path, help="folder that make demo wrote")
    parser.add_argument("--only", choices=["demo", *PAPERS], help="one part of it")
    arguments = parser.parse_args()
    IMAGES.mkdir(exist_ok=True)
    if arguments.only in (None, "demo"):
        demo_figures(arguments.demo)
    for name in PAPERS:
        if arguments.only in (None, name):
            paper_figure(name)


if __name__ == "__main__":
    main()
