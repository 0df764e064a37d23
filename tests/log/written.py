"""One log in every layout: pages as dictionaries -> the bytes of files. Nothing here is real."""

import csv
import hashlib
import io
import json
import random
from collections import Counter
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq

START = 1_704_067_200  # 2024-01-01, in UTC


def pages(n, seed=0, names=True, positions=6):
    """Pages of a few queries: search, session, user, time, query, items, clicks, random."""
    rng = random.Random(seed)
    found = []
    for i in range(n):
        query = min(int(rng.expovariate(0.7)), 5)
        items = [query * 100 + k for k in rng.sample(range(12), rng.randint(1, positions))]
        found.append(
            {
                "search": f"search-{i:04d}" if names else i,
                "session": i // 3,
                "serp": i % 3,
                "user": f"user {i // 3 % 17}" if names else i // 3 % 17,
                "time": START + 3_600 * i + rng.randint(0, 3_000),
                "query": f"running shoes, no. {query}" if names else query,
                "items": [f"https://shop.example/p/{item}" if names else item for item in items],
                "clicks": [int(rng.random() < 0.4 / (k + 1)) for k in range(len(items))],
                "random": rng.random() < 0.2,
            }
        )
    return found


def results(found):
    """A row per result of these pages."""
    return [
        {
            "search_id": page["search"], "user_id": page["user"], "timestamp": iso(page["time"]),
            "search_term": page["query"], "url": item, "position": k + 1, "is_click": click,
            "device": "phone",
        }
        for page in found
        for k, (item, click) in enumerate(zip(page["items"], page["clicks"], strict=True))
    ]  # fmt: skip


def iso(seconds):
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def csv_of(rows, delimiter=","):
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def ndjson_of(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def parquet_of(rows, schema=None):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema), sink)
    return sink.getvalue().to_pybytes()


def feather_of(rows):
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pylist(rows)
    with pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table, max_chunksize=100)
    return sink.getvalue().to_pybytes()


def long_csv(found):
    return csv_of(results(found))


def page_rows(found):
    return [
        {
            "session": page["session"], "user": page["user"], "timestamp": iso(page["time"]),
            "query": page["query"], "urls": page["items"], "clicks": page["clicks"],
        }
        for page in found
    ]  # fmt: skip


def ubi(found, wrapped=False):
    """(queries, events) as NDJSON; one in two clients counts positions from 0."""
    queries, events = [], []
    for i, page in enumerate(found):
        queries.append(
            {
                "query_id": page["search"], "user_query": page["query"], "client_id": page["user"],
                "application": "shop", "query_attributes": {"page": i},
                "query_response_hit_ids": page["items"], "timestamp": iso(page["time"]),
            }
        )  # fmt: skip
        for k, (item, clicks) in enumerate(zip(page["items"], page["clicks"], strict=True)):
            shown = [("impression", k)] + [("click", k)] * clicks
            events += [
                {
                    "action_name": action, "query_id": page["search"], "client_id": page["user"],
                    "timestamp": iso(page["time"] + 5 + k),
                    "event_attributes": {
                        "object": {"object_id": item, "object_id_field": "url"},
                        "position": {"ordinal": place + i % 2},
                    },
                }
                for action, place in shown
            ]  # fmt: skip
    events.append({"action_name": "login", "timestamp": iso(START), "event_attributes": {}})
    if wrapped:
        queries = [{"_index": "ubi_queries", "_id": "1", "_source": row} for row in queries]
        events = [{"_index": "ubi_events", "_id": "1", "_source": row} for row in events]
    return ndjson_of(queries), ndjson_of(events)


def expedia(found):
    """A row per hotel; every fifth position is left out, as an opaque offer."""
    rows = []
    for i, page in enumerate(found):
        place = 0
        for item, click in zip(page["items"], page["clicks"], strict=True):
            place += 2 if place % 5 == 4 else 1
            rows.append(
                {
                    "srch_id": i + 1,
                    "date_time": iso(page["time"])[:-1].replace("T", " "),
                    "site_id": 12,
                    "prop_id": item,
                    "position": place,
                    "srch_destination_id": page["query"],
                    "random_bool": int(page["random"]),
                    "click_bool": click,
                    "booking_bool": 0,
                    "price_usd": 99.5,
                }
            )
    return csv_of(rows)


def baidu(found, part=0):
    """A feather part: query_no counts the queries of the part, query_id is not unique."""
    return feather_of(
        [
            {
                "query_no": i, "query_id": f"{part}{i % 4}", "query_md5": hash_of(page["query"]),
                "url_md5": hash_of(item), "text_md5": hash_of(item), "position": k + 1,
                "click": click, "media_type": 0, "displayed_time": 1.5,
                "query_document_embedding": [0.0, 1.0],
            }
            for i, page in enumerate(found)
            for k, (item, click) in enumerate(zip(page["items"], page["clicks"], strict=True))
        ]
    )  # fmt: skip


def hash_of(name):
    return hashlib.md5(str(name).encode()).hexdigest()


def baidu_raw(found):
    """Lines of queries (tokens between bytes 1) and of documents, 32 fields."""
    lines = []
    for i, page in enumerate(found):
        tokens = "\1".join(str(ord(c)) for c in str(page["query"]))
        lines.append(f"{i % 4}\t{tokens}\t\n")
        for k, (item, click) in enumerate(zip(page["items"], page["clicks"], strict=True)):
            rest = "\t".join(["-"] * 26)
            lines.append(f"{k + 1}\t{hash_of(item)}\t1\1 2\t3\t0\t{click}\t{rest}\n")
    return "".join(lines).encode()


def hub(found):
    """Yandex as the hub of Hugging Face has it: query_id, doc_ids, clicks as booleans."""
    schema = pa.schema(
        [
            ("query_id", pa.int64()), ("doc_ids", pa.list_(pa.int64())),
            ("clicks", pa.list_(pa.bool_())),
        ]
    )  # fmt: skip
    rows = [
        {"query_id": p["query"], "doc_ids": p["items"], "clicks": [c > 0 for c in p["clicks"]]}
        for p in found
    ]
    return parquet_of(rows, schema)


def counted(found):
    """Impressions and clicks by query, item and position."""
    shown, clicked = Counter(), Counter()
    for page in found:
        for k, (item, clicks) in enumerate(zip(page["items"], page["clicks"], strict=True)):
            shown[page["query"], item, k + 1] += 1
            clicked[page["query"], item, k + 1] += clicks > 0
    return [
        {"query": q, "item": i, "position": k, "impressions": n, "clicks": clicked[q, i, k]}
        for (q, i, k), n in sorted(shown.items())
    ]


def counts_csv(found):
    return csv_of(counted(found))


def yandex(found):
    """The lines of yandex-personalized; ids must be numbers."""
    lines, last = [], None
    for page in found:
        if page["session"] != last:
            last = page["session"]
            lines.append(f"{last}\tM\t{(page['time'] - START) // 86_400 + 1}\t{page['user']}\n")
        urls = "\t".join(f"{item},{item // 10}" for item in page["items"])
        asked = f"{page['session']}\t{page['serp'] * 100}\tQ\t{page['serp']}"
        lines.append(f"{asked}\t{page['query']}\t1\t{urls}\n")
        for item, clicks in zip(page["items"], page["clicks"], strict=True):
            click = f"{page['session']}\t{page['serp'] * 100 + 7}\tC\t{page['serp']}\t{item}\n"
            lines += [click] * clicks
    return "".join(lines).encode()
