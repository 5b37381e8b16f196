"""What an engine promises, on the reference engine: the same numbers, the rows asked for, no spoiled weights."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import (
    SGD,
    Adam,
    Dropout,
    Embedding,
    Linear,
    MeanSquaredError,
    Network,
    ReLU,
    SoftmaxCrossEntropy,
    train,
)
from handgrad.engines import BoundProgram, Epoch, NonFiniteLossError, ReferenceEngine
from handgrad.errors import HandgradNotice
from handgrad.layers import Optimiser
from handgrad.program import Program

Array = NDArray[Any]

ROWS, FEATURES, OUTPUTS = 23, 5, 3
X = np.random.default_rng(0).normal(size=(ROWS, FEATURES))
T = np.random.default_rng(1).normal(size=(ROWS, OUTPUTS))


def network(*, dropout: float = 0.0) -> Network:
    layers = [Linear(FEATURES, 7), ReLU(), Dropout(dropout), Linear(7, OUTPUTS)]
    return Network(*layers, loss=MeanSquaredError(), dtype="float64")


def bind(made: Network, optimiser: Optimiser) -> tuple[Program, dict[str, Array], BoundProgram]:
    """Bind a network's training program to its own arrays and new slots."""
    program = made.program(optimiser).keeping("total", "count")
    kept = made.arrays | {name: np.zeros(shape) for name, shape in program.slots.items()}
    return program, kept, ReferenceEngine().bind(program, kept)


def epoch_of(order: Array, batch_size: int, *, rate: float = 0.1, **more: Any) -> Epoch:
    """Make an epoch over X and T at a constant learning rate."""
    return Epoch({"x": X, "t": T}, order, batch_size, np.full(-(-len(order) // batch_size), rate), **more)


@pytest.mark.parametrize("batch_size", [1, 4, ROWS, ROWS + 5])
def test_an_epoch_is_its_batches_one_after_another(batch_size: int) -> None:
    """Every batch has its rows in order, its own rate and its own step; the last one is what is left."""
    order = np.random.default_rng(2).permutation(ROWS)
    rates = np.linspace(0.01, 0.2, -(-ROWS // batch_size))
    made, by_hand = network(dropout=0.4), network(dropout=0.4)
    _, kept, bound = bind(made, Adam())
    program, hand_kept, hand = bind(by_hand, Adam())
    total, count = bound.epoch(Epoch({"x": X, "t": T}, order, batch_size, rates, first_step=11, seed=6))
    hand_total = 0.0
    for batch, start in enumerate(range(0, ROWS, batch_size)):
        rows = order[start : start + batch_size]
        numbers = {"learning_rate": rates[batch], "step": 11 + batch, "seed": 6}
        hand_total += hand.run(x=X[rows], t=T[rows], **numbers)["total"]
    assert (total, count) == (hand_total, ROWS)
    assert set(program.scalars) == {"learning_rate", "step", "seed"}
    for name, array in kept.items():
        assert array.tobytes() == hand_kept[name].tobytes(), name


def test_the_loss_is_summed_over_the_rows_asked_for_only() -> None:
    """With a rate of almost nothing, total / count is the mean loss of the rows of the order."""
    made = network()
    order = np.array([3, 8, 8, 19, 0])
    expected = ((made.output(X[order]) - T[order]) ** 2).mean()
    total, count = bind(made, SGD())[2].epoch(epoch_of(order, 2, rate=1e-12))
    assert count == 5
    assert total / count == pytest.approx(expected, rel=1e-10)


def test_progress_counts_rows_up_to_the_last() -> None:
    """It is told after each batch how many rows are done, and never more than there are."""
    seen: list[int] = []
    bind(network(), SGD())[2].epoch(epoch_of(np.arange(ROWS), 10), seen.append)
    assert seen == [10, 20, 23]


def test_the_arrays_bound_are_changed_in_place() -> None:
    """The network's own parameters are what is trained: no copy is."""
    made = network()
    before = {name: (id(array), array.copy()) for name, array in made.parameters.items()}
    bind(made, SGD())[2].epoch(epoch_of(np.arange(ROWS), 10))
    for name, array in made.parameters.items():
        assert id(array) == before[name][0]
        assert (array != before[name][1]).any(), name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.float16, np.float32, np.float64, bool])
def test_rows_of_any_type_are_computed_in_the_programs(kind: type, dtype: str) -> None:
    """Pixels, whole numbers and floats are converted batch by batch, exactly."""
    x = np.random.default_rng(0).integers(0, 2, (ROWS, FEATURES))
    made = Network(Linear(FEATURES, OUTPUTS), loss=SoftmaxCrossEntropy(), dtype=dtype)
    output = made.output(x.astype(kind), batch_size=10)
    assert output.dtype == dtype
    np.testing.assert_array_equal(output, made.output(x.astype(dtype)))


def test_indices_and_classes_stay_whole(tmp_path: Path) -> None:
    """What looks up rows or classes reaches the program as whole numbers, however it is stored."""
    made = Network(Embedding(300, 4), Linear(4, OUTPUTS), inputs=(), loss=SoftmaxCrossEntropy())
    program = made.program()
    epoch = Epoch(
        {"x": np.array([299.0, 0.0]), "t": np.array([2, 1], np.uint8)}, np.arange(2), 2, np.array([0.1])
    )
    (given,) = epoch.batches(program)
    assert (given["x"].dtype, given["t"].dtype) == (np.int64, np.int64)
    assert given["x"].tolist() == [299, 0]


def test_rows_may_stay_on_the_disk(tmp_path: Path) -> None:
    """A mapped file gives the numbers of the array, and is read batch by batch."""
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    in_memory, on_disk = network(), network()
    order = np.random.default_rng(0).permutation(ROWS)
    bind(in_memory, SGD())[2].epoch(epoch_of(order, 6))
    rates = np.full(4, 0.1)
    bind(on_disk, SGD())[2].epoch(Epoch({"x": mapped, "t": T}, order, 6, rates))
    for name, array in on_disk.parameters.items():
        assert array.tobytes() == in_memory.parameters[name].tobytes(), name


@pytest.mark.parametrize("poison", [np.nan, np.inf, 1e200])
def test_a_batch_whose_loss_is_not_finite_changes_nothing(poison: float) -> None:
    """The error names the batch, and the weights are those of the batches before it; no warning is given."""
    x = X.copy()
    x[13] = poison
    made, until = network(), network()
    with pytest.raises(NonFiniteLossError, match="the loss of batch 2 is not finite") as caught:
        bind(made, Adam())[2].epoch(Epoch({"x": x, "t": T}, np.arange(ROWS), 6, np.full(4, 0.1)))
    bind(until, Adam())[2].epoch(epoch_of(np.arange(12), 6))
    assert caught.value.batch == 2
    for name, array in made.arrays.items():
        assert array.tobytes() == until.arrays[name].tobytes(), name


def test_what_numpy_is_told_to_raise_is_no_loss_that_is_not_finite() -> None:
    """A user's np.seterr(all="raise") does not turn an underflow inside a line into an error of ours."""
    made = network()
    with np.errstate(all="raise"):
        total, _ = bind(made, Adam())[2].epoch(
            Epoch({"x": X * 1e-200, "t": T}, np.arange(ROWS), 6, np.full(4, 0.1))
        )
    assert np.isfinite(total)


class Broken(ModuleType):
    """What llvmlite is where its own library cannot be loaded."""

    def __getattr__(self, name: str) -> Any:
        raise OSError("could not load libllvmlite.so")


@pytest.mark.parametrize("found", [None, Broken("broken")], ids=["missing", "broken"])
def test_without_llvmlite_the_reference_engine_trains(
    monkeypatch: pytest.MonkeyPatch, found: ModuleType | None
) -> None:
    """With one notice, at the line that calls train, which says what to install."""
    monkeypatch.setitem(sys.modules, "handgrad.engines.compiled", found)  # its import fails
    missing, expected = network(), network()
    with pytest.warns(
        HandgradNotice, match="not used, training goes on with the reference engine"
    ) as noticed:
        history = train(missing, X, T, epochs=1)
    (notice,) = noticed
    assert "the compiled engine needs llvmlite" in str(notice.message)
    assert "pip install llvmlite" in str(notice.message)
    assert notice.filename == __file__
    assert history.facts["engine"] == "reference"
    train(expected, X, T, epochs=1, engine="reference")
    for name, array in missing.arrays.items():
        np.testing.assert_array_equal(array, expected.arrays[name])
