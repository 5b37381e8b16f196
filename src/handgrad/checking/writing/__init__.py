"""The gradient of a recording, written as source over the names of forward."""

from handgrad.checking.writing.gradient import Written, write_gradient

__all__ = ["Written", "write_gradient"]
