"""Threads that help with large steps, and the decision whether they are worth it."""

from __future__ import annotations

import ctypes
import threading

import numpy as np

from handgrad.engines.compiled.driver import POOL_SIZE
from handgrad.engines.compiled.driver import Pool as Place
from handgrad.engines.compiled.native import native


RETRY = 20
"""After so many slices the other way is tried again."""


class Pool:
    """Helping threads: they wait in native code while an epoch runs, and sleep otherwise.

    Whether they are worth it is measured while the program runs: a slice of batches with them, one without. Another
    program on the same processors can make waiting for a helper dearer than doing its part. Because the parts of a
    step are the same in either case, so are the numbers.

    Parameters
    ----------
    text
        The driver's code.
    threads
        How many there are, the caller included.
    """

    def __init__(self, text: str, threads: int) -> None:
        self.memory = np.zeros(POOL_SIZE, np.int64)
        self.work = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(native().address(text, "work"))
        self.wanted, self.finished = threading.Semaphore(0), threading.Semaphore(0)
        self.helpers = [threading.Thread(target=self.help, daemon=True) for _ in range(threads - 1)]
        for helper in self.helpers:
            helper.start()
        self.seconds = {True: 0.0, False: 0.0}  # for a row, with help and without
        self.helping, self.slices = True, 0

    def help(self) -> None:
        """Do parts whenever there are any (in a thread of its own)."""
        while True:
            self.wanted.acquire()
            if self.memory[Place.STOP] < 0:
                return
            self.work(self.memory.ctypes.data)
            self.finished.release()

    def begin(self) -> int:
        """Return the address of the memory that is shared, or 0 where help is not worth it just now."""
        if not self.helping:
            return 0
        self.memory[Place.STOP] = 0
        for _ in self.helpers:
            self.wanted.release()
        return self.memory.ctypes.data

    def end(self) -> None:
        """Let the helpers sleep."""
        if self.helping:
            self.memory[Place.STOP] = 1
            for _ in self.helpers:
                self.finished.acquire()

    def close(self) -> None:
        """End the helping threads."""
        self.memory[Place.STOP] = -1
        for _ in self.helpers:
            self.wanted.release()

    def measured(self, seconds: float) -> None:
        """Take note of how long a row took, and decide how the next slice is done."""
        known = self.seconds[self.helping]
        slower = known and seconds > 1.2 * known
        self.seconds[self.helping] = seconds
        self.slices += 1
        if self.slices <= 4 or self.slices % RETRY == 0 or slower:
            self.helping = not self.helping
        else:
            self.helping = self.seconds[True] <= self.seconds[False]
