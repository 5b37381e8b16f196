"""A network beside the PyTorch module it became: answers, loss, gradients, and running statistics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import SGD, Network, train
from handgrad.interop import to_torch, to_torch_loss
from handgrad.interop.torch_state import state_tensors
from handgrad.rules.primitives import uniform

from .networks import Drawn

Array = NDArray[Any]


def distance(found: Any, expected: Array, scale: float = 0.0) -> float:
    """Return how far apart two arrays are, relative to the largest number or to a scale that is larger."""
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max(initial=0) / max(np.abs(expected).max(initial=0), scale, 1e-30))


class Pair:
    """A drawn network, its module, and its loss.

    Attributes
    ----------
    module, loss
        What the network was converted to; a test may change them to see it noticed.
    """

    def __init__(self, torch: Any, made: Drawn) -> None:
        self.torch, self.made, self.network = torch, made, made.network
        self.module, self.loss = to_torch(made.network), to_torch_loss(made.network)

    @property
    def x(self) -> Any:
        """The rows, in the module's type, or as indices."""
        index = self.network.entries is not None
        return self.torch.tensor(self.made.x if index else self.made.x.astype(self.network.dtype))

    @property
    def t(self) -> Any:
        """The targets, in the loss's type."""
        t = self.made.t
        return self.torch.tensor(t if t.dtype.kind == "i" else t.astype(self.network.dtype))

    def distances(self) -> dict[str, float]:
        """Return how far apart everything is that both compute, outside training and in it."""
        return {**self.outside_training(), **self.in_training()}

    def outside_training(self) -> dict[str, float]:
        """Compare the outputs, and the gradients of what runs outside training."""
        output = self.module.eval()(self.x)
        found = {"output": distance(output.detach().numpy(), self.network.output(self.made.x))}
        self.backward(output)
        gradients = evaluation_gradients(self.network, self.made.x, self.made.t)
        return found | {f"{name} outside training": d for name, d in self.of_gradients(gradients).items()}

    def backward(self, output: Any) -> Any:
        """Return PyTorch's loss, with its gradients in the module."""
        classes = isinstance(self.loss, self.torch.nn.CrossEntropyLoss)
        loss = self.loss(*(v.movedim(-1, 1) if classes and v.ndim > 2 else v for v in (output, self.t)))
        self.module.zero_grad()
        loss.backward()
        return loss.detach().numpy()

    def of_gradients(self, gradients: dict[str, Array]) -> dict[str, float]:
        """Compare the module's gradients with these."""
        # the gradient of a bias before a BatchNorm is nothing but rounding: it is measured by the largest of all
        share = 1 if self.network.dtype == "float32" else 1e-3
        scale = share * max(float(np.abs(gradient).max()) for gradient in gradients.values())
        parameters, found = dict(self.module.named_parameters()), {}
        for name, gradient in state_tensors(self.network, gradients).items():
            found[f"d{name}"] = distance(parameters[name].grad.numpy(), gradient.whole(), scale)
        return found

    def in_training(self) -> dict[str, float]:
        """Compare the loss, every gradient, and the running statistics after one step with all rows."""
        with masks_of(self.torch, self.network):
            output = self.module.train()(self.x)
        loss = self.backward(output)
        network = copy_of(self.network)
        found = self.of_gradients(network.gradients(self.made.x, self.made.t, seed=5))
        history = train(
            network, self.made.x, self.made.t, epochs=1, batch_size=1000, optimiser=SGD(1e-9), seed=5,
            shuffle=False, engine="reference",
        )  # fmt: skip
        found |= {"loss": distance(loss, np.array(history.epochs[0].loss))}
        state = self.module.state_dict()
        for name, kept in state_tensors(network, network.states).items():
            if "running" in name:
                found[name] = distance(state[name].numpy(), kept.whole())
        return found


def evaluation_gradients(network: Network, x: Array, t: Array) -> dict[str, Array]:
    """Return the gradients of the loss with every rule as it is outside training, by the rules' own backwards."""
    index = network.entries is not None
    values: dict[str, Any] = {**network.arrays, "x": x if index else x.astype(network.dtype)}
    values["t"] = t if t.dtype.kind == "i" else t.astype(network.dtype)
    applied = []
    for node in network.nodes():
        rule = node.rule.evaluation if node.part == "forward" else node.rule
        names = [node.arguments[argument].name for argument in rule.forward.arguments]
        options = {name: node.options[name] for name in rule.forward.options}
        values[node.output.name] = rule(*(values[name] for name in names), **options)
        applied.append((node, rule, names, options))
    gradients: dict[str, Any] = {applied[-1][0].output.name: np.ones((), network.dtype)}
    for node, rule, names, options in reversed(applied):
        if rule.constant or node.output.name not in gradients:
            continue
        found = rule.gradients(gradients[node.output.name], *(values[name] for name in names), **options)
        for argument, gradient in found.items():
            name = node.arguments[argument].name
            gradients[name] = gradients.get(name, 0) + gradient
    return {name: gradients[name] for name in network.parameters}


def copy_of(network: Network) -> Network:
    """Return a network of the same layers with copies of the numbers; its Standardise is not fitted again."""
    made = Network(*network.body.layers, loss=network.loss, inputs=network.row, dtype=network.dtype)
    for name, array in network.arrays.items():
        made.arrays[name][...] = array
    made.standardise = lambda x, t=None, rows=None: None  # type: ignore[method-assign]
    return made


@contextmanager
def masks_of(torch: Any, network: Network) -> Iterator[None]:
    """Let PyTorch's dropout draw handgrad's masks: seed 5, step 1."""
    streams = iter([node.stream for node in network.nodes() if node.rule.name == "dropout"])

    def dropout(x: Any, p: float, training: bool, inplace: bool) -> Any:
        if not training:
            return x
        kept = uniform(tuple(x.shape), (5, 1, next(streams))) >= p
        return x * torch.tensor(kept) / (1 - p)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.nn.functional, "dropout", dropout)
        yield
