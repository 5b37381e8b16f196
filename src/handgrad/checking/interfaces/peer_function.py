"""How another library's function is called and differentiated, on NumPy's arrays by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np

from handgrad.checking.interfaces.names import is_target
from handgrad.checking.interfaces.tensors import in_float64, is_array, is_tensor, like, narrow, to_numpy
from handgrad.checking.subject import Array, CheckError, seeded

Leaves = dict[str, Any]
"""The arrays of a function's arguments, and what else it takes, by name; a container's by path."""
Pull = Callable[[list[Any]], list[Any]]
"""From upstream gradients, one for each output, to gradients."""


class Library:
    """How a library's function is called and differentiated; its arguments are leaves by name, in order."""

    signature: inspect.Signature
    on_numpy: Callable[..., Any] | None = None
    numbers = (False, True)  # whether numbers are arrays, what is tried first

    def flat(self, arguments: dict[str, Any]) -> Leaves:
        """Return the arguments, those in containers by path."""
        return arguments

    def ways(self, arguments: dict[str, Any]) -> Iterator[Peer]:
        """Yield ways to call the function, the most exact first."""
        flat = self.flat(arguments)
        for exact, numbers in product((True, False), self.numbers):
            yield Peer(self, flat, numbers, exact)

    def tensor(self, example: Any, array: Array) -> Any:
        """Return an array as the library's own."""
        return like(example, array)

    def call(self, leaves: Leaves) -> list[Any]:
        """Return the outputs."""
        raise NotImplementedError

    def differentiate(self, leaves: Leaves, wanted: list[str]) -> tuple[list[Any], Pull]:
        """Return the outputs, and what gives the gradients of some leaves; one that is None is not differentiable."""
        raise NotImplementedError

    def counterpart(self, value: Any) -> Any:
        """Return what stands for a name of the author's module on NumPy's arrays."""
        return value

    def differentiate_on_numpy(self, leaves: Leaves) -> tuple[list[Any], Pull] | None:
        """Return the outputs, and what gives the gradients of all leaves, by the author's functions run on NumPy's arrays."""
        return None

    def is_variable(self, leaf: Any) -> bool:
        """Whether a leaf of floating point may have a gradient."""
        return True

    def is_differentiable(self, output: Any) -> bool:
        """Whether an output has an upstream gradient."""
        return is_array(output) and np.dtype(str(output.dtype).removeprefix("torch.")).kind == "f"

    @property
    def asks(self) -> bool:
        """Whether backward asks which gradients are needed."""
        return False

    def required(self, leaves: Leaves) -> set[str]:
        """Return the leaves whose gradient may not be left out."""
        return set()

    def limits(self, peer: Peer) -> Iterable[str]:
        """Return what a pass does not prove."""
        return ()

    def derived_functions(self, peer: Peer) -> dict[str, Callable[[], AbstractContextManager[None]]]:
        """Return in what context functions that the function calls have a derivative of the library's own, by their names."""
        return {}


@dataclass(frozen=True)
class Peer:
    """Another library's function, called in one precision with the arguments of an example."""

    library: Library
    leaves: Leaves
    numbers: bool  # whether a number of floating point is an array, of which others are drawn
    exact: bool  # whether it runs in float64, or in float32 only

    def arrays_of(self, leaves: Leaves) -> dict[str, Array]:
        """Return the leaves that are arrays, as NumPy's; tensors, which are float32 unasked, in float64 if that runs."""
        arrays = {name: np.array(to_numpy(value)) for name, value in leaves.items() if self._is_array(value)}
        wide = {
            name
            for name in arrays
            if self.exact and is_tensor(leaves[name]) and arrays[name].dtype.kind == "f"
        }
        return {n: v.astype(np.float64) if n in wide else self._narrow(v) for n, v in arrays.items()}

    def _narrow(self, array: Array) -> Array:
        is_float = array.dtype.kind == "f" and not self.exact
        return array.astype(np.float32, copy=False) if is_float else narrow(array)

    def _is_array(self, value: Any) -> bool:
        return is_array(value) or (self.numbers and isinstance(value, float))

    @cached_property
    def example(self) -> dict[str, Array]:
        """The example's arrays."""
        return self.arrays_of(self.leaves)

    def given(self, arrays: Mapping[str, Any]) -> Leaves:
        """Return all leaves, the arrays as the library's own."""
        return {**self.leaves, **{name: self._tensor(name, value) for name, value in arrays.items()}}

    def _tensor(self, name: str, value: Any) -> Any:
        return self.library.tensor(self.leaves[name], self._narrow(np.asarray(value)))

    def runs(self) -> bool:
        """Whether the function and its gradient can be computed at the example."""
        try:
            return bool(self.wanted)
        except Exception:  # the user's code, and the library, may refuse a type in any way
            return False

    @cached_property
    def kept(self) -> list[int]:
        """The outputs that can be differentiated."""
        with in_float64(widen=self.exact):
            outputs, _ = self._differentiate(self.example, self.floating)
        return [k for k, output in enumerate(outputs) if self.library.is_differentiable(output)]

    @cached_property
    def floating(self) -> list[str]:
        """The arrays of floating point that may have a gradient."""
        floats = (name for name, value in self.example.items() if value.dtype.kind == "f")
        return [name for name in floats if self.library.is_variable(self.leaves[name])]

    @cached_property
    def wanted(self) -> list[str]:
        """The leaves that have a gradient: one left out is zero if it is required; zeros of targets and numbers are none."""
        found = self.gradients([np.ones_like(part) for part in self._outputs(self.example)], self.example)
        required = self.library.required(self.leaves)
        constants = {name for name in found if is_target((name,)) or isinstance(self.leaves[name], float)}
        left_out = {n for n, g in found.items() if g is None or (n in constants and not np.any(g))}
        return [name for name in self.floating if name not in left_out or name in required]

    def _differentiate(self, arrays: Mapping[str, Any], wanted: list[str]) -> tuple[list[Any], Pull]:
        with seeded():
            return self.library.differentiate(self.given(arrays), wanted)

    def _outputs(self, arrays: Mapping[str, Any]) -> list[Array]:
        with in_float64(widen=self.exact), seeded():
            outputs = self.library.call(self.given(arrays))
        return [np.asarray(to_numpy(outputs[k])) for k in self.kept]

    def gradients(
        self, upstream: Iterable[Any], arrays: Mapping[str, Any], *, another: bool = False
    ) -> dict[str, Any]:
        """Return the gradients that backward returns; ``another`` forward runs before it."""

        def run(wanted: list[str]) -> dict[str, Any]:
            outputs, pull = self._differentiate(arrays, wanted)
            if another:
                self._differentiate({name: _reversed(value) for name, value in arrays.items()}, wanted)
            given: list[Any] = [None] * len(outputs)
            for k, part in zip(self.kept, upstream, strict=True):
                given[k] = self.library.tensor(
                    outputs[k], narrow(part).astype(to_numpy(outputs[k]).dtype, copy=False)
                )
            found = (to_numpy(gradient) for gradient in pull(given))
            return dict(zip(wanted, found, strict=True))

        upstream = list(upstream)
        with in_float64(widen=self.exact):
            if not self.library.asks:
                return run(self.floating)
            return {name: run([name])[name] for name in self.floating}

    def functions(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Return forward and backward on NumPy's arrays by name."""

        def forward(**values: Any) -> Any:
            return _one_or_all(self._outputs(values))

        def backward(upstream: Any, **values: Any) -> dict[str, Any]:
            return self._judged(self.gradients(as_list(upstream), values), values)

        def after_another(upstream: Any, **values: Any) -> dict[str, Any]:
            return self._judged(self.gradients(as_list(upstream), values, another=True), values)

        backward.after_another = after_another  # type: ignore[attr-defined]
        backward.with_derived = partial(self._with_derived, backward)  # type: ignore[attr-defined]
        backward.on_numpy = self._on_numpy()  # type: ignore[attr-defined]
        if (on_numpy := self.library.on_numpy) is not None:

            def traced(**values: Any) -> Any:
                outputs = as_list(on_numpy(*({**self.leaves, **values}).values()))
                return _one_or_all([outputs[k] for k in self.kept])

            traced.__wrapped__ = getattr(on_numpy, "__wrapped__", on_numpy)  # type: ignore[attr-defined]
            forward.on_numpy = traced  # type: ignore[attr-defined]
        return forward, backward

    def _judged(self, found: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the gradients that are judged, zeros where a wanted one was left out."""
        return {n: np.zeros_like(narrow(values[n])) if found[n] is None else found[n] for n in self.wanted}

    def _with_derived(self, backward: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
        """Return backward with other functions' derivative in place of what their author wrote, by the functions' names."""

        def within(
            context: Callable[[], AbstractContextManager[None]], upstream: Any, **values: Any
        ) -> dict[str, Any]:
            with context():
                return dict(backward(upstream, **values))

        return {name: partial(within, each) for name, each in self.library.derived_functions(self).items()}

    def _on_numpy(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Return forward and backward by the author's functions run on NumPy's arrays; CheckError where they do not."""

        def run(values: Mapping[str, Any]) -> tuple[list[Any], Pull]:
            found = self.library.differentiate_on_numpy({**self.leaves, **values})
            if found is None:
                raise CheckError("it does not run on NumPy's arrays")
            return found

        def forward(**values: Any) -> Any:
            outputs, _ = run(values)
            return _one_or_all([np.asarray(outputs[k]) for k in self.kept])

        def backward(upstream: Any, **values: Any) -> dict[str, Any]:
            outputs, pull = run(values)
            given = dict(zip(self.kept, as_list(upstream), strict=True))
            found = pull([given.get(k) for k in range(len(outputs))])
            return self._judged(dict(zip(self.leaves, found, strict=True)), values)

        backward.bound = self.library.counterpart  # type: ignore[attr-defined]
        return forward, backward

    def limits(self) -> Iterable[str]:
        """Yield what a pass does not prove."""
        if not self.exact:
            yield "it does not run in float64, and was checked in float32"
        yield from self.library.limits(self)


def _one_or_all(outputs: list[Any]) -> Any:
    return tuple(outputs) if len(outputs) > 1 else outputs[0]


def as_list(output: Any) -> list[Any]:
    """Return what a function gave as a list, one or several."""
    if isinstance(output, Mapping):
        return list(output.values())
    return list(output) if isinstance(output, tuple | list) else [output]


def _reversed(value: Any) -> Array:
    """Return the same numbers in the other order: inputs of the same domain."""
    array = np.asarray(value)
    return np.ascontiguousarray(array.ravel()[::-1]).reshape(array.shape)
