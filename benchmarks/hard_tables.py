"""Tables that handgrad 0.1 failed on, each in one command: what 0.1 came to, today's defaults, and the option they name.

The numbers of 0.1 are recorded: they were measured with 0.1 on tables of the same kind. Each training is `handgrad train`
with nothing but the target; where it is no better than a constant it names an option, with which it is then repeated.
Needs scikit-learn, for the diabetes and the sparse rows.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes

Array = NDArray[Any]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1000, 3))
LINEAR = X @ [1, 0.5, -0.7] + 0.05 * RNG.normal(size=1000)
PEOPLE = RNG.normal(size=(20_000, 6))
RISK = PEOPLE[:, :2].sum(axis=1) + 0.7 * RNG.normal(size=20_000)

CASES: dict[str, tuple[Array, Array, str, str]] = {
    "prices around 5e5": (X, 5e5 + 1e5 * LINEAR, "test_r2", "r2 -3.43"),
    "diabetes": (*load_diabetes(return_X_y=True), "test_r2", "r2 -0.34"),
    "target around 5e7": (X, 5e7 + 1e6 * LINEAR, "test_r2", "r2 -645"),
    "one outlier in 1,000": (X, np.where(np.arange(1000) == 17, 1e6, LINEAR), "test_r2", "r2 -7347"),
    "0.5 % fraud": (PEOPLE, np.quantile(RISK, 0.995) < RISK, "recall", "recall 0.33"),
}
SPARSE_BEFORE = "10.7 s an epoch, 1.87 GB"


def train(folder: Path, *options: str) -> dict[str, Any]:
    """Train with the command line, and return its results, those of `handgrad evaluate` among them."""
    run = ["-W", "ignore", "-m", "handgrad"]
    results = []
    for command in (["train", *options, "--out", "run", "--overwrite"], ["evaluate", "run"]):
        done = subprocess.run(
            [sys.executable, *run, *command, "--json"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(done.stderr)
        results.append(json.loads(done.stdout))
    return results[1] | results[0]


def score(results: dict[str, Any], name: str) -> str:
    """Return a score with its name; of a rare class its recall."""
    value = results[name]["1"] if name == "recall" else results[name]
    return f"{name.removeprefix('test_')} {value:.4g}"


def main() -> None:
    """Print the table."""
    print(f"{'':22}  {'0.1':26}  {'today':22}  {'the option that it names':28}  with it")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case, (x, t, of, before) in CASES.items():
            header = ",".join([*(f"x{k}" for k in range(x.shape[1])), "t"])
            np.savetxt(
                folder / "t.csv", np.column_stack([x, t]), "%.8g", delimiter=",", header=header, comments=""
            )
            today = train(folder, "t.csv", "--target", "t")
            option = ((today["remedy"] or {}).get("best") or {}).get("option", "")
            then = score(train(folder, "t.csv", "--target", "t", *option.split()), of) if option else ""
            print(f"{case:22}  {before:26}  {score(today, of):22}  {option:28}  {then}")
        rows = scipy.sparse.random(20_000, 50_000, 25 / 50_000, format="csr", rng=RNG)
        scipy.sparse.save_npz(folder / "x.npz", rows)
        np.save(folder / "t.npy", (rows @ RNG.normal(size=50_000) > 0).astype(int))
        done = train(
            folder, "x.npz", "--target", "t.npy", "--hidden", "10", "--batch-size", "200", "--epochs", "3"
        )
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20  # kB on Linux
        seconds = 20_000 / done["rows_per_second"]
        print(f"{'sparse, 20,000 rows':22}  {SPARSE_BEFORE:26}  {seconds:.2f} s an epoch, {peak:.2f} GB")


if __name__ == "__main__":
    main()
