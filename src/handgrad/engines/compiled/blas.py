"""Products of matrices: the BLAS library that does them, found and called natively.

NumPy comes with one (OpenBLAS), already loaded; where MKL is installed too, the faster one is found by measuring.
Each is called on one thread: large products are divided by the engine itself, into parts that follow from their size
and from how many threads are allowed, and that are the same whoever does them.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from handgrad.engines.compiled.native import keep, native, read_kept
from handgrad.errors import ConfigurationError

CHOICE = "HANDGRAD_BLAS"
"""The environment variable that picks the library: ``numpy`` (the one NumPy comes with), ``mkl``, or
``auto`` (whichever is faster)."""


_LOCK = threading.Lock()
_ASKING: dict[str, list[int]] = {}  # how many keep a library to one thread, and how many it had before


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
    """

    name: str
    library: ctypes.CDLL
    names: str
    integer: str
    threads: tuple[str, str]

    def address(self, function: str) -> int:
        """Return where a function lies: ``sgemm``."""
        found = getattr(self.library, self.names.format(function))
        address = ctypes.cast(found, ctypes.c_void_p).value
        assert address is not None
        return address

    @property
    def thread_count(self) -> int:
        """How many threads it may use: what the environment or `threadpoolctl` allows."""
        return int(getattr(self.library, self.threads[0])())

    def seconds(self) -> float:
        """Measure a typical product of matrices, on one thread."""
        size, scalar = (ctypes.c_int64 if self.integer == "i64" else ctypes.c_int32), ctypes.c_float
        a, b, c = (
            np.ones((64, 512), np.float32),
            np.ones((512, 128), np.float32),
            np.ones((64, 128), np.float32),
        )
        multiply = getattr(self.library, self.names.format("sgemm"))
        arguments = (
            *map(ctypes.c_int, (101, 111, 111)), *map(size, (64, 128, 512)), scalar(1), a.ctypes.data_as(ctypes.c_void_p),
            size(512), b.ctypes.data_as(ctypes.c_void_p), size(128), scalar(0), c.ctypes.data_as(ctypes.c_void_p), size(128),
        )  # fmt: skip
        times = []
        with self.on_one_thread():
            for _ in range(50):
                started = time.perf_counter()
                multiply(*arguments)
                times.append(time.perf_counter() - started)
        return float(np.median(times))

    @contextmanager
    def on_one_thread(self) -> Iterator[None]:
        """Keep the library from starting threads of its own meanwhile, for all who ask at the same time."""
        set_count = getattr(self.library, self.threads[1])
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
        return _ASKING.get(self.name, (0, self.thread_count))[1]


@cache
def find_blas() -> Blas | None:
    """Return the library to use, or None where none is found."""
    choice = os.environ.get(CHOICE, "auto")
    if choice not in ("auto", "numpy", "mkl"):
        raise ConfigurationError(f"{CHOICE} is {choice!r}", fix="give auto, numpy or mkl")
    mkl = _mkl() if choice != "numpy" else None
    if choice == "mkl" and mkl is None:
        raise ConfigurationError(f"{CHOICE} is mkl, and no MKL is installed", fix="pip install mkl")
    openblas = _openblas() if choice != "mkl" else None
    if mkl is None or openblas is None:
        return mkl or openblas
    return _faster(openblas, mkl)


def _faster(*libraries: Blas) -> Blas:
    """Return the library that multiplies matrices faster, measured once on this machine and remembered.

    Two libraries round differently, so the choice should not change from one run to the next; where nothing can be
    remembered, each process measures anew.
    """
    key = " ".join((native().version, *(f"{blas.name} {blas.library._name}" for blas in libraries)))
    file = f"blas-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    remembered = read_kept(file)
    for blas in libraries:
        if blas.name.encode() == remembered:
            return blas
    fastest = min(libraries, key=lambda blas: blas.seconds())
    keep(file, fastest.name.encode())
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
                    prefix, suffix = names.split("cblas_{}")
                    functions = tuple(
                        f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set")
                    )
                    config = getattr(library, f"{prefix}openblas_get_config{suffix}")
                    config.restype = ctypes.c_char_p
                    name = " ".join(config().decode().split()[:2])
                    return Blas(name, library, names, integer, (functions[0], functions[1]))
    return None


def _mkl() -> Blas | None:
    """Open MKL where `pip install mkl` puts it."""
    patterns = {
        "win32": "Library/bin/mkl_rt*.dll",
        "linux": "lib/libmkl_rt.so*",
        "darwin": "lib/libmkl_rt*.dylib",
    }
    for file in sorted(Path(sys.prefix).glob(patterns.get(sys.platform, "lib/libmkl_rt*")), reverse=True):
        with suppress(OSError):
            return Blas(
                "MKL",
                ctypes.CDLL(str(file)),
                "cblas_{}",
                "i32",
                ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
            )
    return None


def product_text(kind: str, integer: str) -> str:
    """Return the code of a step that multiplies matrices: C ← scale · A B + keep · C.

    Its arguments: the function · A transposed · B transposed · rows, columns and inner size · the address of the
    scale (a double) · its sign · what C is multiplied by first · A, the length of its rows · B · C · whether the
    parts are rows (0) or columns (1). Signs and factors are 1, 0 or -1, as whole numbers.
    """
    loads = "\n".join(
        f"  %{name}.at = getelementptr i64, ptr %arguments, i64 {place}\n  %{name} = load {type_}, ptr %{name}.at"
        for place, (name, type_) in enumerate((
            ("call", "ptr"), ("ta", "i64"), ("tb", "i64"), ("m", "i64"), ("n", "i64"), ("k", "i64"),
            ("scale.at0", "ptr"), ("sign", "i64"), ("keep", "i64"), ("a", "ptr"), ("lda", "i64"), ("b", "ptr"),
            ("ldb", "i64"), ("c", "ptr"), ("ldc", "i64"), ("columns", "i64"),
        ))
    )  # fmt: skip
    sizes = ("rows", "cols", "k", "lda", "ldb", "ldc")
    cast = "\n".join(
        f"  %{name}.i = trunc i64 %{name} to i32" if integer == "i32" else f"  %{name}.i = add i64 %{name}, 0"
        for name in sizes
    )
    convert = (
        "fptrunc double %scaled to float" if kind == "float" else "fadd double %scaled, 0x8000000000000000"
    )
    given = ", ".join((
        "i32 101", "i32 %ta.c", "i32 %tb.c", *(f"{integer} %{name}.i" for name in sizes[:3]), f"{kind} %alpha",
        f"ptr %a.part, {integer} %lda.i", f"ptr %b.part, {integer} %ldb.i", f"{kind} %beta",
        f"ptr %c.part, {integer} %ldc.i",
    ))  # fmt: skip
    return f"""
define i32 @kernel(ptr %arguments, i64 %first, i64 %last) #0 {{
{loads}
  %scale = load double, ptr %scale.at0
  %sign.d = sitofp i64 %sign to double
  %scaled = fmul double %scale, %sign.d
  %alpha = {convert}
  %beta = sitofp i64 %keep to {kind}
  %extent = sub i64 %last, %first
  %by.columns = icmp ne i64 %columns, 0
  %rows = select i1 %by.columns, i64 %m, i64 %extent
  %cols = select i1 %by.columns, i64 %extent, i64 %n
  %ta.1 = icmp ne i64 %ta, 0
  %tb.1 = icmp ne i64 %tb, 0
  %a.step = select i1 %ta.1, i64 1, i64 %lda
  %b.step = select i1 %tb.1, i64 %ldb, i64 1
  %a.far = mul i64 %first, %a.step
  %b.far = mul i64 %first, %b.step
  %c.far = mul i64 %first, %ldc
  %a.by = select i1 %by.columns, i64 0, i64 %a.far
  %b.by = select i1 %by.columns, i64 %b.far, i64 0
  %c.by = select i1 %by.columns, i64 %first, i64 %c.far
  %a.part = getelementptr {kind}, ptr %a, i64 %a.by
  %b.part = getelementptr {kind}, ptr %b, i64 %b.by
  %c.part = getelementptr {kind}, ptr %c, i64 %c.by
  %ta.c = select i1 %ta.1, i32 112, i32 111
  %tb.c = select i1 %tb.1, i32 112, i32 111
{cast}
  call void %call({given})
  ret i32 0
}}
attributes #0 = {{ nounwind }}
"""
