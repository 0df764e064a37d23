"""What columns are taken for, what is not used, and what is asked for."""

import shlex

import pandas as pd
import pytest
from typer.testing import CliRunner

import logeval
from logeval.cli import app
from logeval.errors import LogevalError
from logeval.log.tables.frame import Frame
from logeval.log.tables.roles import check_complete, recognise
from tests.log import written
from tests.log.named import named

LONG = {
    "search_id": ["a", "a", "b"],
    "search_term": ["q", "q", "r"],
    "url": ["x", "y", "x"],
    "position": [1, 2, 1],
    "is_click": [0, 1, 0],
}

HEADER, ROW = "search_id,query,item,position,clicks\n", "1,q,a,1,0\n"


def layout_of(columns, given=None):
    frame = Frame(pd.DataFrame(columns))
    return check_complete(frame, recognise(frame, given or {}))


def test_the_sentence_says_what_was_taken_for_what_and_what_is_not_used():
    found = layout_of(LONG | {"device": ["m", "d", "m"], "price": [1.0, 2.0, 3.0]})
    assert found.sentence() == (
        "rows per result; search = search_id, query = search_term, item = url, "
        "position = position, clicks = is_click; not used: device, price"
    )
    assert layout_of(LONG).sentence().endswith("not used: nothing")


@pytest.mark.parametrize(
    ("names", "role", "column"),
    [
        (["SessionID", "Session"], "session", "SessionID"),
        (["sessionid"], "session", "sessionid"),
        (["Propensity"], "propensity", "Propensity"),
        (["User Id"], "user", "User Id"),
        (["region"], "region", "region"),
        (["domain", "host"], "domain", "domain"),
        (["random_bool"], "random", "random_bool"),
        (["query_id"], "query", "search_term"),  # the text comes first
    ],
)
def test_names_are_known_without_case_and_punctuation(names, role, column):
    assert layout_of(LONG | {name: [1, 1, 1] for name in names}).column(role) == column


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("propensty", "is it the propensity? then map propensity=propensty"),
        ("sesion_id", "is it the session? then map session=sesion_id"),
        ("usr_id", "is it the user? then map user=usr_id"),
    ],
)
def test_a_slip_of_the_pen_is_named(name, hint):
    found = layout_of(LONG | {name: [0.5, 1, 1]})
    assert f"not used: {name} ({hint})" in found.sentence()


def test_a_column_that_only_sounds_like_a_role_is_not_used_and_said():
    found = layout_of(LONG | {"time": ["soon", "late", "now"], "propensity": ["low", "high", "x"]})
    assert "time (no times: ISO 8601, or seconds since 1970)" in found.sentence()
    assert "propensity (no probabilities)" in found.sentence()
    assert set(found.columns) == {"search", "query", "item", "position", "clicks"}
    with pytest.raises(LogevalError, match="row 1: not a time"):
        logeval.ingest(
            pd.DataFrame(LONG | {"time": ["soon", "late", "now"]}), columns={"time": "time"},
            quiet=True,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        (
            "position",
            r"no column for position .*in its rows per result; .*--map position=COLUMN",
        ),
        (
            "search_id",
            r"no column for search \(which rows are one search\).*session\+query; user",
        ),
        ("search_term", "no column for query"),
        ("url", r"no column for item \(the result\) in its rows per result; .*--map item=COLUMN"),
        ("is_click", r"no column for clicks \(clicks on the result\).*--map clicks=COLUMN"),
    ],
)
def test_what_is_missing_is_asked_for(gone, message):
    frame = pd.DataFrame(LONG).drop(columns=gone)
    with pytest.raises(LogevalError, match=message):
        logeval.ingest(frame, quiet=True)


@pytest.mark.parametrize("role", ["search", "query", "item", "position", "clicks"])
def test_the_one_column_that_is_missing_is_the_one_that_is_left(role, tmp_path):
    """What is proposed is what would do."""
    names = {"search": "search_id", "query": "q", "item": "url", "position": "rank"}
    names |= {"clicks": "is_click", role: "ours own"}
    rows = [{names[r]: v for r, v in row.items()} for row in ROWS]
    with pytest.raises(LogevalError) as told:
        logeval.ingest(pd.DataFrame(rows), quiet=True)
    assert f"--map '{role}=ours own'" in str(told.value)
    assert "yandex" not in str(told.value)
    log = logeval.ingest(pd.DataFrame(rows), columns={role: "ours own"}, quiet=True)
    assert log.serps("clicks")["clicks"].to_pylist() == [[0, 1], [1, 0]]
    pd.DataFrame(rows).to_csv(tmp_path / "log.csv", index=False)
    command = ["ingest", str(tmp_path / "log.csv"), "--out", str(tmp_path / "log")]
    said = CliRunner().invoke(app, command).stderr
    mapped = shlex.split(said[said.index("--map") :].split(",")[0])
    assert CliRunner().invoke(app, [*command, *mapped]).exit_code == 0


ROWS = [
    {"search": s, "query": "shoes", "item": i, "position": k, "clicks": c}
    for s, i, k, c in [("s", "a", 1, 0), ("s", "b", 2, 1), ("t", "c", 1, 1), ("t", "a", 2, 0)]
]


@pytest.mark.parametrize("text", ["1\t1\t7\t1\t0\n2\t1\t8\t2\t1\n", "s, 1,a, 1,0\nt, 1,b, 2,1\n"])
def test_a_file_without_names_of_columns_is_told_to_have_some(text, tmp_path):
    (tmp_path / "log.tsv").write_text(text)
    for columns in ({}, {"query": "1"}):
        with pytest.raises(LogevalError, match="no names of columns; put these there"):
            logeval.ingest(tmp_path / "log.tsv", columns=columns, quiet=True)


def test_the_user_comes_first():
    columns = {"query": "url", "item": "search_term", "clicks": "noted"}
    found = layout_of(LONG | {"noted": [1, 1, 1]}, columns)
    assert (found.column("query"), found.column("item")) == ("url", "search_term")
    assert found.unused == ["is_click"]
    log = logeval.ingest(pd.DataFrame(LONG | {"noted": [1, 1, 1]}), columns=columns, quiet=True)
    assert named(log)[0] == {"query": "x", "user": None, "items": ["q"], "clicks": [1]}


@pytest.mark.parametrize("name", ["items", "item", "query_id", "query"])
def test_both_our_names_of_a_role_may_be_mapped(name):
    frame = pd.DataFrame({"a": ["q"], "b": [["x", "y"]], "clicks": [[0, 1]]})
    columns = {"query_id" if name != "query" else name: "a"}
    columns |= {"items" if name != "item" else name: "b"}
    log = logeval.ingest(frame, columns=columns, quiet=True)
    assert named(log)[0]["items"] == ["x", "y"]


def test_what_columns_were_taken_for_is_in_the_manifest_and_on_stderr(tmp_path, capsys):
    log = logeval.ingest(pd.DataFrame(LONG), tmp_path / "out")
    (said,) = log.manifest["columns"]
    assert said.startswith("rows per result; search = search_id")
    assert said in capsys.readouterr().err


def test_the_unit_of_times_is_said():
    pages = written.pages(5)
    rows = [row | {"timestamp": 1_700_000_000_000} for row in written.results(pages)]
    frame = Frame(pd.DataFrame(rows))
    assert "time = timestamp" in recognise(frame, {}).sentence()
    assert "(milliseconds since 1970)" in recognise(frame, {}).sentence()


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([HEADER + ROW, "search_id,query,url,position,clicks\n1,q,a,1,0\n"],
         "has no column 'item', which .*a.csv has; its columns are search_id, query, url"),
        ([HEADER + ROW, "query,items,clicks\n1,a b,0 1\n"],
         "is table, others are long; do it one by one"),
        ([HEADER + ROW, "0\tM\t0\t0\n"],
         "tables and logs cannot be ingested together"),
        ([HEADER], "has no rows"),
        ([HEADER + ROW * 9 + "1,q\n"],
         r"1 of 10 rows .*row 10: 2 fields, not 5"),
        ([HEADER + ROW * 5 + "query,items,clicks\n7,a b,0 1\n"],
         r"2 of 7 rows .*row 6: 3 fields, not 5"),
        ([HEADER + ROW * 3 + HEADER],
         "row 4: clicks are no whole number from 0 on"),
        (['[{"search_id": 1}]'], "write one object per line"),
        (["a\0b,c\n1,2\n"], "not recognised"),
    ],
    ids=["header", "layouts", "a log", "empty", "short", "mixed", "header again", "array", "junk"],
)  # fmt: skip
def test_files_that_do_not_go_together_or_hold_something_else(tmp_path, files, message):
    paths = [tmp_path / f"{name}.csv" for name, _ in zip("abc", files, strict=False)]
    for path, text in zip(paths, files, strict=True):
        path.write_text(text)
    with pytest.raises(LogevalError, match=message):
        logeval.ingest(paths, tmp_path / "out", quiet=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [path.name for path in paths]


def test_columns_in_another_order_are_the_same_columns(tmp_path):
    (tmp_path / "a.csv").write_text(HEADER + ROW)
    (tmp_path / "b.csv").write_text("clicks,item,note,query,search_id,position\n1,b,x,q,1,2\n")
    log = logeval.ingest([tmp_path / "a.csv", tmp_path / "b.csv"], quiet=True)
    assert named(log) == [{"query": "q", "user": None, "items": ["a", "b"], "clicks": [0, 1]}]
