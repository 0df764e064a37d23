"""``logeval compile``: every kernel, before somebody waits for it."""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
import tempfile
import time

from logeval.commands.app import app
from logeval.commands.command import Quiet
from logeval.errors import LogevalError

# As small as they can be; between them they use nine in ten of all kernels. {} is a folder.
COMMANDS = """\
generate {}/a.tsv --sessions 2000 --queries 20 -q
ingest {}/a.tsv --out {}/log -q
generate {}/b.tsv --format yandex-relpred --sessions 500 --queries 5 -q
ingest {}/b.tsv --out {}/relpred -q
generate {}/c.csv --format table --sessions 500 --queries 5 -q
ingest {}/c.csv --out {}/table -q
fit-models {}/log -m all --top-queries 2 --holdout 0.3 --draws 2 --out {}/models -q
fit-models {}/log -m all --top-queries 2 --scope pooled --out {}/pooled -q
fit-models {}/log -m dcm -m pbm --top-queries 2 --classes 2 --out {}/classes -q
check-models {}/models {}/log -q
features {}/log --top-queries 2 --items 20 --dim 3 --out {}/features -q
fit-models {}/log -m dcm --top-queries 2 --holdout 0.5 --out {}/half -q
evaluate {}/models --policy all --track ranking --draws 2 --horizon 20 --runs 1 -q
evaluate {}/models --policy all --track rank1 --draws 2 --horizon 20 --runs 1 -q
evaluate {}/models --policy BubbleRank(items=base) --policy Logged --horizon 20 --runs 1 -q
evaluate {}/classes --policy dcmKL-UCB --policy Rank1ElimKL --horizon 20 --runs 1 -q
evaluate {}/half --features {}/features --policy all --horizon 20 --runs 1 -q
evaluate --problem B_LB:L=8,K=2,p=0.2,gap=0.15,gamma=0.5 --policy all --horizon 20 --runs 1 -q
evaluate --problem rank1:K=4,L=4,p=0.25,gap=0.5 --policy all --horizon 20 --runs 1 -q
evaluate --problem contextual:L=8,K=2,d=3,norm=1 --policy all --horizon 20 --runs 1 -q
evaluate --problem contextual:L=8,K=2,d=3,norm=1,contexts=fixed --policy all --horizon 9 --runs 1 -q
replay estimate {}/log --target by-ctr --top-queries 2 --rounds 5 --refits 2 --force -q
replay policy {}/log --policy dcmKL-UCB --policy Random --items 4 --top-queries 1 -q
"""


@app.command("compile", short_help="Compile kernels now: for images, and before a lesson.")
def compile_kernels(quiet: Quiet = False) -> None:
    """Compile the kernels of all stages and keep them, so that later commands need not wait.

    It runs the stages on a tiny log in a temporary folder. Kernels are kept beside the package, in
    the user's cache folder if that cannot be written to, or in $NUMBA_CACHE_DIR.

    Example: logeval compile --quiet
    """
    from logeval.running import compiling

    count, start = 0, time.monotonic()

    def heard(where: str) -> None:
        nonlocal count
        count += 1

    compiling.hear(heard)
    commands = COMMANDS.splitlines()
    with tempfile.TemporaryDirectory(prefix="logeval-") as folder:
        for i, command in enumerate(commands, start=1):
            words = [word.replace("{}", folder) for word in shlex.split(command)]
            if not quiet:
                what = f"{i}/{len(commands)} {command.partition(' {}')[0].partition(' --')[0]}"
                far = f"{count} kernels so far, {time.monotonic() - start:,.0f} s"
                print(f"{what} ({far})", file=sys.stderr, flush=True)
            _run(words)
    print(f"{count} kernels compiled in {time.monotonic() - start:,.0f} s; the others were there")


def _run(words: list[str]) -> None:
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            app(words, prog_name="logeval")
    except SystemExit as end:
        if end.code:
            last = said.getvalue().strip().rpartition("\n")[2]
            raise LogevalError(f"logeval {' '.join(words)}: {last}") from None
