"""The model on paper of docs/scale.md for 2 and 4 processes on this machine, beside what they take.

python benchmarks/processes.py [--width W] [--batch B] trains three layers of one width, float32, SGD, in 2 and 4 processes,
each on one core, which they share where there are fewer. As many processes that train by themselves at the same time, each
on its part of the rows, give the time of computing, and F, operations a second of each; what the sum of as many numbers as
there are parameters takes in two processes gives B, bytes a second. Both give a step in which nothing overlaps. The share of
its sums by which a measured step is shorter is the overlap; below zero it is longer.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import socket
import subprocess
import sys
import time
from functools import partial
from typing import Any

import numpy as np
from gpus import ROUNDS, engine_epochs, step_seconds


def measure(options: argparse.Namespace, address: str, count: int, number: int, together: bool) -> None:
    """Be one of the processes; the first one prints the seconds of a step and of a sum alone."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[number % len(cores)]})
    import jax

    if together:
        jax.distributed.initialize(address, count, number, cluster_detection_method="deactivate")
    step = step_seconds(
        partial(engine_epochs, options.width, options.batch), options.width, options, math.inf
    )
    found = [step, sum_seconds(jax, parameters(options.width))]
    if number == 0:
        print(json.dumps(found))


def sum_seconds(jax: Any, size: int) -> float:
    """Return how long the processes take to sum an array of each, the best of some rounds."""
    mesh = jax.make_mesh((jax.process_count(),), ("rows",))
    rows, everywhere = (
        jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes)) for axes in (["rows"], [])
    )
    mine = np.ones((1, size), np.float32)
    array = jax.make_array_from_process_local_data(rows, mine)
    total = jax.jit(lambda array: array.sum(0), out_shardings=everywhere)
    seconds = []
    for _ in range(4 * ROUNDS):
        began = time.perf_counter()
        jax.block_until_ready(total(array))
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def parameters(width: int) -> int:
    """Return how many parameters the three layers have."""
    return 3 * (width**2 + width)


def main() -> None:
    """Start the processes, or be one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--place", type=json.loads)
    options = parser.parse_args()
    if options.place:
        measure(options, *options.place)
        return
    cores, size = len(os.sched_getaffinity(0)), parameters(options.width)
    alone = {count: run(count, options.batch // count, together=False)[0] for count in (2, 4)}
    found = {count: run(count, options.batch, together=True) for count in (2, 4)}
    bandwidth = 8 * size / 2 / found[2][1]
    print(f"width {options.width}, {size:,} parameters, {options.batch} rows, {cores} cores: ", end="")
    print(f"B {bandwidth / 1e9:.3g} · 10⁹ bytes a second")
    print("processes  F, 10⁹ a second  computing, ms  sums, ms  predicted, ms  measured, ms  overlap")
    for count, (step, _) in found.items():
        operations = 6 * size * (options.batch // count) / alone[count]
        sums = 8 * size * (count - 1) / (count * bandwidth)
        predicted = alone[count] + sums
        milliseconds = [f"{1e3 * each:.2f}" for each in (alone[count], sums, predicted, step)]
        print(
            "{:9}  {:>15.3g}  {:>13}  {:>8}  {:>13}  {:>12}  {:>7.0%}".format(
                count, operations / 1e9, *milliseconds, (predicted - step) / sums
            )
        )


def run(count: int, batch: int, *, together: bool) -> tuple[float, float]:
    """Return what the first of so many processes measures."""
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        address = f"localhost:{listening.getsockname()[1]}"
    started = [
        subprocess.Popen(
            [sys.executable, *sys.argv, "--batch", str(batch), "--place", json.dumps([address, count, number, together])],
            env={**os.environ, "JAX_PLATFORMS": "cpu"}, stdout=subprocess.PIPE, text=True,
        )
        for number in range(count)
    ]  # fmt: skip
    printed = [each.communicate()[0] for each in started]
    if any(each.returncode for each in started):
        sys.exit("a process failed")
    step, sums = json.loads(printed[0].splitlines()[-1])
    return step, sums


if __name__ == "__main__":
    main()
