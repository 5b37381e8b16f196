"""Threads that help with large steps, and the decision whether they are worth it."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

import numpy as np

from handgrad.engines.compiled.batch_loop import POOL_SIZE, Pool, driver_text
from handgrad.engines.compiled.native import native

USUAL = 0.05
"""How long native code runs before Python looks for Ctrl-C, shows progress and thinks about threads, in seconds."""

TRIAL = 0.005
"""How long the other way is tried, …"""

SELDOM = 30
"""… how many times as long as a trial lasts is waited before the next, …"""

SUDDEN = 3
"""… and how many times as long when everything has become slower meanwhile, …"""

SLOWER = 1.2
"""… a row taking so many times as long as before: more than the noise between two slices of an idle machine."""


class Helpers:
    """Helping threads, which wait in native code while an epoch runs, and sleep otherwise; for one caller at a time."""

    def __init__(self, count: int) -> None:
        self.memory = np.zeros(POOL_SIZE, np.int64)
        work = native().address(driver_text(native().triple), "work")
        self.work = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(work)
        self.wanted, self.finished = threading.Semaphore(0), threading.Semaphore(0)
        self.taken = threading.Lock()
        self.caller = -1  # the processor that the helpers do not use
        self.threads = [threading.Thread(target=self.help, daemon=True) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def help(self) -> None:
        """Do parts whenever there are any (in a thread of its own)."""
        while True:
            self.wanted.acquire()
            self.work(self.memory.ctypes.data)
            self.finished.release()

    @contextmanager
    def shared(self) -> Iterator[int]:
        """Have help meanwhile: gives the address of the memory that is shared, or 0 when the helpers are taken."""
        if not self.taken.acquire(blocking=False):
            yield 0
            return
        woken = 0
        try:
            self.keep_apart()
            self.memory[Pool.STOP] = 0
            for _ in self.threads:
                woken += 1
                self.wanted.release()
            yield self.memory.ctypes.data
        finally:
            self.memory[Pool.STOP] = 1
            try:
                for _ in range(woken):
                    self.finished.acquire()
            finally:
                self.taken.release()

    def keep_apart(self) -> None:
        """Keep the helpers off the processor that the caller runs on.

        Linux wakes a thread where its waker runs, and two threads that wait for each other politely may then share
        one processor for a second or more, while another idles.
        """
        if not hasattr(os, "sched_setaffinity"):
            return
        here = ctypes.CDLL(None).sched_getcpu()
        others = os.sched_getaffinity(0) - {here}
        if others and here != self.caller:
            with suppress(OSError):  # not everywhere allowed, and no more than a help
                for thread in self.threads:
                    os.sched_setaffinity(thread.native_id or 0, others)
            self.caller = here


@cache
def helpers(count: int) -> Helpers:
    """Return the helping threads of this process."""
    return Helpers(count)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=helpers.cache_clear)  # threads do not come along


class Choice:
    """Whether help is worth it, measured while the program runs: mostly the better way, now and then the other.

    Another program on the same processors can make waiting for a helper dearer than doing its part. ``helped`` is
    whether the next slice of batches is done with help, ``length`` how long it takes, in seconds.
    """

    def __init__(self) -> None:
        self.helped, self.length = False, TRIAL
        self.seconds: dict[bool, float] = {}  # for a row, with help and without
        self.trial = self.since_trial = 0.0  # seconds

    def measured(self, seconds: float, rows: int) -> None:
        """Take note of how long a slice took, and decide how the next one is done."""
        if seconds < TRIAL / 2:
            return  # too short to tell: waking a helper takes its time too
        before = self.seconds.get(self.helped, seconds / rows)
        self.seconds[self.helped] = seconds / rows
        self.since_trial += seconds
        if self.length == TRIAL:
            self.trial, self.since_trial = seconds, 0.0
        patience = SUDDEN if seconds / rows > SLOWER * before else SELDOM
        if len(self.seconds) < 2 or self.since_trial > patience * self.trial:
            self.helped, self.length = not self.helped, TRIAL
        else:
            self.helped, self.length = self.seconds[True] <= self.seconds[False], USUAL
