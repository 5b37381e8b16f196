"""What people get wrong in convolution, pooling and attention: planted in handgrad's own rules, caught, placed, named.

The names were put down before the first run.
"""

# ruff: noqa: E501 - the lines of rules as they stand

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from tests.rules.table import TABLE

from handgrad.checking import Report, check
from handgrad.rules import PRIMITIVES, Rule

ROWS = {row.rule.name: row for row in TABLE}


class Planted(NamedTuple):
    """A line of a rule's backward and what somebody writes for it, whose gradient goes wrong, and the fair names."""

    rule: str
    argument: str
    line: str
    written: str
    codes: tuple[str, ...]


ROW_TERM = "dp - (dp * p).sum(axis=-1, keepdims=True)"
MEAN_IS_NO_SUM = ("batch-mean-vs-sum", "constant-factor")
NOT_SUMMED = ("broadcast-not-summed", "missing-term")
MOVED = ("wrong-position",)
DW = "diagonal_blocks(rows(u).T @ rows(dz), groups, W.shape[-2])"
ADDED_UP = "add_windows(du, x.shape[-3:-1], W.shape[:2], stride, padding, dilation)"
LARGEST = "np.where(first_largest(u), np.expand_dims(dy, -2), 0)"
TURNED_BACK = "dy1 * c + dy2 * s, dy2 * c - dy1 * s"

PLANTED = [
    Planted("attention", "q", ROW_TERM, "dp", ("missing-term",)),
    Planted("attention", "q", ROW_TERM, "dp + (dp * p).sum(axis=-1, keepdims=True)", ("wrong-sign",)),
    Planted("attention", "q", ROW_TERM, "dp - (dp * p).sum(axis=-2, keepdims=True)", ("wrong-axis",)),
    Planted("attention", "q", f"p * ({ROW_TERM})", "p * (1 - p) * dp", ("missing-term", "wrong-local-derivative")),
    Planted("attention", "q", "/ q.shape[-1] ** 0.5", "", ("constant-factor", "missing-local-derivative")),
    Planted("attention", "q", "/ q.shape[-1] ** 0.5", "/ q.shape[-1]", ("constant-factor",)),
    Planted("attention", "v", "p.mT @ dy", "(q @ k.mT / q.shape[-1] ** 0.5).mT @ dy", ("wrong-evaluation-point", "wrong-local-derivative")),
    Planted("causal_attention", "q", ROW_TERM, "dp", ("missing-term",)),
    Planted("causal_attention", "q", "/ q.shape[-1] ** 0.5", "", ("constant-factor", "missing-local-derivative")),
    Planted("causal_attention", "q", "ds = p", "e = np.exp(q @ k.mT / q.shape[-1] ** 0.5)\n    p = e / e.sum(axis=-1, keepdims=True)\n    ds = p", ("missing-local-derivative", "wrong-local-derivative", "wrong-evaluation-point", "missing-term")),
    Planted("causal_attention", "v", "p.mT @ dy", "p @ dy", ("transposed",)),
    Planted("causal_attention", "k", "ds.mT @ q", "ds @ q", ("transposed",)),
    Planted("padded_attention", "q", ROW_TERM, "dp", ("missing-term",)),
    Planted("padded_attention", "q", "/ q.shape[-1] ** 0.5", "", ("constant-factor", "missing-local-derivative")),
    Planted("padded_attention", "v", "p.mT @ dy", "(p * is_seen / 2).mT @ dy", ("constant-factor",)),
    Planted("padded_attention", "q", ROW_TERM, "dp + (dp * p).sum(axis=-1, keepdims=True)", ("wrong-sign",)),
    Planted("padded_attention", "q", ROW_TERM, "dp - (dp * p).sum(axis=-2, keepdims=True)", ("wrong-axis",)),
    Planted("padded_causal_attention", "q", ROW_TERM, "dp", ("missing-term",)),
    Planted("padded_causal_attention", "q", ROW_TERM, "dp + (dp * p).sum(axis=-1, keepdims=True)", ("wrong-sign",)),
    Planted("padded_causal_attention", "q", "/ q.shape[-1] ** 0.5", "/ q.shape[-1]", ("constant-factor",)),
    Planted("concatenate", "y", "dc[..., x.shape[-1] :]", "2 * dc[..., x.shape[-1] :]", ("constant-factor",)),
    Planted("conv2d of groups", "b", "rows(dz).sum(axis=0)", "rows(dz[0]).sum(axis=0)", NOT_SUMMED),
    Planted("conv2d of groups", "x", ADDED_UP, f"{ADDED_UP}[:, ::-1]", MOVED),
    Planted("padded_causal_attention", "k", "ds.mT @ q", "ds @ q", ("transposed",)),
    Planted("repeat_heads", "x", "dv.sum(axis=-3)", "dv.mean(axis=-3)", MEAN_IS_NO_SUM),
    Planted("repeat_heads", "x", "dv.sum(axis=-3)", "dv[..., 0, :, :]", NOT_SUMMED),
    Planted("concatenate", "x", "dc[..., : x.shape[-1]]", "dc[..., -x.shape[-1] :]", MOVED),
    Planted("split_heads", "x", "join_last(dy.swapaxes(-2, -3))", "dy.reshape(*dy.shape[:-3], dy.shape[-2], -1)", ("transposed", *MOVED)),
    Planted("merge_heads", "x", "split_last(dy, x.shape[-3]).swapaxes(-2, -3)", "dy.reshape(x.shape)", ("transposed", *MOVED)),
    Planted("add_positions", "P", ".sum(axis=0)", ".mean(axis=0)", ("batch-mean-vs-sum",)),
    Planted("add_positions", "P", ".sum(axis=0)", "[0]", NOT_SUMMED),
    Planted("rotary_positions", "x", TURNED_BACK, "dy1 * c - dy2 * s, dy2 * c + dy1 * s", ("wrong-sign", "transposed")),
    Planted("rotary_positions", "x", TURNED_BACK, "dy1 * c, dy2 * c", ("missing-term",)),
    Planted("rotary_positions", "x", TURNED_BACK, "dy2 * c - dy1 * s, dy1 * c + dy2 * s", (*MOVED, "swapped-gradients")),
    Planted("conv2d", "b", "rows(dz).sum(axis=0)", "rows(dz[0]).sum(axis=0)", NOT_SUMMED),
    Planted("conv2d", "b", "rows(dz).sum(axis=0)", "rows(dz[:, 0]).sum(axis=0)", NOT_SUMMED),
    Planted("conv2d", "W", DW, "(rows(u).T @ rows(dz)).reshape(W.shape)[::-1, ::-1]", MOVED),
    Planted("conv2d", "W", DW, f"1 / x.shape[0] * {DW}", ("batch-mean-vs-sum",)),
    Planted("conv2d", "x", "rows(block_diagonal(W, groups))", "rows(W[::-1, ::-1])", MOVED),
    Planted("conv2d", "x", "rows(block_diagonal(W, groups))", "rows(W.swapaxes(0, 1))", ("transposed", *MOVED)),
    Planted("conv2d", "x", ADDED_UP, f"{ADDED_UP}[:, ::-1]", MOVED),
    Planted("conv1d", "W", DW, "(rows(u).T @ rows(dz)).reshape(W.shape)[::-1]", MOVED),
    Planted("conv1d", "x", "rows(block_diagonal(W, groups))", "rows(W[::-1])", MOVED),
    Planted("conv1d", "b", "rows(dz).sum(axis=0)", "rows(dz).mean(axis=0)", MEAN_IS_NO_SUM),
    Planted("conv_transpose2d", "W", "rows(du).T @ rows(x)", "(rows(du).T @ rows(x)).reshape(W.shape)[::-1, ::-1]", MOVED),
    Planted("conv_transpose2d", "b", "rows(dz).sum(axis=0)", "rows(dz[0]).sum(axis=0)", NOT_SUMMED),
    Planted("conv2d of groups", "x", "block_diagonal(W, groups)", "np.tile(W, (1, 1, groups, 1))", ("missing-local-derivative", "wrong-local-derivative", "missing-term")),
    Planted("conv2d of groups", "x", "block_diagonal(W, groups)", "block_diagonal(W, groups)[:, :, ::-1]", MOVED),
    Planted("conv2d of groups", "W", DW, "(rows(u).T @ rows(dz)).reshape(-1, groups, W.shape[-2], W.shape[-1]).sum(axis=1)", ("missing-local-derivative", "wrong-local-derivative", "missing-term")),
    Planted("conv1d of groups", "x", "block_diagonal(W, groups)", "block_diagonal(W[::-1], groups)", MOVED),
    Planted("conv_transpose2d of groups", "W", "rows(du).T @ rows(x)", "rows(du).T @ rows(x) / groups", ("constant-factor",)),
    Planted("max_pool2d", "x", LARGEST, LARGEST.replace("(u)", "(-u)"), MOVED),
    Planted("max_pool2d", "x", LARGEST, f"2 * {LARGEST}", ("constant-factor",)),
    Planted("max_pool2d", "x", LARGEST, "np.expand_dims(dy, -2) * np.ones_like(u)", ("missing-local-derivative",)),
    Planted("max_pool2d", "x", LARGEST, "np.expand_dims(dy, -2) * np.ones_like(u) / u.shape[-2]", ("wrong-local-derivative",)),
    Planted("max_pool2d", "x", "np.expand_dims(dy, -2)", "1.0", ("ignores-upstream",)),
    Planted("average_pool2d", "x", "dy / (size[0] * size[1])", "dy", ("constant-factor",)),
    Planted("average_pool2d", "x", "dy / (size[0] * size[1])", "dy / size[0]", ("constant-factor",)),
    Planted("global_average_pool2d", "x", "dy / (x.shape[-3] * x.shape[-2])", "dy / x.shape[-3]", ("constant-factor",)),
    Planted("global_average_pool2d", "x", "dy / (x.shape[-3] * x.shape[-2])", "dy", MEAN_IS_NO_SUM),
]  # fmt: skip
IDS = [f"{n}-{planted.rule}-d{planted.argument}" for n, planted in enumerate(PLANTED)]


@cache
def report_of(planted: Planted) -> Report:
    """Check the rule with the mistake, without a search for a repair: there is no file to mend."""
    row = ROWS[planted.rule.removesuffix(" of groups")]
    rule, options = row.rule, row.options[planted.rule.endswith("of groups")]
    function = wrong_backward(rule, planted)
    arguments = inspect.signature(function).parameters

    def forward(**inputs: Any) -> Any:
        return rule(*inputs.values(), **options)

    def backward(grad_output: Any, **inputs: Any) -> dict[str, Any]:
        known = {**rule.settings(options), **rule.values(*inputs.values(), **options)}
        found = function(grad_output, **{name: known[name] for name in list(arguments)[1:]})
        return dict(zip(rule.differentiable, found if isinstance(found, tuple) else (found,), strict=True))

    with patch("handgrad.checking.check.mend", return_value=None):
        return check(forward, backward, row.inputs(np.random.default_rng(1), 2, options))


def wrong_backward(rule: Rule, planted: Planted) -> Callable[..., Any]:
    """Return the backward as a function, with the mistake in its text."""
    written = getattr(importlib.import_module(rule.function.__module__), f"{rule.name}_backward")
    text = re.sub(r"(?m)\A(@.*\n)+", "", inspect.getsource(written))
    assert planted.line in text, "the rule has another line now"
    scope = dict(PRIMITIVES)
    exec(text.replace(planted.line, planted.written, 1), scope)
    return scope[f"{rule.name}_backward"]


@pytest.mark.parametrize("planted", PLANTED, ids=IDS)
def test_it_is_caught_and_placed(planted: Planted):
    """It is wrong, and the first finding is at the gradient that the line spoils."""
    report = report_of(planted)
    assert report.verdict == "wrong"
    assert report.findings[0].argument == planted.argument


def test_nearly_all_are_named():
    """At least 95 % get one of the names that were put down for them."""
    missed = [
        f"{one.rule} d{one.argument}: {report_of(one).findings[0].code} for {one.codes}"
        for one in PLANTED
        if not {report_of(one).findings[0].code, report_of(one).findings[0].alternative} & set(one.codes)
    ]
    assert len(missed) <= 0.05 * len(PLANTED), missed
