"""What is published: the package and nothing else, with what it needs to run, and one version."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import logeval

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling", reason="hatchling is not installed (logeval[dev])")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.iterdir()
    with zipfile.ZipFile(path) as file:
        yield file


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = wheel.namelist()
    assert {name.partition("/")[0] for name in names} == {
        "logeval",
        f"logeval-{logeval.__version__}.dist-info",
    }
    kinds = {Path(name).suffix for name in names if name.startswith("logeval/")}
    assert kinds == {".py", ".typed", ".toml", ".html", ".css", ".js"}, "no data, no kernels"
    assert {"logeval/py.typed", "logeval/recipes/demo.toml"} <= set(names)
    assert not [name for name in names if "test" in name.lower()]
    assert sum(info.file_size for info in wheel.infolist()) < 4_000_000


def test_the_metadata_is_complete(wheel):
    (name,) = (n for n in wheel.namelist() if n.endswith("METADATA"))
    text = wheel.read(name).decode()
    for field in ("Author", "Summary", "License-Expression", "Requires-Python", "Keywords"):
        assert re.search(rf"^{field}: \S", text, re.MULTILINE), field
    assert "Typing :: Typed" in text
    assert "# logeval" in text


def test_the_citation_has_the_version():
    text = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", text, re.MULTILINE)[1] == logeval.__version__


def test_the_image_is_made_of_files_that_it_is_given():
    given = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert all((ROOT / name).exists() for name in given)
    recipe = (ROOT / "Dockerfile").read_text()
    version = re.findall(r"^FROM python:([\d.]+)-slim", recipe, re.MULTILINE)
    assert set(version) == {"3.13"}, "one that pyproject.toml allows"
