"""Time series: windows of rows that follow one another, each with the row that comes next as target."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from handgrad.arguments import Count, judged
from handgrad.arrays import Array
from handgrad.data.columns import Number
from handgrad.data.dataset import Dataset
from handgrad.errors import DataError

STEPS = 10
"""Of Euler's method in a unit of time."""


@judged
def mackey_glass(rows: Count = 1000, context: Count = 24) -> Dataset:
    """Return the solution of Mackey and Glass's equation, a chaotic series, every 6 units of time.

    ``dx/dt = 0.2 x(t - 17) / (1 + x(t - 17)¹⁰) - 0.1 x(t)``: Mackey, Glass, Oscillation and Chaos in Physiological Control
    Systems, Science 197 (1977).

    Parameters
    ----------
    rows
        How many values the series has.
    context
        T, the values of a window.

    Returns
    -------
    Dataset
        Windows as ``windows_of_rows`` makes them, of one column ``x``.

    Examples
    --------
    >>> data = mackey_glass(100, context=8)
    >>> data.x.shape, data.t.shape
    ((92, 8, 1), (92,))
    """
    settled, delay, apart = 500 * STEPS, 17 * STEPS, 6 * STEPS
    values = [1.2] * (delay + 1)
    for _ in range(settled + rows * apart):
        before = values[-1 - delay]
        values.append(values[-1] + (0.2 * before / (1 + before**10) - 0.1 * values[-1]) / STEPS)
    x = np.array(values[-rows * apart :: apart])
    table = Dataset("mackey-glass", x[:, None], x, "regression", feature_names=("x",), columns=(Number("x"),))
    return windows_of_rows(table, context)


def windows_of_rows(table: Dataset, context: int) -> Dataset:
    """Return a data set of windows of a table's rows, one window for each row that has so many before it: its targets.

    ``x`` is (n - T, T, d), the T rows before each, and ``t`` as in the table, of the rows from T on. They follow one another:
    `split` takes the last for the test.

    Raises
    ------
    DataError
        When the table is no longer than a window.

    Examples
    --------
    >>> table = Dataset("t", np.arange(10.0).reshape(5, 2), np.arange(5.0), "regression")
    >>> data = windows_of_rows(table, 3)
    >>> data.x[0].tolist(), data.t.tolist()
    ([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], [3.0, 4.0])
    """
    if len(table) <= context:
        raise DataError(
            f"{table.name}: {len(table)} rows, and a window of {context} with the row after it needs {context + 1}",
            fix="give a longer series, or a shorter context",
        )
    x = windows(table.name, table.x, context)[:-1]
    return replace(table, x=x, t=table.t[context:], cells=(), ordered=True)


def windows(name: str, rows: Array, context: int) -> Array:
    """Return every window of rows (n, d), the last too, as a view (n - T + 1, T, d)."""
    if len(rows) < context:
        raise DataError(f"{name}: {len(rows)} rows, and a window has {context}", fix="give more rows")
    seen: Array = np.moveaxis(np.lib.stride_tricks.sliding_window_view(rows, context, axis=0), -1, 1)
    return seen
