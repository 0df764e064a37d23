"""Write a synthetic log, and beside it the true parameters of its click model."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from isal import igzip

from logeval.errors import LogevalError, unknown_names
from logeval.log.formats.registry import FORMATS, GENERATED
from logeval.running.progress import Progress
from logeval.storage import files, manifests, tables
from logeval.synthetic.sessions import BATCH, SESSIONS_PER_USER, draw_sessions
from logeval.synthetic.tastes import make_tastes
from logeval.synthetic.world import make_world
from logeval.synthetic.zstd import ZstdWriter

LARGEST = 10**10  # numbers of sessions, queries and users; Kaggle's log has 34 million sessions
REGIONS = 4  # of the users, where the format has regions
GZ_LEVEL = 2  # of ISA-L's 0 to 3: smaller than zlib's level 1, and three times as quick


def truth_folder(log: str | Path) -> Path:
    """Where the true models of a generated log are: ``log.truth`` beside ``log.tsv.gz``."""
    log = Path(log)
    if not log.name:
        raise LogevalError(f"{str(log)!r}: is not the name of a file; name one for the log")
    name = log.name.removesuffix(".gz").removesuffix(".zst").removesuffix(".tsv")
    return log.with_name(f"{name}.truth")


def generate(
    out: str | Path,
    *,
    format: str = "yandex-personalized",
    sessions: int = 50_000,
    queries: int = 1_000,
    model: str = "DCM",
    users: int | None = None,
    taste: float = 0.0,
    factors: int = 5,
    explore: float = 0.0,
    seed: int = 0,
    overwrite: bool = False,
    quiet: bool = False,
) -> Path:
    """Write ``sessions`` synthetic sessions to ``out`` (plain, .gz or .zst by its name).

    ``explore`` is the share of SERPs whose list is shown in random order.
    Returns the folder of the true models. Memory does not depend on the number of sessions. With
    a ``taste`` users differ (``synthetic.tastes``), and their factors, which are held in memory,
    stand beside the true models. There is a user for every six sessions unless ``users`` says
    otherwise.
    """
    out, truth = Path(out), truth_folder(out)
    wanted = wanted_manifest(
        out, format=format, sessions=sessions, queries=queries, model=model, users=users,
        taste=taste, factors=factors, explore=explore, seed=seed,
    )  # fmt: skip
    n_users = int(wanted["arguments"]["users"])
    files.check_name(out)
    files.check_regular(out)
    if not overwrite and (out.exists() or truth.exists()):
        if why(out, wanted, thorough=True) is None:
            return truth
        there = out if out.exists() else truth
        raise LogevalError(f"{there}: exists already; choose another name, or overwrite")
    replaced = _replaceable(out, truth)
    kind, write = FORMATS[format], GENERATED[format]
    world = make_world(model, queries, seed, REGIONS if kind.regions else 0, kind.tests)
    tastes = make_tastes(taste, factors, n_users, int(world.first_item[-1]), seed)
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
            Progress("generate", sessions, "sessions", quiet) as progress,
        ):
            for batch, number in enumerate(range(0, sessions, BATCH)):
                size = min(BATCH, sessions - number)
                drawn = draw_sessions(world, size, n_users, seed, batch, explore)
                q = drawn.query
                file.write(write(drawn, query_id[q], region_id[q], number))
                progress.advance(size)
        written = {
            "log": manifests.record(partial),
            "stamp": manifests.stamp(partial),  # a rename keeps it
            "replaced_log": replaced,
        }
        tables.write_manifest(staging, wanted | written)
    return truth


def wanted_manifest(
    out: str | Path,
    *,
    format: str,
    sessions: int,
    queries: int,
    model: str,
    users: int | None = None,
    taste: float = 0.0,
    factors: int = 5,
    explore: float = 0.0,
    seed: int,
) -> tables.Manifest:
    """The manifest of the true models that ``generate`` with these arguments writes."""
    if format not in GENERATED:
        raise unknown_names("format", [format], GENERATED)
    if sessions < 1 or queries < 1:
        raise LogevalError("a log needs at least one session and one query")
    sizes = {"sessions": sessions, "queries": queries, "users": users or 0, "factors": factors}
    for name, size in sizes.items():
        if size > LARGEST:
            raise LogevalError(f"{name}={size}: write at most {LARGEST:,}")
    if users is not None and users < 1:
        raise LogevalError(f"users={users}: there must be at least one")
    if taste < 0 or not math.isfinite(taste):
        raise LogevalError(f"taste={taste}: write 0 (no tastes) or a positive number such as 1")
    if taste and factors < 1:
        raise LogevalError(f"factors={factors}: tastes need at least one")
    if not 0.0 <= explore <= 1.0:
        raise LogevalError(f"explore={explore}: it is a share of the SERPs, between 0 and 1")
    arguments = {
        "out": Path(out).name,
        "format": format,
        "sessions": sessions,
        "queries": queries,
        "model": model.upper(),
        "users": max(sessions // SESSIONS_PER_USER, 1) if users is None else users,
        "taste": taste,
        "factors": factors if taste else 0,
        "seed": seed,
        **({"explore": explore} if explore else {}),
    }
    return tables.manifest_of("generate", arguments, [])


def why(out: str | Path, wanted: tables.Manifest, thorough: bool = False) -> str | None:
    """Why ``out`` is not the log that a manifest asks for; None if it is.

    A log of the same size and time of last change is taken for the same, unless ``thorough``.
    """
    out, truth = Path(out), truth_folder(out)
    if reason := tables.why(truth, wanted):
        return reason
    if not out.exists():
        return "there is no output yet"
    found = tables.read_manifest(truth)
    if not thorough and manifests.stamp(out) == found.get("stamp"):
        return None
    same = manifests.record(out) == found.get("log")
    return None if same else f"{out} is not the log that was written"


def _replaceable(out: Path, truth: Path) -> tables.Manifest | None:
    """The record of the log that is going to be replaced; an error if logeval did not write it."""
    if not out.exists():
        return None
    tables.recover(truth)
    found = manifests.record(out)
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
        if suffix == ".gz":
            with igzip.IGzipFile("", "wb", GZ_LEVEL, raw, mtime=0) as file:
                yield file
        elif suffix == ".zst":
            yield ZstdWriter(raw)
        else:
            yield raw
