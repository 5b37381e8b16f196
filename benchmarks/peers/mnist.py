"""MNIST, from the start of a process to 97 % of the test digits: 784-128-10, Adam at 0.001, batches of 128.

As a script it is one such process: ``python mnist.py PEER SEED`` reads the files that HANDGRAD_MNIST names, looks
at the test digits after each epoch, and writes one line when enough are right.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

GOAL, EPOCHS, BATCH = 0.97, 30, 128
MEAN, DEVIATION = 33.3184, 78.5675  # of the training pixels

Watcher = Callable[[float], None]


class Reached(Exception):  # noqa: N818 - no error: the end of the run
    """Enough digits are right."""


def run_handgrad(seed: int, watch: Watcher) -> None:
    """Train as a user would."""
    from handgrad import Adam, Linear, Network, ReLU, SoftmaxCrossEntropy, Standardise, train
    from handgrad.data import mnist

    data = mnist()
    last = len(data) - data.test_rows
    network = Network(
        Standardise("all"), Linear(784, 128), ReLU(), Linear(128, 10), loss=SoftmaxCrossEntropy(), seed=seed
    )
    train(
        network, data.x[:last], data.t[:last], validation=(data.x[last:], data.t[last:]), epochs=EPOCHS,
        batch_size=BATCH, optimiser=Adam(1e-3), seed=seed, progress=False,
        after_epoch=lambda record: watch(record.validation_metric or 0.0),
    )  # fmt: skip


def run_sklearn(seed: int, watch: Watcher) -> None:
    """Train with `partial_fit`, an epoch at a time."""
    from sklearn.neural_network import MLPClassifier

    x, t, x_test, t_test = read()
    model = MLPClassifier((128,), batch_size=BATCH, learning_rate_init=1e-3, alpha=0.0, random_state=seed)
    for _ in range(EPOCHS):
        model.partial_fit(x, t, classes=range(10))
        watch(float((model.predict(x_test) == t_test).mean()))


def run_pytorch(seed: int, watch: Watcher) -> None:
    """Train with the usual loop, rows gathered by a shuffled index."""
    import torch

    x, t, x_test, t_test = (torch.from_numpy(array) for array in read())
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    loss, optimiser = torch.nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(x)).split(BATCH):
            optimiser.zero_grad()
            loss(model(x[rows]), t[rows]).backward()
            optimiser.step()
        with torch.no_grad():
            watch(float((model(x_test).argmax(1) == t_test).float().mean()))


RUNS = {"handgrad": run_handgrad, "scikit-learn": run_sklearn, "PyTorch": run_pytorch}


def read() -> tuple[Any, ...]:
    """Return the four files' rows, float32 of mean 0 and deviation 1, and their classes, int64."""
    import gzip

    import numpy as np

    found: list[Any] = []
    for part in ("train", "t10k"):
        for kind, head in (("images-idx3", 16), ("labels-idx1", 8)):
            path = Path(os.environ["HANDGRAD_MNIST"]) / f"{part}-{kind}-ubyte"
            packed = Path(f"{path}.gz")
            content = path.read_bytes() if path.is_file() else gzip.decompress(packed.read_bytes())
            values = np.frombuffer(content, np.uint8, offset=head)
            if head == 8:
                found.append(values.astype(np.int64))
                continue
            x = values.reshape(-1, 784).astype(np.float32)
            x -= np.float32(MEAN)
            x /= np.float32(DEVIATION)
            found.append(x)
    return tuple(found)


def main() -> None:
    """Be one process."""
    accuracies: list[float] = []

    def watch(accuracy: float) -> None:
        accuracies.append(accuracy)
        if accuracy >= GOAL:
            raise Reached

    try:
        RUNS[sys.argv[1]](int(sys.argv[2]), watch)
    except Reached:
        print("reached", flush=True)
    except ImportError as error:
        sys.exit(f"not installed: {error}")
    print(json.dumps({"accuracies": accuracies, "peak_mib": _peak_mib()}))


def _peak_mib() -> float | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def measure_mnist(rounds: int) -> dict[str, Any]:
    """Run every peer in turn, with another seed each round, and print medians."""
    if "HANDGRAD_MNIST" not in os.environ:
        sys.exit("HANDGRAD_MNIST must name the folder of the four MNIST files")
    ways = ["handgrad", "handgrad, cold cache", "scikit-learn", "PyTorch"]
    runs: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as warm:
        one_run("handgrad", 0, warm)  # fills the cache
        for seed in range(rounds):
            for way in ways:
                with tempfile.TemporaryDirectory() as cold:
                    runs[way].append(one_run(way.split(",")[0], seed, cold if "cold" in way else warm))
    _print(runs)
    return runs


def one_run(peer: str, seed: int, cache: str) -> dict[str, Any]:
    """Start one process; return when it reached the goal, and what it says."""
    environment = os.environ | {"HANDGRAD_CACHE": cache}
    # pip compiles what it installs, and Python a checkout's modules when they are first imported, unless told not to
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, __file__, peer, str(seed)]
    started, reached = time.perf_counter(), None
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        last = ""
        for line in process.stdout:
            if line.strip() == "reached":
                reached = time.perf_counter() - started
            last = line
        errors = process.stderr.read().splitlines()
    if process.returncode:
        return {"problem": errors[-1] if errors else f"exit status {process.returncode}"}
    problem = "" if reached is not None else f"did not reach {GOAL:.0%} in {EPOCHS} epochs"
    return {"problem": problem, "seconds": reached, "notices": errors, **json.loads(last)}


def _print(runs: dict[str, list[dict[str, Any]]]) -> None:
    print(f"MNIST, from the start of the process to {GOAL:.0%} of the test digits: medians of the rounds")
    print(f"{'':24}{'seconds':>9}{'ratio':>8}{'epochs':>8}{'peak MiB':>10}")
    ours = [run.get("seconds") for run in runs["handgrad"]]
    for way, each in runs.items():
        if problems := [run["problem"] for run in each if run["problem"]]:
            print(f"{way:24}  {problems[0]}")
            continue
        ratio = ""
        if all(ours):
            ratio = f"{median(run['seconds'] / mine for run, mine in zip(each, ours, strict=True)):.2f}"
        peaks = [run["peak_mib"] for run in each if run["peak_mib"] is not None]
        print(
            f"{way:24}{median(run['seconds'] for run in each):9.2f}{ratio:>8}"
            f"{median(len(run['accuracies']) for run in each):8g}"
            f"{median(peaks) if peaks else float('nan'):10.0f}"
        )


if __name__ == "__main__":
    main()
