"""Single convolutions: handgrad's contractions, the product of windows that BLAS would do, and PyTorch's."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from handgrad.engines.compiled.contractions import ImageContractions, contraction_text
from handgrad.engines.compiled.convolution import products_of_windows, products_with_windows, sums_of_windows
from handgrad.engines.compiled.native import native
from handgrad.program.windows import WindowGeometry
from peers.workload import Array

LAYERS = (  # images, height, channels in and out, window, stride, padding
    (64, 28, 1, 6, 5, 1, 2), (64, 14, 6, 16, 5, 1, 0), (64, 32, 16, 16, 3, 1, 1), (64, 32, 16, 32, 3, 2, 1),
    (64, 16, 32, 32, 3, 1, 1), (64, 8, 64, 64, 3, 1, 1), (4, 56, 64, 64, 3, 1, 1), (4, 14, 256, 256, 3, 1, 1),
    (8, 7, 512, 512, 3, 1, 1), (8, 14, 256, 512, 1, 1, 0),
)  # fmt: skip
ROUNDS, SECONDS = 7, 0.02
PARTS = ("z", "dW", "dx")


def print_single_convolutions() -> None:
    """Print billions of operations a second: forward, in the weights, in the input."""
    print("images, size, channels, window, stride  " + "".join(f"{who:>22}" for who in WHO))
    for n, h, inputs, outputs, size, stride, padding in LAYERS:
        geometry = WindowGeometry((h, h), inputs, (size, size), stride, (padding, padding))
        operations = 2 * n * geometry.counts[0] * geometry.counts[1] * geometry.places * inputs * outputs
        calls = calls_of(n, geometry, outputs)
        times: dict[str, list[float]] = {key: [] for key in calls}
        for _ in range(ROUNDS):
            for key, call in calls.items():
                times[key].append(seconds(call))
        speeds = {key: f"{1e-9 * operations / median(measured):.0f}" for key, measured in times.items()}
        fields = (" / ".join(speeds.get(f"{part} {who}", "") for part in PARTS) for who in WHO)
        name = f"{n} × {h}², {inputs} → {outputs}, {size}², {stride}"
        print(f"{name:40}" + "".join(f"{field:>22}" for field in fields), flush=True)


WHO = ("handgrad", "windows, BLAS", "PyTorch", "channels_last")


def calls_of(n: int, geometry: WindowGeometry, outputs: int) -> dict[str, Callable[[], Any]]:
    """Return a call of each part by each way."""
    (h, v), (p, q), inputs = geometry.sizes, geometry.counts, geometry.channels
    rng = np.random.default_rng(0)
    x, dz, W, u = (
        rng.standard_normal(shape, dtype=np.float32)
        for shape in (
            (n, h, v, inputs), (n * p * q, outputs), (geometry.places * inputs, outputs),
            (n * p * q, geometry.places * inputs),
        )
    )  # fmt: skip
    z, dW, dx = np.empty_like(dz), np.empty_like(W), np.empty_like(x)
    calls: dict[str, Callable[[], Any]] = {
        "z handgrad": contracted(products_of_windows(geometry, outputs), n, x, W, z),
        "dW handgrad": contracted(products_with_windows(geometry, outputs), n, x, dz, dW),
        "dx handgrad": contracted(sums_of_windows(geometry, outputs), n, dz, W, dx),
        "z windows, BLAS": lambda: u @ W,
        "dW windows, BLAS": lambda: u.T @ dz,
        "dx windows, BLAS": lambda: dz @ W.T,
    }
    try:
        import torch
    except ImportError:
        return calls
    spacing = [geometry.stride] * 2, [*geometry.padding], [geometry.dilation] * 2
    for who, layout in (("PyTorch", torch.contiguous_format), ("channels_last", torch.channels_last)):
        images, weights, upstream = (
            torch.randn(shape).to(memory_format=layout)
            for shape in ((n, inputs, h, v), (outputs, inputs, *geometry.size), (n, outputs, p, q))
        )
        calls[f"z {who}"] = lambda x=images, W=weights: torch.conv2d(x, W, None, *spacing)
        for part, wanted in (("dW", [False, True, False]), ("dx", [True, False, False])):
            given = upstream, images, weights, None, *spacing, False, [0, 0], 1, wanted
            calls[f"{part} {who}"] = lambda given=given: torch.ops.aten.convolution_backward(*given)
    return calls


def contracted(given: ImageContractions, n: int, *arrays: Array) -> Callable[[], None]:
    """Return a call of one step."""
    signature = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    step = signature(native().address(contraction_text("float", given)))
    extent, copies = given.extent(n, "float"), np.empty(max(given.memory, 1), np.float32)
    held = np.array([*(array.ctypes.data for array in (*arrays, copies)), extent, n], np.int64)

    def call(_arrays: tuple[Array, ...] = (*arrays, copies)) -> None:  # which live as long as the call
        step(held.ctypes.data, 0, extent)

    return call


def seconds(call: Callable[[], Any]) -> float:
    """Return how much processor time a call takes, among as many as fill a while."""
    started, count = time.process_time(), 0
    while (passed := time.process_time() - started) < SECONDS:
        call()
        count += 1
    return passed / count
