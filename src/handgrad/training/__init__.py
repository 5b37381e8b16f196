"""Training: the loop, what it records, and what it says when something goes wrong."""

from handgrad.training.history import EpochRecord, History
from handgrad.training.metrics import measure_metric, metric_name, r_squared
from handgrad.training.train import train

__all__ = ["EpochRecord", "History", "measure_metric", "metric_name", "r_squared", "train"]
