"""How a sound file is damaged: bits are turned, parts are cut out, doubled, exchanged, or numbers put in."""

from __future__ import annotations

import random

HARD = [
    b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7, b"NaN", b"-1", b"1e999", b"Infinity", b"null", b"9" * 40,
    b"[" * 3000, b'{"a":' * 3000, b'"', b"\\", b"../../x", b"/etc/passwd", b"\xef\xbb\xbf", b"\r\n", b",,", b"\xc3\x28",
]  # fmt: skip
"""What readers stumble over."""


def damage(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """Return a file with a few places damaged; some parts come from ``others``."""
    for _ in range(chance.choice([1, 1, 1, 2, 3, 8])):
        content = chance.choice(KINDS)(content, others, chance)
    return content


def _span(content: bytes, chance: random.Random) -> tuple[int, int]:
    start = chance.randint(0, len(content))
    return start, min(len(content), start + chance.choice([0, 1, 2, 4, 8, 64, 10**9]))


def _flip(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    if not content:
        return content
    at = chance.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]


def _cut(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    start, end = _span(content, chance)
    return content[:start] + content[end:]


def _splice(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    start, end = _span(content, chance)
    other = chance.choice(others)
    first, last = _span(other, chance)
    return content[:start] + other[first:last] + content[end:]


def _grow(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    start, end = _span(content, chance)
    return content[:end] + content[start:end] * chance.choice([1, 2, 30]) + content[end:]


def _put(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    start, end = _span(content, chance)
    return content[:start] + chance.choice(HARD) + content[end:]


KINDS = [_flip, _flip, _cut, _splice, _grow, _put]
