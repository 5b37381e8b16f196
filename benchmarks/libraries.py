"""Products of matrices by each library that the compiled engine can choose: NumPy's, its copy for AVX2, MKL.

    python benchmarks/libraries.py

Billions of operations a second on one thread, float32; the fastest of many calls, the libraries in turn. In each field
stands ``x @ W`` (m × k by k × n), then with the second matrix transposed, then the first.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

import numpy as np
from peers.machine import facts, summary

from handgrad.engines.compiled.blas import Blas, _mkl, _openblas, _with_avx2

SIZES = (
    (64, 2, 64), (64, 64, 30), (64, 64, 64), (128, 10, 128), (96, 96, 96), (128, 256, 30), (128, 128, 64), (64, 128, 256),
    (32, 128, 784), (128, 256, 128), (128, 256, 784), (512, 2048, 784), (512, 2048, 2048),
)  # fmt: skip
WAYS = ((0, 0), (0, 1), (1, 0))
ROUNDS, SECONDS = 9, 0.003


def main() -> None:
    """Measure and print."""
    print(summary(facts()), end="\n\n")
    openblas = _openblas()
    copy = _with_avx2(openblas) if openblas is not None else None
    found = [blas for blas in (openblas, copy, _mkl()) if blas is not None]
    print(f"{'m, n, k':>20}" + "".join(f"{blas.name:>32}" for blas in found))
    for m, n, k in SIZES:
        calls = [[product(blas, m, n, k, *way) for way in WAYS] for blas in found]
        fastest = np.full((len(found), len(WAYS)), np.inf)
        for _ in range(ROUNDS):
            for number, blas in enumerate(found):
                with blas.on_one_thread():
                    for way, call in enumerate(calls[number]):
                        fastest[number, way] = min(fastest[number, way], seconds(call))
        speeds = 2e-9 * m * n * k / fastest
        fields = ("  ".join(f"{speed:6.1f}" for speed in row) for row in speeds)
        print(f"{f'{m}, {n}, {k}':>20}" + "".join(f"{field:>32}" for field in fields))


def product(blas: Blas, m: int, n: int, k: int, a_transposed: int, b_transposed: int) -> Callable[[], None]:
    """Return a call of one product."""
    a = np.ones((k, m) if a_transposed else (m, k), np.float32)
    b = np.ones((n, k) if b_transposed else (k, n), np.float32)
    c = np.empty((m, n), np.float32)
    size = {"i32": ctypes.c_int32, "i64": ctypes.c_int64}[blas.integer]
    multiply = getattr(blas.library, blas.names.format("sgemm"))
    arguments = (
        101, 111 + a_transposed, 111 + b_transposed, size(m), size(n), size(k), ctypes.c_float(1),
        ctypes.c_void_p(a.ctypes.data), size(a.shape[1]), ctypes.c_void_p(b.ctypes.data), size(b.shape[1]),
        ctypes.c_float(0), ctypes.c_void_p(c.ctypes.data), size(n),
    )  # fmt: skip

    def call(_arrays: tuple[object, ...] = (a, b, c)) -> None:  # which live as long as the call
        multiply(*arguments)

    return call


def seconds(call: Callable[[], None]) -> float:
    """Return how long a call takes, among as many as fill a few milliseconds."""
    started, count = time.perf_counter(), 0
    while (passed := time.perf_counter() - started) < SECONDS:
        call()
        count += 1
    return passed / count


if __name__ == "__main__":
    main()
