"""Whether a log drifts: do models by period predict held-out SERPs better than a constant one?

A model by period is chosen on one half of the held-out SERPs and compared on the other, and the
other way round. Two halves are two tests, each with half of the 5%. It must predict better than:

- the constant model. On users who do not change a model by period is worse, since it knows less.
- itself, fitted to SERPs whose periods were exchanged among those that show the same list. Where
  the lists change with the days, and the click model is not quite right, models by period predict
  better although users do not change; but so do those with exchanged periods.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logeval.running.arrays import Bools, Floats, Ints, sum_by

CRITICAL = 1.96  # one-sided 2.5% in each half
FEWEST = 50  # SERPs in each half; with fewer nothing is said


@dataclass(frozen=True)
class Evidence:
    """Of groups of SERPs, as queries."""

    drifts: Bools  # (G,)
    enough: Bools  # (G,) whether there are enough SERPs to say
    choice: Ints  # (G,) the candidate that predicts both halves best
    gain: Floats  # (G,) of it over the constant model, nats per held-out SERP
    z: Floats  # (G,) the larger of the two differences, in standard errors


def evidence(
    score: Floats, exchanged: Floats, count: Floats, group: Ints, half: Ints, G: int
) -> Evidence:
    """From the log-likelihood (C, P) of every held-out pattern under C candidates.

    The last candidate is the constant model; those ``exchanged`` are the same candidates, fitted
    with exchanged periods. ``group`` says whose patterns they are.
    """
    rows = np.arange(len(count))
    sums = np.stack([sum_by(group * 2 + half - 1, x * count, 2 * G) for x in score])  # (C, 2 G)
    sums = sums.reshape(len(score), G, 2)
    serps = sum_by(group * 2 + half - 1, count, 2 * G).reshape(G, 2)
    largest = np.full(G, -np.inf)
    for tested in (0, 1):
        chosen = sums[:, :, 1 - tested].argmax(axis=0)  # by the other half
        best, mine = score[chosen[group], rows], (half - 1 == tested).astype(float) * count
        z = np.full(G, np.inf)
        for other in (score[-1], exchanged[chosen[group], rows]):
            more, n = best - other, np.maximum(serps[:, tested], 1.0)
            total = sum_by(group, more * mine, G)
            variance = sum_by(group, more**2 * mine, G) - total**2 / n
            worse = total <= 0.0
            now = total / np.sqrt(np.maximum(variance, 1e-300))
            z = np.minimum(z, np.where(worse, -np.inf, now))
        largest = np.maximum(largest, z)
    enough = serps.min(axis=1) >= FEWEST
    both = sums.sum(axis=2)
    choice = both.argmax(axis=0)
    gain = (both.max(axis=0) - both[-1]) / np.maximum(serps.sum(axis=1), 1.0)
    return Evidence(enough & (largest > CRITICAL), enough, choice, gain, largest)
