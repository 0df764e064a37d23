"""Every estimator as a loop over SERPs, written from the formulas and sharing no code with them.

``serps`` are (query, items, clicks, part); a target is {query: [(items, probability)]}.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict


def keys(kind, items, k):
    """What the weight of position k depends on."""
    return {
        "List": items,
        "Prefix": items[: k + 1],
        "IP": (items[k], k),
        "Item": items[k],
    }[kind]


def frequencies(kind, serps, K):
    """How often each key was shown, by query, and the SERPs of each query."""
    shown, n = Counter(), Counter()
    for query, items, _, _ in serps:
        n[query] += 1
        if kind == "List":
            shown[query, items] += 1
            continue
        for k in range(len(items)):
            shown[query, keys(kind, items, k)] += 1
    return shown, n


def target_mass(kind, target):
    mass = defaultdict(float)
    for query, lists in target.items():
        for items, p in lists:
            if kind == "List":
                mass[query, items] += p
                continue
            for k in range(len(items)):
                mass[query, keys(kind, items, k)] += p
    return mass


def weight(name, target, log, K, e=None, window=None):
    """A function (query, items, k) -> rho, with the propensities of ``log``."""
    if name == "RCTR":
        return lambda q, items, k: 1.0
    if name in ("PBM", "INTERPOL"):
        shown, n = frequencies("IP", log, K)
        h = target_mass("IP", target)

        def rho(q, items, k):
            a = items[k]
            if name == "PBM":
                up = sum(e[q][j] * h[q, (a, j)] for j in range(K))
                down = sum(e[q][j] * shown[q, (a, j)] / n[q] for j in range(K))
                return up / down if down else 0.0
            total = 0.0
            for j in range(K):
                if abs(j - k) <= window:
                    near = [x for x in range(K) if abs(x - j) <= window]
                    down = sum(e[q][x] * shown[q, (a, x)] / n[q] for x in near)
                    total += e[q][j] * h[q, (a, j)] / down if down else 0.0
            return total

        return rho
    shown, n = frequencies(name, log, K)
    h = target_mass(name, target)

    def rho(q, items, k):
        key = (q, keys(name, items, k))
        if not shown[key]:
            return 0.0
        return h[key] / (shown[key] / n[q])

    return rho


def value(name, serps, target, K, *, clip=math.inf, normalised=False, model=None, **more):
    """The value of each query; ``model(q, items, k)`` adds the direct method and residuals."""
    queries = sorted({s[0] for s in serps})
    sums, weights, n = Counter(), Counter(), Counter()
    of_cell = weight(name, target, serps, K, **more)
    for q, items, clicks, _ in serps:
        n[q] += 1
        for k in range(len(items)):
            rho = min(of_cell(q, items, k), clip)
            gain = clicks[k] - (model(q, items, k) if model else 0.0)
            sums[q, k] += rho * gain
            weights[q, k] += rho
    out = {}
    for q in queries:
        total = 0.0
        for k in range(K):
            if normalised:
                mass = sum(p for items, p in target[q] if len(items) > k)
                total += mass * sums[q, k] / weights[q, k] if weights[q, k] else 0.0
            else:
                total += sums[q, k] / n[q]
        if model:
            total += sum(
                p * model(q, items, k) for items, p in target[q] for k in range(len(items))
            )
        out[q] = total
    return out
