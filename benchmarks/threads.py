"""When a second thread pays: one step of training, of growing size, with and without help.

    python benchmarks/threads.py [--seconds 0.2]

The thresholds of `handgrad.engines.compiled.step_table` (how large a part of a step must be) come from this table: they
are lowered here, so that every step is divided, and the size from which help is faster is where the ratio crosses 1.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from handgrad import SGD, Adam, Linear, Network, ReLU, SoftmaxCrossEntropy
from handgrad.engines import Epoch
from handgrad.engines.compiled import CompiledEngine, batch_loop, step_table
from handgrad.layers import Optimiser


def microseconds(width: int, batch: int, optimiser: Optimiser, seconds: float) -> dict[bool, float]:
    """Time a step of a network of two layers, with help and without, turn by turn."""
    network = Network(Linear(width, width), ReLU(), Linear(width, 10), loss=SoftmaxCrossEntropy())
    program = network.program(optimiser).keeping("total", "count")
    slots = {name: np.zeros(shape, network.dtype) for name, shape in program.slots.items()}
    bound: Any = CompiledEngine().bind(program, {**network.arrays, **slots})
    rng = np.random.default_rng(0)
    x, t = rng.standard_normal((batch * 20, width), dtype=np.float32), rng.integers(0, 10, batch * 20)
    epoch = Epoch({"x": x, "t": t}, np.arange(batch * 20), batch, np.full(20, 1e-4))
    bound.epoch(epoch)
    *_, plan = bound.plans.values()
    choice = plan.choice
    choice.measured = lambda seconds, rows: None  # the choice is made here
    choice.length = 1.0
    times: dict[bool, list[float]] = {True: [], False: []}
    until = time.perf_counter() + 2 * seconds
    while time.perf_counter() < until:
        for choice.helped in (True, False):
            started = time.perf_counter()
            bound.epoch(epoch)
            times[choice.helped].append((time.perf_counter() - started) / 20 * 1e6)
    return {helped: float(np.median(measured)) for helped, measured in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=0.2, help="for each way of each size")
    seconds = parser.parse_args().seconds
    step_table.MIN_FLOPS_PER_CHUNK, step_table.MIN_ELEMENTS_PER_CHUNK = 1, 1
    print(f"{batch_loop.os.cpu_count()} processors; microseconds a step")
    print(
        f"{'width':>6} {'batch':>6} {'Mflop a product':>16} {'alone':>9} {'helped':>9} {'ratio':>6}   optimiser"
    )
    for optimiser in (SGD(), Adam()):
        for width, batch in ((64, 64), (64, 128), (128, 64), (128, 128), (256, 64), (256, 128), (512, 128)):
            times = microseconds(width, batch, optimiser, seconds)
            flops = 2 * batch * width * width / 1e6
            ratio = times[False] / times[True]
            print(
                f"{width:6} {batch:6} {flops:16.1f} {times[False]:9.1f} {times[True]:9.1f} {ratio:6.2f}   {optimiser}"
            )


if __name__ == "__main__":
    main()
