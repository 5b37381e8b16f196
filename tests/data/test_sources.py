"""One function loads every source, and a source it does not know is answered by what it does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from handgrad import data
from handgrad.data import load, load_features
from handgrad.errors import DataError


@pytest.mark.parametrize(
    ("name", "rows"), [("digits", 1797), ("moons", 1000), ("spirals", 1000), ("xor", 1000)]
)
def test_built_in_sets_are_loaded_by_name(name: str, rows: int) -> None:
    dataset = load(name)
    assert (dataset.name, len(dataset)) == (name, rows)


def test_mnist_is_loaded_by_name_and_from_a_folder(
    mnist_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDGRAD_MNIST", str(mnist_folder))
    assert np.array_equal(load("mnist").x, load(mnist_folder).x)
    for source in ("mnist", mnist_folder):
        with pytest.raises(DataError, match="mnist: task is 'regression', and this source is for classifi"):
            load(source, task="regression")


def test_files_are_read_by_their_suffix(tmp_path: Path) -> None:
    x, t = np.arange(8).reshape(4, 2), np.array([0.5, 1.5, 2.5, 3.5])
    (tmp_path / "d.csv").write_text("a,b,t\n0,1,0.5\n2,3,1.5\n4,5,2.5\n6,7,3.5\n")
    (tmp_path / "d.TSV").write_text("a\tb\tt\n0\t1\t0.5\n2\t3\t1.5\n4\t5\t2.5\n6\t7\t3.5\n")
    pq.write_table(pa.table({"a": x[:, 0], "b": x[:, 1], "t": t}), tmp_path / "d.parquet")
    np.savez(tmp_path / "d.npz", x=x, t=t)
    np.save(tmp_path / "d.npy", x)
    np.save(tmp_path / "t.npy", t)
    targets = {"d.csv": "t", "d.TSV": "t", "d.parquet": "t", "d.npz": None, "d.npy": str(tmp_path / "t.npy")}
    for name, target in targets.items():
        dataset = load(tmp_path / name, target=target)
        np.testing.assert_array_equal(dataset.x, x)
        np.testing.assert_array_equal(dataset.t, t)


def test_features_alone_are_read_by_suffix_too(tmp_path: Path) -> None:
    """Of a table the columns named, in that order; of the rest the whole array, images flat."""
    x = np.arange(6.0).reshape(3, 2)
    (tmp_path / "d.csv").write_text("b,y,a\n1,9,0\n3,9,2\n5,9,4\n")
    (tmp_path / "d.tsv").write_text("b\ty\ta\n1\t9\t0\n3\t9\t2\n5\t9\t4\n")
    pq.write_table(pa.table({"b": x[:, 1], "y": [9.0] * 3, "a": x[:, 0]}), tmp_path / "d.parquet")
    np.save(tmp_path / "d.npy", x)
    np.savez(tmp_path / "d.npz", x=x)
    (tmp_path / "images").write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, *range(6)]))
    for path in tmp_path.iterdir():
        np.testing.assert_array_equal(load_features(path, ["a", "b"]), x, path.name)


def test_features_that_no_network_can_take_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "none.npy", np.ones((0, 2)))
    with pytest.raises(DataError, match=r"none\.npy: the array has shape \(0, 2\)"):
        load_features(tmp_path / "none.npy")
    np.savez(tmp_path / "d.npz", x=np.array([[1, 2], [3, np.inf]]))
    with pytest.raises(DataError, match=r"d\.npz: x\[1, 1\] is inf, and must be finite"):
        load_features(tmp_path / "d.npz")


def test_the_task_is_handed_on(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a,t\n0,1\n2,0\n4,1\n6,0\n")
    np.savez(tmp_path / "d.npz", x=np.ones((4, 1)), t=np.array([1, 0, 1, 0]))
    assert load(tmp_path / "d.csv", target="t", task="regression").task == "regression"
    assert load(tmp_path / "d.npz", task="regression").task == "regression"


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("mnits", {}, r"mnits: there is no built-in data set and no folder.*\n.*did you mean 'mnist'\?"),
        ("q", {}, "choose from digits, mnist, moons, spirals, xor"),
        (Path("digits"), {}, "digits: there is no built-in data set and no folder of this name"),
        (
            "d.xlsx",
            {},
            r"d\.xlsx: files that end in \.xlsx are not read\n.*\.csv, \.npy, \.npz, \.parquet, \.tsv",
        ),
        ("gone.csv", {"target": "t"}, r"gone\.csv: there is no such file"),
        ("digits", {"target": "t"}, "digits: target is 't', and this source has its own target"),
        (
            "moons",
            {"task": "regression"},
            "moons: task is 'regression', and this source is for classification",
        ),
        ("d.npz", {"target": "t"}, r"d\.npz: target is 't', and this source has its own"),
    ],
)
def test_a_wrong_source_is_refused(source: str | Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(source, **options)


def test_the_public_names_are_sorted_and_there() -> None:
    assert data.__all__ == sorted(data.__all__)
    assert all(hasattr(data, name) for name in data.__all__)


def test_importing_data_imports_no_optional_package() -> None:
    code = "import handgrad.data, sys; print({'pyarrow', 'pooch', 'requests', 'sklearn'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
