"""The README as PyPI shows it, where links into the repository lead nowhere.

With a line ``Repository = "https://..."`` in ``[project.urls]`` they become links to it, and images
the raw files there; without, images are left out and links become plain text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\[\]]*)\]\((?!\w+:|#)([^)]+)\)")


class Readme(MetadataHookInterface):
    """Fills in the dynamic field ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": for_pypi(text, repository),
        }


def for_pypi(text: str, repository: str | None) -> str:
    """The README without links that hold in the repository alone."""

    def link(match: re.Match[str]) -> str:
        image, label, target = match.groups()
        if repository is None:
            return "" if image else label
        return f"{image}[{label}]({repository}/{'raw' if image else 'blob'}/main/{target})"

    return LINK.sub(link, text)
