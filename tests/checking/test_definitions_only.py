"""Files of definitions only, as people write them: what each is called with is found by looking at its code.

A line ``#WRONG: old => new`` of a file is a mistake that somebody makes in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad.checking.interfaces import Pair, pair_of
from handgrad.checking.user_files import candidates_in, example_of, run_file

FOLDER = Path(__file__).parent / "definitions"
MARK = "#WRONG: "
STEP = 1e-6


def versions_of(path: Path) -> list[str]:
    """Return the source of a right file, then of those with one mistake each."""
    lines = path.read_text().splitlines()
    source = "\n".join(line for line in lines if not line.startswith(MARK)) + "\n"
    edits = [line.removeprefix(MARK).split(" => ") for line in lines if line.startswith(MARK)]
    assert all(old in source for old, _ in edits)
    return [source, *(source.replace(old, new, 1) for old, new in edits)]


VERSIONS = [
    pytest.param(path.stem, number, source, id=f"{path.stem}-{number or 'right'}")
    for path in sorted(FOLDER.glob("*.py"))
    for number, source in enumerate(versions_of(path))
]


def is_right(pair: Pair) -> bool:
    """Whether each gradient is the slope of the loss along a random direction."""
    generator = np.random.default_rng(4)
    outputs = pair.forward(**pair.inputs)
    several = isinstance(outputs, tuple)
    upstream = tuple(generator.normal(size=np.shape(each)) for each in (outputs if several else (outputs,)))
    gradients = pair.backward(upstream if several else upstream[0], **pair.inputs)

    def loss(**values: Any) -> float:
        found = pair.forward(**(pair.inputs | values))
        return sum(
            float(np.sum(a * b)) for a, b in zip(found if several else (found,), upstream, strict=True)
        )

    for name, gradient in gradients.items():
        value = pair.inputs[name]
        direction = generator.normal(size=np.shape(value))
        above, below = (loss(**{name: value + step * direction}) for step in (STEP, -STEP))
        if np.shape(gradient) != np.shape(value) or not np.isclose(
            np.sum(gradient * direction), (above - below) / (2 * STEP), rtol=1e-4, atol=1e-6
        ):
            return False
    return bool(gradients)


@pytest.mark.parametrize(("name", "number", "source"), VERSIONS)
def test_a_file_of_definitions_is_taken_and_its_gradients_are_judged(tmp_path, name, number, source):
    (tmp_path / f"{name}.py").write_text(source)
    file = run_file(tmp_path / f"{name}.py")
    file.run_samples()
    made: dict[str, Any] = {}
    for candidate in candidates_in(file):
        made[candidate.name] = example_of(candidate, file, made)
    pairs = [pair_of(each.forward, each.backward, each.inputs) for each in made.values()]
    assert all(map(is_right, pairs)) == (number == 0)
