"""Speed against simple baselines that are measured in the same run: a few minutes.

python -m benchmarks.run [ingest] [models] [policies]

The other files are studies of error rates and of size, each run by itself.
"""

import sys
from importlib import import_module

import pandas as pd


def main(names: list[str]) -> None:
    for name in names or ("ingest", "models", "policies"):
        print(f"{name} ...", file=sys.stderr, flush=True)
        print(pd.DataFrame(import_module(f"benchmarks.{name}").rows()).to_string(index=False))


if __name__ == "__main__":
    main(sys.argv[1:])
