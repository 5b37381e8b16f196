"""JAX on the character GPT: the whole epoch in `lax.scan`."""

# ruff: noqa: D102 - methods are described in `peers.Peer`

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from peers.jax_steps import adam
from peers.texts import CLIP_NORM, WEIGHT_DECAY, Texts
from peers.workload import Array


class Scan:
    """One compiled function for the epoch."""

    def __init__(self, workload: Texts) -> None:
        self.workload, self.facts = workload, {"version": jax.__version__}
        self.x, self.t = (jnp.asarray(array, jnp.int32) for array in workload.data())
        weights = first_weights(workload)
        zeros = jax.tree.map(jnp.zeros_like, weights)
        self.state = {"weights": weights, "m": zeros, "v": zeros, "step": jnp.zeros((), jnp.int32)}
        self.generator = np.random.default_rng(0)
        self.compiled = jax.jit(self.all)

    def all(self, state: Any, x: jax.Array, t: jax.Array, order: jax.Array) -> Any:
        """Do all steps of an epoch."""
        return jax.lax.scan(lambda state, rows: (self.step(state, x[rows], t[rows]), None), state, order)[0]

    def step(self, state: Any, x: jax.Array, t: jax.Array) -> Any:
        """Return the state after one step of AdamW."""

        def loss(weights: Any) -> jax.Array:
            shares = jax.nn.log_softmax(forward(self.workload, weights, x))
            return -jnp.take_along_axis(shares, t[..., None], -1).mean()

        gradients = jax.grad(loss)(state["weights"])
        norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree.leaves(gradients)))
        gradients = jax.tree.map(lambda g: g * jnp.minimum(1.0, CLIP_NORM / norm), gradients)
        rate, after = self.workload.rate, state["step"] + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["m"], gradients)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state["v"], gradients)
        weights = jax.tree.map(
            lambda w, m, v: adam(w * (1 - rate * WEIGHT_DECAY), m, v, rate, after), state["weights"], m, v
        )
        return {"weights": weights, "m": m, "v": v, "step": after}

    def epoch(self) -> None:
        rows = self.generator.permutation(self.workload.rows).astype(np.int32)
        order = jnp.asarray(rows.reshape(self.workload.steps, self.workload.batch))
        self.state = jax.block_until_ready(self.compiled(self.state, self.x, self.t, order))

    def scores(self, x: Array) -> Array | None:
        return np.asarray(forward(self.workload, self.state["weights"], jnp.asarray(x)))


def first_weights(workload: Texts) -> Any:
    """Return the embeddings, each block's arrays, and the last layer's."""
    weights = [{"W": jnp.asarray(W), "b": jnp.zeros(W.shape[1])} for W in workload.weights()]

    def norm() -> Any:
        return {"gamma": jnp.ones(workload.width), "beta": jnp.zeros(workload.width)}

    blocks = []
    for k in range(workload.layers):
        q, key, v, *rest = weights[6 * k : 6 * k + 6]
        joined = jax.tree.map(lambda *parts: jnp.concatenate(parts, axis=-1), q, key, v)
        blocks.append({"norms": [norm(), norm()], "maps": [joined, *rest]})
    e, p = map(jnp.asarray, workload.tables())
    return {"E": e, "P": p, "blocks": blocks, "norm": norm(), "last": weights[-1]}


def forward(workload: Texts, weights: Any, x: jax.Array) -> jax.Array:
    """Return the scores of what follows each character."""
    h = weights["E"][x] + weights["P"]
    n, places, d = h.shape
    seen = jnp.tri(places) > 0
    for block in weights["blocks"]:
        parts = jnp.split(_mapped(_normed(h, block["norms"][0]), block["maps"][0]), 3, axis=-1)
        q, k, v = (part.reshape(n, places, workload.heads, -1).swapaxes(1, 2) for part in parts)
        scores = q @ k.mT / np.sqrt(d / workload.heads)
        found = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf)) @ v
        h = h + _mapped(found.swapaxes(1, 2).reshape(n, places, d), block["maps"][1])
        inner = jax.nn.gelu(_mapped(_normed(h, block["norms"][1]), block["maps"][2]), approximate=True)
        h = h + _mapped(inner, block["maps"][3])
    return _mapped(_normed(h, weights["norm"]), weights["last"])


def _mapped(h: jax.Array, layer: Any) -> jax.Array:
    return h @ layer["W"] + layer["b"]


def _normed(h: jax.Array, layer: Any) -> jax.Array:
    centred = h - h.mean(-1, keepdims=True)
    return (
        layer["gamma"] * centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
        + layer["beta"]
    )
