"""What is checked: a forward and a backward function, called alike whatever their convention."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.errors import HandgradError, nearest

Array = NDArray[Any]
Inputs = dict[str, Any]
Gradients = dict[str, Array]


class CheckError(HandgradError):
    """The functions, or their inputs, cannot be checked: they raise, or do not fit each other."""


@dataclass(frozen=True)
class Subject:
    """A pair of functions in one convention.

    Attributes
    ----------
    forward, backward
        As the user wrote them.
    inputs
        By name, in order.
    positional
        Whether the functions take the inputs by position rather than by name.
    several
        Whether forward returns several arrays; then backward takes as many upstream gradients, as a tuple.
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    inputs: Inputs
    positional: bool
    several: bool

    @classmethod
    def of(
        cls, forward: Callable[..., Any], backward: Callable[..., Any], inputs: Mapping[str, Any]
    ) -> Subject:
        """Find out how two functions are to be called, or say why they cannot be."""
        if not inputs:
            raise CheckError("there are no inputs", fix='give a dict of arrays, {"x": x, "W": W}')
        copied = {name: np.array(value) for name, value in inputs.items()}
        for name, value in copied.items():
            if value.dtype.kind not in "fiub":
                raise CheckError(f"the input {name!r} is {value.dtype}, not an array of real numbers")
        if not any(value.dtype.kind == "f" for value in copied.values()):
            raise CheckError("no input is of floating point, so there is nothing to differentiate")
        positional = not _takes_names(forward, copied)
        subject = cls(forward, backward, copied, positional, several=False)
        output = subject._call(forward, "forward", (), copied)
        return cls(forward, backward, copied, positional, several=isinstance(output, tuple | list))

    @property
    def differentiable(self) -> tuple[str, ...]:
        """The inputs of floating point."""
        return tuple(name for name, value in self.inputs.items() if value.dtype.kind == "f")

    def run_forward(self, inputs: Inputs) -> list[Array]:
        """Return the outputs as a list of arrays; the inputs are copied first."""
        output = self._call(self.forward, "forward", (), copy_of(inputs))
        outputs = list(output) if self.several else [output]
        return [np.asarray(part) for part in outputs]

    def run_backward(self, upstream: list[Array], inputs: Inputs, *, fresh: bool = True) -> Gradients:
        """Return the gradients by the inputs' names; forward runs first, for functions that keep something.

        Parameters
        ----------
        upstream
            One gradient for each output.
        inputs
            By name.
        fresh
            Whether backward gets copies, or these very arrays.
        """
        given = copy_of(inputs) if fresh else inputs
        self._call(self.forward, "forward", (), copy_of(inputs))
        first = [np.array(part) for part in upstream] if fresh else upstream
        gradients = self._call(
            self.backward, "backward", (tuple(first) if self.several else first[0],), given
        )
        return self._named(gradients)

    def _call(self, function: Callable[..., Any], role: str, first: tuple[Any, ...], inputs: Inputs) -> Any:
        try:
            with np.errstate(all="ignore"):
                return function(*first, *inputs.values()) if self.positional else function(*first, **inputs)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            shapes = ", ".join(f"{name}{np.shape(value)}" for name, value in inputs.items())
            raise CheckError(
                f"{role} raised {type(error).__name__}: {error}",
                given=f"{shapes}; at {where.filename}:{where.lineno}: {where.line}",
                fix="mend it first: a gradient can be judged only when both functions run",
            ) from error

    def _named(self, gradients: Any) -> Gradients:
        """Return what backward gave as a dict of arrays, or say what does not fit."""
        if isinstance(gradients, Mapping):
            for name in gradients:
                if name not in self.inputs:
                    raise CheckError(
                        f"backward returns a gradient for {name!r}, which is no input",
                        given=f"the inputs are {', '.join(self.inputs)}",
                        fix=nearest(str(name), self.inputs),
                    )
            given = dict(gradients)
        else:
            parts = gradients if isinstance(gradients, tuple | list) else (gradients,)
            names = list(self.inputs) if len(parts) == len(self.inputs) else list(self.differentiable)
            if len(parts) > len(names):
                raise CheckError(
                    f"backward returns {len(parts)} gradients, and there are {len(names)} inputs"
                )
            given = dict(zip(names, parts, strict=False))
        named = {
            name: value for name, value in given.items() if name in self.differentiable and value is not None
        }
        if not named:
            raise CheckError("backward returns no gradient of an input of floating point")
        return {name: np.asarray(value) for name, value in named.items()}


def copy_of(inputs: Inputs) -> Inputs:
    """Return the same inputs in arrays of their own."""
    return {name: np.array(value) for name, value in inputs.items()}


def widened(inputs: Inputs, dtype: type[np.floating[Any]]) -> Inputs:
    """Return the inputs with those of floating point in another type."""
    return {
        name: np.array(value, dtype) if value.dtype.kind == "f" else np.array(value)
        for name, value in inputs.items()
    }


def _takes_names(function: Callable[..., Any], inputs: Inputs) -> bool:
    """Whether a function takes every input by its name."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return True
    by_name = {
        name for name, parameter in parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }  # fmt: skip
    return set(inputs) <= by_name
