"""What a compressed file may claim is limited; the task follows from the values of a target by a documented rule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad.data.reading import FREE, LARGEST, RATIO, check_claim, encode, infer_task
from handgrad.errors import DataError


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
