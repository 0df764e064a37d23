"""Runs the notebooks and stores them with their outputs: ``python notebooks/store.py [NAME...]``.

All run in one kernel, one after the other, each with nothing of the one before:
importing what they need would take longer than they do. ``tests/test_notebooks.py`` runs them in
the same way and compares.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
DPI = 75  # small figures: they are stored in the repository


def executed(paths: Sequence[Path], folder: Path) -> dict[Path, nbformat.NotebookNode]:
    """The notebooks with their outputs.

    They run in ``folder``/work, and their files go to ``folder``.
    """
    kernel = folder / "jupyter" / "kernels" / "current"
    for made in (kernel, folder / "work", folder / "tmp"):
        made.mkdir(parents=True)
    (folder / "matplotlibrc").write_text(f"figure.dpi: {DPI}\n")
    cache = {name: os.environ[name] for name in ("NUMBA_CACHE_DIR",) if name in os.environ}
    spec = {  # this interpreter with this source
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "this interpreter",
        "language": "python",
        "env": {
            "PYTHONPATH": f"{HERE.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
            "TMPDIR": str(folder / "tmp"),
            "IPYTHONDIR": str(folder / "ipython"),
            "MATPLOTLIBRC": str(folder / "matplotlibrc"),
            **cache,
        },
    }
    (kernel / "kernel.json").write_text(json.dumps(spec))
    jupyter = {
        "JUPYTER_PATH": str(folder / "jupyter"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
    }
    found = {path: nbformat.read(path, as_version=4) for path in paths}
    together = nbformat.v4.new_notebook()
    for notebook in found.values():
        together.cells += [nbformat.v4.new_code_cell("%reset -f"), *notebook.cells]
    with patch.dict(os.environ, jupyter):
        os.environ.pop("MPLBACKEND", None)  # figures are shown in the notebook
        NotebookClient(
            together,
            timeout=900,
            kernel_name="current",
            resources={"metadata": {"path": str(folder / "work")}},
            record_timing=False,
        ).execute()
    for notebook in found.values():
        ran = [cell for cell in notebook.cells if cell.get("execution_count")]
        for count, cell in enumerate(ran, 1):
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
            for counted in (cell, *(o for o in cell.outputs if "execution_count" in o)):
                counted.execution_count = count
    return found


def main() -> None:
    """See the top of this file."""
    paths = [p for p in sorted(HERE.glob("*.ipynb")) if p.stem in sys.argv[1:] or not sys.argv[1:]]
    with TemporaryDirectory() as folder:
        for path, notebook in executed(paths, Path(folder)).items():
            nbformat.write(notebook, path)
            print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
