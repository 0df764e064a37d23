"""Search sessions in a world: who, when, which queries, lists and clicks.

Everything is drawn batch by batch from a generator of its own, so the log does not depend on
how much of it is in memory.

A synthetic log and its true models, written at the same time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import zstandard
from isal import igzip
from scipy.special import expit, logit

from logeval.clicks.models.model import ChainModel
from logeval.clicks.users import browsing, chain, choice
from logeval.errors import LogevalError
from logeval.log.formats.registry import FORMATS, GENERATED
from logeval.running import seeds
from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.progress import Progress
from logeval.storage import files, tables
from logeval.synthetic.generate import Generate
from logeval.synthetic.world import K, World, make_tastes, make_world

BATCH = 20_000  # sessions

MEAN_SERPS = 1.88  # of a session; the Kaggle log has 65 M SERPs in 34.6 M sessions
MAX_SERPS = 12
SAME_QUERY = 0.1  # share of SERPs that repeat the query before
DAYS = 27
VERSIONS = 200  # of a query's list
VERSION_POWER = 5  # version = VERSIONS * u ** VERSION_POWER: a few are most frequent
DRIFT = 3  # versions by which the ranking moves on every week
CHANGES = (0.8, 0.6, 0.4, 0.4, 0.3)  # probability of a first, second, ... change in a version
TEST_SHARE = 0.02  # of sessions that end in a test query
REPEATS = 0.17  # repeat clicks per clicked result
LATE = 0.03  # share of clicks made after the next query
ORPHANS = 0.01  # clicks on a URL that is not shown, per SERP


class Sessions(NamedTuple):
    """A batch: sessions own runs of SERPs, session s has SERPs first[s] .. first[s + 1] - 1."""

    first: Ints
    user: Ints
    day: Ints
    query: Ints  # per SERP, from 0
    lists: Ints  # (S, K) item ids, flat over the world, from 0
    clicks: Ints  # (S, K) number of clicks
    late: Bools  # (S, K) clicked only after the next query
    orphan: Bools  # per SERP
    test: Bools  # per SERP
    random: Bools  # per SERP: shown in random order, and said so
    dwell: Ints  # (S, K + 1) time before each click, and before the next query


def draw_sessions(
    world: World,
    sessions: int,
    users: int,
    seed: int,
    batch: int,
    explore: float = 0.0,
    randomised: float = 0.0,
) -> Sessions:
    """Batch number ``batch`` of ``sessions`` sessions of ``users`` users.

    A share ``explore`` of the lists is shown in random order, and a share ``randomised`` likewise,
    of which the log says so.
    """
    rng = seeds.generator(seed, "sessions", batch)
    n_serps = np.minimum(rng.geometric(1 / MEAN_SERPS, sessions), MAX_SERPS)
    first = np.concatenate([[0], np.cumsum(n_serps)])
    S = int(first[-1])
    starts = np.zeros(S, bool)
    starts[first[:-1]] = True
    query = _queries(world, starts, rng)
    day = rng.integers(1, DAYS + 1, sessions)
    version = (VERSIONS * rng.random(S) ** VERSION_POWER).astype(np.int64)
    version += DRIFT * np.repeat(day // 7, n_serps)
    ranks = _lists(query, version, np.diff(world.first_item)[query])
    random = np.zeros(S, dtype=np.bool_)
    if explore or randomised:
        shuffled = seeds.generator(seed, "explore", batch)
        drawn = shuffled.random(S)
        random = (drawn >= explore) & (drawn < explore + randomised)
        rows = np.flatnonzero(drawn < explore + randomised)
        ranks[rows] = shuffled.permuted(ranks[rows], axis=1)
    lists = world.first_item[query][:, None] + ranks
    of_clicks = rng.random((S, K))

    last = np.zeros(S, bool)
    last[first[1:] - 1] = True
    test = world.has_tests & last & (rng.random(S) < TEST_SHARE)
    followed_by_other = ~last
    followed_by_other[:-1] &= query[:-1] != query[1:]
    late = followed_by_other[:, None] & (rng.random((S, K)) < LATE)
    repeats = rng.geometric(1 / (1 + REPEATS), (S, K))
    user = rng.integers(0, users, sessions)
    of_class = seeds.generator(seed, "classes", batch).random(S if world.classes else 0)
    at = (np.repeat(day, n_serps) - 1) / (DAYS - 1)
    clicked = _clicks(world, query, lists, np.repeat(user, n_serps), at, of_clicks, of_class)
    clicked[test] = 0
    return Sessions(
        first=first,
        user=user,
        day=day,
        query=query,
        lists=lists,
        clicks=clicked * repeats,
        late=late & (clicked > 0),
        orphan=~test & (rng.random(S) < ORPHANS),
        test=test,
        random=random,
        dwell=1 + np.exp(3.3 + 1.2 * rng.standard_normal((S, K + 1))).astype(np.int64),
    )


def _queries(world: World, starts: Bools, rng: np.random.Generator) -> Ints:
    S = len(starts)
    drawn = np.searchsorted(world.popularity, rng.random(S) * world.popularity[-1])
    fresh = starts | (rng.random(S) >= SAME_QUERY)
    return drawn[np.maximum.accumulate(np.where(fresh, np.arange(S), 0))]


def _lists(query: Ints, version: Ints, L: Ints) -> Ints:
    """Lists of production ranks, the same for the same query and version.

    They are 0..K-1 with a few changes: a change either exchanges two neighbours, or puts an
    item from below the first page in the place of one on it.
    """
    lists = np.tile(np.arange(K), (len(query), 1))
    for change, probability in enumerate(CHANGES):
        happens, where, how, which = (_uniform(query, version, 4 * change + i) for i in range(4))
        place = (K * where**0.7).astype(np.int64)
        swap = (how < 0.5) & (place < K - 1)
        r = np.flatnonzero((happens < probability) & swap)
        p = place[r]
        lists[r, p], lists[r, p + 1] = lists[r, p + 1], lists[r, p]
        r = np.flatnonzero((happens < probability) & ~swap)
        below = K + ((L[r] - K) * which[r] ** 3).astype(np.int64)
        new = ~(lists[r] == below[:, None]).any(axis=1)
        lists[r[new], place[r[new]]] = below[new]
    return lists


def _uniform(query: Ints, version: Ints, salt: int) -> Floats:
    """A uniform number that is a function of its arguments (splitmix64)."""
    x = query.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x += version.astype(np.uint64) * np.uint64(0xD1B54A32D192ED03) + np.uint64(salt + 1)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    x ^= x >> np.uint64(31)
    return (x >> np.uint64(11)) / float(1 << 53)


def _clicks(
    world: World,
    query: Ints,
    lists: Ints,
    user: Ints,
    at: Floats,
    uniforms: Floats,
    of_class: Floats,
) -> Ints:
    """Clicks of one user per list, at a time from 0 to 1; ``of_class`` decide users' classes."""
    if world.share is None:
        return _clicks_of(world, world.parameters, query, lists, user, uniforms, at)
    clicks = np.zeros(lists.shape, np.int64)
    up_to = np.cumsum(world.share, axis=1)[:, :-1]
    drawn = (of_class[:, None] >= up_to[query]).sum(axis=1)
    for c, parameters in enumerate(world.classes):
        mine = np.flatnonzero(drawn == c)
        clicks[mine] = _clicks_of(
            world, parameters, query[mine], lists[mine], user[mine], uniforms[mine]
        )
    return clicks


def _clicks_of(
    world: World,
    values: dict[str, Floats],
    query: Ints,
    lists: Ints,
    user: Ints,
    uniforms: Floats,
    at: Floats | None = None,
) -> Ints:
    """Clicks of users of one class, by the sampling kernels of the two families of users."""
    kind = world.kind
    w = values["w"][lists]
    if world.slope is not None and at is not None:
        w = expit(logit(w) + world.slope[lists] * (at[:, None] - 0.5))
    if world.tastes is not None:
        w = world.tastes.attraction(w, user, lists)
    clicks = np.zeros(lists.shape, np.int64)
    if issubclass(kind, ChainModel):
        of: dict[str, Any] = {"item": lists, "position": query, "scalar": 0}  # equal for all
        x = {p.field: values[p.field][of[p.kind]] for p in kind.PARAMETERS} | {"w": w}
        skip = float(kind.formulas.skip(x))
        chain.sample_rows(w, kind.formulas.stay(x), skip, uniforms, clicks)
    elif kind.name == "Choice":  # queries are alike, but for their items
        own = {f: values[f][0] for f in ("b", "more", "depth", "response")}
        users = choice.Choice(w=values["w"], s=values["s"], **own)
        stay = choice.odds(1.0 - values["s"][lists])
        response = float(users.response)
        p = np.empty(w.shape)
        choice.follow_rows(w, stay, users.places, response, uniforms, clicks, p)
    elif kind.name == "UBM":
        browsing.sample_rows(w, values["e"][0], uniforms, clicks)
    else:
        clicks[:] = uniforms < w * values["e"][query]
    return clicks


REGIONS = 4  # of the users, where the format has regions
GZ_LEVEL = 2  # of ISA-L's 0 to 3: smaller than zlib's level 1, and three times as quick


def write_log(asked: Generate, manifest: tables.Manifest) -> None:
    """Write the log, and its true models beside it."""
    out, truth = asked.path, asked.truth
    replaced = _replaceable(out, truth)
    kind, write = FORMATS[asked.format], GENERATED[asked.format]
    regions = REGIONS if kind.regions else 0
    world = make_world(asked.model, asked.queries, asked.seed, regions, kind.tests, asked.drift)
    n_items = int(world.first_item[-1])
    tastes = make_tastes(asked.taste, asked.factors, asked.n_users, n_items, asked.seed)
    world = replace(world, tastes=tastes)
    query_id, region_id = world.query_keys()
    out.parent.mkdir(parents=True, exist_ok=True)
    # the truth first: whenever the log is there, a manifest says that logeval wrote it
    with (
        files.partial_file(out) as partial,
        tables.staged(truth, True, then=lambda: files.put_in_place(partial, out)) as staging,
    ):
        world.models().write_tables(staging)
        if tastes is not None:
            tastes.write(staging)
        with (
            _compressed(partial, out.suffix) as file,
            Progress("generate", asked.sessions, "sessions", asked.quiet) as progress,
        ):
            for batch, number in enumerate(range(0, asked.sessions, BATCH)):
                size = min(BATCH, asked.sessions - number)
                drawn = draw_sessions(
                    world, size, asked.n_users, asked.seed, batch, asked.explore, asked.randomised
                )
                q = drawn.query
                file.write(write(drawn, query_id[q], region_id[q], number))
                progress.advance(size)
        written = {
            "log": tables.record(partial),
            "log_sha256": tables.checksum(partial),  # as ingest records it: whose truth this is
            "stamp": tables.stamp(partial),  # a rename keeps it
            "replaced_log": replaced,
        }
        tables.write_manifest(staging, manifest | written)


def _replaceable(out: Path, truth: Path) -> tables.Manifest | None:
    """The record of the log that is going to be replaced; an error if logeval did not write it."""
    if not out.exists():
        return None
    tables.recover(truth)
    found = tables.record(out)
    with contextlib.suppress(LogevalError):
        manifest = tables.read_manifest(truth)
        if found in (manifest.get("log"), manifest.get("replaced_log")):
            return found
    raise LogevalError(
        f"{out}: was not written by logeval, or changed since, so it is not replaced; "
        "move it away, or choose another name"
    )


@contextmanager
def _compressed(path: Path, suffix: str) -> Iterator[IO[bytes] | Any]:
    """A file to write to, compressed as the suffix of the log says."""
    with open(path, "wb") as raw:
        file: Any = contextlib.nullcontext(raw)
        if suffix == ".gz":
            file = igzip.IGzipFile("", "wb", GZ_LEVEL, raw, mtime=0)
        elif suffix == ".zst":
            compressor = zstandard.ZstdCompressor(level=1, write_checksum=True)
            file = compressor.stream_writer(raw, closefd=False)
        with file as opened:
            yield opened
