"""Hooks of mkdocs: README, notebooks and linked sources are pages of the site too.

They stay where they are in the repository, with links that hold there; the site gets copies with
the links put right.
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
HOME = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "data/README.md": "data.md",
}
LINK = re.compile(r"\[((?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\((?!\w+:|#)([^)#]*)(#[^)]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages and sources that are outside docs/."""
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in HOME}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        texts[f"notebooks/{path.name}"] = notebook_text(path)
    for path, text in texts.items():
        files.append(File.generated(config, place(path) or "", content=relinked(text, path)))
    pages = {f"docs/{f.src_uri}": f.content_string for f in files.documentation_pages()}
    for where, text in {**texts, **pages}.items():
        for target in targets(text, where):
            page = place(target) or ""
            if page.startswith("source/") and not files.get_file_from_path(page):
                files.append(File.generated(config, page, content=source_text(target)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Put the links of the pages in docs/ right."""
    if page.file.generated_by:
        return markdown
    return relinked(markdown, f"docs/{page.file.src_uri}")


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
        return "\n".join(line for line in html.splitlines() if line.strip())
    return f"```text\n{''.join(data['text/plain'])}\n```"
