"""Work, counted in place of time: a slow or busy machine finds what a fast and idle one does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Effort:
    """What a search has spent, in seconds of a machine of 2024.

    Examples
    --------
    >>> effort = Effort()
    >>> effort.spend(microseconds=250)
    >>> effort.spent
    0.00025
    """

    spent: float = 0.0

    def spend(self, microseconds: float) -> None:
        """Count some work."""
        self.spent += 1e-6 * microseconds
