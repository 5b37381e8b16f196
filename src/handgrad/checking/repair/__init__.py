"""Repairing the user's backward: the smallest edit of its source that makes the gradient right, proved."""

from handgrad.checking.repair.guard import is_searching
from handgrad.checking.repair.search import Repair, mend, write_repair

__all__ = ["Repair", "is_searching", "mend", "write_repair"]
