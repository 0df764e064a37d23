"""Names that are alike, against a slow look at every one of them."""

import unicodedata
from collections import Counter

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from logeval.log.tables.staging import note_on_names
from logeval.log.tables.values import scratch
from logeval.storage.schemas import NAMES

LETTERS = "aAzZ@[`{0 é\u0301ÉeEЖж\n"


@given(st.sets(st.text(LETTERS, min_size=1, max_size=10), max_size=12))
@settings(max_examples=200, deadline=None)
def test_names_that_are_alike_are_counted(names):
    rows = pa.table([range(len(names)), list(names)], schema=NAMES)
    many = Counter(unicodedata.normalize("NFC", name.strip(" ")).lower() for name in names)
    alike = sum(n > 1 for n in many.values())
    with scratch() as db:
        db.register("names_item", rows)
        note = note_on_names(db, "item")
    assert (note and note.split(" ")[0]) == (str(alike) if alike else None)
