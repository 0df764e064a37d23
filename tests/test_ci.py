"""``.ci/run``: it gets a browser where it may, and runs the tests in any case."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).parents[1] / ".ci" / "run"
MISSING = "There is no Chromium, and it could not be installed"


def command(folder, name, *lines):
    """A command of the machine that the script runs on."""
    file = folder / name
    file.write_text("\n".join([f"#!{shutil.which('bash')}", *lines, ""]))
    file.chmod(0o755)


def ran(tmp_path, apt=None, root=True, **commands):
    """What the script prints and calls on a machine with these commands and no others."""
    machine, calls = tmp_path / "bin", tmp_path / "calls"
    machine.mkdir()
    calls.touch()
    (tmp_path / ".ci").mkdir()
    shutil.copy(RUN, tmp_path / ".ci" / "run")
    for name in ("bash", "env", "dirname", "timeout", "chmod"):
        (machine / name).symlink_to(shutil.which(name))
    command(machine, "id", f"echo {0 if root else 1000}")
    command(machine, "make", 'echo "make $*"')
    if apt is not None:
        command(machine, "apt-get", f'echo "$*" >> {calls}', apt.format(machine=machine))
    for name, line in commands.items():
        command(machine, name, line)
    done = subprocess.run(
        [machine / "bash", tmp_path / ".ci" / "run"], env={"PATH": str(machine)},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done, calls.read_text().splitlines()


INSTALLS = "[[ $* != *install* ]] || {{ echo > {machine}/chromium; chmod +x {machine}/chromium; }}"


@pytest.mark.skipif(os.name != "posix", reason="a script for bash")
@pytest.mark.parametrize(
    ("machine", "asked", "missing"),
    [
        ({"chromium": "true", "apt": INSTALLS}, 0, False),  # there is one
        ({"apt": INSTALLS}, 2, False),
        ({"apt": "echo no network >&2; exit 100"}, 1, True),
        ({"apt": "true"}, 2, True),  # says that it did, and did not
        ({"apt": INSTALLS, "root": False}, 0, True),
        ({}, 0, True),
    ],
)
def test_a_browser_is_installed_where_that_is_possible(tmp_path, machine, asked, missing):
    done, calls = ran(tmp_path, **machine)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "make test"
    assert len(calls) == asked
    assert (MISSING in done.stdout) == missing


def test_tests_that_fail_are_not_hidden(tmp_path):
    done, _ = ran(tmp_path, make="exit 2")
    assert done.returncode == 2
