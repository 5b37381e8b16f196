"""How steps suffer when another process keeps a core busy."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from statistics import median
from typing import Any

from peers import OURS
from peers.child import Child
from peers.rounds import tell
from peers.workload import Workload

ONE = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")

RUNNERS = {
    "handgrad": (OURS, {}),
    "handgrad, one thread": (OURS, ONE),
    "PyTorch eager": ("PyTorch eager", {}),
    "PyTorch eager, one thread": ("PyTorch eager", ONE),
}


def spin() -> None:
    """Keep a core busy."""
    while True:
        pass


@contextmanager
def spinning() -> Iterator[None]:
    """Have another process keep a core busy meanwhile."""
    process = multiprocessing.get_context("spawn").Process(target=spin, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def measure_busy(workload: Workload, rounds: int, seconds: float) -> dict[str, Any]:
    """Measure each runner in quiet and beside a spinning process, round by round."""
    times: dict[str, dict[str, list[float]]] = {}
    with ExitStack() as stack:
        children = {}
        for name, (peer, environment) in RUNNERS.items():
            child = stack.enter_context(closing(Child(peer, workload, environment)))
            if child.started.problem:
                print(f"{name}: {child.started.problem}")
                continue
            children[name], times[name] = child, {"quiet": [], "busy": []}
        for number in range(rounds):
            tell(f"round {number + 1} of {rounds}")
            for name, child in children.items():
                times[name]["quiet"].append(child.step_seconds(seconds))
            with spinning():
                for name, child in children.items():
                    times[name]["busy"].append(child.step_seconds(seconds))
    tell("")
    print(f"{workload.name}: µs a step, and beside a process that spins")
    yardstick = median(times["handgrad, one thread"]["quiet"]) if "handgrad, one thread" in times else None
    for name, both in times.items():
        quiet, busy = median(both["quiet"]), median(both["busy"])
        against = f"   busy: {busy / yardstick:.2f} times one quiet thread of handgrad" if yardstick else ""
        print(f"{name:28}{quiet * 1e6:10,.1f}{busy * 1e6:10,.1f}{against}")
    return {"network": workload.name, "seconds": times}
