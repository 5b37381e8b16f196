"""The activations, losses and layers of numpy-ml, checked as they are published.

A layer keeps what it was called with; `backward` takes the upstream gradient, returns the gradient of the input
and adds those of the parameters to `layer.gradients`. An activation has `fn` and `grad`, its slope; a loss has
`loss` and `grad`, which may go through the activation before it: then that is what is checked.

numpy-ml 0.1.2, of 2020, looks for `collections.Hashable`, which Python 3.10 moved; it is put back before the
import. Nothing of the package is changed.
"""

from __future__ import annotations

import collections
import collections.abc
import io
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib.metadata import version

import numpy as np

from handgrad.checking import CheckError, Report, check

collections.Hashable = collections.abc.Hashable
with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
    warnings.simplefilter("ignore")
    from numpy_ml.neural_nets import activations, layers, losses

Inputs = dict[str, np.ndarray]
Case = Callable[[np.random.Generator], Report]
ROWS, IN, OUT = 5, 4, 3


def layer(make: Callable[[], layers.LayerBase], *shapes: tuple[int, ...], listed: bool = False) -> Case:
    """Return a check of a layer that is called with arrays of these shapes, or with a list of them."""

    def case(generator: np.random.Generator) -> Report:
        names = ["X"] if len(shapes) == 1 else [f"X{k}" for k in range(len(shapes))]
        inputs = {name: generator.normal(size=shape) for name, shape in zip(names, shapes, strict=True)}
        kept = parameters(make, inputs, listed)
        inputs |= {name: generator.normal(size=value.shape) for name, value in kept.items()}

        def run(values: Inputs) -> tuple[layers.LayerBase, np.ndarray]:
            given = {name: values[name] for name in names}
            fresh = made(make, given, {name: values[name] for name in kept}, listed)
            return fresh, call(fresh, given, listed)

        def forward(**values: np.ndarray) -> np.ndarray:
            return run(values)[1]

        def backward(upstream: np.ndarray, **values: np.ndarray) -> Inputs:
            fresh, _ = run(values)
            found = fresh.backward(upstream)
            parts = found if isinstance(found, list | tuple) else [found]
            return dict(zip(names, parts, strict=True)) | {name: fresh.gradients[name] for name in kept}

        return check(forward, backward, inputs)

    return case


def made(
    make: Callable[[], layers.LayerBase], inputs: Inputs, values: Inputs, listed: bool
) -> layers.LayerBase:
    """Return a layer of its own with these parameters; it makes room for them when it is first called."""
    np.random.seed(0)  # noqa: NPY002 - what it initialises them with
    fresh = make()
    if values:
        call(fresh, inputs, listed)
        fresh.flush_gradients()
        # flush_gradients leaves [] where backward looks for None, and a cell would raise after its first update
        state = fresh.derived_variables
        state.update({name: None for name in state if name.endswith("accumulator")})
        fresh.parameters.update(values)
    return fresh


def parameters(make: Callable[[], layers.LayerBase], inputs: Inputs, listed: bool) -> Inputs:
    """Return a layer's parameters that have a gradient."""
    fresh = make()
    call(fresh, inputs, listed)
    return {
        name: value
        for name, value in fresh.parameters.items()
        if name in fresh.gradients and value is not None
    }


def call(fresh: layers.LayerBase, inputs: Inputs, listed: bool) -> np.ndarray:
    """Call a layer with its inputs; an LSTM's cell returns its memory too, for which backward takes nothing."""
    output = fresh.forward(list(inputs.values())) if listed else fresh.forward(*inputs.values())
    return output[0] if isinstance(output, tuple) else output


def embedding(pool: str | None, ids: list[list[int]]) -> Case:
    """Return a check of an embedding: of its table, its only gradient."""
    x = np.array(ids)

    def run(W: np.ndarray) -> tuple[layers.Embedding, np.ndarray]:
        fresh = layers.Embedding(OUT, 6, pool=pool)
        fresh.parameters["W"] = W
        return fresh, fresh.forward(x)

    def backward(upstream: np.ndarray, W: np.ndarray) -> Inputs:
        fresh, _ = run(W)
        fresh.backward(upstream)
        return {"W": fresh.gradients["W"]}

    return lambda generator: check(lambda W: run(W)[1], backward, {"W": generator.normal(size=(6, OUT))})


def activation(make: Callable[[], activations.ActivationBase]) -> Case:
    """Return a check of an activation: upstream times its slope."""

    def case(generator: np.random.Generator) -> Report:
        act = make()
        return check(
            lambda x: act.fn(x),
            lambda upstream, x: {"x": upstream * act.grad(x)},
            {"x": 2 * generator.normal(size=(ROWS, IN))},
        )

    return case


def squared_error(generator: np.random.Generator) -> Report:
    """Check the squared error behind a tanh, which its `grad` includes."""
    act = activations.Tanh()
    return check(
        lambda z, y: np.asarray(losses.SquaredError.loss(y, act(z))),
        lambda upstream, z, y: {"z": upstream * losses.SquaredError.grad(y, act(z), z, act)},
        {"z": generator.normal(size=(ROWS, IN)), "y": generator.normal(size=(ROWS, IN))},
    )


def cross_entropy(generator: np.random.Generator) -> Report:
    """Check the cross-entropy behind a softmax, which its `grad` includes."""

    def softmax(z: np.ndarray) -> np.ndarray:
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    return check(
        lambda z, y: np.asarray(losses.CrossEntropy.loss(y, softmax(z))),
        lambda upstream, z, y: {"z": upstream * losses.CrossEntropy.grad(y, softmax(z))},
        {"z": generator.normal(size=(ROWS, IN)), "y": np.eye(IN, dtype=int)[[0, 2, 1, 3, 2]]},
    )


def vae_loss(generator: np.random.Generator) -> Report:
    """Check the variational bound, whose `grad` returns three gradients."""

    def backward(upstream: np.ndarray, y_pred: np.ndarray, mean: np.ndarray, log_var: np.ndarray) -> Inputs:
        d_pred, d_log_var, d_mean = losses.VAELoss.grad(y, y_pred, mean, log_var)
        return {"y_pred": upstream * d_pred, "mean": upstream * d_mean, "log_var": upstream * d_log_var}

    y = generator.uniform(size=(ROWS, IN)).round()
    inputs = {"y_pred": generator.uniform(0.1, 0.9, size=(ROWS, IN))}
    inputs |= {name: generator.normal(size=(ROWS, OUT)) for name in ("mean", "log_var")}
    return check(
        lambda y_pred, mean, log_var: np.asarray(losses.VAELoss.loss(y, y_pred, mean, log_var)),
        backward,
        inputs,
    )


def critic(generator: np.random.Generator) -> Report:
    """Check the loss of a Wasserstein critic."""
    loss = losses.WGAN_GPLoss()

    def backward(upstream: np.ndarray, fake: np.ndarray, real: np.ndarray, slope: np.ndarray) -> Inputs:
        names = ("fake", "real", "slope")
        return {name: upstream * d for name, d in zip(names, loss.grad(fake, "C", real, slope), strict=True)}

    inputs = {"fake": generator.normal(size=ROWS), "real": generator.normal(size=OUT)}
    inputs |= {"slope": generator.normal(size=(ROWS, IN))}
    return check(lambda fake, real, slope: np.asarray(loss.loss(fake, "C", real, slope)), backward, inputs)


def critics_generator(generator: np.random.Generator) -> Report:
    """Check the loss of the generator that a Wasserstein critic judges."""
    loss = losses.WGAN_GPLoss()
    return check(
        lambda fake: np.asarray(loss.loss(fake, "G")),
        lambda upstream, fake: {"fake": upstream * loss.grad(fake, "G")},
        {"fake": generator.normal(size=ROWS)},
    )


ROW, SEQUENCE, IMAGE = (ROWS, IN), (2, IN, 5), (2, 5, 6, 3)

CASES: dict[str, Case] = {
    **{
        f"activations.{kind.__name__}": activation(kind)
        for kind in (
            activations.Sigmoid,
            activations.ReLU,
            activations.LeakyReLU,
            activations.Tanh,
            activations.Affine,
            activations.Identity,
            activations.ELU,
            activations.Exponential,
            activations.SELU,
            activations.HardSigmoid,
            activations.SoftPlus,
        )
    },
    "losses.SquaredError": squared_error,
    "losses.CrossEntropy": cross_entropy,
    "losses.VAELoss": vae_loss,
    "losses.WGAN_GPLoss, critic": critic,
    "losses.WGAN_GPLoss, generator": critics_generator,
    "FullyConnected": layer(lambda: layers.FullyConnected(OUT, "Tanh"), ROW),
    "Embedding": embedding(None, [[1, 4, 1], [0, 3, 1]]),
    "Embedding, sum": embedding("sum", [[1, 4, 2], [0, 3, 1]]),
    "Embedding, sum, an id twice": embedding("sum", [[1, 4, 1], [0, 3, 1]]),
    "Embedding, mean, an id twice": embedding("mean", [[1, 4, 1], [0, 3, 1]]),
    "Softmax": layer(layers.Softmax, ROW),
    "SparseEvolution": layer(lambda: layers.SparseEvolution(OUT, act_fn="Tanh"), ROW),
    "Add": layer(lambda: layers.Add("Tanh"), ROW, ROW, ROW, listed=True),
    "Multiply": layer(lambda: layers.Multiply("Tanh"), ROW, ROW, ROW, listed=True),
    "Flatten": layer(layers.Flatten, IMAGE),
    "BatchNorm1D": layer(layers.BatchNorm1D, ROW),
    "BatchNorm2D": layer(layers.BatchNorm2D, IMAGE),
    "LayerNorm1D": layer(layers.LayerNorm1D, ROW),
    "LayerNorm2D": layer(layers.LayerNorm2D, IMAGE),
    "DotProductAttention": layer(layers.DotProductAttention, (2, 3, 4), (2, 5, 4), (2, 5, 2)),
    "Conv1D": layer(lambda: layers.Conv1D(3, 2, act_fn="Tanh"), (2, 6, 4)),
    "Conv1D, strided": layer(lambda: layers.Conv1D(3, 2, pad=1, stride=2, act_fn="Tanh"), (2, 6, 4)),
    "Conv2D": layer(lambda: layers.Conv2D(2, (2, 3), act_fn="Tanh"), IMAGE),
    "Conv2D, strided": layer(lambda: layers.Conv2D(2, (2, 3), pad=1, stride=2, act_fn="Tanh"), IMAGE),
    "Conv2D, dilated": layer(lambda: layers.Conv2D(2, (2, 2), dilation=1, act_fn="Tanh"), IMAGE),
    "Deconv2D": layer(lambda: layers.Deconv2D(2, (2, 3), act_fn="Tanh"), (2, 3, 4, 3)),
    "Pool2D, max": layer(lambda: layers.Pool2D((2, 2), stride=2), IMAGE),
    "Pool2D, average": layer(lambda: layers.Pool2D((2, 2), stride=1, mode="average"), IMAGE),
    "RNNCell": layer(lambda: layers.RNNCell(OUT), ROW),
    "RNN": layer(lambda: layers.RNN(OUT), SEQUENCE),
    "LSTMCell": layer(lambda: layers.LSTMCell(OUT), ROW),
    "LSTM": layer(lambda: layers.LSTM(OUT), SEQUENCE),
}


def main() -> None:
    print(f"numpy-ml {version('numpy-ml')}, numpy {np.__version__}\n")
    print(f"{'':34}{'verdict':14}finding")
    wrong = {}
    for name, case in CASES.items():
        try:
            report = case(np.random.default_rng(0))
        except (CheckError, ValueError, TypeError, AssertionError, AttributeError) as error:
            print(f"{name:34}{'raises':14}{str(error).splitlines()[0]}")
            continue
        found = ", ".join(f"{finding.code}: d{finding.argument}" for finding in report.findings)
        print(f"{name:34}{report.verdict:14}{found}".rstrip())
        if report.verdict != "right":
            wrong[name] = report
    for name, report in wrong.items():
        print(f"\n--- {name}\n{report}")


if __name__ == "__main__":
    sys.exit(main())
