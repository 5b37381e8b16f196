"""Mistakes in the gradient of one value: ones for it, its sign, its rows averaged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from handgrad.checking.diagnosis.planted import Planted, setting
from handgrad.checking.diagnosis.replayed import Replays
from handgrad.checking.forward_trace import Operation

SPOILT = (
    ("ignores-upstream", "what arrives at {} is taken to be ones", 0.8, np.ones_like),
    ("wrong-sign", "the gradient of {} has the opposite sign", 0.9, np.negative),
    ("zero-gradient", "the gradient of {} is lost: nothing flows through it", 1.9, np.zeros_like),
)


def at_values(replays: Replays) -> Iterator[Planted]:
    """Yield mistakes in the gradient of one value: ones for it, its sign, its rows averaged."""
    recording = replays.recording
    for index, gradient in replays.first.gradients.items():
        operation, label = recording.producer.get(index), replays.label(index)
        if index in recording.outputs:
            words = "the upstream gradient is taken to be ones"
            yield Planted("ignores-upstream", words, 0.5, setting(index, np.ones_like), operation)
        elif operation is not None:
            for code, said, cost, make in SPOILT:
                yield Planted(code, said.format(label), cost, setting(index, make), operation)
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
