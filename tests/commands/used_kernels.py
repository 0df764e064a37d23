"""Which compiled kernels a command asks for."""

import contextlib
import io

from logeval.cli import app
from logeval.running.kernel_cache import KernelFiles

SMALL_DEMO = ["--set", "generate.sessions=2000", "--set", "generate.queries=20",
              "--set", "fit-models.top_queries=2", "--set", "fit-models.draws=2",
              "--set", "evaluate.draws=2", "--set", "evaluate.horizon=20", "-q"]  # fmt: skip


def used(arguments):
    """The names of their files."""
    found, path_of = set(), KernelFiles._path

    def path(self, key):
        path = path_of(self, key)
        found.add(path.rpartition("/")[2])
        return path

    KernelFiles._path = path
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        app(arguments)
    return found
