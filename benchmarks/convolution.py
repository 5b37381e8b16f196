"""Convolutional networks beside PyTorch and JAX: a training step of LeNet-5 and of ResNet-8 with batches of 64, float32.

    taskset -c 0 python benchmarks/convolution.py        one processor: times are then processor times
    python benchmarks/convolution.py                     all processors
    taskset -c 0 python benchmarks/convolution.py --single   one convolution at a time, each way

Peers take turns in processes of their own, as in `engines.py`; a ratio is the median of the rounds' ratios to handgrad's
compiled engine. ``products`` are handgrad's convolutions and products of matrices alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peers.images import PEERS, WORKLOADS
from peers.machine import facts, summary
from peers.rounds import as_json, measure, table
from peers.single_convolutions import print_single_convolutions

from engines import chosen


def main(description: str | None, workloads: Mapping[str, Any], peers: Mapping[str, str]) -> None:
    """Read the options, measure and print."""
    options = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--networks", nargs="+", metavar="NAME", help=f"(parts of) {', '.join(workloads)}")
    options.add_argument("--peers", nargs="+", metavar="NAME", help=f"(parts of) {', '.join(peers)}")
    options.add_argument("--rounds", type=int, default=7, help="how often each peer works (7)")
    options.add_argument("--seconds", type=float, default=0.5, help="for how long each time (0.5)")
    options.add_argument("--single", action="store_true", help="single convolutions")
    options.add_argument("--json", type=Path, metavar="FILE", help="where to write everything")
    given = options.parse_args()
    known: dict[str, Any] = {"machine": facts(), "networks": []}
    print(summary(known["machine"]), end="\n\n")
    if given.single:
        print_single_convolutions()
        return
    for name in chosen(given.networks, workloads):
        results = measure(workloads[name], chosen(given.peers, peers), given.rounds, given.seconds)
        print(table(workloads[name], results), end="\n\n", flush=True)
        known["networks"].append(as_json(workloads[name], results))
    if given.json:
        given.json.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main(__doc__, WORKLOADS, PEERS)
