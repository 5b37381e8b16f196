"""The compiled engine and the reference over an epoch of MNIST."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from handgrad import SGD, Linear, Network, ReLU, SoftmaxCrossEntropy, Standardise, train
from handgrad.data import mnist
from handgrad.engines.compiled import blas, compiled_engine


@pytest.fixture
def one_thread() -> Iterator[None]:
    openblas = blas._openblas()
    assert openblas is not None
    threads, set_threads = (getattr(openblas.library, name) for name in openblas.threads)
    before = threads()
    set_threads(1)
    yield
    set_threads(before)


@pytest.mark.mnist
@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-12), ("float32", 1e-4)])
def test_an_epoch_of_mnist_gives_the_same_weights(
    monkeypatch: pytest.MonkeyPatch, one_thread: None, dtype: str, bound: float
) -> None:
    """Relative to the largest entry of each array; the losses agree too.

    Both multiply with the same code of OpenBLAS, on one thread: with another, or with products divided otherwise, float32
    ends a hundredth away on either engine.
    """
    monkeypatch.setattr(compiled_engine, "find_blas", blas._openblas)
    data = mnist()
    x, t = data.x[: -data.test_rows], data.t[: -data.test_rows]
    trained = {}
    for engine in ("reference", "compiled"):
        network = Network(
            Standardise("all"),
            Linear(784, 128),
            ReLU(),
            Linear(128, 10),
            loss=SoftmaxCrossEntropy(),
            dtype=dtype,
        )
        history = train(network, x, t, epochs=1, batch_size=128, optimiser=SGD(0.1), engine=engine)
        trained[engine] = {"loss": np.array(history.epochs[0].loss), **network.arrays}
        assert history.facts["engine"] == engine
    for name, expected in trained["reference"].items():
        error = np.abs(trained["compiled"][name] - expected).max() / np.abs(expected).max()
        assert error <= bound, (name, error)
