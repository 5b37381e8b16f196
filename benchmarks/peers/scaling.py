"""How a step's time grows with width, depth, batch and rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from peers import OURS
from peers.rounds import measure
from peers.workload import Workload

CURVES = {
    "width": {
        w: Workload((256, w, w, 10), 128, max(2, 8192 // w)) for w in (16, 32, 64, 128, 256, 512, 1024, 2048)
    },
    "depth": {d: Workload((64, *(64,) * d, 10), 64, 1024 // d) for d in (1, 2, 4, 8, 16, 32, 64)},
    "batch": {b: Workload((256, 128, 10), b, max(4, 16384 // b)) for b in (1, 4, 16, 64, 256, 1024, 4096)},
    "rows": {r: Workload((64, 64, 10), 32, r // 32) for r in (1024, 4096, 16384, 65536, 262144, 1048576)},
}
"""What is varied, and the workload at each size."""


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Return k of the best fit of ``seconds = c · sizeᵏ``."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def measure_scaling(peers: list[str], rounds: int, seconds: float, picture: Path) -> dict[str, Any]:
    """Measure, print and plot each curve; the exponent is fitted to all sizes and to the larger half."""
    found: dict[str, dict[str, Any]] = {}
    for varied, workloads in CURVES.items():
        curves: dict[str, dict[int, float]] = {}
        for size, workload in workloads.items():
            for result in measure(workload, peers, rounds, seconds):
                if result.rounds:
                    curves.setdefault(result.peer, {})[size] = result.seconds
        found[varied] = {}
        print(f"{varied}: {', '.join(map(str, workloads))}")
        for peer, times in curves.items():
            sizes, steps = list(times), list(times.values())
            half = len(sizes) // 2
            fitted = exponent(sizes, steps), exponent(sizes[half:], steps[half:])
            found[varied][peer] = {
                "seconds": times,
                "exponent": fitted[0],
                "exponent_of_larger_half": fitted[1],
            }
            print(f"  {peer:20} {', '.join(f'{step * 1e6:,.1f}' for step in steps)} µs a step")
            print(f"  {'':20} exponent {fitted[0]:.2f}, of the larger half {fitted[1]:.2f}")
    _plot(found, picture)
    return found


def _plot(found: dict[str, dict[str, Any]], picture: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(found), figsize=(4 * len(found), 3.6), layout="constrained")
    for axis, (varied, curves) in zip(axes, found.items(), strict=True):
        for peer, curve in curves.items():
            label = f"{peer}, exponent {curve['exponent_of_larger_half']:.2f}"
            microseconds = [1e6 * seconds for seconds in curve["seconds"].values()]
            axis.loglog(list(curve["seconds"]), microseconds, "o-", label=label, zorder=2 + (peer == OURS))
        axis.set(xlabel=varied, ylabel="µs a step")
        axis.legend(fontsize="small")
    figure.savefig(picture, dpi=120)
    print(f"picture: {picture}")
