"""Classes whose values differentiate themselves, as people write them: which of their operations is wrong."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from handgrad.checking import check
from handgrad.checking.interfaces import operations_of

SCALAR = """
import math

class Value:
    def __init__(self, data, children=()):
        self.data, self.grad = data, 0.0
        self._prev = set(children)
        self._backward = lambda: None

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other))
        def _backward():
            self.grad += out.grad
            other.grad += out.grad
        out._backward = _backward
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other))
        def _backward():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad
        out._backward = _backward
        return out

    def __pow__(self, n):
        out = Value(self.data ** n, (self,))
        def _backward():
            self.grad += n * self.data ** (n - 1) * out.grad
        out._backward = _backward
        return out

    def __sub__(self, other):
        return self + other * -1

    def tanh(self):
        t = math.tanh(self.data)
        out = Value(t, (self,))
        def _backward():
            self.grad += (1 - t**2) * out.grad
        out._backward = _backward
        return out

    def log(self):
        out = Value(math.log(self.data), (self,))
        def _backward():
            self.grad += out.grad / self.data
        out._backward = _backward
        return out

    def zero_grad(self):
        self.grad = 0.0

    def backward(self):
        order, seen = [], set()
        def visit(v):
            if v not in seen:
                seen.add(v)
                for child in v._prev:
                    visit(child)
                order.append(v)
        visit(self)
        self.grad = 1.0
        for v in reversed(order):
            v._backward()
"""

ARRAYS = """
import numpy as np

class Tensor:
    def __init__(self, data, requires_grad=False, creators=None, op=None):
        self.data, self.grad = np.array(data), None
        self.requires_grad, self.creators, self.op = requires_grad, creators, op

    def backward(self, grad=None):
        grad = Tensor(np.ones_like(self.data)) if grad is None else grad
        self.grad = grad if self.grad is None else self.grad + grad
        if self.op == "add":
            for creator in self.creators:
                creator.backward(grad)
        if self.op == "mul":
            self.creators[0].backward(grad * self.creators[1])
            self.creators[1].backward(grad * self.creators[0])
        if self.op == "mm":
            self.creators[0].backward(grad.mm(self.creators[1].transpose()))
            self.creators[1].backward(self.creators[0].transpose().mm(grad))

    def __add__(self, other):
        return Tensor(self.data + other.data, True, [self, other], "add")

    def __mul__(self, other):
        return Tensor(self.data * other.data, True, [self, other], "mul")

    def mm(self, other):
        return Tensor(self.data @ other.data, True, [self, other], "mm")

    def transpose(self):
        return Tensor(self.data.T)
"""


def module_of(text: str, folder: Path) -> ModuleType:
    path = folder / "engine.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("engine", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("source", "change", "names", "wrong"),
    [
        (SCALAR, None, "__add__ __mul__ __pow__ __sub__ tanh log backward", ""),
        (SCALAR, ("self.grad += (1 - t**2)", "self.grad = (1 - t**2)"), "", "tanh overwritten-not-accumulated"),
        (SCALAR, ("(1 - t**2) * out.grad", "(1 - t**2)"), "", "tanh ignores-upstream"),
        (SCALAR, ("n * self.data ** (n - 1)", "(n - 1) * self.data ** n"), "", "__pow__ wrong-local-derivative"),
        (SCALAR, ("            if v not in seen:", "            if True:"), "", "backward any"),
        (ARRAYS.replace("\n        return Tensor(self.data.T)", "\n        raise NotImplementedError"), None,
         "__add__ __mul__ backward", ""),
        (ARRAYS, ("self.creators[0].transpose().mm(grad)", "grad.transpose().mm(self.creators[0]).transpose()"),
         "__add__ __mul__ mm backward", ""),
        (ARRAYS, ("grad * self.creators[1]", "grad * self.creators[0]"), "", "__mul__ wrong-evaluation-point"),
    ],
)  # fmt: skip
def test_each_operation_is_judged_by_itself(tmp_path, source, change, names, wrong):
    """A value that is used before has a gradient already, to which more is added."""
    assert change is None or change[0] in source
    module = module_of(source.replace(*change) if change else source, tmp_path)
    cls = getattr(module, "Value", None) or module.Tensor
    pairs = dict(operations_of(cls))
    reports = {name: check(pair.forward, pair.backward, pair.inputs) for name, pair in pairs.items()}
    found = {name: report for name, report in reports.items() if report.verdict != "right"}
    if not wrong:
        assert not found
        assert names.split() == list(reports)
        return
    name, code = wrong.split()
    first = reports[name].findings[0]
    assert code in (first.code, first.alternative, "any")
    assert {*found} <= {name, "backward"}


def test_what_has_no_operators_is_no_such_class(tmp_path):
    module = module_of(SCALAR.replace("def __", "def not__").replace("not__init", "__init"), tmp_path)
    assert list(operations_of(module.Value)) == []
    assert list(operations_of(3)) == []
