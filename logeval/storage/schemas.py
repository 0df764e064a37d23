"""The Arrow schema of every table, with the documentation of every column."""

from __future__ import annotations

import re

import pyarrow as pa

TABLES: dict[str, pa.Schema] = {}


def _table(name: str, text: str) -> pa.Schema:
    """What a row is, then a line per column: name, type and meaning.

    ``[int64]`` is a list, ``int64?`` may be null; what stands further right goes on with its line.
    """
    doc, *columns = (
        line.strip() for line in re.sub(r"\n {8,}", " ", text).split("\n") if line.strip()
    )
    fields = []
    for column in columns:
        called, kind, meaning = column.split(None, 2)
        type_ = pa.type_for_alias(kind.strip("[]?"))
        for _ in range(kind.count("[")):
            type_ = pa.list_(type_)
        fields.append(pa.field(called, type_, "?" in kind, {"doc": meaning}))
    TABLES[name] = pa.schema(fields, {"doc": doc})
    return TABLES[name]


READ = """A file has the checksum of its content in its name, `runs-1c291ca3.parquet`;
`manifest.json` says which one is the table. `logeval.storage.tables.path_of("runs/mine", "runs")`
is its path, for `pandas.read_parquet`, and `read_table("runs/mine", "runs")` there checks it as
well; in DuckDB, `FROM 'runs/mine/runs-*.parquet'`.
"""

SERPS = _table("serps", """
    One row per search engine result page (SERP), in the order of the log.

    session_id    int64       search session
    user_id       int64?      user; null where the log has none
    day           int64?      day of the log; null where the log has none
    time          int64       time of the query since the start of the session
    serp_id       int64       result page within the session
    query_id      int64       query
    region_id     int64?      region of the user; a query is (query_id, region_id); null where the
                              log has none
    test          bool        a test record: its clicks are withheld, never used to fit
    items         [int64]     the list shown, from the first position down
    domains       [int64]?    domain of each item; null where the log has none
    clicks        [int32]     number of clicks at each position
    click_times   [int64]     time of the first click at each position; null elements where there is
                              none
    propensities  [float64]?  probability that the logger shows this item at this position, over all
                              it might do for the query; null where the log has none
    random        bool?       whether the list was shown in random order; null where the log does
                              not say
    rewards       [float64]?  a second reward of each result, as purchases; null elements where none
                              is known, null where the log has no such column
    first         int32?      rank of the first result, where the page begins later; null: 1
    """)  # fmt: skip

NAMES = _table("names", """
    `names/query-*.parquet`, likewise `item`, `user`, `domain`, `region`: a row per id of text.

    id    int64   the number inside the log
    name  string  what it was called in the log as it was
    """)  # fmt: skip

COUNTS = _table("counts", """
    One row per query, item and position of a log that was counted before; it has no `serps`.

    query_id     int64   query
    region_id    int64?  region of the query
    item_id      int64   item
    position     int32   position, from 1
    impressions  int64   how often the item was shown there
    clicks       int64   how often it was clicked there
    """)  # fmt: skip

PLACEMENTS = _table("placements", """
    One row per item that was shown at a position, of a log that has no lists, and no `serps`.

    session_id  int64?    search session; null where the log has none
    user_id     int64?    user; likewise
    day         int64?    day of the log, from 1; likewise
    time        int64?    seconds since the midnight before the first row; likewise
    query_id    int64     query; 0 for all where the log has none
    region_id   int64?    region of the query
    item_id     int64     item
    position    int32     position, from 1
    clicks      int32     number of clicks
    propensity  float64?  probability that the logger shows this item at this position of this query
    reward      float64?  a second reward, as purchases
    """)  # fmt: skip

CLICK_STATISTICS = _table("click_statistics", """
    One row per (query, list, clicked positions) and its number of SERPs.

    query_id   int64    query
    region_id  int64?   region of the query
    holdout    bool     held out: used to score, never to fit
    items      [int64]  the list shown, from the first position down
    clicks     int64    clicked positions as bits, the first position lowest
    count      int64    number of SERPs
    """)  # fmt: skip

MODELS = _table("models", """
    One row per click model, parameter and query. Lists are in the order of `items`; of positions,
        from 1; of UBM's (position, previous click): (1, none), (2, none), (2, 1), (3, none), ...;
        of the classes of users for their `share`.

    model         string       click model, for instance DCM
    method        string       how it was estimated: em, mle, guo, counting, or truth
    scope         string       partial, per-query, or pooled: whose the position parameters are
    query_id      int64?       query; null for a shared parameter, and for queries never seen
    region_id     int64?       region of the query
    parameter     string       attraction, termination, examination, ...; share: of the classes
    class         int32?       class of users, from 1, those first who click least; null where users
                               do not differ, and for their shares
    items         [int64]?     the items whose parameter it is, the most shown first; else null
    value         [float64]    the values that simulators use
    unseen        float64?     that of an item of the query never seen
    low           [float64]?   lower ends of the 95% intervals
    high          [float64]?   upper ends of the 95% intervals
    observations  [float64]?   numbers of (expected) observations behind the values
    raw           [float64]?   plain estimates, where values were replaced by a convention
    prior         [bool]?      whether a value rests on the prior more than on the clicks; null
                               where it was not estimated, or nobody knows
    draws         [[float32]]? of each value, from the joint posterior: the n-th of all values
                               belong together
    shown         [bool]?      whether the log showed an item; null but in `periods`
    """)  # fmt: skip

PARAMETERS = _table("parameters", """
    One row per value of a click model: `FittedModels.table()`.

    model         string      click model, for instance DCM
    method        string      how it was estimated: em, mle, guo, counting, or truth
    scope         string      partial, per-query, or pooled: whose the position parameters are
    query_id      int64?      query; null for a shared parameter, and for queries never seen
    region_id     int64?      region of the query
    parameter     string      attraction, termination, examination, ...; share: of a class of users
    item_id       int64?      item; null for a position parameter, and for items of the query never
                              seen
    position      int32?      position, from 1; null likewise
    previous      int32?      position of the previous click, 0 for none (UBM only)
    class         int32?      class of users, from 1, those first who click least; null where users
                              do not differ
    value         float64     the value that simulators use
    low           float64?    lower end of the 95% interval
    high          float64?    upper end of the 95% interval
    observations  float64?    number of (expected) observations behind the value
    raw           float64?    the plain estimate, where the value was replaced by a convention
    prior         bool?       whether the value rests on the prior more than on the clicks; null
                              where it was not estimated, or nobody knows
    draws         [float32]?  values from the joint posterior: the n-th of all rows belong together
    """)  # fmt: skip

PERIODS = pa.schema(
    [
        pa.field("period", pa.int32(), False, {"doc": "period of the log, from 1"}),
        *MODELS,
    ],
    {"doc": "The rows of `models` by period of the log, beside it (`fit-models --periods`)."},
)
TABLES["periods"] = PERIODS

QUERIES = _table("queries", """
    One row per click model and query it was fitted to, beside `models`.

    model      string    click model
    query_id   int64     query
    region_id  int64?    region of the query
    serps      int64?    number of SERPs the model was fitted to; null where it was not fitted to a
                         log
    positions  int32     K: the longest list of the query
    items      [int64]   its items, the most shown first
    base       [int64]?  the list shown most often, which may hold items that were dropped as rarely
                         shown; of a synthetic log, the first page of the production ranking; null
                         where unknown
    identified float64?  share of its impressions whose items and positions the clicks compare with
                         each other; the query carries the model from 0.8; null where unknown
    """)  # fmt: skip

LISTS = _table("lists", """
    One row per query and list that the log showed, beside `models`: today's ranker.

    query_id   int64    query
    region_id  int64?   region of the query
    serps      int64    SERPs, of those the models were fitted to, with this list
    items      [int64]  the list shown, from the first position down
    clicks     [int64]  clicked results among the first k positions, added over the SERPs, for every
                        k
    squares    [int64]  the squares of the same, SERP by SERP, added
    """)  # fmt: skip

QUALITY = _table("quality", """
    One row per measured quality of a click model on held-out SERPs.

    model      string   click model
    baseline   string?  for a difference: the model it is measured from; else null
    measure    string   log-likelihood, perplexity or conditional-perplexity
    rank       int64?   rank, from 1; null for all of them
    frequency  string?  SERPs of the query in the training part, as a band; null for all queries
    serps      int64    number of SERPs scored
    value      float64  the measure, or the difference in it
    low        float64  lower end of the 95% bootstrap interval
    high       float64  upper end of the 95% bootstrap interval
    """)  # fmt: skip

CHECKS = _table("checks", """
    One row per click model, predictive check, and (or null) query.

    model       string    click model
    check       string    what is compared; docs/checking.md lists the checks
    query       string?   query; null for all of them together
    serps       int64     number of SERPs compared
    components  int64     ratios with events enough to be judged; 0: no check
    error       float64   total variation distance of a distribution, or mean error of click-through
                          rates
    p_value     float64   of this check alone
    corrected   float64   corrected for all checks and queries of the model together
    faulted     bool      whether the corrected p-value is at most 0.025
    worst       string?   the ratio that is furthest off
    observed    float64?  that ratio in the log
    expected    float64?  that ratio in simulations of the model
    low         float64?  lower end of 95% of the simulations
    high        float64?  upper end of 95% of the simulations
    """)  # fmt: skip

CURVES = _table("curves", """
    The ratios behind the rows of `checks`, as figures draw them.

    model      string   click model
    check      string   what is compared
    query      string?  query; null for all of them together
    component  string   the ratio, as `rank 3` or `2 clicks`
    x          float64  its place on the axis of a figure
    observed   float64  in the log
    expected   float64  in simulations of the model
    low        float64  lower end of 95% of the simulations
    high       float64  upper end of 95% of the simulations
    z          float64  deviation in standard deviations; 0 with too few events
    faulted    bool     whether it deviates by more than the family allows
    """)  # fmt: skip

RUNS = _table("runs", """
    One row per simulator, track, policy, query, draw, run and checkpoint t.

    simulator            string    click model, or the name of a synthetic problem
    track                string    ranking: a step shows a list; rank1: an item at a position;
                                   contextual: a list of items with features
    policy               string    policy with its parameters, for instance dcmKL-UCB
    query                string    query_id@region_id, query_id, or synthetic; several in turn:
                                   joined by +
    draw                 int32     draw of the parameters of the simulator, from 1; 0: the fitted
                                   values themselves
    run                  int32     run, from 0; equal runs of two policies meet the same users
    t                    int64     number of steps so far
    regret               float64   cumulative expected regret
    reward               float64   cumulative expected reward of what was shown
    optimal_reward       float64   cumulative expected reward of the best list or pair; where it is
                                   not proven to be best, of best_known
    clicks               int64     number of clicks
    optimal_steps        int64     number of steps without regret (below 1e-9)
    best_known           float64?  most expected reward of a search that is known: of the best list
                                   found, or of one that any policy of this table showed; null where
                                   the best list is proven, or changes
    expected_clicks      float64?  cumulative expected clicks on what was shown; null in the
                                   contextual track
    pair_regret          float64?  cumulative expected regret of one pair: in the rank1 track regret
                                   itself; in the ranking track that of the item at the most
                                   examined position; null without a PBM
    pair_optimal_reward  float64?  cumulative expected reward of the best pair; null without a PBM
    rows_left            int32?    items not eliminated yet; null for policies that do not eliminate
    columns_left         int32?    positions not eliminated yet; likewise
    cosine_distance      float64?  of the estimated theta to the true one; null where there is none
    """)  # fmt: skip

PROBLEMS = _table("problems", """
    One row per simulator, track, query and draw: what is known beforehand.

    simulator         string    as in the runs table
    track             string    as in the runs table
    query             string    as in the runs table
    draw              int32     as in the runs table
    reward            string    what is counted: satisfaction, clicks or any-click
    positions         int32     K: number of positions
    items             int32     L: number of items
    serps             int64?    SERPs that the simulator was fitted to; null where it was not fitted
                                to a log
    proven            bool      whether the best list is proven to be best
    gap               float64?  how much more per search another list may earn than the best one
                                found; null where that is not known
    best              float64?  expected reward per search of the best list or pair; null where it
                                changes
    ranker            float64?  expected reward per search of today's ranker; null where its lists
                                are unknown
    top_list          float64?  likewise, of the list it shows most often
    covered           float64?  share of the query's SERPs whose lists could be simulated, for the
                                ranker
    best_clicks       float64?  most expected clicks per search of any list
    ranker_clicks     float64?  expected clicks per search of today's ranker
    log_clicks        float64?  clicked results per SERP of the same lists in the log itself
    log_clicks_error  float64?  standard error of log_clicks
    mu                float64?  rank1: smaller of the mean row and mean column (rank1elimkl, eq. 3)
    p_max             float64?  rank1: largest row or column mean (eq. 4)
    gamma             float64?  rank1: max(mu, 1 - p_max) (eq. 5)
    n                 int64     horizon
    bound             float64?  rank1: upper bound on the regret of Rank1ElimKL after n steps
                                (Theorem 1); infinite when all rows or all columns are equal
    """)  # fmt: skip

FEATURES = _table("features", """
    One row per item of a query: its vector from the clicks of the log.

    query_id     int64      query
    region_id    int64?     region of the query
    item_id      int64      item
    impressions  int64      SERPs of the query that show it, in the other half
    vector       [float64]  row of V of the item, scaled so that the longest has norm 1; 0 if never
                            clicked
    """)  # fmt: skip

USER_FEATURES = _table("user_features", """
    One row per user: the vector from the user's clicks.

    user_id  int64      user
    vector   [float64]  row of U S of the user, scaled so that the longest has norm 1
    """)  # fmt: skip

FACTORS = _table("factors", """
    The tastes behind a log made with `generate --taste`: the logit of an item's attraction has
            taste * (user's factors . item's factors) added.

    kind     string     user or item
    id       int64      user_id or item_id
    factors  [float64]  the true factors of taste
    """)  # fmt: skip

ESTIMATES = _table("estimates", """
    One row per target, query and estimator of `logeval replay estimate`. Of a query that an
        estimator does not cover, for want of support, it has no value; rows over all queries are
        about those that it covers.

    target               string    the ranker: a table, log:FOLDER, day:27, best:dcm, ...
    query                string?   query; null for all of them
    estimator            string    estimator with its parameters, for instance DR(ubm)
    positions            int32     K: the positions that count
    value                float64?  estimated clicks per SERP, or per placement of a log without
                                   lists; null without support
    low                  float64?  lower end of the 95% interval
    high                 float64?  upper end of the 95% interval
    truth                float64?  clicks per SERP of a target that is a log; else null
    truth_low            float64?  lower end of its 95% interval
    truth_high           float64?  upper end
    logged               float64?  clicks per SERP of the log that the estimate is from
    difference           float64?  value - logged
    difference_low       float64?  its 95% interval, paired
    difference_high      float64?  likewise
    worse                float64?  probability that the target earns less than the logger
    serps                int64     SERPs of a target that is a log, else those of the log; over
                                   all queries, of those that are covered
    covered              float64   share of the target's SERPs that the value is about
    support              float64?  share of what the target shows that the log has shown, by the
                                   estimator's own cells; null for DM
    effective_serps      float64?  (sum of weights)^2 / sum of their squares, mean over positions;
                                   null for DM
    clipped              float64?  share of (SERP, position)s whose weight was clipped
    largest_weight       float64?  largest weight before clipping
    supported_positions  int32?    largest K up to which every position has the support that is
                                   asked for; null for DM
    reward                 float64?  value in the second reward; null where the log has none
    reward_low             float64?  lower end of its 95% interval
    reward_high            float64?  upper end
    reward_logged          float64?  second reward per SERP of the log
    reward_difference      float64?  reward - reward_logged
    reward_difference_low  float64?  its 95% interval, paired
    reward_difference_high float64?  likewise
    """)  # fmt: skip

VALIDATION = _table("validation", """
    One row per estimator, K and clip of `logeval replay validate`.

    estimator  string    estimator with its parameters
    positions  int32     K
    clip       float64?  the largest weight allowed; null: chosen for each part on the other parts
    parts      int32     days or parts that were left out in turn
    serps      int64     SERPs whose clicks were predicted
    rmse       float64   root mean squared error over parts and queries, by their SERPs
    low        float64   lower end of its 95% interval, over parts
    high       float64   upper end of its 95% interval, over parts
    bias       float64   mean error
    floor      float64   RMSE of a perfect estimate: the noise of the clicks
    skill      float64?  1 - (rmse^2 - floor^2) / (RCTR's rmse^2 - floor^2): 1 is perfect, 0 is the
                         logger's own value; null where RCTR is at the floor
    support    float64?  mean support of the parts
    sharpe     float64?  Sharpe ratio at 3: true clicks of the best of the three parts that are
                         predicted to be best, minus those of the log, by the standard deviation of
                         the three
    slope      float64?  slope of held-out clicks on those predicted, list by list, at the largest
                         K; 1 is perfect, 0 knows nothing of lists
    slope_low  float64?  lower end of its 95% interval
    slope_high float64?  upper end of it
    """)  # fmt: skip

REPLAYS = _table("replays", """
    One row per policy, query, shuffle and checkpoint of `replay policy`.

    policy     string    policy with its parameters
    query      string    query
    run        int32     shuffle of the log, from 0
    t          int64     number of accepted SERPs so far
    clicks     float64?  clicked results on them; null if the queue was exhausted before
    any_click  float64?  SERPs among them with a click; likewise
    steps      int64     SERPs accepted in the whole run
    passed     int64     SERPs that the run went through
    serps      int64     SERPs of the query
    exhausted  bool      the run ended since no SERP showed the wanted list
    """)  # fmt: skip

EARNINGS = _table("earnings", """
    One row per policy and moment of `decide`: what it earns in the place of today's ranker.

    policy  string    the policy; today's ranker, and best lists
    t       float64   day, or search of the whole period, at which the piece ends
    reward  float64   reward per search of the piece
    low     float64?  lower end of the 95% interval of its difference to today's ranker, from there
    high    float64?  upper end
    """)  # fmt: skip

GAINS = _table("gains", """
    One row per query of `decide`: today's ranker there, and the policy that was chosen.

    query     string    name of the query
    searches  float64   in the period
    results   int64     of them known: those that policies may show
    today     float64   reward of a search of today's ranker
    best      float64   reward of a search of the best list
    policy    string?   the policy that gains most, or that was chosen
    gain      float64?  of the policy, as a share of what today's ranker earns on the query
    low       float64?  lower end of its 95% interval
    high      float64?  upper end
    """)  # fmt: skip


def markdown() -> str:
    """The schemas of all tables, as in docs/tables.md."""
    text = [
        "# Tables",
        "",
        "Made by `python -m logeval.storage.schemas > docs/tables.md`.",
        "",
        READ,
    ]
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
