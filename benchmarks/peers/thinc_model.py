"""thinc, with its own batches, loss and optimisers."""

# ruff: noqa: D102 - methods are described in `peers.Peer`

from __future__ import annotations

import numpy as np
from thinc.about import __version__
from thinc.api import SGD, Adam, CategoricalCrossentropy, Relu, Softmax, chain

from peers.workload import Array, UnavailableError, Workload


class Thinc:
    """A chain of layers, trained as its documentation does; targets are one-hot already."""

    def __init__(self, workload: Workload) -> None:
        if workload.batch_norm:
            raise UnavailableError("has no batch norm")
        self.workload, self.facts = workload, {"version": __version__}
        self.x, t = workload.data()
        self.t = np.eye(workload.sizes[-1], dtype=np.float32)[t]
        dropout = 0.5 if workload.dropout else None
        hidden = [Relu(size, dropout=dropout) for size in workload.sizes[1:-1]]
        self.model = chain(*hidden, Softmax(workload.sizes[-1]))
        self.model.initialize(X=self.x[:2], Y=self.t[:2])
        linear = [node for node in self.model.walk(order="dfs_pre") if node.has_param("W")]
        for node, W in zip(linear, workload.weights(), strict=True):
            node.set_param("W", np.ascontiguousarray(W.T))
            node.set_param("b", np.zeros(W.shape[1], np.float32))
        optimiser = {"sgd": SGD, "adam": Adam}[workload.optimiser]
        self.optimiser = optimiser(workload.rate, grad_clip=0.0, use_averages=False)
        self.loss = CategoricalCrossentropy()

    def epoch(self) -> None:
        for x, t in self.model.ops.multibatch(self.workload.batch, self.x, self.t, shuffle=True):
            shares, backward = self.model.begin_update(x)
            backward(self.loss.get_grad(shares, t))
            self.model.finish_update(self.optimiser)

    def scores(self, x: Array) -> Array | None:
        return np.log(np.maximum(self.model.predict(x), 1e-30))
