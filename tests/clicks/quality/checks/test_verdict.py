"""Which checks fault a model, from the deviations of its checks, made by hand."""

from __future__ import annotations

import numpy as np

from logeval.clicks.quality.deviations import CHECKS, Deviations, Layout, verdict_of


def level(deviating):
    """Deviations z of the components {(check, label): z}; those of others 0."""
    parts = Layout(4).components
    C = len(parts.check)
    z, half = np.zeros((1, C)), np.full(C, 0.5)
    for i, key in enumerate(zip(parts.check, parts.label, strict=True)):
        z[0, i] = deviating.get(key, 0.0)
    return Deviations(parts, z, np.ones(C, dtype=bool), half, half, half, half, np.ones(C))


def row(check, query=None, faulted=False, components=4, serps=1234, error=0.125):
    return {"check": check, "query": query, "faulted": faulted, "components": components,
            "serps": serps, "error": error}  # fmt: skip


def everything(faulted=(), unjudged=()):
    return [row(c, None, c in faulted, 0 if c in unjudged else 4) for c in CHECKS]


def test_a_model_is_cleared_when_nothing_faults_it():
    found = verdict_of("DCM", everything(), level({}))
    assert found.cleared
    assert (found.queries, found.faulted_queries) == (0, 0)
    assert found.right == list(CHECKS)
    record = found.record(held_out=True)
    assert (record["faulted"], record["judged"], record["serps"]) == ([], len(CHECKS), 1234)


def test_faults_come_with_the_clearest_first():
    deviating = {("ctr-by-rank", "rank 2"): 5.0, ("last-click", "rank 1"): -9.0}
    unjudged = ["distance", "after-click", "top-items"]
    rows = everything(["ctr-by-rank", "last-click"], unjudged)
    found = verdict_of("PBM", rows, level(deviating))
    assert not found.cleared
    assert found.faulted == ["last-click", "ctr-by-rank"]
    assert found.unjudged == unjudged
    assert set(found.right) == set(CHECKS) - set(found.faulted) - set(unjudged)


def test_queries_are_faulted_by_any_of_their_checks():
    rows = everything()
    rows += [row("ctr-by-rank", "1@0", True, serps=9), row("first-click", "1@0", serps=9)]
    rows += [row("ctr-by-rank", "2@0", serps=9), row("first-click", "2@0", serps=9)]
    rows += [row("ctr-by-rank", "3@0", serps=9), row("first-click", "3@0", True, serps=9)]
    found = verdict_of("DCM", rows, level({}))
    assert (found.queries, found.faulted_queries) == (3, 2)
    assert found.faulted == []
    assert not found.cleared
