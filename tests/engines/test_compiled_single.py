"""Batches of one row: W is read once for an update and the next row's product, and no number depends on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import SGD, Linear, MeanSquaredError, Network, Tanh
from handgrad.engines import BoundProgram, Epoch, NonFiniteLossError, ReferenceEngine
from handgrad.engines.compiled import CompiledEngine, batch_loop
from handgrad.engines.compiled.compiled_engine import BoundCompiled
from handgrad.engines.compiled.matrix_products import find_ahead

from .agreement import BOUNDS, check_agreement, check_same, threads

Array = NDArray[Any]

ROWS, FEATURES, OUTPUTS = 29, 21, 3
RATE = 0.003
"""Small enough that the widest network learns, and rounding stays rounding."""

WIDTHS = (5, 128, 300)
"""Less than a vector; what registers hold of one row of W; more, with a remainder."""


def network(width: int, dtype: str = "float64") -> Network:
    layers = [Linear(FEATURES, width, bias=False), Tanh(), Linear(width, OUTPUTS)]
    return Network(*layers, loss=MeanSquaredError(), dtype=dtype)


def data(dtype: str = "float64") -> tuple[Array, Array]:
    rng = np.random.default_rng(5)
    return rng.normal(size=(ROWS, FEATURES)).astype(dtype), rng.normal(size=(ROWS, OUTPUTS)).astype(dtype)


def bind(engine: Any, made: Network) -> tuple[dict[str, Array], BoundProgram]:
    kept = {name: array.copy() for name, array in made.arrays.items()}
    return kept, engine().bind(made.program(SGD(0.05)).keeping("total", "count"), kept)


def epoch_of(x: Array, t: Array, order: Array) -> Epoch:
    return Epoch({"x": x, "t": t}, order, 1, np.full(len(order), RATE))


def trained(engine: Any, made: Network, x: Array, t: Array, orders: list[Array]) -> dict[str, Array]:
    kept, bound = bind(engine, made)
    return {"losses": np.array([bound.epoch(epoch_of(x, t, order)) for order in orders])} | kept


def orders() -> list[Array]:
    """Shuffled rows, then a few with repetitions, so that an epoch begins with the row that the last ended with."""
    shuffled = np.random.default_rng(1).permutation(ROWS)
    return [shuffled, np.array([shuffled[-1], 4, 4, 7, shuffled[-1]]), shuffled[::-1].copy()]


def test_the_first_product_is_done_ahead() -> None:
    _, bound = bind(CompiledEngine, network(8))
    assert isinstance(bound, BoundCompiled)
    ahead = find_ahead(bound.schedule)
    assert ahead is not None
    assert ahead.rows.attribute == "x"
    assert ahead.update.target is not None
    assert ahead.update.target.target == "W1"


def test_only_batches_of_one_row_do_it_ahead() -> None:
    """The numbers are the same without, only later; so what is done is looked at."""
    _, bound = bind(CompiledEngine, network(8))
    assert isinstance(bound, BoundCompiled)
    x, t = data()
    for batch_size in (1, 2):
        bound.epoch(Epoch({"x": x, "t": t}, np.arange(4), batch_size, np.full(4 // batch_size, RATE)))
        *_, plan = bound.plans.values()
        assert (plan.carried.ahead is not None) == (batch_size == 1)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", BOUNDS)
def test_it_agrees_with_the_reference(dtype: str, width: int) -> None:
    made, (x, t) = network(width, dtype), data(dtype)
    found = trained(CompiledEngine, made, x, t, orders())
    check_agreement(found, trained(ReferenceEngine, made, x, t, orders()), dtype, "batches of one row")
    with threads(2):
        check_same(trained(CompiledEngine, made, x, t, orders()), found)


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_that_are_converted_give_the_same_bits(width: int) -> None:
    """Their product is not done ahead, and that is the only difference."""
    made, (x, t) = network(width, "float32"), data("float32")
    as_they_lie = trained(CompiledEngine, made, x, t, orders())
    converted = trained(CompiledEngine, made, x.astype("float64"), t, orders())
    check_same(as_they_lie, converted)


def test_coming_back_after_each_batch_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made, (x, t) = network(37), data()
    kept, bound = bind(CompiledEngine, made)
    whole = {"loss": np.array(bound.epoch(epoch_of(x, t, orders()[0])))} | kept
    again, bound = bind(CompiledEngine, made)
    at_once = property(lambda self: 0.0, lambda self, value: None)
    monkeypatch.setattr(batch_loop.Choice, "length", at_once, raising=False)
    seen: list[int] = []
    loss = bound.epoch(epoch_of(x, t, orders()[0]), seen.append)
    check_same({"loss": np.array(loss)} | again, whole)
    assert seen == list(range(1, ROWS + 1))


def test_weights_and_rows_may_change_between_epochs() -> None:
    """What was done ahead, of weights and rows as they were, is forgotten: after an error too."""
    made, (x, t) = network(130), data()
    spoiled = t.copy()
    spoiled[6] = np.nan
    results = []
    for engine in (ReferenceEngine, CompiledEngine):
        kept, bound = bind(engine, made)
        with pytest.raises(NonFiniteLossError):
            bound.epoch(epoch_of(x, spoiled, np.array([3, 6, 9])))
        kept["W1"] *= 0.5
        first = np.array(bound.epoch(epoch_of(x, t, np.array([6, 2]))))
        with pytest.raises(NonFiniteLossError):
            bound.epoch(epoch_of(x, spoiled, np.array([2, 6])))
        moved = x + 1  # another array, with the same numbers of rows
        second = np.array(bound.epoch(epoch_of(moved, t, np.array([6, 2, 6]))))
        results.append({"first": first, "second": second} | kept)
    check_agreement(results[1], results[0], "float64", "epochs after an error and after a change")
