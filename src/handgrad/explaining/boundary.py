"""What a network of two inputs answers at every place of the plane."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.explaining.state import Boundary
from handgrad.network import Network

Array = NDArray[Any]

COLUMNS, ROWS = 48, 48
MARGIN = 0.1  # of the range of the rows, on each side


def measure_boundary(network: Network, x: Array) -> Boundary | None:
    """Return the network's answers on a grid around some rows; None when it does not take two inputs.

    A class network's answer is the class, a regression's is its value.

    Examples
    --------
    >>> from handgrad import Linear, Network
    >>> network = Network(Linear(2, 1, initialiser="ones"))
    >>> boundary = measure_boundary(network, np.array([[0.0, 0.0], [10.0, 20.0]]))
    >>> boundary.x_range, boundary.y_range, boundary.answers[0], boundary.answers[-1]
    ((-1.0, 11.0), (-2.0, 22.0), -3.0, 33.0)
    """
    if network.row != (2,) or network.entries is not None or len(network.output_shape) != 2:
        return None
    x_range, y_range = (_with_margin(column) for column in np.asarray(x, np.float64).T)
    across, up = np.meshgrid(np.linspace(*x_range, COLUMNS), np.linspace(*y_range, ROWS))
    places = np.stack([across.ravel(), up.ravel()], axis=1)
    answers = _answers(network, network.predict(places))
    return Boundary(x_range, y_range, COLUMNS, ROWS, tuple(float(f"{answer:.4g}") for answer in answers))


def _with_margin(column: Array) -> tuple[float, float]:
    low, high = float(column.min()), float(column.max())
    margin = MARGIN * (high - low) or 1.0
    return low - margin, high + margin


def _answers(network: Network, prediction: Array) -> list[float]:
    """Return one number a row: the class, or the (first) value."""
    task = network.loss.task if network.loss is not None else "regression"
    if task == "classification":
        return [float(number) for number in prediction.argmax(axis=-1)]
    values = prediction[:, 0]
    return [float(number) for number in (values > 0.5 if task == "labels" else values)]
