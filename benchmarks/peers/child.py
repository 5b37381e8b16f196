"""A peer in a process of its own, which is asked over a pipe to work for a while and keeps still otherwise."""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from peers import load
from peers.workload import UnavailableError, Workload, loss_of

SETTLE = 0.05
"""Seconds between two slices, in which idle threads of the last one stop spinning."""

ROWS = 2000
"""How many rows the loss is looked at on."""


@dataclass(frozen=True)
class Started:
    """What a peer says when it is ready: its losses before and after the first epoch, or why it cannot.

    ``seconds`` are those until the end of the first epoch, in which it compiles; without imports.
    """

    problem: str = ""
    seconds: float = 0.0
    losses: tuple[float, float] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


class Child:
    """A peer with a workload, in its process.

    Parameters
    ----------
    peer
        Its name in `peers.PEERS`.
    workload
        What it is to do.
    environment
        Variables that are set for it.
    """

    def __init__(self, peer: str, workload: Workload, environment: Mapping[str, str] | None = None) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, peer, workload), daemon=True)
        with _environment(environment or {}):
            self.process.start()
        theirs.close()
        self.peak = 0.0  # the most memory that it has had, in MiB
        try:
            self.started: Started = self.pipe.recv()
        except EOFError:
            self.started = Started("its process died")

    def step_seconds(self, seconds: float) -> float:
        """Let it work for about so long, in whole epochs; return how long a step took."""
        self.pipe.send(seconds)
        took, self.peak = self.pipe.recv()
        time.sleep(SETTLE)
        return took

    def close(self) -> None:
        """End its process."""
        self.pipe.close()
        self.process.join(10)
        if self.process.is_alive():
            self.process.terminate()


def serve(pipe: Connection, name: str, workload: Workload) -> None:
    """Do what is asked, until the pipe is closed."""
    try:
        kind = load(name, workload)
        began = time.perf_counter()
        peer = kind(workload)
        made = time.perf_counter()
        x, t = (array[:ROWS].copy() for array in workload.data())
        before = peer.scores(x)
        first = time.perf_counter()
        peer.epoch()
        seconds = made - began + time.perf_counter() - first
        after = peer.scores(x)
        losses = None if before is None or after is None else (loss_of(before, t), loss_of(after, t))
        pipe.send(Started(seconds=seconds, losses=losses, facts=dict(peer.facts)))
    except ImportError as error:
        pipe.send(Started(f"not installed: {error}"))
    except UnavailableError as error:
        pipe.send(Started(str(error)))
    except Exception as error:  # whatever a library may come up with, the others are measured
        reason, *_ = str(error).splitlines() or [""]
        pipe.send(Started(f"failed: {type(error).__name__}: {reason}"))
    else:
        while (seconds := _asked(pipe)) is not None:
            epochs, started, clock_started = 0, time.perf_counter(), clock()
            while time.perf_counter() - started < seconds:
                peer.epoch()
                epochs += 1
            pipe.send(((clock() - clock_started) / (epochs * workload.steps), _peak()))


def clock() -> float:
    """Return the time; on one processor the time that this process had it: other load does not count."""
    return time.process_time() if len(os.sched_getaffinity(0)) == 1 else time.perf_counter()


def _peak() -> float:
    """Return the most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _asked(pipe: Connection) -> float | None:
    try:
        return float(pipe.recv())
    except EOFError:
        return None


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
