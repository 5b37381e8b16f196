"""A forward pass as the elementary operations that it runs, on which values, at which line."""

from handgrad.checking.recording.recorder import Array, Recording, record
from handgrad.checking.recording.tape import ELEMENTWISE, Operation
from handgrad.checking.recording.traced import NotRecordedError

__all__ = ["ELEMENTWISE", "Array", "NotRecordedError", "Operation", "Recording", "record"]
