"""A log written from random SERPs and read back is identical; damaged logs never crash."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.log.helpers import adds_up, ingest
from tests.log.slow_parser import parse

FORMATS = ["yandex-personalized", "yandex-relpred"]
ids = st.integers(0, 2**63 - 1) | st.integers(0, 30)


@st.composite
def sessions(draw, fmt):
    """Sessions with SERPs of distinct items, each clicked some number of times."""
    found = []
    for session in draw(st.lists(st.integers(0, 5), min_size=1, max_size=5)):
        session = len(found) * 10 + session
        pool = draw(st.lists(ids, unique=True, min_size=1, max_size=12))
        serps = []
        while pool and len(serps) < 3:  # no URL on two SERPs: relpred could not tell them apart
            n = draw(st.integers(1, len(pool)))
            items, pool = pool[:n], pool[n:]
            serps.append(
                {
                    "session_id": session,
                    "user_id": 4 if fmt == FORMATS[0] else None,
                    "day": 2 if fmt == FORMATS[0] else None,
                    "time": draw(ids),
                    "serp_id": len(serps),
                    "query_id": draw(ids),
                    "region_id": None if fmt == FORMATS[0] else draw(ids),
                    "test": False,
                    "items": items,
                    "domains": [i // 2 for i in items] if fmt == FORMATS[0] else None,
                    "clicks": draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)),
                }
            )
        found.append(serps)
    return found


@st.composite
def logs(draw):
    """A format, the text of a log in it, and the SERPs it was written from."""
    fmt = draw(st.sampled_from(FORMATS))
    text, expected = [], []
    for serps in draw(sessions(fmt)):
        session = serps[0]["session_id"]
        if fmt == FORMATS[0]:
            text.append(f"{session}\tM\t2\t4")
        clicks = []
        for serp in serps:
            listed = "\t".join(
                f"{i},{i // 2}" if fmt == FORMATS[0] else f"{i}" for i in serp["items"]
            )
            head = f"{session}\t{serp['time']}\tQ\t"
            if fmt == FORMATS[0]:
                text.append(f"{head}{serp['serp_id']}\t{serp['query_id']}\t1,2\t{listed}")
            else:
                text.append(f"{head}{serp['query_id']}\t{serp['region_id']}\t{listed}")
            times = [[100 * c + k for c in range(n)] for k, n in enumerate(serp["clicks"])]
            for item, at in zip(serp["items"], times, strict=True):
                serp_id = f"{serp['serp_id']}\t" if fmt == FORMATS[0] else ""
                clicks += [f"{session}\t{t}\tC\t{serp_id}{item}" for t in at]
            first = [min(t, default=None) for t in times]
            lacks = dict.fromkeys(("propensities", "random", "rewards", "first"))
            expected.append(serp | {"click_times": first, **lacks})
        text += draw(st.permutations(clicks))
    ending = draw(st.sampled_from(["\n", "\r\n"]))
    last = draw(st.sampled_from([ending, ""]))
    return fmt, (ending.join(text) + last).encode(), expected


buffers = st.integers(1, 400)


@settings(max_examples=50, deadline=None)
@given(logs(), buffers, st.sampled_from([1, 2]))
def test_a_log_reads_back_as_written_wherever_it_is_cut(log, block_size, workers):
    fmt, text, expected = log
    serps, counts = ingest(text, fmt, block_size=block_size, workers=workers)
    assert serps == expected
    assert adds_up(counts)
    assert counts["rejected"] == counts["clicks_orphan"] == 0


def is_plain(data):
    compressed = data.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd"))  # a damaged .gz, .zst
    return not compressed and data != b"\xef\xbb\xbf"  # a byte order mark alone: an empty file


@settings(max_examples=60, deadline=None)
@given(st.binary(min_size=1, max_size=300).filter(is_plain), st.sampled_from(FORMATS), buffers)
def test_random_bytes_never_crash_and_counts_add_up(data, fmt, block_size):
    _, counts = ingest(data, fmt, block_size=block_size)
    assert adds_up(counts)


damages = st.lists(
    st.tuples(st.floats(0, 1), st.sampled_from(b"\t\n\r,0919QTCMx\x00\xff- ")), max_size=8
)


@settings(max_examples=80, deadline=None)
@given(logs(), damages, buffers, st.sampled_from([1, 2]))
def test_damaged_logs_are_read_as_the_slow_parser_reads_them(log, damages, block_size, workers):
    fmt, text, _ = log
    damaged = bytearray(text)
    for place, byte in damages:
        damaged[int(place * (len(damaged) - 1))] = byte
    serps, counts = ingest(bytes(damaged), fmt, block_size=block_size, workers=workers)
    expected, expected_counts = parse(bytes(damaged), fmt)
    assert serps == expected
    assert {k: v for k, v in counts.items() if v} == {k: v for k, v in expected_counts.items() if v}
    assert adds_up(counts)
