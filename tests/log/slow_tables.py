"""An independent reader of rows per result, per page and of UBI: dictionaries, row by row.

It is written from docs/formats.md, and knows nothing of Arrow, kernels or files on the way.
"""

import json
import math
from collections import Counter

LIMIT = 50

NO_NUMBER = ("nan", "null", "none", "na", "n/a", "\\n")


def records_of(text, delimiter=","):
    """The records of a CSV as lists of bytes; None if a quote is never closed, or swallows rows.

    It does if text follows its end after a line break, or if each line has all the delimiters.
    """
    records, record, value = [], [], bytearray()
    state, begin = "start", 0
    for i in range(len(text)):
        c = text[i : i + 1]
        if state == "quoted":
            if c == b'"':
                state = "closed"
            else:
                value += c
        elif c == b'"' and state == "start":
            state = "quoted"
        elif c == b'"' and state == "closed":
            value += c
            state = "quoted"
        elif c == delimiter.encode():
            record.append(bytes(value))
            value, state = bytearray(), "start"
        elif c in b"\r\n":
            if record or value or state != "start":
                records.append([*record, bytes(value)])
                lines = text[begin:i].splitlines()
                every = {line.count(delimiter.encode()) for line in lines}
                if len(lines) > 1 and every == {len(records[0]) - 1}:
                    return None
            record, value, state, begin = [], bytearray(), "start", i + 1
        elif state == "closed" and len(text[begin:i].splitlines()) > 1:
            return None
        else:
            value += c
            state = "plain"
    if state == "quoted":
        return None
    if record or value or state != "start":
        records.append([*record, bytes(value)])
    return records


def rows_of_csv(text, used, delimiter=","):
    """Dictionaries by the names of columns; None for what is no row. ``used`` must be UTF-8."""
    records = records_of(text.removeprefix(b"\xef\xbb\xbf"), delimiter)
    if not records:
        return None
    names = [name.decode() for name in records[0]]
    rows = []
    for record in records[1:]:
        row = None
        if len(record) == len(names):
            try:
                row = {n: v.decode() for n, v in zip(names, record, strict=True) if n in used}
            except UnicodeDecodeError:
                row = None
        rows.append(row)
    return rows


def rows_of_json(text):
    """Objects of NDJSON; None for a line that is none."""
    rows = []
    for line in text.split(b"\n"):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            json.dumps(row, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            row = None
        rows.append(row if isinstance(row, dict) else None)
    return rows


def number(value):
    """A whole number from 0 on; None for a missing one, False for what is none."""
    if value is None or value == "":
        return None
    if isinstance(value, str) and value.strip().lower() in NO_NUMBER:
        return None
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        word = value.strip().lower()
        if word in ("true", "yes", "t", "y"):
            return 1
        if word in ("false", "no", "f", "n"):
            return 0
        if value.isascii() and value.isdigit() and (value == "0" or value[0] != "0"):
            return int(value) if int(value) < 2**63 else False
        if "_" in value:
            return False
    try:
        found = float(value)
    except ValueError:
        return False
    if not math.isfinite(found) or found != int(found) or not 0 <= found < 2**53:
        return False
    return int(found)


def name(value):
    """An id as text; None if it is missing."""
    if value is None or value == "":
        return None
    return str(value)


def read_results(rows, roles, limit=LIMIT):
    """(Pages, counts) of rows per result; ``roles`` says which column is what."""
    counts = Counter(rows=len(rows))
    searches = {}
    for row in rows:
        found = _result(row, roles)
        if found is None:
            counts["rejected"] += 1
            continue
        searches.setdefault(found["search"], []).append(found)
    positions = [r["position"] for all_ in searches.values() for r in all_]
    base = 0 if 0 in positions else 1
    pages = [_page(results, base, limit, counts) for results in searches.values()]
    pages = [page for page in pages if page is not None]
    counts["queries"] = len(pages)
    for page in pages:
        counts["clicks_matched"] += sum(c > 0 for c in page["clicks"])
        counts["clicks_repeat"] += sum(c - 1 for c in page["clicks"] if c)
    return pages, counts


def _result(row, roles):
    if row is None:
        return None
    get = {role: row.get(column) for role, column in roles.items()}
    position, clicks = number(get["position"]), number(get["clicks"])
    if name(get["search"]) is None or name(get["query"]) is None or name(get["item"]) is None:
        return None
    if position is False or clicks is False or (clicks or 0) >= 2**31:
        return None
    if position is None and not clicks:
        return None
    return {
        "search": name(get["search"]),
        "query": name(get["query"]),
        "item": name(get["item"]),
        "user": name(get.get("user")),
        "position": position,
        "clicks": clicks or 0,
    }


def _page(results, base, limit, counts):
    first = results[0]
    of_page, apart = {}, []
    for result in results:
        other_user = None not in (result["user"], first["user"]) and result["user"] != first["user"]
        if result["query"] != first["query"] or other_user:
            counts["rows_contrary"] += 1
        elif result["position"] is None:
            apart.append(result)
        else:
            of_page.setdefault(result["position"], []).append(result)
    items, clicks = [], []
    for position in sorted(of_page):
        shown, *others = of_page[position]
        kept = len(items) < limit
        if kept:
            items.append(shown["item"])
            clicks.append(shown["clicks"])
        counts["results" if kept else "rows_cut"] += 1
        for other in others:
            if other["item"] != shown["item"]:
                counts["rows_doubled"] += 1
            elif kept:
                counts["rows_repeated"] += 1
                clicks[-1] += other["clicks"]
            else:
                counts["rows_cut"] += 1
    for click in apart:
        there = click["item"] in items
        counts["clicks_apart" if there else "clicks_orphan"] += 1
        if there:
            clicks[items.index(click["item"])] += click["clicks"]
    if not items:
        return None
    shown = sorted(of_page)[: len(items)]
    counts["pages_with_gaps"] += shown != list(range(shown[0], shown[0] + len(items)))
    counts["pages_later"] += shown[0] > base
    counts["pages_with_item_twice"] += len(set(items)) < len(items)
    return {"query": first["query"], "user": first["user"], "items": items, "clicks": clicks}


def read_ubi(records, actions=("click",), views=("impression",)):
    """(Pages, counts) of UBI records, in any order; None stands for a line that is none."""
    counts = Counter(rows=len(records))
    searches = {}
    for n, record in enumerate(records):
        role = _role(record, actions, views)
        if role in ("click", "view"):
            item = _object(record)
            if name(record.get("query_id")) is None:
                role = "events_without_query"
            elif item is None:
                role = "events_without_object"
        if role not in ("click", "view", "query"):
            counts[role] += 1
        search = name(record.get("query_id")) if record else None
        if search is None or role == "rejected":
            continue
        page = searches.setdefault(search, {"text": {}, "hits": None, "client": {}, "events": []})
        page["queries"] = page.get("queries", 0) + (role == "query")
        for key, field in (("text", "user_query"), ("client", "client_id")):
            if name(record.get(field)) is not None:
                page[key].setdefault(role == "query", record[field])
        if role == "query" and record.get("query_response_hit_ids") and page["hits"] is None:
            page["hits"] = list(map(str, record["query_response_hit_ids"]))
        if role in ("click", "view"):
            place = (record["event_attributes"].get("position") or {}).get("ordinal")
            page["events"].append((role, _object(record), place, (record["timestamp"], n)))
    found = [_listed(search, page, counts) for search, page in searches.items()]
    pages = [page for page in found if page is not None]
    counts["queries"] = len(pages)
    return pages, counts


def _role(record, actions, views):
    if record is None:
        return "rejected"
    action = name(record.get("action_name"))
    if action is not None:
        return "click" if action in actions else "view" if action in views else "events_other"
    hits = record.get("query_response_hit_ids")
    if name(record.get("user_query")) is None and hits is None:
        return "records_other"
    bad = name(record.get("query_id")) is None or any(name(hit) is None for hit in hits or [])
    return "rejected" if bad else "query"


def _object(record):
    return name(((record.get("event_attributes") or {}).get("object") or {}).get("object_id"))


def _listed(search, page, counts):
    """The page of a search that has a list; its events are counted."""
    hits, events = page["hits"] or [], page["events"]
    base = _base(hits, [(item, k) for role, item, k, _ in events if role == "view"])

    def place_of(k):
        return None if k is None or k + 1 - base < 1 else k + 1 - base

    if not any(role == "view" and k is not None for role, _, k, _ in events):
        events = [(role, item, None, when) for role, item, _, when in events]
    shown = [(place_of(k), when, item) for role, item, k, when in events if role == "view"]
    clicked = [(place_of(k), when, item) for role, item, k, when in events if role == "click"]
    at = {}
    for place in {place for place, *_ in shown if place is not None}:
        here = sorted((when, item) for p, when, item in shown if p == place)
        until = min((when for p, when, _ in clicked if p == place), default=None)
        before = [item for when, item in here if until is None or when <= until]
        at[place] = before[-1] if before else here[0][1]
    seen = {item for *_, item in shown + clicked}
    deep = [*at, *(k for k, hit in enumerate(hits, 1) if hit in seen)]
    last = max(deep) if shown and deep else len(hits)
    placed = set(at.values())
    filled = dict(at)
    for k, hit in enumerate(hits[:last], 1):
        if k not in at and hit not in placed:
            filled[k] = hit
    if filled:
        there, taken = set(filled.values()), set(filled)
        for place, _, item in sorted(clicked, key=lambda click: click[1][1]):
            if place is not None and place not in taken and item not in there:
                filled.setdefault(place, item)
    items = [filled[k] for k in sorted(filled)][:LIMIT]
    counts["query_records" if filled else "queries_without_results"] += page["queries"]
    for place, _, item in shown:
        listed = item in filled.values()
        doubled = filled and place is not None and not listed
        counts["views" if listed else "views_doubled" if doubled else "views_orphan"] += 1
    clicks = [0] * len(items)
    for *_, item in clicked:
        counts["clicks_apart" if item in items else "clicks_orphan"] += 1
        if item in items:
            clicks[items.index(item)] += 1
    if not filled:
        return None
    first = min(filled)
    counts["pages_later"] += first > 1
    text, client = page["text"], page["client"]
    counts["searches_without_text"] += not text
    return {
        "query": text.get(True, text.get(False, search)),
        "user": client.get(True, client.get(False)),
        "items": items,
        "clicks": clicks,
    }


def _base(hits, shown):
    """Whether ordinals begin at 0 or 1."""
    shown = [(item, k) for item, k in shown if k is not None]
    zero = sum(k < len(hits) and hits[k] == item for item, k in shown)
    one = sum(0 < k <= len(hits) and hits[k - 1] == item for item, k in shown)
    if zero != one:
        return 0 if zero > one else 1
    return 0 if min((k for _, k in shown), default=1) == 0 else 1
