"""Compiled kernels on disk: used when whole, compiled again when not, never in the way."""

import builtins
import errno
import importlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from logeval.running import kernels, progress

ROOT = Path(__file__).parent.parent
MODULE = """
from logeval.running.kernels import njit

@njit(cache=True, nogil=True)
def added(x):
    return x + 1

@njit(cache=True, nogil=True)
def other(x):
    return x + 2
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "few_kernels.py").write_text(MODULE)
    return tmp_path


def calls(name="added", x=1):
    """The result in what is a new process to the cache, and how often it was found there."""
    module = importlib.reload(importlib.import_module("few_kernels"))
    kernel = getattr(module, name)
    return kernel(x), sum(kernel.stats.cache_hits.values())


def kept(folder, name="added"):
    (file,) = (folder / "cache").rglob(f"*{name}*.kernel")
    return file


def test_a_kernel_is_compiled_once(folder):
    assert [calls(), calls()] == [(2, 0), (2, 1)]


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "text", "other", "folder"])
def test_a_damaged_file_is_compiled_again(folder, damage):
    calls()
    calls("other")
    file = kept(folder)
    whole = file.read_bytes()
    for place in range(0, len(whole) if damage == "flipped" else 1, len(whole) // 20):
        content = {
            "flipped": whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :],
            "cut": whole[: len(whole) // 2],
            "empty": b"",
            "text": b"not a kernel",
            "other": kept(folder, "other").read_bytes(),
            "folder": b"",
        }[damage]
        file.write_bytes(content)
        if damage == "folder":
            file.unlink()
            file.mkdir()
        assert calls() == (2, 0)
        assert calls() == (2, 0 if damage == "folder" else 1), "it was mended"


def test_an_edited_kernel_and_another_version_are_compiled_again(folder, monkeypatch):
    calls()
    monkeypatch.setattr(kernels, "__version__", "another")
    assert calls() == (2, 0)
    assert calls() == (2, 1)
    (folder / "few_kernels.py").write_text(MODULE.replace("x + 1", "x + 10"))
    importlib.invalidate_caches()
    assert calls()[0] == 11


def test_an_edit_in_a_kernel_or_constant_of_another_file_is_noticed(folder):
    text = "from few_kernels import added, njit\n"
    text += "STEP = 0\n@njit(cache=True)\ndef twice(x):\n    return 2 * added(x) + STEP\n"
    (folder / "calling.py").write_text(text)

    def result():
        importlib.invalidate_caches()
        calls()
        kernel = importlib.reload(importlib.import_module("calling")).twice
        return kernel(1), sum(kernel.stats.cache_hits.values())

    assert [result(), result()] == [(4, 0), (4, 1)]
    (folder / "few_kernels.py").write_text(MODULE.replace("x + 1", "x + 10"))
    assert [result(), result()] == [(22, 0), (22, 1)]
    (folder / "calling.py").write_text(text.replace("STEP = 0", "STEP = 5000"))
    assert [result(), result()] == [(5022, 0), (5022, 1)]


def test_kernels_of_one_making_are_kept_apart_and_found_again(folder):
    text = """
from few_kernels import added, njit, other

def made(step):
    @njit(cache=True)
    def twice(x):
        return 2 * step(x)
    return twice

by_added, by_other = made(added), made(other)
"""
    (folder / "making.py").write_text(text)

    def result(names):
        importlib.invalidate_caches()
        calls()
        module = importlib.reload(importlib.import_module("making"))
        kernels = [getattr(module, name) for name in names]
        return [(kernel(1), sum(kernel.stats.cache_hits.values())) for kernel in kernels]

    assert result(["by_added"]) == [(4, 0)]
    assert result(["by_other"]) == [(6, 0)]
    assert result(["by_other", "by_added"]) == [(6, 1), (4, 1)]
    (folder / "few_kernels.py").write_text(MODULE.replace("x + 1", "x + 10"))
    assert result(["by_added", "by_other"]) == [(22, 0), (6, 1)]


@pytest.mark.parametrize("how", ["full disk", "no folder"])
def test_where_nothing_can_be_written_nothing_stops(folder, monkeypatch, how):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    if how == "full disk":
        monkeypatch.setattr(Path, "write_bytes", full)
    else:  # root may write to any folder
        (folder / "file").write_text("")
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder / "file"))
    assert [calls(), calls()] == [(2, 0), (2, 0)]


def test_types_are_kept_apart_whoever_compiles_first(folder):
    """numba's index, read by two before either wrote it, gives both the same file."""
    for x in (1, 1.5, np.float32(2)):
        assert calls(x=x) == (x + 1, 0)
    assert len(list((folder / "cache").iterdir())) == 3
    assert [calls(x=x) for x in (1, 1.5, np.float32(2))] == [(2, 1), (2.5, 1), (3, 1)]


def test_an_edited_order_of_what_a_kernel_is_given_is_noticed(folder):
    text = """
from typing import NamedTuple
from few_kernels import njit

class Pair(NamedTuple):
    a: float
    b: float

@njit(cache=True)
def first(pair):
    return pair.a

def made():
    return first(Pair(1.0, 2.0))
"""

    def result():
        (folder / "pairs.py").write_text(text)
        importlib.invalidate_caches()
        return importlib.reload(importlib.import_module("pairs")).made()

    assert result() == 1.0
    text = text.replace("    a: float\n    b: float", "    bb: float\n    a: float")
    assert result() == 2.0


def test_kernels_are_kept_for_the_user(folder):
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    env |= {"XDG_CACHE_HOME": str(folder / "home"), "PYTHONPATH": f"{folder}:{ROOT}"}
    code = "from few_kernels import added; print(added(1), sum(added.stats.cache_hits.values()))"
    for hits in (0, 1):
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        assert done.stdout == f"2 {hits}\n"
    assert len(list((folder / "home" / "logeval").glob("added-*.kernel"))) == 1


def test_a_policy_first_used_in_a_notebook_is_kept(folder, monkeypatch):
    """``input`` belongs to the notebook's connections there, and cannot be kept."""
    text = """
from typing import NamedTuple
from logeval.policies.shared.kernel_policy import allocate, for_each_replica, ints, plain
from logeval.running.arrays import Ints
from logeval.running.kernels import njit_inline

class Memory(NamedTuple):
    N: Ints = ints("L")

@njit_inline
def recommend_one(now, u, mine, A):
    A[0] = mine.N[0]

@njit_inline
def learn_one(now, mine, A, clicks):
    mine.N[0] += 1

def learned():
    arrays, A, L = allocate(Memory(), 1, L=2), np.zeros((1, 1), np.int64), np.array([2])
    recommend, learn = for_each_replica(Memory(), recommend_one, learn_one)
    learn((), A, A, L, plain(arrays))
    recommend((), np.empty((1, 0)), A, L, plain(arrays))
    return A[0, 0], [sum(kernel.stats.cache_hits.values()) for kernel in (recommend, learn)]
"""
    (folder / "first_item.py").write_text("import numpy as np" + text)
    monkeypatch.setattr(builtins, "input", threading.Lock().acquire)
    for hits in (0, 1):
        module = importlib.reload(importlib.import_module("first_item"))
        assert module.learned() == (1, [hits, hits])
    assert len(list((folder / "cache").glob("view-*.kernel"))) == 1


def test_that_kernels_are_compiled_is_heard_once(folder, monkeypatch):
    heard = []
    monkeypatch.setattr(progress, "heard", lambda: heard.append(1))
    calls()
    calls("other")
    assert heard == [1]


def test_every_kernel_is_kept_this_way():
    sources = {path: path.read_text() for path in (ROOT / "logeval").rglob("*.py")}
    assert not [path for path, text in sources.items() if "from numba import" in text]
    assert "numba.njit" in sources.pop(ROOT / "logeval" / "running" / "kernels.py")
    assert not [path for path, text in sources.items() if "numba.njit" in text]
