"""expedia: Personalize Expedia Hotel Searches (ICDM 2013, Kaggle), train.csv, a row per hotel.

The query is the destination; ``random_bool`` says that the hotels were in random order. test.csv
has neither positions nor clicks.
"""

from __future__ import annotations

from logeval.log.formats.long import Long

FORMAT = Long(
    name="expedia",
    known={
        "search": "srch_id",
        "time": "date_time",
        "query": "srch_destination_id",
        "item": "prop_id",
        "position": "position",
        "clicks": "click_bool",
        "random": "random_bool",
    },
)
