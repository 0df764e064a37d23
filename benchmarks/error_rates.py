"""How often the intervals and tests of ``logeval.evaluation`` are right, on simulated regrets.

python benchmarks/error_rates.py intervals      coverage of the interval of a mean, by method
python benchmarks/error_rates.py others         ratio of means, difference of two policies
python benchmarks/error_rates.py errors         familywise error of comparisons, equal policies
python benchmarks/error_rates.py power          of the same, policies that differ; who finds it
python benchmarks/error_rates.py ratios         both, of the ratios over queries
python benchmarks/error_rates.py tuning         the choice of SKEWNESS, on other seeds

Regret of a query is log-normal with expectation 1 and the log-sd of the table, the same for all
policies; times a query's effect on a policy (log-sd 0.4), times noise of the run (log-sd 0.5).
With one query it is a run that is log-normal, correlated between policies (0.3 of the variance).
This is no measure of speed, takes some minutes, and is not part of ``run.py``. (With the name
coverage.py it would hide the package that numba looks for.)
"""

import argparse
import itertools
import sys
from functools import lru_cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
from scipy import stats

from logeval.evaluation.statistics import intervals as ours
from logeval.evaluation.statistics import summary
from logeval.evaluation.statistics.intervals import compare, compare_ratios
from logeval.running.seeds import generator

INTERACTION, NOISE, COMMON = 0.4, 0.5, 0.3
CELLS = [(1, 5), (1, 10), (1, 20), (5, 5), (10, 5), (20, 5), (60, 5)]
LOG_SDS = [0.5, 1.0]
FACTORS = {2: [1, 1.5], 6: [1, 1.5, 1.5, 2, 2, 4], 12: [1] + 4 * [1.5] + 4 * [2] + 3 * [4]}
RESAMPLES = 300
SLOW = 500  # experiments on which the slow alternatives are tried


def lognormal(rng, log_sd, *shape):
    """Log-normal variables with expectation 1."""
    return np.exp(log_sd * rng.standard_normal(shape) - log_sd**2 / 2)


def gamma(rng, log_sd, *shape):
    """Gamma variables with expectation 1 and the variance of the log-normal ones."""
    variance = np.expm1(log_sd**2)
    return rng.gamma(1 / variance, variance, size=shape)


def regrets(rng, Q, N, log_sd, R, draw=lognormal):
    """Samples (Q, N, R) of R experiments with one policy."""
    if Q == 1:
        return draw(rng, log_sd, 1, N, R)
    return draw(rng, log_sd, Q, 1, R) * lognormal(rng, NOISE, Q, N, R)


def policies(rng, Q, N, log_sd, factors, R):
    """Samples (R, Q, N, P) of policies whose expectations are the factors."""
    P = len(factors)
    if Q == 1:
        z = np.sqrt(COMMON) * rng.standard_normal((R, 1, N, 1))
        z = z + np.sqrt(1 - COMMON) * rng.standard_normal((R, 1, N, P))
        return np.exp(log_sd * z - log_sd**2 / 2) * factors
    query = lognormal(rng, log_sd, R, Q, 1, 1) * lognormal(rng, INTERACTION, R, Q, 1, P)
    return query * lognormal(rng, NOISE, R, Q, N, P) * factors


# -- other methods, to compare with ------------------------------------------------------------


def bootstrap_means(x, rng):
    """Queries with replacement, then runs in each: what logeval did before. x is (Q, N, ...)."""
    Q, N = x.shape[:2]
    q = rng.integers(Q, size=(RESAMPLES, Q, 1))
    return x[q, rng.integers(N, size=(RESAMPLES, Q, N))].mean(axis=(1, 2))


def percentile(x, rng):
    ends = [
        np.quantile(bootstrap_means(x[..., r], rng), [0.025, 0.975]) for r in range(x.shape[-1])
    ]
    return np.array(ends).T


def student(x, rng):
    u = ours.units(x).values
    half = ours.t_quantile(len(u)) * u.std(axis=0, ddof=1) / np.sqrt(len(u))
    return u.mean(axis=0) - half, u.mean(axis=0) + half


def bootstrap_t(x, rng):
    u = ours.units(x).values
    n, ends = len(u), []
    for r in range(x.shape[-1]):
        v = u[:, r]
        w = v[rng.integers(n, size=(RESAMPLES, n))]
        s = w.std(axis=1, ddof=1)
        t = np.divide(w.mean(axis=1) - v.mean(), s, out=np.zeros(RESAMPLES), where=s > 0)
        low, high = np.quantile(t, [0.025, 0.975])
        ends.append((v.mean() - high * v.std(ddof=1), v.mean() - low * v.std(ddof=1)))
    return np.array(ends).T


METHODS = {
    "before": percentile,
    "Student": student,
    "bootstrap-t": bootstrap_t,
    "logeval": lambda x, rng: ours.interval(x),
}


@lru_cache
def signs_of(n, flips):
    """All sign flips of n values except that of all at once, or the given number of random ones."""
    if n > 10:
        random = generator(0, "flips").choice((-1.0, 1.0), size=(flips - 1, n))
        return np.vstack([np.ones(n), random])
    return np.array(list(itertools.product((1.0,), *(n - 1) * [(1.0, -1.0)])))


def sign_flips(u):
    """p of all pairs (i < j) by max-T over sign flips of the studentised differences (n, P)."""
    n, P = u.shape
    i, j = np.triu_indices(P, 1)
    d = u[:, i] - u[:, j]
    signs = signs_of(n, 200)
    m = signs @ d / n
    t = np.abs(m) / np.sqrt(np.maximum((d * d).mean(axis=0) - m * m, 1e-300) / (n - 1))
    return (t.max(axis=1)[:, None] >= t[0] * (1 - 1e-9)).mean(axis=0)


def holm_t(u):
    """p of all pairs by Student's test of the differences, corrected after Holm."""
    i, j = np.triu_indices(u.shape[1], 1)
    d = u[:, i] - u[:, j]
    t = d.mean(axis=0) / d.std(axis=0, ddof=1) * np.sqrt(len(d))
    return holm(2 * stats.t.sf(np.abs(t), len(d) - 1))


def holm(p):
    order = np.argsort(p)
    corrected = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order])
    found = np.empty(len(p))
    found[order] = np.minimum(1.0, corrected)
    return found


def before(x, rng):
    """As it was: smallest p against the best, and whether some bootstrap interval is off 0."""
    u = ours.units(x).values
    best = int(u.mean(axis=0).argmin())
    others = [i for i in range(u.shape[1]) if i != best]
    means = bootstrap_means(x, rng)
    low, high = np.quantile(means - means[:, [best]], [0.025, 0.975], axis=0)
    d = u[:, others] - u[:, [best]]
    p = (np.abs(signs_of(len(u), 2000) @ d) >= np.abs(d.sum(axis=0)) * (1 - 1e-12)).mean(axis=0)
    return holm(p).min(), ((low > 0) | (high < 0))[others].any()


# -- tables ---------------------------------------------------------------------------------------


def intervals(R, seed):
    """Coverage of each method, and the median width of logeval's interval, over the mean."""
    for draw, (Q, N), log_sd in itertools.product([lognormal, gamma], CELLS, LOG_SDS):
        rng = generator(seed, "intervals", draw.__name__, Q, N, str(log_sd))
        x = regrets(rng, Q, N, log_sd, R, draw)
        row = {"regrets": draw.__name__, "queries": Q, "runs": N, "log-sd": log_sd}
        for name, method in METHODS.items():
            slow = method in (percentile, bootstrap_t)
            low, high = method(x[..., :SLOW] if slow else x, rng)
            row[name] = f"{((low <= 1) & (1 <= high)).mean():.3f}"
        yield {
            **row,
            "too low": f"{(high < 1).mean():.3f}",
            "width": f"{np.median(high - low):.2f}",
        }


def others(R, seed):
    """Coverage of the ratio of means, of the difference of two policies, and of curves' points."""
    for (Q, N), log_sd in itertools.product(CELLS, LOG_SDS):
        rng = generator(seed, "others", Q, N, str(log_sd))
        optimal = lognormal(rng, 0.5, Q, 1, R) * np.ones((1, N, 1))
        x = regrets(rng, Q, N, log_sd, R) * optimal
        truth = 1.0 if Q > 1 else optimal[:, 0].mean(axis=0) / optimal[0, 0]
        _, low, high = ours.ratio(x, optimal)
        row = {"queries": Q, "runs": N, "log-sd": log_sd}
        row["ratio of means"] = f"{((low <= truth) & (truth <= high)).mean():.3f}"
        for factor in (1.0, 1.5, 4.0):
            pairs = policies(rng, Q, N, log_sd, np.array([factor, 1.0]), R)
            found = [compare(sample) for sample in pairs]
            held = [c.low[0, 1] <= factor - 1 <= c.high[0, 1] for c in found]
            row[f"difference, {factor} to 1"] = f"{np.mean(held):.3f}"
        yield row


def errors(R, seed):
    """Familywise error with equal policies: any pair told apart."""
    for P, (Q, N), log_sd in itertools.product(FACTORS, CELLS[:-1], LOG_SDS):
        rng = generator(seed, "errors", P, Q, N, str(log_sd))
        x = policies(rng, Q, N, log_sd, np.ones(P), R)
        u = x[:, 0] if Q == 1 else x.mean(axis=2)
        was = np.array([before(sample, rng) for sample in x[:SLOW]])
        yield {
            "policies": P,
            "queries": Q,
            "runs": N,
            "log-sd": log_sd,
            "before: p": f"{(was[:, 0] < 0.05).mean():.3f}",
            "before: interval": f"{was[:, 1].mean():.3f}",
            "Holm": f"{np.mean([(holm_t(s) < 0.05).any() for s in u[:SLOW]]):.3f}",
            "sign flips": f"{np.mean([(sign_flips(s) <= 0.05).any() for s in u[:SLOW]]):.3f}",
            "logeval": f"{np.mean([compare(s).told_apart().any() for s in x]):.3f}",
        }


def power(R, seed):
    """Policies of expectation 1 and 1.5, 2, 4 times that: how often told from the best."""
    for P, (Q, N), log_sd in itertools.product(FACTORS, CELLS, LOG_SDS):
        factors = np.array(FACTORS[P], dtype=float)
        truth = factors[:, None] - factors[None, :]
        rng = generator(seed, "power", P, Q, N, str(log_sd))
        x = policies(rng, Q, N, log_sd, factors, R)
        u = x[:, 0] if Q == 1 else x.mean(axis=2)
        found = [compare(sample) for sample in x]
        row = {"policies": P, "queries": Q, "runs": N, "log-sd": log_sd}
        for factor in (1.5, 2, 4):
            pairs = factors == factor
            apart = [c.told_apart()[0, pairs] for c in found] if pairs.any() else None
            row[f"{factor} to 1"] = "" if apart is None else f"{np.mean(apart):.2f}"
        first = slice(0, P - 1)  # pairs with policy 0 come first
        by_half = factors[1:] == 1.5
        for name, test in {"Holm": holm_t, "sign flips": sign_flips}.items():
            rejected = [(test(s)[first] <= 0.05)[by_half] for s in u[:SLOW]]
            row[f"1.5 to 1, {name}"] = f"{np.mean(rejected):.2f}"
        row["best in set"] = f"{np.mean([c.best_set()[0] for c in found]):.3f}"
        held = [((c.low <= truth) & (truth <= c.high)).all() for c in found]
        row["all intervals hold"] = f"{np.mean(held):.3f}"
        yield row


def ratios(R, seed):
    """The ratio over queries: familywise error with equal policies, and power at 1.5 to 1."""
    for P, (Q, N), log_sd in itertools.product(FACTORS, [(5, 5), (10, 5), (20, 5)], LOG_SDS):
        rng = generator(seed, "ratios", P, Q, N, str(log_sd))
        factors = np.array(FACTORS[P], dtype=float)
        equal = policies(rng, Q, N, log_sd, np.ones(P), R)
        unequal = policies(rng, Q, N, log_sd, factors, R)
        wrong = [compare_ratios(s).told_apart().any() for s in equal]
        right = [compare_ratios(s).told_apart()[0, factors == 1.5] for s in unequal]
        row = {"policies": P, "queries": Q, "runs": N, "log-sd": log_sd}
        yield {**row, "error": f"{np.mean(wrong):.3f}", "1.5 to 1": f"{np.mean(right):.2f}"}


def tuning(R, seed):
    """Coverage by the SKEWNESS that is assumed; other seeds than those of the tables."""
    used = ours.SKEWNESS
    for draw, (Q, N), log_sd in itertools.product([lognormal, gamma], CELLS, LOG_SDS):
        rng = generator(seed, "tuning", draw.__name__, Q, N, str(log_sd))
        x = regrets(rng, Q, N, log_sd, R, draw)
        row = {"regrets": draw.__name__, "queries": Q, "runs": N, "log-sd": log_sd}
        for skewness in (0.0, 2.0, 3.0, 4.0, 5.0, 6.0):
            ours.SKEWNESS = skewness
            low, high = ours.interval(x)
            row[f"{skewness:.0f}"] = f"{((low <= 1) & (1 <= high)).mean():.3f}"
        ours.SKEWNESS = used
        yield row


def rarely_bad(rng, *shape):
    """Log-normal of log-sd 0.5, a tenth of them 20 times worse, with mean 1."""
    worse = np.where(rng.random(shape) < 0.1, 20.0, 1.0)
    return lognormal(rng, 0.5, *shape) * worse / 2.9


def domain(R, seed):
    """Intervals beyond the spread that others were measured at, and how often a caution says so."""
    worlds = (0.5, 1.0, 1.25, 1.5, 2.0)
    for world, Q in itertools.product([*worlds, "a tenth 20 times worse"], (5, 10, 20, 60)):
        rng = generator(seed, "domain", str(world), Q)
        one = lognormal(rng, world, Q, 1, R) if world in worlds else rarely_bad(rng, Q, 1, R)
        u = ours.units(one)
        m, error = u.values.mean(axis=0), u.error()
        row = {"log-sd": world, "queries": Q}
        fixed = ours.skewed_interval(m, error, Q)
        for name, (low, high) in {"g = 5": fixed, "now": ours.interval(one)}.items():
            row[name] = f"{((low <= 1) & (1 <= high)).mean():.3f}"
            row[f"width, {name}"] = f"{np.median(high - low):.1f}"
        said = ours.log_spread(u.values) > summary.MEASURED_SPREAD
        yield {**row, "said so": f"{said.mean():.0%}"}


def show(rows):
    """A Markdown table, row by row as they come."""
    for i, row in enumerate(rows):
        if i == 0:
            print("| " + " | ".join(row) + " |\n" + "|---" * len(row) + "|")
        print("| " + " | ".join(map(str, row.values())) + " |", flush=True)


TABLES = {f.__name__: f for f in (intervals, others, errors, power, ratios, tuning, domain)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    show(TABLES[given.table](given.repetitions, given.seed))


if __name__ == "__main__":
    main()
