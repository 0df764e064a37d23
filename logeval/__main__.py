"""``python -m logeval``."""

from logeval.cli import main_of_module

if __name__ == "__main__":
    main_of_module()
