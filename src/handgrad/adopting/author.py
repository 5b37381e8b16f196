"""An author's program: its loss, its gradients and what its forward computes, at any values of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from handgrad.adopting.traced_values import Array, TracedValues
from handgrad.checking.adjoint import adjoints
from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.input_draws import draw
from handgrad.checking.interfaces import Pair, pair_of
from handgrad.checking.interfaces.autograd_classes import Expression
from handgrad.checking.subject import CheckError, Inputs, Subject, widened
from handgrad.checking.verdict.analytic import traced
from handgrad.errors import HandgradError


class AdoptError(HandgradError):
    """What a file holds cannot be adopted: nothing of it is recognised, or what was written would be lost."""


@dataclass(frozen=True)
class Program:
    """What `handgrad.check` takes: a forward with its backward, or what has both; and the inputs as they are given."""

    forward: Any
    backward: Callable[..., Any] | None
    inputs: Any
    script: Path | None = None  # what the functions were made of, where it has no functions

    @cached_property
    def world(self) -> dict[str, Any]:
        """The inputs by name, as the author's functions are called."""
        return dict(self.example) if isinstance(self.example, Mapping) else {}

    @cached_property
    def example(self) -> Any:
        """The inputs, or what draws them, called once."""
        return self.inputs(np.random.default_rng(0)) if callable(self.inputs) else self.inputs

    @property
    def owner(self) -> Any:
        """The object that has forward and backward, or None."""
        if isinstance(self.forward, FunctionType | type):
            return None
        return getattr(self.forward, "__self__", self.forward)


class Author:
    """A program as two functions of arrays, with a trace of its forward."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.pair: Pair = pair_of(program.forward, program.backward, program.example)
        drawn = draw(self.pair.inputs, np.random.default_rng(0))
        self.subject = Subject.of(self.pair.forward, self.pair.backward, drawn)
        self.inputs: Inputs = widened(self.subject.inputs, np.float64)
        self.arguments = self.subject.arguments()
        outputs = self.subject.run_forward(self.inputs)
        if len(outputs) > 1:
            raise AdoptError(
                f"{self.pair.name}: its forward returns {len(outputs)} arrays, and a network has one output",
                fix="give the function that computes the loss, or the whole network",
            )
        self.has_loss = outputs[0].size == 1
        self.goal = outputs[0] + np.random.default_rng(1).normal(size=outputs[0].shape)

    @cached_property
    def trace(self) -> ForwardTrace:
        """What forward computes; raises `AdoptError` where it cannot be traced."""
        trace = traced(self.subject, self.inputs)
        if trace is None:
            raise AdoptError(
                f"{self.pair.name}: its forward cannot be traced as operations on arrays",
                fix="give the network itself, without what prints, draws or counts around it",
            )
        return trace

    @cached_property
    def values(self) -> TracedValues:
        """Every value of forward at several draws."""
        return TracedValues(self.trace, self.inputs, self.arguments)

    def loss(self, inputs: Inputs) -> float:
        """Return the author's loss; half the squared error to drawn targets where the program has none."""
        (output,) = self.subject.run_forward(inputs)
        return float(output.item()) if self.has_loss else 0.5 * float(((output - self.goal) ** 2).sum())

    def upstream(self, inputs: Inputs) -> Array:
        """Return the gradient of the loss with respect to what forward returns."""
        (output,) = self.subject.run_forward(inputs)
        return np.ones_like(output) if self.has_loss else output - self.goal

    def gradients(self, inputs: Inputs) -> dict[str, Array]:
        """Return what the author's backward gives."""
        return self.subject.run_backward([self.upstream(inputs)], inputs)

    def right_gradients(self, inputs: Inputs) -> dict[int, Array]:
        """Return the gradient of every value that has one, by the chain rule over the trace."""
        values = self.trace.replay(inputs)
        found = adjoints(self.trace, values, [np.asarray(self.upstream(inputs), np.float64)])
        return {i: np.asarray(gradient) for i, gradient in found.items()}


def check_can_be_adopted(program: Program) -> None:
    """Raise `AdoptError` for what is handgrad's already, or no program of arrays."""
    if isinstance(program.owner, Expression):
        raise AdoptError(
            f"{program.owner.cls.__name__}: its values differentiate themselves, one operation at a time",
            fix="give a network whose forward and backward are functions of arrays",
        )
    module = type(program.forward).__module__
    if module.startswith("handgrad."):
        raise AdoptError(f"{program.forward!r} is handgrad's own already")
    if module.startswith(("torch", "jax")):
        raise CheckError(
            f"{program.forward!r} is {module.split('.')[0]}'s", fix="handgrad.interop.from_torch"
        )
