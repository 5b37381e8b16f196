"""Many networks of one shape as one: JAX's vmap of the lines, on one device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from handgrad.engines.engine import Array
from handgrad.engines.jax_engine import JaxEngine, uninterrupted
from handgrad.program import Program


class ManyOnJax:
    """Programs that run on the arrays of many networks at once, and on rows that are sent once.

    Attributes
    ----------
    kept
        What the program keeps of all networks, on the device, with an axis of networks first.
    """

    def __init__(self, arrays: Sequence[Mapping[str, Array]]) -> None:
        self.engine, self.arrays = JaxEngine(devices=1), arrays
        self.jax = self.engine.jax
        with self.jax.enable_x64(True):
            self.kept = self.jax.device_put(
                {name: np.stack([each[name] for each in arrays]) for name in arrays[0]}
            )

    def sent(self, data: Mapping[str, Array]) -> dict[str, Any]:
        """Send rows, once."""
        with self.jax.enable_x64(True):
            return self.jax.device_put(dict(data))

    def trainer(self, program: Program, data: Mapping[str, Any]) -> Any:
        """Return what trains over batches of rows that were sent.

        It takes the arrays, the rows' numbers (networks, batches, batch size), learning rates (networks, batches), the first
        step, seeds and which networks go on, (networks,). It returns the arrays, with totals, counts and whose losses were
        finite, each (networks,); a network that does not go on is left as it is.
        """
        bound: Any = self.engine.bind(program, self.arrays[0])

        def train(
            kept: Any, rows: Any, rates: Any, first_step: Any, seed: Any, goes_on: Any, data: Any
        ) -> Any:
            numbers = np.float64(0), np.float64(0), np.int64(0), goes_on
            inputs = {name: data[name] for name in bound.inputs}
            kept, total, count, _, finite = bound.traced_batches(
                (kept, *numbers), inputs, rows, rates, len(rows), first_step, seed
            )
            return kept, total, count, finite

        return self._at_once(train, (0, 0, 0, None, 0, 0, None), data)

    def evaluator(self, program: Program, data: Mapping[str, Any]) -> Any:
        """Return what computes a program's outputs, outside training, on rows that were sent.

        It takes the arrays and the rows' numbers (networks, rows).
        """
        bound: Any = self.engine.bind(program, self.arrays[0])

        def evaluate(kept: Any, rows: Any, data: Any) -> Any:
            inputs = {name: data[name][rows].astype(bound.types[name]) for name in bound.inputs}
            return bound.traced_once({name: kept[name] for name in bound.kept}, inputs, {})

        return self._at_once(evaluate, (0, 0, None), data)

    def keep(self, arrays: Mapping[str, Any], finite: Any) -> Array:
        """Keep the new arrays of the networks whose losses and arrays are finite, and return which those are."""
        jnp = self.jax.numpy
        with self.jax.enable_x64(True):
            for each in arrays.values():
                finite &= jnp.isfinite(each).reshape(len(each), -1).all(axis=1)
            self.kept = {
                name: jnp.where(finite.reshape(-1, *[1] * (each.ndim - 1)), each, self.kept[name])
                for name, each in arrays.items()
            }
            return np.asarray(finite)

    def _at_once(self, function: Any, axes: tuple[int | None, ...], data: Mapping[str, Any]) -> Any:
        compiled = self.jax.jit(self.jax.vmap(function, in_axes=axes))

        def run(*arguments: Any) -> Any:
            with self.jax.enable_x64(True):
                return compiled(*arguments, data)

        return run

    @uninterrupted()
    def write(self) -> None:
        """Write what is on the device into the arrays of each network."""
        for name, every in self.kept.items():
            for arrays, found in zip(self.arrays, np.asarray(every), strict=True):
                arrays[name][...] = found
