"""What several folders of tests share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Protocol

import pytest

from handgrad.engines import ENGINES

HANDGRAD = [sys.executable, "-W", "error", str(Path(sys.executable).with_name("handgrad"))]
"""The installed command, with warnings as errors."""

# One cache of compiled code for this run of the tests, its workers and the tests that pages run: it neither reads nor
# writes the user's own folder.
if "HANDGRAD_TESTS_CACHE" not in os.environ:
    CACHE = tempfile.TemporaryDirectory(prefix="handgrad-cache-", ignore_cleanup_errors=True)
    os.environ["HANDGRAD_TESTS_CACHE"] = CACHE.name
os.environ["HANDGRAD_CACHE"] = os.environ["HANDGRAD_TESTS_CACHE"]  # for subprocesses too

# Tests write a module, and write it again within a second: Python would take up the code it kept of the first.
sys.dont_write_bytecode = True


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what CI runs a sample of the tests with, on another Python."""
    parser.addoption("--every", type=int, default=1, help="run every so manyth test only")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out all but every so manyth test."""
    items[:] = items[:: config.getoption("every")]


EACH_ENGINE = [pytest.param(name, marks=[pytest.mark.peers] * (name == "jax")) for name in ENGINES]
"""For tests of every engine: the one of an optional package is tested with these."""

ENVIRONMENT = {**os.environ, "COLUMNS": "200", "PYTHONUNBUFFERED": "1"}

SERVER = """
import json, os, sys, tempfile, warnings
import handgrad.cli
for name in handgrad.cli.COMMANDS:
    handgrad.cli.group.get_command(None, name)
# What training imports late, and a first plot, which reads fonts.
import handgrad.engines.compiled, handgrad.explaining.page, safetensors.numpy, tomli_w
from handgrad.training.history import EpochRecord, History
with tempfile.TemporaryDirectory() as folder:
    records = [EpochRecord(epoch, 1 / epoch, 1 / epoch, 0.9, 0.01, 1.0) for epoch in (1, 2, 3)]
    History(epochs=records, metric="accuracy").plot(f"{folder}/plot.png")
FLAGS = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOCTTY
for line in sys.stdin:
    request = json.loads(line)
    if "start" not in request:
        options = 0 if request["wait"] else os.WNOHANG
        ended, status = os.waitpid(request["pid"], options)
        print(json.dumps(os.waitstatus_to_exitcode(status) if ended else None), flush=True)
        continue
    streams = [os.open(path, FLAGS) for path in request["streams"]]
    child = os.fork()
    if child:
        for stream in streams:
            os.close(stream)
        print(child, flush=True)
        continue
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.chdir(request["folder"])
    for name, value in request["environment"].items():
        os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
    if request["missing"]:
        for name in [name for name in sys.modules if name.startswith("handgrad.engines.compiled")]:
            del sys.modules[name]
        sys.modules.update(dict.fromkeys(request["missing"]))
    sys.argv = ["handgrad", *request["start"]]
    warnings.simplefilter("error")
    code = 0
    try:
        handgrad.cli.main()
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    os._exit(code)  # without taking down what was only inherited
"""


class Command(Protocol):
    """Runs the command line."""

    def __call__(
        self, *arguments: object, code: int = 0, missing: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run it on some arguments, without some packages, and check its exit code."""


class Server:
    """Runs the command line in processes that are forked from one that has imported everything already.

    Each is a process of its own, as the installed command would be, and starts in milliseconds instead of two seconds.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def ask(self, **request: Any) -> Any:
        """Send a request; return the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def start(
        self,
        folder: Path,
        arguments: Sequence[object],
        streams: Sequence[Path | str],
        *,
        environment: Mapping[str, str | None] | None = None,
        missing: Sequence[str] = (),
    ) -> int:
        """Start the command in a folder, with three files as its streams; return the number of the process."""
        return self.ask(
            start=[str(argument) for argument in arguments],
            folder=str(folder),
            streams=[str(stream) for stream in streams],
            environment=dict(environment or {}),
            missing=list(missing),
        )

    def poll(self, process: int) -> int | None:
        """Return the exit code, or None where it runs."""
        return self.ask(pid=process, wait=False)

    def wait(self, process: int) -> int:
        """Wait for its end; return the exit code."""
        return self.ask(pid=process, wait=True)

    def command_in(self, folder: Path) -> Command:
        """Return what runs the command line in a folder."""

        def run(
            *arguments: object, code: int = 0, missing: Sequence[str] = ()
        ) -> subprocess.CompletedProcess[str]:
            with tempfile.TemporaryDirectory() as place:
                out, err = Path(place) / "out", Path(place) / "err"
                ended = self.wait(self.start(folder, arguments, [os.devnull, out, err], missing=missing))
                done = subprocess.CompletedProcess(
                    arguments, ended, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8")
                )
            assert "Traceback" not in done.stderr, done.stderr
            assert done.returncode == code, done.stdout + done.stderr
            return done

        return run


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Start the server."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER], env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    with process:
        yield Server(process)
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture
def handgrad(server: Server, tmp_path: Path) -> Command:
    """Run the command line in the test's folder."""
    return server.command_in(tmp_path)


@pytest.fixture(scope="module", autouse=True)
def one_thread_for_numpy(request: pytest.FixtureRequest) -> Iterator[None]:
    """Keep NumPy's own products on one thread: those of several workers wait for one another in busy loops.

    What the compiled engine may use stays the same; tests of threads have all of them.
    """
    from handgrad.engines.compiled.blas import _openblas

    blas = None if request.path.parent.name in ("engines", "estimators") else _openblas()
    with nullcontext() if blas is None else blas.on_one_thread():
        yield


@pytest.fixture(scope="session")
def torch() -> Any:
    """PyTorch, for tests marked ``peers``; where they are selected and it is missing, they fail."""
    import torch

    torch.set_num_threads(1)
    return torch
