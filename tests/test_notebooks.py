"""Every notebook runs from top to bottom, asks one question, and holds no logic of its own."""

import ast
import json
import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
OWN_POLICY = "04-write-your-own-policy.ipynb"
LOGIC = (
    ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.For, ast.While, ast.If, ast.Try,
    ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp,
)  # fmt: skip
READING = "**How to read it.**"

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """The name of a kernel that is this interpreter with this source; its files go to tmp_path."""
    folder = tmp_path / "jupyter" / "kernels" / "current"
    folder.mkdir(parents=True)
    spec = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "this interpreter",
        "language": "python",
        "env": {
            "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
            "NUMBA_CACHE_DIR": os.environ["NUMBA_CACHE_DIR"],
            "TMPDIR": str(tmp_path),
            "IPYTHONDIR": str(tmp_path / "ipython"),
        },
    }
    (folder / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.delenv("MPLBACKEND", raising=False)  # figures are shown in the notebook
    return "current"


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
        "01-look-at-the-log",
        "02-fit-and-check-click-models",
        "03-compare-bandits",
        "04-write-your-own-policy",
        "05-what-if-the-model-is-wrong",
        "06-what-would-it-have-earned",
        "07-new-items-and-users",
    ]


@every_notebook
def test_it_runs_and_every_figure_is_explained(path, kernel, tmp_path):
    notebook = read(path)
    work = tmp_path / "work"
    work.mkdir()
    client = NotebookClient(
        notebook, timeout=300, kernel_name=kernel, resources={"metadata": {"path": str(work)}}
    )
    client.execute()
    figures = [i for i, cell in enumerate(notebook.cells) if shows_a_figure(cell)]
    assert figures
    for i in figures:
        text = notebook.cells[i + 1].source
        assert text.startswith(READING)
        sentences = re.findall(r"\.(?:\s|$)", text.removeprefix(READING))
        assert len(sentences) == 2, text
    assert not list(work.iterdir()), "a notebook writes to its temporary folder only"


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
def test_it_is_stored_without_outputs_and_with_ids_of_its_own(path):
    notebook = read(path)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    for cell in code_cells(notebook):
        assert cell.outputs == []
        assert cell.execution_count is None
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
