"""The expressions that a repair looks up by their value: each is worth what its text says, and is found by it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad.checking.effort import Effort
from handgrad.checking.repair.source import Source
from handgrad.checking.repair.table import Table, scalings
from handgrad.checking.repair.templates import fill

DRAW = np.random.default_rng(4)
LEAVES = {
    "M": DRAW.normal(size=(3, 2)),
    "S": DRAW.normal(size=(3, 3)),
    "R": DRAW.normal(size=(3, 3)),
    "v": DRAW.uniform(0.1, 2, size=3),
    "w": DRAW.normal(size=2),
    "T": DRAW.normal(size=(2, 3, 2)),
    "U": DRAW.normal(size=(2, 2, 3)),
    "s": 0.7,
}
TEXT = "import numpy as np\n\ndef forward(v):\n    return np.cumsum(v)\n\ndef backward(g, v):\n    return g * np.cumsum(v)\n"


@pytest.fixture(scope="module")
def table() -> Table:
    exec(TEXT, names := {})
    source = Source(Path("layer.py"), TEXT, "utf-8", "forward", "backward", names)
    leaves = [(ast.Name(name, ast.Load()), value, 1.0) for name, value in LEAVES.items()]
    with np.errstate(all="ignore"):
        return Table(leaves, source, names, 1e-9, Effort(), until=np.inf)


def worth(node: ast.expr) -> Any:
    return eval(ast.unparse(ast.fix_missing_locations(node)), {"np": np, "len": len}, LEAVES)


def test_every_expression_is_worth_what_it_says(table: Table) -> None:
    """In its shape; a condition counts as 1 and 0."""
    assert len(table.entries) > 1000
    for entry in table.entries:
        value = np.asarray(worth(entry.node), float)
        assert value.shape == entry.value.shape
        np.testing.assert_allclose(
            entry.value, value, rtol=1e-12, atol=1e-12, err_msg=ast.unparse(entry.node)
        )


@pytest.mark.parametrize(
    "text",
    [
        "S.T @ M", "M @ w", "np.outer(v, w)", "np.cumsum(v) * v", "M.sum(axis=0)", "v[:, None] * S", "S - v", "w / s",
        "T @ U", "np.swapaxes(U, -1, -2) @ np.swapaxes(T, -1, -2)", "T.reshape(-1, T.shape[-1])", "S * (R > 0)",
        "S * (R - (R * S).sum(axis=1, keepdims=True))", "S - R * (S * R).mean(axis=0, keepdims=True)",
        "S - S.mean(axis=1, keepdims=True) - R * (S * R).mean(axis=1, keepdims=True)",
    ],
)  # fmt: skip
def test_an_expression_is_found_by_its_value(table: Table, text: str) -> None:
    """Or one that is worth the same."""
    target = worth(ast.parse(text, mode="eval").body)
    found = list(table.find(np.asarray(target, float)))
    assert found
    for entry in found:
        np.testing.assert_allclose(np.broadcast_to(entry.value, np.shape(target)), target, rtol=1e-8)


@pytest.mark.parametrize("factor", [-1, 2, -2, 0.5, 3, 1 / 3, -0.25, 0.7, -0.7, 6, -1 / 6, 12, 1 / 12])
def test_a_multiple_is_spelled_with_what_there_is(table: Table, factor: float) -> None:
    """A number, a name in scope, a length."""
    target = factor * LEAVES["S"]
    multiples = list(table.shape((3, 3)).multiples(target))
    assert any(ast.unparse(entry.node) == "S" for entry, _ in multiples)
    for entry, times in multiples:
        np.testing.assert_allclose(times * entry.value, target)
    scope = {"s": LEAVES["s"], "x": np.ones((6, 2))}
    spelled = list(scalings(factor, scope))
    assert spelled
    for template, parts, _ in spelled:
        node = fill(template, **dict(zip("AB", (ast.Name("S", ast.Load()), *parts), strict=False)))
        value = eval(ast.unparse(ast.fix_missing_locations(node)), {"len": len}, scope | {"S": LEAVES["S"]})
        np.testing.assert_allclose(value, target)
