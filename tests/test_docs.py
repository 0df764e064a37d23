"""The documentation is true: its commands run, its tables are those of the code."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from logeval import schemas

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "docs/synthetic.md", "docs/formats.md"]


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """Run shell commands in an empty folder, with `logeval` on the path."""
    folder = tmp_path_factory.mktemp("docs")
    bin_ = folder / ".bin"
    bin_.mkdir()
    (bin_ / "logeval").write_text(f'#!/bin/sh\nexec {sys.executable} -m logeval.cli "$@"\n')
    (bin_ / "logeval").chmod(0o755)
    environment = os.environ | {
        "PATH": f"{bin_}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
    }

    def run(command, where="."):
        (folder / where).mkdir(exist_ok=True)
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=folder / where,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        return done.stdout

    return run


def blocks(page, language):
    text = (ROOT / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run_in_their_order(shell, page):
    where = page.replace("/", "-")
    shell("printf 'qid,urls,clicks\\n7,11 12,0 1\\n' > mine.csv", where)
    commands = [
        line.removeprefix("$ ")
        for block in blocks(page, "console")
        for line in block.splitlines()
        if line.startswith("$ ")
    ]
    assert commands
    for command in commands:
        shell(command, where)
    for code in blocks(page, "python"):
        shell(f"{sys.executable} - <<'EOF'\n{code}\nEOF", where)


def test_the_tables_page_is_made_from_the_schemas():
    assert (ROOT / "docs" / "tables.md").read_text() == schemas.markdown(), (
        "run: python -m logeval.schemas > docs/tables.md"
    )


def test_the_demo_runs_and_ends_with_what_to_look_at(shell):
    script = (ROOT / "pipelines" / "demo.sh").read_text()
    shell(f"cat > demo.sh <<'EOF'\n{script}\nEOF", "demo")
    out = shell("BIN=../.bin sh demo.sh", "demo")
    path = out.strip().splitlines()[-1].removeprefix("== Look at ")
    assert path in shell("ls demo/*.png", "demo")


def test_the_two_commands_of_the_readme_are_make_targets():
    for target in ("demo", "test"):
        assert f"make {target} " in (ROOT / "README.md").read_text()
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_links_between_the_pages_lead_somewhere():
    pages = [page for folder in (".", "docs", "data") for page in (ROOT / folder).glob("*.md")]
    assert len(pages) >= 6
    for page in pages:
        for link in re.findall(r"\]\((?!http)([^)#]+)[^)]*\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page}: {link}"
