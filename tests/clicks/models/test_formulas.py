"""Who goes on: one formula per model, whoever evaluates it."""

from __future__ import annotations

import numpy as np
import pytest

from logeval.clicks.models import ccm, dbn, dcm
from logeval.clicks.models.model import ChainModel
from logeval.clicks.models.registry import MODELS
from logeval.clicks.users.chain import Chain
from tests.clicks.examples import random_lists, random_model

CHAINS = [name for name, kind in MODELS.items() if issubclass(kind, ChainModel)]
BY_EM = {"DCM": dcm.DCM_EM, "SDBN": dbn.SDBN_EM, "DBN": dbn.DBN_EM, "CCM": ccm.CCM_EM}
K, L, P = 4, 6, 7


def at_positions(name: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Parameters at every position of P lists: (P, K), scalars (P, 1)."""
    shape = {"item": (P, K), "position": (P, K), "scalar": (P, 1)}
    return {p.field: rng.uniform(0.1, 0.9, shape[p.kind]) for p in MODELS[name].PARAMETERS}


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


@pytest.mark.parametrize("name", BY_EM)
def test_slopes_are_those_of_the_formulas(name):
    """``Slopes`` against differences of ``stay`` and ``skip`` in every parameter."""
    rng = np.random.default_rng(2)
    em, x = BY_EM[name], at_positions(name, rng)
    slopes, h = em.slopes.stay(x), 1e-6

    def moved(function, field):
        up, down = (function({**x, field: x[field] + step}) for step in (h, -h))
        return (np.broadcast_to(up, (P, K)) - np.broadcast_to(down, (P, K))) / (2 * h)

    for field in x:
        slope = np.broadcast_to(slopes.get(field, 0.0), (P, K))
        assert slope == pytest.approx(moved(em.formulas.stay, field), abs=1e-7)
        assert moved(em.formulas.skip, field) == pytest.approx(float(field == em.slopes.skip))
        for other in slopes:
            mixed = moved(lambda y, other=other: em.slopes.stay(y)[other], field)
            expected = em.slopes.mixed.get((field, other), em.slopes.mixed.get((other, field), 0.0))
            assert mixed == pytest.approx(expected, abs=1e-7)
