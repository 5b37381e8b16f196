"""``handgrad train --cluster``: one of several processes that train together, and a parent that reports how it ended."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable
from threading import Thread
from typing import BinaryIO, NoReturn

from handgrad.engines.cluster import LOST, join, leave, lost, lost_processes_named
from handgrad.errors import EngineError


def in_cluster(
    run: Callable[[], int], coordinator: str | None, processes: int | None, process: int | None
) -> int:
    """Run in a child process that has joined the others, and return its exit code.

    When another process dies, JAX ends this one by SIGABRT, with a stack trace: the parent reports one line instead.
    An error, too, ends the child at once, rather than when the others, which may be waiting for it, have ended.
    """
    _supervise()
    code = 1

    def end() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    with lost_processes_named():
        join(coordinator, processes, process)
        atexit.register(end)  # before JAX's own, which would wait for the others
        code = run()
        if code == 0:
            leave()
    return code


def _supervise() -> None:
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
            _wait(child, log)
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


def _wait(child: int, log: BinaryIO) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the child too
    signal.signal(signal.SIGTERM, lambda number, frame: os.kill(child, number))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code >= 0:
        sys.exit(code)
    log.seek(0)
    native = log.read().decode(errors="replace")
    if code == -signal.SIGABRT and LOST.search(native):
        raise lost()
    sys.stderr.write(native)
    raise EngineError(f"the training process was ended by {signal.Signals(-code).name}")
