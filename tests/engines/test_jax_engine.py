"""The JAX engine runs the same lines: one device or several, an epoch whole or in parts."""

# ruff: noqa: RET504 - rules return names

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad import (
    Adam,
    BatchNorm,
    ConfigurationError,
    Cosine,
    Dropout,
    HandgradNotice,
    Layer,
    Linear,
    Network,
    ReLU,
    Repeat,
    SoftmaxCrossEntropy,
    train,
)
from handgrad.engines import Epoch, ReferenceEngine, jax_engine
from handgrad.engines.jax_engine import BATCHES_AT_A_TIME, JaxEngine
from handgrad.explaining.execution import execute_rule
from handgrad.layers import OPTIMISERS
from handgrad.rules import rule

from ..rules.table import TABLE, Row
from .agreement import BOUNDS, Case, Training, check_agreement, check_same, evaluated, outputs
from .test_compiled_agreement import CLASSES, FEATURES, HIDDEN, NETWORKS, OUTPUTS, X

pytestmark = pytest.mark.peers

SHORT_LAST = 6
"""Rows of a batch: the last one has fewer."""


def everything(dtype: str) -> Network:
    """Return a network whose step draws a mask, and means over all rows."""
    layers = [
        Linear(FEATURES, HIDDEN, bias=False),
        BatchNorm(),
        ReLU(),
        Dropout(0.3),
        Linear(HIDDEN, OUTPUTS),
    ]
    return Network(*layers, loss=SoftmaxCrossEntropy(), dtype=dtype)


EVERYTHING = Case(everything, {"x": X[2], "t": CLASSES[2]}, Adam(0.01, clip_norm=0.5), 0.01)


# Tracing takes a second: a third axis is only tested rule by rule, below.
@pytest.mark.parametrize("name", [name for name in NETWORKS if "rank 3" not in name])
def test_a_training_is_the_reference_s(name: str) -> None:
    """Parameters, states, slots and losses after two epochs with a short last batch."""
    reference, jax = (
        Training(engine(), NETWORKS[name], "float64") for engine in (ReferenceEngine, JaxEngine)
    )
    check_agreement(jax.run(SHORT_LAST), reference.run(SHORT_LAST), "float64", name)


def test_blocks_that_are_computed_again_give_the_same_training() -> None:
    def network(dtype: str) -> Network:
        block = Linear(FEATURES, FEATURES, bias=False), BatchNorm(), ReLU(), Dropout(0.3)
        layers = Repeat(*block, times=3, recompute=True), Linear(FEATURES, OUTPUTS)
        return Network(*layers, loss=SoftmaxCrossEntropy(), dtype=dtype)

    case = Case(network, {"x": X[2], "t": CLASSES[2]})
    reference, jax = (Training(engine(), case, "float64") for engine in (ReferenceEngine, JaxEngine))
    check_agreement(jax.run(SHORT_LAST), reference.run(SHORT_LAST), "float64", "recompute")


@pytest.mark.parametrize("dtype", BOUNDS)
def test_everything_is_the_reference_s(dtype: str) -> None:
    """Training, each gradient, and outside training; masks are drawn with the same bits."""
    engines = ReferenceEngine, JaxEngine
    for size in (1, SHORT_LAST, len(X[2])):
        reference, jax = (Training(engine(), EVERYTHING, dtype).run(size) for engine in engines)
        check_agreement(jax, reference, dtype, f"batches of {size}")
    for kind in (outputs, evaluated):
        reference, jax = (kind(engine(), EVERYTHING, dtype) for engine in engines)
        check_agreement(jax, reference, dtype, kind.__name__)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.rule.name)
def test_every_rule_is_numpy_s(row: Row) -> None:
    """Forward and backward lines, at the first options of the table."""
    execution = execute_rule(
        row.rule, list(row.inputs(np.random.default_rng(0), 2, row.options[0]).values()), **row.options[0]
    )
    program, given = execution.program, execution.given
    bound = JaxEngine().bind(program, {name: given[name] for name in program.shapes})
    rows = {value.name: given[value.name] for value in program.inputs}
    found = bound.run(**rows, **{name: given.get(name, 1) for name in program.scalars})
    assert found
    for name, value in found.items():
        np.testing.assert_allclose(value, execution.values[name], rtol=1e-11, atol=1e-13, err_msg=name)


def test_an_epoch_in_parts_is_the_whole_to_the_last_bit() -> None:
    """As callbacks and checkpoints cut it; there are more batches than are sent at once."""
    rows = 2 * (BATCHES_AT_A_TIME + 3) + 1
    rng = np.random.default_rng(1)
    arrays = {"x": rng.normal(size=(rows, FEATURES)), "t": rng.integers(0, OUTPUTS, rows)}
    case = Case(everything, arrays, EVERYTHING.optimiser, 0.01)
    steps = -(-rows // 2)
    epoch = Epoch(arrays, rng.permutation(rows), 2, np.full(steps, 0.01), 1, 7)
    whole, cut = Training(JaxEngine(), case, "float32"), Training(JaxEngine(), case, "float32")
    total = whole.bound.epoch(epoch)
    so_far = 0.0, 0.0
    for first, last in ((0, 3), (3, 65), (65, steps)):
        so_far = cut.bound.epoch(epoch.part(first, last, *so_far))
    assert so_far == total
    check_same(cut.kept, whole.kept)


def test_rows_that_do_not_stay_on_the_devices_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where they are more than `RESIDENT_BYTES`, of a mapped file, or for other processes."""
    resident, gathered = (Training(JaxEngine(), EVERYTHING, "float32") for _ in range(2))
    expected = resident.run(SHORT_LAST)
    monkeypatch.setattr(jax_engine, "RESIDENT_BYTES", 0)
    check_same(gathered.run(SHORT_LAST), expected)
    assert (resident.bound.resident[1].keys(), gathered.bound.resident[1]) == ({"x", "t"}, {})


def test_other_rows_are_sent_again() -> None:
    """Arrays may have changed where another mapping has them, as between two calls of ``partial_fit``."""
    found = {}
    for engine in (ReferenceEngine, JaxEngine):
        rows = X[2].copy()
        training = Training(engine(), EVERYTHING, "float64")
        for _ in range(2):
            epoch = Epoch(
                {"x": rows, "t": CLASSES[2]}, np.arange(len(rows)), 4, np.full(len(rows), 0.01), 1, 7
            )
            training.bound.epoch(epoch)
            rows *= -2
        found[engine] = training.kept
    check_agreement(found[JaxEngine], found[ReferenceEngine], "float64", "changed rows")


@pytest.mark.parametrize("optimiser", OPTIMISERS.values())
def test_a_program_of_float32_computes_no_array_in_float64(optimiser: type) -> None:
    """As a line would in which JAX took a number of Python for an array of its own."""
    case = Case(everything, EVERYTHING.arrays, optimiser(0.01, clip_norm=0.5), 0.01)
    training = Training(JaxEngine(), case, "float32")
    jax, wide = training.bound.jax, []

    def look(jaxpr: Any) -> None:
        for equation in jaxpr.eqns:
            wide.extend(
                str(equation) for v in equation.outvars if v.aval.dtype == "float64" and v.aval.size > 1
            )
            for parameter in jax.tree.leaves(equation.params, is_leaf=lambda each: hasattr(each, "eqns")):
                if inner := getattr(parameter, "jaxpr", parameter if hasattr(parameter, "eqns") else None):
                    look(inner)

    with jax.enable_x64(True):
        state = training.kept, np.float64(0), np.float64(0), np.int64(0), np.bool(True)
        rows = {name: np.asarray(each, training.bound.types[name]) for name, each in case.arrays.items()}
        order, rates = np.zeros((3, 4), np.int64), np.zeros(3)
        traced = jax.make_jaxpr(training.bound.traced_batches)(state, rows, order, rates, 3, 1, np.uint64(1))
    look(traced.jaxpr)
    assert "while" in str(traced)
    assert wide == []


ON_DEVICES = """
import contextlib, sys
import numpy as np
from handgrad import SGD, Adam, BatchNorm, Checkpoints, Dropout, Linear, Network, ReLU, SoftmaxCrossEntropy, train
from handgrad.engines import Epoch, NonFiniteLossError, bind
from handgrad.engines.jax_engine import BoundJax
from handgrad.training import measure_engines

rng = np.random.default_rng(0)
x, t = rng.normal(size=(50, 5)), rng.integers(0, 3, 50)  # in batches of 8, a last one of 2

def trained(network=None, **settings):
    layers = [Linear(5, 19, bias=False), BatchNorm(), ReLU(), Dropout(0.3), Linear(19, 3)]
    network = network or Network(*layers, loss=SoftmaxCrossEntropy(), dtype="float64")
    common = {"epochs": 3, "batch_size": 8, "optimiser": Adam(0.01, clip_norm=0.5)}
    return network, train(network, x, t, **common | settings)

def save(name, network, history):
    loss = [record.loss for record in history.epochs]
    np.savez(f"{sys.argv[1]}/{name}.npz", devices=history.facts.get("devices", ""), loss=loss, **network.arrays)

(timed,) = measure_engines(trained(engine="reference")[0], x, t, engines=["jax"], devices=2, seconds=0.05)
assert timed.facts["devices"] == "2 cpu"
save("reference", *trained(engine="reference"))
for devices in (1, 2, 4):
    save(devices, *trained(engine="jax", devices=devices))

traces = []
lines = BoundJax._run
BoundJax._run = lambda bound, scope, **options: (traces.append(bound), lines(bound, scope, **options))[1]
folder = sys.argv[1] + "/checkpoints"
trained(engine="jax", checkpoints=Checkpoints(folder, minutes=0), after_epoch=lambda record: record.epoch == 2)
network, history = trained(engine="jax", checkpoints=Checkpoints(folder, minutes=0, resume=True))
save("resumed", network, history)
for bound in set(traces):  # when it is bound; whole batches; the short last one
    assert traces.count(bound) == 3, traces.count(bound)

def batches(x):
    network = Network(Linear(5, 3), loss=SoftmaxCrossEntropy(), dtype="float64")
    bound = bind("jax", network.program(SGD()).keeping("total", "count"), network.arrays, 4)
    with contextlib.suppress(NonFiniteLossError):
        bound.epoch(Epoch({"x": x, "t": t}, np.arange(len(x)), 8, np.full(6, 0.1)))
    return network.arrays

before = batches(x[:16])
x[20] = np.inf  # in the third batch
for name, array in batches(x[:48]).items():
    np.testing.assert_array_equal(array, before[name])
"""


def test_several_devices_compute_what_one_does(tmp_path) -> None:
    """Means, batch norm, masks and the norm of all gradients are of all rows; one that does not divide goes to each.

    A training that is resumed gives the same bits, nothing is traced for another epoch or after a checkpoint, and a loss that
    is not finite leaves the weights of the step before.
    """
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", ON_DEVICES, tmp_path], check=True, env={**os.environ, **flags})
    found = {}
    for name in ("reference", "1", "2", "4", "resumed"):
        with np.load(tmp_path / f"{name}.npz") as arrays:
            found[name] = dict(arrays)
        devices = str(found[name].pop("devices"))
        assert devices == {"reference": "", "resumed": "4 cpu"}.get(name, f"{name} cpu")
        check_agreement(found[name], found["reference"], "float64", name)
    check_same(found["resumed"], found["4"])


def test_more_devices_than_there_are() -> None:
    with pytest.raises(
        ConfigurationError, match=r"training.devices: 99 are asked for, and JAX has \d+ \(cpu\)"
    ):
        train(everything("float32"), X[2], CLASSES[2], engine="jax", devices=99)


def test_train_takes_it_with_a_schedule_and_validation() -> None:
    runs = []
    for engine in ("jax", "reference"):
        network = everything("float64")
        history = train(
            network,
            X[2],
            CLASSES[2],
            validation=0.3,
            epochs=3,
            batch_size=5,
            schedule=Cosine(warmup=1),
            engine=engine,
        )
        assert history.facts["engine"] == engine
        losses = [(record.loss, record.validation_loss) for record in history.epochs]
        runs.append(network.arrays | {"losses": np.array(losses)})
    check_agreement(runs[0], runs[1], "float64", "train")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_waits_for_the_compiler(number: int) -> None:
    """An exception would leave XLA's thread compiling while Python ends, which crashes; then the training is interrupted."""
    bound: Any = Training(JaxEngine(), EVERYTHING, "float64").bound
    came: list[str] = []

    def stop(*arguments: object) -> None:
        came.append("interrupted")
        raise KeyboardInterrupt

    before = signal.signal(number, stop)
    try:
        batches = bound.batches

        def compiled(*arguments: object) -> object:
            signal.raise_signal(number)
            found = batches(*arguments)
            came.append("compiled")
            return found

        bound.batches = compiled
        with pytest.raises(KeyboardInterrupt):
            bound.epoch(Epoch(EVERYTHING.arrays, np.arange(4), 2, np.full(2, 0.1), 1, 7))
        assert signal.getsignal(number) is stop
    finally:
        signal.signal(number, before)
    assert came == ["compiled", "interrupted"]


def test_sparse_rows_are_sent_as_they_are_needed() -> None:
    from scipy.sparse import csr_array

    weights = []
    for rows in (X[2] * (X[2] > 0), csr_array(X[2] * (X[2] > 0))):
        network = everything("float32")
        train(network, rows, CLASSES[2], epochs=2, batch_size=5, engine="jax")
        weights.append(network.arrays)
    check_same(*weights)


@rule("... -> ...")
def contiguous(z):
    """Copy z, with a function that jax.numpy does not have."""
    y = np.ascontiguousarray(z)
    return y


@contiguous.backward
def contiguous_backward(dy):
    dz = dy
    return dz


class Contiguous(Layer):
    """The layer of `contiguous`."""

    def connect(self, graph, x):  # noqa: D102
        return graph.apply(contiguous, x)


def test_a_line_that_jax_cannot_run_is_named_and_the_reference_engine_takes_over() -> None:
    network = Network(Linear(FEATURES, OUTPUTS), Contiguous(), loss=SoftmaxCrossEntropy())
    with pytest.warns(
        HandgradNotice, match=r"the jax engine is not used.*`y1 = np\.ascontiguousarray\(z1\)`.*JAX"
    ) as notices:
        history = train(network, X[2], CLASSES[2], epochs=1, validation=0.3, engine="jax", devices=1)
    assert history.facts["engine"] == "reference"
    assert len(notices) == 1


GPUS = Path(__file__).parents[2] / "benchmarks" / "gpus.py"


def test_the_benchmark_for_gpus_runs_without_one_on_request() -> None:
    small = ["--widths", "16", "--batch", "8", "--steps", "1", "--every", "150"]
    command = [sys.executable, GPUS, "--device", "cpu", *small]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    head, names, times, *_ = done.stdout.splitlines()
    assert "TFLOP/s at most" in head
    assert re.findall(r"jax engine|plain JAX|torch.compile", names) == [
        "jax engine",
        "plain JAX",
        "torch.compile",
    ]
    assert times.split()[0] == "16"
    for dtype in ("float64", "float32"):
        assert f"1 processes, 1 devices, {dtype}: 2 of 2 agree" in done.stdout


def test_the_benchmark_for_gpus_names_what_is_missing() -> None:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, GPUS], capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    assert "JAX finds no GPU with CUDA, only cpu\n  fix    run it where there is one" in done.stderr
