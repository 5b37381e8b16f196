"""Training: the loop, its history, the explanation of a loss that is not finite; engines timed."""

from handgrad.training.engine_timing import EngineTime, measure_engines
from handgrad.training.history import BatchRecord, EpochRecord, History
from handgrad.training.learning_rates import RangeTest, find_learning_rate
from handgrad.training.many import train_many
from handgrad.training.training_run import train

__all__ = [
    "BatchRecord", "EngineTime", "EpochRecord", "History", "RangeTest", "find_learning_rate", "measure_engines", "train",
    "train_many",
]  # fmt: skip
