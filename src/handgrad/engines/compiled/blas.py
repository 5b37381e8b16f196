"""The BLAS library that multiplies matrices: found where NumPy, or MKL, has put it, and chosen by measuring.

NumPy brings OpenBLAS, which takes the newest code that the processor can run. That is not always the fastest: some do
the instructions of AVX-512 in two halves, and there the code for AVX2 wins. Which code runs is settled when a library
is loaded, and NumPy has loaded it already; so a copy of it is loaded with the other code. A library is called on one
thread: the engine divides large products itself.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from handgrad.engines.compiled.native import cache_file, cache_folder, native, read_cached
from handgrad.errors import ConfigurationError
from handgrad.forks import LOCK

_ASKING: dict[str, list[int]] = {}  # how many keep a library to one thread, and how many it had before


SMALL = {False: 1_000_000, True: 100_000}
"""Up to so many multiplications OpenBLAS has code of its own for small matrices with AVX-512, and not with AVX2; where
B is transposed, it is faster up to so many."""

CBLAS_ROW_MAJOR, CBLAS_NO_TRANS, CBLAS_TRANS = 101, 111, 112

_SIZES: dict[str, Any] = {"i32": ctypes.c_int32, "i64": ctypes.c_int64}


@dataclass(frozen=True)
class Blas:
    """A loaded library.

    ``names`` is how it calls a function (``scipy_cblas_{}64_``), ``integer`` LLVM's type of its sizes, ``threads`` the
    functions that return and set how many threads it uses, ``original`` what it is a copy of: that one states how many
    threads are allowed, and does small products.
    """

    name: str
    library: ctypes.CDLL
    names: str
    integer: str
    threads: tuple[str, str]
    original: Blas | None = None

    def address(self, function: str) -> int:
        found = getattr(self.library, self.names.format(function))
        address = ctypes.cast(found, ctypes.c_void_p).value
        assert address is not None
        return address

    def function(self, name: str, multiplications: int, b_transposed: bool) -> int:
        """Return the address of the function for a product; a copy does small ones by its original."""
        is_small = multiplications <= SMALL[b_transposed]
        return (self.original if self.original is not None and is_small else self).address(name)

    @property
    def thread_count(self) -> int:
        """How many threads it may use: what the environment or `threadpoolctl` allows."""
        return int(getattr(self.library, self.threads[0])())

    def seconds(self) -> float:
        """Measure three products, as a step has them, on one thread: ``x @ W``, ``dz @ W.T`` and ``x.T @ dz``."""
        x, w, dz = (np.ones(shape, np.float32) for shape in ((128, 512), (512, 256), (128, 256)))
        started = time.perf_counter()
        with self.on_one_thread():
            self.multiply(x, w, CBLAS_NO_TRANS, CBLAS_NO_TRANS)
            self.multiply(dz, w, CBLAS_NO_TRANS, CBLAS_TRANS)
            self.multiply(x, dz, CBLAS_TRANS, CBLAS_NO_TRANS)
        return time.perf_counter() - started

    def multiply(self, a: Any, b: Any, a_layout: int = CBLAS_NO_TRANS, b_layout: int = CBLAS_NO_TRANS) -> Any:
        """Return the product of two matrices of float32, each in its layout."""
        size, scalar, array = _SIZES[self.integer], ctypes.c_float, ctypes.c_void_p
        rows, inner = a.shape if a_layout == CBLAS_NO_TRANS else a.shape[::-1]
        columns = b.shape[b_layout == CBLAS_NO_TRANS]
        c = np.empty((rows, columns), np.float32)
        getattr(self.library, self.names.format("sgemm"))(
            CBLAS_ROW_MAJOR, a_layout, b_layout, size(rows), size(columns), size(inner),
            scalar(1), array(a.ctypes.data), size(a.shape[1]), array(b.ctypes.data), size(b.shape[1]),
            scalar(0), array(c.ctypes.data), size(columns),
        )  # fmt: skip
        return c

    @contextmanager
    def on_one_thread(self) -> Iterator[None]:
        """Keep the library from starting threads of its own meanwhile, for all who ask at the same time."""
        set_count = getattr(self.library, self.threads[1])
        if self.original is not None:
            set_count(1)  # for good: whoever else multiplies does so with the original
            with self.original.on_one_thread():
                yield
            return
        with LOCK:
            before = _ASKING.setdefault(self.name, [0, self.thread_count])
            before[0] += 1
            set_count(1)
        try:
            yield
        finally:
            with LOCK:
                before[0] -= 1
                if before[0] == 0:
                    set_count(_ASKING.pop(self.name)[1])

    @property
    def allowed_threads(self) -> int:
        if self.original is not None:
            return self.original.allowed_threads
        return _ASKING.get(self.name, (0, self.thread_count))[1]


CHOICE = "HANDGRAD_BLAS"
"""The environment variable that picks the library: ``numpy`` (the one NumPy comes with, as it is), ``mkl``, or
``auto`` (whichever is fastest)."""

ROUNDS = 25
"""How often each library is measured; the fastest time counts, so that a busy machine changes little."""


def library_is_chosen() -> bool:
    """Whether the user asks for a library: then it computes every product of matrices."""
    return os.environ.get(CHOICE, "auto") != "auto"


def find_blas() -> Blas | None:
    """Return the library to use, or None where none is found; the same one in every thread of a process."""
    with LOCK:
        return _find()


@cache
def _find() -> Blas | None:
    choice = os.environ.get(CHOICE, "auto")
    if choice not in ("auto", "numpy", "mkl"):
        raise ConfigurationError(f"{CHOICE} is {choice!r}", fix="give auto, numpy or mkl")
    openblas = _openblas() if choice != "mkl" else None
    mkl = _mkl() if choice != "numpy" else None
    if choice == "mkl" and mkl is None:
        raise ConfigurationError(f"{CHOICE} is mkl, and no MKL is installed", fix="pip install mkl")
    if choice == "auto" and openblas is not None:
        return _fastest(openblas, mkl)
    return openblas if choice == "numpy" else mkl


def _fastest(openblas: Blas, mkl: Blas | None) -> Blas:
    """Return the library that multiplies matrices fastest, measured once on this machine and cached.

    Two libraries round differently, so the choice should not change from one run to the next.
    """
    found = [blas for blas in (openblas, mkl) if blas is not None]
    files = (Path(blas.library._name or "").name for blas in found)
    key = " ".join((native().version, *(blas.name for blas in found), *files))
    file = f"blas-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    cached = read_cached(file)
    if cached != openblas.name.encode() and (copy := _with_avx2(openblas)) is not None:
        found.append(copy)
    for blas in found:
        if blas.name.encode() == cached or len(found) == 1:
            return blas
    rounds = [[blas.seconds() for blas in found] for _ in range(ROUNDS)]  # in turn
    best = [min(seconds) for seconds in zip(*rounds, strict=True)]
    fastest = found[best.index(min(best))]
    cache_file(file, fastest.name.encode())
    return fastest


def _openblas() -> Blas | None:
    """Open the library that NumPy itself has loaded."""
    root = Path(np.__file__).parent
    folders = (root.parent / "numpy.libs", root / ".dylibs", root / ".libs")
    for folder in folders:
        for file in sorted(folder.glob("*openblas*")):
            library = ctypes.CDLL(str(file))
            for names, integer in (("scipy_cblas_{}64_", "i64"), ("cblas_{}64_", "i64"), ("cblas_{}", "i32")):
                if hasattr(library, names.format("sgemm")):
                    own = names.replace("cblas_{}", "openblas_{}")
                    name = " ".join(_answer(library, own.format("get_config")).split()[:2])
                    threads = own.format("get_num_threads"), own.format("set_num_threads")
                    return Blas(name, library, names, integer, threads)
    return None


def _answer(library: ctypes.CDLL, function: str) -> str:
    call = getattr(library, function)
    call.restype = ctypes.c_char_p
    return str(call().decode())


def _with_avx2(openblas: Blas) -> Blas | None:
    """Open a copy of a library that runs its code for AVX2, where the library itself runs that for AVX-512."""
    core = openblas.names.replace("cblas_{}", "openblas_get_corename")
    folder = cache_folder()
    if folder is None or _answer(openblas.library, core) not in ("SkylakeX", "Cooperlake", "SapphireRapids"):
        return None
    settings = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "1"}
    with suppress(OSError):
        original = Path(openblas.library._name)
        size, version = original.stat().st_size, openblas.name.rpartition(" ")[2]
        # one, however often NumPy is installed
        copy = folder / f"{original.stem}-{version}-{size:x}{original.suffix}"
        if not _is_copy(copy, original):
            cache_file(copy.name, original.read_bytes())
            if not _is_copy(copy, original):
                return None
        before = {name: os.environ[name] for name in settings if name in os.environ}
        os.environ.update(settings)  # is read while the library is loaded
        try:
            library = ctypes.CDLL(str(copy))
        finally:
            for name in settings:
                del os.environ[name]
            os.environ.update(before)
        return replace(openblas, name=f"{openblas.name} (AVX2)", library=library, original=openblas)
    return None


def _is_copy(copy: Path, original: Path) -> bool:
    """Whether a file has all bytes of another: a damaged library would crash the process."""
    if not (copy.is_file() and copy.stat().st_size == original.stat().st_size):
        return False
    return np.array_equal(np.memmap(copy, mode="r"), np.memmap(original, mode="r"))


def _mkl() -> Blas | None:
    """Open MKL where `pip install mkl` puts it."""
    patterns = {"win32": "Library/bin/mkl_rt*.dll", "darwin": "lib/libmkl_rt*.dylib"}
    for file in sorted(Path(sys.prefix).glob(patterns.get(sys.platform, "lib/libmkl_rt.so*")), reverse=True):
        with suppress(OSError):
            threads = "MKL_Get_Max_Threads", "MKL_Set_Num_Threads"
            return Blas("MKL", ctypes.CDLL(str(file)), "cblas_{}", "i32", threads)
    return None
