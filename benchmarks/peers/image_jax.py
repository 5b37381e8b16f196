"""JAX on networks of images: each step compiled, or the whole epoch in `lax.scan`; channels are last."""

# ruff: noqa: D102 - methods are described in `peers.Peer`

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from peers.images import BLOCKS, Images
from peers.workload import Array

MOMENTUM, EPSILON = 0.1, 1e-5


class Jit:
    """A compiled function for each step."""

    def __init__(self, workload: Images) -> None:
        self.workload, self.facts = workload, {"version": jax.__version__}
        self.x, self.t = map(jnp.asarray, workload.data())
        self.state = first_state(workload)
        self.generator = np.random.default_rng(0)
        self.compiled = jax.jit(
            lambda state, x, t, rows: self.step(state, x[rows], t[rows]), donate_argnums=0
        )

    def step(self, state: Any, x: jax.Array, t: jax.Array) -> Any:
        """Return the state after one step of SGD."""

        def loss(weights: Any) -> tuple[jax.Array, Any]:
            logits, running = forward(self.workload, weights, state["running"], x, training=True)
            return -jnp.take_along_axis(jax.nn.log_softmax(logits), t[:, None], 1).mean(), running

        gradients, running = jax.grad(loss, has_aux=True)(state["weights"])
        weights = jax.tree.map(lambda w, g: w - self.workload.rate * g, state["weights"], gradients)
        return {"weights": weights, "running": running}

    def order(self) -> Array:
        """Return the rows of each batch, in a new order."""
        rows = self.generator.permutation(self.workload.rows).astype(np.int32)
        return rows.reshape(self.workload.steps, self.workload.batch)

    def epoch(self) -> None:
        for rows in self.order():
            self.state = self.compiled(self.state, self.x, self.t, rows)
        jax.block_until_ready(self.state)

    def scores(self, x: Array) -> Array | None:
        weights, running = self.state["weights"], self.state["running"]
        return np.asarray(forward(self.workload, weights, running, jnp.asarray(x), training=False)[0])


class Scan(Jit):
    """One compiled function for the epoch."""

    def __init__(self, workload: Images) -> None:
        super().__init__(workload)
        self.compiled = jax.jit(self.all, donate_argnums=0)

    def all(self, state: Any, x: jax.Array, t: jax.Array, order: jax.Array) -> Any:
        """Do all steps of an epoch."""
        return jax.lax.scan(lambda state, rows: (self.step(state, x[rows], t[rows]), None), state, order)[0]

    def epoch(self) -> None:
        order = jnp.asarray(self.order())
        self.state = jax.block_until_ready(self.compiled(self.state, self.x, self.t, order))


def first_state(workload: Images) -> Any:
    """Return weights with their biases or batch norms, and running statistics, layer by layer."""
    weights, running = [], []
    for W in map(jnp.asarray, workload.weights()):
        outputs = W.shape[-1]
        layer = {"W": W}
        if workload.network == "LeNet-5" or W.ndim == 2:
            layer["b"] = jnp.zeros(outputs)
        elif W.shape[0] == 3:
            layer |= {"gamma": jnp.ones(outputs), "beta": jnp.zeros(outputs)}
        weights.append(layer)
        running.append((jnp.zeros(outputs), jnp.ones(outputs)) if "gamma" in layer else None)
    return {"weights": weights, "running": running}


def forward(
    workload: Images, weights: Any, running: Any, h: jax.Array, *, training: bool
) -> tuple[jax.Array, Any]:
    """Return logits and new running statistics."""
    layers, changed = iter(zip(weights, running, strict=True)), []

    def convolved(h: jax.Array, stride: int = 1, padding: int = 0) -> jax.Array:
        layer, statistics = next(layers)
        around = [(padding, padding)] * 2
        z = jax.lax.conv_general_dilated(
            h, layer["W"], (stride, stride), around, dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        if "b" in layer:
            z = z + layer["b"]
        if statistics is not None:
            mean, variance = statistics
            if training:
                old_mean, old_variance = statistics
                mean, variance = z.mean((0, 1, 2)), z.var((0, 1, 2))
                statistics = (
                    (1 - MOMENTUM) * old_mean + MOMENTUM * mean,
                    (1 - MOMENTUM) * old_variance + MOMENTUM * variance,
                )
            z = layer["gamma"] * (z - mean) * jax.lax.rsqrt(variance + EPSILON) + layer["beta"]
        changed.append(statistics)
        return z

    def linear(h: jax.Array) -> jax.Array:
        layer, statistics = next(layers)
        changed.append(statistics)
        return h @ layer["W"] + layer["b"]

    if workload.network == "LeNet-5":
        for padding in (2, 0):
            h = _pooled(jax.nn.relu(convolved(h, 1, padding)))
        h = h.reshape(len(h), -1)
        for _ in range(2):
            h = jax.nn.relu(linear(h))
        return linear(h), changed
    h = jax.nn.relu(convolved(h, 1, 1))
    for _, _, stride in BLOCKS:
        f = convolved(jax.nn.relu(convolved(h, stride, 1)), 1, 1)
        h = jax.nn.relu(f + (convolved(h, stride) if stride != 1 else h))
    return linear(h.mean((1, 2))), changed


def _pooled(h: jax.Array) -> jax.Array:
    return jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
