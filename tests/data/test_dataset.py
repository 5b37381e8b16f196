"""A data set is checked when it is made, and every error names the place and the values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad import arrays
from handgrad.data import Dataset
from handgrad.errors import DataError


def classification(**changes: Any) -> Dataset:
    fields: dict[str, Any] = {
        "name": "pets",
        "x": np.arange(15.0).reshape(5, 3),
        "t": np.array([0, 1, 0, 1, 1]),
        "task": "classification",
        "classes": ("cat", "dog"),
        "feature_names": ("age", "weight", "height"),
    }
    return Dataset(**(fields | changes))


def regression(**changes: Any) -> Dataset:
    fields: dict[str, Any] = {
        "name": "houses",
        "x": np.arange(10.0).reshape(5, 2),
        "t": np.linspace(1, 2, 5),
        "task": "regression",
    }
    return Dataset(**(fields | changes))


def test_length_is_the_number_of_rows() -> None:
    assert len(classification()) == 5
    assert len(regression(t=np.ones((5, 4)))) == 5


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f2", "f4", ">f4", "f8"])
def test_real_dtypes_are_kept(dtype: str) -> None:
    x = np.ones((5, 3), dtype=dtype)
    assert classification(x=x).x is x


def test_features_may_have_more_than_two_axes() -> None:
    assert classification(x=np.ones((5, 3, 2)), feature_names=()).x.shape == (5, 3, 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.array([["a"]] * 5)}, "pets: x has dtype <U1, and real numbers"),
        ({"x": np.array([[None]] * 5)}, "pets: x has dtype object"),
        ({"x": np.ones((5, 3), complex)}, "pets: x has dtype complex128"),
        ({"x": np.ones(5)}, r"pets: x has shape \(5,\).*\n.*shape \(rows, features\)"),
        ({"x": np.ones((0, 3)), "t": np.ones(0, int)}, r"pets: x has shape \(0, 3\), and one row or more"),
        ({"x": np.ones((5, 0))}, r"pets: x has shape \(5, 0\)"),
        ({"t": np.array([0, 1, 0, 1])}, r"pets: x has 5 rows and t has shape \(4,\)"),
        ({"t": np.array(1)}, r"t has shape \(\)"),
        ({"feature_names": ("age", "weight")}, "pets: 2 feature names for 3 features"),
        ({"test_rows": 5}, "pets: test_rows is 5, and must be from 0 to 4"),
        ({"test_rows": -1}, "pets: test_rows is -1"),
        ({"t": np.array([0, 1, 0, 1, 1], np.int32)}, r"must be int64 of shape \(n,\), not int32"),
        (
            {"t": np.array([0, 1, 0, 1, 1]), "entries": ("a", "b")},
            r"must be int64 of shape x, not int64 of \(5,\)",
        ),
        ({"t": np.array([[0], [1], [0], [1], [1]])}, r"not int64 of \(5, 1\)"),
        ({"t": np.array([0, 1, 0, 1, 2])}, r"pets: t\[4\] is 2, and the 2 classes are numbered from 0"),
        ({"t": np.array([0, -1, 0, 1, 1])}, r"pets: t\[1\] is -1"),
        ({"t": np.array([1, 1, 1, 1, 1])}, "pets: there is one class, 'dog', and two or more"),
        ({"classes": ("cat", "cat")}, r"pets: class names must differ, and are cat, cat"),
    ],
)
def test_classification_errors(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        classification(**changes)


def test_rows_of_one_class_are_asked_for_a_second() -> None:
    """The target may well be the right one: of rows to evaluate, as of those to train on."""
    with pytest.raises(DataError) as error:
        classification(t=np.ones(5, int))
    assert error.value.fix == "check that the target is the right one, and give rows of a second class"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"t": np.arange(5)},
            r"houses: targets must be float32 or float64 of shape \(n,\) or \(n, k\), not int64",
        ),
        ({"t": np.ones((5, 1, 1))}, r"not float64 of \(5, 1, 1\)"),
        ({"t": np.ones((5, 0))}, r"not float64 of \(5, 0\)"),
        ({"classes": ("cat", "dog")}, r"houses: regression has no classes, and cat, dog are given"),
        ({"t": np.array([1, 2, np.inf, 4, 5])}, r"houses: t\[2\] is inf, and must be finite"),
        ({"t": np.array([[1, 2], [3, 4], [5, 6], [7, np.nan], [9, 9]])}, r"houses: t\[3, 1\] is nan"),
    ],
)
def test_regression_errors(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        regression(**changes)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_named_by_row_and_feature(value: float) -> None:
    x = np.ones((5, 3))
    x[3, 1] = value
    with pytest.raises(DataError, match=rf"pets: x\[3, 1\] \(feature 'weight'\) is {value}, and must be"):
        classification(x=x)


def test_a_value_that_is_not_finite_is_named_by_all_its_axes() -> None:
    x = np.ones((5, 3, 2), np.float32)
    x[4, 2, 1] = np.nan
    with pytest.raises(DataError, match=r"pets: x\[4, 2, 1\] is nan"):
        classification(x=x, feature_names=())


def test_rows_are_numbered_from_the_first_when_checked_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "CHUNK", 2 * 3 * 8)  # two rows of three float64
    x = np.ones((5, 3))
    x[4, 0] = np.nan
    with pytest.raises(DataError, match=r"x\[4, 0\] \(feature 'age'\)"):
        classification(x=x)


def test_a_row_larger_than_a_chunk_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "CHUNK", 1)
    x = np.ones((5, 3))
    x[2, 2] = np.nan
    with pytest.raises(DataError, match=r"x\[2, 2\]"):
        classification(x=x)
