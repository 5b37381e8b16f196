"""How well the rows of a batch agree about where the weights should go."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from handgrad.explaining.tracing import Trace
from handgrad.program.running import run_lines

SHARE = "dl"  # each row's share of the loss's gradient: all backward lines after it are linear in it
MOST_NUMBERS = 2**26  # of the gradients of single rows together: a second or so


def agreement_of_rows(trace: Trace, names: Sequence[str]) -> dict[str, float]:
    """Return, for each parameter, the length of the rows' summed gradients over the sum of their lengths.

    1 where all rows pull the same way, near 0 where they pull against each other. The gradient of one row is what
    the backward lines give when every other row's share is 0; {} where that would be too many numbers.
    """
    lines = trace.program.phase("backward")
    first = next((number for number, line in enumerate(lines) if line.target == SHARE), None)
    size = sum(np.size(trace.values[name]) for name in names)
    if first is None or size * trace.rows > MOST_NUMBERS:
        return {}
    shares = np.asarray(trace.values[SHARE])
    lengths = dict.fromkeys(names, 0.0)
    for row in range(trace.rows):
        own = np.zeros_like(shares)
        own[row] = shares[row]
        scope = run_lines(lines[first + 1 :], trace.values | {SHARE: own})
        for name in names:
            lengths[name] += float(np.linalg.norm(scope[f"d{name}"]))
    return {
        name: float(np.linalg.norm(trace.values[f"d{name}"])) / length
        for name, length in lengths.items()
        if length > 0
    }
