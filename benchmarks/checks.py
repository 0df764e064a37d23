"""The error rates of check-models: how often it faults the true model, and how often the others.

    python -m benchmarks.checks --truth DCM --logs 100 --models DCM,PBM,CM
    python -m benchmarks.checks --truth "DCM(classes=3)" --logs 100

draws logs from a click model, fits models to four fifths of each, checks them on the rest, and
prints how often each model was faulted, and by which check. Run by hand: it takes minutes.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa

from logeval.clicks.estimation.classes import number_of
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.fold import held_out_rows, training_rows
from logeval.clicks.estimation.patterns import Patterns, patterns_of
from logeval.clicks.fitted import FittedModel
from logeval.clicks.fitting import fit_one
from logeval.clicks.models.registry import MODELS, model_names, model_of
from logeval.clicks.quality.predictive import check_patterns, sample_of
from logeval.clicks.settings import DRAWS
from logeval.running.progress import Progress
from logeval.storage import schemas
from logeval.synthetic.sessions import Sessions, draw_sessions
from logeval.synthetic.world import World, make_world


def drawn_statistics(
    model: str, queries: int, sessions: int, seed: int, held_out: float = 0.2
) -> pa.Table:
    """The click statistics of a synthetic log."""
    world = make_world(model, queries, seed)
    return statistics_of(drawn_sessions(world, sessions, seed), held_out, seed)


def drawn_sessions(world: World, sessions: int, seed: int) -> Sessions:
    """Sessions of a world."""
    return draw_sessions(world, sessions, sessions, seed, 0)


def statistics_of(drawn: Sessions, held_out: float, seed: int) -> pa.Table:
    """Their click statistics."""
    keep, sessions = ~drawn.test, len(drawn.first) - 1
    session = np.repeat(np.arange(sessions), np.diff(drawn.first))[keep]
    serps = pd.DataFrame(
        {
            "query_id": drawn.query[keep] + 1,
            "region_id": None,
            "holdout": np.random.default_rng(seed).random(sessions)[session] < held_out,
            "items": [tuple(x) for x in (drawn.lists[keep] + 1).tolist()],
            "clicks": (drawn.clicks[keep] > 0) @ (1 << np.arange(drawn.lists.shape[1])),
        }
    )
    counted = serps.value_counts(list(serps.columns), sort=False, dropna=False)
    rows = counted.rename("count").reset_index()
    return pa.Table.from_pandas(rows, schema=schemas.CLICK_STATISTICS, preserve_index=False)


def fitted(
    name: str, train: Patterns, scope: str = "partial", draws: int = DRAWS, intervals: bool = True
) -> FittedModel:
    """A model fitted by EM where it has one, with classes of users if its name says so."""
    base, settings = model_of(name)
    method = "em" if "em" in MODELS[base].methods else MODELS[base].methods[0]
    classes = number_of(settings.get("classes", 1))
    options = Options(method, scope, draws=draws, classes=classes, intervals=intervals)
    return fit_one(name, train, options)


def main() -> None:
    """Run the logs asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--truth", default="DCM")
    parser.add_argument("--models", default="", help="The true one alone, if not given; or all.")
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--queries", type=int, default=6)
    parser.add_argument("--sessions", type=int, default=3000)
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--scope", default="partial")
    parser.add_argument("--draws", type=int, default=DRAWS, help="Of the posterior, that are kept.")
    parser.add_argument("--held-out", type=float, default=0.2, help="Share of the sessions.")
    parser.add_argument("--seed", type=int, default=1000, help="Of the first log.")
    given = parser.parse_args()
    truth = model_names([given.truth])[0]
    named = list(MODELS) if given.models == "all" else given.models.split(",")
    names = model_names(named) if given.models else [truth]
    faulted: Counter[str] = Counter()
    by_check: dict[str, Counter[str]] = {name: Counter() for name in names}
    with Progress(truth, given.logs, "logs") as progress:
        for log in range(given.logs):
            seed = given.seed + log
            clicks = drawn_statistics(truth, given.queries, given.sessions, seed, given.held_out)
            train = patterns_of(training_rows(clicks))
            test = patterns_of(held_out_rows(clicks))
            models = [fitted(name, train, given.scope, given.draws) for name in names]
            sample = sample_of(models[0].queries, test, 10**9, seed)
            checks = check_patterns(models, sample, given.simulations, seed, quiet=True)
            for name, verdict in checks.verdicts.items():
                faulted[name] += not verdict.cleared
                by_check[name].update(verdict.faulted)
                by_check[name]["by query"] += verdict.faulted_queries > 0
            progress.advance(1)
    for name in names:
        print(json.dumps({
            "truth": truth, "model": name, "logs": given.logs, "faulted": faulted[name],
            "by": dict(by_check[name].most_common()),
        }))  # fmt: skip


if __name__ == "__main__":
    main()
