"""What other libraries hold their numbers in goes in where data comes in, and gives the same answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import SGD, DataError, Linear, Network, ReLU, SoftmaxCrossEntropy, Standardise, arrays, train
from handgrad.arrays import LazyRows, as_array

Array = NDArray[Any]
Make = Callable[[Array], Any]

RNG = np.random.default_rng(0)
X, T, W = RNG.normal(size=(23, 5)), RNG.integers(0, 3, 23), RNG.uniform(0.5, 2, 23)


class OnlyDLPack:
    """An array of a library that NumPy has never heard of."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class OnlyArray:
    """Something that NumPy asks for an array."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.array, dtype)


def torch_tensor(array: Array) -> Any:
    import torch

    return torch.tensor(array)


def jax_array(array: Array) -> Any:
    import jax

    with jax.enable_x64(True):
        return jax.numpy.asarray(array)


def pandas_table(array: Array) -> Any:
    import pandas as pd

    index = [f"row {k}" for k in range(len(array))]  # whose names are nobody's business
    return pd.DataFrame(array, index) if array.ndim > 1 else pd.Series(array, index)


MAKERS: dict[str, Make] = {
    "list": lambda array: array.tolist(),
    "list of arrays": list,
    "memoryview": memoryview,
    "DLPack": OnlyDLPack,
    "__array__": OnlyArray,
    "every second": lambda array: np.repeat(array, 2, axis=0)[::2],
    "by columns": np.asfortranarray,
    "backwards": lambda array: array[::-1].copy()[::-1],
    "big-endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "read-only": lambda array: np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape),
    "nothing masked": np.ma.masked_array,
}


def polars_table(array: Array) -> Any:
    import polars as pl

    return pl.DataFrame(array) if array.ndim > 1 else pl.Series(array)


PEERS: dict[str, Make] = {
    "torch": torch_tensor,
    "jax": jax_array,
    "pandas": pandas_table,
    "polars": polars_table,
}


def network() -> Network:
    return Network(
        Standardise(), Linear(5, 7), ReLU(), Linear(7, 3), loss=SoftmaxCrossEntropy(), dtype="float64"
    )


def everything(make: Make, engine: str) -> dict[str, Array]:
    """Return what a network answers, its gradients, and its weights after a training with validation."""
    made = network()
    made.standardise(make(X))
    found = {"prediction": made.predict(make(X)), "output": made.output(make(X))}
    found |= made.gradients(make(X), make(T), make(W))
    history = train(
        made, make(X), make(T), sample_weight=make(W), validation=(make(X[:9]), make(T[:9])),
        epochs=2, batch_size=8, optimiser=SGD(0.1), engine=engine,
    )  # fmt: skip
    losses = np.array([[epoch.loss, epoch.validation_loss] for epoch in history.epochs])
    return found | {f"trained {name}": array for name, array in made.arrays.items()} | {"losses": losses}


BY_COLUMNS = {"by columns", "pandas", "polars"}
"""NumPy adds such rows up in another order, so that last bits differ."""


def check(make: Make, *, exactly: bool) -> None:
    """Not a bit differs from what NumPy's own arrays give, whatever the memory looks like."""
    for engine in ("reference", "compiled"):
        found, expected = everything(make, engine), everything(lambda array: array, engine)
        assert found.keys() == expected.keys()
        for name, array in found.items():
            np.testing.assert_allclose(
                array, expected[name], rtol=0 if exactly else 1e-12, err_msg=f"{engine} {name}"
            )


@pytest.mark.parametrize("kind", MAKERS)
def test_numbers_go_in_in_any_form(kind: str) -> None:
    check(MAKERS[kind], exactly=kind not in BY_COLUMNS)


@pytest.mark.peers
@pytest.mark.parametrize("kind", PEERS)
def test_numbers_of_other_libraries_go_in(kind: str) -> None:
    check(PEERS[kind], exactly=kind not in BY_COLUMNS)


def test_what_is_an_array_is_not_copied() -> None:
    """Neither NumPy's own nor one that comes by DLPack or as a buffer."""
    for given in (X, OnlyDLPack(X), memoryview(X)):
        assert np.shares_memory(as_array("x", given), X)


def test_a_mapped_file_stays_on_the_disk(tmp_path: Any) -> None:
    np.save(tmp_path / "x.npy", X)
    assert type(as_array("x", np.load(tmp_path / "x.npy", mmap_mode="r"))) is np.memmap


@pytest.mark.parametrize(
    "rows", [np.array([4, 0, 2, 2]), np.array([], int), None], ids=["some", "none", "all"]
)
def test_rows_are_read_when_they_are_asked_for(rows: Any, tmp_path: Any) -> None:
    np.save(tmp_path / "x.npy", X)
    lazy = LazyRows(np.load(tmp_path / "x.npy", mmap_mode="r"), rows)
    whole = X if rows is None else X[rows]
    assert (len(lazy), lazy.shape, lazy.dtype) == (len(whole), whole.shape, whole.dtype)
    np.testing.assert_array_equal(lazy[1:3], whole[1:3])
    np.testing.assert_array_equal(np.asarray(lazy, np.float32), whole.astype(np.float32))
    assert type(lazy[:2]) is np.ndarray


@pytest.mark.parametrize(("step", "times"), [(1, 3), (8, 25)])
def test_pages_are_let_go_of_by_what_lies_between_the_rows(
    step: int, times: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of 8 bytes, ten at a time: each piece covers 80 or nearly 640 bytes of the file."""
    released = list[Any]()
    monkeypatch.setattr(arrays, "release", released.append)
    monkeypatch.setattr(arrays, "MAPPED_BYTES", 560)
    np.save(tmp_path / "x.npy", np.zeros((2000, 1)))
    lazy = LazyRows(np.load(tmp_path / "x.npy", mmap_mode="r"), np.arange(0, 250 * step, step))
    for start in range(0, 250, 10):
        lazy[start : start + 10]
    assert len(released) == times


WRONG: dict[str, tuple[Any, str]] = {
    "ragged": (
        [[1.0, 2.0], [3.0, 4.0], [5.0]],
        r"x has rows of different lengths: x\[0\] holds 2 values and x\[2\] holds 1 value$",
    ),
    "a row that is a number": ([[1.0], 2.0], r"x\[0\] holds 1 value and x\[1\] is a single value$"),
    "ragged deep down": ([[[1.0], [2.0, 3.0]]], "x, a list, cannot be read as an array: "),
    "masked": (np.ma.masked_greater(X, 1), "x has masked values\n  fix    fill them in"),
    "a generator": ((row for row in X), "x is a generator, and an array is needed"),
    "text": ([["a"] * 5] * 3, "x holds <U1, not numbers"),
    "nothing": (None, "x is a NoneType, and an array is needed"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_no_array_is_named(kind: str) -> None:
    given, message = WRONG[kind]
    with pytest.raises(DataError, match=message):
        network().predict(given)


def test_targets_and_weights_are_named_too() -> None:
    with pytest.raises(DataError, match=r"^t has rows of different lengths"):
        network().gradients(X[:2], [[1], [1, 2]])
    with pytest.raises(DataError, match=r"^sample_weight has rows of different lengths"):
        network().gradients(X[:2], T[:2], [[1], [1, 2]])
    with pytest.raises(DataError, match=r"^validation t is a NoneType"):
        train(network(), X, T, validation=(X, None))
    with pytest.raises(DataError, match=r"^x has 23 rows and t has none$"):
        train(network(), X, 1)


@pytest.mark.peers
def test_a_tensor_with_a_graph_says_what_to_do(torch: Any) -> None:
    with pytest.raises(DataError, match=r"x, a Tensor, cannot be read as an array: .*detach"):
        network().predict(torch.ones(2, 5, requires_grad=True))


@pytest.mark.peers
def test_a_sparse_matrix_is_named() -> None:
    from scipy.sparse import csr_array

    with pytest.raises(DataError, match=r"t is a csr_array, and an array is needed\n  fix .*toarray"):
        train(network(), X, csr_array(X))
