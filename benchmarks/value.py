"""The value check: how often its intervals hold 1 for the true model, and what it finds.

    python -m benchmarks.value --truth "DCM(classes=3)" --logs 200
    python -m benchmarks.value --truth competing --model DCM --logs 50

draws logs and fits a model to each: cross-fitted to all of it, and to four fifths, with the rest
held out. Prints by level how often the interval held 1, how often it was too wide to tell, how
often it left out 1 (standard errors in brackets), and the median slope and width. The users of a
``competing`` world have an appetite that no list changes, and divide it among the results.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd
from scipy.stats import binom

from benchmarks.checks import drawn_sessions, fitted, statistics_of
from logeval.clicks.estimation.fold import held_out_rows, training_rows
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.models.registry import model_names
from logeval.clicks.quality.value import LEVELS, Slope, cross_fitted, slopes
from logeval.running.arrays import Floats, Ints
from logeval.running.progress import Progress
from logeval.synthetic.world import EXAMINATION, World, make_world

APPETITE = np.array([0.34, 0.41, 0.12, 0.06, 0.04, 0.03])  # of a search, as on real SERPs


def competing(world: World, lists: Ints, rng: np.random.Generator) -> Floats:
    """Clicks: as many as a search has appetite for, on results by their weight."""
    w = world.parameters["w"][lists] * EXAMINATION[: lists.shape[1]]
    wanted = rng.choice(len(APPETITE), size=len(lists), p=APPETITE)
    first = np.log(w / (1 - w)) + rng.gumbel(size=w.shape)  # Plackett-Luce: the largest are clicked
    place = np.argsort(np.argsort(-first, axis=1), axis=1)
    return (place < wanted[:, None]).astype(float)


def one_log(
    truth: str, model: str, given: argparse.Namespace, seed: int
) -> list[tuple[str, Slope]]:
    """The slopes of a model, cross-fitted and held out."""
    world = make_world("DCM" if truth == "competing" else truth, given.queries, seed)
    drawn = drawn_sessions(world, given.sessions, seed)
    if truth == "competing":
        drawn.clicks[:] = competing(world, drawn.lists, np.random.default_rng(seed))
    both = []
    for way in given.ways:
        rows = statistics_of(drawn, given.held_out if way == "held out" else 0.0, seed)
        train = patterns_of(training_rows(rows))
        if way == "held out":
            found = slopes(fitted(model, train), patterns_of(held_out_rows(rows)))
        else:
            found = cross_fitted(
                lambda part: fitted(model, part, intervals=False), train, given.folds, seed
            )
        both += [(way, one) for one in found]
    return both


def table(found: list[tuple[str, Slope]]) -> pd.DataFrame:
    """A row per way and level."""
    rows = []
    for way in dict.fromkeys(way for way, _ in found):
        for level in LEVELS:
            mine = [one for w, one in found if w == way and one.level == level]
            n = len(mine)
            shares = {
                "holds 1": np.mean([one.low <= 1 <= one.high for one in mine]),
                "cannot tell": np.mean([one.passes is None for one in mine]),
                "faulted": np.mean([one.passes is False for one in mine]),
            }
            rows.append(
                {"way": way, "level": level}
                | {k: f"{p:.3f} ({binom.std(n, p) / n:.3f})" for k, p in shares.items()}
                | {
                    "slope": np.nanmedian([one.slope for one in mine]),
                    "sd": np.nanstd([one.slope for one in mine]),
                    "width": np.nanmedian([one.high - one.low for one in mine]),
                }
            )
    return pd.DataFrame(rows)


def main() -> None:
    """Run the logs asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--truth", default="DCM")
    parser.add_argument("--model", default="", help="The true one, if not given.")
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--queries", type=int, default=6)
    parser.add_argument("--sessions", type=int, default=3000)
    parser.add_argument("--held-out", type=float, default=0.2, help="Share of the sessions.")
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--ways", nargs="+", default=["cross-fitted", "held out"])
    parser.add_argument("--seed", type=int, default=2000, help="Of the first log.")
    given = parser.parse_args()
    truth = given.truth if given.truth == "competing" else model_names([given.truth])[0]
    model = model_names([given.model or truth])[0]
    found, start = [], time.process_time()
    with Progress(f"{model} on {truth}", given.logs, "logs") as progress:
        for log in range(given.logs):
            found += one_log(truth, model, given, given.seed + log)
            progress.advance(1)
    took = time.process_time() - start
    print(f"{model} on {given.logs} logs of {truth}, {given.sessions} sessions, {took:.0f} CPU s")
    print(table(found).to_string(index=False, float_format=lambda x: f"{x:.2f}"), flush=True)


if __name__ == "__main__":
    main()
