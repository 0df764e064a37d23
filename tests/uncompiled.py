"""Run ranx without compiling its kernels, which takes longer than all that is asked of it."""

import json
import os
import subprocess
import sys


def uncompiled(code, *arguments):
    """What a program prints as JSON; its arguments are in ``sys.argv``."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)
