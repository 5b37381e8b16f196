# ruff: noqa: RET504 - a rule names what it returns
"""Odd but legal programs that a reader of the compiled engine thought of, each once computed or refused wrongly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import LayerNorm, Linear, MeanSquaredError, Network, Softmax, SoftmaxCrossEntropy, train
from handgrad.engines import Epoch
from handgrad.engines.compiled import CompiledEngine
from handgrad.engines.compiled.batch_loop import Helpers
from handgrad.engines.compiled.blas import find_blas
from handgrad.errors import EngineError, ShapeError
from handgrad.layers import SGD, Graph, Layer, Optimiser, Parameter, Value
from handgrad.rules import UpdateRule, rule, update

from .agreement import threads

Array = NDArray[Any]

X = np.random.default_rng(0).normal(size=(40, 3))
CLASSES = np.random.default_rng(1).integers(0, 3, 40)


def losses(made: Network, t: Array, engine: str, **settings: Any) -> list[float]:
    history = train(made, X, t, epochs=3, engine=engine, progress=False, **settings)
    assert history.facts["engine"] == engine
    return [record.loss for record in history.epochs]


@pytest.mark.parametrize(
    "layers", [(LayerNorm(),), (Softmax(), LayerNorm())], ids=["layer norm", "softmax first"]
)
def test_labels_are_read_after_they_are_gathered(layers: tuple[Layer, ...]) -> None:
    """Also where no product of matrices stands between the rows and the loss."""
    found = [
        losses(Network(*layers, loss=SoftmaxCrossEntropy(), inputs=3), CLASSES, engine)
        for engine in ("reference", "compiled")
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-5)


@rule("N... F, A F -> N... F")
def shared_out(x, g):
    """Give each feature its share of the gains, which lie in a matrix of one row."""
    whole = g.sum(axis=-1, keepdims=True)
    q = g / whole
    h = x * q
    return h


@shared_out.backward
def shared_out_backward(dh, x, q, whole):
    dq = (dh * x).sum(axis=0, keepdims=True)
    dg = (dq - (dq * q).sum(axis=-1, keepdims=True)) / whole
    dx = dh * q
    return dx, dg


class SharedOut(Layer):
    """Give each feature its share of the gains."""

    def connect(self, graph: Graph, x: Value) -> Value:
        """Apply the rule to a row of gains that are not all the same."""
        return graph.apply(shared_out, x, Parameter((1, 300), np.arange(1.0, 301)[None]), layer=self)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_sum_of_a_single_row_is_not_divided(count: int) -> None:
    """However many threads may do parts of the loop that it stands in."""
    x, found = np.random.default_rng(0).normal(size=(20, 300)), []
    for engine, allowed in (("reference", 1), ("compiled", count)):
        made = Network(SharedOut(), Linear(300, 3), loss=MeanSquaredError(), inputs=300, dtype="float64")
        with threads(allowed):
            history = train(made, x, x[:, :3], epochs=2, engine=engine)
        assert history.facts["engine"] == engine
        found.append([record.loss for record in history.epochs])
    assert found[1] == pytest.approx(found[0], rel=1e-12)


@update
def sized_step(W, dW, learning_rate):
    """Step as long as the weights are large."""
    size = np.sqrt((W * W).mean()) + 0.01
    W -= learning_rate * size * dW
    return W


class SizedSteps(Optimiser):
    """Steps as long as the weights are large."""

    @property
    def rule(self) -> UpdateRule:
        """The update."""
        return sized_step


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_scale_that_is_computed_is_no_python_number(dtype: str) -> None:
    found = [
        losses(
            Network(Linear(3, 3), loss=SoftmaxCrossEntropy(), dtype=dtype),
            CLASSES,
            engine,
            optimiser=SizedSteps(0.5),
        )
        for engine in ("reference", "compiled")
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-5)
    assert found[0][-1] < found[0][0]


@rule("N... F -> N... F")
def against_all_rows(x):
    """Multiply by the products of all pairs of rows."""
    s = x @ x.T
    y = s @ x
    return y


@against_all_rows.backward
def against_all_rows_backward(dy, x, s):
    ds = dy @ x.T
    dx = s.T @ dy + ds @ x + ds.T @ x
    return dx


class AgainstAllRows(Layer):
    """A size that grows with the square of the batch."""

    def connect(self, graph: Any, x: Any) -> Any:
        """Apply the rule."""
        return graph.apply(against_all_rows, x)


def test_what_grows_with_the_square_of_the_batch_is_left_to_the_reference() -> None:
    made = Network(Linear(3, 2), AgainstAllRows(), loss=MeanSquaredError())
    program = made.program(SGD()).keeping("total", "count")
    with pytest.raises(Exception, match="square of the batch"):
        CompiledEngine().bind(program, made.arrays)


def test_kept_arrays_and_rates_are_as_the_program_says() -> None:
    made = Network(Linear(3, 2), loss=MeanSquaredError())
    program = made.program(SGD()).keeping("total", "count")
    with pytest.raises(ShapeError, match=r"b1 is \(1,\), the program keeps \(2,\)"):
        CompiledEngine().bind(program, {**made.arrays, "b1": np.zeros(1, np.float32)})
    with pytest.raises(EngineError, match="W1 is no writable, contiguous array of float32"):
        CompiledEngine().bind(program, {**made.arrays, "W1": np.zeros((3, 2))})
    bound = CompiledEngine().bind(program, made.arrays)
    with pytest.raises(IndexError, match="10 batches have 2 learning rates"):
        bound.epoch(Epoch({"x": X, "t": X[:, :2]}, np.arange(40), 4, np.full(2, 0.1)))


def test_helpers_that_cannot_be_kept_apart_help_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error before they are woken gives them back."""
    helpers = Helpers(1)
    with monkeypatch.context() as patched:
        patched.setattr(Helpers, "keep_apart", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError), helpers.shared():
            pass
    with helpers.shared() as address:
        assert address


def test_two_who_keep_a_library_to_one_thread_give_back_what_it_had() -> None:
    found = find_blas()
    assert found is not None
    blas = found.original or found  # a copy uses one thread at any time
    before = blas.thread_count
    first, second = blas.on_one_thread(), blas.on_one_thread()
    first.__enter__()
    second.__enter__()
    assert (blas.thread_count, blas.allowed_threads) == (1, before)
    first.__exit__(None, None, None)
    assert blas.thread_count == 1
    second.__exit__(None, None, None)
    assert (blas.thread_count, blas.allowed_threads) == (before, before)
