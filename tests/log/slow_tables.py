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
    counts["pages_with_gaps"] += shown != list(range(base, base + len(items)))
    counts["pages_with_item_twice"] += len(set(items)) < len(items)
    return {"query": first["query"], "user": first["user"], "items": items, "clicks": clicks}


def read_ubi(records, actions=("click",), views=()):
    """(Pages, counts) of UBI records, in any order; None stands for a line that is none."""
    counts = Counter(rows=len(records))
    pages, events = {}, []
    for record in records:
        if record is None:
            counts["rejected"] += 1
        elif name(record.get("action_name")) is not None:
            events.append(record)
        else:
            _query(record, pages, counts)
    for event in events:
        _event(event, pages, actions, views, counts)
    found = []
    for page in pages.values():
        if views:
            seen = [i for i, c in enumerate(page["clicks"]) if c] + page["seen"]
            page["items"] = page["items"][: max(seen, default=-1) + 1]
            page["clicks"] = page["clicks"][: len(page["items"])]
        if page["items"]:
            found.append({key: page[key] for key in ("query", "user", "items", "clicks")})
        else:
            counts["pages_empty"] += 1
    counts["queries"] = len(found)
    return found, counts


def _query(record, pages, counts):
    text, hits = name(record.get("user_query")), record.get("query_response_hit_ids")
    search = name(record.get("query_id"))
    if text is None and hits is None:
        counts["records_other"] += 1
    elif search is None or any(name(hit) is None for hit in hits or []):
        counts["rejected"] += 1
    elif not hits:
        counts["queries_without_results"] += 1
    elif text is None:
        counts["queries_without_text"] += 1
    elif search in pages:
        counts["queries_repeated"] += 1
    else:
        pages[search] = {
            "query": text, "user": name(record.get("client_id")), "seen": [],
            "items": [str(hit) for hit in hits][:LIMIT], "clicks": [0] * min(len(hits), LIMIT),
        }  # fmt: skip


def _event(event, pages, actions, views, counts):
    action = event["action_name"]
    item = ((event.get("event_attributes") or {}).get("object") or {}).get("object_id")
    if action not in (*actions, *views):
        counts["events_other"] += 1
    elif name(event.get("query_id")) is None:
        counts["events_without_query"] += 1
    elif name(item) is None:
        counts["events_without_object"] += 1
    else:
        kind = "clicks" if action in actions else "views"
        page = pages.get(str(event["query_id"]), {"items": []})
        if str(item) not in page["items"]:
            counts[f"{kind}_orphan"] += 1
            return
        place = page["items"].index(str(item))
        counts["clicks_apart" if kind == "clicks" else "views"] += 1
        if kind == "clicks":
            page["clicks"][place] += 1
        else:
            page["seen"].append(place)
