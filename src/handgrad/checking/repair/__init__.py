"""Repairing the user's backward: the smallest edit of its source that makes the gradient right, proved."""

from handgrad.checking.repair.guard import is_searching
from handgrad.checking.repair.search import Hint, Repair, repair, write_repair
from handgrad.checking.repair.source import SourceError
from handgrad.checking.repair.trial import Goal

__all__ = ["Goal", "Hint", "Repair", "SourceError", "is_searching", "repair", "write_repair"]
