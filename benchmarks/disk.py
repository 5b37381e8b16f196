"""Train one epoch on rows of a file and on the same rows in memory: rows a second, and the most memory that was resident.

python benchmarks/disk.py FOLDER --rows 8000000 makes the files there (30 columns, 124 bytes a row) and runs each case in a
process of its own.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from handgrad import Linear, MeanSquaredError, Network, ReLU, Standardise, train

COLUMNS, PIECE = 30, 2**18


def make(folder: Path, rows: int) -> None:
    """Write x.npy and t.npy, piece by piece."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=COLUMNS).astype(np.float32)
    x = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (rows, COLUMNS))
    t = np.lib.format.open_memmap(folder / "t.npy", "w+", np.float32, (rows,))
    for first in range(0, rows, PIECE):
        piece = rng.standard_normal((min(PIECE, rows - first), COLUMNS), dtype=np.float32)
        x[first : first + PIECE], t[first : first + PIECE] = piece, piece @ weights


def measure(folder: Path, engine: str, where: str) -> None:
    """Train, after a small training that imports and compiles."""

    def network() -> Network:
        return Network(Standardise(), Linear(COLUMNS, 64), ReLU(), Linear(64, 1), loss=MeanSquaredError())

    x, t = (np.load(folder / f"{name}.npy", mmap_mode="r" if where == "disk" else None) for name in "xt")
    train(network(), np.array(x[:50_000]), np.array(t[:50_000]), epochs=1, batch_size=4096, engine=engine)
    (record,) = train(network(), x, t, epochs=1, batch_size=4096, engine=engine).epochs
    resident = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    print(
        f"{engine:9} {where:7} {len(x) / record.seconds:12,.0f} rows/s   {int(resident[1]) / 1e6:.2f} GB resident"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--case", nargs=2)
    options = parser.parse_args()
    if options.case:
        measure(options.folder, *options.case)
    else:
        make(options.folder, options.rows)
        for case in (("compiled", "memory"), ("compiled", "disk"), ("jax", "memory"), ("jax", "disk")):
            subprocess.run([sys.executable, __file__, options.folder, "--case", *case], check=True)
