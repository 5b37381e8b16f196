"""Which BLAS library multiplies matrices: found where NumPy, or MKL, has put it, and chosen by measuring.

NumPy brings OpenBLAS, which holds code for many processors and takes the newest that the processor can run. That is not
always the fastest: some do the instructions of AVX-512 in two halves, and there the code for AVX2 wins. Which code runs
is settled when a library is loaded, and NumPy has loaded it already. So a copy of it is loaded with the other code.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from handgrad.engines.compiled.blas import Blas
from handgrad.engines.compiled.native import cache_folder, keep, native, read_kept
from handgrad.errors import ConfigurationError

CHOICE = "HANDGRAD_BLAS"
"""The environment variable that picks the library: ``numpy`` (the one NumPy comes with, as it is), ``mkl``, or
``auto`` (whichever is fastest)."""

ROUNDS = 25
"""How often each library is measured; the fastest time counts, so that a busy machine changes little."""


_FINDING = threading.Lock()


def find_blas() -> Blas | None:
    """Return the library to use, or None where none is found; the same one in every thread of a process."""
    with _FINDING:
        return _find()


@cache
def _find() -> Blas | None:
    choice = os.environ.get(CHOICE, "auto")
    if choice not in ("auto", "numpy", "mkl"):
        raise ConfigurationError(f"{CHOICE} is {choice!r}", fix="give auto, numpy or mkl")
    if choice == "numpy":
        return _openblas()
    mkl = _mkl()
    if choice == "mkl":
        if mkl is None:
            raise ConfigurationError(f"{CHOICE} is mkl, and no MKL is installed", fix="pip install mkl")
        return mkl
    openblas = _openblas()
    return _fastest(openblas, mkl) if openblas is not None else mkl


def _fastest(openblas: Blas, mkl: Blas | None) -> Blas:
    """Return the library that multiplies matrices fastest, measured once on this machine and remembered.

    Two libraries round differently, so the choice should not change from one run to the next; where nothing can be
    remembered, each process measures anew.
    """
    found = [blas for blas in (openblas, mkl) if blas is not None]
    files = (Path(blas.library._name or "").name for blas in found)
    key = " ".join((native().version, *(blas.name for blas in found), *files))
    file = f"blas-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    remembered = read_kept(file)
    if remembered != openblas.name.encode() and (copy := _with_avx2(openblas)) is not None:
        found.append(copy)
    for blas in found:
        if blas.name.encode() == remembered:
            return blas
    if len(found) > 1:
        fastest = _measured(found)
        keep(file, fastest.name.encode())
        return fastest
    return openblas


def _measured(libraries: list[Blas]) -> Blas:
    """Return the fastest of some libraries, measured in turn."""
    rounds = [[blas.seconds() for blas in libraries] for _ in range(ROUNDS)]
    best = [min(seconds) for seconds in zip(*rounds, strict=True)]
    return libraries[best.index(min(best))]


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
                    name = " ".join(_said(library, own.format("get_config")).split()[:2])
                    threads = own.format("get_num_threads"), own.format("set_num_threads")
                    return Blas(name, library, names, integer, threads)
    return None


def _said(library: ctypes.CDLL, function: str) -> str:
    call = getattr(library, function)
    call.restype = ctypes.c_char_p
    return str(call().decode())


def _with_avx2(openblas: Blas) -> Blas | None:
    """Open a copy of a library that runs its code for AVX2, where the library itself runs that for AVX-512."""
    core = openblas.names.replace("cblas_{}", "openblas_get_corename")
    folder = cache_folder()
    if folder is None or _said(openblas.library, core) not in ("SkylakeX", "Cooperlake", "SapphireRapids"):
        return None
    settings = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "1"}
    with suppress(OSError):
        original = Path(openblas.library._name)
        size, version = original.stat().st_size, openblas.name.rpartition(" ")[2]
        copy = (
            folder / f"{original.stem}-{version}-{size:x}{original.suffix}"
        )  # one, however often NumPy is installed
        if not (copy.exists() and copy.stat().st_size == size):
            keep(copy.name, original.read_bytes())
        before = {name: os.environ.get(name) for name in settings}
        os.environ.update(settings)  # is read while the library is loaded
        try:
            library = ctypes.CDLL(str(copy))
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
        return replace(openblas, name=f"{openblas.name} (AVX2)", library=library, original=openblas)
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
