"""Running the same training on two engines, and how far apart they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import SGD, Network
from handgrad.engines import BoundProgram, Engine, Epoch, ReferenceEngine
from handgrad.engines.compiled import CompiledEngine, batch_loop, compiled_engine, step_table
from handgrad.layers import Optimiser

Array = NDArray[Any]

BOUNDS = {"float32": 1e-4, "float64": 1e-12}
"""How far engines may be apart, relative to the largest entry of each array."""

ROWS = 23
BATCH_SIZES = (1, 6, ROWS, ROWS + 7)
"""One row, a short last batch, all rows in one, and more than there are."""


@dataclass
class Case:
    """A network, and what it is trained on.

    Attributes
    ----------
    network
        Makes it, the same each time, in a given dtype.
    arrays
        x, t, and w if rows have weights.
    optimiser, rate
        How it is trained: every case has a learning rate that changes from step to step, from this one on.
    """

    network: Callable[[str], Network]
    arrays: Mapping[str, Array]
    optimiser: Optimiser = field(default_factory=lambda: SGD(0.05))
    rate: float = 0.05


class Training:
    """A case's training program bound to arrays of its own, which every training starts with again.

    Attributes
    ----------
    kept
        Parameters, states and slots, as the last training left them.
    """

    def __init__(self, engine: Engine, case: Case, dtype: str) -> None:
        self.case, made = case, case.network(dtype)
        program = made.program(case.optimiser, weighted="w" in case.arrays).keeping("total", "count")
        self.kept = made.arrays | {name: np.zeros(shape, dtype) for name, shape in program.slots.items()}
        self.start = {name: array.copy() for name, array in self.kept.items()}
        self.bound: BoundProgram = engine.bind(program, self.kept)

    def run(self, batch_size: int, *, epochs: int = 2, seed: int = 4) -> dict[str, Array]:
        """Return everything a short training leaves: each epoch's total and count, and every array kept."""
        for name, array in self.kept.items():
            array[...] = self.start[name]
        rows = len(self.case.arrays["t"])
        steps = -(-rows // batch_size)
        losses = []
        for number in range(epochs):
            order = np.random.default_rng(number).permutation(rows)
            rates = self.case.rate / (1 + np.arange(number * steps, (number + 1) * steps))
            epoch = Epoch(self.case.arrays, order, batch_size, rates, number * steps + 1, seed)
            losses.append(self.bound.epoch(epoch))
        arrays = {name: array.copy() for name, array in self.kept.items()}
        return {"total and count": np.array(losses)} | arrays


def outputs(engine: Engine, case: Case, dtype: str) -> dict[str, Array]:
    """Return the loss and every gradient of one step that is not taken, from `BoundProgram.run`."""
    made = case.network(dtype)
    weighted = "w" in case.arrays
    program = made.program(case.optimiser, weighted=weighted).without_updates().keeping("total", "count")
    given = {**case.arrays, "seed": 3, "step": 2, "learning_rate": 0.1}
    names = {value.name for value in program.inputs} | set(program.scalars)
    return engine.bind(program, made.arrays).run(**{name: v for name, v in given.items() if name in names})


def evaluated(engine: Engine, case: Case, dtype: str) -> dict[str, Array]:
    """Return the answers and the loss outside training."""
    made = case.network(dtype)
    rng = np.random.default_rng(9)
    for name, array in made.states.items():  # running statistics as they are after some training
        array[...] = rng.uniform(0.5, 2, array.shape) if array.ndim else array
        assert name
    found = {}
    programs = made.evaluation_program(prediction=True), made.loss_program(weighted="w" in case.arrays)
    for program in programs:
        given = {value.name: case.arrays[value.name] for value in program.inputs}
        for name, value in engine.bind(program, made.arrays).run(**given).items():
            found[f"{program.outputs[0]} {name}"] = value
    return found


def apart(found: Mapping[str, Array], expected: Mapping[str, Array]) -> dict[str, float]:
    """Return how far each array is from the expected one, relative to the largest of its entries."""
    assert found.keys() == expected.keys()
    distances = {}
    for name, wanted in expected.items():
        one, other = np.asarray(found[name], float), np.asarray(wanted, float)
        assert one.shape == other.shape, f"{name} is {one.shape}, not {other.shape}"
        assert np.result_type(found[name]).kind == "f" or np.ndim(wanted) == 0, name
        if not (np.isfinite(one) == np.isfinite(other)).all():
            distances[name] = np.inf
            continue
        scale = np.abs(other).max(initial=0.0)
        distances[name] = float(np.abs(one - other).max(initial=0.0) / (scale or 1.0))
    return distances


def check_agreement(found: Mapping[str, Array], expected: Mapping[str, Array], dtype: str, what: str) -> None:
    """Check that no array is further away than its dtype allows."""
    distances = apart(found, expected)
    wrong = {name: f"{distance:.1e}" for name, distance in distances.items() if distance > BOUNDS[dtype]}
    assert not wrong, f"{what}: {wrong}"


def check_case(
    case: Case,
    dtype: str,
    batch_sizes: tuple[int, ...] = BATCH_SIZES,
    engine: Callable[[], Engine] = CompiledEngine,
) -> None:
    """Check a whole case against the reference: trained, its gradients, and outside training.

    The same once more gives the same to the last bit, with two threads that divide every step which can be.
    """
    reference, other = (Training(each(), case, dtype) for each in (ReferenceEngine, engine))
    for batch_size in batch_sizes:
        expected = reference.run(batch_size)
        with threads(1):
            found = other.run(batch_size)
        check_agreement(found, expected, dtype, f"batches of {batch_size}")
        with threads(2):
            check_same(other.run(batch_size), found)
    for kind in (outputs, evaluated):
        with threads(1):
            found = kind(engine(), case, dtype)
        check_agreement(found, kind(ReferenceEngine(), case, dtype), dtype, kind.__name__)
    with threads(2):
        check_same(evaluated(engine(), case, dtype), found)


def check_same(one: Mapping[str, Array], other: Mapping[str, Array]) -> None:
    """Check that two results are equal to the last bit."""
    assert one.keys() == other.keys()
    different = [name for name in one if np.asarray(one[name]).tobytes() != np.asarray(other[name]).tobytes()]
    assert not different, different


@contextmanager
def threads(count: int, *, helped: bool = True) -> Iterator[None]:
    """Let the engine use so many threads, divide every step that can be, and always take help, or never."""
    always = property(lambda self: helped, lambda self, value: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_engine, "thread_limit", lambda blas: count)
        patch.setattr(step_table, "MIN_FLOPS_PER_CHUNK", 1)
        patch.setattr(step_table, "MIN_ELEMENTS_PER_CHUNK", 1)
        patch.setattr(batch_loop.Choice, "helped", always, raising=False)
        yield
