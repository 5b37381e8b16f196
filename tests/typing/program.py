"""What a user with a type checker writes: mypy and pyright find no fault in it, and the types that it states."""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from handgrad import Adam, History, Linear, Network, ReLU, SoftmaxCrossEntropy, check, generate, rule, train
from handgrad.checking import Report
from handgrad.sklearn import MLPClassifier


@rule("... -> ...")
def cube(x):  # type: ignore[no-untyped-def] # a rule is mathematics: its types are its signature
    """Cube."""
    y = x**3
    return y


@cube.backward
def cube_backward(dy, x):  # type: ignore[no-untyped-def]
    dx = 3 * x**2 * dy
    return dx


def trained(x: NDArray[np.float32], t: NDArray[np.int64], folder: Path) -> float:
    """Train, predict and save."""
    network = Network(Linear(4, 16), ReLU(), Linear(16, 3), loss=SoftmaxCrossEntropy())
    history = train(network, x, t, epochs=3, optimiser=Adam(1e-3), engine="compiled")
    assert_type(history, History)
    network.save(folder / "network.safetensors")
    output: NDArray[Any] = network.output(x)
    report = check(lambda x: x**2, lambda dy, x: 2 * x * dy, inputs={"x": output})
    assert_type(report, Report)
    if report.verdict == "wrong":
        print(report.findings[0].code, report.findings[0].argument)
    return history.epochs[-1].loss


def fitted(x: NDArray[np.float32], t: NDArray[np.int64]) -> NDArray[Any]:
    """Fit an estimator; a rule may be called as a function too."""
    answers: NDArray[Any] = MLPClassifier(hidden_layer_sizes=(8,), max_iter=3).fit(x, t).predict(x)
    cubes: NDArray[Any] = cube(answers)
    return cubes


def words(network: Network) -> list[int]:
    """Take the next five indices."""
    return [index for index, _ in zip(generate(network, [1]), range(5), strict=False)]
