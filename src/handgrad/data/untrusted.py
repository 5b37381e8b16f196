"""Untrusted files: one error for those that cannot be read, limits on the sizes that they claim."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from handgrad.errors import DataError

# A compressed file may ask for LARGEST bytes of memory at most, and above FREE for RATIO times its own size: deflate
# packs zeros 1,000 times, so that 1 MB could ask for 1 GB, whereas measured data is rarely packed 50 times (MNIST: 5).
LARGEST = 16 * 2**30
RATIO = 200
FREE = 2**28


@contextmanager
def reading(path: Path, *damage: type[Exception]) -> Iterator[None]:
    """Turn ``OSError``, and what the format's own code raises for damage, into a ``DataError`` that names the file."""
    unreadable: tuple[type[Exception], ...] = (OSError, *damage)
    try:
        yield
    except FileNotFoundError as error:
        fix = "check the path; it is looked up from the current folder"
        raise DataError(f"{path}: there is no such file", fix=fix) from error
    except unreadable as error:
        problem = getattr(error, "strerror", None) or error
        raise DataError(f"{path}: the file cannot be read: {problem}") from error


def check_shape(path: Path, shape: tuple[int, ...]) -> None:
    """Refuse an array without entries: it is no data, and its other sizes are free to be absurd."""
    if not shape or min(shape) < 1:
        raise DataError(f"{path}: the array has shape {shape}, and one axis or more of 1 or more is needed")


def check_claim(path: Path, claimed: int) -> None:
    """Check the bytes that a compressed file claims to hold, before anything is allocated for it."""
    if claimed <= FREE:
        return
    limit = min(LARGEST, max(FREE, RATIO * path.stat().st_size))
    if claimed > limit:
        raise DataError(
            f"{path}: the file claims {claimed} bytes of contents, and {limit} is the limit for a compressed "
            f"file of {path.stat().st_size} bytes",
            fix="if the data is sound, store it unpacked, or as .npy, which is not read into memory at once",
        )
