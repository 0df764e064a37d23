"""Other packages add policies, click models, estimators and formats, as entry points."""

import os
import subprocess
import sys
from pathlib import Path

CODE = """
from dataclasses import dataclass, replace

import logeval
from logeval.clicks.models.counting import CM
from logeval.log.tables import formats as table
from logeval.replay.estimators import IP


class Last:
    NAME = "Last"

    def __init__(self, setting):
        self.setting = setting

    def recommend(self, t):
        import numpy as np

        return np.tile(np.arange(self.setting.K), (self.setting.R, 1))

    def update(self, t, A, clicks):
        pass


@dataclass(frozen=True)
class Patient(CM):
    name = "Patient"


@dataclass(frozen=True)
class Whole(IP):
    pass


FORMAT = replace(table.TABLE, name="own-table")
"""
POINTS = """
[logeval.policies]
Last = mine:Last
Broken = nowhere:Class

[logeval.models]
Patient = mine:Patient

[logeval.estimators]
Whole = mine:Whole

[logeval.formats]
own = mine:FORMAT
Wrong = mine:Last
"""
SAID = """
from logeval.clicks.models.registry import model_of
from logeval.log.formats.registry import FORMATS
from logeval.policies.registry import catalogue
from logeval.policies.registry import parse_policies
from logeval.replay.estimators import parse_estimators

print(parse_policies("last")[0].name, parse_policies("last")[0].built_in)
print("Last" in [row["policy"] for row in catalogue()])
print(model_of("patient")[0])
print(*parse_estimators(["whole(normalised)"]))
print("own-table" in FORMATS, "Wrong" in FORMATS)
"""


def test_another_package_adds_its_own(tmp_path):
    (tmp_path / "mine.py").write_text(CODE)
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parent.parent)])
    done = subprocess.run(
        [sys.executable, "-c", SAID], env=os.environ | {"PYTHONPATH": path},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split("\n")[:5] == [
        "Last False", "True", "Patient", "Whole(normalised)", "True False"
    ]  # fmt: skip
    warnings = done.stderr.splitlines()
    assert len(warnings) == 2
    assert any("nowhere:Class of logeval.policies is left out" in line for line in warnings)
    assert any("Wrong is no format" in line for line in warnings)
