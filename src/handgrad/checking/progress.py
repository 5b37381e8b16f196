"""What a check does after its verdict, for whoever watches: naming the mistake and repairing it take seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Watcher = Callable[[str], None]

_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Call a function with what the checks of this block do, as they go on."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def tell(stage: str) -> None:
    """Report what is being done now, ``"repairing layer.py: edit 120, 40% of the search"``."""
    if (watcher := _WATCHER.get()) is not None:
        watcher(stage)
