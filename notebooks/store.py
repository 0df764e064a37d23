"""Runs the notebooks and stores them with their outputs: ``python notebooks/store.py [NAME...]``.

``tests/test_notebooks.py`` runs them in the same way and compares.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
DPI = 75  # small figures: they are stored in the repository


def executed(path: Path, folder: Path) -> nbformat.NotebookNode:
    """The notebook with its outputs; it runs in ``folder``/work, and its files go to ``folder``."""
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
    notebook = nbformat.read(path, as_version=4)
    with patch.dict(os.environ, jupyter):
        os.environ.pop("MPLBACKEND", None)  # figures are shown in the notebook
        NotebookClient(
            notebook,
            timeout=900,
            kernel_name="current",
            resources={"metadata": {"path": str(folder / "work")}},
            record_timing=False,
        ).execute()
    stored = nbformat.read(path, as_version=4)  # its metadata, not that of the kernel
    for cell, done in zip(stored.cells, notebook.cells, strict=True):
        if cell.cell_type == "code":
            cell.outputs = [o for o in done.outputs if o.get("name") != "stderr"]
            cell.execution_count = done.execution_count
    return stored


def main() -> None:
    """See the top of this file."""
    for path in sorted(HERE.glob("*.ipynb")):
        if len(sys.argv) > 1 and path.stem not in sys.argv[1:]:
            continue
        with TemporaryDirectory() as folder:
            nbformat.write(executed(path, Path(folder)), path)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
