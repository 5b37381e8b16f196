"""Many networks of one shape as one: JAX's vmap of the lines, on one device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from handgrad.engines.engine import Array
from handgrad.engines.jax_engine import JaxEngine
from handgrad.program import Program


class ManyOnJax:
    """A program that runs on the arrays of many networks at once, and on rows that are sent once.

    Attributes
    ----------
    kept
        What the program keeps of all networks, on the device, with an axis of networks first.
    """

    def __init__(self, arrays: Sequence[Mapping[str, Array]], data: Mapping[str, Array]) -> None:
        self.engine, self.arrays = JaxEngine(devices=1), arrays
        self.jax = self.engine.jax
        with self.jax.enable_x64(True):
            self.data = self.jax.device_put(dict(data))
            self.kept = self.jax.device_put(
                {name: np.stack([each[name] for each in arrays]) for name in arrays[0]}
            )

    def trainer(self, program: Program) -> Any:
        """Return what trains over batches: of arrays, the rows' numbers, learning rates, the first step, seeds, who goes on.

        Rows are (networks, batches, batch size), rates (networks, batches), seeds and who goes on (networks,). It returns the
        arrays, with totals, counts and whose losses were finite, each (networks,); who does not go on is left as it is.
        """
        bound: Any = self.engine.bind(program, self.arrays[0])

        def train(
            kept: Any, rows: Any, rates: Any, first_step: Any, seed: Any, goes_on: Any, data: Any
        ) -> Any:
            numbers = np.float64(0), np.float64(0), np.int64(0), goes_on
            inputs = {name: data[name][rows] for name in bound.inputs}
            last = rows.shape[0]
            kept, total, count, _, finite = bound._batches(
                (kept, *numbers), inputs, rates, np.int64(0), np.int64(last), first_step, seed
            )
            return kept, total, count, finite

        return self._at_once(train, (0, 0, 0, None, 0, 0, None))

    def evaluator(self, program: Program) -> Any:
        """Return what computes a program's outputs outside training, of arrays and the rows' numbers (networks, rows)."""
        bound: Any = self.engine.bind(program, self.arrays[0])

        def evaluate(kept: Any, rows: Any, data: Any) -> Any:
            inputs = {name: data[name][rows].astype(bound.types[name]) for name in bound.inputs}
            return bound._once({name: kept[name] for name in bound.kept}, inputs, {})

        return self._at_once(evaluate, (0, 0, None))

    def _at_once(self, function: Any, axes: tuple[int | None, ...]) -> Any:
        compiled = self.jax.jit(self.jax.vmap(function, in_axes=axes))

        def run(*arguments: Any) -> Any:
            with self.jax.enable_x64(True):
                return compiled(*arguments, self.data)

        return run

    def write(self) -> None:
        """Write what is on the device into the arrays of each network."""
        for name, every in self.kept.items():
            for arrays, found in zip(self.arrays, np.asarray(every), strict=True):
                arrays[name][...] = found
