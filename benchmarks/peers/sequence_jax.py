"""JAX on an LSTM: a scan over times, in a scan over the steps of an epoch."""

# ruff: noqa: D102 - methods are described in `peers.Peer`

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from peers.jax_steps import adam
from peers.sequences import Sequences
from peers.workload import Array


class Scan:
    """One compiled function for the epoch."""

    def __init__(self, workload: Sequences) -> None:
        self.workload, self.facts = workload, {"version": jax.__version__}
        self.x, self.t = map(jnp.asarray, workload.data())
        W, V = map(jnp.asarray, workload.weights())
        weights = {"W": W, "U": jnp.asarray(workload.recurrent()), "b": jnp.zeros(W.shape[1])}
        weights |= {"V": V, "c": jnp.zeros(V.shape[1])}
        zeros = jax.tree.map(jnp.zeros_like, weights)
        self.state = {"weights": weights, "m": zeros, "v": zeros, "step": jnp.zeros((), jnp.int32)}
        self.generator = np.random.default_rng(0)
        self.compiled = jax.jit(self.all)

    def all(self, state: Any, x: jax.Array, t: jax.Array, order: jax.Array) -> Any:
        """Do all steps of an epoch."""
        return jax.lax.scan(lambda state, rows: (self.step(state, x[rows], t[rows]), None), state, order)[0]

    def step(self, state: Any, x: jax.Array, t: jax.Array) -> Any:
        """Return the state after one step of Adam."""

        def loss(weights: Any) -> jax.Array:
            shares = jax.nn.log_softmax(forward(weights, x))
            return -jnp.take_along_axis(shares, t[:, None], 1).mean()

        gradients = jax.grad(loss)(state["weights"])
        rate, after = self.workload.rate, state["step"] + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["m"], gradients)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state["v"], gradients)
        weights = jax.tree.map(lambda w, m, v: adam(w, m, v, rate, after), state["weights"], m, v)
        return {"weights": weights, "m": m, "v": v, "step": after}

    def epoch(self) -> None:
        rows = self.generator.permutation(self.workload.rows).astype(np.int32)
        order = jnp.asarray(rows.reshape(self.workload.steps, self.workload.batch))
        self.state = jax.block_until_ready(self.compiled(self.state, self.x, self.t, order))

    def scores(self, x: Array) -> Array | None:
        return np.asarray(forward(self.state["weights"], jnp.asarray(x)))


def forward(weights: Any, x: jax.Array) -> jax.Array:
    """Return the scores of the classes; what x says is one product for all times."""
    z = (x @ weights["W"] + weights["b"]).swapaxes(0, 1)

    def step(carried: Any, z_t: jax.Array) -> Any:
        h, c = carried
        i, f, g, o = jnp.split(z_t + h @ weights["U"], 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), None

    start = jnp.zeros((x.shape[0], weights["U"].shape[0]))
    (h, _), _ = jax.lax.scan(step, (start, start), z)
    return h @ weights["V"] + weights["c"]
