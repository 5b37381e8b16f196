"""NumPy's counterparts of the functions in ``torch.nn.functional``: activations, layers and losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from handgrad.rules import RULES


def _linear(x: Any, weight: Any, bias: Any = None) -> Any:
    product = np.matmul(x, np.swapaxes(weight, -1, -2))
    return product if bias is None else product + bias


def _pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else tuple(size)


def _unfolded(x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Return the windows of images as columns."""
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = map(_pair, (kernel_size, dilation, padding, stride))
    x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw))) if ph or pw else x
    n, c, height, width = np.shape(x)
    h, w = (height - dh * (kh - 1) - 1) // sh + 1, (width - dw * (kw - 1) - 1) // sw + 1
    rows, columns = (range(k) for k in (kh, kw))
    windows = [
        x[:, :, i * dh : i * dh + sh * h : sh, j * dw : j * dw + sw * w : sw] for i in rows for j in columns
    ]
    return np.reshape(np.stack(windows, axis=2), (n, c * kh * kw, h * w))


def one_hot(x: Any, classes: int = -1) -> Any:
    """Return a row of an identity matrix for each entry; as many classes as there are, where none are given."""
    return np.eye(classes if classes > 0 else int(np.max(x)) + 1)[x]


def _softmax(x: Any, axis: int = -1) -> Any:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def _logsumexp(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    largest = np.max(x, axis=axis, keepdims=True)
    total = np.log(np.sum(np.exp(x - largest), axis=axis, keepdims=True)) + largest
    return total if keepdims else np.squeeze(total, axis=axis)


def _log_softmax(x: Any, axis: int = -1) -> Any:
    return x - _logsumexp(x, axis=axis, keepdims=True)


def _of_math(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """Return a function of module math on arrays, which a trace records by its name as it does NumPy's own."""
    entries = np.vectorize(function, otypes=[float])

    def of(x: Any) -> Any:
        if isinstance(x, np.ndarray) and type(x) is not np.ndarray:
            return x.__array_function__(of, (type(x),), (x,), {})
        return entries(x)

    of.__name__, of.__module__ = function.__name__, "numpy"
    return of


erf, erfc = _of_math(math.erf), _of_math(math.erfc)


def gelu(x: Any, approximate: str = "none") -> Any:
    """Return x Φ(x), or its approximation by a tanh."""
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def _hard_sigmoid(x: Any) -> Any:
    return np.clip(x / 6 + 0.5, 0, 1)


def _log_sigmoid(x: Any) -> Any:
    return -RULES["softplus"].function(-x)


def _glu(x: Any, axis: int = -1) -> Any:
    values, gates = np.split(x, 2, axis)
    return values * RULES["sigmoid"].function(gates)


def _layer_norm(x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    axes = tuple(range(-len(shape), 0))
    mean, variance = (each(x, axis=axes, keepdims=True) for each in (np.mean, np.var))
    y = (x - mean) / np.sqrt(variance + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def _rms_norm(x: Any, shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    eps = float(np.finfo(x.dtype).eps) if eps is None else eps
    y = x / np.sqrt(np.mean(x**2, axis=tuple(range(-len(shape), 0)), keepdims=True) + eps)
    return y if weight is None else y * weight


def norm(x: Any, p: Any = 2, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the p-norm along an axis, or of all entries."""
    if p in (2, "fro"):
        return np.sqrt(np.sum(np.square(x), axis=axis, keepdims=keepdims))
    return np.linalg.norm(x, p, axis=axis, keepdims=keepdims)


def _normalized(x: Any, p: float = 2.0, axis: int = 1, eps: float = 1e-12) -> Any:
    return x / np.maximum(norm(x, p, axis, keepdims=True), eps)


def _cosine(x: Any, y: Any, axis: int = 1, eps: float = 1e-8) -> Any:
    norms = np.maximum(norm(x, 2, axis), eps) * np.maximum(norm(y, 2, axis), eps)
    return np.sum(x * y, axis=axis) / norms


def _padded(x: Any, pad: Any, mode: str = "constant", value: float = 0.0) -> Any:
    pairs = [(pad[k], pad[k + 1]) for k in range(0, len(pad), 2)]
    widths = [(0, 0)] * (np.ndim(x) - len(pairs)) + pairs[::-1]
    return np.pad(x, widths, mode=mode, constant_values=value)  # type: ignore[call-overload]


def _conv2d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1
) -> Any:
    filters, _, *kernel = np.shape(weight)
    (ph, pw), (sh, sw), (dh, dw) = map(_pair, (padding, stride, dilation))
    height, width = (
        (np.shape(x)[2 + k] + 2 * p - d * (kernel[k] - 1) - 1) // s + 1
        for k, (p, s, d) in enumerate(((ph, sh, dh), (pw, sw, dw)))
    )
    out = np.matmul(np.reshape(weight, (filters, -1)), _unfolded(x, tuple(kernel), dilation, padding, stride))
    out = np.reshape(out, (np.shape(x)[0], filters, height, width))
    return out if bias is None else out + np.reshape(bias, (-1, 1, 1))


def _pooled(of: Callable[..., Any]) -> Callable[..., Any]:
    def pool(
        x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, **rest: Any
    ) -> Any:
        if padding or dilation != 1 or rest.get("ceil_mode"):
            raise NotImplementedError("pooling with padding, dilation or a last window that overhangs")
        (kh, kw), (sh, sw) = _pair(kernel_size), _pair(stride or kernel_size)
        n, c, height, width = np.shape(x)
        windows = _unfolded(np.reshape(x, (n * c, 1, height, width)), (kh, kw), 1, 0, (sh, sw))
        return np.reshape(of(windows, axis=1), (n, c, (height - kh) // sh + 1, (width - kw) // sw + 1))

    return pool


def _reduced(x: Any, reduction: str) -> Any:
    if reduction == "none":
        return x
    return np.sum(x) if reduction == "sum" else np.mean(x)


def _huber(x: Any, y: Any, reduction: str = "mean", delta: float = 1.0) -> Any:
    d = np.abs(x - y)
    return _reduced(np.where(d < delta, 0.5 * d**2, delta * (d - 0.5 * delta)), reduction)


def _smooth_l1(x: Any, y: Any, reduction: str = "mean", beta: float = 1.0) -> Any:
    return _huber(x, y, reduction, beta) / beta


def _binary_entropy(p: Any, y: Any, reduction: str = "mean") -> Any:
    return _reduced(-(y * np.log(p) + (1 - y) * np.log(1 - p)), reduction)


def _binary_entropy_of_logits(z: Any, y: Any, reduction: str = "mean") -> Any:
    return _reduced(RULES["softplus"].function(z) - y * z, reduction)


def _nll(logprobs: Any, target: Any, ignore_index: int = -100, reduction: str = "mean") -> Any:
    valid = target != ignore_index
    picked = np.take_along_axis(np.moveaxis(logprobs, 1, -1), np.where(valid, target, 0)[..., None], -1)
    losses = np.where(valid, -picked[..., 0], 0.0)
    return np.sum(losses) / np.sum(valid) if reduction == "mean" else _reduced(losses, reduction)


def _cross_entropy(
    logits: Any, target: Any, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0
) -> Any:
    logprobs, classes = _log_softmax(logits, axis=1), np.shape(logits)[1]
    if np.ndim(target) == np.ndim(logits):
        target = (1 - label_smoothing) * target + label_smoothing / classes if label_smoothing else target
        losses = -np.sum(target * logprobs, axis=1)
        return _reduced(losses, reduction)
    loss = _nll(logprobs, target, ignore_index, reduction)
    if not label_smoothing:
        return loss
    valid = target != ignore_index
    smooth = np.where(valid, -np.mean(logprobs, axis=1), 0.0)
    smooth = np.sum(smooth) / np.sum(valid) if reduction == "mean" else _reduced(smooth, reduction)
    return (1 - label_smoothing) * loss + label_smoothing * smooth


NEURAL: dict[str, Callable[..., Any]] = {
    **{name: RULES[name].function for name in ("relu", "sigmoid", "silu", "softplus", "tanh", "elu", "leaky_relu")},
    "swish": RULES["silu"].function, "softmax": _softmax, "log_softmax": _log_softmax, "logsumexp": _logsumexp, "gelu": gelu,
    "relu6": lambda x: np.clip(x, 0, 6), "hardtanh": lambda x, min_val=-1.0, max_val=1.0: np.clip(x, min_val, max_val),
    "selu": lambda x: 1.0507009873554805 * RULES["elu"].function(x, alpha=1.6732632423543772), "glu": _glu,
    "mish": lambda x: x * np.tanh(RULES["softplus"].function(x)), "softsign": lambda x: x / (1 + np.abs(x)),
    "logsigmoid": _log_sigmoid, "hardsigmoid": _hard_sigmoid, "hardswish": lambda x: x * _hard_sigmoid(x),
}  # fmt: skip
"""Activations, which are functions of one array and options."""

LAYERS: dict[str, Callable[..., Any]] = {
    "linear": _linear, "one_hot": one_hot, "unfold": _unfolded, "pad": _padded, "conv2d": _conv2d, "layer_norm": _layer_norm,
    "max_pool2d": _pooled(np.max), "avg_pool2d": _pooled(np.mean), "rms_norm": _rms_norm, "normalize": _normalized,
    "cosine_similarity": _cosine, "norm": norm, "embedding": lambda index, table, *_, **__: table[index], "erf": erf,
    "erfc": erfc, "log_sigmoid": _log_sigmoid,
}  # fmt: skip

LOSSES: dict[str, Callable[..., Any]] = {
    "mse_loss": lambda x, y, reduction="mean": _reduced((x - y) ** 2, reduction),
    "l1_loss": lambda x, y, reduction="mean": _reduced(np.abs(x - y), reduction),
    "smooth_l1_loss": _smooth_l1, "huber_loss": _huber, "binary_cross_entropy": _binary_entropy,
    "binary_cross_entropy_with_logits": _binary_entropy_of_logits, "nll_loss": _nll, "cross_entropy": _cross_entropy,
}  # fmt: skip
