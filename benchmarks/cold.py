"""What a person waits for before anything has run: start, help, import and first training, in a fresh environment.

    python benchmarks/cold.py [--rounds 9] [--trainings 3] [--json FILE]

An environment is made with pip in a temporary folder, as the README does, and every command runs in a process of its
own; a number is the median of the rounds, and the exit code is 1 when one is above its limit. Each training has an
empty home and an empty folder of compiled code. "No .pyc files" means that Python has kept nothing of what it read
before either, and keeps nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FACTS = "import json, machine; print(json.dumps(known := machine.facts())); print(machine.summary(known))"
START, NUMPY = ["python", "-c", "pass"], ["python", "-c", "import numpy"]
IMPORT, USE = ["python", "-c", "import handgrad"], ["python", "-c", "from handgrad import Network, train"]
HELP, TRAIN = ["handgrad", "--help"], ["handgrad", "train"]


@dataclass(frozen=True)
class Wait:
    """How long something took, and how long it may.

    Attributes
    ----------
    what
        The command in words.
    seconds
        The median of the rounds.
    least, most
        The fastest and the slowest of them.
    limit
        In seconds; None where nothing is promised.
    """

    what: str
    seconds: float
    least: float
    most: float
    limit: float | None = None


class Fresh:
    """A new environment with handgrad in it, in a folder that is taken away at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder / "environment", folder / "environment" / "bin"
        self.home = folder / "home"
        venv.create(self.folder, with_pip=True, symlinks=True)
        subprocess.run([self.bin / "python", "-m", "pip", "install", "--quiet", ROOT], check=True)

    def seconds(self, command: list[str], *, keep_bytecode: bool = True) -> float:
        """Run a command in an empty home, and return how long it took."""
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir()
        quiet = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "HANDGRAD", "XDG_"))
        }
        environment = quiet | {
            "HOME": str(self.home),
            "PYTHONDONTWRITEBYTECODE": "" if keep_bytecode else "1",
        }
        started = time.perf_counter()
        subprocess.run(
            [self.bin / command[0], *command[1:]],
            cwd=self.home, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
        )  # fmt: skip
        return time.perf_counter() - started

    def facts(self) -> tuple[dict[str, Any], str]:
        """Return what is known of the machine and of the packages that pip has chosen, and a summary of it."""
        command = [self.bin / "python", "-B", "-c", FACTS]
        done = subprocess.run(
            command, cwd=ROOT / "benchmarks" / "peers", capture_output=True, text=True, check=True
        )
        known, text = done.stdout.split("\n", 1)
        return json.loads(known), text

    def size(self) -> int:
        """Return how many bytes the files of the environment have."""
        return sum(
            path.stat().st_size for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink()
        )

    def forget_bytecode(self) -> None:
        """Take away what pip had Python keep of every file it installed."""
        for folder in list(self.folder.rglob("__pycache__")):
            shutil.rmtree(folder)


def measure(fresh: Fresh, rounds: int, trainings: int) -> list[Wait]:
    """Measure everything, turn by turn; without .pyc files last."""
    start, numpy, imported, used, shown = _turns(fresh, [START, NUMPY, IMPORT, USE, HELP], rounds)
    (train,) = _turns(fresh, [TRAIN], trainings)
    fresh.forget_bytecode()
    bare_help, bare_train = _turns(fresh, [HELP, TRAIN], trainings, keep_bytecode=False)
    allowed = statistics.median(numpy) + 0.1
    return [
        _wait("start Python", start),
        _wait("import numpy", numpy),
        _wait("import handgrad", imported, allowed),
        _wait("from handgrad import Network, train", used, allowed),
        _wait("handgrad --help", shown, 0.15),
        _wait("handgrad --help, no .pyc files", bare_help),
        _wait("first handgrad train", train, 10.0),
        _wait("first handgrad train, no .pyc files", bare_train, 10.0),
    ]


def _turns(
    fresh: Fresh, commands: list[list[str]], rounds: int, *, keep_bytecode: bool = True
) -> list[list[float]]:
    times: list[list[float]] = [[] for _ in commands]
    for _ in range(rounds):
        for command, found in zip(commands, times, strict=True):
            found.append(fresh.seconds(command, keep_bytecode=keep_bytecode))
    return times


def _wait(what: str, times: list[float], limit: float | None = None) -> Wait:
    return Wait(what, statistics.median(times), min(times), max(times), limit)


def table(waits: list[Wait]) -> str:
    """Return the figures as a person reads them, in milliseconds."""
    lines = [f"{'':36} {'median':>8} {'least':>8} {'most':>8} {'limit':>8}"]
    for each in waits:
        numbers = (each.seconds, each.least, each.most, each.limit)
        lines.append(
            f"{each.what:36} " + " ".join(f"{'' if x is None else f'{x * 1e3:,.0f} ms':>8}" for x in numbers)
        )
        if each.limit is not None and each.seconds > each.limit:
            lines[-1] += "  exceeded"
    return "\n".join(lines)


def main() -> int:
    """Measure, print, and return 1 when a limit is exceeded."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9, help="of what takes less than a second")
    parser.add_argument("--trainings", type=int, default=3, help="rounds of the trainings")
    parser.add_argument("--json", type=Path, help="a file for the numbers")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="handgrad-cold-") as folder:
        fresh = Fresh(Path(folder))
        machine, text = fresh.facts()
        print(text)
        print(f"installed, with pip: {fresh.size() / 2**20:,.0f} MiB\n")
        waits = measure(fresh, options.rounds, options.trainings)
    print(table(waits))
    if options.json:
        known = {"machine": machine, "waits": [asdict(each) for each in waits]}
        options.json.write_text(json.dumps(known, indent=1) + "\n")
    return int(any(each.limit is not None and each.seconds > each.limit for each in waits))


if __name__ == "__main__":
    sys.exit(main())
