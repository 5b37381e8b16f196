"""``handgrad train --cluster``: one of several processes that train together, and a parent that reports how it ended."""

from __future__ import annotations

import atexit
import mmap
import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from threading import Thread, Timer
from types import FrameType
from typing import BinaryIO, NoReturn

import click

from handgrad.engines.cluster import LOST, UNEXPECTED, join, leave, lost, lost_processes_named
from handgrad.errors import ConfigurationError, EngineError, HandgradError

NOTICE_SECONDS = 20
"""After which a process that still waits for the others reports it."""


def in_cluster(
    run: Callable[[], int],
    coordinator: str | None,
    processes: int | None,
    process: int | None,
    minutes: float,
) -> int:
    """Run in a child process that has joined the others within some minutes, and return its exit code.

    When another process dies or does not come, JAX ends this one by SIGABRT, with a stack trace: the parent reports one line
    instead. An error, too, ends the child at once, rather than when the others, which may be waiting for it, have ended.
    """
    place = _Place(coordinator, processes, process, minutes)
    _supervise(place)
    code = 1

    def end() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    with lost_processes_named():
        # JAX's native code waits, in which Python raises no KeyboardInterrupt
        interrupt = signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            join(coordinator, processes, process, 60 * minutes)
        finally:
            atexit.register(end)  # so that it runs before JAX's own, which would wait for the others
        signal.signal(signal.SIGINT, interrupt)
        place.joined[0] = 1
        try:
            code = run()
        except KeyboardInterrupt:
            code = 128 + signal.SIGINT
            raise
        if code == 0:
            leave()
    return code


class _Place:
    """Which process this is, and whether it has joined the others, in memory that parent and child share."""

    def __init__(
        self, coordinator: str | None, processes: int | None, process: int | None, minutes: float
    ) -> None:
        self.coordinator, self.minutes = coordinator, minutes
        self.name = "this process" if process is None else f"process {process}"
        self.name += "" if processes is None else f" of {processes}"
        self.joined, self.began = mmap.mmap(-1, 1), time.monotonic()

    def notify(self) -> None:
        """Report that the others are not there yet."""
        if not self.joined[0]:
            where = "" if self.coordinator is None else f" at {self.coordinator}"
            message = f"{self.name} waits for the others{where}, for up to {self.minutes:g} minutes"
            click.echo(message, err=True)

    def error(self, native: str) -> HandgradError:
        """Return the error of a process that has not joined, of what JAX's native code reported."""
        where = "" if self.coordinator is None else f" at {self.coordinator}"
        if unexpected := UNEXPECTED.search(native):
            return ConfigurationError(
                f"{self.name} has no place: the first one{where} was given {unexpected[1]} or fewer processes",
                fix="give each the same --processes",
            )
        return EngineError(
            f"{self.name} has waited {time.monotonic() - self.began:.0f} seconds for the others{where}",
            fix="check that all are started, each with a number of its own and the same number of processes, that the first "
            "one runs at this address, and that the others reach its port; --join-minutes waits longer",
        )


def _supervise(place: _Place) -> None:
    """Go on in a child process; the parent waits for it, and exits as it did."""
    living, held = os.pipe()
    with tempfile.TemporaryFile() as log:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # of the threads of BLAS, which expects a fork
            child = os.fork()
        if child:
            os.close(living)
            _wait(child, log, place)
        os.close(held)  # the parent alone holds it, until it ends in whatever way
        Thread(target=_end_after_parent, args=[living], daemon=True).start()
        # Python's messages go where they went, those of JAX's native code to the log.
        sys.stdout, sys.stderr = (
            os.fdopen(os.dup(number), "w", buffering=1, errors="backslashreplace") for number in (1, 2)
        )
        for number in (1, 2):
            os.dup2(log.fileno(), number)


def _end_after_parent(living: int) -> None:
    os.read(living, 1)
    os._exit(1)


def _wait(child: int, log: BinaryIO, place: _Place) -> NoReturn:
    def stop(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTERM or not place.joined[0]:  # a terminal sends Ctrl-C to the child too
            os.kill(child, number)

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    notice = Timer(NOTICE_SECONDS, place.notify)
    notice.daemon = True
    notice.start()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    notice.cancel()
    if code >= 0:
        sys.exit(code)
    if code in (-signal.SIGINT, -signal.SIGTERM):
        click.echo("Stopped.", err=True)
        sys.exit(128 - code)
    log.seek(0)
    native = log.read().decode(errors="replace")
    if code == -signal.SIGABRT and LOST.search(native):
        raise lost() if place.joined[0] else place.error(native)
    sys.stderr.write(native)
    raise EngineError(f"the training process was ended by {signal.Signals(-code).name}")
