"""Targets from tables and logs, refusals, bad input, and the command."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from logeval import LogevalError
from logeval.cli import app
from logeval.clicks.models.pbm import PBM
from logeval.replay.stages import replay_estimate
from logeval.reports.page import Content, Page
from logeval.reports.sections.regret import the_replay
from logeval.running import seeds
from logeval.storage.tables import path_of
from tests.replay.worlds import all_lists
from tests.serps import Serp, write_serps

K = 2
W = np.array([0.6, 0.4, 0.2, 0.1])
USERS = PBM(items=np.array([11, 12, 13, 14]), K=K, w=W, e=np.array([1.0, 0.5]))


def drawn(seed, n, first=0, lists=None):
    rng = seeds.generator(seed, "log")
    lists = all_lists(4, K) if lists is None else lists
    out = []
    for query in (1, 2):
        A = lists[rng.integers(len(lists), size=n)]
        C = USERS.sample(A, rng.random(A.shape))
        ids = USERS.items[A] + 100 * query
        out += [
            Serp(query, a, c, first + i, day=1 + i % 3, propensities=[1 / 4, 1 / 4])
            for i, (a, c) in enumerate(zip(ids.tolist(), C.tolist(), strict=True))
        ]
    return out


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return write_serps(tmp_path_factory.mktemp("replay") / "log", drawn(0, 900))


def table(path, rows, columns="query,rank,item"):
    path.write_text(columns + "\n" + "\n".join(rows) + "\n")
    return str(path)


GOOD = ["1,1,111", "1,2,112", "2,1,214", "2,2,213"]


def truth(items):
    return float((USERS.e * W[items]).sum())


def test_a_table_of_lists(log, tmp_path):
    target = table(tmp_path / "t.csv", GOOD)
    names = ["List", "Prefix", "IP", "PBM", "DR", "RCTR"]
    found = replay_estimate(log, target, estimators=names, rounds=100, refits=3, quiet=True)
    rows = found.table.set_index(["query", "estimator"])
    for name in names[:-1]:
        assert rows.loc[("1", name), "value"] == pytest.approx(truth([0, 1]), abs=0.21)
        assert rows.loc[("2", name), "value"] == pytest.approx(truth([3, 2]), abs=0.21)
    overall = found.overall().set_index("estimator")
    assert overall.loc["IP", "value"] == pytest.approx(
        (rows.loc[("1", "IP"), "value"] + rows.loc[("2", "IP"), "value"]) / 2
    )
    assert (overall["low"] < overall["value"]).all()
    assert (overall["support"] == 1).all()
    assert overall.loc["RCTR", "difference"] == pytest.approx(0, abs=1e-12)
    assert overall.loc["RCTR", "difference_high"] == pytest.approx(0, abs=1e-6)
    assert overall.loc["List", "effective_serps"] < overall.loc["IP", "effective_serps"]
    # the same by hand, for IP and query 1
    ctr = [[], []]
    for s in drawn(0, 900):
        for k, item in enumerate((111, 112)):
            if s.query_id == 1 and s.items[k] == item:
                ctr[k].append(s.clicks[k] > 0)
    assert rows.loc[("1", "IP"), "value"] == pytest.approx(sum(map(np.mean, ctr)), abs=1e-9)


def test_marginals_equal_the_lists_they_come_from(log, tmp_path):
    lists = table(
        tmp_path / "lists.csv",
        ["1,a,1,111,.5", "1,a,2,112,.5", "1,b,1,112,.5", "1,b,2,111,.5"],
        "query,list,rank,item,probability",
    )
    ranks = table(
        tmp_path / "ranks.csv",
        ["1,1,111,.5", "1,1,112,.5", "1,2,111,.5", "1,2,112,.5"],
        "query,rank,item,probability",
    )
    names = ["IP", "PBM", "Item", "DR"]
    a, b = (
        replay_estimate(log, t, estimators=names, rounds=0, quiet=True).table["value"]
        for t in (lists, ranks)
    )
    assert a.to_numpy() == pytest.approx(b.to_numpy(), abs=1e-9)
    for name, reason in (("List", "whole lists"), ("DM(dcm)", "item and position")):
        with pytest.raises(LogevalError, match=reason):
            replay_estimate(log, ranks, estimators=[name], rounds=0, quiet=True)


def test_a_log_as_target_has_a_truth(log, tmp_path):
    other = write_serps(tmp_path / "other", drawn(5, 400, lists=all_lists(4, K)[:3]))
    found = replay_estimate(log, f"log:{other}", estimators=["IP"], rounds=50, quiet=True)
    row = found.overall().iloc[0]
    clicks = [sum(c > 0 for c in s.clicks) for s in drawn(5, 400, lists=all_lists(4, K)[:3])]
    assert row["truth"] == pytest.approx(np.mean(clicks))
    assert row["serps"] == 800
    assert row["value"] == pytest.approx(row["truth"], abs=0.12)


def test_the_day_that_is_the_target_is_not_used(log):
    found = replay_estimate(log, "day:2", estimators=["IP", "RCTR"], rounds=0, quiet=True)
    mine = [s for s in drawn(0, 900) if s.day == 2]
    rest = [s for s in drawn(0, 900) if s.day != 2]
    row = found.overall().iloc[1]
    assert row["truth"] == pytest.approx(np.mean([sum(s.clicks) for s in mine]))
    assert row["value"] == pytest.approx(np.mean([sum(s.clicks) for s in rest]))


@pytest.mark.parametrize("target", ["logged", "random", "by-ctr", "best:pbm"])
def test_built_in_targets(log, target):
    estimates = replay_estimate(
        log, target, estimators=["List", "Prefix", "IP"], rounds=0, quiet=True
    )
    warned = estimates.verdict().fact("chosen-on-these-clicks") is not None
    assert warned == (target in ("by-ctr", "best:pbm"))
    found = estimates.overall()
    assert (found["support"] == 1).all()
    lists = {"by-ctr": truth([0, 1]), "best:pbm": truth([0, 1])}
    uniform = W.mean() * 1.5
    assert found["value"].to_numpy() == pytest.approx(lists.get(target, uniform), abs=0.1)


def test_two_targets_are_paired_in_the_same_draws(log, tmp_path):
    one = table(tmp_path / "one.csv", GOOD)
    same = table(tmp_path / "same.csv", GOOD)
    found = replay_estimate(log, [one, same], estimators=["IP"], rounds=60, quiet=True).overall()
    rows = found.drop(columns=["target", "truth"])
    assert rows.iloc[0].equals(rows.iloc[1])


def test_logged_propensities(log, tmp_path):
    target = table(tmp_path / "t.csv", GOOD)
    found = replay_estimate(
        log, target, estimators=["IP"], propensities="logged", rounds=20, quiet=True
    ).overall()
    n = clicks = 0
    for s in drawn(0, 900):
        wanted = {1: [111, 112], 2: [214, 213]}[s.query_id]
        clicks += sum(4 * c for c, a, b in zip(s.clicks, s.items, wanted, strict=True) if a == b)
        n += 1
    assert found["value"].iloc[0] == pytest.approx(clicks / n)
    assert found["largest_weight"].iloc[0] == 4
    with pytest.raises(LogevalError, match="use IP or DR"):
        replay_estimate(log, target, estimators=["List"], propensities="logged", quiet=True)


def test_queries_without_support_are_left_out_and_have_no_value(log, tmp_path):
    """Item 999 was never shown: of query 1 List has no support, and IP half of it."""
    target = table(tmp_path / "t.csv", ["1,1,111", "1,2,999", "2,1,214", "2,2,213"])
    alone = table(tmp_path / "alone.csv", ["2,1,214", "2,2,213"])
    found, second = (
        replay_estimate(log, t, estimators=["List", "IP", "RCTR"], rounds=50, quiet=True)
        for t in (target, alone)
    )
    rows = found.table.set_index(["query", "estimator"])
    for name in ("List", "IP"):
        left_out, kept = rows.loc[("1", name)], rows.loc[("2", name)]
        assert left_out[["value", "low", "difference"]].isna().all()
        assert left_out["covered"] == 0
        assert left_out["support"] < 0.8
        assert kept["covered"] == 1
        whole = found.overall().set_index("estimator").loc[name]
        same = second.overall().set_index("estimator").loc[name]
        for column in ("value", "logged", "difference", "serps", "support", "effective_serps"):
            assert whole[column] == pytest.approx(same[column]), column
        assert whole["value"] == pytest.approx(kept["value"])
        assert whole["covered"] == pytest.approx(
            kept["serps"] / (kept["serps"] + left_out["serps"])
        )
    assert found.overall().set_index("estimator").loc["RCTR", "covered"] == 1


def test_without_any_support_it_refuses_and_says_where(log, tmp_path):
    target = table(tmp_path / "t.csv", ["1,1,111", "1,2,999", "2,1,214", "2,2,999"])
    refused = r"List 0%.*no query has 80%.*1 up to K = 1.*positions.*with force=True"
    with pytest.raises(LogevalError, match=refused):
        replay_estimate(log, target, estimators=["List"], rounds=0, quiet=True)
    target = table(tmp_path / "t.csv", ["1,1,111", "1,2,999", "2,1,214", "2,2,213"])
    found = replay_estimate(
        log, target, estimators=["List", "IP"], rounds=0, force=True, quiet=True
    )
    support = found.overall().set_index("estimator")["support"]
    assert support["List"] == pytest.approx(0.5)
    assert support["IP"] == pytest.approx(0.75)


BAD = [
    (["1,1,111", "1,2,111"], "query,rank,item", "item 111 is there twice"),
    (["1,1,111", "1,3,112"], "query,rank,item", "rank 2 is missing"),
    (["1,1,111", "1,1,112"], "query,rank,item", "rank 1 is there twice"),
    (["1,1,111", "1,x,112"], "query,rank,item", "column 'rank', row 2"),
    (["1,111", "1,112"], "query,item", "no column 'rank'"),
    (["1,1,111,.5", "1,1,112,.4"], "query,rank,item,probability", "add up to 0.9, not 1"),
    (["1,1,111,1", "1,2,111,1"], "query,rank,item,probability", "with probability 2"),
    (["1,1,111,2"], "query,rank,item,probability", "not between 0 and 1"),
    (["1,a,1,111,.5"], "query,list,rank,item,probability", "lists add up to 0.5"),
    (["7,1,111", "8@2,1,5"], "query,rank,item", r"no SERPs of the queries of .* \(7, 8@2\)"),
    (["1,1,55", "1,2,56"], "query,rank,item", "of another log"),
    (["1,1,inf"], "query,rank,item", "column 'item', row 1: .*inf.* of 64 bits"),
    (['1,1,"a\nb"'], "query,rank,item", r"row 1: 'a\\nb' is not a whole number of 64 bits"),
    (["1,1,111"], 'query,"ra\nnk",item', r"no column 'rank' \(it has query, 'ra\\nnk', item\)"),
    (['1,"a\nb",2,111,1'], "query,list,rank,item,probability", r"list 'a\\nb': rank 1 is missing"),
    (["1,1,1e30"], "query,rank,item", "column 'item', row 1"),
    (["1,1,9007199254740993", "1,2,1.5"], "query,rank,item", "column 'item', row 1"),
    (["1,1,18446744073709551615"], "query,rank,item", "column 'item', row 1"),
    (["1,1,111,1", "1,999999999999,112,1"], "query,rank,item,probability", "from 1 to 1,000"),
    (["1,x,1,111"], "query_id,region_id,rank,item", "1@x"),
    (["1,inf,1,111", "1,,2,112"], "query_id,region_id,rank,item", "1@inf"),
]


@pytest.mark.parametrize(("rows", "columns", "message"), BAD)
def test_a_bad_target_is_refused_and_nothing_is_written(log, tmp_path, rows, columns, message):
    target = table(tmp_path / "bad.csv", rows, columns)
    with pytest.raises(LogevalError, match=message):
        replay_estimate(log, target, out=tmp_path / "out", rounds=0, quiet=True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positions": 3}, "lists of the log have at most 2"),
        ({"clip": 0}, "above 0"),
        ({"min_support": float("nan")}, "min_support=nan"),
        ({"clip": float("nan")}, "clip=nan"),
        ({"scope": "x"}, "scope='x': must be"),
        ({"estimators": ["ABC"]}, "unknown estimator"),
        ({"target": "day:99"}, "no SERPs"),
        ({"target": "day:x"}, "day:27"),
        ({"target": "nothing.csv"}, "no such file"),
        ({"target": "best:abc"}, "unknown"),
        ({"queries": ["77"]}, "no SERPs of query 77"),
    ],
)
def test_bad_arguments(log, tmp_path, changes, message):
    arguments = {"target": "logged", "rounds": 0, "quiet": True} | changes
    with pytest.raises(LogevalError, match=message):
        replay_estimate(log, out=tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()


def test_shorter_target_lists_than_positions(log, tmp_path):
    target = table(tmp_path / "t.csv", ["1,1,111"])
    with pytest.raises(LogevalError, match="target's lists have 1 items"):
        replay_estimate(log, target, positions=2, quiet=True)


def test_the_command_prints_rows_as_json_and_writes_a_folder(log, tmp_path):
    out = tmp_path / "out"
    arguments = ["replay", "estimate", str(log), "--target", "day:2", "-e", "IP", "-e", "DM"]
    arguments += ["--rounds", "20", "--refits", "2", "--out", str(out), "-q"]
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["rows"]
    wanted = {"query", "estimator", "positions", "value", "low", "high", "truth", "serps"}
    wanted |= {"support", "effective_serps", "clipped", "largest_weight"}
    assert wanted <= set(rows[0])
    assert [(r["query"], r["estimator"]) for r in rows[:3]] == [
        (None, "IP"), (None, "DM"), ("1", "IP"),
    ]  # fmt: skip
    assert rows[1]["support"] is None
    assert rows[1]["low"] < rows[1]["value"]
    assert (out / "estimates.png").exists()
    stored = pd.read_parquet(path_of(out, "estimates"))
    assert stored["value"].tolist() == [r["value"] for r in rows]
    before = (path_of(out, "estimates")).stat().st_mtime_ns
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 0
    assert "to the log [95%]" in again.stdout
    assert (path_of(out, "estimates")).stat().st_mtime_ns == before


def test_the_section_of_the_report_says_what_to_doubt(log, tmp_path):
    page = Page(tmp_path)
    found = replay_estimate(
        log, ["by-ctr", "random"], estimators=["IP", "DM"], clip=1.2, rounds=0, quiet=True
    )
    the_replay(page, Content([], replay=found))
    page.write("Replay", "")
    html = (tmp_path / "index.html").read_text()
    assert "What the log itself says" in html
    assert found.verdict().fact("clipped").about == "by-ctr"
    assert "clipped" in html
    assert (tmp_path / "figures" / "replay.pdf").exists()
    overall = pd.read_csv(tmp_path / "tables" / "replay.csv")
    assert overall["value"].to_numpy() == pytest.approx(found.overall()["value"].to_numpy())


def test_a_query_without_clicks_has_no_interval_rather_than_one_of_width_0(tmp_path):
    rows = [Serp(1, [1, 2], [i % 2, 0], i) for i in range(40)]
    rows += [Serp(2, [3, 4], [0, 0], 100 + i) for i in range(40)]
    log = write_serps(tmp_path / "log", rows)
    found = replay_estimate(log, "logged", estimators=["IP"], rounds=50, quiet=True)
    table = found.table.set_index("query")
    assert table.loc["2", "value"] == 0
    assert table.loc["2", ["low", "high", "difference_low", "difference_high"]].isna().all()
    assert table.loc["1", "low"] < 0.5 < table.loc["1", "high"]
    # the logger against itself is exactly 0, whatever the draw
    assert table.loc["1", ["difference_low", "difference_high"]].abs().max() < 1e-6


def frame(rows, columns="query,rank,item"):
    return pd.DataFrame([row.split(",") for row in rows], columns=columns.split(","))


def test_a_frame_is_a_target_as_its_file_is(log, tmp_path):
    given = frame(GOOD).astype(int)
    before = given.copy()
    asked = {"estimators": ["IP", "DR"], "rounds": 20, "refits": 2, "quiet": True}
    of_frame = replay_estimate(log, given, **asked)
    of_file = replay_estimate(log, table(tmp_path / "t.csv", GOOD), **asked)
    columns = ["value", "low", "high", "support"]
    assert np.array_equal(of_frame.table[columns], of_file.table[columns])
    assert set(of_frame.table["target"]) == {"table"}
    pd.testing.assert_frame_equal(given, before)
    text = given.assign(query=given["query"].astype(float))  # as a blank in the column makes it
    again = replay_estimate(log, [given, text, "logged"], **asked)
    assert list(dict.fromkeys(again.table["target"])) == ["table", "table 2", "logged"]
    same = again.table[again.table["target"] == "table 2"]
    assert same["value"].to_numpy() == pytest.approx(of_file.table["value"].to_numpy())


def test_a_frame_that_changed_is_estimated_again(log, tmp_path):
    asked = {"estimators": ["IP"], "rounds": 0, "out": tmp_path / "out", "quiet": True}
    first = replay_estimate(log, frame(GOOD), **asked)
    other = replay_estimate(log, frame([row[:-1] + "1" for row in GOOD[:1]] + GOOD[1:]), **asked)
    assert other.manifest["inputs"] == first.manifest["inputs"]
    changed = replay_estimate(log, frame(["1,1,113", *GOOD[1:]]), **asked)
    assert changed.manifest["inputs"] != first.manifest["inputs"]
    assert changed.overall()["value"].iloc[0] != first.overall()["value"].iloc[0]


@pytest.mark.parametrize(
    ("rows", "columns", "message"), [(["1,111"], "query,item", "no column 'rank'")]
)
def test_a_bad_frame_is_refused_as_a_bad_file_is(log, rows, columns, message):
    with pytest.raises(LogevalError, match=message):
        replay_estimate(log, frame(rows, columns), quiet=True)


def test_queries_that_the_log_lacks_are_left_out_and_said(log):
    rows = [*GOOD, "7,1,1", "7,2,2", "8@3,1,1", "8@3,2,2"]
    asked = {"estimators": ["IP"], "rounds": 0, "quiet": True}
    found = replay_estimate(log, frame(rows), **asked)
    assert [fact.record() for fact in found.facts] == [
        {"code": "unknown-queries", "about": "table", "level": "caution", "value": 2,
         "threshold": 4, "more": {"queries": ["7", "8@3"]}}
    ]  # fmt: skip
    alone = replay_estimate(log, frame(GOOD), **asked)
    assert found.overall()["value"].iloc[0] == alone.overall()["value"].iloc[0]
    with pytest.raises(LogevalError, match=r"no SERPs of the queries of the target \(7\)"):
        replay_estimate(log, frame(["7,1,1"]), **asked)


def test_a_target_of_one_query_says_so(log):
    found = replay_estimate(log, frame(GOOD[:2]), estimators=["IP"], rounds=20, quiet=True)
    assert found.manifest["log_queries"] == 2
    assert found.verdict().fact("part-of-the-log").value == 0.5
    chosen = replay_estimate(
        log, frame(GOOD[:2]), estimators=["IP"], rounds=20, queries=[1], quiet=True
    )
    assert chosen.verdict().fact("part-of-the-log") is None


def test_a_list_of_a_query_stands_for_all_its_regions(tmp_path):
    serps = [Serp(5, [1, 2], [1, 0], i, region_id=i % 2) for i in range(40)]
    log = write_serps(tmp_path / "log", serps)
    found = replay_estimate(log, frame(["5,1,1", "5,2,2"]), estimators=["IP"], rounds=0, quiet=True)
    assert sorted(found.table["query"].dropna()) == ["5@0", "5@1"]
    assert found.facts == []


def test_queries_with_fewer_items_than_positions_are_left_out_and_said(tmp_path):
    serps = [Serp(1, [1, 2, 3], [1, 0, 0], i) for i in range(30)]
    serps += [Serp(2, [4], [1], 100 + i) for i in range(10)]
    log = write_serps(tmp_path / "log", serps)
    for target in ("random", "by-ctr", "best:pbm"):
        found = replay_estimate(log, target, estimators=["Item"], positions=2, rounds=0, quiet=True)
        assert set(found.table["query"].dropna()) == {"1"}
        (fact,) = found.facts
        assert (fact.code, fact.about, fact.value) == ("short-queries", target, 1)
        assert (fact.threshold, fact.more) == (2, {"K": 2})


def test_one_target_without_support_does_not_stop_the_others(log):
    strange = frame(["1,1,111", "1,2,999", "2,1,999", "2,2,213"])
    found = replay_estimate(
        log, [strange, "logged"], estimators=["List", "IP"], rounds=20, quiet=True
    )
    overall = found.overall().set_index(["target", "estimator"])["value"]
    assert overall.loc["table"].isna().all()
    assert overall.loc["logged"].notna().all()
    said = found.verdict()
    assert said.conclusion[0].about == "logged"
    assert said.fact("ranker-unknown").about == "table"


# -- estimators that contradict each other ----------------------------------------------------


def cascade_log(folder, n=3000):
    """Users who read from the top and stop after a click: an item and its rank are not enough."""
    rng = seeds.generator(3, "cascade")
    w = np.array([0.8, 0.5, 0.1])
    serps = []
    for i in range(n):
        items = rng.permutation(3) if i % 3 else np.array([2, 1, 0])
        clicks, reading = [], True
        for a in items:
            clicks.append(int(reading and rng.random() < w[a]))
            reading = reading and not clicks[-1]
        serps.append(Serp(1, (items + 1).tolist(), clicks, i))
    return write_serps(folder, serps)


def test_estimators_that_differ_by_more_than_chance_are_kept_and_said(tmp_path):
    log = cascade_log(tmp_path / "log")
    target = frame(["1,1,3", "1,2,1", "1,3,2"])
    found = replay_estimate(
        log, target, estimators=["IP", "PBM", "Prefix", "List"], rounds=200, refits=0, quiet=True,
        out=tmp_path / "out",
    )  # fmt: skip
    values = found.overall().set_index("estimator")["value"]
    pairs = {(c["first"], c["second"]): c for c in found.contradictions}
    assert pairs
    for (first, second), pair in pairs.items():
        assert pair["difference"] == pytest.approx(values[first] - values[second])
        assert not pair["low"] <= 0 <= pair["high"]
    assert not any({"Prefix", "List"} == set(pair) for pair in pairs)
    again = replay_estimate(
        log, target, estimators=["IP", "PBM", "Prefix", "List"], rounds=200, refits=0, quiet=True,
        out=tmp_path / "out",
    )  # fmt: skip
    assert again.contradictions == found.contradictions
    assert found.verdict().fact("assumes").more["estimator"] == "List"
    assert found.verdict().fact("contradicted") is not None


def test_users_of_item_and_position_contradict_nothing(log):
    found = replay_estimate(
        log, frame(GOOD), estimators=["List", "Prefix", "IP", "PBM"], rounds=200, quiet=True
    )
    assert found.contradictions == []


def test_a_second_reward_is_estimated_beside_the_clicks(tmp_path):
    """What was paid of each result: IP is the sum of h times the mean of an item at a position."""
    serps = drawn(3, 600)
    rng = np.random.default_rng(0)
    for s in serps:
        s.rewards = [float(rng.integers(1, 30)) if c and rng.random() < 0.3 else None
                     for c in s.clicks]  # fmt: skip
    log = write_serps(tmp_path / "log", serps)
    asked = {"estimators": ["IP", "List", "DR", "DM", "RCTR"], "refits": 3, "quiet": True}
    found = replay_estimate(log, frame(GOOD), rounds=50, out=tmp_path / "out", **asked)
    rows = found.overall().set_index("estimator")
    paid = [[], []]
    for s in serps:
        for k, item in enumerate({1: (111, 112), 2: (214, 213)}[s.query_id]):
            if s.items[k] == item:
                paid[k].append((s.query_id, s.rewards[k] or 0.0))
    by_query = [pd.DataFrame(x).groupby(0)[1].mean() for x in paid]
    expected = sum(mean.mean() for mean in by_query)  # both queries are asked as often
    assert rows.loc["IP", "reward"] == pytest.approx(expected)
    earned = np.mean([sum(x or 0.0 for x in s.rewards) for s in serps])
    assert rows["reward_logged"].to_numpy() == pytest.approx(earned)
    assert rows.loc["RCTR", "reward_difference"] == pytest.approx(0, abs=1e-9)
    for name in ("IP", "List", "DR", "DM"):
        row = rows.loc[name]
        assert row["reward_low"] < row["reward"] < row["reward_high"]
        assert row["reward"] == pytest.approx(expected, rel=0.5)
    assert rows.loc["DR", "reward"] == pytest.approx(expected, rel=0.1)
    # clicks are as they are without it
    for s in serps:
        s.rewards = None
    alone = replay_estimate(write_serps(tmp_path / "alone", serps), frame(GOOD), rounds=0, **asked)
    columns = ["value", "support", "logged"]
    assert alone.overall()[columns].to_numpy() == pytest.approx(
        found.overall()[columns].to_numpy(), abs=1e-6, nan_ok=True
    )
    assert alone.table["reward"].isna().all()
    done = CliRunner().invoke(
        app, ["replay", "estimate", str(log), "--target", "by-ctr", "-e", "IP", "--force", "-q"]
    )
    assert "Second reward at K = 2" in done.stdout


def test_lists_that_begin_further_down_have_their_positions(tmp_path):
    """A second page of ranks 3 and 4 counts there; in the first two positions it is no search."""
    serps = drawn(4, 200)
    second = [Serp(1, [113, 114], [1, 0], 5000 + i, first=3) for i in range(50)]
    log, alone = (
        write_serps(tmp_path / name, rows)
        for name, rows in (("log", serps + second), ("alone", serps))
    )
    asked = {"estimators": ["IP", "List", "DR"], "rounds": 0, "refits": 0, "quiet": True}
    found, expected = (
        replay_estimate(each, frame(GOOD), positions=2, **asked).overall() for each in (log, alone)
    )
    assert found["value"][:2].to_numpy() == pytest.approx(expected["value"][:2].to_numpy())
    whole = replay_estimate(log, "logged", positions=4, queries=[1], **asked).overall()
    assert whole["value"].to_numpy() == pytest.approx(
        (sum(sum(s.clicks) for s in serps if s.query_id == 1) + 50) / 250, abs=1e-6
    )
