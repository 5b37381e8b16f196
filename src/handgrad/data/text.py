"""Texts: characters as numbers, in windows that follow one another, each with the characters that come next as targets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from handgrad.arguments import Count, judged
from handgrad.arrays import Array
from handgrad.data.dataset import Dataset
from handgrad.data.reading import reading
from handgrad.errors import DataError

ALICE, SUFFIX, CONTEXT = Path(__file__).with_name("alice.txt"), ".txt", 128


@judged
def alice(context: Count = CONTEXT) -> Dataset:
    """Return Alice's Adventures in Wonderland by Lewis Carroll, without any download.

    Parameters
    ----------
    context
        T, the characters of a window.

    Returns
    -------
    Dataset
        As `read_text` returns it.

    Examples
    --------
    >>> data = alice()
    >>> data.x.shape, len(data.classes)
    ((1159, 128), 70)
    """
    return read_text(ALICE, context=context)


@judged
def read_text(
    path: str | os.PathLike[str], *, context: Count = CONTEXT, characters: Sequence[str] = ()
) -> Dataset:
    """Read a text in UTF-8, for a network that predicts each next character.

    Parameters
    ----------
    path
        The file.
    context
        T, the characters of a window.
    characters
        Those that there may be, in the order of their numbers; by default those of the text, sorted.

    Returns
    -------
    Dataset
        ``x`` of shape (n, T), the numbers of the characters, window after window; ``t`` of shape (n, T), the number of the
        character after each. ``classes`` and ``entries`` are the characters. Fewer than T at the end are left out.

    Raises
    ------
    DataError
        When the file is missing, not UTF-8 or shorter than a window, or has a character that there may not be.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "abba.txt")
    ...     _ = path.write_text("abbacab")
    ...     data = read_text(path, context=3)
    >>> data.classes, data.x.tolist(), data.t.tolist()
    (('a', 'b', 'c'), [[0, 1, 1], [0, 2, 0]], [[1, 1, 0], [2, 0, 1]])
    """
    path = Path(path)
    with reading(path):
        text = path.read_text(encoding="utf-8-sig")
    rows = (len(text) - 1) // context
    if rows < 1:
        raise DataError(
            f"{path}: {len(text)} characters, and a window of {context} with the one after it needs {context + 1}",
            fix="give a longer text, or a shorter context",
        )
    known = tuple(characters) or tuple(sorted(set(text)))
    codes = encode_text(text, known, str(path))
    dtype = np.min_scalar_type(len(known))
    x = codes[: rows * context].astype(dtype).reshape(rows, context)
    t = codes[1 : rows * context + 1].reshape(rows, context)
    return Dataset(path.name, x, t, "classification", known, entries=known, ordered=True)


def encode_text(text: str, characters: Sequence[str], place: str) -> Array:
    """Return the number of each character, int64; a `DataError` that begins with ``place`` names one that there is not."""
    numbers = {character: number for number, character in enumerate(characters)}
    unknown = next((k for k, character in enumerate(text) if character not in numbers), None)
    if unknown is not None:
        line = text.count("\n", 0, unknown) + 1
        raise DataError(
            f"{place}, line {line}: the character {text[unknown]!r} is not one that the network was trained on",
            given=f"it knows {''.join(filter(str.isprintable, characters))}",
            fix="leave the character out, or put another in its place",
        )
    return np.fromiter((numbers[character] for character in text), np.int64, len(text))


def is_text(source: str | os.PathLike[str]) -> bool:
    """Whether a source of data is a text: the built-in one, or a file that ends in .txt."""
    return source == "alice" or Path(source).suffix.lower() == SUFFIX
