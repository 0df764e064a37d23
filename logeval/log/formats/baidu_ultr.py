"""baidu-ultr: the public subset of Baidu-ULTR (2023) on the hub of Hugging Face, feather parts.

A row per document. A search is ``query_no`` within its part; queries are told apart by the MD5 of
their text, documents by that of their URL.
"""

from __future__ import annotations

from logeval.log.formats.long import Long

FORMAT = Long(
    name="baidu-ultr",
    by_file=True,
    known={
        "search": "query_no",
        "query": "query_md5",
        "item": "url_md5",
        "position": "position",
        "clicks": "click",
    },
)
