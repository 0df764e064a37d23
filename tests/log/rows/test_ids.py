"""Checksums that stand for texts, dictionaries that grow, numbers that are exactly numbers."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logeval.log.rows import ids
from logeval.log.rows.ids import Dictionary, NotNumbers, given_ids, session_numbers, sums_of
from logeval.log.rows.values import GOOD, MISSING, numbers_of, sums_of_numbers, sums_of_texts

SIMILAR = [
    *[f"item-{i}" for i in range(20_000)],
    *["a" * n for n in range(1, 2_000)],
    *["\0" * n for n in range(1, 300)],
    *[f"{'x' * 7}{i:04x}" for i in range(20_000)],
]


def test_similar_texts_have_different_checksums_in_both_halves():
    sums = sums_of_texts(pa.array(SIMILAR))
    assert len(set(sums.hi.tolist())) == len(set(sums.lo.tolist())) == len(SIMILAR)
    bits = np.unpackbits(sums.hi.view(np.uint8)).reshape(len(SIMILAR), 64).mean(axis=0)
    # a fair coin: five standard errors
    assert np.abs(bits - 0.5).max() < 5 * 0.5 / np.sqrt(len(SIMILAR))


def test_one_changed_bit_changes_half_of_the_checksum():
    text = b"https://shop.example/p/12345"
    changed = [bytearray(text) for _ in range(8 * len(text))]
    for bit, other in enumerate(changed):
        other[bit // 8] ^= 1 << bit % 8
    texts = pa.array([text, *map(bytes, changed)], pa.binary()).view(pa.string())
    sums = sums_of_texts(texts)
    for half in sums:
        flipped = [int(half[0] ^ other).bit_count() for other in half[1:]]
        assert 25 < np.mean(flipped) < 39
        assert min(flipped) > 8


@given(st.lists(st.text(max_size=20), min_size=1), st.integers(0, 5))
def test_checksums_are_of_the_text_alone(texts, before):
    padded = pa.array(["pad"] * before + texts)
    whole, part = sums_of_texts(pa.array(texts)), sums_of_texts(padded.slice(before))
    assert (whole.hi == part.hi).all()
    assert (whole.lo == part.lo).all()
    for i, a in enumerate(texts):
        for j, b in enumerate(texts):
            assert (a == b) == (whole.hi[i] == whole.hi[j])


@given(st.lists(st.text(max_size=3) | st.integers(0, 2**64).map(str) | st.just("007")))
def test_a_number_is_what_programs_write(texts):
    values, states = numbers_of(pa.array(texts, pa.string()))
    for text, value, state in zip(texts, values.tolist(), states.tolist(), strict=True):
        exact = text.isascii() and text.isdigit() and str(int(text)) == text
        assert (state == GOOD) == (exact and int(text) < 2**63)
        assert (state == MISSING) == (text == "")
        assert state != GOOD or value == int(text)


def test_a_number_and_its_digits_are_the_same_key():
    numbers, _ = sums_of(pa.array([1, 2, 30]))
    texts, _ = sums_of(pa.array(["1", "2", "30"]))
    mixed, missing = sums_of(pa.array(["1", "x", "30", None, ""]))
    assert (
        numbers.hi.tolist()
        == texts.hi.tolist()
        == sums_of_numbers(np.array([1, 2, 30])).hi.tolist()
    )
    assert mixed.hi[[0, 2]].tolist() == numbers.hi[[0, 2]].tolist()
    assert missing.tolist() == [False, False, False, True, True]


@settings(deadline=None)
@given(st.lists(st.lists(st.text(max_size=2), max_size=8), max_size=8))
def test_ids_are_numbered_in_the_order_in_which_names_come(batches):
    with pytest.MonkeyPatch.context() as patch, _folder() as folder:
        patch.setattr(ids, "PLACES", 4)  # so that it grows
        patch.setattr(ids, "ROW_GROUP", 3)
        names = Dictionary(folder / "names" / "item.parquet")
        found = [names.ids(pa.array(batch, pa.string())).tolist() for batch in batches]
        names.close()
        kept = pq.read_table(names.path)
    known = list(dict.fromkeys(name for batch in batches for name in batch if name))
    assert kept["name"].to_pylist() == known
    assert kept["id"].to_pylist() == list(range(len(known)))
    assert found == [[known.index(n) if n else -1 for n in batch] for batch in batches]


def _folder():
    import contextlib
    import tempfile
    from pathlib import Path

    @contextlib.contextmanager
    def made():
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)

    return made()


def test_an_id_that_is_no_number_is_named():
    with pytest.raises(NotNumbers, match=r"row 3: item '0x1' is no number"):
        given_ids("item", pa.array(["1", "2", "0x1", "y"]), text=False)
    assert given_ids("item", pa.array(["1", "", None]), text=False).numbers.tolist() == [1, -1, -1]


def test_sessions_are_themselves_or_a_checksum():
    found = session_numbers(pa.array(["7", "a", "b", "a", "", None]))
    assert found[0] == 7
    assert found[1] == found[3] != found[2]
    assert found[4] == found[5] == -1
    assert (found[:4] >= 0).all()
