"""A layer in a new file is found by its name everywhere, with no more than a star in `handgrad.layers`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import handgrad

CUBE = """
from dataclasses import dataclass

from handgrad.layers.layer import RuleLayer
from handgrad.rules import rule

__all__ = ["Cube"]


@rule("... -> ...")
def cube(z):
    a = z * z * z
    return a


@cube.backward
def cube_backward(da, z):
    dz = 3 * z * z * da
    return dz


@dataclass(frozen=True, eq=False, repr=False)
class Cube(RuleLayer):
    rule = cube
"""

ASKED = """
import handgrad
from handgrad.cli import main
from handgrad.layers import *

assert handgrad.Cube is Cube
assert ACTIVATIONS["cube"] is LAYERS["Cube"] is Cube
main()
"""


def test_a_layer_in_a_new_file_is_found_by_name(tmp_path: Path) -> None:
    copy = tmp_path / "handgrad"
    shutil.copytree(Path(handgrad.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "layers" / "cubes.py").write_text(CUBE, encoding="utf-8")
    home = copy / "layers" / "__init__.py"
    star = "from handgrad.layers.elementwise import *\n"
    text = home.read_text(encoding="utf-8")
    assert star in text
    home.write_text(text.replace(star, f"{star}from handgrad.layers.cubes import *\n"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", ASKED, "show", "moons", "--hidden", "4", "--activation", "cube"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "  a1 = z1 * z1 * z1  " in done.stdout
