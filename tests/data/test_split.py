"""A split uses every row once, keeps the classes' shares and a fixed test set, and is fixed by its seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handgrad.data import Dataset, Split, digits, load, split
from handgrad.data import dataset as data_set
from handgrad.data.dataset import divide
from handgrad.errors import DataError


def dataset(counts: list[int], test_rows: int = 0) -> Dataset:
    """Make a data set with so many rows of each class, in an order that is not that of the classes."""
    t = np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts))
    classes = tuple(f"c{number}" for number in range(len(counts)))
    return Dataset("d", np.ones((len(t), 2)), t, "classification", classes, test_rows=test_rows)


def regression(rows: int) -> Dataset:
    return Dataset("r", np.ones((rows, 2)), np.linspace(0, 1, rows), "regression")


def joined(parts: Split) -> list[int]:
    return np.sort(np.concatenate([parts.train, parts.validation, parts.test])).tolist()


@settings(deadline=None)
@given(
    counts=st.lists(st.integers(1, 30), min_size=2, max_size=5),
    test=st.floats(0, 0.4),
    validation=st.floats(0, 0.4),
    seed=st.integers(0, 5),
)
def test_every_row_is_in_one_part_and_classes_keep_their_shares(
    counts: list[int], test: float, validation: float, seed: int
) -> None:
    data = dataset([count + 2 for count in counts])
    parts = split(data, test=test, validation=validation, seed=seed)
    assert joined(parts) == list(range(len(data)))
    for rows in (parts.train, parts.validation, parts.test):
        assert rows.dtype == np.int64
        assert np.all(np.diff(rows) > 0)
        share = len(rows) / len(data)
        found = np.bincount(data.t[rows], minlength=len(counts))
        np.testing.assert_allclose(found, share * np.bincount(data.t), atol=2)


@pytest.mark.parametrize("many", [1, 7, 50])
def test_rows_are_sorted_by_class_in_parts_as_at_once(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data, rows = dataset([13, 0, 29, 8]), np.random.default_rng(1).permutation(50)[:41].astype(np.int32)
    monkeypatch.setattr(data_set, "MANY", many)
    found = data_set._by_class(rows, data.t, 4)
    np.testing.assert_array_equal(found, rows[np.argsort(data.t[rows], kind="stable")])
    assert found.dtype == np.int32


@pytest.mark.parametrize("counts", [[4, 30, 4], [3, 30], [30, 3]])
def test_the_only_row_of_a_part_is_of_the_largest_class(counts: list[int]) -> None:
    """Rows are taken from the middle of even pieces, so that neither the first class nor the last comes too often."""
    data = dataset(counts)
    parts = split(data, test=0.01, validation=0.01)
    assert data.t[[*parts.test, *parts.validation]].tolist() == [np.argmax(counts)] * 2


def test_the_digits_split_into_70_10_and_20_hundredths() -> None:
    data = digits()
    parts = split(data)
    assert [len(parts.train), len(parts.validation), len(parts.test)] == [1258, 180, 359]
    counts = np.bincount(data.t[parts.test])
    np.testing.assert_allclose(counts, 0.2 * np.bincount(data.t), atol=1)


def test_the_seed_fixes_the_split_and_another_seed_changes_it() -> None:
    data = dataset([20, 31])
    first, again, other = split(data, seed=3), split(data, seed=3), split(data, seed=4)
    assert np.array_equal(first.train, again.train)
    assert np.array_equal(first.test, again.test)
    assert not np.array_equal(first.test, other.test)


def test_rows_of_a_part_are_drawn_at_random_for_regression() -> None:
    parts = split(regression(101), test=0.3, validation=0.2, seed=1)
    assert joined(parts) == list(range(101))
    assert len(parts.test) == 30
    assert len(set(np.diff(parts.test).tolist())) > 3


def test_a_fixed_test_set_is_kept_and_the_test_fraction_not_used() -> None:
    data = dataset([30, 25], test_rows=15)
    parts = split(data, test=0.9, validation=0.25)
    assert parts.test.tolist() == list(range(40, 55))
    assert len(parts.validation) == 10
    assert max(parts.train.max(), parts.validation.max()) == 39


def test_fractions_of_zero_leave_all_rows_for_training() -> None:
    parts = split(regression(7), test=0, validation=0)
    assert parts.train.tolist() == list(range(7))
    assert parts.test.size == parts.validation.size == 0
    assert parts.test.dtype == parts.validation.dtype == np.int64


def test_a_fraction_above_zero_gives_one_row_at_least() -> None:
    parts = split(regression(3), test=0.01, validation=0.01)
    assert (len(parts.train), len(parts.validation), len(parts.test)) == (1, 1, 1)


@pytest.mark.parametrize("value", [-0.1, 1, 1.5, float("nan")])
@pytest.mark.parametrize("name", ["test", "validation"])
def test_a_fraction_out_of_range_is_refused(name: str, value: float) -> None:
    with pytest.raises(DataError, match=f"split: {name} is {value}, and must be 0 or more and below 1"):
        split(regression(9), **{name: value})


def test_a_split_without_training_rows_is_refused() -> None:
    with pytest.raises(DataError, match="r: no training row is left of 10, as test takes 6 and validation 4"):
        split(regression(10), test=0.6, validation=0.4)
    with pytest.raises(DataError, match="no training row is left of 2"):
        split(regression(2))


def test_trainings_divide_rows_as_split_does_in_half_the_memory() -> None:
    for data in (dataset([30, 40]), load("mackey-glass")):
        parts, small = split(data, seed=3), divide(data, 0.2, 0.1, 3)
        for name in ("train", "validation", "test"):
            assert getattr(small, name).dtype == np.int32
            np.testing.assert_array_equal(getattr(small, name), getattr(parts, name))
