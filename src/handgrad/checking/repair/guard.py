"""Limits on what runs in a search: it can neither hang, nor fill the memory, nor print, and leaves all as it was."""

from __future__ import annotations

import contextlib
import io
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from types import FrameType

import numpy as np

try:
    import resource
except ImportError:  # not on every system
    resource = None  # type: ignore[assignment]

MEMORY = 1 << 30  # bytes that all candidates together may add
LONGEST_RUN = 10.0  # seconds for the user's own backward
TURNS = (
    10  # times the limit that a candidate may last while other programs have the processor, or while it waits
)

_SEARCHING: ContextVar[bool] = ContextVar("searching", default=False)


def is_searching() -> bool:
    """Whether this code was called by a candidate."""
    return _SEARCHING.get()


class OutOfTimeError(BaseException):
    """A candidate ran too long; no ordinary exception, so that the user's ``except`` does not catch it."""


class Guard:
    """Runs candidates within limits, and counts their work: a slow or busy machine finds what a fast and idle one does.

    Only the main thread can interrupt them, elsewhere ``interrupts`` is false.
    """

    def __init__(self) -> None:
        main = threading.current_thread() is threading.main_thread()
        self.interrupts = main and hasattr(signal, "setitimer")
        self.spent = 0.0  # seconds of a machine of 2024
        self._armed = False
        self._until = 0.0  # of the thread's processor time
        self._rings = 0

    def spend(self, microseconds: float) -> None:
        """Count some work."""
        self.spent += 1e-6 * microseconds

    @contextlib.contextmanager
    def search(self) -> Iterator[None]:
        """Set things up for many candidates, and leave all as it was: alarms, random numbers, output, warnings."""
        random_state = np.random.get_state()  # noqa: NPY002 - the user's code may draw from it
        with contextlib.ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
            stack.enter_context(np.errstate(all="ignore"))
            stack.enter_context(_memory_limit())
            if self.interrupts:
                stack.enter_context(self._alarms())
            token = _SEARCHING.set(True)
            try:
                yield
            finally:
                _SEARCHING.reset(token)
                np.random.set_state(random_state)  # noqa: NPY002

    @contextlib.contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        """Raise OutOfTimeError in what computes longer; inside another limit, that one stands."""
        if not self.interrupts or self._armed:
            yield
            return
        self._armed, self._until, self._rings = True, time.thread_time() + seconds, 0
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
        try:
            yield
        finally:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    @contextlib.contextmanager
    def _alarms(self) -> Iterator[None]:
        def ring(_number: int, _frame: FrameType | None) -> None:
            self._rings += 1
            if self._armed and (time.thread_time() >= self._until or self._rings > TURNS):
                raise OutOfTimeError

        def unraisable(lost: sys.UnraisableHookArgs) -> None:
            # In a destructor, or while garbage is collected, nothing can be raised; the alarm rings again.
            if not isinstance(lost.exc_value, OutOfTimeError):
                hook(lost)

        started, (left, interval) = time.monotonic(), signal.getitimer(signal.ITIMER_REAL)
        handler, hook = signal.signal(signal.SIGALRM, ring), sys.unraisablehook
        sys.unraisablehook = unraisable
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
            sys.unraisablehook = hook
            if left:  # another program's alarm: it rings when it should have, or now
                left = max(left - (time.monotonic() - started), 1e-3)
                signal.setitimer(signal.ITIMER_REAL, left, interval)


@contextlib.contextmanager
def _memory_limit() -> Iterator[None]:
    """Let a huge allocation fail at once instead of filling the memory, where the system can."""
    used = _address_space()
    if resource is None or used is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    allowed = used + MEMORY if soft == resource.RLIM_INFINITY else min(soft, used + MEMORY)
    resource.setrlimit(resource.RLIMIT_AS, (allowed, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _address_space() -> int | None:
    """Return the bytes of address space in use, where the system reports it."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    except (OSError, AttributeError):
        return None
