"""Who goes on: one formula per model, whoever evaluates it."""

from __future__ import annotations

import numpy as np
import pytest

from logeval.clicks.models.model import ChainModel
from logeval.clicks.models.registry import MODELS
from logeval.clicks.users.chain import Chain
from tests.clicks.examples import random_lists, random_model

CHAINS = [name for name, kind in MODELS.items() if issubclass(kind, ChainModel)]
K, L = 4, 6


@pytest.mark.parametrize("name", CHAINS)
def test_lists_are_left_as_the_users_of_the_query_leave_them(name):
    """What the synthetic log and the intervals evaluate on lists is what ``users`` holds."""
    rng = np.random.default_rng(1)
    model = random_model(name, rng, L, K)
    assert isinstance(model, ChainModel)
    A = random_lists(rng, 5, L, K)
    kinds = {p.field: p.kind for p in model.PARAMETERS}
    x = {f: getattr(model, f)[A] if kinds[f] == "item" else getattr(model, f) for f in kinds}
    users = model.users
    assert isinstance(users, Chain)
    np.testing.assert_array_equal(model.formulas.stay(x), users.stay_item[A] * users.stay_position)
    assert float(model.formulas.skip(x)) == users.skip
