"""handgrad against everything else that trains such networks on a processor, side by side in one run.

    python benchmarks/engines.py                     five networks and three variants, all peers
    python benchmarks/engines.py --mnist             from the start of a process to 97 % of MNIST's test digits
    python benchmarks/engines.py --scaling           time against width, depth, batch and rows, with a picture
    python benchmarks/engines.py --busy              steps beside a process that spins

Each peer has a process of its own, which stays alive and works for a short while in each round; the others keep
still meanwhile. Every library has its usual settings: no thread or waiting policy is set for it. A ratio is the
median of the rounds' ratios to handgrad's compiled engine. Peers that are not installed are listed as such.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from peers import OURS, PEERS
from peers.busy import measure_busy
from peers.machine import facts, summary
from peers.mnist import measure_mnist
from peers.rounds import as_json, measure, table
from peers.scaling import measure_scaling
from peers.workload import WORKLOADS


def main() -> None:
    """Read the options, measure and print."""
    options = parser().parse_args()
    known: dict[str, Any] = {"machine": facts()}
    print(summary(known["machine"]), end="\n\n")
    if options.mnist:
        known["mnist"] = measure_mnist(options.rounds)
    elif options.scaling:
        peers = chosen(options.peers or [OURS, "PyTorch eager"], PEERS)
        known["scaling"] = measure_scaling(peers, options.rounds, options.seconds, options.picture)
    elif options.busy:
        (third,) = chosen(["784-256-128-10/128"], WORKLOADS)
        known["busy"] = measure_busy(WORKLOADS[third], options.rounds, options.seconds)
    else:
        known["networks"] = measure_networks(options)
    if options.json:
        options.json.write_text(json.dumps(known, indent=1) + "\n")


def measure_networks(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure each network that was asked for, and print its table."""
    found = []
    for name in chosen(options.networks, WORKLOADS):
        workload = WORKLOADS[name]
        results = measure(workload, chosen(options.peers, PEERS), options.rounds, options.seconds)
        print(table(workload, results), end="\n\n", flush=True)
        found.append(as_json(workload, results))
    return found


def chosen(wanted: list[str] | None, names: dict[str, Any]) -> list[str]:
    """Return the names that were asked for: those that are given whole, or contain what is given."""
    if not wanted:
        return list(names)
    return [
        name for name in names if any(name == part or (part not in names and part in name) for part in wanted)
    ]


def parser() -> argparse.ArgumentParser:
    """Return the options."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    mode = options.add_mutually_exclusive_group()
    for name in ("mnist", "scaling", "busy"):
        mode.add_argument(f"--{name}", action="store_true")
    options.add_argument("--networks", nargs="+", metavar="NAME", help=f"(parts of) {', '.join(WORKLOADS)}")
    options.add_argument("--peers", nargs="+", metavar="NAME", help=f"(parts of) {', '.join(PEERS)}")
    options.add_argument("--rounds", type=int, default=7, help="how often each peer works (7)")
    options.add_argument("--seconds", type=float, default=0.3, help="for how long each time (0.3)")
    options.add_argument("--json", type=Path, metavar="FILE", help="where to write everything")
    options.add_argument(
        "--picture", type=Path, metavar="FILE", default=Path("scaling.png"), help="of --scaling"
    )
    return options


if __name__ == "__main__":
    main()
