"""A folder of data, sound and damaged, and of runs trained on it, that the tests of the command line share."""

from __future__ import annotations

import csv
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ..conftest import Command, Server

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
    write_table(folder / "far.csv", [*FEATURES, "kept"], [*rows, [1, 2, 1e200, "no"]])
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


@pytest.fixture(scope="session")
def at(server: Server, shop: Path) -> Command:
    """Run the command line in the shop's folder."""
    return server.command_in(shop)


@pytest.fixture(scope="session")
def runs(at: Command, shop: Path) -> Path:
    """Train in the shop's folder: `pets`, `prices`, `both`, and `coin`, a single output for two classes."""
    small = ["--hidden", "9", "--epochs", "3", "--batch-size", "16"]
    at("train", "pets.csv", "--target", "kept", *small, "--out", "runs/pets")
    at("train", "prices.csv", "--target", "price", *small, "--out", "runs/prices")
    at("train", "both.csv", "--target", "price,rent", *small, "--out", "runs/both")
    at("train", "pets.csv", "--target", "kept", "--loss", "BinaryCrossEntropy", *small, "--out", "runs/coin")
    (shop / "rhyme.txt").write_text("ab\nba " * 40)
    sizes = ["--context", "4", "--width", "6", "--heads", "2", "--blocks", "1", "--epochs", "2"]
    at("train", "rhyme.txt", *sizes, "--out", "runs/text")
    return shop
