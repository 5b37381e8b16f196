"""The whole loss and its gradient, from one program, for scipy's L-BFGS-B."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray
from sklearn.utils.optimize import _check_optimize_result

from handgrad.network import Network
from handgrad.sklearn.programs import ready
from handgrad.sklearn.rows import dense

Array = NDArray[Any]


def minimise(
    network: Network, arrays: dict[str, Any], *, tol: float, max_iter: int, max_fun: int, verbose: bool
) -> tuple[int, float]:
    """Bring the loss over all rows down; return the iterations it took and the loss."""
    given = {name: dense(array) for name, array in arrays.items()}
    with ready(network, None, weighted="w" in given) as program:
        program.load(network.arrays)
        order = sorted(
            network.parameters, key=lambda name: network.parameters[name].ndim < 2
        )  # as scikit-learn
        parameters = {name: program.kept[name] for name in order}

        def loss_and_gradient(vector: Array) -> tuple[float, Array]:
            _unpack(vector, parameters)
            outputs = program.step.run(**given, seed=0, step=1)
            loss = outputs["total"] / max(outputs["count"], 1e-30)
            return float(loss), _pack({name: outputs[f"d{name}"] for name in parameters})

        found = scipy.optimize.minimize(
            loss_and_gradient, _pack(parameters), method="L-BFGS-B", jac=True,
            options={"maxfun": max_fun, "maxiter": max_iter, "gtol": tol},
        )  # fmt: skip
        _unpack(found.x, parameters)
        program.store(network)
    if verbose:
        print(f"Iterations: {found.nit}, loss = {found.fun:.8f}")  # noqa: T201 - verbose asks for it
    return int(_check_optimize_result("lbfgs", found, max_iter)), float(found.fun)


def _pack(arrays: dict[str, Array]) -> Array:
    return np.concatenate([array.ravel() for array in arrays.values()]).astype(np.float64)


def _unpack(vector: Array, arrays: dict[str, Array]) -> None:
    start = 0
    for array in arrays.values():
        array[...] = vector[start : start + array.size].reshape(array.shape)
        start += array.size
