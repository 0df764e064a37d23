"""All benchmarks, as ratios to simple baselines measured in the same run.

python benchmarks/run.py            all
python benchmarks/run.py ingest     one
"""

import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import pandas as pd

from logeval.commands.show import print_frame

BENCHMARKS = [
    "ingest",
    "tables",
    "models",
    "intervals",
    "draws",
    "break_even",
    "thin",
    "policies",
    "modern",
    "contextual",
    "replay",
    "identifiability",
    "identified_intervals",
    "harvesting",
    "randomised",
]


def main(names):
    for name in names or BENCHMARKS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        print_frame(name, pd.DataFrame(import_module(f"benchmarks.{name}").rows()))


if __name__ == "__main__":
    main(sys.argv[1:])
