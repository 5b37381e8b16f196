"""A place to run code that may be wrong: it can neither hang, nor fill the memory, nor print."""

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
from types import FrameType

import numpy as np

try:
    import resource
except ImportError:  # not on every system
    resource = None  # type: ignore[assignment]

MEMORY = 4 << 30  # bytes that all candidates together may add


_SEARCHING: ContextVar[bool] = ContextVar("searching", default=False)


def is_searching() -> bool:
    """Whether this code was called by a candidate."""
    return _SEARCHING.get()


class OutOfTimeError(BaseException):
    """A candidate ran too long; no ordinary exception, so that the user's ``except`` does not catch it."""


class Guard:
    """Runs candidates; only the main thread can interrupt them, elsewhere ``interrupts`` is false."""

    def __init__(self) -> None:
        self.interrupts = threading.current_thread() is threading.main_thread() and hasattr(
            signal, "setitimer"
        )
        self._armed = False

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
        """Raise OutOfTimeError in what runs longer; inside another limit, that one stands."""
        if not self.interrupts or self._armed:
            yield
            return
        self._armed = True
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
        try:
            yield
        finally:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    @contextlib.contextmanager
    def _alarms(self) -> Iterator[None]:
        def ring(_number: int, _frame: FrameType | None) -> None:
            if self._armed:
                raise OutOfTimeError

        def unraisable(lost: sys.UnraisableHookArgs) -> None:
            # In a destructor, or while garbage is collected, nothing can be raised; the alarm rings again.
            if not isinstance(lost.exc_value, OutOfTimeError):
                hook(lost)

        started, before = time.monotonic(), signal.getitimer(signal.ITIMER_REAL)
        handler, hook = signal.signal(signal.SIGALRM, ring), sys.unraisablehook
        sys.unraisablehook = unraisable
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
            sys.unraisablehook = hook
            if before[0]:  # somebody else's alarm: it rings when it should have, or now
                left = max(before[0] - (time.monotonic() - started), 1e-3)
                signal.setitimer(signal.ITIMER_REAL, left, before[1])


@contextlib.contextmanager
def _memory_limit() -> Iterator[None]:
    """Let a huge allocation fail at once instead of filling the memory, where the system can."""
    used = _address_space()
    if resource is None or used is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = used + MEMORY
    if resource.RLIM_INFINITY not in (soft,) and soft < wanted:
        wanted = soft
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _address_space() -> int | None:
    """Return the bytes of address space in use, where the system tells."""
    try:
        with open("/proc/self/statm") as file:  # noqa: PTH123 - not a file on a disk
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return None
