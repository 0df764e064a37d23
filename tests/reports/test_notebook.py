"""What notebooks show of results."""

import re

import numpy as np
import pytest

import logeval
from logeval.facts import Fact
from tests.clicks.examples import three_queries


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebook")
    three_queries(folder)
    return folder


def words(result):
    return " ".join(re.sub("<[^>]*>", " ", result._repr_html_()).split())


def test_results_with_a_verdict_show_it_above_a_table(folder):
    models = logeval.fit_models(folder, ["pbm", "rctr"], quiet=True)
    quick = {"rounds": 20, "refits": 2, "quiet": True}
    for result in (
        logeval.replay_estimate(folder, ["logged", "random"], **quick),
        logeval.replay_policy(folder, "Random", positions=1, shuffles=2, horizon=9, quiet=True),
        logeval.replay_validate(folder, positions=[1], parts=3, estimators=["IP"], quiet=True),
        logeval.check_models(models, folder, simulations=80, quiet=True),
    ):
        text = result._repr_html_()
        first, last = text.index("<p>"), text.index("<table")
        assert first == 0 < last
        assert " ".join(result.verdict().text().split()[:6]) in words(result)
        assert "nan" not in words(result).lower().split()


def test_other_results_show_a_table(folder):
    log = logeval.load(folder)
    models = logeval.fit_models(folder, ["pbm", "rctr"], quiet=True)
    compared = logeval.compare_models(folder, ["pbm", "rctr"], quiet=True)
    assert "log-likelihood" in words(compared)
    assert f"serps {log.describe().totals['serps']:,}" in words(log.describe())
    for result in (log, models, models["PBM", 1], log.describe(), compared):
        assert "<table" in result._repr_html_()
    assert words(models["PBM"]) == "FittedModel: PBM (em, 3 queries)"


def test_names_of_others_are_text_and_not_markup(folder):
    found = logeval.replay_estimate(folder, "logged", rounds=0, quiet=True)
    renamed = found.table.assign(target="<script>x</script>")
    shown = type(found)(renamed, [Fact("clipped", "<b>note</b>", "caution", 0.1)])._repr_html_()
    assert "<script>" not in shown
    assert "<b>note" not in shown
    assert np.count_nonzero(found.table["value"].notna()) > 0


def test_long_tables_are_cut_and_say_so(folder):
    found = logeval.replay_validate(
        folder, positions=[1, 2, 3], parts=3, clips=[10], quiet=True,
        estimators=["IP", "PBM", "Prefix", "List", "Item", "IP(normalised)", "PBM(normalised)",
                    "Prefix(normalised)", "List(normalised)", "Item(normalised)", "RCTR"],
    )  # fmt: skip
    assert f"and {found.table['clip'].isna().sum() - 30} more rows" in words(found)
