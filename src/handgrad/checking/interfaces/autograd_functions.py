"""Functions with a rule of autograd's."""

from __future__ import annotations

import inspect
import sys
from types import FunctionType
from typing import Any

import numpy as np

from handgrad.checking.interfaces.peer_function import Leaves, Library, Pull


def has_autograd_rule(thing: Any) -> bool:
    """Whether it is a function with a rule of autograd's."""
    rules = getattr(getattr(sys.modules.get("autograd"), "core", None), "primitive_vjps", {})
    return isinstance(thing, FunctionType) and thing in rules


def autograd_library(thing: Any) -> Library:
    """Return how autograd calls and differentiates such a function."""
    return _Autograd(thing)


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
