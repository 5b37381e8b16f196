"""Running a network's programs, and checking its gradients against central differences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad import Network
from handgrad.engines import ReferenceEngine
from handgrad.program import Program

from ..rules.checks import relative_error, slopes

Array = NDArray[Any]


def run(program: Program, network: Network, **given: Any) -> dict[str, Any]:
    """Run a program once on copies of a network's arrays, seed 0 and step 1 unless given."""
    arrays = {name: array.copy() for name, array in network.arrays.items()}
    arrays |= {name: np.zeros(shape, network.dtype) for name, shape in program.slots.items()}
    return ReferenceEngine().bind(program, arrays).run(**{"seed": 0, "step": 1, **given})


def step(network: Network, **given: Any) -> dict[str, Any]:
    """Return the loss and the gradients of one training step, which is not taken."""
    return run(network.program(weighted="w" in given).without_updates(), network, **given)


def evaluate(network: Network, **given: Any) -> float:
    """Return the loss outside training."""
    outputs = run(network.loss_program(weighted="w" in given), network, **given)
    return float(outputs["total"] / outputs["count"])


def check_slopes(network: Network, *, bound: float = 1e-8, **given: Any) -> None:
    """Check that every parameter's gradient is the slope of the training loss, at seed 0 and step 1."""
    program = network.program(weighted="w" in given).without_updates()
    arrays = {name: array.copy() for name, array in network.arrays.items()}
    engine, found = ReferenceEngine().bind(program, arrays), step(network, **given)
    for name, parameter in network.parameters.items():

        def loss(v: Array, name: str = name, parameter: Array = parameter) -> float:
            arrays[name][...] = v
            value = float(engine.run(**given, seed=0, step=1)["loss"])
            arrays[name][...] = parameter
            return value

        error = relative_error(found[f"d{name}"], slopes(loss, parameter), least=1e-3)
        assert error <= bound, f"d{name} is off by {error:.1e}"
