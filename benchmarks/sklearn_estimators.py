"""Time handgrad's estimators beside scikit-learn's: the same rows, parameters and seeds, in turn, in one process.

    python benchmarks/sklearn_estimators.py [data set …] [--seeds 5] [--float32] [--json FILE]
    python benchmarks/sklearn_estimators.py --sparse [--seeds 5] [--float32]

Prints each one's median seconds of a fit, the ratio of the medians, and the scores on held-out rows. The first fit of
handgrad's, which prepares the program (and compiles it, the first time on a machine), is printed by itself.

With --sparse, prints seconds an epoch on sparse rows, and by how much the largest memory of a process grows in its first fit.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import statistics
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.neural_network
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_classification,
    make_regression,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

import handgrad.sklearn

Array = NDArray[Any]
Rows = tuple[Array, Array]


def scaled(load: Callable[..., Any]) -> Rows:
    X, y = load(return_X_y=True)
    return scale(X), y


def values(X: Array, y: Array) -> Rows:
    return scale(X), scale(y)


DATA: dict[str, tuple[str, Callable[[], Rows], dict[str, Any]]] = {
    "digits": ("MLPClassifier", lambda: (load_digits().data / 16, load_digits().target), {}),
    "breast cancer": ("MLPClassifier", lambda: scaled(load_breast_cancer), {}),
    "wine": ("MLPClassifier", lambda: scaled(load_wine), {}),
    "diabetes": ("MLPRegressor", lambda: values(*load_diabetes(return_X_y=True)), {}),
    "100,000 × 100": (
        "MLPClassifier",
        lambda: make_classification(100_000, 100, n_informative=20, random_state=0),
        {"max_iter": 5},
    ),
    "10 outputs": (
        "MLPRegressor",
        lambda: values(*make_regression(1000, 20, n_targets=10, noise=10, random_state=0)),
        {},
    ),
}
"""The estimator, the rows, and what is not at its default."""


def measure(name: str, seeds: int, dtype: str) -> dict[str, Any]:
    """Fit both in turn, once for each seed."""
    estimator, rows, parameters = DATA[name]
    X, y = rows()
    X, X_test, y, y_test = train_test_split(X.astype(dtype), y, random_state=0)
    seconds: dict[str, list[float]] = {"handgrad": [], "scikit-learn": []}
    scores: dict[str, list[float]] = {"handgrad": [], "scikit-learn": []}
    first = fitted(handgrad.sklearn, estimator, parameters | {"random_state": seeds}, X, y)[0]
    for seed in range(seeds):
        for package, module in PACKAGES.items():
            took, model = fitted(module, estimator, parameters | {"random_state": seed}, X, y)
            seconds[package].append(took)
            scores[package].append(model.score(X_test, y_test))
    medians = {package: statistics.median(taken) for package, taken in seconds.items()}
    return {
        "data": name,
        "rows": len(X),
        "ratio": medians["scikit-learn"] / medians["handgrad"],
        "first": first,
        "seconds": medians,
        "score": {package: statistics.mean(each) for package, each in scores.items()},
        "deviation": {package: float(np.std(each, ddof=1)) for package, each in scores.items()},
    }


def fitted(module: Any, estimator: str, parameters: dict[str, Any], X: Array, y: Array) -> tuple[float, Any]:
    model = getattr(module, estimator)(**parameters)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return time.perf_counter() - started, model


PACKAGES = {"handgrad": handgrad.sklearn, "scikit-learn": sklearn.neural_network}
SPARSE = 20_000, 50_000, 25
"""Rows, columns and entries of a row."""

EPOCHS = 3


def fit_sparse(package: str, hidden: int, dtype: str) -> tuple[float, float]:
    """Return the seconds of an epoch, and the MB by which the first fit increases the largest memory of this process."""
    rows, columns, entries = SPARSE
    rng = np.random.default_rng(0)
    where = rng.integers(0, columns, rows * entries), np.arange(0, rows * entries + 1, entries)
    X, y = csr_array((rng.random(rows * entries, dtype), *where), (rows, columns)), rng.integers(0, 2, rows)
    parameters = {"hidden_layer_sizes": (hidden,), "max_iter": EPOCHS, "random_state": 0}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fitted(PACKAGES[package], "MLPClassifier", parameters | {"max_iter": 1}, X, y)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return fitted(PACKAGES[package], "MLPClassifier", parameters, X, y)[0] / EPOCHS, memory / 1024


def measure_sparse(hidden: int, dtype: str, rounds: int) -> None:
    """Fit both in turn, each time in a new process."""
    found: dict[str, list[tuple[float, float]]] = {package: [] for package in PACKAGES}
    for _ in range(rounds):
        for package, figures in found.items():
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
                figures.append(process.submit(fit_sparse, package, hidden, dtype).result())
    medians = {package: np.median(figures, axis=0) for package, figures in found.items()}
    ratio = np.median(np.divide(found["scikit-learn"], found["handgrad"]), axis=0)
    shown = (f"{package} {seconds:6.2f} s {memory:5.0f} MB" for package, (seconds, memory) in medians.items())
    print(f"{hidden:4} units   {'   '.join(shown)}   ratio {ratio[0]:5.2f} {ratio[1]:5.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="*", help=f"of {', '.join(DATA)}; all when none is named")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--float32", action="store_true")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    parser.add_argument("--sparse", action="store_true", help="only an epoch on sparse rows, and its memory")
    chosen = parser.parse_args()
    if chosen.sparse:
        print(f"{SPARSE[0]:,} × {SPARSE[1]:,}, {SPARSE[2]} entries a row: an epoch, and memory")
        for hidden in (10, 100):
            measure_sparse(hidden, "float32" if chosen.float32 else "float64", chosen.seeds)
        return
    found = []
    print(
        f"{'':14} {'rows':>7} {'handgrad':>9} {'sklearn':>9} {'ratio':>6} {'first':>7}   score (± over seeds)"
    )
    for name in chosen.data or DATA:
        one = measure(name, chosen.seeds, "float32" if chosen.float32 else "float64")
        found.append(one)
        own, peer = (f"{one['seconds'][package]:8.3f}s" for package in ("handgrad", "scikit-learn"))
        scores = (f"{one['score'][p]:.4f} ± {one['deviation'][p]:.4f}" for p in ("handgrad", "scikit-learn"))
        print(
            f"{name:14} {one['rows']:7,} {own} {peer} {one['ratio']:6.2f} {one['first']:6.3f}s   {' | '.join(scores)}"
        )
    print(f"median ratio {statistics.median(one['ratio'] for one in found):.2f}")
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
