"""The click models by name. A new model is one file and one line here."""

from __future__ import annotations

from collections.abc import Iterable

from logeval.clicks.models.ccm import CCM
from logeval.clicks.models.cm import CM
from logeval.clicks.models.ctr import DCTR, GCTR, RCTR
from logeval.clicks.models.dbn import DBN, SDBN
from logeval.clicks.models.dcm import DCM
from logeval.clicks.models.model import ClickModel
from logeval.clicks.models.pbm import PBM
from logeval.clicks.models.ubm import UBM
from logeval.errors import unknown_names

MODELS: dict[str, type[ClickModel]] = {
    "GCTR": GCTR,
    "RCTR": RCTR,
    "DCTR": DCTR,
    "PBM": PBM,
    "CM": CM,
    "DCM": DCM,
    "SDBN": SDBN,
    "DBN": DBN,
    "UBM": UBM,
    "CCM": CCM,
}


def model_names(names: Iterable[str]) -> list[str]:
    """The models of those names, as the papers print them; case does not matter."""
    names = list(names)
    known = {name.lower(): name for name in MODELS}
    unknown = [name for name in names if name.lower() not in known]
    if unknown:
        raise unknown_names("click model", unknown, MODELS)
    return list(dict.fromkeys(known[name.lower()] for name in names))
