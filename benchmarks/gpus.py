"""The jax engine on a GPU with CUDA: step times by width against PyTorch and plain JAX, the GPU's limit, and agreement.

    python benchmarks/gpus.py                                  about ten minutes, unattended
    python benchmarks/gpus.py --device cpu --widths 64 128     to try it without a GPU

Three Linear layers of one width with ReLU between them, softmax cross-entropy, SGD, float32. A step's time is that of an
epoch of 2N steps less that of one of N, by N, the best of five of each: what an epoch takes beside its steps is left out. The
jax engine gathers its rows on the host and sends them; for the two others all rows are on the GPU. The limit is what the
best of a few large products of matrices reaches. All compute in full float32, or in TF32 with --tf32. What fails is named,
and the rest goes on.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from handgrad import SGD, Linear, Network, ReLU, SoftmaxCrossEntropy
from handgrad.engines import Epoch
from handgrad.engines.jax_engine import JaxEngine

RATE, ROUNDS = 0.01, 5
BATCHES = 8
"""Of different rows; an epoch goes over them again and again."""

Epochs = Callable[[np.ndarray], None]
"""Trains over batches, given as an array (steps, batch) of rows, and waits for the device."""


def main() -> None:
    """Read the options, measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--widths", type=int, nargs="+", default=[256, 512, 1024, 2048, 4096, 8192])
    parser.add_argument("--batch", type=int, default=2048, help="rows of a batch (2048)")
    parser.add_argument("--steps", type=int, default=32, help="N (32)")
    parser.add_argument("--every", type=int, default=8, help="which of the networks are to agree (each 8th)")
    parser.add_argument("--minutes", type=float, default=10, help="after which nothing more is begun (10)")
    parser.add_argument("--tf32", action="store_true", help="let products round their factors to TF32")
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    jax = prepare(options)
    limit = largest_rate(jax, 8192 if options.device == "cuda" else 1024)
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}: {limit / 1e12:.3g} TFLOP/s at most")
    peers = {"jax engine": engine_epochs, "plain JAX": partial(plain_epochs, jax)}
    peers["torch.compile"] = partial(torch_epochs, options)
    print(f"{'width':>6}" + "".join(f"{name + ', ms':>19}{'of limit':>10}" for name in peers), flush=True)
    for width in options.widths:
        print(f"{width:6}", end="", flush=True)
        failed = []
        for name, peer in peers.items():
            try:
                seconds = step_seconds(partial(peer, width, options.batch), width, options, until)
                rate = 16 * options.batch * width**2 / seconds  # dx of the first layer is not computed
                print(f"{1e3 * seconds:19.3f}{rate / limit:10.0%}", end="", flush=True)
            except Exception as error:  # a peer that does not run, or has too little memory, is named
                failed.append(f"{name}: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}")
                print(f"{'-':>19}{'':10}", end="", flush=True)
        print("", *failed, sep="\n       " if failed else "", flush=True)
    agree(options, until)


def prepare(options: argparse.Namespace) -> Any:
    """Import JAX for the device; end where there is none."""
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # PyTorch needs memory of the GPU too
    precision = "tensorfloat32" if options.tf32 else "highest"
    os.environ["JAX_DEFAULT_MATMUL_PRECISION"] = precision
    if options.device == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    if options.device == "cuda" and jax.default_backend() != "gpu":
        sys.exit(
            f"gpus.py: JAX finds no GPU with CUDA, only {jax.devices()[0].platform}\n"
            "  fix    run it where there is one, with jax[cuda13] installed, or give --device cpu to try the script"
        )
    return jax


def largest_rate(jax: Any, size: int) -> float:
    """Return the operations a second of a product of two matrices, the best of a few."""
    a = jax.numpy.ones((size, size), "float32")
    product = jax.jit(lambda a: a @ a)
    jax.block_until_ready(product(a))
    seconds = []
    for _ in range(2 * ROUNDS):
        began = time.perf_counter()
        jax.block_until_ready(product(a))
        seconds.append(time.perf_counter() - began)
    return 2 * size**3 / min(seconds)


def step_seconds(peer: Callable[[], Epochs], width: int, options: argparse.Namespace, until: float) -> float:
    """Return the time of a step, of epochs that are longer where steps are short; the best of some rounds."""
    if time.monotonic() > until:
        raise TimeoutError("no time left")
    epochs, steps = peer(), options.steps * max(1, 1024 // width)
    times: dict[int, list[float]] = {steps: [], 2 * steps: []}
    for round_number in range(ROUNDS + 1):
        for count, found in times.items():
            order = np.random.default_rng(count).permutation(BATCHES * options.batch)
            order = np.resize(order, (count, options.batch)).astype(np.int32)
            began = time.perf_counter()
            epochs(order)
            if round_number:  # the first one compiles
                found.append(time.perf_counter() - began)
    return (min(times[2 * steps]) - min(times[steps])) / steps


def rows_of(width: int, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows, and a class for each."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((BATCHES * batch, width), dtype=np.float32)
    return x, rng.integers(0, width, len(x))


def network_of(width: int) -> Network:
    """Return the network, whose first weights all train from."""
    layers = [Linear(width, width), ReLU(), Linear(width, width), ReLU(), Linear(width, width)]
    return Network(*layers, loss=SoftmaxCrossEntropy(), dtype="float32")


def engine_epochs(width: int, batch: int) -> Epochs:
    """Return handgrad's own lines."""
    rows = dict(zip(("x", "t"), rows_of(width, batch), strict=True))
    network = network_of(width)
    program = network.program(SGD(RATE)).keeping("total", "count")
    slots = {name: np.zeros(shape, np.float32) for name, shape in program.slots.items()}
    bound = JaxEngine(devices=1).bind(program, {**network.arrays, **slots})

    def epochs(order: np.ndarray) -> None:
        rates = np.full(len(order), RATE)
        bound.epoch(Epoch(rows, order.ravel(), batch, rates, 1, 0))

    return epochs


def plain_epochs(jax: Any, width: int, batch: int) -> Epochs:
    """Return `lax.scan` over `jax.grad`."""
    x, t = map(jax.numpy.asarray, rows_of(width, batch))
    weights = {name: jax.numpy.asarray(each) for name, each in network_of(width).parameters.items()}

    def loss(weights: Any, x: Any, t: Any) -> Any:
        for layer in (1, 2, 3):
            x = x @ weights[f"W{layer}"] + weights[f"b{layer}"]
            x = jax.nn.relu(x) if layer < 3 else jax.nn.log_softmax(x)
        return -jax.numpy.take_along_axis(x, t[:, None], 1).mean()

    def step(weights: Any, rows: Any) -> Any:
        gradients = jax.grad(loss)(weights, x[rows], t[rows])
        return jax.tree.map(lambda w, g: w - RATE * g, weights, gradients), None

    scan = jax.jit(lambda weights, order: jax.lax.scan(step, weights, order)[0], donate_argnums=0)

    def epochs(order: np.ndarray) -> None:
        nonlocal weights
        weights = jax.block_until_ready(scan(weights, order))

    return epochs


def torch_epochs(options: argparse.Namespace, width: int, batch: int) -> Epochs:
    """Return PyTorch's network, compiled with CUDA graphs."""
    import torch

    torch.set_float32_matmul_precision("high" if options.tf32 else "highest")
    x, t = (torch.from_numpy(each).to(options.device) for each in rows_of(width, batch))
    first, second, third = (torch.nn.Linear(width, width) for _ in range(3))
    model = torch.nn.Sequential(first, torch.nn.ReLU(), second, torch.nn.ReLU(), third).to(options.device)
    loss = torch.nn.CrossEntropyLoss()
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
    forward = torch.compile(lambda x, t: loss(model(x), t), mode="reduce-overhead")

    def epochs(order: np.ndarray) -> None:
        for rows in torch.from_numpy(order).to(options.device):
            torch.compiler.cudagraph_mark_step_begin()
            optimiser.zero_grad()
            forward(x[rows], t[rows]).backward()
            optimiser.step()
        if options.device == "cuda":
            torch.cuda.synchronize()

    return epochs


def agree(options: argparse.Namespace, until: float) -> None:
    """Train networks on the jax engine and on the reference engine, and print how far they are apart."""
    script = Path(__file__).with_name("conformance.py")
    own = {"JAX_DEFAULT_MATMUL_PRECISION": "highest", "JAX_PLATFORMS": options.device}
    for dtype in ("float64", "float32"):
        command = [sys.executable, script, "--dtype", dtype, "--every", str(options.every)]
        started = subprocess.Popen(command, env={**os.environ, **own}, start_new_session=True)
        try:
            started.wait(max(until - time.monotonic(), 1))
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)  # it has a process of its own
            print(f"{dtype}: no time left for agreement")


if __name__ == "__main__":
    main()
