"""Every notebook runs from top to bottom, asks one question, and holds no logic of its own."""

import ast
import base64
import io
import re
import sys
import tomllib
from decimal import Decimal
from pathlib import Path

import matplotlib.image
import nbformat
import numpy as np
import pytest
from IPython.core.inputtransformer2 import TransformerManager

from notebooks.store import executed

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
OWN_POLICY = "04-write-your-own-policy.ipynb"
LOGIC = (
    ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.For, ast.While, ast.If, ast.Try,
    ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp,
)  # fmt: skip
FRACTION = r"-?\d+\.\d+"
READING = "**How to read it.**"

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path):
    return nbformat.read(path, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def logic(cell):
    """The parts of a cell that a notebook should leave to the library."""
    tree = ast.parse(TransformerManager().transform_cell(cell.source))
    return [node for node in ast.walk(tree) if isinstance(node, LOGIC)]


def test_the_notebooks_are_there():
    assert [path.stem for path in NOTEBOOKS] == [
        "01-your-own-log",
        "02-fit-and-check-click-models",
        "03-compare-bandits",
        "04-write-your-own-policy",
        "05-what-would-it-have-earned",
        "06-users-that-differ",
    ]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebooks")
    found = executed(NOTEBOOKS, folder)
    assert not list((folder / "work").iterdir()), "they write to their temporary folders only"
    return found


@every_notebook
def test_its_outputs_are_what_the_code_gives_and_figures_are_explained(path, ran):
    stored, done = read(path), ran[path]
    remedy = "run: make notebooks"
    for cell, new in zip(code_cells(stored), code_cells(done), strict=True):
        assert cell.execution_count == new.execution_count, remedy
        assert len(cell.outputs) == len(new.outputs), f"{cell.id}; {remedy}"
        for old, output in zip(cell.outputs, new.outputs, strict=True):
            same(old, output, f"{cell.id}; {remedy}")
    figures = [i for i, cell in enumerate(done.cells) if shows_a_figure(cell)]
    assert figures
    for i in figures:
        text = done.cells[i + 1].source
        assert text.startswith(READING)
        sentences = re.findall(r"\.(?:\s|$)", text.removeprefix(READING))
        assert len(sentences) == 2, text
    assert path.stat().st_size < 250_000, "figures are small"


def same(old, new, place):
    """The outputs are equal, as far as fonts and versions of libraries let them."""
    assert old.output_type == new.output_type, place
    assert alike(old.get("text", ""), new.get("text", "")), place
    data, now = old.get("data", {}), new.get("data", {})
    assert data.keys() == now.keys(), place
    for kind in data.keys() - {"image/png"}:
        assert alike(data[kind], now[kind]), place
    if "image/png" in data:
        a, b = pixels(data["image/png"]), pixels(now["image/png"])
        assert np.abs(np.subtract(a.shape, b.shape)).max() <= 0.03 * max(a.shape), place
        coarse = [histogram(image) for image in (a, b)]
        assert np.abs(coarse[0] - coarse[1]).sum() < 0.05, place


def alike(old, new):
    """Equal; another NumPy or SciPy may round a fraction the other way, in its last digit."""
    if re.sub(FRACTION, "", old) != re.sub(FRACTION, "", new):
        return False
    pairs = zip(re.findall(FRACTION, old), re.findall(FRACTION, new), strict=True)
    return all(
        len(a.partition(".")[2]) == len(b.partition(".")[2])
        and abs(Decimal(a) - Decimal(b)) <= Decimal(1).scaleb(-len(a.partition(".")[2]))
        for a, b in pairs
    )


def test_a_rounded_digit_is_alike_and_nothing_else():
    assert alike("a 0.183 7", "a 0.184 7")
    for other in ("a 0.185 7", "a 0.183 8", "b 0.183 7", "a 0.1830 7", "a -0.183 7"):
        assert not alike("a 0.183 7", other)


def pixels(png):
    return matplotlib.image.imread(io.BytesIO(base64.b64decode(png)))[..., :3]


def histogram(image):
    """Shares of the colours, in 4 x 4 x 4 bins."""
    found = np.histogramdd(image.reshape(-1, 3), bins=4, range=[(0, 1.001)] * 3)[0]
    return found / found.sum()


def shows_a_figure(cell):
    return any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))


@every_notebook
def test_it_asks_one_question_and_answers_it(path):
    texts = [cell.source for cell in read(path).cells if cell.cell_type == "markdown"]
    titles = [line for text in texts for line in text.splitlines() if line.startswith("#")]
    assert len(titles) == 1
    assert re.fullmatch(r"# .*\?", texts[0].splitlines()[0])
    assert texts[-1].startswith("**Answer.**")


@every_notebook
def test_it_runs_in_a_hosted_notebook_where_nothing_is_installed(path):
    """Its first cell installs logeval; here it is not run, for that needs the network."""
    install, *others = code_cells(read(path))
    assert install.source == "%pip install --quiet logeval"
    assert install.metadata.tags == ["skip-execution"]
    assert not [cell.id for cell in others if "skip-execution" in cell.metadata.get("tags", [])]
    trees = [ast.parse(TransformerManager().transform_cell(cell.source)) for cell in others]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.match(r"[\w-]+", name)[0] for name in project["dependencies"]}
    found = {name.partition(".")[0] for name in names} - sys.stdlib_module_names
    assert found <= needed | {"logeval"}, "what comes with it"


@every_notebook
def test_it_is_stored_with_ids_of_its_own(path):
    notebook = read(path)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", id_) for id_ in ids), "ids are words, not random"


@every_notebook
def test_it_holds_no_logic_but_the_users_policy(path):
    with_logic = [cell.id for cell in code_cells(read(path)) if logic(cell)]
    assert with_logic == (["policy"] if path.name == OWN_POLICY else [])


def test_logic_would_be_found():
    for source in ("def f():\n    pass", "%matplotlib inline\n[x for x in y]", "f(lambda: 1)"):
        assert logic(nbformat.v4.new_code_cell(source))
    assert not logic(nbformat.v4.new_code_cell("%matplotlib inline\nlog.describe().plot();"))


@every_notebook
def test_its_links_lead_somewhere(path):
    for cell in read(path).cells:
        for link in re.findall(r"\]\((?!http)([^)#]+)[^)]*\)", cell.source):
            assert (path.parent / link).exists(), link
