"""Training: the loop, what it records, and what it says when something goes wrong; how fast engines are at it."""

from handgrad.training.engine_timing import EngineTime, measure_engines
from handgrad.training.history import BatchRecord, EpochRecord, History
from handgrad.training.loop import train

__all__ = ["BatchRecord", "EngineTime", "EpochRecord", "History", "measure_engines", "train"]
