"""What the numbers of a runs table are worth: intervals, standard errors, paired tests.

The samples are arrays (Q, N, ...): Q queries, N runs each, padded with nan where a query has
fewer. A mean is over queries of the mean over runs. ``docs/statistics.md`` says how to read
the results.
"""

from __future__ import annotations

import itertools

import numpy as np

from logeval.arrays import Floats
from logeval.seeds import generator

RESAMPLES = 2000
FLIPS = 9999
EXACT = 12  # with at most this many differences, all sign flips are tried


def mean(x: Floats) -> Floats:
    """Mean over queries of the mean over runs."""
    return np.nanmean(x, axis=1).mean(axis=0)


def bootstrap_means(x: Floats, resamples: int = RESAMPLES, seed: int = 0) -> Floats:
    """Means of resampled data (resamples, ...): queries with replacement, then runs in each.

    With one query only its runs are resampled.
    """
    rng = generator(seed, "bootstrap")
    Q, N = x.shape[:2]
    n_runs = N - np.isnan(x.reshape(Q, N, -1)[:, :, 0]).sum(axis=1)
    means = np.empty((resamples, *x.shape[2:]))
    for b in range(resamples):
        q = np.asarray(rng.integers(Q, size=Q))
        n = n_runs[q].reshape(Q, 1)
        runs = (rng.random((Q, N)) * n).astype(int)
        counted = np.arange(N) < n
        drawn = x[q[:, None], runs]
        if counted.all():
            means[b] = drawn.mean(axis=(0, 1))
        else:
            drawn[~counted] = np.nan
            means[b] = mean(drawn)
    return means


def interval(means: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Percentile interval of bootstrap means."""
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail], axis=0)
    return low, high


def standard_error(x: Floats) -> float:
    """The papers': averages over queries, run by run, and the standard error of their mean."""
    by_run = np.nanmean(x, axis=0)
    return float(by_run.std(ddof=1) / np.sqrt(len(by_run))) if len(by_run) > 1 else np.nan


def sign_flip_p(difference: Floats, seed: int = 0) -> float:
    """Two-sided p-value of "the paired differences are symmetric around 0" (Q, N).

    The independent differences are the means of the queries, or the runs of a single query.
    Their signs are flipped in all ways, or in 9999 random ones when they are many.
    """
    d = np.nanmean(difference, axis=1) if len(difference) > 1 else difference[0]
    d = d[~np.isnan(d)]
    observed = abs(d.sum()) * (1.0 - 1e-12)
    if len(d) <= EXACT:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=len(d))))
        return float((np.abs(signs @ d) >= observed).mean())
    rng = generator(seed, "sign flips")
    signs = rng.choice((-1.0, 1.0), size=(FLIPS, len(d)))
    return float((1 + (np.abs(signs @ d) >= observed).sum()) / (1 + FLIPS))


def holm(p: Floats) -> Floats:
    """Holm's correction of several p-values; nan stays out of it."""
    corrected = np.full(len(p), np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    largest = 0.0
    for rank, i in enumerate(tested[np.argsort(p[tested], kind="stable")]):
        largest = max(largest, min(1.0, (len(tested) - rank) * p[i]))
        corrected[i] = largest
    return corrected
