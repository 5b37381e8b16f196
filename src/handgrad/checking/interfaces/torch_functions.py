"""PyTorch's functions: a ``torch.autograd.Function``, a module, and a function of tensors that calls one."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cached_property, partial
from types import FunctionType
from typing import Any

import numpy as np

from handgrad.checking.interfaces.derived_functions import derived, functions_in
from handgrad.checking.interfaces.names import is_target, plain
from handgrad.checking.interfaces.peer_function import Leaves, Library, Peer, Pull, as_list
from handgrad.checking.interfaces.tensors import in_float64, is_torch, like, to_numpy
from handgrad.checking.interfaces.torch_on_numpy import torch_on_numpy
from handgrad.checking.subject import Array, seeded

TRAINED = {"x", "input", "inputs", "w", "weight", "weights", "b", "bias", "gamma", "beta", "gain", "q", "k", "v",
           "query", "key", "value", "logits"}  # fmt: skip  # whose gradient nobody leaves out on purpose
STEP = 1e-5  # of the central difference of backward, in float64
SECOND = 1e-4  # how far backward's own derivative may be off it
NOTHING = 1e-6  # of backward's size: a smaller difference is none
DIGITS = "0123456789"


def torch_class(thing: Any) -> Any:
    """Return the torch.autograd.Function that something is, or whose ``apply`` it is; None for anything else."""
    torch, owner = sys.modules.get("torch"), getattr(thing, "__self__", thing)
    found = torch is not None and isinstance(owner, type) and issubclass(owner, torch.autograd.Function)
    return owner if found else None


def is_module(thing: Any) -> bool:
    """Whether it is a module of PyTorch's."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.nn.Module)


def torch_library(thing: Any) -> Library:
    """Return how PyTorch calls and differentiates a Function, a module, or a function of tensors."""
    if torch_class(thing) is not None:
        return _Function(torch_class(thing))
    return _Module(thing) if is_module(thing) else _Torch(thing)


def _with_upstream(outputs: list[Any], upstream: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return the outputs that have an upstream gradient, and these."""
    pairs = [pair for pair in zip(outputs, upstream, strict=True) if pair[1] is not None]
    return [output for output, _ in pairs], [part for _, part in pairs]


class _Torch(Library):
    """A function of tensors."""

    numbers = (True, False)

    def __init__(self, function: Any) -> None:
        self.function, self.signature = function, inspect.signature(function)

    def tensor(self, example: Any, array: Array) -> Any:
        import torch

        if isinstance(example, float):
            return float(array)
        return like(example if is_torch(example) else torch.empty(0), array)

    def is_variable(self, leaf: Any) -> bool:
        return not isinstance(leaf, float)

    def _run(self, leaves: Leaves) -> list[Any]:
        return as_list(self.function(*leaves.values()))

    def call(self, leaves: Leaves) -> list[Any]:
        import torch

        with torch.no_grad():
            return self._run(leaves)

    def differentiate(self, leaves: Leaves, wanted: list[str]) -> tuple[list[Any], Pull]:
        import torch

        leaves = {n: v.detach() if is_torch(v) else v for n, v in leaves.items()}
        variables = [leaves[name].requires_grad_() for name in wanted]
        outputs = self._run(leaves)

        def pull(upstream: list[Any]) -> list[Any]:
            ends, parts = _with_upstream(outputs, upstream)
            return list(torch.autograd.grad(ends, variables, parts, allow_unused=True))

        return outputs, pull

    def is_differentiable(self, output: Any) -> bool:
        return is_torch(output) and output.is_floating_point() and output.requires_grad

    def required(self, leaves: Leaves) -> set[str]:
        """Return what its author marked, or else what by its name is trained."""
        marked = {name for name, value in leaves.items() if is_torch(value) and value.requires_grad}
        trained = {
            name for name in leaves if plain(name).rstrip(DIGITS) in TRAINED and not is_target((name,))
        }
        return marked or trained

    def limits(self, peer: Peer) -> Iterator[str]:
        try:
            exact, difference, size = self._second(peer)
        except (RuntimeError, TypeError, ValueError):  # PyTorch refuses it itself
            return
        if abs(exact - difference) > SECOND * max(abs(exact), abs(difference)) + NOTHING * size:
            yield (
                "backward cannot be differentiated itself (double backward): its derivative along a direction is "
                f"{difference:.3g}, and PyTorch gets {exact:.3g}; mark it @once_differentiable, or save inputs and "
                "outputs only"
            )

    def derived_functions(self, peer: Peer) -> dict[str, Callable[[], AbstractContextManager[None]]]:
        with in_float64(widen=peer.exact), seeded():
            outputs, _ = self.differentiate(peer.given(peer.example), peer.wanted)
        functions = functions_in(outputs)
        some = [*([each] for each in functions), functions]
        return {
            " and ".join(each.__name__ for each in chosen): partial(derived, chosen)
            for chosen in some
            if chosen
        }

    def _second(self, peer: Peer) -> tuple[float, float, float]:
        """Return backward's own derivative along a direction, by PyTorch and by a difference, and backward's size."""
        import torch

        generator = np.random.default_rng(0)
        example, wanted = peer.example, peer.wanted
        leaves = {n: v.detach() if is_torch(v) else v for n, v in peer.given(example).items()}
        variables = [leaves[name].requires_grad_() for name in wanted]
        ends = [output for output in self._run(leaves) if self.is_differentiable(output)]
        upstream = [generator.normal(size=tuple(end.shape)) for end in ends]
        by, along = ({name: generator.normal(size=example[name].shape) for name in wanted} for _ in range(2))

        def total(found: Mapping[str, Any]) -> Any:
            return sum((found[n] * self.tensor(None, by[n])).sum() for n in wanted if found[n] is not None)

        parts = [self.tensor(end, u) for end, u in zip(ends, upstream, strict=True)]
        found = torch.autograd.grad(ends, variables, parts, create_graph=True, allow_unused=True)
        first = total(dict(zip(wanted, found, strict=True)))
        second: Iterable[Any] = [None] * len(wanted)
        if is_torch(first) and first.requires_grad:
            second = torch.autograd.grad(first, variables, allow_unused=True)
        pairs = zip(wanted, second, strict=True)
        exact = sum(
            float((each * self.tensor(None, along[n])).sum()) for n, each in pairs if each is not None
        )

        def moved(step: float) -> float:
            near = {**example, **{name: example[name] + step * along[name] for name in wanted}}
            gradients = peer.gradients(upstream, near)
            return float(sum((gradients[n] * by[n]).sum() for n in wanted if gradients[n] is not None))

        return exact, (moved(STEP) - moved(-STEP)) / (2 * STEP), abs(float(to_numpy(first)))


class _Function(_Torch):
    """A torch.autograd.Function."""

    def __init__(self, function: Any) -> None:
        self.function = function
        signature = inspect.signature(function.forward)
        has_context = "setup_context" not in vars(function)  # forward's first parameter
        self.signature = signature.replace(parameters=list(signature.parameters.values())[has_context:])
        self.on_numpy = torch_on_numpy(function)

    def derived_functions(self, peer: Peer) -> dict[str, Callable[[], AbstractContextManager[None]]]:
        return {}  # it is the Function itself that is judged

    def limits(self, peer: Peer) -> Iterator[str]:
        if not hasattr(self.function.backward, "__wrapped__"):  # by @once_differentiable
            yield from super().limits(peer)

    @cached_property
    def _words(self) -> set[str]:
        """What its methods read by name."""
        methods = (
            inspect.unwrap(getattr(self.function, each)) for each in ("forward", "setup_context", "backward")
        )
        return {word for each in methods if isinstance(each, FunctionType) for word in each.__code__.co_names}

    @property
    def asks(self) -> bool:
        return "needs_input_grad" in self._words

    def _run(self, leaves: Leaves) -> list[Any]:
        values = leaves.values()
        if "mark_dirty" in self._words:  # it may not change what a gradient is wanted of
            return as_list(self.function.apply(*(v.clone() if is_torch(v) else v for v in values)))
        return as_list(self.function.apply(*values))

    def differentiate(self, leaves: Leaves, wanted: list[str]) -> tuple[list[Any], Pull]:
        outputs, pull = super().differentiate(leaves, wanted)

        def pull_of_any_shape(upstream: list[Any]) -> list[Any]:
            try:
                return pull(upstream)
            except RuntimeError as error:
                if "invalid gradient" not in str(error):
                    raise
            # the shape is wrong, which PyTorch refuses: what backward returned is judged as it is
            ends, parts = _with_upstream(outputs, upstream)
            returned = as_list(self.function.backward(ends[0].grad_fn, *parts))
            by_leaf = dict(zip(leaves, returned, strict=False))
            return [by_leaf[name] for name in wanted]

        return outputs, pull_of_any_shape


class _Module(_Torch):
    """A module of PyTorch's: its parameters are arguments too, after its inputs."""

    def __init__(self, module: Any) -> None:
        self.module, self.signature = copy.deepcopy(module), inspect.signature(module.forward)
        self.parameters = dict(self.module.named_parameters())

    def flat(self, arguments: dict[str, Any]) -> Leaves:
        return {**arguments, **self.parameters}

    def _run(self, leaves: Leaves) -> list[Any]:
        import torch

        parameters = {name: leaves[name] for name in self.parameters}
        inputs = [value for name, value in leaves.items() if name not in parameters]
        for buffer in self.module.buffers():
            buffer.data = buffer.data.to(
                torch.promote_types(buffer.dtype, *{v.dtype for v in parameters.values()})
            )
        return as_list(torch.func.functional_call(self.module, parameters, tuple(inputs)))
