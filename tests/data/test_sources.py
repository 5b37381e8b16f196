"""One function loads every source, and a source it does not know is answered by what it does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad.data import load, load_features
from handgrad.data.sources import BY_SUFFIX
from handgrad.errors import DataError

from .formats import WRITE


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


def test_every_format_is_tested() -> None:
    missing = BY_SUFFIX.keys() - WRITE.keys()
    assert not missing, f"tests/data/formats.py: WRITE has no row for {missing}"


@pytest.mark.parametrize("suffix", WRITE)
def test_a_file_is_read_by_its_suffix(tmp_path: Path, suffix: str) -> None:
    """With its targets; without them, of a table the columns that are named, in that order; in any case of letters."""
    x, t = np.arange(8.0).reshape(4, 2), np.array([0.5, 1.5, 2.5, 3.5])
    path = tmp_path / f"d{suffix}"
    target = WRITE[suffix](path, x, t)
    dataset = load(path, target=target)
    np.testing.assert_array_equal(dataset.x, x)
    np.testing.assert_array_equal(dataset.t, t)
    assert (dataset.name, dataset.task) == (path.name, "regression")
    table = BY_SUFFIX[suffix].target == "column"
    assert dataset.feature_names == (("b", "a") if table else ())
    upper = path.rename(path.with_suffix(suffix.upper()))
    features = load_features(upper, ["a", "b"] if table else ())
    np.testing.assert_array_equal(features, x[:, ::-1] if table else x)


def test_images_are_features_flat(tmp_path: Path) -> None:
    path = tmp_path / "images"
    path.write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, *range(6)]))
    np.testing.assert_array_equal(load_features(path), np.arange(6).reshape(3, 2))


def test_features_that_no_network_can_take_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "none.npy", np.ones((0, 2)))
    with pytest.raises(DataError, match=r"none\.npy: the array has shape \(0, 2\)"):
        load_features(tmp_path / "none.npy")
    np.savez(tmp_path / "d.npz", x=np.array([[1, 2], [3, np.inf]]))
    with pytest.raises(DataError, match=r"d\.npz: x\[1, 1\] is inf, and must be finite"):
        load_features(tmp_path / "d.npz")


@pytest.mark.parametrize("suffix", WRITE)
def test_the_task_is_handed_on(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"d{suffix}"
    target = WRITE[suffix](path, np.ones((4, 2)), np.array([1, 0, 1, 0]))
    assert load(path, target=target).task == "classification"
    assert load(path, target=target, task="regression").task == "regression"


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("mnits", {}, r"mnits: there is no built-in data set and no folder.*\n.*did you mean 'mnist'\?"),
        ("q", {}, "choose from alice, digits, mackey-glass, mnist, moons, spirals, xor"),
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


def test_importing_data_imports_no_optional_package() -> None:
    code = "import handgrad.data, sys; print({'pyarrow', 'pooch', 'requests', 'sklearn'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("folder", ["images/a", "images", "tables"])
def test_a_folder_that_cannot_be_read_is_named(
    tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By name, as the tests may run as root, who can read all; a class would be missing otherwise."""
    for name in ("images/a/1.png", "images/b/2.png", "tables/1.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    readable = Path.iterdir

    def iterdir(path: Path) -> Any:
        if path == tmp_path / folder:
            raise PermissionError(13, "Permission denied", str(path))
        return readable(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    with pytest.raises(DataError, match=rf"{folder}: the file cannot be read: Permission denied"):
        load(tmp_path / folder.split("/")[0])
