"""``python -m logeval``."""

from logeval.cli import console

if __name__ == "__main__":
    console()
