"""The Arrow schema of every table, with the documentation of every column."""

from __future__ import annotations

import re

import pyarrow as pa


def _field(name: str, type_: pa.DataType, doc: str, nullable: bool = False) -> pa.Field:
    return pa.field(name, type_, nullable=nullable, metadata={"doc": doc})


SERPS = pa.schema(
    [
        _field("session_id", pa.int64(), "search session"),
        _field("user_id", pa.int64(), "user; null where the log has none", nullable=True),
        _field("day", pa.int64(), "day of the log; null where the log has none", nullable=True),
        _field("time", pa.int64(), "time of the query since the start of the session"),
        _field("serp_id", pa.int64(), "result page within the session"),
        _field("query_id", pa.int64(), "query"),
        _field(
            "region_id",
            pa.int64(),
            "region of the user; a query is (query_id, region_id); null where the log has none",
            nullable=True,
        ),
        _field("test", pa.bool_(), "a test record: its clicks are withheld, never used to fit"),
        _field("items", pa.list_(pa.int64()), "the list shown, from the first position down"),
        _field(
            "domains",
            pa.list_(pa.int64()),
            "domain of each item; null where the log has none",
            nullable=True,
        ),
        _field("clicks", pa.list_(pa.int32()), "number of clicks at each position"),
        _field(
            "click_times",
            pa.list_(pa.int64()),
            "time of the first click at each position; null elements where there is none",
        ),
        _field(
            "propensities",
            pa.list_(pa.float64()),
            "probability that the logger shows this item at this position, over all it might do "
            "for the query; null where the log has none",
            nullable=True,
        ),
        _field(
            "random",
            pa.bool_(),
            "whether the list was shown in random order; null where the log does not say",
            nullable=True,
        ),
    ],
    metadata={"doc": "One row per search engine result page (SERP), in the order of the log."},
)

NAMES = pa.schema(
    [
        _field("id", pa.int64(), "the number inside the log"),
        _field("name", pa.string(), "what it was called in the log as it was"),
    ],
    metadata={
        "doc": "`names/query.parquet`, likewise `item`, `user`, `domain`, `region`: one row per "
        "id, where ids were text."
    },
)

CLICK_STATISTICS = pa.schema(
    [
        _field("query_id", pa.int64(), "query"),
        _field("region_id", pa.int64(), "region of the query", nullable=True),
        _field("holdout", pa.bool_(), "held out: used to score, never to fit"),
        _field("items", pa.list_(pa.int64()), "the list shown, from the first position down"),
        _field("clicks", pa.int64(), "clicked positions as bits, the first position lowest"),
        _field("count", pa.int64(), "number of SERPs"),
    ],
    metadata={"doc": "One row per (query, list, clicked positions) and its number of SERPs."},
)

MODELS = pa.schema(
    [
        _field("model", pa.string(), "click model, for instance DCM"),
        _field("method", pa.string(), "how it was estimated: em, mle, guo, counting, or truth"),
        _field(
            "scope", pa.string(), "partial, per-query, or pooled: whose the position parameters are"
        ),
        _field(
            "query_id",
            pa.int64(),
            "query; null for a shared parameter, and for queries never seen",
            nullable=True,
        ),
        _field("region_id", pa.int64(), "region of the query", nullable=True),
        _field("parameter", pa.string(), "attraction, termination, examination, ..."),
        _field(
            "item_id",
            pa.int64(),
            "item; null for a position parameter, and for items of the query never seen",
            nullable=True,
        ),
        _field("position", pa.int32(), "position, from 1; null likewise", nullable=True),
        _field(
            "previous",
            pa.int32(),
            "position of the previous click, 0 for none (UBM only)",
            nullable=True,
        ),
        _field("value", pa.float64(), "the value that simulators use"),
        _field("low", pa.float64(), "lower end of the 95% interval", nullable=True),
        _field("high", pa.float64(), "upper end of the 95% interval", nullable=True),
        _field(
            "observations",
            pa.float64(),
            "number of (expected) observations behind the value",
            nullable=True,
        ),
        _field(
            "raw",
            pa.float64(),
            "the plain estimate, where the value was replaced by a convention",
            nullable=True,
        ),
        _field(
            "draws",
            pa.list_(pa.float32()),
            "values from the joint posterior: the n-th of all rows belong together",
            nullable=True,
        ),
    ],
    metadata={"doc": "One row per parameter of a click model."},
)

QUERIES = pa.schema(
    [
        _field("model", pa.string(), "click model"),
        _field("query_id", pa.int64(), "query"),
        _field("region_id", pa.int64(), "region of the query", nullable=True),
        _field(
            "serps",
            pa.int64(),
            "number of SERPs the model was fitted to; null where it was not fitted to a log",
            nullable=True,
        ),
        _field("positions", pa.int32(), "K: the longest list of the query"),
        _field("items", pa.list_(pa.int64()), "its items, the most shown first"),
        _field(
            "base",
            pa.list_(pa.int64()),
            "the list shown most often, which may hold items that were dropped as rarely shown; "
            "of a synthetic log, the first page of the production ranking; null where unknown",
            nullable=True,
        ),
    ],
    metadata={"doc": "One row per click model and query it was fitted to, beside `models`."},
)

QUALITY = pa.schema(
    [
        _field("model", pa.string(), "click model"),
        _field(
            "baseline",
            pa.string(),
            "for a difference: the model it is measured from; else null",
            nullable=True,
        ),
        _field("measure", pa.string(), "log-likelihood, perplexity or conditional-perplexity"),
        _field("rank", pa.int64(), "rank, from 1; null for all of them", nullable=True),
        _field(
            "frequency",
            pa.string(),
            "SERPs of the query in the training part, as a band; null for all queries",
            nullable=True,
        ),
        _field("serps", pa.int64(), "number of SERPs scored"),
        _field("value", pa.float64(), "the measure, or the difference in it"),
        _field("low", pa.float64(), "lower end of the 95% bootstrap interval"),
        _field("high", pa.float64(), "upper end of the 95% bootstrap interval"),
    ],
    metadata={"doc": "One row per measured quality of a click model on held-out SERPs."},
)

CHECKS = pa.schema(
    [
        _field("model", pa.string(), "click model"),
        _field("check", pa.string(), "what is compared; docs/checking.md lists the checks"),
        _field("query", pa.string(), "query; null for all of them together", nullable=True),
        _field("serps", pa.int64(), "number of SERPs compared"),
        _field("components", pa.int64(), "ratios with events enough to be judged; 0: no check"),
        _field(
            "error",
            pa.float64(),
            "total variation distance of a distribution, or mean error of click-through rates",
        ),
        _field("p_value", pa.float64(), "of this check alone"),
        _field(
            "corrected", pa.float64(), "corrected for all checks and queries of the model together"
        ),
        _field("faulted", pa.bool_(), "whether the corrected p-value is at most 0.025"),
        _field("worst", pa.string(), "the ratio that is furthest off", nullable=True),
        _field("observed", pa.float64(), "that ratio in the log", nullable=True),
        _field("expected", pa.float64(), "that ratio in simulations of the model", nullable=True),
        _field("low", pa.float64(), "lower end of 95% of the simulations", nullable=True),
        _field("high", pa.float64(), "upper end of 95% of the simulations", nullable=True),
    ],
    metadata={"doc": "One row per click model, predictive check, and (or null) query."},
)

CURVES = pa.schema(
    [
        _field("model", pa.string(), "click model"),
        _field("check", pa.string(), "what is compared"),
        _field("query", pa.string(), "query; null for all of them together", nullable=True),
        _field("component", pa.string(), "the ratio, as `rank 3` or `2 clicks`"),
        _field("x", pa.float64(), "its place on the axis of a figure"),
        _field("observed", pa.float64(), "in the log"),
        _field("expected", pa.float64(), "in simulations of the model"),
        _field("low", pa.float64(), "lower end of 95% of the simulations"),
        _field("high", pa.float64(), "upper end of 95% of the simulations"),
        _field("z", pa.float64(), "deviation in standard deviations; 0 with too few events"),
        _field("faulted", pa.bool_(), "whether it deviates by more than the family allows"),
    ],
    metadata={"doc": "The ratios behind the rows of `checks`, as figures draw them."},
)

RUNS = pa.schema(
    [
        _field("simulator", pa.string(), "click model, or the name of a synthetic problem"),
        _field(
            "track",
            pa.string(),
            "ranking: a step shows a list; rank1: an item at a position; contextual: a list of "
            "items with features",
        ),
        _field("policy", pa.string(), "policy with its parameters, for instance dcmKL-UCB"),
        _field(
            "query",
            pa.string(),
            "query_id@region_id, query_id, or synthetic; several in turn: joined by +",
        ),
        _field(
            "draw",
            pa.int32(),
            "draw of the parameters of the simulator, from 1; 0: the fitted values themselves",
        ),
        _field("run", pa.int32(), "run, from 0; equal runs of two policies meet the same users"),
        _field("t", pa.int64(), "number of steps so far"),
        _field("regret", pa.float64(), "cumulative expected regret"),
        _field("reward", pa.float64(), "cumulative expected reward of what was shown"),
        _field(
            "optimal_reward", pa.float64(), "cumulative expected reward of the best list or pair"
        ),
        _field("clicks", pa.int64(), "number of clicks"),
        _field("optimal_steps", pa.int64(), "number of steps without regret (below 1e-9)"),
        _field(
            "pair_regret",
            pa.float64(),
            "cumulative expected regret of one pair: in the rank1 track regret itself; in the "
            "ranking track that of the item at the most examined position; null without a PBM",
            nullable=True,
        ),
        _field(
            "pair_optimal_reward",
            pa.float64(),
            "cumulative expected reward of the best pair; null without a PBM",
            nullable=True,
        ),
        _field(
            "rows_left",
            pa.int32(),
            "items not eliminated yet; null for policies that do not eliminate",
            nullable=True,
        ),
        _field("columns_left", pa.int32(), "positions not eliminated yet; likewise", nullable=True),
        _field(
            "cosine_distance",
            pa.float64(),
            "of the estimated theta to the true one; null where there is none",
            nullable=True,
        ),
    ],
    metadata={"doc": "One row per simulator, track, policy, query, draw, run and checkpoint t."},
)

HARDNESS = pa.schema(
    [
        _field("simulator", pa.string(), "as in the runs table"),
        _field("query", pa.string(), "as in the runs table"),
        _field("rows", pa.int32(), "number of items"),
        _field("columns", pa.int32(), "number of positions"),
        _field("mu", pa.float64(), "smaller of the mean row and mean column (rank1elimkl, eq. 3)"),
        _field("p_max", pa.float64(), "largest row or column mean (eq. 4)"),
        _field("gamma", pa.float64(), "max(mu, 1 - p_max) (eq. 5)"),
        _field("n", pa.int64(), "horizon"),
        _field(
            "bound",
            pa.float64(),
            "Theorem 1: upper bound on the regret of Rank1ElimKL after n steps; infinite when "
            "all rows or all columns are equal",
        ),
    ],
    metadata={"doc": "One row per query of the rank1 track: how hard it is."},
)

FEATURES = pa.schema(
    [
        _field("query_id", pa.int64(), "query"),
        _field("region_id", pa.int64(), "region of the query", nullable=True),
        _field("item_id", pa.int64(), "item"),
        _field("impressions", pa.int64(), "SERPs of the query that show it, in the other half"),
        _field(
            "vector",
            pa.list_(pa.float64()),
            "row of V of the item, scaled so that the longest has norm 1; 0 if never clicked",
        ),
    ],
    metadata={"doc": "One row per item of a query: its vector from the clicks of the log."},
)

USER_FEATURES = pa.schema(
    [
        _field("user_id", pa.int64(), "user"),
        _field(
            "vector",
            pa.list_(pa.float64()),
            "row of U S of the user, scaled so that the longest has norm 1",
        ),
    ],
    metadata={"doc": "One row per user: the vector from the user's clicks."},
)

FACTORS = pa.schema(
    [
        _field("kind", pa.string(), "user or item"),
        _field("id", pa.int64(), "user_id or item_id"),
        _field("factors", pa.list_(pa.float64()), "the true factors of taste"),
    ],
    metadata={
        "doc": "The tastes behind a log made with `generate --taste`: the logit of an item's "
        "attraction has taste * (user's factors . item's factors) added."
    },
)

ESTIMATES = pa.schema(
    [
        _field("target", pa.string(), "the ranker: a table, log:FOLDER, day:27, best:dcm, ..."),
        _field("query", pa.string(), "query; null for all of them", nullable=True),
        _field("estimator", pa.string(), "estimator with its parameters, for instance DR(ubm)"),
        _field("positions", pa.int32(), "K: the positions that count"),
        _field("value", pa.float64(), "estimated clicks per SERP"),
        _field("low", pa.float64(), "lower end of the 95% interval", nullable=True),
        _field("high", pa.float64(), "upper end of the 95% interval", nullable=True),
        _field(
            "truth",
            pa.float64(),
            "clicks per SERP of a target that is a log; else null",
            nullable=True,
        ),
        _field("logged", pa.float64(), "clicks per SERP of the log that the estimate is from"),
        _field("difference", pa.float64(), "value - logged"),
        _field("difference_low", pa.float64(), "its 95% interval, paired", nullable=True),
        _field("difference_high", pa.float64(), "likewise", nullable=True),
        _field("serps", pa.int64(), "SERPs of a target that is a log, else those of the log"),
        _field(
            "support",
            pa.float64(),
            "share of what the target shows that the log has shown, by the estimator's own cells; "
            "null for DM",
            nullable=True,
        ),
        _field(
            "effective_serps",
            pa.float64(),
            "(sum of weights)^2 / sum of their squares, mean over positions; null for DM",
            nullable=True,
        ),
        _field(
            "clipped", pa.float64(), "share of (SERP, position)s whose weight was clipped", True
        ),
        _field("largest_weight", pa.float64(), "largest weight before clipping", nullable=True),
        _field(
            "supported_positions",
            pa.int32(),
            "largest K up to which every position has the support that is asked for; null for DM",
            nullable=True,
        ),
    ],
    metadata={"doc": "One row per target, query and estimator of `logeval replay estimate`."},
)

VALIDATION = pa.schema(
    [
        _field("estimator", pa.string(), "estimator with its parameters"),
        _field("positions", pa.int32(), "K"),
        _field(
            "clip",
            pa.float64(),
            "the largest weight allowed; null: chosen for each part on the other parts",
            nullable=True,
        ),
        _field("parts", pa.int32(), "days or parts that were left out in turn"),
        _field("serps", pa.int64(), "SERPs whose clicks were predicted"),
        _field(
            "rmse", pa.float64(), "root mean squared error over parts and queries, by their SERPs"
        ),
        _field("low", pa.float64(), "lower end of its 95% interval, over parts"),
        _field("high", pa.float64(), "upper end of its 95% interval, over parts"),
        _field("bias", pa.float64(), "mean error"),
        _field("floor", pa.float64(), "RMSE of a perfect estimate: the noise of the clicks"),
        _field(
            "skill",
            pa.float64(),
            "1 - (rmse^2 - floor^2) / (RCTR's rmse^2 - floor^2): 1 is perfect, 0 is the logger's "
            "own value; null where RCTR is at the floor",
            nullable=True,
        ),
        _field("support", pa.float64(), "mean support of the parts", nullable=True),
    ],
    metadata={"doc": "One row per estimator, K and clip of `logeval replay validate`."},
)

REPLAYS = pa.schema(
    [
        _field("policy", pa.string(), "policy with its parameters"),
        _field("query", pa.string(), "query"),
        _field("run", pa.int32(), "shuffle of the log, from 0"),
        _field("t", pa.int64(), "number of accepted SERPs so far"),
        _field(
            "clicks",
            pa.float64(),
            "clicked results on them; null if the queue was exhausted before",
            nullable=True,
        ),
        _field("any_click", pa.float64(), "SERPs among them with a click; likewise", nullable=True),
        _field("steps", pa.int64(), "SERPs accepted in the whole run"),
        _field("passed", pa.int64(), "SERPs that the run went through"),
        _field("serps", pa.int64(), "SERPs of the query"),
        _field("exhausted", pa.bool_(), "the run ended since no SERP showed the wanted list"),
    ],
    metadata={"doc": "One row per policy, query, shuffle and checkpoint of `replay policy`."},
)

CROSS_CHECK = pa.schema(
    [
        _field("method", pa.string(), "a simulator, replay, or the estimated value of last lists"),
        _field("policy", pa.string(), "policy with its parameters"),
        _field("value", pa.float64(), "clicks per SERP"),
        _field("low", pa.float64(), "lower end of the 95% interval", nullable=True),
        _field("high", pa.float64(), "upper end of the 95% interval", nullable=True),
    ],
    metadata={"doc": "One row per method and policy of `replay cross-check`."},
)

TABLES: dict[str, pa.Schema] = {
    "serps": SERPS,
    "names": NAMES,
    "click_statistics": CLICK_STATISTICS,
    "models": MODELS,
    "queries": QUERIES,
    "quality": QUALITY,
    "checks": CHECKS,
    "curves": CURVES,
    "runs": RUNS,
    "hardness": HARDNESS,
    "features": FEATURES,
    "user_features": USER_FEATURES,
    "factors": FACTORS,
    "estimates": ESTIMATES,
    "validation": VALIDATION,
    "replays": REPLAYS,
    "cross_check": CROSS_CHECK,
}


def markdown() -> str:
    """The schemas of all tables, as in docs/tables.md."""
    text = ["# Tables", "", "Made by `python -m logeval.storage.schemas > docs/tables.md`.", ""]
    for name, schema in TABLES.items():
        text += [f"## {name}", "", schema.metadata[b"doc"].decode(), ""]
        text += ["| column | type | null | meaning |", "|---|---|---|---|"]
        for field in schema:
            doc = field.metadata[b"doc"].decode()
            type_ = re.sub(r"<\w+: ", "<", str(field.type))
            text.append(f"| `{field.name}` | {type_} | {'yes' if field.nullable else ''} | {doc} |")
        text.append("")
    return "\n".join(text)


if __name__ == "__main__":
    print(markdown(), end="")
