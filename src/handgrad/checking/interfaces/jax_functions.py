"""JAX's functions, with ``defvjp`` or ``defjvp``, jitted or not, and what calls them: functions of trees of arrays."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from types import FunctionType
from typing import Any

import numpy as np

from handgrad.checking.interfaces.jax_on_numpy import counterpart, jax_on_numpy, rule_on_numpy, unwrapped
from handgrad.checking.interfaces.peer_function import Leaves, Library, Pull
from handgrad.checking.interfaces.tensors import is_jax, to_numpy
from handgrad.checking.subject import Array, CheckError
from handgrad.tolerance import close


def is_jax_function(thing: Any) -> bool:
    """Whether it is a function with a rule for JAX, a jitted one, or a module that is a tree of arrays."""
    jax = sys.modules.get("jax")
    if jax is None:
        return False
    return isinstance(thing, jax.custom_vjp | jax.custom_jvp | jax.stages.Wrapped) or _is_module(thing)


def is_only_jitted(thing: Any) -> bool:
    """Whether it is jitted and has no rule of its own: JAX differentiates it, and nothing in it is by hand."""
    jax = sys.modules.get("jax")
    if jax is None or not isinstance(thing, jax.stages.Wrapped):
        return False
    inner = getattr(thing, "__wrapped__", None)
    return is_only_jitted(inner) or isinstance(inner, FunctionType)


def jax_library(thing: Any) -> Library:
    """Return how JAX calls and differentiates a function, or a module."""
    return _Module(thing) if _is_module(thing) else _Jax(thing)


def _is_module(thing: Any) -> bool:
    """Whether something is called, and is a tree of arrays itself, as Equinox's modules are."""
    if not callable(thing) or isinstance(thing, type) or hasattr(thing, "backward"):
        return False
    leaves = sys.modules["jax"].tree_util.tree_leaves(thing)
    return any(leaf is not thing and is_jax(leaf) for leaf in leaves)


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
        self.compiled: Any = None  # False where it cannot be
        self.others: list[int] = []
        self.signature = inspect.signature(start)
        self.fixed = _nondiff(function)
        rule = getattr(function, "fwd", None)  # which makes what backward reads
        if (plain := jax_on_numpy(rule or function)) is not None:

            def on_numpy(*leaves: Any) -> Any:
                output = plain(*self._arguments(leaves))
                return jax.tree_util.tree_leaves(output if rule is None else output[0])

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
        """Compiled where that can be: its loops, which JAX else compiles for each call anew, are called many times."""
        import jax

        arrays = {name: value for name, value in leaves.items() if is_jax(value)}
        others = [id(value) for name, value in leaves.items() if name not in arrays]
        if self.compiled is None or (self.compiled and self.others != others):
            self.others = others
            self.compiled = jax.jit(lambda given: self._call({**leaves, **given}))
        if self.compiled:
            try:
                return list(self.compiled(arrays))
            except Exception:  # Python that reads the numbers; what is wrong otherwise is raised below
                self.compiled = False
        return self._call(leaves)

    def _call(self, leaves: Leaves) -> list[Any]:
        import jax

        return list(jax.tree_util.tree_leaves(self.function(*self._arguments(leaves.values()))))

    def differentiate(self, leaves: Leaves, wanted: list[str]) -> tuple[list[Any], Pull]:
        import jax

        def of(*values: Any) -> list[Any]:
            return self._call({**leaves, **dict(zip(wanted, values, strict=True))})

        outputs, back = jax.vjp(of, *(leaves[name] for name in wanted))
        for first, second in zip(outputs, self.call(leaves), strict=True):
            if not close(to_numpy(first), to_numpy(second)):
                raise CheckError("the forward of its rule returns another value than the function itself")

        def pull(upstream: list[Any]) -> list[Any]:
            nothing = (np.zeros(output.shape, jax.dtypes.float0) for output in outputs)
            pairs = zip(upstream, nothing, strict=True)
            return list(back([zero if part is None else part for part, zero in pairs]))

        return outputs, pull

    def counterpart(self, value: Any) -> Any:
        return counterpart(value)

    def differentiate_on_numpy(self, leaves: Leaves) -> tuple[list[Any], Pull] | None:
        import jax

        if (rule := rule_on_numpy(self.function)) is None:
            return None
        given, tree, (fwd, bwd) = self._arguments(leaves.values()), jax.tree_util, rule
        output, saved = fwd(*given)
        outputs, shape = tree.tree_flatten(output)

        def pull(upstream: list[Any]) -> list[Any]:
            parts = [
                np.zeros_like(one) if part is None else part
                for one, part in zip(outputs, upstream, strict=True)
            ]
            fixed = [given[k] for k in sorted(self.fixed)]
            found = iter(bwd(*fixed, saved, tree.tree_unflatten(shape, parts)))
            returned = [None if k in self.fixed else next(found) for k in range(len(given))]
            pairs = zip(given, returned, strict=True)
            return [leaf for value, gradient in pairs for leaf in _leaves_like(value, gradient)]

        return outputs, pull

    def is_differentiable(self, output: Any) -> bool:
        import jax

        return bool(jax.numpy.issubdtype(output.dtype, jax.numpy.floating))


def _leaves_like(value: Any, gradient: Any) -> list[Any]:
    """Return the leaves of an argument's gradient, None for each where there is none."""
    import jax

    tree = jax.tree_util
    if gradient is None:
        return [None] * len(tree.tree_leaves(value))
    return list(tree.tree_leaves(gradient, is_leaf=lambda leaf: leaf is None))


class _Module(_Jax):
    """A module that is a tree of arrays: these are arguments too, after its inputs, as ``self.weight``."""

    def __init__(self, module: Any) -> None:
        super().__init__(lambda *inputs_and_self: inputs_and_self[-1](*inputs_and_self[:-1]))
        self.module, self.signature, self.on_numpy = module, inspect.signature(module), None

    def flat(self, arguments: dict[str, Any]) -> Leaves:
        return super().flat({**arguments, "self": self.module})


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
