"""Products of matrices: a BLAS library, called natively.

A library is called on one thread: large products are divided by the engine itself, into parts that follow from their
size and from how many threads are allowed, and that are the same whoever does them.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

_LOCK = threading.Lock()
_ASKING: dict[str, list[int]] = {}  # how many keep a library to one thread, and how many it had before


SMALL = {False: 1_000_000, True: 100_000}
"""Up to so many multiplications OpenBLAS has code of its own for small matrices with AVX-512, and not with AVX2; where
B is transposed, it is faster up to so many."""

_SIZES: dict[str, Any] = {"i32": ctypes.c_int32, "i64": ctypes.c_int64}


@dataclass(frozen=True)
class Blas:
    """A loaded library.

    Attributes
    ----------
    name
        For people: ``OpenBLAS 0.3.30`` or ``MKL``.
    library
        As `ctypes` holds it.
    names
        How it calls a function: ``scipy_cblas_{}64_``.
    integer
        The type of its sizes as LLVM names it: ``i32`` or ``i64``.
    threads
        The functions that return and set how many threads it uses.
    original
        What it is a copy of: that one says how many threads are allowed, and does small products.
    """

    name: str
    library: ctypes.CDLL
    names: str
    integer: str
    threads: tuple[str, str]
    original: Blas | None = None

    def address(self, function: str) -> int:
        """Return where a function lies: ``sgemm``."""
        found = getattr(self.library, self.names.format(function))
        address = ctypes.cast(found, ctypes.c_void_p).value
        assert address is not None
        return address

    def function(self, name: str, multiplications: int, b_transposed: bool) -> int:
        """Return where the function for a product lies: for a small one, of a copy, that of the original."""
        library = self
        if self.original is not None and multiplications <= SMALL[b_transposed]:
            library = self.original
        return library.address(name)

    @property
    def thread_count(self) -> int:
        """How many threads it may use: what the environment or `threadpoolctl` allows."""
        return int(getattr(self.library, self.threads[0])())

    def seconds(self) -> float:
        """Measure three products, as a step has them, on one thread: ``x @ W``, ``dz @ W.T`` and ``x.T @ dz``."""
        size, scalar, array = _SIZES[self.integer], ctypes.c_float, ctypes.c_void_p
        multiply = getattr(self.library, self.names.format("sgemm"))
        x, w, dz = (np.ones(shape, np.float32) for shape in ((128, 512), (512, 256), (128, 256)))
        started = time.perf_counter()
        with self.on_one_thread():
            for a, a_transposed, b, b_transposed in ((x, 0, w, 0), (dz, 0, w, 1), (x, 1, dz, 0)):
                rows, inner = a.shape[::-1] if a_transposed else a.shape
                columns = b.shape[0] if b_transposed else b.shape[1]
                c = np.empty((rows, columns), np.float32)
                multiply(
                    101, 111 + a_transposed, 111 + b_transposed, size(rows), size(columns), size(inner), scalar(1),
                    array(a.ctypes.data), size(a.shape[1]), array(b.ctypes.data), size(b.shape[1]), scalar(0),
                    array(c.ctypes.data), size(columns),
                )  # fmt: skip
        return time.perf_counter() - started

    @contextmanager
    def on_one_thread(self) -> Iterator[None]:
        """Keep the library from starting threads of its own meanwhile, for all who ask at the same time."""
        set_count = getattr(self.library, self.threads[1])
        if self.original is not None:
            set_count(1)  # for good: whoever else multiplies does so with the original
            with self.original.on_one_thread():
                yield
            return
        with _LOCK:
            before = _ASKING.setdefault(self.name, [0, self.thread_count])
            before[0] += 1
            set_count(1)
        try:
            yield
        finally:
            with _LOCK:
                before[0] -= 1
                if before[0] == 0:
                    set_count(_ASKING.pop(self.name)[1])

    @property
    def allowed_threads(self) -> int:
        """How many threads it may use when nobody keeps it to one."""
        if self.original is not None:
            return self.original.allowed_threads
        return _ASKING.get(self.name, (0, self.thread_count))[1]
