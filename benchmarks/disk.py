"""Train one epoch on rows in memory, in a file and in a folder of Parquet files: rows a second, and the most memory resident.

python benchmarks/disk.py FOLDER --rows 8000000 makes the files there (30 columns, 248 bytes a row) and runs each case in a
process of its own; the command's take temporary files of 480 bytes a row.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet as pq

from handgrad import Linear, MeanSquaredError, Network, ReLU, Standardise, train
from handgrad.cli import group

COLUMNS, PIECE, FILES = 30, 2**18, 8
CASES = [
    (engine, where) for engine in ("compiled", "jax") for where in ("memory", "mapped", "command", "parquet")
]


def make(folder: Path, rows: int) -> None:
    """Write x.npy and t.npy, and the same numbers as Parquet, piece by piece."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=COLUMNS).astype(np.float32)
    x = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (rows, COLUMNS))
    t = np.lib.format.open_memmap(folder / "t.npy", "w+", np.float32, (rows,))
    (folder / "parquet").mkdir(exist_ok=True)
    names = [*(f"x{k}" for k in range(COLUMNS)), "t"]
    schema = pa.schema([(name, pa.float32()) for name in names])
    writers = [pq.ParquetWriter(folder / "parquet" / f"{k}.parquet", schema) for k in range(FILES)]
    for first in range(0, rows, PIECE):
        piece = rng.standard_normal((min(PIECE, rows - first), COLUMNS), dtype=np.float32)
        x[first : first + PIECE], t[first : first + PIECE] = piece, piece @ weights
        columns = [*piece.T.copy(), piece @ weights]
        writers[FILES * first // rows].write_table(pa.table(dict(zip(names, columns, strict=True)), schema))
    for writer in writers:
        writer.close()


def measure(folder: Path, engine: str, where: str) -> None:
    """Train, after a small training that imports and compiles."""

    def network() -> Network:
        return Network(Standardise(), Linear(COLUMNS, 64), ReLU(), Linear(64, 1), loss=MeanSquaredError())

    began, seconds = time.perf_counter(), 0.0
    if where in ("memory", "mapped"):
        x, t = (
            np.load(folder / f"{name}.npy", mmap_mode="r" if where == "mapped" else None) for name in "xt"
        )
        train(network(), np.array(x[:50_000]), np.array(t[:50_000]), epochs=1, batch_size=4096, engine=engine)
        (record,) = train(network(), x, t, epochs=1, batch_size=4096, engine=engine).epochs
        rate = len(x) / record.seconds
    else:
        source = (
            [folder / "x.npy", "--target", folder / "t.npy"]
            if where == "command"
            else [folder / "parquet", "--target", "t"]
        )
        options = [
            "--epochs",
            1,
            "--batch-size",
            4096,
            "--hidden",
            64,
            "--engine",
            engine,
            "--out",
            folder / f"{engine}-{where}",
        ]
        with redirect_stdout(StringIO()) as printed:
            group(
                list(map(str, ["train", *source, *options, "--json", "--overwrite"])), standalone_mode=False
            )
        rate = json.loads(printed.getvalue())["rows_per_second"]
        seconds = time.perf_counter() - began
    resident = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    whole = f"   {seconds:.0f} s in all" if seconds else ""
    print(f"{engine:9} {where:8} {rate:12,.0f} rows/s   {int(resident[1]) / 1e6:.2f} GB resident{whole}")


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
        for case in CASES:
            subprocess.run([sys.executable, __file__, options.folder, "--case", *case], check=True)
