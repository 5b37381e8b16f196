"""A folder of data, sound and damaged, and of runs trained on it, that the tests of the command line share."""

from __future__ import annotations

import csv
import json
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ..conftest import ENVIRONMENT, Command

FEATURES = ["width", "height", "age"]


def write_table(path: Path, header: list[str], rows: list[list[Any]]) -> None:
    """Write a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def write_idx(path: Path, values: np.ndarray) -> None:
    """Write bytes as MNIST does."""
    path.write_bytes(
        struct.pack(f">4B{values.ndim}I", 0, 0, 8, values.ndim, *values.shape) + values.tobytes()
    )


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the folder: tables of 60 pets by name, and damage of every sort."""
    folder = tmp_path_factory.mktemp("shop")
    x = np.random.default_rng(0).normal(size=(60, 3)).round(2)
    said = np.where(x @ [1, 2, -1] > 0, "yes", "no")
    rows = [[*row, answer] for row, answer in zip(x.tolist(), said, strict=True)]
    write_table(folder / "pets.csv", [*FEATURES, "kept"], rows)
    write_table(folder / "more.csv", [*FEATURES, "kept"], rows[:25])
    prices = [[*row[:3], round(10 * sum(row[:3]) + 0.5, 1)] for row in rows]
    write_table(folder / "prices.csv", [*FEATURES, "price"], prices)
    write_table(folder / "both.csv", [*FEATURES, "price", "rent"], [[*row, -row[0]] for row in prices])
    write_table(
        folder / "three.csv", [*FEATURES, "kept"], [[*r[:3], "abc"[k % 3]] for k, r in enumerate(rows)]
    )
    write_table(
        folder / "shuffled.csv",
        ["age", "colour", "width", "height"],
        [[row[2], "brown", row[0], row[1]] for row in rows],
    )
    write_table(
        folder / "turned.csv",
        ["age", "kept", "tail", "width", "height"],
        [[row[2], row[3], 7, row[0], row[1]] for row in rows],
    )
    write_table(folder / "narrow.csv", ["width", "height", "kept"], [[*row[:2], row[3]] for row in rows])
    write_table(folder / "maybe.csv", [*FEATURES, "kept"], [*rows, [1, 2, 3, "maybe"]])
    write_table(folder / "one.csv", [*FEATURES, "kept"], [[*row[:3], "yes"] for row in rows])
    write_table(folder / "text.csv", [*FEATURES, "kept"], [*rows[:2], [1, "tall", 3, "no"], *rows[2:]])
    write_table(folder / "nan.csv", [*FEATURES, "kept"], [*rows[:4], [1, 2, "nan", "no"]])
    write_table(folder / "counts.csv", ["width", "n"], [[row[0], k % 5] for k, row in enumerate(rows)])
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text("width,kept\n")
    np.save(folder / "x.npy", x.astype(np.float32))
    np.save(folder / "t.npy", (said == "yes").astype(np.int64))
    np.save(folder / "wide.npy", np.ones((4, 7)))
    np.savez(folder / "pets.npz", x=x, t=said)
    pixels = np.random.default_rng(1).integers(0, 256, (40, 3, 2), dtype=np.uint8)
    for name in ("pixels", "torn", "other"):
        (folder / name).mkdir()
        for part, images in (("train", pixels[:30]), ("t10k", pixels[30:])):
            labels = (np.arange(len(images)) % 10).astype(np.uint8)
            write_idx(folder / name / f"{part}-images-idx3-ubyte", images)
            write_idx(folder / name / f"{part}-labels-idx1-ubyte", labels)
    torn, other = folder / "torn" / "t10k-images-idx3-ubyte", folder / "other" / "t10k-labels-idx1-ubyte"
    torn.write_bytes(torn.read_bytes()[:-5])
    other.write_bytes(b"PNG, not IDX at all")
    (folder / "a file").write_text("")
    return folder


# Runs commands one after another, each in a process of its own that is forked from one that has imported handgrad
# already: a quarter of a second less for each of more than a hundred.
SERVER = """
import importlib, json, os, sys, warnings
import handgrad.cli
for name in handgrad.cli.COMMANDS:
    importlib.import_module(f"handgrad.cli.{name}")
import handgrad.training.plot, safetensors.numpy, tomli_w  # what training imports late
for line in sys.stdin:
    folder, out, err, *arguments = json.loads(line)
    child = os.fork()
    if child == 0:
        for path, number in ((os.devnull, 0), (out, 1), (err, 2)):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
        sys.argv = ["handgrad", *arguments]
        warnings.simplefilter("error")
        os.chdir(folder)
        try:
            handgrad.cli.main()
        except SystemExit as end:
            sys.stdout.flush()
            os._exit(end.code)  # without taking down what was only inherited
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path], Command]]:
    """Start the server; give what runs the command line in a folder."""
    out, err = (tmp_path_factory.mktemp("server") / name for name in ("out", "err"))
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def command_in(folder: Path) -> Command:
        def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
            given = [str(argument) for argument in arguments]
            stdin.write(json.dumps([str(folder), str(out), str(err), *given]) + "\n")
            stdin.flush()
            done = subprocess.CompletedProcess(
                given,
                int(stdout.readline()),
                out.read_text(encoding="utf-8"),
                err.read_text(encoding="utf-8"),
            )
            assert "Traceback" not in done.stderr, done.stderr
            assert done.returncode == code, done.stdout + done.stderr
            return done

        return run

    with process:
        yield command_in
        stdin.close()


@pytest.fixture
def command(server: Callable[[Path], Command], tmp_path: Path) -> Command:
    """Run the command line in the test's folder."""
    return server(tmp_path)


@pytest.fixture(scope="session")
def at(server: Callable[[Path], Command], shop: Path) -> Command:
    """Run the command line in the shop's folder."""
    return server(shop)


@pytest.fixture(scope="session")
def runs(at: Command, shop: Path) -> Path:
    """Train in the shop's folder: `pets`, `prices`, `both`, and `coin`, a single output for two classes."""
    small = ["--hidden", "9", "--epochs", "3", "--batch-size", "16"]
    at("train", "pets.csv", "--target", "kept", *small, "--out", "runs/pets")
    at("train", "prices.csv", "--target", "price", *small, "--out", "runs/prices")
    at("train", "both.csv", "--target", "price,rent", *small, "--out", "runs/both")
    at("train", "pets.csv", "--target", "kept", "--loss", "BinaryCrossEntropy", *small, "--out", "runs/coin")
    return shop
