"""The roles that a column of a log can have, and the names by which columns are known to have them.

Names are compared without case, blanks and punctuation: ``sessionid`` is ``Session ID``.

From names of columns and the first rows: what each column is taken for, and what is not used.

Rows are results (a position each), pages (a list each), or counts (impressions and clicks of a
result at a position). A user's map comes first, then the names that a format knows, then those of
``roles``.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from logeval.errors import LogevalError, printable, unknown_names, visible
from logeval.log.reading.source import Source
from logeval.log.tables.files import Batch, TableFile, check_names
from logeval.log.tables.frame import Frame, open_table
from logeval.log.tables.values import Sample, check_exact, unit_of


@dataclass(frozen=True)
class Role:
    """What a column says; ``schema`` is its name in the table of SERPs."""

    name: str
    says: str
    names: tuple[str, ...]
    schema: str = ""
    lists: tuple[str, ...] = ()  # names of a column with a list per page


def _role(name: str, says: str, names: str, schema: str = "", lists: str = "") -> Role:
    return Role(name, says, tuple(names.split()), schema, tuple(lists.split()))


ROLES = {
    role.name: role
    for role in (
        _role(
            "search",
            "which rows are one search",
            "searchid srchid search requestid searchrequestid impressionid pageviewid queryuuid "
            "searchuuid resultpageid queryno",
        ),
        _role("session", "search session", "sessionid session visitid visit", "session_id"),
        _role(
            "user",
            "user",
            "userid user clientid visitorid customerid cookieid anonymousid uid memberid",
            "user_id",
        ),
        _role("day", "day", "day dayid", "day"),
        _role(
            "time",
            "time of the search",
            "timestamp time datetime date ts eventtime searchtime querytime requesttime createdat",
            "time",
        ),
        _role("serp", "result page within the session", "serpid serp", "serp_id"),
        _role(
            "query",
            "query",
            "query searchterm searchquery querytext userquery searchtext keyword keywords "
            "searchphrase searchstring term q queryid qid",
            "query_id",
        ),
        _role("region", "region of the user", "regionid region", "region_id"),
        _role("test", "whether clicks are withheld", "test istest", "test"),
        _role(
            "item",
            "the result",
            "item itemid url doc docid document documentid product productid producturl "
            "sku asin ean listingid "
            "listing objectid resultid result contentid articleid hotelid propid adid videoid "
            "urlid urlmd5",
            "items",
            "items itemids docids urls documents documentids products productids skus results "
            "resultids objectids list hits hitids",
        ),
        _role("domain", "domain of the result", "domain domainid host", "domains", "domains"),
        _role(
            "position",
            "position of the result",
            "position pos rank resultposition resultrank itemposition displayposition slot place "
            "ordinal",
            lists="positions ranks position",
        ),
        _role(
            "clicks",
            "clicks on the result",
            "clicks click clicked isclick isclicked wasclicked hasclick nclicks clickcount "
            "clickbool numclicks",
            "clicks",
            "clicks click clicked",
        ),
        _role("click_time", "time of the click", "clicktime", "click_times", "clicktimes"),
        _role(
            "propensity",
            "probability that the logger shows the result there",
            "propensity propensityscore pscore actionprob",
            "propensities",
            "propensities",
        ),
        _role(
            "random",
            "whether the list was shown in random order",
            "random randombool israndom randomized randomised randomorder shownrandomly",
            "random",
        ),
        _role(
            "reward",
            "a second reward of the result, as purchases",
            "",
            "rewards",
            "rewards",
        ),
        _role(
            "impressions",
            "how often the result was shown there",
            "impressions nimpressions impressioncount views shown displays",
        ),
    )
}  # fmt: skip


def plain(name: str) -> str:
    """A name as it is compared."""
    return re.sub(r"[\W_]+", "", name).lower()


def role_named(name: str) -> str | None:
    """The role that a user means: by its name, or that in the table of SERPs."""
    for role in ROLES.values():
        if name in (role.name, role.schema):
            return role.name
    return None


Kind = Literal["results", "pages", "counts", "placements"]
SAID = {
    "results": "rows per result",
    "pages": "rows per page",
    "counts": "counted results",
    "placements": "single placements",
}
NEEDED: dict[Kind, tuple[str, ...]] = {
    "results": ("query", "item", "position", "clicks", "search"),
    "pages": ("query", "item", "clicks"),
    "counts": ("query", "item", "position", "impressions", "clicks"),
    "placements": ("item", "position", "clicks"),
}
USED: dict[Kind, tuple[str, ...]] = {
    "results": tuple(name for name in ROLES if name != "impressions"),
    "pages": tuple(name for name in ROLES if name not in ("search", "impressions")),
    "counts": ("query", "region", "item", "position", "impressions", "clicks"),
    "placements": (
        "session", "user", "day", "time", "query", "region", "item", "position", "clicks",
        "propensity", "reward",
    ),
}  # fmt: skip
IDS = ("search", "session", "serp", "query", "user", "region", "item", "domain")
AND = "+"  # between the columns that are a search together
CLOSE = 0.8  # of difflib: names that may be a slip of the pen
NAME_THEM = (
    "name them, as --map query=COLUMN --map item=COLUMN --map clicks=COLUMN, and with a row per "
    "result --map position=COLUMN --map search=COLUMN, in Python by the argument columns"
)

Map = Mapping[str, str]


@dataclass(frozen=True)
class Layout:
    """What the columns of a log are taken for."""

    kind: Kind
    columns: dict[str, tuple[str, ...]]  # role -> columns; a search may have several
    unused: list[str] = field(default_factory=list)
    doubts: dict[str, str] = field(default_factory=dict)  # of those: what may be wrong
    unit: str | None = None  # of the times, if they are numbers
    dates: bool = False  # whether days are dates
    by_file: bool = False  # whether searches of two files are never the same
    apart: bool = False  # whether its clicks are in another file

    def column(self, role: str) -> str | None:
        """The column of a role that has one."""
        found = self.columns.get(role)
        return found[0] if found else None

    def check(self, batch: Batch) -> None:
        """Raise for ids that two rows may share by rounding."""
        for role, names in self.columns.items():
            for name in names if role in IDS else ():
                check_exact(name, batch.columns[name])

    @property
    def has_clock(self) -> bool:
        """Whether times are times of day, and not just since the start of a session."""
        return self.unit != "plain"

    @property
    def has_dates(self) -> bool:
        """Whether days are dates: by themselves, or those of the times."""
        return self.dates or (
            "day" not in self.columns and "time" in self.columns and self.has_clock
        )

    @property
    def missing(self) -> list[str]:
        """The roles that no column has, of those that it takes."""
        lacks = ("clicks",) if self.apart else ()
        return [role for role in NEEDED[self.kind] if role not in (*self.columns, *lacks)]

    @property
    def wanted(self) -> list[str]:
        """All columns that are read."""
        return list(dict.fromkeys(name for names in self.columns.values() for name in names))

    def sentence(self) -> str:
        """What was taken for what, and what is not used."""
        taken = ", ".join(
            f"{role} = {f' {AND} '.join(map(visible, names))}"
            for role, names in self.columns.items()
        )
        if self.unit not in (None, "plain"):
            taken += f" ({self.unit} since 1970)"
        unused = [
            f"{visible(name)} ({self.doubts[name]})" if name in self.doubts else visible(name)
            for name in self.unused
        ]
        return f"{SAID[self.kind]}; {taken}; not used: {', '.join(unused) or 'nothing'}"


def recognise(
    table: TableFile, given: Map, known: Map | None = None, kind: Kind | None = None
) -> Layout | None:
    """The layout of a file, of a ``kind`` if that is known; None if it is none of ours.

    ``given`` is the user's map, ``known`` that of a format.
    """
    check_names(table.name, table.names)
    columns = _mapped(table, {**(known or {}), **given})
    for role in ROLES.values() if known is None else ():
        taken = {name for names in columns.values() for name in names}
        free = {plain(name): name for name in reversed(table.names) if name not in taken}
        named = [free[name] for name in (*role.names, *role.lists) if name in free]
        if named and role.name not in columns:
            columns[role.name] = (named[0],)
    sample = Sample(table.sample())
    kind = kind or _kind(columns, sample)
    if kind is None:
        return None
    columns = {role: names for role, names in columns.items() if role in USED[kind]}
    doubts = _unreadable(kind, columns, sample, given)
    if kind == "results":
        _find_search(columns)
    unused = [name for name in table.names if not any(name in n for n in columns.values())]
    for name in unused:
        if name not in doubts and (meant := _meant(name, columns, kind)):
            doubts[name] = f"is it the {meant}? then map {meant}={visible(name)}"
    days = columns.get("day")
    dates = days is not None and sample.share_bad(days[0], "number")[0] > 0.5
    unit = _unit(columns, sample, kind)
    return Layout(kind, columns, unused, doubts, unit, dates)


def _unit(columns: Mapping[str, Sequence[str]], sample: Sample, kind: Kind) -> str | None:
    """The unit of times, those of clicks too: None for text, ``plain`` if they are no clock."""
    for role in ("time", "click_time"):
        if role in columns:
            lists = kind == "pages" and role == "click_time"
            typical = sample.typical(columns[role][0], lists)
            return None if typical is None else unit_of(typical)
    return None


def column_names(source: Source | Frame) -> set[str]:
    """The names of a source's columns; none, if it is no table."""
    try:
        return set(open_table(source).names)
    except LogevalError:
        return set()


def recognised(source: Source | Frame, given: Map) -> Layout | None:
    """The layout of a source, if it is a table; the user's map must fit."""
    try:
        table = open_table(source)
        key = tuple(given.items())
        if key not in table.known:
            table.known[key] = recognise(table, given)
        layout: Layout | None = table.known[key]
        return layout
    except LogevalError:
        if given:
            raise
        return None


def check_complete(table: TableFile, layout: Layout | None, apart: bool = False) -> Layout:
    """The layout, if nothing is missing; else an error that asks for it.

    ``apart``: the clicks are in another file.
    """
    there = printable(table.names[:30]) + (", ..." if len(table.names) > 30 else "")
    if layout is None:
        raise LogevalError(
            f"{table.name}: no result and its clicks are among its columns ({there}); {NAME_THEM}"
        )
    layout = replace(layout, apart=apart)
    missing = layout.missing
    if not missing:
        return layout
    says = " and ".join(f"{role} ({ROLES[role].says})" for role in missing)
    yours = layout.unused[0] if len(missing) == len(layout.unused) == 1 else "COLUMN"
    named = " ".join(f"--map {shlex.quote(f'{role}={yours}')}" for role in missing)
    remedy = f"name it: {visible(named)}, in Python by the argument columns"
    if "search" in missing:
        remedy += (
            ", or several that are one search together, as "
            f"--map search=session{AND}query; user, time and query together will do"
        )
    doubts = "".join(f"; {visible(name)}: {why}" for name, why in layout.doubts.items())
    raise LogevalError(
        f"{table.name}: there is no column for {says} in its "
        f"{SAID[layout.kind]}; it has {there}{doubts}; {remedy}"
    )


def check_almost(table: TableFile, given: Map) -> None:
    """Raise for what is missing if most columns are there of a kind of rows."""
    found = [recognise(table, given, kind=kind) for kind in NEEDED]
    layouts = [layout for layout in found if layout is not None]
    nearest = min(layouts, key=lambda layout: len(layout.missing))
    if 2 * len(nearest.missing) < len(NEEDED[nearest.kind]):
        check_complete(table, nearest)


def _mapped(table: TableFile, given: Map) -> dict[str, tuple[str, ...]]:
    columns = {}
    known = [name for role in ROLES.values() for name in (role.name, role.schema) if name]
    if unknown := [name for name in given if role_named(name) is None]:
        raise unknown_names("column in the column map", unknown, dict.fromkeys(known))
    for name, theirs in given.items():
        role = role_named(name)
        several = theirs.split(AND) if theirs not in table.names and role == "search" else [theirs]
        for one in several:
            if one not in table.names:
                raise LogevalError(
                    f"{table.name}: there is no column {one!r} (it has {printable(table.names)}); "
                    f"map yours to {name}"
                )
        columns[str(role)] = tuple(several)
    return columns


def _kind(columns: Mapping[str, Sequence[str]], sample: Sample) -> Kind | None:
    if "item" not in columns or "clicks" not in columns:
        return None
    item = columns["item"][0]
    lists = sample.is_list(item) or plain(item) in ROLES["item"].lists
    if lists and not ("position" in columns and not sample.is_list(columns["position"][0])):
        return "pages"
    if "position" not in columns:
        return None if lists else "results"
    found = dict(columns)
    _find_search(found)
    if "search" in found:
        return "results"
    if "impressions" in columns:
        return "counts"
    return "results" if "query" in columns and "propensity" not in columns else "placements"


def _find_search(columns: dict[str, Any]) -> None:
    """What tells one search from another: an id, the page of a session, or who, when and what."""
    if "search" in columns:
        return
    who = columns.get("session") or columns.get("user")
    if "serp" in columns:
        columns["search"] = (*columns.get("session", ()), *columns["serp"])
    elif who and "time" in columns and "query" in columns:
        columns["search"] = (*who, *columns["time"], *columns["query"])


CHECKED = {
    "time": ("no times: ISO 8601, or seconds since 1970", "instant"),
    "day": ("no days", "instant"),
    "propensity": ("no probabilities", "amount"),
    "random": ("neither true nor false", "number"),
    "test": ("neither true nor false", "number"),
    "click_time": ("no times", "instant"),
}


def _unreadable(
    kind: Kind, columns: dict[str, tuple[str, ...]], sample: Sample, given: Map
) -> dict[str, str]:
    """Columns that go by their names, and whose values are something else; they are not used."""
    doubts = {}
    asked = {role_named(name) for name in given}
    for role, (reason, macro) in CHECKED.items():
        if role in asked or role not in columns or (kind == "pages" and ROLES[role].lists):
            continue
        bad, there = sample.share_bad(columns[role][0], macro)
        if bad > 0.5:
            doubts[columns.pop(role)[0]] = reason
        elif role == "random" and not there:
            doubts[columns.pop(role)[0]] = "empty"
    return doubts


def _meant(name: str, columns: Iterable[str], kind: Kind) -> str | None:
    """The role that a column may have been meant for."""
    free = {
        known: role
        for role in USED[kind]
        if role not in columns
        for known in (*ROLES[role].names, *ROLES[role].lists)
        if len(known) > 4
    }
    close = difflib.get_close_matches(plain(name), free, n=1, cutoff=CLOSE)
    return free[close[0]] if close else None
