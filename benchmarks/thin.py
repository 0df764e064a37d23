"""How much too good the best list of a fitted model is, by the SERPs that its query has.

Logs of 10 queries with 100 items each, attraction from Beta(1, 8), lists of 10 by quality plus
noise (``intervals.clicks_of``). Examination and termination are those of ``logeval generate``,
or, in ``DCM, alike``, v = .5 .3 .1 .003 .001 ... in every query. The best list is worth that much
on the fitted model, and on the mean of 20 draws of it; in truth the best list of the same items is
worth 1, and the fitted best list what is in the last column.

    python -m benchmarks.thin 20          logs of each kind and size
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.intervals import clicks_of
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.fitting import fit_one
from logeval.clicks.models.model import ClickModel
from logeval.clicks.models.registry import MODELS
from logeval.running import seeds
from logeval.synthetic.world import K, make_world

QUERIES, ITEMS, QUALITY = 10, 100, 2.5
SIZES = (100, 300, 1000, 3000)  # SERPs of a query
ALIKE = np.array([0.5, 0.3, 0.1, 0.003, *[0.001] * 6])
KINDS = {
    "DCM": "satisfaction",
    "DCM, clicks": "clicks",
    "DCM, alike": "satisfaction",
    "PBM": "clicks",
}


def true_models(kind: str, logs: int, log: int, seed: int) -> list[ClickModel]:
    """The queries of a log, dealt from the generated world."""
    name = kind.split(",")[0]
    world = make_world(name, QUERIES * logs, seed)
    dealt = seeds.generator(seed, "thin", name).permutation(QUERIES * logs)
    rng = seeds.generator(seed, "thin", name, log)
    field = "v" if name == "DCM" else "e"
    found = []
    for q in dealt[log * QUERIES : (log + 1) * QUERIES]:
        shared = ALIKE if "alike" in kind else world.parameters[field][q]
        values: dict[str, Any] = {"w": rng.beta(1, 8, ITEMS), field: shared}
        found.append(MODELS[name](items=np.arange(ITEMS), K=K, **values))
    return found


def values(kind: str, n: int, logs: int, log: int, seed: int) -> list[dict[str, float]]:
    """The best list of each query of a log: true value, on the fit, on draws, and of the fit's."""
    models = true_models(kind, logs, log, seed)
    data = clicks_of(models, n, seeds.generator(seed, "thin log", kind, n, log), K, QUALITY)
    fitted = fit_one(models[0].name, data, Options("em"))
    found = []
    for q, query in enumerate(data.queries):
        true, reward = models[query.query_id], KINDS[kind]
        shown = data.item_ids[data.offsets[q] : data.offsets[q + 1]]
        best = fitted.of(query).optimum(K, reward)
        drawn = [one.of(query).optimum(K, reward).value for one in fitted.some_draws(20)]
        fields = {p.field: getattr(true, p.field) for p in true.PARAMETERS}
        here = type(true)(items=shown, K=K, **(fields | {"w": fields["w"][shown]}))
        found.append(
            {
                "items shown": len(shown),
                "true": here.optimum(K, reward).value,
                "fitted": best.value,
                "draws": float(np.mean(drawn)),
                "earns": float(here.users.expected_reward(best.A[None], reward)[0]),
            }
        )
    return found


def rows(logs: int = 4, seed: int = 0) -> list[dict[str, Any]]:
    """Means over all queries, as ratios to the true best list; standard errors over logs."""
    out = []
    for kind in KINDS:
        for n in SIZES:
            parts = [pd.DataFrame(values(kind, n, logs, i, seed)).mean() for i in range(logs)]
            table = pd.DataFrame(parts)
            mean, row = table.mean(), {"users": kind, "SERPs": n, "logs": logs}
            row |= {"items shown": mean["items shown"], "true": mean["true"]}
            for name in ("fitted", "draws", "earns"):
                ratio = mean[name] / mean["true"]
                error = (table[name] - ratio * table["true"]).std() / np.sqrt(logs) / mean["true"]
                row |= {name: ratio, f"error of {name}": error}
            out.append(row)
            print(f"{kind} {n}", end="\r", file=sys.stderr, flush=True)
    return out


if __name__ == "__main__":
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    print(pd.DataFrame(rows(many)).round(4).to_csv(index=False))
