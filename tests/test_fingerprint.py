"""What a run remembers of its data: the same numbers have one fingerprint, and what changed is said in a few words."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import arrays
from handgrad.arrays import Fingerprint, find_change

X = np.random.default_rng(0).normal(size=(7, 3))


@pytest.mark.parametrize(
    "block", [1, 50, 2**22], ids=["a row at a time", "two rows at a time", "all at once"]
)
@pytest.mark.parametrize(
    "array",
    [X, X.astype(np.float32), np.arange(5), np.zeros((4, 0)), np.zeros(0)],
    ids=lambda a: str(a.shape),
)
def test_a_fingerprint_is_the_digest_of_the_numbers(
    array: NDArray, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row by row, however many rows are hashed at a time; arrays without a number have one too."""
    monkeypatch.setattr(arrays, "BLOCK", block)
    expected = hashlib.sha256(array.tobytes()).hexdigest()
    assert Fingerprint.of(array) == Fingerprint(array.shape, array.dtype.name, expected)


def test_numbers_are_the_same_however_they_lie() -> None:
    """By columns, backwards in memory, or with the largest byte first."""
    for other in (np.asfortranarray(X), X[::-1].copy()[::-1], X.astype(">f8")):
        assert Fingerprint.of(other) == Fingerprint.of(X)


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [
        (X, X.copy(), ""),
        (X, X[:, :2], "x has 2 columns, and had 3 columns"),
        (X[:, 0], X, "x has 3 columns, and had single values"),
        (X[:4].reshape(2, 2, 3), X[:4], "x has 3 columns, and had 2 by 3 columns"),
        (X[:4], X[:5], "x has 5 rows, and had 4"),
        (X, X.astype(np.float32), "x holds float32, and held float64"),
        (X.astype(np.float32), X, "x holds float64, and held float32"),
        (X, X + np.array([0, 0, 1e-12]), "the numbers in x are others"),
        (X + np.array([0, 0, 1e-12]), X, "the numbers in x are others"),
    ],
    ids=[
        "nothing",
        "columns",
        "more than one",
        "pictures",
        "rows",
        "narrower",
        "wider",
        "numbers",
        "and back",
    ],
)
def test_what_changed_is_named(before: NDArray, now: NDArray, change: str) -> None:
    t = Fingerprint.of(np.arange(3))
    taken = {"t": t, "x": Fingerprint.of(before)}
    assert find_change(taken, {"x": Fingerprint.of(now), "t": t}) == change


def test_an_array_that_is_new_or_missing_is_named_first() -> None:
    """The first of them, in the order in which they were taken."""
    x, other = Fingerprint.of(X), Fingerprint.of(X[:3])
    assert find_change({"x": x}, {"x": other, "w": x, "v": x, "u": x}) == "w is new"
    assert find_change({"x": x, "w": x, "v": x}, {"x": other}) == "w is missing"


def test_a_fingerprint_without_a_shape_is_another() -> None:
    """As a file may have it that somebody edited."""
    edited = Fingerprint((), "float64", "")
    assert find_change({"t": edited}, {"t": Fingerprint.of(X[:, 0])}) == "t has 7 rows, and had none"


def test_names_and_their_order_have_a_fingerprint() -> None:
    before = {"columns": Fingerprint.of_names(["a", "b"])}
    assert find_change(before, {"columns": Fingerprint.of_names(["a", "b"])}) == ""
    for others in (["b", "a"], ["a"], ["ab", ""]):
        changed = find_change(before, {"columns": Fingerprint.of_names(others)})
        assert changed == "the names of the columns are others"
