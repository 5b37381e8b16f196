"""Gradients written by hand for other libraries, called on NumPy arrays.

They are a ``torch.autograd.Function``, JAX's functions with ``defvjp`` or ``defjvp``, jitted or not, and autograd's; and
modules and functions that call them. Each library differentiates the function with the rule that its author wrote.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from types import FunctionType
from typing import Any

import numpy as np

from handgrad.checking.interfaces.names import is_target, plain
from handgrad.checking.interfaces.on_numpy import jax_on_numpy, torch_on_numpy, unwrapped
from handgrad.checking.interfaces.own_objects import Pair, by_name
from handgrad.checking.interfaces.tensors import (
    in_float64,
    is_array,
    is_tensor,
    is_torch,
    like,
    narrow,
    to_numpy,
)
from handgrad.checking.subject import Array, CheckError, seeded
from handgrad.tolerance import close

Leaves = dict[str, Any]
"""The arrays of a function's arguments, and what else it takes, by name; a container's by path."""
Pull = Callable[[list[Any]], list[Any]]
"""From upstream gradients, one for each output, to gradients."""

TRAINED = {"x", "input", "inputs", "w", "weight", "weights", "b", "bias", "gamma", "beta", "gain", "q", "k", "v",
           "query", "key", "value", "logits"}  # fmt: skip  # whose gradient nobody leaves out on purpose
STEP = 1e-5  # of the central difference of backward, in float64
SECOND = 1e-4  # how far backward's own derivative may be off it
NOTHING = 1e-6  # of backward's size: a smaller difference is none
DIGITS = "0123456789"


def is_peer(thing: Any) -> bool:
    """Whether it is another library's function with a gradient of its own; a library not yet imported has none."""
    torch, jax, autograd = map(sys.modules.get, ("torch", "jax", "autograd"))
    if torch is not None:
        if isinstance(thing, torch.nn.Module) and not hasattr(thing, "backward"):
            return True
        if isinstance(_torch_class(thing), type):
            return True
    if jax is not None and isinstance(thing, jax.custom_vjp | jax.custom_jvp | jax.stages.Wrapped):
        return True
    return autograd is not None and thing in _autograd_rules(autograd)


def differentiates_itself(function: Any, inputs: Any) -> bool:
    """Whether a plain function is one that PyTorch or JAX differentiates: it gives one tensor, or takes some to train."""
    if not isinstance(function, FunctionType) or not ({"torch", "jax"} & sys.modules.keys()):
        return False
    given = draw_once(by_name(inspect.signature(function), inputs)) if inputs is not None else {}
    if not given.keys() <= inspect.signature(function).parameters.keys():
        return False
    values = given.values()
    if any(is_torch(value) and value.requires_grad for value in values):
        return True
    if not any(map(is_array, values)):
        return False
    try:
        return is_tensor(function(**given))
    except Exception:  # whatever the user's code raises is for the check of it to report
        return False


def of_arrays(pair: Pair) -> Pair:
    """Return two functions of another library's arrays, and the inputs, as NumPy's; others as they are."""
    forward, backward, inputs = pair.forward, pair.backward, pair.inputs
    example = draw_once(inputs)
    if not any(map(is_tensor, example.values())):
        return pair

    def drawn(generator: np.random.Generator) -> dict[str, Any]:
        return _wide(inputs(generator))  # type: ignore[operator]

    def given(values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: like(example[name], value) for name, value in values.items()}

    def run(**values: Any) -> Any:
        with in_float64():
            return _bare(forward(**given(values)))

    def run_backward(upstream: Any, **values: Any) -> Any:
        some = next(filter(is_tensor, example.values()))
        with in_float64():
            parts = [like(some, part) for part in _all(upstream)]
            first = tuple(parts) if isinstance(upstream, tuple) else parts[0]
            return _bare(backward(first, **given(values)))

    run.__wrapped__, run_backward.__wrapped__ = forward, backward  # type: ignore[attr-defined]
    return Pair(run, run_backward, drawn if callable(inputs) else _wide(inputs), pair.name, given=given)


def _wide(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return tensors as arrays in float64: they are float32 unasked."""
    arrays = {name: to_numpy(value) for name, value in inputs.items()}
    wide = {n for n, v in inputs.items() if is_tensor(v) and arrays[n].dtype.kind == "f"}
    return {name: v.astype(np.float64) if name in wide else v for name, v in arrays.items()}


def with_surrogate(pair: Pair, surrogate: Callable[..., Any]) -> Pair:
    """Return a pair whose backward is compared with the derivative of another forward, of inputs of the same names."""

    def forward(**values: Any) -> Any:
        given = dict(pair.given(values))
        try:
            names = [name for name in inspect.signature(surrogate).parameters if name in given]
        except (TypeError, ValueError):  # a library's own function
            names = []
        with in_float64(), seeded():
            return _bare(
                surrogate(**{name: given[name] for name in names}) if names else surrogate(*given.values())
            )

    def backward(upstream: Any, **values: Any) -> Any:
        pair.forward(**{name: np.array(value) for name, value in values.items()})  # which may save something
        return pair.backward(upstream, **values)

    backward.__dict__.update(pair.backward.__dict__)
    example = {name: np.asarray(value) for name, value in draw_once(pair.inputs).items()}
    outputs, others = (list(map(np.shape, _all(each(**example)))) for each in (pair.forward, forward))
    if outputs != others:
        raise CheckError(
            f"the surrogate returns {others}, and forward {outputs}", fix="return an array of the same shape"
        )
    limit = "backward was compared with the derivative of the surrogate, and not of forward"
    return replace(pair, forward=forward, backward=backward, limits=(*pair.limits, limit))


def _bare(value: Any) -> Any:
    """Return the arrays of tensors in a dictionary, a tuple or a list."""
    if isinstance(value, Mapping):
        return {name: to_numpy(item) for name, item in value.items()}
    return tuple(map(to_numpy, value)) if isinstance(value, tuple | list) else to_numpy(value)


def draw_once(source: Any) -> Mapping[str, Any]:
    """Return inputs, drawn where they are to be."""
    made: Mapping[str, Any] = source(np.random.default_rng(0)) if callable(source) else source
    return made


def peer_pair(thing: Any, inputs: Any) -> Pair:
    """Return another library's function as a forward and a backward."""
    name = getattr(_torch_class(thing), "__name__", "") or getattr(thing, "__name__", type(thing).__name__)
    if inputs is None:
        raise CheckError(
            f"{name}: the inputs are missing", fix="give a tuple of arrays, or a dict in that order"
        )
    library = _library_of(thing)
    source = by_name(library.signature, inputs)
    arguments = _in_order(library.signature, draw_once(source))
    ways = list(library.ways(arguments))
    peer = next((way for way in ways if way.runs()), ways[0])  # what the plainest raises is reported

    def drawn(generator: np.random.Generator) -> Leaves:
        return peer.arrays_of(library.flat(_in_order(library.signature, source(generator))))  # type: ignore[operator]

    given = drawn if callable(source) else peer.arrays_of(library.flat(arguments))
    limits = tuple(peer.limits()) if peer.runs() else ()
    return Pair(*peer.functions(), given, name, limits, peer.given)


def _in_order(signature: inspect.Signature, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments in the order of a function's parameters; what is left out between two has its default."""
    parameters = signature.parameters
    if not given.keys() <= parameters.keys():
        return dict(given)
    last = max((k for k, name in enumerate(parameters) if name in given), default=-1)
    found: dict[str, Any] = {}
    for name, parameter in list(parameters.items())[: last + 1]:
        value = given.get(name, () if parameter.kind is parameter.VAR_POSITIONAL else parameter.default)
        if value is parameter.empty:
            raise CheckError(f"the inputs have no {name!r}", fix=f'add it: {{"{name}": …}}')
        if parameter.kind is parameter.VAR_POSITIONAL:
            found |= {f"{name}[{k}]": item for k, item in enumerate(value)}
        else:
            found[name] = value
    return found


# ------------------------------------------------------------------------------- what all libraries have in common


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
        with in_float64():
            outputs, _ = self._differentiate(self.example, self.floating)
        return [k for k, output in enumerate(outputs) if self.library.is_differentiable(output)]

    @cached_property
    def floating(self) -> list[str]:
        """The arrays of floating point that may have a gradient."""
        floats = (name for name, value in self.example.items() if value.dtype.kind == "f")
        return [name for name in floats if self.library.is_variable(self.leaves[name])]

    @cached_property
    def wanted(self) -> list[str]:
        """The leaves that have a gradient: one that is required and is left out is zero, a target's zero is left out."""
        found = self.gradients([np.ones_like(part) for part in self._outputs(self.example)], self.example)
        required = self.library.required(self.leaves)
        left_out = {n for n, g in found.items() if g is None or (is_target((n,)) and not np.any(g))}
        return [name for name in self.floating if name not in left_out or name in required]

    def _differentiate(self, arrays: Mapping[str, Any], wanted: list[str]) -> tuple[list[Any], Pull]:
        with seeded():
            return self.library.differentiate(self.given(arrays), wanted)

    def _outputs(self, arrays: Mapping[str, Any]) -> list[Array]:
        with in_float64(), seeded():
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
        with in_float64():
            if not self.library.asks:
                return run(self.floating)
            return {name: run([name])[name] for name in self.floating}

    def functions(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Return forward and backward on NumPy's arrays by name."""

        def forward(**values: Any) -> Any:
            outputs = self._outputs(values)
            return tuple(outputs) if len(outputs) > 1 else outputs[0]

        def backward(upstream: Any, **values: Any) -> dict[str, Any]:
            return judged(self.gradients(_all(upstream), values), values)

        def after_another(upstream: Any, **values: Any) -> dict[str, Any]:
            return judged(self.gradients(_all(upstream), values, another=True), values)

        def judged(found: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
            return {
                n: np.zeros_like(narrow(values[n])) if found[n] is None else found[n] for n in self.wanted
            }

        backward.after_another = after_another  # type: ignore[attr-defined]
        if (on_numpy := self.library.on_numpy) is not None:

            def traced(**values: Any) -> Any:
                given = [values.get(name, value) for name, value in self.leaves.items()]
                outputs = _all(on_numpy(*given))
                kept = [outputs[k] for k in self.kept]
                return tuple(kept) if len(kept) > 1 else kept[0]

            traced.__wrapped__ = getattr(on_numpy, "__wrapped__", on_numpy)  # type: ignore[attr-defined]
            forward.on_numpy = traced  # type: ignore[attr-defined]
        return forward, backward

    def limits(self) -> Iterable[str]:
        """Yield what a pass does not prove."""
        if not self.exact:
            yield "it does not run in float64, and was checked in float32"
        yield from self.library.limits(self)


def _all(output: Any) -> list[Any]:
    """Return what a function gave as a list, one or several."""
    if isinstance(output, Mapping):
        return list(output.values())
    return list(output) if isinstance(output, tuple | list) else [output]


def _reversed(value: Any) -> Array:
    """Return the same numbers in the other order: inputs of the same domain."""
    array = np.asarray(value)
    return np.ascontiguousarray(array.ravel()[::-1]).reshape(array.shape)


def _library_of(thing: Any) -> Library:
    torch, jax, autograd = map(sys.modules.get, ("torch", "jax", "autograd"))
    if _torch_class(thing) is not None:
        return _Function(_torch_class(thing))
    if torch is not None and isinstance(thing, torch.nn.Module):
        return _Module(thing)
    if autograd is not None and thing in _autograd_rules(autograd):
        return _Autograd(thing)
    names = getattr(thing, "__globals__", {}).values()
    plain_torch = torch is not None and (jax is None or any(value is torch for value in names))
    return _Torch(thing) if isinstance(thing, FunctionType) and plain_torch else _Jax(thing)


# ------------------------------------------------------------------------------------------------------- PyTorch


def _torch_class(thing: Any) -> Any:
    """Return the torch.autograd.Function that something is, or whose ``apply`` it is; None for anything else."""
    torch, owner = sys.modules.get("torch"), getattr(thing, "__self__", thing)
    found = torch is not None and isinstance(owner, type) and issubclass(owner, torch.autograd.Function)
    return owner if found else None


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
        return _all(self.function(*leaves.values()))

    def call(self, leaves: Leaves) -> list[Any]:
        import torch

        with torch.no_grad():
            return self._run(leaves)

    def differentiate(self, leaves: Leaves, wanted: list[str], **options: bool) -> tuple[list[Any], Pull]:
        leaves = {n: v.detach() if is_torch(v) else v for n, v in leaves.items()}
        variables = {name: leaves[name].requires_grad_() for name in wanted}
        outputs = self._run(leaves)

        def pull(upstream: list[Any]) -> list[Any]:
            pairs = zip(outputs, upstream, strict=True)
            ends, parts = map(list, zip(*(pair for pair in pairs if pair[1] is not None), strict=True))
            return self._pull(ends, variables, parts, list(leaves), options)

        return outputs, pull

    def _pull(
        self,
        ends: list[Any],
        variables: Leaves,
        upstream: list[Any],
        names: list[str],
        options: dict[str, bool],
    ) -> list[Any]:
        import torch

        return list(
            torch.autograd.grad(ends, list(variables.values()), upstream, allow_unused=True, **options)
        )

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
            return _all(self.function.apply(*(v.clone() if is_torch(v) else v for v in values)))
        return _all(self.function.apply(*values))

    def _pull(
        self,
        ends: list[Any],
        variables: Leaves,
        upstream: list[Any],
        names: list[str],
        options: dict[str, bool],
    ) -> list[Any]:
        try:
            return super()._pull(ends, variables, upstream, names, options)
        except RuntimeError as error:
            if "invalid gradient" not in str(error):
                raise
        # the shape is wrong, which PyTorch refuses: what backward returned is judged as it is
        returned = dict(zip(names, _all(self.function.backward(ends[0].grad_fn, *upstream)), strict=False))
        return [returned[name] for name in variables]


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
        return _all(torch.func.functional_call(self.module, parameters, tuple(inputs)))


# ---------------------------------------------------------------------------------------------- JAX and autograd


class _Fixed:
    """What is not differentiated: a leaf of JAX's trees."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Jax(Library):
    """A function of JAX's, of trees of arrays."""

    numbers = (True, False)

    def __init__(self, function: Any) -> None:
        import jax

        self.function, start = function, unwrapped(function)
        self.signature = inspect.signature(start)
        self.fixed = _nondiff(function)
        if (plain := jax_on_numpy(function)) is not None:

            def on_numpy(*leaves: Any) -> Any:
                return jax.tree_util.tree_leaves(plain(*self._arguments(leaves)))

            on_numpy.__wrapped__ = plain  # type: ignore[attr-defined]
            self.on_numpy = on_numpy

    def flat(self, arguments: dict[str, Any]) -> Leaves:
        import jax

        values = {n: _Fixed(v) if k in self.fixed else v for k, (n, v) in enumerate(arguments.items())}
        found, self.tree = jax.tree_util.tree_flatten_with_path(tuple(values.values()))
        names = list(values)
        return {names[path[0].idx] + "".join(map(_step, path[1:])): leaf for path, leaf in found}

    def _arguments(self, leaves: Iterable[Any]) -> list[Any]:
        import jax

        bare = [leaf.value if isinstance(leaf, _Fixed) else leaf for leaf in leaves]
        return list(jax.tree_util.tree_unflatten(self.tree, bare))

    def tensor(self, example: Any, array: Array) -> Any:
        import jax

        return jax.numpy.asarray(array)

    def call(self, leaves: Leaves) -> list[Any]:
        import jax

        return list(jax.tree_util.tree_leaves(self.function(*self._arguments(leaves.values()))))

    def differentiate(self, leaves: Leaves, wanted: list[str]) -> tuple[list[Any], Pull]:
        import jax

        def of(*values: Any) -> list[Any]:
            return self.call({**leaves, **dict(zip(wanted, values, strict=True))})

        outputs, back = jax.vjp(of, *(leaves[name] for name in wanted))
        for first, second in zip(outputs, self.call(leaves), strict=True):
            if not close(to_numpy(first), to_numpy(second)):
                raise CheckError("the forward of its rule returns another value than the function itself")

        def pull(upstream: list[Any]) -> list[Any]:
            nothing = (np.zeros(output.shape, jax.dtypes.float0) for output in outputs)
            pairs = zip(upstream, nothing, strict=True)
            return list(back([zero if part is None else part for part, zero in pairs]))

        return outputs, pull

    def is_differentiable(self, output: Any) -> bool:
        import jax

        return bool(jax.numpy.issubdtype(output.dtype, jax.numpy.floating))


def _step(key: Any) -> str:
    """Return a step into a tree as code would write it."""
    index = getattr(key, "idx", getattr(key, "key", None))
    return f"[{index}]" if isinstance(index, int) else f".{getattr(key, 'name', index)}"


def _nondiff(function: Any) -> set[int]:
    """Return the arguments that are not differentiated, by number."""
    found: set[int] = set()
    while function is not None and not isinstance(function, FunctionType):
        found |= set(getattr(function, "nondiff_argnums", ()))
        function = getattr(function, "fun", getattr(function, "__wrapped__", None))
    return found


def _autograd_rules(autograd: Any) -> Mapping[Any, Any]:
    """Return the functions that have a rule of autograd's."""
    return getattr(getattr(autograd, "core", None), "primitive_vjps", {})


class _Autograd(Library):
    """A function with a rule of autograd's."""

    def __init__(self, function: Any) -> None:
        self.function, self.on_numpy = function, function.fun
        self.signature = inspect.signature(function.fun)

    def call(self, leaves: Leaves) -> list[Any]:
        return [np.asarray(self.function(*leaves.values()))]

    def differentiate(self, leaves: Leaves, wanted: list[str]) -> tuple[list[Any], Pull]:
        make, names, values = sys.modules["autograd"].make_vjp, list(leaves), list(leaves.values())

        def pull(upstream: list[Any]) -> list[Any]:
            return [make(self.function, names.index(name))(*values)[0](upstream[0]) for name in wanted]

        return self.call(leaves), pull
