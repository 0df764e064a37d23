"""What a replica sees of the arrays of all of them."""

from typing import NamedTuple

import numpy as np

from logeval.policies.shared.kernel_policy import allocate, floats, ints, of_items, plain, view_of
from logeval.running.kernels import njit_views


class Inner(NamedTuple):
    S: np.ndarray = floats("L", "K", fill=2.0)
    whole: np.ndarray = ints("K", of_items)


class Outer(NamedTuple):
    inner: Inner = Inner()
    scratch: np.ndarray = floats("L", shared=True)
    wide: np.ndarray = ints(lambda L: L + 1, fill=7, dtype=np.int32)
    square: np.ndarray = floats("L", "L")


def test_arrays_have_the_sizes_types_and_values_that_are_declared():
    made = allocate(Outer(), 3, L=5, K=2)
    assert [x.shape for x in (*made.inner, *made[1:])] == [
        (3, 5, 2), (3, 2, 5), (5,), (3, 6), (3, 5, 5),
    ]  # fmt: skip
    assert (made.inner.S == 2.0).all()
    assert (made.wide == 7).all()
    assert made.wide.dtype == np.int32


def test_a_view_is_the_part_of_one_replica():
    made = allocate(Outer(), 3, L=5, K=2)
    mine = view_of(Outer()).py_func(1, 4, plain(made))
    assert isinstance(mine, Outer)
    assert isinstance(mine.inner, Inner)
    assert [x.shape for x in (*mine.inner, *mine[1:])] == [(4, 2), (2, 5), (4,), (6,), (4, 4)]
    mine.inner.S[:], mine.scratch[:] = 9.0, 1.0
    assert (made.inner.S[1, :4] == 9.0).all()
    assert made.inner.S.sum() == 9.0 * 8 + 2.0 * 22
    assert made.scratch.tolist() == [1.0] * 4 + [0.0]


def test_kernels_see_the_same_and_memories_of_one_name_are_told_apart():
    class Same(NamedTuple):
        S: np.ndarray = floats("K")

    Same.__name__ = "Inner"
    for memory in (Inner(), Same()):
        view = view_of(memory)

        @njit_views
        def add(r, arrays):
            S = view(r, 4, arrays).S  # noqa: B023
            S += 1.0

        made = allocate(memory, 3, L=5, K=2)
        add(2, plain(made))
        before = allocate(memory, 3, L=5, K=2)
        view.py_func(2, 4, plain(before)).S[:] += 1.0
        assert (made.S == before.S).all()
        assert made.S.sum() > 0.0
