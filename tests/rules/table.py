"""The table of tests: a row for each rule with a gradient, and for each setting of an optimiser.

A new rule has one row in ``TABLE``, a new optimiser one or more in ``UPDATES``. The tests of rules, of optimisers, of
engines and against PyTorch go over these rows; layers and losses they find in `handgrad.layers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from handgrad import SGD, Adam, AdamW, Optimiser, RMSProp, rules
from handgrad.rules import Rule

Array = NDArray[Any]
Shape = tuple[int, ...]
Draw = Callable[[Generator, Shape, Mapping[str, Array]], Array]


def normal(rng: Generator, shape: Shape, drawn: Mapping[str, Array]) -> Array:
    return rng.normal(size=shape)


def off_zero(rng: Generator, shape: Shape, drawn: Mapping[str, Array]) -> Array:
    """Draw both signs, away from a kink at 0."""
    return rng.choice([-1, 1], shape) * rng.uniform(0.1, 3, shape)


def apart(rng: Generator, shape: Shape, drawn: Mapping[str, Array]) -> Array:
    """Draw numbers of which no two are close: which one is the largest does not change near them."""
    return rng.permutation(np.arange(np.prod(shape)) * 0.05 - 2).reshape(shape)


def positive(rng: Generator, shape: Shape, drawn: Mapping[str, Array]) -> Array:
    return rng.uniform(0.5, 2, shape)


def row_weights(rng: Generator, shape: Shape, drawn: Mapping[str, Array]) -> Array:
    """Draw positive weights, and a third of the rows that do not count."""
    weights = rng.uniform(0.5, 2, shape)
    weights.flat[: weights.size // 3] = 0
    return weights


def mask(rng: Generator, shape: Shape, drawn: Mapping[str, Array]) -> Array:
    return rng.random(shape) < 0.6


def shares(rng: Generator, shape: Shape, drawn: Mapping[str, Array]) -> Array:
    """Draw rows that add up to 1; the first is a single class."""
    q = rng.dirichlet(np.ones(shape[-1]), shape[:-1])
    q[0] = np.eye(shape[-1])[-1]
    return q


def yes_or_no(rng: Generator, shape: Shape, drawn: Mapping[str, Array]) -> Array:
    """Draw chances between 0 and 1; the first row is certain."""
    t = rng.random(shape)
    t[0] = rng.random(shape[1:]) < 0.5
    return t


def places_in_table(rng: Generator, shape: Shape, drawn: Mapping[str, Array]) -> Array:
    """Look rows of E up, some of them twice."""
    i = rng.integers(0, len(drawn["E"]), shape)
    i.flat[-1] = i.flat[0]
    return i


def near_and_far(rng: Generator, shape: Shape, drawn: Mapping[str, Array]) -> Array:
    """Draw targets whose error is well inside or well outside every delta of Huber's row."""
    size = np.where(rng.random(shape) < 0.5, rng.uniform(0.1, 0.5, shape), rng.uniform(2, 4, shape))
    return drawn["y"] - rng.choice([-1, 1], shape) * size


def counts(rng: Generator, shape: Shape, drawn: Mapping[str, Array]) -> Array:
    """Draw what was counted, 0 among it, and what is no whole number."""
    t = rng.poisson(1.5, shape) * rng.uniform(0.5, 1.5, shape)
    t.flat[0] = 0
    return t


BY_KIND: dict[str, Draw] = {
    "value": normal,
    "state": normal,
    "target": normal,
    "weight": row_weights,
    "mask": mask,
}
"""How an argument is drawn when its row does not say."""


@dataclass(frozen=True)
class Row:
    """One rule and what its tests need to know.

    Attributes
    ----------
    rule
        What is tested.
    peer
        ``peer(torch, *arguments, **options)``: the same function, of PyTorch's own making where it has one.
    draws
        How an argument is drawn, where not as usual for its kind. Values are drawn before the rest.
    sizes
        Axes that are not free: an image is not smaller than the window.
    options
        Every setting of the options to test.
    jacobians
        For each argument with a gradient, the structure of the Jacobian and what is stored of it, as
        `handgrad explain` says it: put down here to be read.
    """

    rule: Rule
    peer: Callable[..., Any]
    draws: Mapping[str, Draw] = field(default_factory=dict)
    sizes: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[Mapping[str, Any], ...] = ({},)
    jacobians: Mapping[str, str] = field(default_factory=dict)

    def inputs(
        self, rng: Generator, rank: int, options: Mapping[str, Any], *, batch: int | None = None
    ) -> dict[str, Array]:
        """Draw every argument in float64: all sizes differ, and ``batch`` replaces the first when given."""
        axes = [axis for argument in self.rule.signature.inputs for axis in argument]
        fixed = self.fixed_sizes(options)
        letters = [a for a in dict.fromkeys(axes) if not a.endswith("...") and a not in fixed]
        sizes = rng.choice(np.arange(3, 10), len(letters) + rank, replace=False).tolist()
        known = {letter: (sizes.pop(),) for letter in letters}
        sizes[0] = batch or sizes[0]
        known |= {"N...": tuple(sizes[: rank - 1]), "A...": tuple(sizes), "...": tuple(sizes)}
        known |= fixed
        kinds = self.rule.forward.kinds
        drawn: dict[str, Array] = {}
        pairs = list(zip(kinds, self.rule.signature.inputs, strict=True))
        for name, argument in sorted(pairs, key=lambda pair: kinds[pair[0]] != "value"):
            shape = tuple(size for axis in argument for size in known[axis])
            drawn[name] = self.draws.get(name, BY_KIND.get(kinds[name], normal))(rng, shape, drawn)
        return {name: drawn[name] for name in kinds}

    def fixed_sizes(self, options: Mapping[str, Any]) -> dict[str, Shape]:
        """Return ``sizes``, and those of the arguments' axes that have a formula, at a setting of the options."""
        signature = self.rule.signature
        known = {axis: size if isinstance(size, tuple) else (size,) for axis, size in self.sizes.items()}
        computed = signature.computed.keys() & {axis for axes in signature.inputs for axis in axes}
        settings = self.rule.settings(options)
        return known | {axis: signature.computed_size(axis, known, settings) for axis in computed}


def _last_to_second(v: Any) -> Any:
    """Put the classes where PyTorch's cross-entropy has them."""
    return v.movedim(-1, 1)


def _row_mean(function: str) -> Callable[..., Any]:
    """Return PyTorch's loss of that name, averaged over each row."""

    def peer(torch: Any, y: Any, t: Any, **options: Any) -> Any:
        return getattr(torch.nn.functional, function)(y, t, reduction="none", **options).mean(-1)

    return peer


def _batch_norm(torch: Any, x: Any, *kept: Any, training: bool, epsilon: float, momentum: float = 0.1) -> Any:
    """Normalise matrices as PyTorch does; functional.batch_norm refuses a batch of one row, this does not."""
    gamma, beta, running_mean, running_var = kept
    flat = x.reshape(-1, x.shape[-1])
    kept = (gamma, beta, running_mean.clone(), running_var.clone())
    return torch.batch_norm(flat, *kept, training, momentum, epsilon, False).reshape(x.shape)


def _channels_first(function: str) -> Callable[..., Any]:
    """Return PyTorch's function of that name for arrays with channels last, however many axes come before."""

    def peer(torch: Any, x: Any, *kept: Any, **options: Any) -> Any:
        spatial = 1 if function.endswith("1d") else 2
        weights = [W.movedim((-1, -2), (0, 1)) if W.ndim > 1 else W for W in kept]
        flat = x.reshape(-1, *x.shape[-1 - spatial :]).movedim(-1, 1)
        size = [options.pop("size")] if "size" in options else []
        made = getattr(torch.nn.functional, function)(flat, *size, *weights, **options).movedim(1, -1)
        return made.reshape(*x.shape[: -1 - spatial], *made.shape[1:])

    return peer


def _rotated(torch: Any, x: Any, base: float) -> Any:
    """Turn pairs of features as complex numbers."""
    first, second = x.chunk(2, -1)
    half = first.shape[-1]
    angle = torch.arange(x.shape[-2])[:, None] * base ** (-torch.arange(half, dtype=x.dtype) / half)
    turned = torch.complex(first, second) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([turned.real, turned.imag], -1)


def _padded(torch: Any, q: Any, k: Any, v: Any, i: Any, padding: int, **options: Any) -> Any:
    """Attend as PyTorch does with a mask; where nothing is left to look at, to everything alike."""
    seen = (i != padding)[:, None, None, :].expand(*q.shape[:-1], -1)
    if options:
        seen = seen & torch.ones(seen.shape[-2:], dtype=torch.bool).tril()
    none = ~seen.any(-1, keepdim=True)
    found = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen | none)
    return torch.where(none, v.mean(-2, keepdim=True), found)


def _padded_causal(torch: Any, *arguments: Any, padding: int) -> Any:
    return _padded(torch, *arguments, padding=padding, is_causal=True)


def few_indices(rng: Generator, shape: Shape, drawn: Mapping[str, Array]) -> Array:
    """Draw indices of which some are 0 and some 1, in one row all."""
    i = rng.integers(0, 6, shape)
    i[0] = rng.integers(0, 2)
    return i


def _through_time(function: str) -> Callable[..., Any]:
    """Return PyTorch's recurrence of that name, which has its matrices transposed and its bias in two.

    After each segment of times its states are detached.
    """

    def peer(torch: Any, x: Any, W: Any, U: Any, b: Any, *second: Any, truncate: int) -> Any:
        start = torch.zeros(1, len(x), len(U), dtype=x.dtype)
        states = (start, start) if function == "lstm" else (start,)
        zeros = torch.zeros(len(b) - sum(map(len, second)), dtype=x.dtype)
        kept = [W.T, U.T, b, torch.cat([zeros, *second])]
        outputs = []
        for part in x.split(truncate, 1):
            given = states if function == "lstm" else states[0]
            y, *states = getattr(torch, function)(part, given, kept, True, 1, 0.0, False, False, True)
            states = [state.detach() for state in states]
            outputs.append(y)
        return torch.cat(outputs, 1)

    return peer


WHOLE = ({"truncate": 4}, {"truncate": 9})
"""Segments as long as the sequences: shorter ones have another gradient than forward."""

IMAGE = {"H": 5, "V": 7, "K": 3, "L": 2, "I": 2, "O": 4}
STRIDES = (
    {"stride": 1, "padding": 0, "dilation": 1, "groups": 1},
    {"stride": 2, "padding": 1, "dilation": 2, "groups": 2},
)
POOLS = ({"size": (2, 2), "stride": 2, "padding": 0}, {"size": (3, 2), "stride": 1, "padding": 1})

TABLE: tuple[Row, ...] = (
    Row(
        rules.elman,
        _through_time("rnn_tanh"),
        sizes={"T": 4, "D": 3, "H": 2},
        options=WHOLE,
        jacobians={
            "x": "block diagonal: 17×4×2×4×3 numbers",
            "W": "full: 17×4×2×3×2 numbers",
            "U": "full: 17×4×2×2×2 numbers",
            "b": "full: 17×4×2×2 numbers",
        },
    ),
    Row(
        rules.lstm,
        _through_time("lstm"),
        sizes={"T": 4, "D": 3, "H": 2},
        options=WHOLE,
        jacobians={
            "x": "block diagonal: 17×4×2×4×3 numbers",
            "W": "full: 17×4×2×3×8 numbers",
            "U": "full: 17×4×2×2×8 numbers",
            "b": "full: 17×4×2×8 numbers",
        },
    ),
    Row(
        rules.gru,
        _through_time("gru"),
        sizes={"T": 4, "D": 3, "H": 2},
        options=WHOLE,
        jacobians={
            "x": "block diagonal: 17×4×2×4×3 numbers",
            "W": "full: 17×4×2×3×6 numbers",
            "U": "full: 17×4×2×2×6 numbers",
            "b": "full: 17×4×2×6 numbers",
            "c": "full: 17×4×2×2 numbers",
        },
    ),
    Row(rules.last_time, lambda torch, x: x[:, -1], jacobians={"x": "kronecker: is_last ⊗ I"}),
    Row(
        rules.linear,
        lambda torch, x, W, b: torch.nn.functional.linear(x, W.T, b),
        jacobians={"x": "kronecker: W.T ⊗ I", "W": "kronecker: x ⊗ I", "b": "kronecker: 1 ⊗ I"},
    ),
    Row(
        rules.linear_without_bias,
        lambda torch, x, W: torch.nn.functional.linear(x, W.T),
        jacobians={"x": "kronecker: W.T ⊗ I", "W": "kronecker: x ⊗ I"},
    ),
    Row(
        rules.linear_out_in,
        lambda torch, x, W, b: torch.nn.functional.linear(x, W, b),
        jacobians={"x": "kronecker: W ⊗ I", "W": "kronecker: x ⊗ I", "b": "kronecker: 1 ⊗ I"},
    ),
    Row(
        rules.linear_out_in_without_bias,
        lambda torch, x, W: torch.nn.functional.linear(x, W),
        jacobians={"x": "kronecker: W ⊗ I", "W": "kronecker: x ⊗ I"},
    ),
    Row(
        rules.embedding,
        lambda torch, i, E: torch.nn.functional.embedding(i, E),
        draws={"i": places_in_table},
        jacobians={"E": "kronecker: I[i] ⊗ I"},
    ),
    Row(
        rules.conv2d,
        _channels_first("conv2d"),
        sizes=IMAGE,
        options=STRIDES,
        jacobians={"x": "sparse: 864 of 5,040 entries", "W": "kronecker: u ⊗ I", "b": "kronecker: 1 ⊗ I"},
    ),
    Row(
        rules.conv2d_without_bias,
        _channels_first("conv2d"),
        sizes=IMAGE,
        options=STRIDES,
        jacobians={"x": "sparse: 864 of 5,040 entries", "W": "kronecker: u ⊗ I"},
    ),
    Row(
        rules.conv1d,
        _channels_first("conv1d"),
        sizes={"T": 8, "K": 3, "I": 2, "O": 4},
        options=STRIDES,
        jacobians={"x": "sparse: 144 of 384 entries", "W": "kronecker: u ⊗ I", "b": "kronecker: 1 ⊗ I"},
    ),
    Row(
        rules.conv1d_without_bias,
        _channels_first("conv1d"),
        sizes={"T": 8, "K": 3, "I": 2, "O": 4},
        options=STRIDES,
        jacobians={"x": "sparse: 144 of 384 entries", "W": "kronecker: u ⊗ I"},
    ),
    Row(
        rules.conv_transpose2d_without_bias,
        _channels_first("conv_transpose2d"),
        sizes={"P": 3, "Q": 4, "K": 3, "L": 2, "J": 2, "O": 6},
        options=STRIDES,
        jacobians={"x": "sparse: 864 of 3,600 entries", "W": "sparse: 7,344 of 15,300 entries"},
    ),
    Row(
        rules.conv_transpose2d,
        _channels_first("conv_transpose2d"),
        sizes={"P": 3, "Q": 4, "K": 3, "L": 2, "I": 2, "O": 6},
        options=STRIDES,
        jacobians={
            "x": "sparse: 864 of 3,600 entries",
            "W": "sparse: 7,344 of 15,300 entries",
            "b": "kronecker: 1 ⊗ I",
        },
    ),
    Row(
        rules.max_pool2d,
        _channels_first("max_pool2d"),
        draws={"x": apart},
        sizes={"H": 5, "V": 6, "C": 2},
        options=POOLS,
        jacobians={"x": "sparse: 204 of 6,120 entries"},
    ),
    Row(
        rules.average_pool2d,
        _channels_first("avg_pool2d"),
        sizes={"H": 5, "V": 6, "C": 2},
        options=POOLS,
        jacobians={"x": "sparse: 24 of 180 entries"},
    ),
    Row(
        rules.global_average_pool2d,
        lambda torch, x: x.mean((-3, -2)),
        sizes={"H": 4, "V": 5, "C": 3},
        jacobians={"x": "kronecker: 0.05 ⊗ I"},
    ),
    Row(
        rules.reshape,
        lambda torch, x, shape: x.reshape(len(x), *shape),
        sizes={"A...": (3, 8)},
        options=({"shape": (-1,)}, {"shape": (2, 3, 4)}),
        jacobians={"x": "sparse: 24 of 576 entries"},
    ),
    Row(
        rules.concatenate,
        lambda torch, x, y: torch.cat([x, y], -1),
        jacobians={"x": "sparse: 19 of 798 entries", "y": "sparse: 23 of 966 entries"},
    ),
    Row(
        rules.repeat_heads,
        lambda torch, x, times: x.repeat_interleave(times, -3),
        sizes={"G": 2, "T": 3, "E": 4},
        options=({"times": 3}, {"times": 2}),
        jacobians={"x": "sparse: 6 of 12 entries"},
    ),
    Row(
        rules.padded_attention,
        _padded,
        draws={"i": few_indices},
        sizes={"N": 4, "G": 2, "T": 3, "S": 5, "E": 4, "F": 6},
        options=({"padding": 0}, {"padding": 1}),
        jacobians={
            "q": "block diagonal: 4×2×3×6×4 numbers",
            "k": "block diagonal: 4×2×3×6×5×4 numbers",
            "v": "kronecker: p ⊗ I",
        },
    ),
    Row(
        rules.padded_causal_attention,
        _padded_causal,
        draws={"i": few_indices},
        sizes={"N": 4, "G": 2, "T": 5, "E": 4, "F": 6},
        options=({"padding": 0}, {"padding": 1}),
        jacobians={
            "q": "sparse: 480 of 960 entries",
            "k": "sparse: 1,200 of 4,800 entries",
            "v": "kronecker: p ⊗ I",
        },
    ),
    Row(
        rules.split_heads,
        lambda torch, x, heads: x.unflatten(-1, (heads, -1)).transpose(-2, -3),
        sizes={"T": 4, "D": 12},
        options=({"heads": 3}, {"heads": 2}),
        jacobians={"x": "sparse: 12 of 144 entries"},
    ),
    Row(
        rules.merge_heads,
        lambda torch, x: x.transpose(-2, -3).flatten(-2),
        sizes={"G": 3, "T": 4, "E": 2},
        jacobians={"x": "sparse: 6 of 36 entries"},
    ),
    Row(
        rules.attention,
        lambda torch, q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v),
        sizes={"T": 4, "S": 5, "E": 3, "F": 2},
        jacobians={
            "q": "block diagonal: 17×4×2×3 numbers",
            "k": "block diagonal: 17×4×2×5×3 numbers",
            "v": "kronecker: p ⊗ I",
        },
    ),
    Row(
        rules.causal_attention,
        lambda torch, q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        sizes={"T": 5, "E": 3, "F": 2},
        jacobians={
            "q": "block diagonal: 17×5×2×3 numbers",
            "k": "block diagonal: 17×5×2×5×3 numbers",
            "v": "kronecker: p ⊗ I",
        },
    ),
    Row(
        rules.add_positions,
        lambda torch, x, P: torch.add(x, P),
        sizes={"T": 4, "D": 5},
        jacobians={"x": "diagonal: I", "P": "kronecker: 1 ⊗ I"},
    ),
    Row(
        rules.rotary_positions,
        _rotated,
        sizes={"T": 5, "D": 6},
        options=({"base": 10000.0}, {"base": 50.0}),
        jacobians={"x": "sparse: 54 of 180 entries"},
    ),
    Row(
        rules.rms_norm,
        lambda torch, x, gamma, epsilon: torch.nn.functional.rms_norm(x, x.shape[-1:], gamma, epsilon),
        options=({"epsilon": 1e-5}, {"epsilon": 0.3}),
        jacobians={
            "x": "diagonal plus low rank: diag(gamma * rrms) + U Vᵀ, of rank 1",
            "gamma": "block diagonal: xhat",
        },
    ),
    Row(
        rules.group_norm,
        lambda torch, x, gamma, beta, groups, epsilon: (
            torch.nn.functional.group_norm(
                x.reshape(-1, *x.shape[-3:]).movedim(-1, 1), groups, gamma, beta, epsilon
            )
            .movedim(1, -1)
            .reshape(x.shape)
        ),
        sizes={"H": 4, "V": 5, "C": 6},
        options=({"groups": 1, "epsilon": 1e-5}, {"groups": 3, "epsilon": 0.3}),
        jacobians={
            "x": "diagonal plus low rank: diag(17×4×5×6 numbers) + U Vᵀ, of rank 2",
            "gamma": "block diagonal: uhat",
            "beta": "kronecker: 1 ⊗ I",
        },
    ),
    Row(
        rules.swiglu,
        lambda torch, z, v: torch.nn.functional.silu(z) * v,
        jacobians={"z": "diagonal: diag(v * (s + z * e / (1 + e) ** 2))", "v": "diagonal: diag(z * s)"},
    ),
    Row(rules.add, lambda torch, x, y: torch.add(x, y), jacobians={"x": "diagonal: I", "y": "diagonal: I"}),
    Row(rules.identity, lambda torch, x: torch.nn.Identity()(x), jacobians={"x": "diagonal: I"}),
    Row(
        rules.dropout,
        lambda torch, x, kept, rate: x * kept / (1 - rate),
        options=({"rate": 0.5}, {"rate": 0.2}, {"rate": 0.0}),
        jacobians={"x": "diagonal: diag(kept / (1 - 0.5))"},
    ),
    Row(
        rules.relu,
        lambda torch, z: torch.relu(z),
        draws={"z": off_zero},
        jacobians={"z": "diagonal: diag(z > 0)"},
    ),
    Row(
        rules.leaky_relu,
        lambda torch, z, slope: torch.nn.functional.leaky_relu(z, slope),
        draws={"z": off_zero},
        options=({"slope": 0.01}, {"slope": 0.3}),
        jacobians={"z": "diagonal: diag(np.where(z > 0, 1, 0.01))"},
    ),
    Row(
        rules.elu,
        lambda torch, z, alpha: torch.nn.functional.elu(z, alpha),
        draws={"z": off_zero},
        options=({"alpha": 1.0}, {"alpha": 0.4}),
        jacobians={"z": "diagonal: diag(np.where(z > 0, 1, np.exp(below)))"},
    ),
    Row(
        rules.sigmoid, lambda torch, z: torch.sigmoid(z), jacobians={"z": "diagonal: diag(e / (1 + e) ** 2)"}
    ),
    Row(rules.tanh, lambda torch, z: torch.tanh(z), jacobians={"z": "diagonal: diag(4 * e / (1 + e) ** 2)"}),
    Row(
        rules.gelu,
        lambda torch, z: torch.nn.functional.gelu(z),
        jacobians={"z": "diagonal: diag(share + z * density)"},
    ),
    Row(
        rules.gelu_tanh,
        lambda torch, z: torch.nn.functional.gelu(z, approximate="tanh"),
        jacobians={"z": "diagonal: diag(s + z * ds)"},
    ),
    Row(
        rules.silu,
        lambda torch, z: torch.nn.functional.silu(z),
        jacobians={"z": "diagonal: diag(s + z * e / (1 + e) ** 2)"},
    ),
    Row(
        rules.softplus,
        lambda torch, z: torch.nn.functional.softplus(z),
        jacobians={"z": "diagonal: diag(np.where(z >= 0, 1, e) / (1 + e))"},
    ),
    Row(rules.exponential, lambda torch, z: torch.exp(z), jacobians={"z": "diagonal: diag(a)"}),
    Row(
        rules.softmax,
        lambda torch, z: torch.softmax(z, -1),
        jacobians={"z": "diagonal plus low rank: diag(y) - y yᵀ"},
    ),
    Row(
        rules.standardise,
        lambda torch, x, mean, deviation: (x - mean) / deviation,
        draws={"deviation": positive},
        jacobians={"x": "diagonal: diag(1 / deviation)"},
    ),
    Row(
        rules.unstandardise,
        lambda torch, z, t_mean, t_deviation: z * t_deviation + t_mean,
        draws={"t_deviation": positive},
        jacobians={"z": "diagonal: diag(t_deviation)"},
    ),
    Row(
        rules.layer_norm,
        lambda torch, x, gamma, beta, epsilon: torch.nn.functional.layer_norm(
            x, x.shape[-1:], gamma, beta, epsilon
        ),
        options=({"epsilon": 1e-5}, {"epsilon": 0.3}),
        jacobians={
            "x": "diagonal plus low rank: diag(gamma * rstd) + U Vᵀ, of rank 2",
            "gamma": "block diagonal: xhat",
            "beta": "kronecker: 1 ⊗ I",
        },
    ),
    Row(
        rules.batch_norm,
        lambda torch, *arguments, **options: _batch_norm(torch, *arguments, training=True, **options),
        draws={"running_var": positive},
        options=({"epsilon": 1e-5, "momentum": 0.1}, {"epsilon": 0.3, "momentum": 0.5}),
        jacobians={
            "x": "diagonal plus low rank: diag(gamma * rstd) + U Vᵀ, of rank 2",
            "gamma": "block diagonal: xhat",
            "beta": "kronecker: 1 ⊗ I",
        },
    ),
    Row(
        rules.batch_norm_evaluation,
        lambda torch, *arguments, **options: _batch_norm(torch, *arguments, training=False, **options),
        draws={"running_var": positive},
        options=({"epsilon": 1e-5}, {"epsilon": 0.3}),
        jacobians={
            "x": "diagonal: diag(gamma * rstd)",
            "gamma": "block diagonal: xhat",
            "beta": "kronecker: 1 ⊗ I",
        },
    ),
    Row(
        rules.half_squared_error,
        lambda torch, y, t: torch.nn.functional.mse_loss(y, t, reduction="none").sum(-1) / 2,
        jacobians={"y": "block diagonal: error"},
    ),
    Row(
        rules.mean_squared_error,
        _row_mean("mse_loss"),
        jacobians={"y": "block diagonal: 2 * error / error.shape[-1]"},
    ),
    Row(
        rules.huber,
        _row_mean("huber_loss"),
        draws={"t": near_and_far},
        options=({"delta": 1.0}, {"delta": 0.7}, {"delta": 1.5}),
        jacobians={"y": "block diagonal: clipped / error.shape[-1]"},
    ),
    Row(
        rules.poisson_deviance,
        lambda torch, z, t: (
            torch.nn.functional.poisson_nll_loss(z, t, reduction="none") + torch.xlogy(t, t) - t
        ).mean(-1),
        draws={"t": counts},
        jacobians={"z": "block diagonal: (expected - t) / t.shape[-1]"},
    ),
    Row(
        rules.binary_cross_entropy,
        _row_mean("binary_cross_entropy_with_logits"),
        draws={"z": off_zero, "t": yes_or_no},
        jacobians={"z": "block diagonal: (p - t) / z.shape[-1]"},
    ),
    Row(
        rules.weighted_binary_cross_entropy,
        lambda torch, z, t, positive: _row_mean("binary_cross_entropy_with_logits")(
            torch, z, t, pos_weight=positive
        ),
        draws={"z": off_zero, "t": yes_or_no, "positive": positive},
        jacobians={"z": "block diagonal: (counted * p - positive * t) / z.shape[-1]"},
    ),
    Row(
        rules.softmax_cross_entropy,
        lambda torch, z, q: torch.nn.functional.cross_entropy(
            _last_to_second(z), _last_to_second(q), reduction="none"
        ),
        draws={"q": shares},
        jacobians={"z": "block diagonal: p - q"},
    ),
    Row(
        rules.class_weighted_cross_entropy,
        lambda torch, z, q, class_weight: torch.nn.functional.cross_entropy(
            _last_to_second(z), _last_to_second(q), class_weight, reduction="none"
        ),
        draws={"q": shares, "class_weight": positive},
        jacobians={"z": "block diagonal: p * r.sum(axis=-1, keepdims=True) - r"},
    ),
    Row(
        rules.sum_of_outputs,
        lambda torch, m, outputs: torch.mul(m, outputs),
        options=({"outputs": 1}, {"outputs": 4}),
        jacobians={"m": "diagonal: I"},
    ),
    Row(rules.half_square, lambda torch, W: torch.sum(W**2) / 2, jacobians={"W": "full: W"}),
    Row(
        rules.penalised_mean,
        lambda torch, losses, penalty, l2: losses.mean() + l2 * penalty / losses.numel(),
        options=({"l2": 1e-4}, {"l2": 0.7}),
        jacobians={"l": "full: 1 / count", "penalty": "full: 0.0001 / count"},
    ),
    Row(
        rules.penalised_weighted_mean,
        lambda torch, losses, w, v, penalty, l2: (
            (torch.dot(w.ravel(), losses.ravel()) + l2 * penalty) / v.sum()
        ),
        options=({"l2": 1e-4}, {"l2": 0.7}),
        jacobians={"l": "full: w / count", "penalty": "full: np.where(weight > 0, 0.0001 / count, 0)"},
    ),
    Row(rules.mean, lambda torch, losses: losses.mean(), jacobians={"l": "full: 1 / count"}),
    Row(rules.sum_of_rows, lambda torch, losses: losses.sum(), jacobians={"l": "full: 1"}),
    Row(
        rules.weighted_mean,
        lambda torch, losses, w, v: torch.dot(w.ravel(), losses.ravel()) / v.sum(),
        jacobians={"l": "full: w / count"},
    ),
    Row(
        rules.weighted_sum_of_rows,
        lambda torch, losses, w: torch.dot(w.ravel(), losses.ravel()),
        jacobians={"l": "full: w"},
    ),
)


@dataclass(frozen=True)
class UpdateRow:
    """One setting of an optimiser, and what it is in PyTorch; every test of optimisers goes over these.

    Attributes
    ----------
    optimiser
        What is tested, its learning rate the one that it starts with.
    peer
        ``peer(optim, parameters)``: the same of ``torch.optim``; gradients are clipped before it.
    """

    optimiser: Optimiser
    peer: Callable[..., Any]


UPDATES: tuple[UpdateRow, ...] = (
    UpdateRow(SGD(0.05), lambda optim, p: optim.SGD(p)),
    UpdateRow(SGD(0.05, weight_decay=0.03), lambda optim, p: optim.SGD(p, weight_decay=0.03)),
    UpdateRow(SGD(0.05, clip_norm=0.5), lambda optim, p: optim.SGD(p)),
    UpdateRow(SGD(0.05, clip_norm=1e6), lambda optim, p: optim.SGD(p)),
    UpdateRow(SGD(0.02, momentum=0.8), lambda optim, p: optim.SGD(p, momentum=0.8)),
    UpdateRow(
        SGD(0.02, momentum=0.9, weight_decay=0.03),
        lambda optim, p: optim.SGD(p, momentum=0.9, weight_decay=0.03),
    ),
    UpdateRow(
        SGD(0.02, momentum=0.8, nesterov=True), lambda optim, p: optim.SGD(p, momentum=0.8, nesterov=True)
    ),
    UpdateRow(
        SGD(0.02, momentum=0.7, nesterov=True, weight_decay=0.1, clip_norm=0.5),
        lambda optim, p: optim.SGD(p, momentum=0.7, nesterov=True, weight_decay=0.1),
    ),
    UpdateRow(RMSProp(0.01), lambda optim, p: optim.RMSprop(p)),
    UpdateRow(
        RMSProp(0.01, decay=0.8, epsilon=1e-3, weight_decay=0.1, clip_norm=0.5),
        lambda optim, p: optim.RMSprop(p, alpha=0.8, eps=1e-3, weight_decay=0.1),
    ),
    UpdateRow(Adam(0.01), lambda optim, p: optim.Adam(p)),
    UpdateRow(
        Adam(0.01, beta1=0.7, beta2=0.95, epsilon=1e-3, weight_decay=0.1, clip_norm=0.5),
        lambda optim, p: optim.Adam(p, betas=(0.7, 0.95), eps=1e-3, weight_decay=0.1),
    ),
    UpdateRow(AdamW(0.01), lambda optim, p: optim.AdamW(p)),
    UpdateRow(
        AdamW(0.01, beta1=0.7, beta2=0.95, epsilon=1e-3, weight_decay=0.3, clip_norm=0.5),
        lambda optim, p: optim.AdamW(p, betas=(0.7, 0.95), eps=1e-3, weight_decay=0.3),
    ),
)


@dataclass(frozen=True)
class Case:
    """A rule at one setting of its options."""

    row: Row
    options: Mapping[str, Any]

    @property
    def rule(self) -> Rule:
        """What is tested."""
        return self.row.rule

    def __str__(self) -> str:
        return "-".join([self.rule.name, *(f"{name}={value}" for name, value in self.options.items())])

    def draw(
        self, seed: int, rank: int, *, dtype: str = "float64", batch: int | None = None
    ) -> tuple[dict[str, Array], Array]:
        """Draw the arguments and an upstream gradient of both signs, in the output's shape."""
        rng = np.random.default_rng(seed)
        inputs = self.row.inputs(rng, rank, self.options, batch=batch)
        inputs = {name: v.astype(dtype) if v.dtype == np.float64 else v for name, v in inputs.items()}
        output = self.rule(*inputs.values(), **self.options)
        return inputs, np.asarray(rng.normal(size=np.shape(output)), dtype)


CASES = tuple(Case(row, options) for row in TABLE for options in row.options)


def each_case(*others: Any) -> list[Any]:
    """Return every rule at every setting, in rank 2 and rank 3, times ``others``, with readable ids."""
    return [
        pytest.param(case, rank, *other, id="-".join([str(case), f"rank{rank}", *map(str, other)]))
        for case in CASES
        for rank in (2, 3)
        for other in ([(other,) for other in others] or [()])
    ]
