"""Mistakes in products: factors turned, exchanged, multiplied entry by entry, or averaged over the rows first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np

from handgrad.checking.diagnosis.planted import Change, Flow, Mistake
from handgrad.checking.forward_trace import Operation
from handgrad.checking.subject import Array

Product = Callable[[Array, Array], Any]  # of the upstream gradient and the other operand


def _turned(v: Any) -> Any:
    return np.swapaxes(v, -1, -2) if np.ndim(v) >= 2 else v


TRANSPOSED: tuple[tuple[str, Product, Product], ...] = (
    ("the other factor is not transposed", lambda g, b: g @ b, lambda g, a: a @ g),
    ("the factors are the wrong way round", lambda g, b: _turned(b) @ g, lambda g, a: g @ _turned(a)),
    ("the factors are the wrong way round", lambda g, b: b @ g, lambda g, a: g @ a),
    ("the upstream gradient is transposed", lambda g, b: _turned(g) @ b, lambda g, a: a @ _turned(g)),
    ("both are transposed", lambda g, b: _turned(g) @ _turned(b), lambda g, a: _turned(a) @ _turned(g)),
)
"""What stands in place of ``g @ b.T``, the gradient of the left operand, and of ``a.T @ g``, that of the right."""

STAR = "`*` stands where `@` belongs"
SUM = "a sum of products stands where `@` belongs"
ELEMENTWISE: tuple[tuple[str, Product], ...] = (
    (STAR, lambda g, b: g * b),
    (STAR, lambda g, b: g * _turned(b)),
    (STAR, lambda g, b: _turned(g) * b),
    (SUM, lambda g, b: (g * b).sum(axis=0)),
    (SUM, lambda g, b: (g * b).sum(axis=-1, keepdims=True)),
    (SUM, lambda g, b: (g * _turned(b)).sum(axis=-1, keepdims=True)),
)


def other_products(k: int, label: str) -> Iterator[Mistake]:
    """Yield other products of the upstream gradient with the other operand than the right one."""
    for words, *sides in TRANSPOSED:
        yield "transposed", f"in the gradient of {label}, {words}", 1.0, _product(sides[k])
    for words, product in ELEMENTWISE:
        text = f"in the gradient of {label}, {words}"
        yield "elementwise-instead-of-matmul", text, 1.05, _product(product)
    for rows, done in (("mean", "averaged"), ("sum", "summed")):
        for power in (0, 1, -1):
            words = f"in the gradient of {label}, rows are {done} before they are multiplied"
            yield "averaged-batch", words, 1.1, _rows_first(rows, power)


def _product(product: Product) -> Change:
    return lambda flow: product(np.asarray(flow.gradient), flow.others[0])


def _rows_first(rows: str, power: int) -> Change:
    def averaged(flow: Flow) -> Any:
        gradient = np.asarray(flow.gradient)
        if gradient.size == 0:  # a batch of no rows has no mean
            return None
        found = _averaged(gradient, flow.others[0], flow.k, rows)
        n = gradient.shape[-2 if flow.k == 1 and gradient.ndim > 1 else -1] if gradient.ndim else 1
        return None if found is None else found * float(n) ** power

    return averaged


def _averaged(g: Array, b: Array, k: int, rows: str) -> Any:
    """Return the outer product of averages over the rows, where the right one is a sum of outer products."""
    if g.ndim < 2 or b.ndim < 2:
        if g.ndim == 1 and b.ndim == 2 and k == 1:  # a vector of weights: bᵀ g
            return getattr(b, rows)(axis=0) * getattr(g, rows)()
        return None
    if k == 1:  # out = b @ w: dw = bᵀ g, summed over the rows
        left, right = getattr(b, rows)(axis=-2), getattr(g, rows)(axis=-2)
    else:  # out = w @ b: dw = g bᵀ, summed over the columns
        left, right = getattr(g, rows)(axis=-1), getattr(b, rows)(axis=-1)
    return left[..., :, None] * right[..., None, :]


def rows_first(operation: Operation, k: int, label: str) -> Iterator[Mistake]:
    """Sum, or average, some factors of an einsum over a letter of all before they are multiplied."""
    left, arrow, out = operation.options["subscripts"].replace(" ", "").partition("->")
    letters = left.split(",")
    other = next((letter for letter in "zyxwvutsrq" if letter not in left + out), "")
    if not arrow or "." in left or len(letters) != len(operation.inputs) or not other:
        return
    mine = letters[k]
    factors = [out, *(part for j, part in enumerate(letters) if j != k)]
    for row in sorted(set("".join(factors)) - set(mine)):
        holding = [j for j, part in enumerate(factors) if row in part]
        for apart in (some for size in range(1, len(holding)) for some in combinations(holding[1:], size)):
            spelt = [part.replace(row, other) if j in apart else part for j, part in enumerate(factors)]
            if not set(mine) <= set("".join(spelt)):
                continue
            place = holding[0], factors[holding[0]].index(row)  # of a factor, and of its axis of rows
            for done, power in (("summed", 0), ("averaged", 1), ("averaged", 2)):
                words = f"in the gradient of {label}, rows are {done} before they are multiplied"
                yield "averaged-batch", words, 1.1, _einsum(f"{','.join(spelt)}->{mine}", place, power)


def _einsum(text: str, place: tuple[int, int], power: int) -> Change:
    """Multiply by this einsum, and divide by a power of the number of rows, which is the length of one axis."""

    def first(flow: Flow) -> Any:
        factors = [np.asarray(flow.gradient), *flow.others]
        number, axis = place
        return np.einsum(text, *factors) / float(factors[number].shape[axis]) ** power

    return first
