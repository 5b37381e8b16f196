"""What the compiled engine decides by measuring: whether a second thread helps, and which BLAS library is faster."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import SGD, Linear, MeanSquaredError, Network, Tanh
from handgrad.engines import Epoch
from handgrad.engines.compiled import CompiledEngine, batch_loop, blas, plan
from handgrad.engines.compiled.batch_loop import SLICE_SECONDS, TRIAL_SECONDS, Choice, Helpers
from handgrad.engines.compiled.blas import Blas, find_blas
from handgrad.errors import ConfigurationError

from .agreement import threads

Array = NDArray[Any]


def decide(choice: Choice, speeds: dict[bool, float], slices: int) -> list[bool]:
    """Run slices whose rows take so long with help and without; return which were helped."""
    helped = []
    for _ in range(slices):
        helped.append(choice.helped)
        choice.measured(choice.length, max(1, round(choice.length / speeds[choice.helped])))
    return helped


@pytest.mark.parametrize("faster", [True, False])
def test_both_ways_are_tried_and_the_faster_one_is_kept(faster: bool) -> None:
    choice = Choice()
    helped = decide(choice, {faster: 1e-6, not faster: 2e-6}, 40)
    assert {True, False} == set(helped[:3])
    assert helped[3:].count(not faster) <= len(helped) // 4
    assert choice.length in (TRIAL_SECONDS, SLICE_SECONDS)


def test_trials_take_a_small_share_of_the_time() -> None:
    choice = Choice()
    total = {True: 0.0, False: 0.0}
    for _ in range(2000):
        seconds = (
            choice.length if choice.helped else 20 * choice.length
        )  # a batch alone is longer than a trial
        total[choice.helped] += seconds
        choice.measured(seconds, max(1, round(choice.length / 1e-6)))
    assert total[False] < 0.05 * total[True]


def test_a_machine_that_becomes_busy_is_noticed() -> None:
    """Help that becomes four times dearer is only tried now and then, and taken again afterwards."""
    choice = Choice()
    quiet, busy = {True: 1e-6, False: 2e-6}, {True: 4e-6, False: 2e-6}
    assert decide(choice, quiet, 20).count(True) > 12
    assert decide(choice, busy, 20).count(True) < 8
    assert decide(choice, quiet, 20).count(True) > 12


def test_a_slice_too_short_to_tell_decides_nothing() -> None:
    choice = Choice()
    choice.measured(TRIAL_SECONDS / 10, 1)
    assert choice.seconds == {}
    assert not choice.helped


def test_helpers_help_one_caller_at_a_time() -> None:
    helpers = Helpers(1)
    seen: list[int] = []

    def another() -> None:
        with helpers.shared() as address:
            seen.append(address)

    with helpers.shared() as address:
        assert address == helpers.memory.ctypes.data
        thread = threading.Thread(target=another)
        thread.start()
        thread.join()
    assert seen == [0]
    with helpers.shared() as address:
        assert address


@pytest.mark.parametrize("line", range(1, 10))
def test_an_interrupt_at_any_line_lets_nobody_wait(line: int) -> None:
    """Whoever asks next is not kept waiting."""
    helpers = Helpers(1)
    code, lines = Helpers.shared.__wrapped__.__code__, 0  # type: ignore[attr-defined] # of the context manager

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        if frame.f_code is not code:
            return None
        lines += event == "line"
        if lines == line and event == "line":
            raise KeyboardInterrupt
        return trace

    def ask() -> None:
        with helpers.shared() as address:
            seen.append(address)

    seen: list[int] = []
    sys.settrace(trace)
    with suppress(KeyboardInterrupt), helpers.shared():
        pass
    sys.settrace(None)
    next_one = threading.Thread(target=ask, daemon=True)
    next_one.start()
    next_one.join(10)
    assert len(seen) == 1


def test_one_thread_fewer_helps_than_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that asks for help does a part itself."""
    asked: list[int] = []

    def noted(count: int) -> Helpers:
        asked.append(count)
        return batch_loop.helpers(count)

    monkeypatch.setattr(plan, "helpers", noted)
    monkeypatch.setattr(
        Choice, "helped", property(lambda self: True, lambda self, value: None), raising=False
    )
    network = Network(Linear(37, 83), Tanh(), Linear(83, 41), loss=MeanSquaredError(), dtype="float64")
    rng = np.random.default_rng(0)
    arrays = {"x": rng.normal(size=(150, 37)), "t": rng.normal(size=(150, 41))}
    with threads(3):
        bound = CompiledEngine().bind(network.program(SGD()).keeping("total", "count"), network.arrays)
        bound.epoch(Epoch(arrays, np.arange(150), 150, np.array([0.01])))
    assert asked == [2]


class Timed(Blas):
    """A library that says how fast it is."""

    def seconds(self) -> float:
        """Note that it was asked."""
        MEASURED.append(self.name)
        return {"fast": 1.0, "slow": 2.0}[self.name]


MEASURED: list[str] = []


@pytest.mark.parametrize("order", [("fast", "slow"), ("slow", "fast")])
def test_the_fastest_library_is_measured_once_and_remembered(
    order: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDGRAD_CACHE", str(tmp_path))
    monkeypatch.setattr(blas, "_with_avx2", lambda openblas: None)
    MEASURED.clear()
    openblas, mkl = (Timed(name, ctypes.CDLL(None), "{}", "i64", ("", "")) for name in order)
    assert [blas._fastest(openblas, mkl).name for _ in range(3)] == ["fast"] * 3
    assert [*order] * blas.ROUNDS == MEASURED
    (file,) = tmp_path.iterdir()
    file.write_text("another library")  # is measured again
    assert blas._fastest(openblas, mkl).name == "fast"
    assert len(MEASURED) == 4 * blas.ROUNDS


def test_a_copy_that_was_slower_is_not_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDGRAD_CACHE", str(tmp_path))
    openblas, copy = (Timed(name, ctypes.CDLL(None), "{}", "i64", ("", "")) for name in ("fast", "slow"))
    monkeypatch.setattr(blas, "_with_avx2", lambda openblas: copy)
    assert blas._fastest(openblas, None) is openblas
    monkeypatch.setattr(blas, "_with_avx2", lambda openblas: pytest.fail("loaded again"))
    assert blas._fastest(openblas, None) is openblas


def make_copy(monkeypatch: pytest.MonkeyPatch, core: str = "SkylakeX") -> tuple[Blas, Blas | None]:
    """Return NumPy's OpenBLAS and its copy, on a processor that is said to have AVX-512."""
    said = blas._answer
    monkeypatch.setattr(
        blas, "_answer", lambda library, name: core if "corename" in name else said(library, name)
    )
    openblas = blas._openblas()
    assert openblas is not None
    return openblas, blas._with_avx2(openblas)


def multiply(address: int, integer: str, a: Array, b: Array) -> Array:
    c = np.empty((len(a), b.shape[1]), np.float32)
    size, array, one = (
        {"i32": ctypes.c_int32, "i64": ctypes.c_int64}[integer],
        ctypes.c_void_p,
        ctypes.c_float(1),
    )
    (m, k), n = a.shape, b.shape[1]
    ctypes.CFUNCTYPE(None)(address)(
        101, 111, 111, size(m), size(n), size(k), one, array(a.ctypes.data), size(k), array(b.ctypes.data), size(n),
        ctypes.c_float(0), array(c.ctypes.data), size(n),
    )  # fmt: skip
    return c


def test_a_copy_of_the_library_with_other_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDGRAD_CACHE", str(tmp_path))
    monkeypatch.setenv("OPENBLAS_CORETYPE", "mine")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    openblas, copy = make_copy(monkeypatch)
    assert copy is not None
    assert os.environ["OPENBLAS_CORETYPE"] == "mine"
    assert "OPENBLAS_NUM_THREADS" not in os.environ
    assert copy.name == f"{openblas.name} (AVX2)"
    assert copy.address("sgemm") != openblas.address("sgemm")
    large, small = (160, 130, 80), (16, 13, 80)
    for sizes, expected in ((large, copy), (small, openblas)):
        assert copy.function("sgemm", int(np.prod(sizes)), False) == expected.address("sgemm")
        m, n, k = sizes
        a, b = (np.random.default_rng(3).normal(size=shape).astype(np.float32) for shape in ((m, k), (k, n)))
        found = multiply(copy.function("sgemm", m * n * k, False), copy.integer, a, b)
        np.testing.assert_allclose(found, a.astype(float) @ b, rtol=1e-4, atol=1e-4)
    (file,) = tmp_path.iterdir()
    written = file.stat().st_mtime_ns
    assert make_copy(monkeypatch)[1] is not None
    assert file.stat().st_mtime_ns == written


def test_a_damaged_copy_of_the_library_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would crash every process that loads it; where it cannot be written, there is none."""
    monkeypatch.setenv("HANDGRAD_CACHE", str(tmp_path))
    openblas = make_copy(monkeypatch)[0]
    (file,) = tmp_path.iterdir()
    for damage in (bytes(file.stat().st_size), file.read_bytes()[:-9], b""):
        file.unlink()  # this process has it mapped
        file.write_bytes(damage)
        assert make_copy(monkeypatch)[1] is not None
        assert file.read_bytes() == Path(openblas.library._name).read_bytes()
    file.unlink()
    file.write_bytes(bytes(100))
    monkeypatch.setattr(blas, "cache_file", lambda name, content: None)
    assert make_copy(monkeypatch)[1] is None


def test_a_copy_follows_the_threads_of_the_original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDGRAD_CACHE", str(tmp_path))
    openblas, copy = make_copy(monkeypatch)
    assert copy is not None
    allowed = openblas.thread_count
    with copy.on_one_thread():
        assert openblas.thread_count == copy.thread_count == 1
        assert copy.allowed_threads == allowed
    assert openblas.thread_count == allowed
    assert copy.thread_count == 1


def test_no_copy_where_there_is_nothing_to_gain_or_nowhere_to_put_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDGRAD_CACHE", str(tmp_path))
    assert make_copy(monkeypatch, core="Haswell")[1] is None
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    monkeypatch.setenv("HANDGRAD_CACHE", str(tmp_path / "file"))
    assert make_copy(monkeypatch)[1] is None


def test_a_library_can_be_measured() -> None:
    found = find_blas()
    assert found is not None
    before = found.thread_count
    assert 0 < found.seconds() < 1
    assert found.thread_count == before


@pytest.mark.parametrize(
    ("choice", "message"),
    [("fast", "HANDGRAD_BLAS is 'fast'\n  fix    give auto, numpy or mkl"), ("mkl", "no MKL is installed")],
)
def test_a_choice_that_cannot_be_is_refused(
    choice: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDGRAD_BLAS", choice)
    monkeypatch.setattr(blas, "_mkl", lambda: None)
    with pytest.raises(ConfigurationError, match=message):
        blas._find.__wrapped__()
