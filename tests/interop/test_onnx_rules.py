"""Rules of one's own become ONNX operation by operation; where a line cannot, it is named."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from handgrad import ConversionError, Layer, Linear, Network, rule
from handgrad.interop import to_onnx
from handgrad.layers import Graph, Parameter, Value
from handgrad.rules import Rule

from .comparing import distance
from .test_onnx import BOUND, run


@rule("N... F, F -> N... F")
def many(x, g):
    """Use what the other rules do not."""
    n_rows = x.shape[0]
    centred = x - x.mean(axis=0) * n_rows / np.maximum(n_rows, 1)
    inside = (np.abs(centred) < 1.5) & ~(centred != centred) | (x > 3)
    waves = np.sin(x) + np.cos(g) * np.arctan(x) - np.sinh(np.clip(x, -2, 2)) / np.cosh(g)
    ones = np.ones_like(x) * np.sign(x) + np.zeros_like(x)
    kept = np.where(inside, waves, np.square(x) ** 1.5) + ones
    lowest = kept.min(axis=-1, keepdims=True) - kept.sum(axis=1)[..., None] / 7
    y = (
        np.log1p(np.expm1(np.minimum(kept - lowest, 3)) ** 2) * (x >= 0)
        + np.floor(x)
        - np.ceil(-x)
        + np.tan(g)
    )
    return y  # noqa: RET504 - rules return names


@many.backward
def many_backward(dy, x, g):
    dx = dy
    dg = dy.sum(axis=0)
    return dx, dg


@rule("N... F -> N... F")
def bits(z):
    """Use a function that ONNX, and the compiled engine, do not know."""
    e = np.exp(z)
    y = np.log2(1 + e)
    return y  # noqa: RET504 - rules return names


@bits.backward
def bits_backward(dy, z):
    dz = dy
    return dz  # noqa: RET504 - rules return names


@rule("N... F -> N... F")
def drawn_anew(z):
    """Draw numbers outside training, which no file can."""
    y = z + uniform(z.shape, (1, 2, 3))  # noqa: F821 - a primitive
    return y  # noqa: RET504 - rules return names


@drawn_anew.backward
def drawn_anew_backward(dy):
    dz = dy
    return dz  # noqa: RET504 - rules return names


@rule("N T F -> N F")
def pooled(x):
    """Add the rows of each sample up: from rank 3 to rank 2."""
    y = x.sum(axis=1)
    return y  # noqa: RET504 - rules return names


@pooled.backward
def pooled_backward(dy, x):
    dx = np.zeros_like(x) + dy[:, None]
    return dx  # noqa: RET504 - rules return names


@dataclass(frozen=True, eq=False, repr=False)
class Own(Layer):
    """A layer of a rule of one's own, with a gain where it takes one."""

    rule: Rule

    def __repr__(self) -> str:
        return f"Own({self.rule.name})"

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        kept = [Parameter((int(x.shape[-1]),), "standard_normal")] if self.rule is many else []
        return graph.apply(self.rule, x, *kept, layer=self)


@pytest.mark.peers
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_rule_of_one_s_own_is_exported(tmp_path: Path, dtype: str) -> None:
    """Operation by operation, without being told how."""
    network = Network(Linear(5, 7), Own(many), Linear(7, 3), dtype=dtype)
    x = np.random.default_rng(0).normal(0, 2, (40, 5))
    to_onnx(network, tmp_path / "net.onnx")
    assert distance(run(tmp_path / "net.onnx", x), network.output(x)) <= BOUND
    assert distance(run(tmp_path / "net.onnx", x[:1]), network.output(x[:1])) <= BOUND


@pytest.mark.peers
def test_a_rule_may_take_an_axis_away(tmp_path: Path) -> None:
    network = Network(Linear(5, 7), Own(pooled), Linear(7, 3), inputs=(4, 5))
    x = np.random.default_rng(0).normal(size=(9, 4, 5))
    to_onnx(network, tmp_path / "net.onnx")
    assert distance(run(tmp_path / "net.onnx", x), network.output(x)) <= BOUND


LINES = {
    "bits": (
        bits,
        "`y1 = np.log2(1 + e1)` (layer 2, Own(bits)): np.log2 with these arguments is not compiled",
    ),
    "uniform": (
        drawn_anew,
        "`y1 = z1 + uniform(z1.shape, (1, 2, 3))` (layer 2, Own(drawn_anew)): ONNX has no counterpart of uniform",
    ),
}


@pytest.mark.peers
@pytest.mark.parametrize("kind", LINES)
def test_a_line_that_cannot_be_exported_is_named(tmp_path: Path, kind: str) -> None:
    """With why, and what to do; no file is written."""
    own, problem = LINES[kind]
    with pytest.raises(ConversionError) as caught:
        to_onnx(Network(Linear(5, 7), Own(own), Linear(7, 3)), tmp_path / "net.onnx")
    assert caught.value.problem == f"line {problem}"
    assert "write the line with other operations" in caught.value.fix
    assert not list(tmp_path.iterdir())
