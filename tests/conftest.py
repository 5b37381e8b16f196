"""What several folders of tests share."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Protocol

import pytest

HANDGRAD = [sys.executable, "-W", "error", str(Path(sys.executable).with_name("handgrad"))]
"""The installed command, with warnings as errors."""

CACHE = tempfile.TemporaryDirectory(prefix="handgrad-cache-", ignore_cleanup_errors=True)
"""Where this run of the tests keeps compiled code: it neither reads nor writes the user's own folder."""

os.environ["HANDGRAD_CACHE"] = CACHE.name  # for subprocesses too

# Tests write a module, and write it again within a second: Python would take up the code it kept of the first.
sys.dont_write_bytecode = True

ENVIRONMENT = {**os.environ, "COLUMNS": "200", "PYTHONUNBUFFERED": "1"}


class Command(Protocol):
    """Runs the command line."""

    def __call__(self, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run it on some arguments, and check its exit code."""


@pytest.fixture
def handgrad(tmp_path: Path) -> Command:
    """Run the installed command in the test's folder."""

    def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*HANDGRAD, *map(str, arguments)],
            cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


@pytest.fixture(scope="session")
def torch() -> Any:
    """PyTorch, for tests marked ``peers``; where they are selected and it is missing, they fail."""
    import torch

    torch.set_num_threads(1)
    return torch
