"""An independent parser of both formats: regular expressions and dictionaries, line by line."""

import re
from collections import Counter

PATTERNS = {
    "yandex-personalized": [
        re.compile(rb"(?P<session>\d+)\t(?P<kind>M)\t(?P<day>\d+)\t(?P<user>\d+)"),
        re.compile(
            rb"(?P<session>\d+)\t(?P<time>\d+)\t(?P<kind>[QT])\t(?P<serp>\d+)\t(?P<query>\d+)"
            rb"\t[\d,]*(?P<list>(\t\d+,\d+)+)"
        ),
        re.compile(rb"(?P<session>\d+)\t(?P<time>\d+)\t(?P<kind>C)\t(?P<serp>\d+)\t(?P<url>\d+)"),
    ],
    "yandex-relpred": [
        re.compile(
            rb"(?P<session>\d+)\t(?P<time>\d+)\t(?P<kind>Q)\t(?P<query>\d+)\t(?P<region>\d+)"
            rb"(?P<list>(\t\d+)+)"
        ),
        re.compile(rb"(?P<session>\d+)\t(?P<time>\d+)\t(?P<kind>C)\t(?P<url>\d+)"),
    ],
}


def parse_line(line, fmt):
    """The fields of a valid line, else None."""
    line = line.removesuffix(b"\r")
    if len(line) > 1 << 20:
        return None
    for pattern in PATTERNS[fmt]:
        if match := pattern.fullmatch(line):
            found = match.groupdict()
            kind = found.pop("kind").decode()
            pairs = [p.split(b",") for p in (found.pop("list", b"") or b"").split(b"\t")[1:]]
            numbers = {name: int(value) for name, value in found.items()}
            numbers["items"] = [int(p[0]) for p in pairs]
            numbers["domains"] = [int(p[1]) for p in pairs if len(p) == 2]
            every = [v for k, v in numbers.items() if k not in ("items", "domains")]
            every += numbers["items"] + numbers["domains"]
            if max(every) >= 2**63 or len(pairs) > 50:
                return None
            return kind, numbers
    return None


def parse(data, fmt):
    """(SERPs as dicts in the SERP schema, counts)."""
    counts = Counter()
    sessions = []  # lists of parsed lines
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for line in lines:
        counts["lines"] += 1
        parsed = parse_line(line, fmt)
        if parsed is None:
            counts["rejected"] += 1
        elif sessions and sessions[-1][0][1]["session"] == parsed[1]["session"]:
            sessions[-1].append(parsed)
        else:
            sessions.append([parsed])
    return [serp for s in sessions for serp in session_serps(s, fmt, counts)], counts


def session_serps(records, fmt, counts):
    serps, clicks = [], []
    user = day = None
    for kind, f in records:
        if kind == "M":
            counts["metadata"] += 1
            user, day = f["user"], f["day"]
        elif kind == "C":
            clicks.append((len(serps), f))
        else:
            counts["queries"] += 1
            counts["test_queries"] += kind == "T"
            n = len(f["items"])
            serps.append(
                {
                    "session_id": f["session"],
                    "user_id": user,
                    "day": day,
                    "time": f["time"],
                    "serp_id": f.get("serp", len(serps)),
                    "query_id": f["query"],
                    "region_id": f.get("region"),
                    "test": kind == "T",
                    "items": f["items"],
                    "domains": f["domains"] or None,
                    "clicks": [0] * n,
                    "click_times": [None] * n,
                    "propensities": None,
                    "random": None,
                    "rewards": None,
                    "first": None,
                }
            )
    for seen, f in clicks:
        credit(serps, seen, f, fmt, counts)
    return serps


def credit(serps, seen, click, fmt, counts):
    if seen == 0:
        candidates = []
    elif fmt == "yandex-personalized":
        before = [s for s in serps[:seen] if s["serp_id"] == click["serp"]]
        after = [s for s in serps[seen:] if s["serp_id"] == click["serp"]]
        candidates = [(before or after)[-1]] if before or after else []
    else:
        candidates = serps[:seen]
    showing = [s for s in candidates if click["url"] in s["items"]]
    if not showing:
        counts["clicks_orphan"] += 1
        return
    serp = showing[-1]
    k = serp["items"].index(click["url"])
    counts["clicks_repeat" if serp["clicks"][k] else "clicks_matched"] += 1
    serp["clicks"][k] += 1
    times = serp["click_times"]
    times[k] = click["time"] if times[k] is None else min(times[k], click["time"])
