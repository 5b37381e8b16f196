"""Engines: what runs a program over batches."""

from handgrad.engines.engine import BoundProgram, Engine, Epoch, NonFiniteLossError
from handgrad.engines.reference import ReferenceEngine

ENGINES: dict[str, type[Engine]] = {"reference": ReferenceEngine}
"""Every engine by name."""

__all__ = ["ENGINES", "BoundProgram", "Engine", "Epoch", "NonFiniteLossError", "ReferenceEngine"]
