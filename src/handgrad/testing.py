"""Checking gradients in tests: one assertion whose failure is the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from handgrad.arguments import Seed, judged
from handgrad.checking import Report, check
from handgrad.checking.input_draws import Source

__all__ = ["assert_right"]


@judged
def assert_right(
    forward: Any,
    backward: Callable[..., Any] | None = None,
    inputs: Source | Sequence[Any] | None = None,
    *,
    seed: Seed = 0,
    surrogate: Callable[..., Any] | None = None,
) -> Report:
    """Check a hand-written gradient; an assertion fails with the report when it is not right.

    Parameters
    ----------
    forward, backward, inputs, seed, surrogate
        As for `handgrad.check`.

    Returns
    -------
    Report
        When the gradient is right.

    Raises
    ------
    AssertionError
        When a gradient is wrong, cannot be told, or is "right, but": what it states is to be mended too.
    CheckError
        When a function raises, or what it returns does not fit the inputs.

    Examples
    --------
    >>> import numpy as np
    >>> def square(x):
    ...     return x * x
    >>> def square_backward(grad_output, x):
    ...     return {"x": grad_output * x}
    >>> assert_right(square, square_backward, {"x": np.array([0.5, -1.0])})
    Traceback (most recent call last):
        ...
    AssertionError: square_backward: wrong
    ...
    """
    __tracebackhide__ = True  # pytest then shows the line of the test, not this one
    report = check(forward, backward, inputs, seed=seed, surrogate=surrogate)
    if report.verdict != "right":
        raise AssertionError(str(report))
    return report
