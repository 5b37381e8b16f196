"""Mistakes in the gradient of one value: ones for it, its sign, its rows averaged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from handgrad.checking.diagnosis.planted import Planted, setting
from handgrad.checking.diagnosis.replayed import Replays
from handgrad.checking.recording import Operation


def at_values(replays: Replays) -> Iterator[Planted]:
    """Yield mistakes in the gradient of one value: ones for it, its sign, its rows averaged."""
    recording = replays.recording
    for index, gradient in replays.first.gradients.items():
        operation = recording.producer.get(index)
        label = replays.label(index)
        if index in recording.outputs:
            yield Planted(
                "ignores-upstream",
                "the upstream gradient is taken to be ones",
                0.5,
                setting(index, np.ones_like),
                operation,
            )
        elif operation is not None:
            yield Planted(
                "ignores-upstream",
                f"what arrives at {label} is taken to be ones",
                0.8,
                setting(index, np.ones_like),
                operation,
            )
            yield Planted(
                "wrong-sign",
                f"the gradient of {label} has the opposite sign",
                0.9,
                setting(index, np.negative),
                operation,
            )
            yield Planted(
                "zero-gradient",
                f"the gradient of {label} is lost: nothing flows through it",
                1.9,
                setting(index, np.zeros_like),
                operation,
            )
        if operation is not None:
            for axis, length in enumerate(np.shape(gradient)):
                if length > 1:
                    yield from _along_axis(index, axis, length, label, operation)


def _along_axis(index: int, axis: int, length: int, label: str, operation: Operation) -> Iterator[Planted]:
    for reduce, words in ((np.mean, "averaged"), (np.sum, "summed")):

        def made(g: Any, reduce: Any = reduce) -> Any:
            return np.broadcast_to(reduce(g, axis=axis, keepdims=True), np.shape(g))

        text = f"the gradient of {label} is {words} over axis {axis} before it is handed on"
        yield Planted("averaged-batch", text, 1.6, setting(index, made), operation)
    text = f"the gradient of {label} is divided by the length of axis {axis}"
    cost = 1.9 if length in (2, 3, 4) else 1.4
    yield Planted("batch-mean-vs-sum", text, cost, setting(index, lambda g: g / np.shape(g)[axis]), operation)
    text = text.replace("divided", "multiplied")
    yield Planted("batch-mean-vs-sum", text, cost, setting(index, lambda g: g * np.shape(g)[axis]), operation)
