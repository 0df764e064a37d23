"""Names that are alike, against a slow look at every one of them."""

import unicodedata
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from logeval.log.tables.staging import notes_on_names
from logeval.storage.schemas import NAMES

LETTERS = "aAzZ@[`{0 é\u0301ÉeEЖж\n"


@given(st.sets(st.text(LETTERS, min_size=1, max_size=10), max_size=12))
@settings(max_examples=200, deadline=None)
def test_names_that_are_alike_are_counted(tmp_path_factory, names):
    folder = tmp_path_factory.mktemp("log")
    (folder / "names").mkdir()
    rows = pa.table([range(len(names)), list(names)], schema=NAMES)
    pq.write_table(rows, folder / "names" / "item.parquet")
    many = Counter(unicodedata.normalize("NFC", name.strip(" ")).lower() for name in names)
    alike = sum(n > 1 for n in many.values())
    notes = notes_on_names(folder)
    assert [note.split(" ")[0] for note in notes] == ([str(alike)] if alike else [])
