"""What a fitted model says of longer lists and of queries never seen."""

from __future__ import annotations

import json

import numpy as np
import pytest

from logeval.clicks.collection import models_of_json
from logeval.clicks.fit import fit_models
from logeval.log.queries import Query
from tests.clicks.examples import random_lists, random_model
from tests.serps import Serp, sampled_serps, write_serps


@pytest.fixture(scope="module")
def two_lengths(tmp_path_factory):
    """Query 0 with lists of 3, query 1 with lists of 6."""
    rng = np.random.default_rng(9)
    serps: list[Serp] = []
    for q, K in enumerate((3, 6)):
        model = random_model("DCM", rng, L=12, K=K, low=0.1, high=0.6)
        lists = random_lists(rng, 600, 12, K)
        serps += sampled_serps(model, lists, rng, query_id=q, first=len(serps))
    return write_serps(tmp_path_factory.mktemp("two"), serps)


def test_longer_lists_are_examined_as_at_the_same_distance_from_the_click(two_lengths):
    fitted = fit_models(two_lengths, "UBM", quiet=True).fitted["UBM"]
    e = fitted.of(Query(0), K=5).e
    assert e.shape == (5, 6)
    assert e[:3, :4] == pytest.approx(fitted.of(Query(0)).e)
    assert e[3:, 0] == pytest.approx(e[2, 0])
    assert e[3, [3, 2, 1]] == pytest.approx(e[2, [2, 1, 1]])  # the click 1, 2, 3 above
    assert e[4, [4, 3, 2, 1]] == pytest.approx(e[2, [2, 1, 1, 1]])
    assert (e[np.tril_indices(5)] > 0).all()


def test_pooled_values_hold_beyond_the_longest_list_of_a_query(two_lengths):
    models = fit_models(two_lengths, ["PBM", "UBM"], scope="pooled", quiet=True)
    for fitted in models.fitted.values():
        e = fitted.estimates["e"].value[0]
        assert fitted.of(Query(0)).K == 3
        assert fitted.of(Query(0), K=6).e == pytest.approx(e)
        assert fitted.of(Query(0)).e == pytest.approx(e[:3] if e.ndim == 1 else e[:3, :4])


def test_an_unseen_query_averages_over_the_queries_that_have_the_position(two_lengths):
    models = fit_models(two_lengths, ["PBM", "UBM"], quiet=True)
    rows = json.loads(models.to_json())["rows"]
    imported = models_of_json(json.dumps([row for row in rows if "query_id" in row]))
    for source in (models, imported):
        for name in ("PBM", "UBM"):
            unseen = source.fitted[name].of(Query(99)).e
            own = models[name, "1"].e
            assert unseen[3:] == pytest.approx(own[3:])
