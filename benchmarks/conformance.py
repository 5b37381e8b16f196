"""How many of the networks that engines are tested with agree on JAX, over several devices and processes, with the reference.

python benchmarks/conformance.py [--devices N | --processes N] [--dtype float64] [--every K] trains those of
tests/engines/test_compiled_agreement.py, or each K-th, two epochs of batches of 8 rows each, and prints how many agree and
how far they are apart. The devices are simulated ones of the processor, or what JAX_PLATFORMS names.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parents[1]
BATCH = 8


def conform(dtype: str, every: int) -> NoReturn:
    """Train them on both engines, and print the distances of losses and of arrays, in the first process."""
    import jax

    from handgrad.engines import ReferenceEngine
    from handgrad.engines.jax_engine import JaxEngine

    sys.path.insert(0, str(ROOT))
    agreement = importlib.import_module("tests.engines.agreement")
    networks = importlib.import_module("tests.engines.test_compiled_agreement").NETWORKS
    wrong, losses, arrays = [], [], []
    for name in [*networks][::every]:
        case = networks[name]
        rows = max(len(case.arrays["t"]) // BATCH, 1) * BATCH  # which divide among devices
        case = replace(case, arrays={key: array[:rows] for key, array in case.arrays.items()})
        one, other = (
            agreement.Training(engine(), case, dtype).run(BATCH) for engine in (JaxEngine, ReferenceEngine)
        )
        apart = agreement.apart(one, other)
        if max(apart.values()) > agreement.BOUNDS[dtype]:
            wrong.append(name)
        losses.append(apart.pop("total and count"))
        arrays.append(max(apart.values()))
    if jax.process_index() == 0:
        where = f"{jax.process_count()} processes, {jax.device_count()} devices, {dtype}"
        print(
            f"{where}: {len(losses) - len(wrong)} of {len(losses)} agree to {agreement.BOUNDS[dtype]:.0e}; "
            f"losses at most {max(losses):.0e} apart, arrays {max(arrays):.0e}", *wrong, sep="\n  ",
        )  # fmt: skip
    sys.exit(bool(wrong))


def main() -> None:
    """Start the processes, or be one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--place", type=json.loads)
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    if given.place:
        import jax

        if given.processes > 1:
            jax.distributed.initialize(*given.place, cluster_detection_method="deactivate")
        conform(given.dtype, given.every)
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        address = f"localhost:{listening.getsockname()[1]}"
    flags = {"XLA_FLAGS": f"--xla_force_host_platform_device_count={given.devices}"}
    flags["JAX_PLATFORMS"] = os.environ.get("JAX_PLATFORMS", "cpu")
    started = [
        subprocess.Popen(
            [sys.executable, *sys.argv, "--place", json.dumps([address, given.processes, number])],
            env={**os.environ, **flags},
        )
        for number in range(given.processes)
    ]
    sys.exit(max(abs(each.wait()) for each in started))


if __name__ == "__main__":
    main()
