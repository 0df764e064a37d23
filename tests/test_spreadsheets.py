"""A name that somebody chose is text in a spreadsheet, never a formula."""

import csv
import io

import pandas as pd
import pytest

from logeval.reports.page import Page
from logeval.storage.spreadsheets import csv_of


def cells(text):
    return [row[0] for row in csv.reader(io.StringIO(text))][1:]


@pytest.mark.parametrize("name", ["=cmd|'/C calc'!A0", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "-"])
def test_formulas_become_text(name):
    assert cells(csv_of(pd.DataFrame({"target": [name]}))) == [f"'{name}"]
    assert csv_of(pd.DataFrame({name: [1]})).startswith(("'", "\"'"))


def test_everything_else_stays_as_it_is():
    frame = pd.DataFrame({
        "query": ["-5", "-5@0", "9982@0", None], "policy": ["RankedExp3", "a=b", "", "é"],
        "value": [-1.5, float("nan"), 1e-12, 2.0], "n": [1, -2, 3, 4],
        "id": pd.array([2**62, None, -1, 0], dtype="Int64"),
    })  # fmt: skip
    assert csv_of(frame) == frame.to_csv(index=False)


def test_the_tables_of_a_report_are_such(tmp_path):
    page = Page(tmp_path / "report")
    page.section("Estimates")
    page.table("estimates", pd.DataFrame({"target": ["=cmd|'/C calc'!A0"], "x": [-1.0]}), "")
    (file,) = (tmp_path / "report").rglob("estimates*.csv")
    assert cells(file.read_text()) == ["'=cmd|'/C calc'!A0"]
