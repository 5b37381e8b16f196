"""What a compressed file may claim is limited; the task follows from the values of a target by a documented rule."""

from __future__ import annotations

import json
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import Linear, Network, RunError, SoftmaxCrossEntropy
from handgrad.data import Dataset, load, reading
from handgrad.data.cells import Cells
from handgrad.data.columns import Number
from handgrad.data.reading import FREE, LARGEST, RATIO, Request, check_claim, encode, infer_task, select
from handgrad.errors import DataError
from handgrad.files import parse_json
from handgrad.runs import Run, match_features


@pytest.mark.parametrize(
    ("size", "limit"), [(0, FREE), (FREE // RATIO, FREE), (3 * 2**20, RATIO * 3 * 2**20), (2**30, LARGEST)]
)
def test_a_claim_up_to_the_limit_is_allowed_and_one_byte_more_is_not(
    tmp_path: Path, size: int, limit: int
) -> None:
    path = tmp_path / "d.npz"
    with path.open("wb") as file:
        file.truncate(size)  # a file without contents, which takes no room on the disk
    check_claim(path, limit)
    with pytest.raises(DataError, match=f"claims {limit + 1} bytes of contents, and {limit} is the limit"):
        check_claim(path, limit + 1)


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (np.array(["a", "b", "c"]), "classification"),
        (np.array(["a", "b", "c"], object), "classification"),
        (np.array([True, False, True]), "classification"),
        (np.repeat(np.arange(20), 2), "classification"),
        (np.repeat(np.arange(21), 2), "regression"),
        (np.array([1, 2, 2, 1], np.uint8), "classification"),
        (np.array([1, 2, 3, 3]), "regression"),
        (np.array([0.0, 1.0, 0.0, 1.0]), "classification"),
        (np.array([0.0, 0.5, 0.0, 1.0]), "regression"),
        (np.zeros((6, 2), int), "regression"),
    ],
)
def test_the_task_is_inferred(values: NDArray, task: str) -> None:
    assert infer_task(values) == task


def test_classes_are_sorted_by_value_not_by_name() -> None:
    task, t, classes = encode("f", np.array([10, 2, 2, 10, -1, -1]))
    assert (task, classes) == ("classification", ("-1", "2", "10"))
    assert t.tolist() == [2, 1, 1, 2, 0, 0]
    assert t.dtype == np.int64


def test_whole_floats_may_be_classes_when_asked_for() -> None:
    task, t, classes = encode("f", np.array([3.0, 1.0, 3.0]), "classification")
    assert (task, t.tolist(), classes) == ("classification", [1, 0, 1], ("1", "3"))


def test_one_column_is_a_vector_and_several_stay() -> None:
    assert encode("f", np.array([[0], [1], [1], [0]]))[1].shape == (4,)
    _, t, classes = encode("f", np.arange(6).reshape(3, 2))
    assert (t.shape, t.dtype, classes) == ((3, 2), np.float64, ())


def test_whole_numbers_may_be_for_regression_when_asked_for() -> None:
    task, t, classes = encode("f", np.array([0, 1, 0, 1]), "regression")
    assert (task, t.dtype, classes) == ("regression", np.float64, ())


def test_values_that_do_not_suit_the_task_are_refused() -> None:
    with pytest.raises(DataError, match=r"f: the target is text.*\n  given  cat"):
        encode("f", np.array(["cat", "dog"]), "regression")
    with pytest.raises(DataError, match=r"f: the target of row 1 is 0\.5, and classes are"):
        encode("f", np.array([1, 0.5]), "classification")
    with pytest.raises(DataError, match="f: the target of row 0 is nan"):
        encode("f", np.array([np.nan, 0.5]), "classification")
    with pytest.raises(DataError, match=r"f: classification takes one target.*\(3, 2\)"):
        encode("f", np.arange(6).reshape(3, 2), "classification")


def test_whole_floats_beyond_64_bits_are_classes_of_their_own() -> None:
    _, t, classes = encode("f", np.array([2e19, 1e300, 3e19, 2e19]), "classification")
    assert t.tolist() == [0, 2, 1, 0]
    assert classes[:2] == (str(int(2e19)), str(int(3e19)))


def test_names_cost_no_more_than_their_number() -> None:
    """Of a hundred thousand columns: found, missing, twice, and in an error, which lists some of them."""
    names = [f"column {k}" for k in range(100_000)]
    started = time.process_time()
    path = Path("wide.csv")
    selection = select(path, names, Request("column 77777", drop=names[:50_000]))
    assert len(selection.features) == 49_999
    with pytest.raises(DataError, match="columns 1 and 100001 have the same name, 'column 0'"):
        select(path, [*names, "column 0"], Request("column 1"))
    with pytest.raises(DataError, match="no column 'zzz'") as caught:
        select(path, names, Request("zzz"))
    assert len(str(caught.value)) < 2000
    assert str(caught.value).endswith(" and 99,940 more")
    run = Run(
        Network(Linear(2, 2), loss=SoftmaxCrossEntropy()), "a", "classification", feature_names=tuple(names)
    )
    dataset = Dataset(
        "b", np.ones((2, 100_000)), np.array([0, 1]), "classification", ("x", "y"), tuple(names[::-1])
    )
    assert match_features(run, dataset).shape == (2, 100_000)
    with pytest.raises(RunError, match="the key 'column 99998' is there twice"):
        parse_json(json.dumps(dict.fromkeys(names)).replace("99999", "99998").encode(), dict, "")
    assert time.process_time() - started < 20


def test_more_columns_than_are_read_in_a_minute_are_refused_by_their_names(tmp_path: Path) -> None:
    """Unless few of them are to be read."""
    path = tmp_path / "wide.csv"
    rows = ([f"c{k}" for k in range(200_002)], "12" * 100_001, "34" * 100_001)
    path.write_text("\n".join(map(",".join, rows)) + "\n")
    with pytest.raises(DataError, match="200,001 columns to learn from, and a table may have 200,000"):
        load(path, target="c0")
    assert load(path, target="c0", task="regression", only=["c3", "c2"]).feature_names == ("c2", "c3")


@pytest.mark.parametrize("count", [1, 2, 3, 8, 101])
def test_a_missing_cell_is_the_median_of_numpy(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count)
    held = Number("x").fitted(Cells("x", np.append(values, np.nan), None, str))
    assert held == Number("x", missing=True, median=float(np.median(values)))


def test_an_archive_of_many_arrays_lists_some(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "many.npz", "w") as archive:
        for k in range(3000):
            archive.writestr(f"{k}.npy", b"")
    with pytest.raises(DataError, match="there is no array x or X") as caught:
        load(tmp_path / "many.npz")
    assert len(str(caught.value)) < 1000
    assert caught.value.given.endswith(" and 2,940 more")


@pytest.mark.parametrize(
    "values", [np.array([3, 1, 3, 0, 1, 9, 9]), np.array([*"baabcc"], object), np.array([0.5, 0.0])]
)
@pytest.mark.parametrize("many", [1, 3, 10])
def test_different_values_are_found_in_parts(
    values: NDArray, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MANY", many)
    np.testing.assert_array_equal(reading.different(values), np.unique(values))
    assert len(reading.different(values, most=1)) > 1
    if values.dtype.kind != "f":
        _, t, classes = encode("t", values, "classification")
        assert [classes[k] for k in t] == [*map(str, values)]
