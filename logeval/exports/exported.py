"""What ``export`` gives: a table, the files made of it, and a sentence about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from logeval.clicks.naming import naming_of
from logeval.exports import forms
from logeval.exports.interventions import propensities_from, without_value
from logeval.exports.judgments import graded, withheld_words
from logeval.exports.ltr import training_files

if TYPE_CHECKING:
    from logeval.exports.export import Export


@dataclass(frozen=True)
class Exported:
    """``files`` holds texts by what is appended to the name of ``out``; "" is ``out`` itself."""

    table: pd.DataFrame
    files: dict[str, str]
    words: str

    def __repr__(self) -> str:
        return f"Exported: {self.words}"


def exported(asked: Export) -> Exported:
    """The table that is asked for, and its files."""
    fitted, naming = asked.fitted.named(asked.model), naming_of(asked.fitted)
    if asked.propensities is not None:
        table, source = propensities_from(asked, naming)
        form = forms.PROPENSITIES[asked.propensities]
        whose = f"{table['query'].nunique()} queries" if asked.per_query else "all queries"
        words = f"examination of {table['position'].max()} positions, {whose}, {source}"
        return Exported(table, {"": form(table)}, words + without_value(table))
    every = graded(fitted, asked.relevance, asked.cuts, asked.quantiles, naming)
    table = every[~every["uncertain"]] if asked.uncertain == "withhold" else every
    words = withheld_words(every, asked.uncertain)
    if asked.ltr is not None:
        weights, source = None, ""
        if asked.propensities_from is not None:
            weights, source = propensities_from(asked, naming)
            source = f"; clicks weighed by examination {source}"
        found, rows = training_files(asked, table, weights, naming)
        rows += source
        return Exported(table, found, f"{rows}; {words}" if asked.ltr == "svmlight" else rows)
    assert asked.judgments is not None
    return Exported(table, {"": forms.JUDGMENTS[asked.judgments](table)}, words)
