"""Compiled code is kept on disk: what is kept serves every network of known kinds, and no damage to it matters."""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
import time
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import handgrad.network
from handgrad import Linear, Network
from handgrad.engines.compiled.native import Native, cache_file, native

from .agreement import threads

PROGRAM = """
import hashlib, json, sys
import numpy as np
from handgrad import *
from handgrad.engines.compiled.native import Native

compiled = []
original = Native.compiled

def counted(self, key, text):
    compiled.append(key)
    return original(self, key, text)

Native.compiled = counted

def fit(*layers, loss=None, optimiser=None, features=6, classes=3, **more):
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(50, features)), rng.integers(0, classes, 50)
    network = Network(*layers, loss=loss or SoftmaxCrossEntropy())
    before = len(compiled)
    history = train(network, x, t, epochs=1, optimiser=optimiser or Adam(), **{"batch_size": 8, **more})
    assert history.facts["engine"] == "compiled", history.facts
    weights = b"".join(array.tobytes() for array in network.arrays.values())
    return len(compiled) - before, hashlib.sha256(weights).hexdigest()

def usual(width=16, depth=1, rate=0.2, slope=0.01, momentum=0.1, features=6, classes=3, **more):
    hidden = [layer for _ in range(depth) for layer in
              (Linear(width, width), BatchNorm(momentum=momentum), LeakyReLU(slope), Dropout(rate))]
    return fit(Linear(features, width), *hidden, Linear(width, classes), features=features, classes=classes, **more)
"""


def run(code: str, cache: Path, **environment: str) -> Any:
    """Run a program that prints JSON, with a cache folder."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM + textwrap.dedent(code)],
        env={**os.environ, "HANDGRAD_CACHE": str(cache), **environment},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


ONCE = "print(json.dumps(usual()))"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a cache that one training has filled, and what its weights came to."""
    folder = tmp_path_factory.mktemp("filled")
    compiled, weights = run(ONCE, folder)
    assert compiled > 5
    return folder, weights


def copied(filled: tuple[Path, str], folder: Path) -> Path:
    """Return a cache of one's own with the same files."""
    folder.mkdir()
    for file in filled[0].iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def test_a_second_process_compiles_nothing(filled: tuple[Path, str]) -> None:
    """It gives the same weights, and leaves the folder as it was."""
    before = {file.name: file.stat().st_mtime_ns for file in filled[0].iterdir()}
    assert run(ONCE, filled[0]) == [0, filled[1]]
    assert {file.name: file.stat().st_mtime_ns for file in filled[0].iterdir()} == before
    assert not [name for name in before if name.startswith(".")]  # nothing half-written


def test_sizes_and_settings_compile_nothing_new(filled: tuple[Path, str], tmp_path: Path) -> None:
    """Widths, depth, batches, rows, and every number of a layer or an optimiser are no part of the code."""
    code = """
    usual()  # what is kept
    found = {
        "width": usual(width=33)[0],
        "narrow": usual(width=2)[0],
        "narrow data": usual(features=2)[0],
        "classes": usual(classes=11)[0],
        "depth": usual(depth=2)[0],
        "more depth": usual(depth=5)[0],
        "batch": usual(batch_size=13)[0],
        "batch of one": usual(batch_size=1)[0],
        "dropout": usual(rate=0.35)[0],
        "slope": usual(slope=0.3)[0],
        "momentum": usual(momentum=0.4)[0],
        "rate": usual(optimiser=Adam(0.02))[0],
        "betas": usual(optimiser=Adam(beta1=0.8, beta2=0.95, epsilon=1e-6))[0],
        "seed": usual(seed=7)[0],
        "epochs": usual(schedule=OneCycle())[0],
    }
    print(json.dumps({name: count for name, count in found.items() if count}))
    """
    assert run(code, copied(filled, tmp_path / "cache")) == {}


def test_numbers_that_stand_for_themselves_are_no_other_code(
    filled: tuple[Path, str], tmp_path: Path
) -> None:
    """A dropout of ½, a slope of 1: such numbers may be written into the code, at most a loop or two."""
    code = "usual(); print(json.dumps([usual(rate=0.5)[0], usual(slope=0.5)[0]]))"
    assert max(run(code, copied(filled, tmp_path / "cache"))) <= 4


DAMAGE = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "one byte short": lambda content: content[:-1],
    "a bit turned": lambda content: content[:-100] + bytes([content[-100] ^ 1]) + content[-99:],
    "the digest turned": lambda content: content[:30] + bytes([content[30] ^ 1]) + content[31:],
    "longer": lambda content: content + b"more",
    "foreign": lambda content: b"\x7fELF" + bytes(5000),
    "zeros": lambda content: bytes(len(content)),
    "of another version": lambda content: content.replace(b"code 1", b"code 0"),
}


def test_damaged_files_are_replaced(filled: tuple[Path, str], tmp_path: Path) -> None:
    """The code is compiled again, gives the same weights, and is whole the next time."""
    folder = copied(filled, tmp_path / "cache")
    files = sorted(folder.glob("*.o"))[: len(DAMAGE)]
    for file, damage in zip(files, DAMAGE.values(), strict=True):
        content = file.read_bytes()
        file.write_bytes(damage(content))
        assert file.read_bytes() != content
    assert run(ONCE, folder) == [len(DAMAGE), filled[1]]
    for file in files:
        assert file.read_bytes() == (filled[0] / file.name).read_bytes()


def test_a_folder_in_a_files_place_does_not_matter(filled: tuple[Path, str], tmp_path: Path) -> None:
    folder = copied(filled, tmp_path / "cache")
    first = min(folder.glob("*.o"))
    first.unlink()
    first.mkdir()
    assert run(ONCE, folder) == [1, filled[1]]


@pytest.mark.parametrize("how", ["a file", "below a file"])  # what not even root can write to
def test_a_folder_that_cannot_be_written_costs_time_only(
    how: str, filled: tuple[Path, str], tmp_path: Path
) -> None:
    """The same weights; nothing is left lying about."""
    cache = tmp_path / "cache"
    cache.write_text("no folder")
    cache = cache / "cache" if how == "below a file" else cache
    compiled, weights = run(ONCE, cache)
    assert compiled > 5
    assert weights == filled[1]
    assert [file.name for file in tmp_path.iterdir()] == ["cache"]


def test_four_processes_share_an_empty_folder(tmp_path: Path) -> None:
    """They start at once, all give the same weights, and the folder is whole."""
    cache, small = tmp_path / "cache", "print(json.dumps(fit(Linear(6, 3), optimiser=SGD(0.1))))"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM + small], env={**os.environ, "HANDGRAD_CACHE": str(cache)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(4)
    ]  # fmt: skip
    weights = set()
    for process in running:
        printed, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        weights.add(json.loads(printed)[1])
    assert not [file.name for file in cache.iterdir() if file.name.startswith(".")]  # nothing half-written
    assert run(small, cache) == [0, weights.pop()]
    assert not weights


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "HOME"])
@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="folders have other names there")
def test_the_usual_folder(variable: str, tmp_path: Path) -> None:
    """Without HANDGRAD_CACHE it is the user's usual folder for such things."""
    code = "from handgrad.engines.compiled.native import cache_folder; print(cache_folder())"
    environment = {k: v for k, v in os.environ.items() if k not in ("HANDGRAD_CACHE", "XDG_CACHE_HOME")}
    found = subprocess.run(
        [sys.executable, "-c", code], env={**environment, variable: str(tmp_path)}, capture_output=True,
        text=True, check=True,
    ).stdout.strip()  # fmt: skip
    assert Path(found) == tmp_path / ("handgrad" if variable == "XDG_CACHE_HOME" else ".cache/handgrad")


def _train_in_child(queue: Any) -> None:
    """Train with threads in a process that was forked after its parent had used some."""
    import numpy as np

    from handgrad import Linear, MeanSquaredError, Network, Tanh, train

    rng = np.random.default_rng(0)
    network = Network(Linear(40, 64), Tanh(), Linear(64, 3), loss=MeanSquaredError())
    with threads(2):
        history = train(network, rng.normal(size=(300, 40)), rng.normal(size=(300, 3)), epochs=2)
    queue.put((history.facts["engine"], history.epochs[-1].loss))


def _kernel(number: int) -> str:
    """Return a function that no other test compiles."""
    sum_ = f"%sum = add i64 %last, {number}\n%low = trunc i64 %sum to i32\nret i32 %low"
    return f"define i32 @kernel(ptr %all, i64 %first, i64 %last) {{\n{sum_}\n}}\n"


class _Slow:
    """Has a property that another thread is computing."""

    @cached_property
    def value(self) -> int:
        if threading.current_thread() is not threading.main_thread():
            time.sleep(1)
        return 1


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_forked_while_another_thread_compiles_does_not_wait_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nor for one that computes a cached property, such as a network's parameters."""
    original, compiling = Native.compiled, threading.Event()

    def slow(self: Native, key: str, text: str) -> bytes:
        compiling.set()
        time.sleep(0.5)
        return original(self, key, text)

    monkeypatch.setenv("HANDGRAD_CACHE", str(tmp_path))
    monkeypatch.setattr(Native, "compiled", slow)
    network = Network(Linear(3, 2))
    monkeypatch.setattr(handgrad.network, "Slow", _Slow, raising=False)  # as if it were one of handgrad's
    others = [
        threading.Thread(target=lambda: native().address(_kernel(1))),
        threading.Thread(target=lambda: _Slow().value),
    ]
    for other in others:
        other.start()
    assert compiling.wait(20)
    child = multiprocessing.get_context("fork").Process(
        target=lambda: (_Slow().value, native().address(_kernel(2)), network.parameters)
    )
    child.start()
    child.join(20)
    try:
        assert child.exitcode == 0
    finally:
        child.kill()
        child.join()
    for other in others:
        other.join()


FORK = """
import os, signal, sys, threading, time
import numpy as np
from handgrad import HalfSquaredError, Linear, Network, train

def fit(rows=3):
    train(Network(Linear(3, 2), loss=HalfSquaredError()), np.ones((rows, 3)), np.ones((rows, 2)), epochs=1)

def train_in_child():
    child = os.fork()
    if child == 0:
        fit()
        os._exit(0)
    done, deadline = (0, 0), time.monotonic() + 20
    while done[0] == 0 and time.monotonic() < deadline:
        done = os.waitpid(child, os.WNOHANG)
        time.sleep(0.002)
    if done[0] == 0:
        os.kill(child, signal.SIGKILL)
    print("finished" if done == (child, 0) else "hung", flush=True)
"""

IN_THE_FIRST_TRAINING = """
main, importing = threading.main_thread(), threading.Event()

class Slow:
    def find_spec(self, name, path=None, target=None):
        if threading.current_thread() is not main and name in {"numpy.ma", "handgrad.engines.compiled.plan"}:
            importing.set()
            time.sleep(0.5)

sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=fit)
thread.start()
while thread.is_alive():
    if importing.wait(0.1):
        importing.clear()
        train_in_child()
"""

WHILE_IT_TRAINS = """
fit()
over = threading.Event()

def train_on():
    while not over.is_set():
        fit(rows=100_000)

thread = threading.Thread(target=train_on)
thread.start()
for number in range(30):
    time.sleep(0.003 * (number % 5))
    train_in_child()
over.set()
thread.join()
"""


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.parametrize("script", [IN_THE_FIRST_TRAINING, WHILE_IT_TRAINS], ids=["first", "later"])
def test_a_child_forked_while_another_thread_trains_does_not_wait_for_it(tmp_path: Path, script: str) -> None:
    """Nor for the lock that Python has for each module being imported, which nobody releases in the child."""
    environment = {**os.environ, "HANDGRAD_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK + script],
        capture_output=True, text=True, env=environment, timeout=120,
    )  # fmt: skip
    assert set(done.stdout.split()) == {"finished"}, done.stderr


def test_code_that_no_program_uses_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the latest; what is in use stays, and so does what comes back."""
    monkeypatch.setattr("handgrad.engines.compiled.native.MOST_LINKED", 4)
    mine = Native()
    used = mine.address(_kernel(3))
    for number in range(10, 30):
        mine.address(_kernel(number))
    assert len(mine.latest) <= 4
    linked = len(mine.linked)
    for number in range(10, 30):
        assert mine.address(_kernel(number)) > 0
    assert len(mine.linked) == linked
    assert mine.address(_kernel(3)) == used
    assert ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *[ctypes.c_int64] * 2)(used)(0, 0, 39) == 42


def test_the_oldest_files_of_the_cache_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is not compiled code goes, and no file is younger than one that went."""
    monkeypatch.setenv("HANDGRAD_CACHE", str(tmp_path))
    monkeypatch.setattr("handgrad.engines.compiled.native.MOST_CACHED", 5000)
    for age in range(9):
        file = tmp_path / f"{age:032x}.o"
        file.write_bytes(bytes(1000))
        os.utime(file, (10**9 - age, 10**9 - age))
    for name in ("mine.o", f".{8:032x}.o-mine"):
        (tmp_path / name).write_bytes(bytes(9000))
        os.utime(tmp_path / name, (0, 0))
    for age, name in ((10**9, f".{8:032x}.o-0123abcd"), (0, f".{7:032x}.o-0123abcd")):
        (tmp_path / name).write_bytes(bytes(10))  # of a process that was killed, and of one that is writing
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    cache_file(f"{9:032x}.o", bytes(1000))
    assert {file.name for file in tmp_path.iterdir()} == {
        "mine.o",
        f".{8:032x}.o-mine",
        f".{7:032x}.o-0123abcd",
        *(f"{age:032x}.o" for age in (0, 1, 2, 3, 9)),
    }


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own() -> None:
    """It does not wait for its parent's, which did not come along; the parent's go on."""
    import queue as plain

    results: plain.Queue[Any] = plain.Queue()
    _train_in_child(results)
    fork = multiprocessing.get_context("fork")
    from_child = fork.SimpleQueue()
    child = fork.Process(target=_train_in_child, args=(from_child,))
    child.start()
    child.join(30)
    try:
        assert child.exitcode == 0
        assert from_child.get() == results.get()
    finally:
        child.kill()
        child.join()
    _train_in_child(results)
    assert results.get()[0] == "compiled"
