"""The promises of tables on disk are part of ``make test``; all else is run by ``make faults``."""

import pytest

from tests.faults.stages import LONG, prepared

OTHERS = {"cluster", "fuzz", "fuzz_tables", "hostile_input", "hostile_names", "replaced_log"}
OTHERS |= {"truth_of_another_log", "users_files"}
collect_ignore = [] if LONG else [f"test_{name}.py" for name in OTHERS]


@pytest.fixture(scope="session")
def given(tmp_path_factory):
    """The output of every stage, to be read only."""
    return prepared(tmp_path_factory.mktemp("given"))
