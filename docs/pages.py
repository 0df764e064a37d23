"""The pages of the site: those of docs/, README, notebooks and the sources they link to.

They stay where they are in the repository, with links that hold there; ``docs/pages.py FOLDER``
writes copies with the links put right, of which Zensical builds the site (``make docs``).
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
HOME = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "data/README.md": "data.md",
}
LINK = re.compile(r"\[((?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\((?!\w+:|#)([^)#]*)(#[^)]*)?\)")


def write_pages(folder: Path) -> None:
    """Write every page into a folder, in place of what is there."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    written = [*HOME, *(f"docs/{p.name}" for p in sorted((ROOT / "docs").glob("*.md")))]
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in written}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        texts[f"notebooks/{path.name}"] = notebook_text(path)
    pages = {place(path) or "": relinked(text, path) for path, text in texts.items()}
    for target in {t for path, text in texts.items() for t in targets(text, path)}:
        page = place(target) or ""
        if page.startswith("source/"):
            pages[page] = source_text(target)
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def place(path: str) -> str | None:
    """Where a file of the repository is in the site; None for what is not in it (a folder)."""
    if path in HOME:
        return HOME[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path == "notebooks":
        path = min(f"notebooks/{p.name}" for p in (ROOT / path).glob("*.ipynb"))
    if path.endswith(".ipynb"):
        return path.removesuffix(".ipynb") + ".md"
    return f"source/{path}.md" if (ROOT / path).is_file() else None


def targets(text: str, where: str) -> list[str]:
    """The files of the repository that a page of it links to."""
    found = [match[2] for match in LINK.finditer(text)]
    return [posixpath.normpath(posixpath.join(posixpath.dirname(where), t)) for t in found if t]


def relinked(text: str, where: str) -> str:
    """A page with links that hold in the site."""
    here = posixpath.dirname(place(where) or "")

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(where), match[2]))
        there = place(target)
        label = LINK.sub(link, match[1])
        if there is None:
            return label
        return f"[{label}]({posixpath.relpath(there, here or '.')}{match[3] or ''})"

    return LINK.sub(link, text)


def source_text(path: str) -> str:
    """A source file as a page."""
    return f"# {path}\n\n```python\n{(ROOT / path).read_text(encoding='utf-8')}```\n"


def notebook_text(path: Path) -> str:
    """A notebook with its outputs as Markdown."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(part for cell in cells for part in _cell(cell))


def _cell(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return [source]
    return [f"```python\n{source}\n```", *map(_output, cell["outputs"])]


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {"text/plain": output.get("text", "")})
    if "image/png" in data:
        png = "".join(data["image/png"]).replace("\n", "")
        return f'<img alt="figure" src="data:image/png;base64,{png}">'
    if "text/html" in data:
        html = re.sub(r"<style.*?</style>", "", "".join(data["text/html"]), flags=re.DOTALL)
        html = re.sub(r"<table[^>]*>", "<table>", html)  # which the theme lets scroll
        return "\n".join(line for line in html.splitlines() if line.strip())
    return f"```text\n{''.join(data['text/plain'])}\n```"


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
