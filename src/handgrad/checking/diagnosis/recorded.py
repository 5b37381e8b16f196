"""Recording a subject's forward."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numpy as np

from handgrad.checking.recording import NotRecordedError, Recording, record
from handgrad.checking.subject import Subject


def record_subject(subject: Subject, inputs: Mapping[str, Any]) -> Recording:
    """Record a subject's forward; raises `NotRecordedError` when it cannot be followed."""
    chosen = (
        getattr(subject.forward, "in_numpy", None) or subject.forward
    )  # another library's, in NumPy's names

    def forward(given: dict[str, Any]) -> Any:
        return chosen(*given.values()) if subject.positional else chosen(**given)

    recording = record(forward, inputs, _functions(chosen))
    if chosen is not subject.forward and not _agree(recording, subject.run_forward(dict(inputs))):
        raise NotRecordedError("in NumPy's names forward gives something else")
    return recording


def _agree(recording: Recording, outputs: list[Any]) -> bool:
    """Whether a recording ends in these outputs."""
    found = [recording.values[index] for index in recording.outputs]
    return len(found) == len(outputs) and all(map(np.allclose, found, outputs))


def _functions(function: Any) -> list[FunctionType]:
    """Return a function with those its module and its closure hold: forward may call any of them."""
    start = getattr(function, "__wrapped__", function)
    if not isinstance(start, FunctionType):
        return []
    found = [start, *(v for v in start.__globals__.values() if isinstance(v, FunctionType))]
    held = (cell.cell_contents for cell in start.__closure__ or ())
    return found + [value for value in held if isinstance(value, FunctionType)]
