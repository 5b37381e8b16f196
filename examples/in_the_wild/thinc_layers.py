"""Every layer of thinc that can be called on NumPy arrays, and its losses, checked as they are published.

A layer returns its output and a callback. The callback takes the upstream gradient, returns the gradient of
what the layer was called with, and adds those of the parameters to what the model keeps. Each layer runs on
both of thinc's backends for the CPU: `NumpyOps`, which is compiled, and `Ops`, its base class in plain NumPy.
Layers are checked in float64, and in float32 where they compute in that whatever they are given.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import thinc
from thinc import api, layers
from thinc.backends.ops import Ops
from thinc.types import Padded, Ragged

from handgrad.checking import CheckError, Report, check

BACKENDS = {"NumpyOps": api.NumpyOps, "Ops": Ops}
LENGTHS = np.array([3, 1, 2], np.int32)  # three sequences, six rows in all
ROWS, IN, OUT = int(LENGTHS.sum()), 4, 3
SEQUENCE_SUMS = {"ParametricAttention", "ParametricAttention_v2", "with_ragged"}  # Ops sums them in float32
TABLES = {"Embed", "HashEmbed", "uniqued"}  # whose gradients are float32, whatever they are given
Make = Callable[[], thinc.model.Model]
Example = Callable[[np.random.Generator], Any]


# What layers are called with: arrays, and what thinc wraps them in.


def rows(generator: np.random.Generator) -> np.ndarray:
    return generator.normal(size=(ROWS, IN))


def ragged(generator: np.random.Generator) -> Ragged:
    return Ragged(rows(generator), LENGTHS)


def listed(generator: np.random.Generator, width: int = IN) -> list[np.ndarray]:
    return [generator.normal(size=(length, width)) for length in LENGTHS]


def padded(generator: np.random.Generator) -> Padded:
    """Three sequences, the longest first; the padding is 0."""
    order = np.argsort(-LENGTHS).astype(np.int32)
    lengths = LENGTHS[order]
    data = generator.normal(size=(lengths[0], len(lengths), 2))
    data *= np.arange(lengths[0])[:, None, None] < lengths[:, None]
    return Padded(data, np.array([(lengths > t).sum() for t in range(lengths[0])], np.int32), lengths, order)


def pair(generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rows(generator), rows(generator)


def ids(generator: np.random.Generator) -> np.ndarray:
    return np.array([[1], [4], [1], [0], [3], [1]], np.int32)


def nested(generator: np.random.Generator) -> list[list[np.ndarray]]:
    return [[generator.normal(size=IN) for _ in range(length)] for length in LENGTHS]


def floats(value: Any) -> list[np.ndarray]:
    """Return the arrays of floating point in whatever a layer takes or gives."""
    if isinstance(value, Ragged):
        return floats(value.dataXd)
    if isinstance(value, Padded):
        return floats(value.data)
    if isinstance(value, list | tuple):
        return [array for part in value for array in floats(part)]
    return [value] if isinstance(value, np.ndarray) and value.dtype.kind == "f" else []


def filled(value: Any, arrays: Iterator[np.ndarray]) -> Any:
    """Return the same with other arrays in it, each in the type of the one it replaces."""
    if isinstance(value, Ragged):
        return Ragged(filled(value.dataXd, arrays), value.lengths)
    if isinstance(value, Padded):
        return Padded(filled(value.data, arrays), value.size_at_t, value.lengths, value.indices)
    if isinstance(value, list | tuple):
        return type(value)(filled(part, arrays) for part in value)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return np.ascontiguousarray(next(arrays), value.dtype)
    return value


def typed(value: Any, dtype: type[np.floating[Any]]) -> Any:
    """Return the same with its floating point in another type."""
    if isinstance(value, Ragged):
        return Ragged(typed(value.dataXd, dtype), value.lengths)
    if isinstance(value, Padded):
        return Padded(typed(value.data, dtype), value.size_at_t, value.lengths, value.indices)
    if isinstance(value, list | tuple):
        return type(value)(typed(part, dtype) for part in value)
    return value.astype(dtype) if value.dtype.kind == "f" else value


# A layer as a pair of functions.


@dataclass
class Layer:
    """A layer on a backend, and what it is called with; that, and its parameters, are the arguments."""

    make: Make
    example: Any
    dtype: type[np.floating[Any]]
    backend: type[Ops]

    def fresh(self) -> thinc.model.Model:
        """Return the layer as it is made, with gradients of nothing yet."""
        np.random.seed(0)  # noqa: NPY002 - thinc initialises and drops out by it
        with api.use_ops("numpy"):
            model = self.make().initialize(X=typed(self.example, np.float32))
        model._to_ops(self.backend())
        return model

    def inputs(self, generator: np.random.Generator) -> dict[str, np.ndarray]:
        """Return random numbers for all parameters too: what they are initialised with may hide a mistake."""
        arrays = floats(self.example)
        named = {"X" if len(arrays) == 1 else f"X{k}": array for k, array in enumerate(arrays)}
        for name, (node, own) in parameters(self.fresh()).items():
            named[name] = generator.normal(size=node.get_param(own).shape)
        return {name: array.astype(self.dtype) for name, array in named.items()}

    def run(self, values: dict[str, np.ndarray]) -> tuple[thinc.model.Model, Any, Callable[[Any], Any]]:
        """Call the layer with these arrays; return it, its output and its callback."""
        model = self.fresh()
        given = {name: np.ascontiguousarray(value, self.dtype) for name, value in values.items()}
        for name, (node, own) in parameters(model).items():
            node.set_param(own, given.pop(name))
        return model, *model(filled(typed(self.example, self.dtype), iter(given.values())), is_train=True)

    def forward(self, **values: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the arrays of the output."""
        return tuple(floats(self.run(values)[1]))

    def backward(self, upstream: tuple[np.ndarray, ...], **values: np.ndarray) -> dict[str, np.ndarray]:
        """Return the gradients of what the layer was called with, and of the parameters that have one."""
        model, output, callback = self.run(values)
        found = floats(callback(filled(output, iter(upstream))))
        kept = parameters(model)
        gradients = dict(zip((name for name in values if name not in kept), found, strict=False))
        return gradients | {
            name: node.get_grad(own) for name, (node, own) in kept.items() if node.has_grad(own)
        }


def parameters(model: thinc.model.Model) -> dict[str, tuple[thinc.model.Model, str]]:
    """Return where each parameter is kept, by a name that no other has."""
    found = [(node, name) for node in model.walk() for name in node.param_names]
    names = [name for _, name in found]
    return {f"{name}{k}" if names.count(name) > 1 else name: found[k] for k, name in enumerate(names)}


def check_layer(name: str, backend: type[Ops]) -> Report:
    """Check one layer on one backend."""
    make, example = LAYERS[name]
    layer = Layer(make, example(np.random.default_rng(0)), np.float64, backend)
    outputs = layer.forward(**layer.inputs(np.random.default_rng(1)))
    single = name in TABLES or (backend is Ops and name in SEQUENCE_SUMS)
    if single or any(output.dtype != np.float64 for output in outputs):
        layer.dtype = np.float32
    return check(layer.forward, layer.backward, layer.inputs(np.random.default_rng(1)))


# All of them.


def linear() -> thinc.model.Model:
    return layers.Linear(OUT, IN)


LAYERS: dict[str, tuple[Make, Example]] = {
    # with weights
    "Linear": (linear, rows),
    "Relu": (lambda: layers.Relu(OUT, IN), rows),
    "ReluK": (lambda: layers.ReluK(OUT, IN), rows),
    "ClippedLinear": (lambda: layers.ClippedLinear(OUT, IN, slope=0.7, offset=0.2), rows),
    "HardSigmoid": (lambda: layers.HardSigmoid(OUT, IN), rows),
    "HardTanh": (lambda: layers.HardTanh(OUT, IN), rows),
    "HardSwish": (lambda: layers.HardSwish(OUT, IN), rows),
    "HardSwishMobilenet": (lambda: layers.HardSwishMobilenet(OUT, IN), rows),
    "Swish": (lambda: layers.Swish(OUT, IN), rows),
    "Gelu": (lambda: layers.Gelu(OUT, IN), rows),
    "Mish": (lambda: layers.Mish(OUT, IN), rows),
    "Sigmoid": (lambda: layers.Sigmoid(OUT, IN), rows),
    "Dish, square": (lambda: layers.Dish(IN, IN), rows),
    "Dish": (lambda: layers.Dish(OUT, IN), rows),
    "Maxout": (lambda: layers.Maxout(OUT, IN, nP=2), rows),
    "Softmax": (lambda: layers.Softmax(OUT, IN), rows),
    "Softmax_v2": (lambda: layers.Softmax_v2(OUT, IN, temperature=2.0), rows),
    "MultiSoftmax": (lambda: layers.MultiSoftmax((2, 3), IN), rows),
    "LayerNorm": (lambda: layers.LayerNorm(IN), rows),
    "Embed": (lambda: layers.Embed(OUT, 5, column=0), ids),
    "HashEmbed": (lambda: layers.HashEmbed(OUT, 7, column=0, seed=1), ids),
    "CauchySimilarity": (lambda: layers.CauchySimilarity(IN), pair),
    "ParametricAttention": (lambda: layers.ParametricAttention(IN), ragged),
    "ParametricAttention_v2": (lambda: layers.ParametricAttention_v2(nO=IN), ragged),
    "LSTM": (lambda: layers.LSTM(2, 2), padded),
    "LSTM, bi": (lambda: layers.LSTM(4, 2, bi=True), padded),
    "LSTM, depth 2": (lambda: layers.LSTM(2, 2, depth=2), padded),
    # without
    "Logistic": (layers.Logistic, rows),
    "sigmoid_activation": (layers.sigmoid_activation, rows),
    "softmax_activation": (layers.softmax_activation, rows),
    "Dropout": (lambda: layers.Dropout(0.4), rows),
    "expand_window": (lambda: layers.expand_window(1), rows),
    "array_getitem": (lambda: layers.array_getitem((slice(None), slice(1, 3))), rows),
    "noop": (layers.noop, rows),
    "reduce_first": (layers.reduce_first, ragged),
    "reduce_last": (layers.reduce_last, ragged),
    "reduce_max": (layers.reduce_max, ragged),
    "reduce_mean": (layers.reduce_mean, ragged),
    "reduce_sum": (layers.reduce_sum, ragged),
    "list2array": (layers.list2array, listed),
    "list2ragged": (layers.list2ragged, listed),
    "list2padded": (layers.list2padded, listed),
    "ragged2list": (layers.ragged2list, ragged),
    "padded2list": (layers.padded2list, padded),
    # made of others
    "chain": (lambda: layers.chain(linear(), layers.Mish(2, OUT)), rows),
    "add": (lambda: layers.add(linear(), linear()), rows),
    "concatenate": (lambda: layers.concatenate(linear(), layers.Mish(2, IN)), rows),
    "clone": (lambda: layers.clone(layers.Linear(IN, IN), 2), rows),
    "residual": (lambda: layers.residual(layers.Linear(IN, IN)), rows),
    "tuplify": (lambda: layers.tuplify(linear(), layers.Linear(2, IN)), rows),
    "siamese": (lambda: layers.siamese(linear(), layers.CauchySimilarity(OUT)), pair),
    "bidirectional": (lambda: layers.bidirectional(layers.LSTM(2, 2)), padded),
    "map_list": (lambda: layers.map_list(linear()), listed),
    "uniqued": (lambda: layers.uniqued(layers.Embed(OUT, 5, column=0)), ids),
    "with_array": (lambda: layers.with_array(linear()), listed),
    "with_array, pad": (lambda: layers.with_array(layers.expand_window(1), pad=1), listed),
    "with_array2d": (lambda: layers.with_array2d(layers.Linear(OUT, 2)), padded),
    "with_cpu": (lambda: layers.with_cpu(linear(), api.NumpyOps()), rows),
    "with_debug": (lambda: layers.with_debug(linear()), rows),
    "with_flatten": (lambda: layers.with_flatten(layers.map_list(layers.noop())), nested),
    "with_flatten_v2": (lambda: layers.with_flatten_v2(layers.map_list(layers.noop())), nested),
    "with_getitem": (lambda: layers.with_getitem(1, linear()), pair),
    "with_list": (lambda: layers.with_list(layers.map_list(linear())), ragged),
    "with_padded": (lambda: layers.with_padded(layers.LSTM(2, 2)), lambda g: listed(g, 2)),
    "with_ragged": (lambda: layers.with_ragged(layers.ParametricAttention(IN)), listed),
    "with_reshape, square": (
        lambda: layers.with_reshape(layers.Linear(IN, IN)),
        lambda g: g.normal(size=(2, 3, IN)),
    ),
    "with_reshape": (lambda: layers.with_reshape(linear()), lambda g: g.normal(size=(2, 3, IN))),
}


def check_loss(loss: Callable[..., Any], truths: np.ndarray, generator: np.random.Generator) -> Report:
    """Check a loss: its `get_grad` against its `get_loss`."""
    guesses = api.NumpyOps().softmax(generator.normal(size=truths.shape))
    return check(
        lambda guesses: np.asarray(loss.get_loss(guesses, truths)),
        lambda upstream, guesses: {"guesses": upstream * loss.get_grad(guesses, truths)},
        {"guesses": guesses},
    )


def main() -> None:
    print(f"thinc {thinc.about.__version__}, numpy {np.__version__}\n")
    print(f"{'layer':24}{'backend':10}{'verdict':13}finding")
    wrong: dict[str, Report] = {}
    for name in LAYERS:
        for backend, ops in BACKENDS.items():
            try:
                report = check_layer(name, ops)
            except CheckError as error:
                print(f"{name:24}{backend:10}{'raises':13}{error.problem}")
                continue
            show(name, backend, report, wrong)
    generator = np.random.default_rng(0)
    one_hot, real = np.eye(OUT)[[0, 2, 1, 1]], generator.uniform(0.1, 1, size=(4, OUT))
    for kind, truths in (
        (api.CategoricalCrossentropy, one_hot),
        (api.L2Distance, real),
        (api.CosineDistance, real),
    ):
        show(kind.__name__, "", check_loss(kind(), truths, generator), wrong)
    sums = softmax_sums()
    print(
        f"\nMultiSoftmax's gradient is that of what it computes, but the parts of a row add up to {sums}, not to 1 and 1"
    )
    for name, report in wrong.items():
        print(f"\n--- {name}\n{report}")


def softmax_sums() -> str:
    """Return what the two parts of a row of MultiSoftmax's output add up to."""
    layer = Layer(*LAYERS["MultiSoftmax"][:1], rows(np.random.default_rng(0)), np.float64, api.NumpyOps)
    (output,) = layer.forward(**layer.inputs(np.random.default_rng(1)))
    return f"{output[0, :2].sum():.2f} and {output[0, 2:].sum():.2f}"


def show(name: str, backend: str, report: Report, wrong: dict[str, Report]) -> None:
    """Print one line of the table; keep a wrong one's report, once when both backends have the same finding."""
    found = ", ".join(f"{finding.code}: d{finding.argument}" for finding in report.findings)
    print(f"{name:24}{backend:10}{report.verdict:13}{found}".rstrip())
    codes = [finding.code for finding in report.findings]
    same = any(
        key.startswith(f"{name}, N") and codes == [finding.code for finding in kept.findings]
        for key, kept in wrong.items()
    )
    if report.verdict == "wrong" and not same:
        wrong[f"{name}, {backend}".removesuffix(", ")] = report


if __name__ == "__main__":
    sys.exit(main())
