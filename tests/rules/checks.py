"""The checks that every rule of the table must pass; `test_mutants` shows that wrong ones do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .table import Case

Array = NDArray[Any]


def relative_error(found: Array, expected: Array, *, least: float = 0.0) -> float:
    """Return ‖found - expected‖ / ‖expected‖, or over ``least`` where that is larger."""
    assert np.shape(found) == np.shape(expected), f"{np.shape(found)} is not {np.shape(expected)}"
    scale = max(float(np.linalg.norm(np.ravel(expected))), least)
    distance = float(np.linalg.norm(np.ravel(np.asarray(found, float) - expected)))
    return distance / scale if scale else distance


def slopes(function: Callable[[Array], float], v: Array, *, step: float = 2.0**-9) -> Array:
    """Return the slope of ``function`` in every coordinate of ``v``, by central differences.

    Two steps and Richardson's extrapolation leave an error of the fourth order.
    """
    found = np.empty(v.shape)

    def central(place: tuple[int, ...], h: float) -> float:
        above, below = v.copy(), v.copy()
        above[place] += h
        below[place] -= h
        return (function(above) - function(below)) / (above[place] - below[place])

    for place in np.ndindex(v.shape):
        found[place] = (4 * central(place, step / 2) - central(place, step)) / 3
    return found


def check_against_differences(case: Case, rank: int, *, seed: int = 0, bound: float = 1e-9) -> None:
    """Check that every gradient is the slope of the forward, as central differences see it."""
    inputs, upstream = case.draw(seed, rank)
    gradients = case.rule.gradients(upstream, *inputs.values(), **case.options)
    for name, gradient in gradients.items():

        def weighed(v: Array, name: str = name) -> float:
            return float((upstream * case.rule(*{**inputs, name: v}.values(), **case.options)).sum())

        least = 1e-3 * float(np.linalg.norm(upstream))
        error = relative_error(gradient, slopes(weighed, inputs[name]), least=least)
        assert error <= bound, f"d{name} of {case} is off by {error:.1e} at {shapes(inputs)}"


def check_against_torch(torch: Any, case: Case, rank: int, *, seed: int, batch: int | None = None) -> None:
    """Check that the output and every gradient are PyTorch's, to 1e-10 of their norm."""
    inputs, upstream = case.draw(seed, rank, batch=batch)
    trained = case.rule.differentiable
    tensors = {name: torch.tensor(v, requires_grad=name in trained) for name, v in inputs.items()}
    output = case.row.peer(torch, *tensors.values(), **case.options)
    output.backward(torch.tensor(upstream))
    found = case.rule.gradients(upstream, *inputs.values(), **case.options)
    expected = {name: tensors[name].grad.numpy() for name in trained}
    pairs = {f"d{name}": (found[name], expected[name]) for name in expected}
    pairs["output"] = case.rule(*inputs.values(), **case.options), output.detach().numpy()
    least = 1e-3 * float(np.linalg.norm(upstream))
    for name, (ours, theirs) in pairs.items():
        error = relative_error(ours, theirs, least=least)
        assert error <= 1e-10, f"{name} of {case} is off by {error:.1e} at {shapes(inputs)}"


def check_contract(case: Case, rank: int, dtype: str) -> None:
    """Check that shapes and types are the variables' own, nothing is changed, and nothing else is read."""
    inputs, upstream = case.draw(1, rank, dtype=dtype)
    arguments, text = tuple(inputs.values()), case.rule.backward_text
    before = [v.tobytes() for v in (*arguments, upstream)]
    for v in (*arguments, upstream):
        v.flags.writeable = False

    values = case.rule.values(*arguments, **case.options)
    gradients = case.rule.gradients(upstream, *arguments, **case.options)

    shapes_given = {name: v.shape for name, v in inputs.items()}
    settings = case.rule.settings(case.options)
    sizes = case.rule.signature.bind(case.rule.name, shapes_given, settings)
    output = values[case.rule.output]
    assert np.shape(output) == case.rule.signature.output_shape(sizes, settings), (
        f"{case}: the signature is another's"
    )
    assert same(output, case.rule(*arguments, **case.options)), f"{case}: called, it gives something else"
    assert tuple(gradients) == case.rule.differentiable
    for name, gradient in gradients.items():
        assert isinstance(gradient, np.ndarray), f"{case}: d{name} is {type(gradient).__name__}"
        assert gradient.shape == inputs[name].shape, f"{case}: d{name} has another shape than {name}"
        assert gradient.dtype == inputs[name].dtype, f"{case}: d{name} has another type than {name}"

    scope = {name: values[name] for name in (*case.rule.cached, *text.options)}
    after = text.run({**scope, f"d{case.rule.output}": upstream})
    for name, v in {**values, **after}.items():
        if isinstance(v, (np.ndarray, np.generic)) and v.dtype.kind == "f":
            assert v.dtype == dtype, f"{case}: {name} is {v.dtype} where everything is {dtype}"
    for name, gradient in gradients.items():
        assert same(after[f"d{name}"], gradient), f"{case}: d{name} differs from call to call"
    unchanged = [v.tobytes() for v in (*arguments, upstream)] == before
    assert unchanged, f"{case}: an argument has changed"


def same(one: Any, other: Any) -> bool:
    """Whether two arrays are the same to the last bit."""
    return np.asarray(one).tobytes() == np.asarray(other).tobytes() and np.shape(one) == np.shape(other)


def shapes(inputs: Mapping[str, Array]) -> str:
    return ", ".join(f"{name}{np.shape(v)}" for name, v in inputs.items())
