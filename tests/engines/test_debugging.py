"""Training is ordinary Python: tracebacks show the program's lines, and a debugger stops on them."""

from __future__ import annotations

import bdb
import linecache
import traceback
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
import pytest

from handgrad import SGD, Layer, Linear, Loss, MeanSquaredError, Network, ReLU, rule, train
from handgrad.errors import TrainingError
from handgrad.layers import Graph, Value
from handgrad.program.lines_in_python import compile_program
from handgrad.program.printing import function_source

ROWS, FEATURES, OUTPUTS = 10, 4, 3
X = np.random.default_rng(0).normal(size=(ROWS, FEATURES)).astype("float32")
T = np.random.default_rng(1).normal(size=(ROWS, OUTPUTS)).astype("float32")


@rule("N... F -> N... F")
def short_of_four(z):
    """Works while there are three rows or fewer, as a mistake in a shape may."""
    a = z * np.ones((3, 1))[: z.shape[0]]
    return a  # noqa: RET504 - rules return names


@short_of_four.backward
def short_of_four_backward(da):
    dz = da * 1.0
    return dz  # noqa: RET504 - rules return names


@dataclass(frozen=True, eq=False, repr=False)
class ShortOfFour(Layer):
    """A layer of a user's own that fails for four rows."""

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(short_of_four, x)


def test_a_failure_inside_a_users_rule_shows_the_programs_line() -> None:
    """The traceback of a training ends in the line of the program that failed, with its shape beside it."""
    network = Network(Linear(FEATURES, OUTPUTS), ShortOfFour(), loss=MeanSquaredError())
    with pytest.raises(ValueError, match="could not be broadcast") as caught:
        train(network, X, T, epochs=1, batch_size=4, engine="reference")
    *_, last = traceback.extract_tb(caught.value.__traceback__)
    assert last.filename.startswith("<handgrad step ")
    assert last.line == "a1 = z1 * np.ones((3, 1))[:z1.shape[0]]  # (n, 3)"
    shown = "".join(traceback.format_exception(caught.value))
    assert "a1 = z1 * np.ones((3, 1))[:z1.shape[0]]" in shown


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_a_debugger_after_a_divergence_stands_in_the_line_that_was_first_not_finite(engine: str) -> None:
    """With every value of that batch that was there, whichever engine ran."""
    network = Network(Linear(FEATURES, 6), ReLU(), Linear(6, OUTPUTS), loss=MeanSquaredError())
    with pytest.raises(TrainingError, match="line `") as caught:
        train(network, X, T, epochs=50, optimiser=SGD(1e9), batch_size=5, engine=engine)
    *_, (last, number) = traceback.walk_tb(caught.value.__traceback__)
    assert last.f_code.co_filename.startswith("<handgrad step ")
    blamed = str(caught.value).partition("line `")[2].partition("`")[0]
    assert linecache.getline(last.f_code.co_filename, number).strip().startswith(f"{blamed}  # ")
    target, *_ = blamed.split(" ")
    assert not np.isfinite(last.f_locals[target]).all()
    assert last.f_locals["x"].shape == (5, FEATURES)
    assert list(last.f_locals)[-1] == target


class Stopper(bdb.Bdb):
    """A debugger that notes a name's value at each stop of one breakpoint, and goes on."""

    def __init__(self, filename: str, line: int, names: tuple[str, ...]) -> None:
        super().__init__()
        self.place, self.names = (filename, line), names
        self.seen: list[dict[str, Any]] = []
        self.refused = self.set_break(filename, line)

    def user_line(self, frame: FrameType) -> None:  # noqa: D102 - as in Bdb
        if (frame.f_code.co_filename, frame.f_lineno) == self.place:
            self.seen.append({name: np.copy(frame.f_locals[name]) for name in self.names})
            assert self.names[-1] in frame.f_locals
        self.set_continue()


def test_a_debugger_stops_in_training_on_a_line_and_sees_its_values() -> None:
    """A breakpoint on a backward line is hit once a batch, with the batch's rows and the gradients so far."""
    network = Network(Linear(FEATURES, 6), ReLU(), Linear(6, OUTPUTS), loss=MeanSquaredError())
    program = network.program(SGD(0.1)).keeping("total", "count")
    source = function_source(program, "step").splitlines()
    line = next(k for k, text in enumerate(source, 1) if text.startswith("    dW1 = "))
    debugger = Stopper(compile_program(program, "step").__code__.co_filename, line, ("x", "z2", "dz1"))
    assert debugger.refused is None
    weights = {name: array.copy() for name, array in network.arrays.items()}
    settings = {"epochs": 1, "batch_size": 4, "shuffle": False, "progress": False, "engine": "reference"}
    debugger.runcall(train, network, X, T, optimiser=SGD(0.1), **settings)
    assert [stop["x"].tolist() for stop in debugger.seen] == [X[:4].tolist(), X[4:8].tolist(), X[8:].tolist()]
    first = np.maximum(X[:4] @ weights["W1"] + weights["b1"], 0) @ weights["W2"] + weights["b2"]
    np.testing.assert_allclose(debugger.seen[0]["z2"], first, rtol=1e-5)
    assert [stop["dz1"].shape for stop in debugger.seen] == [(4, 6), (4, 6), (2, 6)]


def test_the_same_program_is_one_file_to_a_debugger() -> None:
    """A network that answers again and again registers its source once: no breakpoint is lost, nothing grows."""
    network = Network(Linear(FEATURES, OUTPUTS), ReLU(), loss=MeanSquaredError())
    network.predict(X)
    before = set(linecache.cache)
    for _ in range(5):
        network.predict(X)
    assert set(linecache.cache) == before
    first, second = (compile_program(network.program(), "step") for _ in range(2))
    assert first.__code__.co_filename == second.__code__.co_filename
    assert first.__code__.co_filename != compile_program(network.program(), "other").__code__.co_filename


def test_loss_is_a_layer_to_a_traceback() -> None:
    """A loss of a user's own fails on its line too."""

    @dataclass(frozen=True, eq=False, repr=False)
    class Short(Loss):
        def connect(self, graph: Graph, y: Value, t: Value, w: Value | None) -> Value:
            return MeanSquaredError().connect(graph, graph.apply(short_of_four, y), t, w)

    network = Network(Linear(FEATURES, OUTPUTS), loss=Short())
    with pytest.raises(ValueError, match="broadcast") as caught:
        network.gradients(X, T)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line.startswith("a = z1 * np.ones")
