"""The roles that a column of a log can have, and the names by which columns are known to have them.

Names are compared without case, blanks and punctuation: ``sessionid`` is ``Session ID``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


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
            "item itemid url doc docid document documentid product productid sku asin listingid "
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
            "propensity propensityscore",
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
