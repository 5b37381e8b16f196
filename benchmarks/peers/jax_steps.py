"""JAX: each step compiled, or the whole epoch in `lax.scan`. Its updates are written out: it has none itself."""

# ruff: noqa: D102 - methods are described in `peers.Peer`

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from peers.workload import Array, Workload

State = dict[str, Any]


class Jit:
    """A compiled function for each step, which gathers its rows."""

    def __init__(self, workload: Workload) -> None:
        self.workload, self.facts = workload, {"version": jax.__version__}
        self.x, self.t = map(jnp.asarray, workload.data())
        self.state = first_state(workload)
        self.generator = np.random.default_rng(0)
        self.compiled = jax.jit(self.one, donate_argnums=0)

    def one(self, state: State, x: jax.Array, t: jax.Array, order: jax.Array, number: jax.Array) -> State:
        """Do step ``number`` of an epoch."""
        return step(self.workload, state, x, t, order[number])

    def order(self) -> jax.Array:
        """Return the rows of each batch, in a new order."""
        rows = self.generator.permutation(self.workload.rows).astype(np.int32)
        return jnp.asarray(rows.reshape(self.workload.steps, self.workload.batch))

    def epoch(self) -> None:
        order = self.order()
        for number in range(self.workload.steps):
            self.state = self.compiled(self.state, self.x, self.t, order, number)
        jax.block_until_ready(self.state)

    def scores(self, x: Array) -> Array | None:
        logits, _ = forward(self.workload, self.state["weights"], self.state["running"], jnp.asarray(x), None)
        return np.asarray(logits)


class Scan(Jit):
    """One compiled function for the epoch."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.compiled = jax.jit(self.all, donate_argnums=0)

    def all(self, state: State, x: jax.Array, t: jax.Array, order: jax.Array) -> State:
        """Do all steps of an epoch."""
        return jax.lax.scan(lambda state, rows: (step(self.workload, state, x, t, rows), None), state, order)[
            0
        ]

    def epoch(self) -> None:
        self.state = jax.block_until_ready(self.compiled(self.state, self.x, self.t, self.order()))


def first_state(workload: Workload) -> State:
    """Return weights, running statistics, the optimiser's moments, and the number of the step."""
    weights, running = [], []
    for number, W in enumerate(workload.weights(), 1):
        layer = {"W": jnp.asarray(W), "b": jnp.zeros(W.shape[1])}
        if workload.batch_norm and number < len(workload.sizes) - 1:
            layer |= {"gamma": jnp.ones(W.shape[1]), "beta": jnp.zeros(W.shape[1])}
            running.append((jnp.zeros(W.shape[1]), jnp.ones(W.shape[1])))
        weights.append(layer)
    state: State = {"weights": weights, "running": running, "step": jnp.zeros((), jnp.int32)}
    if workload.optimiser == "adam":
        state |= {name: jax.tree.map(jnp.zeros_like, weights) for name in ("m", "v")}
    return state


def forward(workload: Workload, weights: Any, running: Any, h: jax.Array, step: Any) -> tuple[jax.Array, Any]:
    """Return logits and new running statistics; without the number of a step, as they are for predictions."""
    changed = []
    for number, layer in enumerate(weights):
        z = h @ layer["W"] + layer["b"]
        if number == len(weights) - 1:
            break
        if workload.batch_norm:
            mean, variance = old_mean, old_variance = running[number]
            if step is not None:
                mean, variance = z.mean(0), z.var(0)
                changed.append((0.9 * old_mean + 0.1 * mean, 0.9 * old_variance + 0.1 * variance))
            z = layer["gamma"] * (z - mean) * jax.lax.rsqrt(variance + 1e-5) + layer["beta"]
        h = jax.nn.relu(z)
        if workload.dropout and step is not None:
            key = jax.random.fold_in(jax.random.key(number), step)
            h = jnp.where(jax.random.bernoulli(key, 0.5, h.shape), h / 0.5, 0)
    return z, changed


def step(workload: Workload, state: State, x: jax.Array, t: jax.Array, rows: jax.Array) -> State:
    """Return the state after one step."""

    def loss(weights: Any) -> tuple[jax.Array, Any]:
        logits, running = forward(workload, weights, state["running"], x[rows], state["step"])
        shares = jax.nn.log_softmax(logits)
        return -jnp.take_along_axis(shares, t[rows][:, None], 1).mean(), running

    gradients, running = jax.grad(loss, has_aux=True)(state["weights"])
    after = {"running": running, "step": state["step"] + 1}
    if workload.optimiser == "sgd":
        weights = jax.tree.map(lambda w, g: w - workload.rate * g, state["weights"], gradients)
        return after | {"weights": weights}
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["m"], gradients)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state["v"], gradients)
    update = partial(adam, rate=workload.rate, step=after["step"])
    return after | {"weights": jax.tree.map(update, state["weights"], m, v), "m": m, "v": v}


def adam(w: jax.Array, m: jax.Array, v: jax.Array, rate: float, step: jax.Array) -> jax.Array:
    """Return a weight after Adam's update."""
    return w - rate / (1 - 0.9**step) * m / (jnp.sqrt(v / (1 - 0.999**step)) + 1e-8)
