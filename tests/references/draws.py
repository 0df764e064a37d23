"""Beta draws from the stream of one uniform, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterator

from logeval.running.arrays import Floats

MASK = 2**64 - 1


def stream(u: float) -> Iterator[float]:
    """The uniforms that a kernel makes of u: splitmix64 of its 53 bits, counted on."""
    x = int(u * 2.0**53)
    while True:
        x += 1
        z = x * 0x9E3779B97F4A7C15 & MASK
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        yield ((z ^ z >> 31) >> 11) / 2.0**53


def gamma(numbers: Iterator[float], a: float) -> float:
    """Marsaglia and Tsang 2000, with a normal number by Box and Muller."""
    d = a - 1 / 3
    while True:
        radius = math.sqrt(-2 * math.log1p(-next(numbers)))
        x = radius * math.cos(2 * math.pi * next(numbers))
        v, u = (1 + x / math.sqrt(9 * d)) ** 3, next(numbers)
        if v > 0 and (u < 1 - 0.0331 * x**4 or math.log(u) < x**2 / 2 + d * (1 - v + math.log(v))):
            return d * v


def betas(u: float, a: Floats, b: Floats) -> list[float]:
    """theta_i ~ Beta(a_i, b_i) of every item, one after the other."""
    numbers, theta = stream(u), []
    for a_i, b_i in zip(a.tolist(), b.tolist(), strict=True):
        x, y = gamma(numbers, a_i), gamma(numbers, b_i)
        theta.append(x / (x + y))
    return theta
