"""The choice model fitted: classes of users, items and queries in one penalised likelihood.

In class z of query q the logits of ``users.choice`` are sums of what is common and what is not,

    ln w = slope[z] . exposure + item + item_class[z],            logit s = satisfied,
    ln b(k, r) = position[z, k] + place[z, k, r] + place_query[q, k],
    logit more[j] = more[z, j],   logit depth[r] = depth[z, r] + depth_query[q, r] + appetite[z, q],
    ln share = share[z] + share_query[q, z] + a constant,

each normal around 0. Of ``LEARNED`` ones the standard deviation is fitted, too: the mean square
is that of the mode plus 1 / curvature (EM with a diagonal posterior). The mode is found by L-BFGS
with the exact gradient. Draws are modes, too: of SERPs that are weighted by Exponential(1), with
every prior's mean drawn from that prior, begun at the fit (weighted likelihood bootstrap, Newton
and Raftery 1994), so labels of classes do not change.

How much more a better list earns rests on the response. Clicks are sure of it, but they are sure
of what is wrong, too: where the model is, it makes up for other things. So it is told, by what it
is for: with the slope b of the value check (``quality.value``), cross-fitted at the response that
clicks alone give, and its standard error, it is N(b response, (error response)^2), times the prior.
Predicted differences between lists are nearly proportional to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import Bounds, minimize
from scipy.special import expit

from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.estimation.priors import Exposure
from logeval.running import seeds
from logeval.running.arrays import Floats
from logeval.running.kernels import njit, sigmoid

Fields = dict[str, Floats]
SCALES = {  # standard deviations, at first
    "slope": 3.0, "item": 1.0, "item_class": 0.5, "satisfied": 0.5, "position": 2.0, "place": 0.5,
    "place_query": 0.3, "more": 2.0, "depth": 1.0, "depth_query": 0.3, "appetite": 0.5,
    "share": 3.0, "share_query": 0.5, "response": 0.5,
}  # fmt: skip
LEARNED = (
    "item", "item_class", "satisfied", "place", "place_query", "depth_query", "appetite",
    "share_query",
)  # fmt: skip
NARROW, WIDE = 0.02, 3.0  # what is learned is between
RESPONSE = 0.5  # before clicks are seen; it is from 0 to 1
ROUNDS, STEPS, LAST, DRAWN = 5, 60, 1000, 60  # of learning, and of L-BFGS
TOLERANCE = 1e-8  # of the relative change of the penalised likelihood
MEMORY = 20  # of L-BFGS
APART = 1.5, -1.0  # logits of one more click in the last class and the first, where a fit starts
JITTER = 0.1  # of items, there


class Values(NamedTuple):
    """What the kernel takes: the sums above, or derivatives by them."""

    item: Floats  # (C, I)
    satisfied: Floats  # (I,)
    place: Floats  # (C, K, K + 1)
    place_query: Floats  # (Q, K)
    more: Floats  # (C, K)
    depth: Floats  # (C, K)
    depth_query: Floats  # (Q, K)
    appetite: Floats  # (C, Q)
    share: Floats  # (Q, C) ln share
    response: Floats  # (1,)


@njit(cache=True, nogil=True)
def likelihood(items, clicks, length, count, query, x, w, b, c, out, d, h):
    """ln P(clicks) of each pattern; derivatives are added to d, and curvatures to h.

    w = e^item, b = e^place, c = e^place_query. Without rows in ``d.share`` there are none.
    """
    P, K = items.shape
    C, response = w.shape[0], x.response[0]
    lp, u, W, go = np.empty(C), np.empty((C, K, K)), np.empty((C, K)), np.empty((C, K))
    at = np.empty(K + 1, np.int64)
    for i in range(P):
        n, q, J = length[i], query[i], 1
        at[0] = 0  # positions of the clicks
        for k in range(n):
            if clicks[i, k]:
                at[J] = k + 1
                J += 1
        for z in range(C):
            lp[z] = x.share[q, z]
            for j in range(J):
                r = at[j]
                if r == n:
                    continue
                total = 0.0
                for k in range(r, n):
                    u[z, j, k] = w[z, items[i, k]] * b[z, k, r] * c[q, k]
                    total += u[z, j, k]
                y = x.more[z, j] + x.depth[z, r] + x.depth_query[q, r] + x.appetite[z, q]
                y += response * np.log(total)
                if r > 0:
                    y -= x.satisfied[items[i, r - 1]]
                W[z, j], go[z, j] = total, sigmoid(y)
                if j + 1 < J:
                    lp[z] += np.log(max(go[z, j], 1e-300) * u[z, j, at[j + 1] - 1] / total)
                else:
                    lp[z] += np.log(max(sigmoid(-y), 1e-300))
        most, total = lp.max(), 0.0
        for z in range(C):
            total += np.exp(lp[z] - most)
        out[i] = most + np.log(total)
        if not d.share.shape[0]:
            continue
        for z in range(C):
            mine = np.exp(lp[z] - out[i])
            m = count[i] * mine
            d.share[q, z] += m
            h.share[q, z] += m * (1.0 - mine)
            for j in range(J):
                r, clicked = at[j], j + 1 < J
                if r == n:
                    continue
                y = m * ((1.0 if clicked else 0.0) - go[z, j])  # by the logit of one more click
                v = m * go[z, j] * (1.0 - go[z, j])
                lW = np.log(W[z, j])
                for f, g in ((y, d), (v, h)):
                    g.more[z, j] += f
                    g.depth[z, r] += f
                    g.depth_query[q, r] += f
                    g.appetite[z, q] += f
                if r > 0:
                    d.satisfied[items[i, r - 1]] -= y
                    h.satisfied[items[i, r - 1]] += v
                d.response[0] += y * lW
                h.response[0] += v * lW * lW
                y, v = response * y, response * response * v
                if clicked:
                    y -= m
                for k in range(r, n):
                    p = u[z, j, k] / W[z, j]
                    f, e = y * p, v * p * p
                    if clicked:
                        e += m * p * (1.0 - p)
                        if at[j + 1] == k + 1:
                            f += m
                    d.item[z, items[i, k]] += f
                    d.place[z, k, r] += f
                    d.place_query[q, k] += f
                    h.item[z, items[i, k]] += e
                    h.place[z, k, r] += e
                    h.place_query[q, k] += e


class ChoiceFit:
    """The penalised likelihood of C classes, and its maximum: ``x`` and ``scales``.

    ``shared`` leaves out what differs between queries, ``learn`` fits the scales, and ``told`` are
    mean and standard error of the response; None: it is fitted.
    """

    def __init__(
        self, data: Patterns, C: int, shared: bool = False, learn: bool = True, seed: int = 0,
        told: tuple[float, float] | None = None,
    ) -> None:  # fmt: skip
        self.data, self.C, self.learn, self.seed = data, C, learn, seed
        self.exposure = Exposure.of(data)
        Q, n, K = data.Q, data.I, data.K
        shapes: dict[str, tuple[int, ...]] = {
            "slope": (C, 3), "item": (n,), "item_class": (C, n), "satisfied": (n,),
            "position": (C, K), "place": (C, K, K + 1), "place_query": (Q, K), "more": (C, K),
            "depth": (C, K), "depth_query": (Q, K), "appetite": (C, Q), "share": (C,),
            "share_query": (Q, C), "response": (1,),
        }  # fmt: skip
        of_queries = {f for f in shapes if f.endswith("_query")} | {"appetite"}
        of_classes = {"item_class", "share", "share_query"}
        without = (of_queries if shared else set()) | (of_classes if C == 1 else set())
        self.zero = {f: np.zeros(shape) for f, shape in shapes.items()}
        self.free = [f for f in shapes if f not in without]
        self.scales = SCALES if learn else SCALES | dict.fromkeys(LEARNED, WIDE)
        self.mean = {f: np.zeros(shapes[f]) for f in self.free}
        self.mean["response"][:] = RESPONSE
        self.told = told is not None
        if told is not None:
            self.mean["response"][:], self.scales = told[0], self.scales | {"response": told[1]}
        self.x: Fields = self.zero
        self.steps, self.converged = 0, False

    # -- sums and their derivatives -----------------------------------------------------------

    def values(self, x: Mapping[str, Floats]) -> Values:
        """The sums of the formulas above."""
        share = x["share"] + x["share_query"]
        share = share - np.logaddexp.reduce(share, axis=1, keepdims=True)
        return Values(
            x["item"] + x["item_class"] + x["slope"] @ self.exposure.X.T,
            x["satisfied"],
            x["place"] + x["position"][:, :, None],
            x["place_query"], x["more"], x["depth"], x["depth_query"], x["appetite"], share,
            x["response"],
        )  # fmt: skip

    def _parts(self, d: Values, X: Floats) -> Fields:
        """Of derivatives by sums, those by their parts; ``X`` are the exposures, or squares."""
        found = d._asdict()
        return found | {
            "item": d.item.sum(axis=0), "item_class": d.item, "slope": d.item @ X,
            "position": d.place.sum(axis=2), "share": d.share.sum(axis=0), "share_query": d.share,
        }  # fmt: skip

    def log_likelihood(self, data: Patterns, x: Fields | None = None) -> Floats:
        """ln P(clicks) of each pattern, (P,)."""
        return self._likelihood(data, self.values(x or self.x), 0)[0]

    def _likelihood(self, data: Patterns, x: Values, rows: int) -> tuple[Floats, Values, Values]:
        d, h = (Values(*(np.zeros_like(f) for f in x)) for _ in range(2))
        d, out = d._replace(share=d.share[: rows or 0]), np.zeros(data.P)
        arrays = data.items, data.clicks, data.length, data.count, data.query
        likelihood(*arrays, x, np.exp(x.item), np.exp(x.place), np.exp(x.place_query), out, d, h)
        return out, d, h

    def objective(self, flat: Floats, data: Patterns, mean: Fields) -> tuple[float, Floats]:
        """Minus the penalised ln-likelihood, and its gradient."""
        x = self.unpacked(flat)
        values = self.values(x)
        out, d, _ = self._likelihood(data, values, data.Q)
        d = d._replace(share=d.share - d.share.sum(axis=1, keepdims=True) * np.exp(values.share))
        gradient, total = self._parts(d, self.exposure.X), float(data.count @ out)
        for f in self.free:
            off = (x[f] - mean[f]) / self.scales[f]
            total -= 0.5 * float((off * off).sum())
            gradient[f] = gradient[f] - off / self.scales[f]
        return -total, -self.packed(gradient)

    def packed(self, x: Fields) -> Floats:
        """The free fields as one vector."""
        return np.concatenate([x[f].ravel() for f in self.free])

    def unpacked(self, flat: Floats) -> Fields:
        """And back; the others are 0."""
        ends = np.cumsum([self.zero[f].size for f in self.free])
        parts = zip(self.free, np.split(flat, ends[:-1]), strict=True)
        return self.zero | {f: part.reshape(self.zero[f].shape) for f, part in parts}

    def responsibilities(self) -> Floats:
        """P(class | clicks) of each pattern, (P, C)."""
        v, each = self.values(self.x), []
        for z in range(self.C):
            own = {f: getattr(v, f)[[z]] for f in ("item", "place", "more", "depth", "appetite")}
            one = v._replace(share=v.share[:, [z]], **own)
            each.append(self._likelihood(self.data, one, 0)[0])
        found = np.stack(each, axis=1)
        return np.asarray(np.exp(found - np.logaddexp.reduce(found, axis=1, keepdims=True)))

    # -- its maximum --------------------------------------------------------------------------

    def climb(self, x: Fields, steps: int, data: Patterns, mean: Fields) -> Any:
        """What L-BFGS makes of x: scipy's result."""
        at = self.packed(x)
        low, high = np.full(len(at), -np.inf), np.full(len(at), np.inf)
        told = float(np.clip(mean["response"][0], 0.0, 1.0))
        low[-1], high[-1] = (told, told) if self.told else (0.0, 1.0)
        return minimize(
            self.objective, at, (data, mean), "L-BFGS-B", jac=True, bounds=Bounds(low, high),
            options={"maxiter": steps, "maxcor": MEMORY, "ftol": TOLERANCE},
        )  # fmt: skip

    def start(self) -> Fields:
        """Classes that differ in how much they click, and a little in what."""
        x = {f: v.copy() for f, v in self.zero.items()}
        x["response"][:] = np.clip(self.mean["response"], 0.0, 1.0)
        if self.C > 1:
            rng = seeds.generator(self.seed, "choice", "start")
            x["item_class"] += JITTER * rng.standard_normal(x["item_class"].shape)
            x["more"] += np.linspace(-APART[0], -APART[1], self.C)[:, None]
        return x

    def fit(self) -> None:
        """Fill ``x`` and ``scales``."""
        x = self.start()
        for _ in range(ROUNDS if self.learn else 0):
            x = self.unpacked(self.climb(x, STEPS, self.data, self.mean).x)
            self._learn(x)
        found = self.climb(x, LAST, self.data, self.mean)
        self.x, self.steps, self.converged = self.unpacked(found.x), found.nit, found.success

    def _learn(self, x: Fields) -> None:
        """The standard deviations, from the mode and its curvature."""
        _, _, h = self._likelihood(self.data, self.values(x), self.data.Q)
        curvature, scales = self._parts(h, self.exposure.X**2), dict(self.scales)
        for f in set(self.free) & set(LEARNED):
            variance = 1.0 / (curvature[f] + self.scales[f] ** -2)
            scales[f] = float(np.clip(np.sqrt((x[f] ** 2 + variance).mean()), NARROW, WIDE))
        self.scales = scales

    def draws(self, n: int) -> list[Fields]:
        """Modes of SERPs that are weighted at random, with means drawn from the priors."""
        rng = seeds.generator(self.seed, "choice", "draws")
        return [self._drawn(rng) for _ in range(n)]

    def _drawn(self, rng: np.random.Generator) -> Fields:
        data = self.data.weighted(rng.gamma(np.maximum(self.data.count, 1e-9)))
        off = {f: rng.standard_normal(m.shape) for f, m in self.mean.items()}
        mean = {f: m + self.scales[f] * off[f] for f, m in self.mean.items()}
        return self.unpacked(self.climb(self.x, DRAWN, data, mean).x)


# -- as parameters -------------------------------------------------------------------------------


def parameters(fit: ChoiceFit, x: Fields, G: int) -> Fields:
    """Those of ``users.choice``, by class, (C, I), (C, G, ...), and the shares, (Q, C).

    All are from 0 to 1; G: queries, or 1 where they share. The largest w of a query, and b of a
    last click, are 1: what they were goes to ``depth``. ``unseen`` is w of an item never shown.
    """
    data, v, C = fit.data, fit.values(x), fit.C
    group = np.arange(data.Q) if G == data.Q else np.zeros(data.Q, dtype=np.int64)
    top = np.full((C, G), -np.inf)
    for z in range(C):
        np.maximum.at(top[z], group[data.item_query], v.item[z])
    top = np.where(np.isfinite(top), top, 0.0)
    b = v.place[:, None] + v.place_query[None, :G, :, None]
    below = np.arange(data.K + 1) <= np.arange(data.K)[:, None]  # the last click is above
    b = np.where(below, b, -np.inf)
    highest = b.max(axis=2, keepdims=True)
    depth = v.depth[:, None] + v.depth_query[None, :G] + v.appetite[:, :G, None]
    depth = depth + v.response * (top[:, :, None] + highest[:, :, 0, : data.K])
    never = x["slope"] @ fit.exposure.unseen.T - top[:, group]
    return {
        "w": np.exp(v.item - top[:, group[data.item_query]]),
        "s": np.tile(expit(v.satisfied), (C, 1)),
        "b": np.exp(b - np.where(np.isfinite(highest), highest, 0.0)),
        "more": np.repeat(expit(v.more)[:, None], G, axis=1),
        "depth": expit(depth),
        "response": np.full((C, G), v.response[0]),
        "share": np.exp(v.share),
        "unseen": np.exp(np.minimum(never, 0.0)),
    }


def estimated(value: Floats, draws: list[Floats], observations: Floats) -> ParameterEstimate:
    """Values and draws, without intervals."""
    unknown = np.full(value.shape, np.nan)
    seen = np.broadcast_to(observations, value.shape).copy()
    drawn = np.stack(draws) if draws else None
    return ParameterEstimate(value, unknown, unknown, seen, draws=drawn)
