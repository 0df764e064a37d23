"""What macOS and Windows lack is not leant on: calls are replaced by others, text is UTF-8."""

import ast
import gc
import io
import signal
import sys
from pathlib import Path

import pytest

import logeval
from logeval.running import console, progress, work

SOURCES = sorted(Path(logeval.__file__).parent.rglob("*.py"))
POSIX = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty"}  # modules


def tree(source):
    return ast.parse(Path(source).read_text(encoding="utf-8"))


def without_encoding(tree):
    """The lines that read or write text as the machine happens to have it."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        given = {word.arg for word in node.keywords}
        modes = [a.value for a in node.args[1:2] if isinstance(a, ast.Constant)]
        modes += [w.value.value for w in node.keywords if w.arg == "mode"]
        text = name == "read_text" or (name == "write_text" and ast.unparse(node.func) != WRITES)
        text |= ast.unparse(node.func) == "open" and "b" not in "".join(map(str, modes))
        if text and "encoding" not in given:
            yield node.lineno


WRITES = "files.write_text"  # which writes UTF-8


def test_text_is_utf_8_wherever_it_is_read_and_written():
    assert {
        file.name: lines for file in SOURCES if (lines := [*without_encoding(tree(file))])
    } == {}
    for code in ("open(f)", "open(f, 'w')", "path.read_text()", "path.write_text(text)"):
        assert [*without_encoding(ast.parse(code))] == [1]
    for code in ("open(f, 'rb')", "files.write_text(path, text)", "open(f, encoding='utf-8')"):
        assert [*without_encoding(ast.parse(code))] == []


def test_modules_of_posix_are_imported_only_where_their_absence_is_caught():
    found = set()
    for file in SOURCES:
        parts = tree(file)
        caught = {id(n) for t in ast.walk(parts) if isinstance(t, ast.Try) for n in ast.walk(t)}
        for node in ast.walk(parts):
            if isinstance(node, ast.Import) and POSIX & {a.name for a in node.names}:
                found.add((file.name, id(node) in caught))
    assert found == set()


def test_a_letter_that_the_terminal_lacks_is_spelled_out(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    console.guard()
    print("γ = 0.5", flush=True)
    assert written.getvalue() == b"\\u03b3 = 0.5\n"


def test_workers_start_without_masks_of_signals(monkeypatch):
    """As on Windows: the block is passed, and a worker does not hear Ctrl-C."""
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.delattr(signal, "pthread_sigmask")
    monkeypatch.setattr(progress, "heard", None)
    monkeypatch.setattr(work, "_end_with_parent", lambda until_closed: None)
    monkeypatch.setattr(work, "_done", None)
    with work._blocked(signal.SIGINT):
        pass
    try:
        work._start_worker([0.0], None)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_no_older_client_is_collected_while_one_starts(monkeypatch):
    """Its destructor would wait for the lock that the new one holds."""
    seen = []

    def start(*given, **named):
        seen.append(gc.isenabled())
        raise OSError

    monkeypatch.setattr("distributed.Client", start)
    with pytest.raises(logeval.LogevalError, match="no Dask scheduler"):
        list(work._on_cluster(len, [], "tcp://127.0.0.1:1", lambda *_: None))
    assert seen == [False]
    assert gc.isenabled()
