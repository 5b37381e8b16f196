"""GPT-2's tokens: byte-pair encoding by its published files, vocab.json and merges.txt."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from handgrad.arguments import judged
from handgrad.errors import DataError

T = TypeVar("T")


class BytePairs:
    """Text to the numbers of GPT-2's tokens and back.

    Sennrich, Haddow, Birch, Neural Machine Translation of Rare Words with Subword Units, arXiv 1508.07909; on bytes, as in
    Radford et al., GPT-2 (2019).

    Parameters
    ----------
    tokens
        The number of each token, its bytes as the letters that vocab.json has for them.
    merges
        Pairs of tokens that become one, the first ones first.

    Examples
    --------
    >>> pairs = BytePairs({"a": 0, "b": 1, "Ġ": 2, "ab": 3, "Ġab": 4}, [("a", "b"), ("Ġ", "ab")])
    >>> pairs.encode("ab abb"), pairs.decode([3, 4, 1])
    ([3, 4, 1], 'ab abb')
    """

    def __init__(self, tokens: Mapping[str, int], merges: Sequence[tuple[str, str]]) -> None:
        self.tokens = dict(tokens)
        self.texts = {number: token for token, number in self.tokens.items()}
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}
        self.word = cache(self._word)

    @classmethod
    @judged
    def read(cls, folder: str | Path) -> BytePairs:
        """Read vocab.json and merges.txt of a folder; raises `DataError` when one is missing or damaged."""
        tokens = _parsed(Path(folder) / "vocab.json", _read_tokens)
        return cls(tokens, _parsed(Path(folder) / "merges.txt", lambda text: _read_merges(text, tokens)))

    def encode(self, text: str) -> list[int]:
        """Return the numbers of a text's tokens; raises `DataError` for a byte that is no token."""
        return [number for word in _pattern().findall(text) for number in self.word(word)]

    def decode(self, numbers: Iterable[int]) -> str:
        """Return the text of tokens; bytes that are no UTF-8 become �."""
        return "".join(self.pieces(numbers))

    def pieces(self, numbers: Iterable[int]) -> Iterator[str]:
        """Yield the text of one token after another, a letter of several bytes when the last of them is there."""
        decoder = getincrementaldecoder("utf-8")(errors="replace")
        for number in numbers:
            yield decoder.decode(bytes(_bytes()[letter] for letter in self.texts[number]))
        yield decoder.decode(b"", final=True)

    def _word(self, word: str) -> list[int]:
        """Merge the pair of the lowest rank, wherever it is, until no pair of the list is left."""
        letters = {byte: letter for letter, byte in _bytes().items()}
        parts = [letters[byte] for byte in word.encode()]
        while pairs := [pair for pair in pairwise(parts) if pair in self.ranks]:
            first, second = min(pairs, key=self.ranks.__getitem__)
            merged: list[str] = []
            for part in parts:
                if merged and (merged[-1], part) == (first, second):
                    merged[-1] += part
                else:
                    merged.append(part)
            parts = merged
        if missing := [part for part in parts if part not in self.tokens]:
            raise DataError(f"{word!r}: {missing[0]!r} is no token")
        return [self.tokens[part] for part in parts]


def _parsed(path: Path, read: Callable[[str], T]) -> T:
    try:
        return read(path.read_text(encoding="utf-8"))
    except OSError as error:
        fix = "give a folder with vocab.json and merges.txt"
        raise DataError(f"{path}: {error.strerror or error}", fix=fix) from None
    except (ValueError, AttributeError, RecursionError) as error:
        fix = "get the file again, as it was published beside the weights"
        raise DataError(f"{path}: damaged, or not GPT-2's: {error}", fix=fix) from None


def _read_tokens(text: str) -> dict[str, int]:
    tokens: dict[str, int] = json.loads(text)
    if not isinstance(tokens, dict) or not tokens:
        raise ValueError(f"it holds {text.strip():.20}, and tokens with their numbers are needed")
    names: dict[int, str] = {}
    for token, number in tokens.items():
        if type(number) is not int or number < 0:
            raise ValueError(f"the number of {token!r:.40} is {number!r:.20}, and a whole number is needed")
        if unknown := next((letter for letter in token if letter not in _bytes()), None):
            raise ValueError(f"the token {token!r:.40} has the letter {unknown!r}, which stands for no byte")
        if names.setdefault(number, token) != token:
            raise ValueError(f"{names[number]!r:.40} and {token!r:.40} have the same number, {number}")
    return tokens


def _read_merges(text: str, tokens: Mapping[str, int]) -> list[tuple[str, str]]:
    merges = []
    for number, line in enumerate(text.split("\n"), 1):
        if not (line := line.removesuffix("\r")) or line.startswith("#version:"):
            continue
        one, space, other = line.partition(" ")
        if not (one and space and other) or " " in other:
            raise ValueError(
                f"line {number} is {line!r:.40}, and two tokens with a space between them are needed"
            )
        if missing := next((part for part in (one, other, one + other) if part not in tokens), None):
            raise ValueError(f"line {number} has {missing!r:.40}, which is no token of vocab.json")
        merges.append((one, other))
    return merges


@cache
def _bytes() -> dict[str, int]:
    """Return the byte that each letter stands for: itself where it prints, else one from 256 on."""
    prints = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in prints]
    return {chr(byte): byte for byte in prints} | {chr(256 + k): byte for k, byte in enumerate(others)}


@cache
def _pattern() -> re.Pattern[str]:
    r"""Return what cuts a text into words, with \\p{L} and \\p{N} in the words of Python's own ``re``."""
    numbers = "".join(
        chr(k) for k in range(sys.maxunicode + 1) if unicodedata.category(chr(k)) in ("Nl", "No")
    )
    letter, number = rf"[^\W\d_{numbers}]", rf"[\d{numbers}]"
    rest = rf"(?:(?!{letter}|{number})\S)"
    return re.compile(rf"'s|'t|'re|'ve|'m|'ll|'d| ?{letter}+| ?{number}+| ?{rest}+|\s+(?!\S)|\s+")
