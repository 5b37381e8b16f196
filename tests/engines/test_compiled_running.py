"""What the compiled engine promises while it runs: the same bits again, no spoiled weights, Ctrl-C, any input."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import (
    SGD,
    Adam,
    BatchNorm,
    Dropout,
    Embedding,
    Linear,
    MeanSquaredError,
    Network,
    ReLU,
    ShapeError,
    SoftmaxCrossEntropy,
    Tanh,
    train,
)
from handgrad.engines import BoundProgram, Engine, Epoch, NonFiniteLossError, ReferenceEngine
from handgrad.engines.compiled import CompiledEngine
from handgrad.engines.compiled.compiled_engine import BoundCompiled
from handgrad.engines.compiled.step_table import StepTable
from handgrad.layers import Optimiser

from .agreement import BOUNDS, check_agreement, check_same, threads

Array = NDArray[Any]

ROWS, FEATURES, OUTPUTS = 23, 5, 3
X = np.random.default_rng(0).normal(size=(ROWS, FEATURES))
T = np.random.default_rng(1).normal(size=(ROWS, OUTPUTS))
CLASSES = T.argmax(axis=1)


def network(dtype: str = "float64") -> Network:
    layers = [Linear(FEATURES, 19, bias=False), BatchNorm(), ReLU(), Dropout(0.3), Linear(19, OUTPUTS)]
    return Network(*layers, loss=MeanSquaredError(), dtype=dtype)


def bind(
    made: Network, optimiser: Optimiser | None = None, engine: Engine | None = None
) -> tuple[dict[str, Array], BoundProgram]:
    """Bind a network's training program to its own arrays and new slots."""
    program = made.program(optimiser or Adam()).keeping("total", "count")
    kept = made.arrays | {name: np.zeros(shape, made.dtype) for name, shape in program.slots.items()}
    return kept, (engine or CompiledEngine()).bind(program, kept)


def epoch_of(x: Array, t: Array, batch_size: int = 6, *, order: Array | None = None, **more: Any) -> Epoch:
    order = np.arange(len(x)) if order is None else order
    return Epoch({"x": x, "t": t}, order, batch_size, np.full(-(-len(order) // batch_size), 0.05), **more)


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("count", [1, 2])
def test_the_same_again_is_the_same_to_the_last_bit(count: int, dtype: str) -> None:
    """Another binding, another place in memory, help or none: the numbers are a function of what is computed."""
    results = []
    for helped in (True, False, True):
        with threads(count, helped=helped):
            kept, bound = bind(network(dtype))
            losses = [bound.epoch(epoch_of(X.copy(), T, first_step=1 + 4 * k, seed=3)) for k in range(3)]
        results.append(kept | {"losses": np.array(losses)})
        assert np.isfinite(results[-1]["losses"]).all()
    check_same(results[0], results[1])
    check_same(results[0], results[2])


def test_a_run_is_taken_up_at_any_step() -> None:
    """Two halves of an epoch, the second with its first step, are the whole: the masks and Adam's powers follow."""
    kept, bound = bind(network())
    total, count = bound.epoch(epoch_of(X[:22], T[:22], 4, seed=3, first_step=9))
    in_two, taken_up = bind(network())
    first = taken_up.epoch(epoch_of(X[:22], T[:22], 4, order=np.arange(12), seed=3, first_step=9))
    second = bind_again(in_two).epoch(
        epoch_of(X[:22], T[:22], 4, order=np.arange(12, 22), seed=3, first_step=12)
    )
    check_same(kept, in_two)
    assert (first[0] + second[0], first[1] + second[1]) == (pytest.approx(total, rel=1e-14), count)


def bind_again(kept: dict[str, Array]) -> BoundProgram:
    """Bind a new engine to arrays that another has trained."""
    program = network().program(Adam()).keeping("total", "count")
    return CompiledEngine().bind(program, kept)


@pytest.mark.parametrize("poison", [np.nan, np.inf, 1e200])
@pytest.mark.parametrize("count", [1, 2])
def test_a_batch_whose_loss_is_not_finite_changes_nothing(count: int, poison: float) -> None:
    """The error names the batch; parameters, running statistics and slots are those of the batches before it."""
    x, t = X.copy(), T.copy()
    (x if np.isnan(poison) else t)[13] = poison
    with threads(count):
        kept, bound = bind(network())
        with pytest.raises(NonFiniteLossError, match="the loss of batch 2 is not finite") as caught:
            bound.epoch(epoch_of(x, t))
        assert caught.value.batch == 2
        until, short = bind(network())
        short.epoch(epoch_of(X[:12], T[:12]))
    check_same(kept, until)


def test_the_batch_that_stops_may_be_the_last_short_one_or_the_first() -> None:
    for row, batch in ((22, 3), (0, 0)):
        x = X.copy()
        x[row] = np.nan
        _, bound = bind(network())
        for _ in range(2):  # and again
            with pytest.raises(NonFiniteLossError) as caught:
                bound.epoch(epoch_of(x, T))
            assert caught.value.batch == batch


def test_progress_is_told_while_native_code_runs() -> None:
    """Several times in an epoch that takes longer than a moment; rows only ever grow, up to the last."""
    made = Network(Linear(64, 256), Tanh(), Linear(256, 3), loss=MeanSquaredError())
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(4001, 64)).astype("float32"), rng.normal(size=(4001, 3))
    _, bound = bind(made)
    seen: list[int] = []
    started = time.perf_counter()
    bound.epoch(epoch_of(x, t, 8, order=np.tile(np.arange(4001), 5)), seen.append)
    seconds = time.perf_counter() - started
    assert seen == sorted(set(seen))
    assert seen[-1] == 5 * 4001
    assert len(seen) >= min(4, seconds / 0.5)


INTERRUPTED = """
    import hashlib, os, signal, threading, time
    import numpy as np
    from handgrad import Linear, MeanSquaredError, Network, Tanh, train

    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(60_000, 64)).astype("float32"), rng.normal(size=(60_000, 3)).astype("float32")
    network = Network(Linear(64, 512), Tanh(), Linear(512, 512), Tanh(), Linear(512, 3), loss=MeanSquaredError())

    def digest():
        return hashlib.sha256(b"".join(array.tobytes() for array in network.arrays.values())).hexdigest()

    train(network, x[:64], t[:64], epochs=1, batch_size=8)  # compiled
    before = digest()
    sent = []

    def interrupt():
        begun = time.process_time()  # of work, so that it is in native code on a busy machine too
        while time.process_time() < begun + 0.3:
            time.sleep(0.01)
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    history = train(network, x, t, epochs=1, batch_size=8, progress=False)
    seconds = time.process_time() - sent[0]
    print(history.stopped, len(history.epochs), history.facts["engine"], digest() == before, seconds < 1)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is sent to a process")
def test_ctrl_c_comes_within_a_second_of_work() -> None:
    """In the middle of a long epoch in native code; the weights are those of the last finished epoch."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, stdout=subprocess.PIPE, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout == "interrupted 0 compiled True True\n"


@pytest.mark.parametrize("wrong", [-1, ROWS, 2**40])
def test_a_row_that_is_none_is_refused(wrong: int) -> None:
    """Native code reads no memory of others."""
    kept, bound = bind(network())
    before = {name: array.copy() for name, array in kept.items()}
    with pytest.raises(IndexError, match=str(wrong)):
        bound.epoch(epoch_of(X, T, order=np.array([0, wrong, 1])))
    check_same(kept, before)


@pytest.mark.parametrize("wrong", [-1, 11, 2**40])
def test_an_index_that_is_none_is_refused(wrong: int) -> None:
    """Also when it came into an array that was looked at before."""
    made = Network(Embedding(11, 4), Linear(4, OUTPUTS), inputs=(), loss=SoftmaxCrossEntropy())
    _, bound = bind(made)
    x = np.arange(ROWS) % 11
    bound.epoch(epoch_of(x, CLASSES))
    x[7] = wrong
    with pytest.raises(IndexError, match=str(wrong)):
        bound.epoch(epoch_of(x, CLASSES))


def test_a_class_that_is_none_counts_for_no_class() -> None:
    """As in the reference engine, which makes it a row of zeros; `train` refuses it before."""
    results = []
    for engine in (CompiledEngine(), ReferenceEngine()):
        made = Network(Linear(FEATURES, OUTPUTS), loss=SoftmaxCrossEntropy(), dtype="float64")
        kept, bound = bind(made, SGD(), engine)
        bound.epoch(epoch_of(X, np.where(np.arange(ROWS) % 5 == 0, 77, CLASSES)))
        results.append(kept)
    check_agreement(*results, "float64", "classes")


def test_rows_of_another_length_are_refused() -> None:
    """Rather than reading what lies behind them."""
    for x, t in ((X[:, :4], T), (X, T[:, :2]), (X[:, 0], T), (X, T[:5]), (np.zeros((ROWS, 0)), T)):
        _, bound = bind(network())
        with pytest.raises((ShapeError, IndexError)):
            bound.epoch(epoch_of(x, t))
        with pytest.raises((ShapeError, IndexError)):
            bound.run(x=x, t=t, seed=0, step=1, learning_rate=0.1)


WHOLE = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "bool"]
KINDS = [*WHOLE, "float16", "float32", "float64", ">f4", ">f8", ">i2", ">i4", ">u2", ">i8", ">f2"]
if np.dtype(np.longdouble) != np.float64:
    KINDS.append("longdouble")


def same_for_both(made: Any, x: Array, t: Array, dtype: str) -> None:
    """Check that both engines train alike on these arrays."""
    results = []
    for engine in (CompiledEngine(), ReferenceEngine()):
        kept, bound = bind(made(dtype), SGD(), engine)
        losses = [bound.epoch(epoch_of(x, t)) for _ in range(2)]
        results.append(kept | {"losses": np.array(losses)})
    check_agreement(*results, dtype, f"{x.dtype} and {t.dtype}")


def plain(dtype: str) -> Network:
    layers = [Linear(FEATURES, 19), Tanh(), Linear(19, OUTPUTS)]
    return Network(*layers, loss=MeanSquaredError(), dtype=dtype)


def classifier(dtype: str) -> Network:
    return Network(Linear(FEATURES, OUTPUTS), loss=SoftmaxCrossEntropy(), dtype=dtype)


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_any_type_are_converted(kind: str, dtype: str) -> None:
    """Values, targets and classes, as they lie in memory."""
    x = np.random.default_rng(0).integers(0, 2 if kind == "bool" else 9, (ROWS, FEATURES)).astype(kind)
    same_for_both(plain, x, x[:, :OUTPUTS], dtype)
    same_for_both(classifier, X, (CLASSES % 2).astype(kind), dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_indices_of_any_type_are_looked_up(kind: str) -> None:
    index = (np.arange(ROWS) % (2 if kind == "bool" else 11)).astype(kind)

    def made(dtype: str) -> Network:
        layers = [Embedding(11, 4), Linear(4, OUTPUTS)]
        return Network(*layers, inputs=(), loss=SoftmaxCrossEntropy(), dtype=dtype)

    same_for_both(made, index, CLASSES, "float32")


def test_the_largest_whole_numbers_are_converted_as_numpy_does() -> None:
    """2⁶⁴ - 1, -2⁶³, and what lies between two float32."""
    made = Network(Linear(1, 1), loss=MeanSquaredError())
    for kind, numbers in (
        ("uint64", [2**64 - 1, 2**63, 2**24 + 1, 0]),
        ("int64", [-(2**63), 2**63 - 1, 2**24 + 1, -1]),
        ("uint32", [2**32 - 1, 2**24 + 1, 0, 1]),
        ("int8", [-128, 127, 0, -1]),
    ):
        x = np.array(numbers, kind)[:, None]
        program = made.loss_program()
        found = [
            float(engine.bind(program, made.arrays).run(x=x[k : k + 1], t=np.zeros((1, 1)))["total"])
            for engine in (CompiledEngine(), ReferenceEngine())
            for k in range(4)
        ]
        np.testing.assert_allclose(found[:4], found[4:], rtol=1e-6)


@pytest.mark.parametrize(
    "how", ["columns", "reversed", "every second", "fortran", "broadcast", "read-only", "mapped"]
)
def test_rows_lie_in_memory_as_they_may(how: str, tmp_path: Path) -> None:
    """Views of every kind give the numbers of a copy."""
    wide = np.random.default_rng(0).normal(size=(2 * ROWS, 2 * FEATURES))
    np.save(tmp_path / "x.npy", X)
    read_only = X.copy()
    read_only.flags.writeable = False
    x = {
        "columns": wide[:ROWS, 1 : 1 + FEATURES],
        "reversed": X[::-1],
        "every second": wide[::2, ::2],
        "fortran": np.asfortranarray(X),
        "broadcast": np.broadcast_to(X[:1], X.shape),
        "read-only": read_only,
        "mapped": np.load(tmp_path / "x.npy", mmap_mode="r"),
    }[how]
    results = []
    for rows in (x, np.array(x)):
        kept, bound = bind(plain("float32"), SGD())
        losses = [bound.epoch(epoch_of(rows, T)) for _ in range(2)]
        results.append(kept | {"losses": np.array(losses)})
    check_same(*results)


def test_an_epoch_of_no_rows_does_nothing() -> None:
    kept, bound = bind(network())
    before = {name: array.copy() for name, array in kept.items()}
    assert bound.epoch(Epoch({"x": X, "t": T}, np.empty(0, int), 6, np.empty(0))) == (0, 0)
    check_same(kept, before)


def test_one_binding_serves_many_shapes_of_epochs() -> None:
    """Orders, sizes of batches and types that change from epoch to epoch, against a reference that goes along."""
    (kept, bound), (expected, reference) = (
        bind(plain("float64")),
        bind(plain("float64"), None, ReferenceEngine()),
    )
    rng = np.random.default_rng(0)
    step = 1
    for batch_size in (6, 6, 1, 23, 100, 7, 6):
        for order in (np.arange(ROWS), rng.permutation(ROWS)[:13], np.array([3]), rng.integers(0, ROWS, 40)):
            for x in (X, X.astype(np.float32), X.copy()):
                epoch = epoch_of(x, T, batch_size, order=order, first_step=step, seed=1)
                np.testing.assert_allclose(bound.epoch(epoch), reference.epoch(epoch), rtol=1e-12)
                step += len(epoch)
    check_agreement(kept, expected, "float64", "many epochs")


def test_what_run_returns_is_the_callers() -> None:
    """Copies: the next run does not change them, and changing them changes no parameter."""
    made = network()
    bound = CompiledEngine().bind(made.program().without_updates(), made.arrays)
    given: dict[str, Any] = {"seed": 0, "step": 1}
    first = bound.run(x=X, t=T, **given)
    kept = {name: np.array(value) for name, value in first.items()}
    bound.run(x=X[:4] + 1, t=T[:4], **given)
    check_same(first, kept)


def test_run_gives_the_numbers_whatever_they_are() -> None:
    """A loss that is not finite, and the gradients that follow from it."""
    made = plain("float64")
    x = X.copy()
    x[3] = np.nan
    program = made.program().without_updates().keeping("total", "count")
    results = [
        engine.bind(program, made.arrays).run(x=x, t=T, seed=0, step=1)
        for engine in (CompiledEngine(), ReferenceEngine())
    ]
    for name, expected in results[1].items():
        np.testing.assert_array_equal(np.isnan(results[0][name]), np.isnan(expected), err_msg=name)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read where Linux shows it")
def test_nothing_is_allocated_from_step_to_step() -> None:
    """Neither Python's memory nor the process's grows over epochs: everything is there when the first ends."""
    made = Network(Linear(64, 128), ReLU(), Dropout(0.2), Linear(128, 10), loss=SoftmaxCrossEntropy())
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(1005, 64)).astype("float32"), rng.integers(0, 10, 1005)
    _, bound = bind(made)
    epoch = epoch_of(x, t, 10)

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(3):
        bound.epoch(epoch)
    tracemalloc.start()
    try:
        bound.epoch(epoch)
        before, resident_before = tracemalloc.get_traced_memory()[0], resident()
        tracemalloc.reset_peak()
        for _ in range(20):  # 2020 steps
            bound.epoch(epoch)
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert now - before < 5_000
    assert peak - before < 100_000  # an epoch's own row numbers and rates, never a batch
    assert resident() - resident_before < 2**20


def test_training_says_what_ran() -> None:
    """The facts name the engine, its BLAS library and how many threads it may use; no notice is given."""
    history = train(network(), X, T, epochs=1)
    assert history.facts["engine"] == "compiled"
    assert history.facts["blas"]
    assert history.facts["threads"] >= 1


def test_an_interruption_while_tables_are_made_leaves_no_stale_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for the rows that it was to run on, nor for those it ran on before: memory that is freed is not read."""
    kept, bound = bind(network())
    fresh_kept, fresh = bind(network())
    other_x, other_t = X[::-1].copy(), T[::-1].copy()
    made = StepTable.add_product
    for x, t in ((other_x, other_t), (X, T)):
        bound.epoch(epoch_of(X, T, 4))

        def interrupted(*arguments: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(StepTable, "add_product", interrupted)
        with pytest.raises(KeyboardInterrupt):
            bound.epoch(epoch_of(other_x, other_t, 4))
        monkeypatch.setattr(StepTable, "add_product", made)
        bound.epoch(epoch_of(x, t, 4))
        fresh.epoch(epoch_of(X, T, 4))
        fresh.epoch(epoch_of(x, t, 4))
    for name, array in kept.items():
        np.testing.assert_array_equal(array, fresh_kept[name])


@pytest.mark.parametrize("optimiser", [SGD(), Adam()], ids=repr)
def test_what_only_updates_need_is_not_stored(optimiser: Optimiser) -> None:
    """A penalty's gradient, and its sum with that of the rows, are computed in the loop that updates the weights."""
    made = Network(Linear(FEATURES, 19), ReLU(), Linear(19, OUTPUTS), loss=SoftmaxCrossEntropy(l2=0.1))
    _, bound = bind(made, optimiser)
    assert isinstance(bound, BoundCompiled)
    large = [value for value in bound.schedule.stored if str(value.size) == str(FEATURES * 19)]
    assert {value.operation for value in large if not value.target} == {"product"}
