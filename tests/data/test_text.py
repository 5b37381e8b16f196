"""Texts: windows, characters, parts without a leak, and what is no text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from handgrad.data import Dataset, alice, load, read_text, split
from handgrad.errors import DataError

TEXT = "the cat sat on the mat, and the rat ate the cat's hat.\n" * 3


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "cat.txt"
    path.write_bytes(("\ufeff" + TEXT.replace("\n", "\r\n")).encode())
    return path


def texts(data: Dataset, rows: np.ndarray) -> str:
    return "".join(data.classes[number] for number in rows.ravel())


def test_windows_follow_one_another_and_targets_are_what_comes_next(path: Path) -> None:
    """A byte-order mark is no character, and lines end as everywhere; what fills no window is left out."""
    data = read_text(path, context=7)
    n = (len(TEXT) - 1) // 7
    assert data.x.shape == data.t.shape == (n, 7)
    assert data.x.dtype == np.uint8
    assert texts(data, data.x) == TEXT[: 7 * n]
    assert texts(data, data.t) == TEXT[1 : 7 * n + 1]
    assert data.classes == data.entries == tuple(sorted(set(TEXT)))
    assert load(path, context=7).t.tolist() == data.t.tolist()


def test_no_character_that_is_predicted_for_a_score_is_trained_on(path: Path) -> None:
    """Each part is one piece of the text: first what trains, then what validates, then what tests."""
    data = read_text(path, context=5)
    parts = split(data, test=0.2, validation=0.1, seed=3)
    rows = np.concatenate([parts.train, parts.validation, parts.test])
    assert rows.tolist() == list(range(len(data)))
    assert [len(part) for part in (parts.train, parts.validation, parts.test)] == [23, 3, 6]
    assert len(split(data, test=0, validation=0).train) == len(data)


def test_characters_are_those_of_another_text_where_they_are_given(path: Path) -> None:
    known = sorted(set(TEXT + "xyz"))
    data = read_text(path, context=9, characters=known)
    assert data.classes == tuple(known)
    assert texts(data, data.x[:2]) == TEXT[:18]
    with pytest.raises(DataError, match=r"cat.txt, line 1: the character 'h' is not one") as caught:
        read_text(path, context=9, characters=["t", "e", " "])
    assert caught.value.given == "it knows te "


def test_a_text_that_fills_no_window_is_named(path: Path) -> None:
    assert read_text(path, context=len(TEXT) - 1).x.shape == (1, len(TEXT) - 1)
    with pytest.raises(DataError, match=f"{len(TEXT)} characters, and a window of {len(TEXT)}"):
        read_text(path, context=len(TEXT))


def test_alice_comes_with_the_package() -> None:
    data = load("alice", context=100)
    assert texts(data, data.x).lstrip().startswith("ALICE'S ADVENTURES IN WONDERLAND")
    assert "`we're all mad here." in texts(data, alice(100).x)
