"""``logeval compile``: the demo finds all its kernels, and where they are kept."""

import os
import subprocess
import sys

from tests.commands.used_kernels import SMALL_DEMO

ROOT_ENV = os.environ | {"MPLBACKEND": "Agg"}
USED = "import sys; from tests.commands.used_kernels import used; print(*used(sys.argv[1:]))"


def used(*arguments):
    """The files of the kernels that a command uses, whether they are there or not."""
    done = subprocess.run(
        [sys.executable, "-c", USED, *map(str, arguments)],
        capture_output=True, text=True, env=ROOT_ENV, check=True,
    )  # fmt: skip
    return set(done.stdout.split())


def test_the_demo_uses_no_kernel_that_compile_leaves_out(tmp_path):
    demo = used("demo", *SMALL_DEMO, "--out", tmp_path / "demo")
    assert len(demo) > 30
    assert demo <= used("compile", "-q")
