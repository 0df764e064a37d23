import pytest

from tests.faults.stages import prepared


@pytest.fixture(scope="session")
def given(tmp_path_factory):
    """The output of every stage, to be read only."""
    return prepared(tmp_path_factory.mktemp("given"))
