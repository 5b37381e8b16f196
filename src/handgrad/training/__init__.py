"""Training: the loop, its history, the explanation of a loss that is not finite; engines timed."""

from handgrad.training.engine_timing import EngineTime, measure_engines
from handgrad.training.history import BatchRecord, EpochRecord, History
from handgrad.training.training_run import train

__all__ = ["BatchRecord", "EngineTime", "EpochRecord", "History", "measure_engines", "train"]
