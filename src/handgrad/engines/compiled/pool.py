"""Threads that help with large steps, and the decision whether they are worth it."""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache

import numpy as np

from handgrad.engines.compiled.driver import POOL_SIZE, Pool, driver_text
from handgrad.engines.compiled.native import native

USUAL = 0.05
"""How long native code runs before Python looks for Ctrl-C, shows progress and thinks about threads, in seconds."""

TRIAL = 0.005
"""How long the other way is tried, …"""

SELDOM = 30
"""… how many times as long as a trial lasts is waited before the next, …"""

SUDDEN = 3
"""… and how many times as long when everything has become slower meanwhile."""


class Helpers:
    """Helping threads of this process: they wait in native code while an epoch runs, and sleep otherwise.

    They help one caller at a time; whoever else trains at the same moment does without.
    """

    def __init__(self, count: int) -> None:
        self.memory = np.zeros(POOL_SIZE, np.int64)
        self.work = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(
            native().address(driver_text(native().triple), "work")
        )
        self.wanted, self.finished = threading.Semaphore(0), threading.Semaphore(0)
        self.taken = threading.Lock()
        self.threads = [threading.Thread(target=self.help, daemon=True) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def help(self) -> None:
        """Do parts whenever there are any (in a thread of its own)."""
        while True:
            self.wanted.acquire()
            self.work(self.memory.ctypes.data)
            self.finished.release()

    def begin(self) -> int:
        """Wake the helpers and return the address of the memory that is shared, or 0 when they are taken."""
        if not self.taken.acquire(blocking=False):
            return 0
        self.memory[Pool.STOP] = 0
        for _ in self.threads:
            self.wanted.release()
        address: int = self.memory.ctypes.data
        return address

    def end(self) -> None:
        """Let the helpers sleep."""
        self.memory[Pool.STOP] = 1
        for _ in self.threads:
            self.finished.acquire()
        self.taken.release()


@cache
def helpers(count: int) -> Helpers:
    """Return the helping threads of this process."""
    return Helpers(count)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=helpers.cache_clear)  # threads do not come along


class Choice:
    """Whether help is worth it, measured while the program runs: mostly the better way, now and then the other.

    Another program on the same processors can make waiting for a helper dearer than doing its part. Because the
    parts of a step are the same in either case, so are the numbers.

    Attributes
    ----------
    helped
        Whether the next slice of batches is done with help.
    length
        How long the next slice takes, in seconds.
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
        patience = SUDDEN if seconds / rows > 1.2 * before else SELDOM
        if len(self.seconds) < 2 or self.since_trial > patience * self.trial:
            self.helped, self.length = not self.helped, TRIAL
        else:
            self.helped, self.length = self.seconds[True] <= self.seconds[False], USUAL
