"""``f(x)`` and its derivative: as a second function, as a flag, of x or of f(x)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from handgrad.checking.interfaces.roles import is_target, parameters_of, plain
from handgrad.checking.interfaces.user_code import Adapted, call

FLAGS = ("deriv", "derivative", "prime", "grad", "gradient", "derive", "diff", "dx")
STEP = 1e-6  # of the central difference that tells f'(x) from f'(f(x))


def flag_of(function: Callable[..., Any]) -> str:
    """Return the parameter by which a function gives its derivative instead, or ""."""
    return next(
        (name for name, p in parameters_of(function).items() if p.default is False and plain(name) in FLAGS),
        "",
    )


def adapt_derivative(
    function: Callable[..., Any], derivative: Callable[..., Any], inputs: Mapping[str, Any]
) -> Adapted:
    """Return a function and its derivative as a forward and a backward.

    An elementwise derivative is multiplied by the upstream gradient; that of a loss by its one number. Where the
    derivative is nearer to the slopes when it is given f(x), it is taken to be written in the output.
    """
    flag = flag_of(derivative) if derivative == function else ""
    slope = functools.partial(derivative, **{flag: True}) if flag else derivative
    (variable, *_) = sorted(
        (name for name in parameters_of(function) if isinstance(inputs.get(name), np.ndarray)),
        key=lambda name: is_target((name,)),
    )

    def at(world: Mapping[str, Any], where: Any) -> Any:
        given = [
            where if name == variable else world[name] for name in parameters_of(function) if name in world
        ]
        return slope(*given[: len(parameters_of(derivative)) - bool(flag)])

    x = np.asarray(inputs[variable], np.float64)
    output = np.asarray(call(function, dict(inputs)))
    in_output = False
    if output.shape == x.shape:
        above, below = (np.asarray(call(function, {**inputs, variable: x + h})) for h in (STEP, -STEP))
        slopes = (above - below) / (2 * STEP)
        errors = [float(np.abs(np.asarray(at(inputs, where)) - slopes).max()) for where in (x, output)]
        in_output = errors[1] < 1e-4 * max(1.0, float(np.abs(slopes).max())) < errors[0]

    def backward(world: dict[str, Any], result: Any, upstream: list[Any]) -> dict[Any, Any]:
        value = at(world, result if in_output else world[variable])
        return {("returned",): np.asarray(upstream[0]) * value}

    return Adapted(
        dict(inputs),
        lambda world: call(function, world),
        lambda result: [result],
        backward,
        getattr(derivative, "__name__", "derivative"),
        {(variable,): ("returned",)},
    )
