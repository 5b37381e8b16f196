"""What the readers share: one error for files that cannot be read, one check of the sizes they claim."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from handgrad.errors import DataError

GIB = 2**30

# A compressed file may ask for this much memory at most. It is not allowed to ask for more than RATIO times
# its own size either, unless the whole is FREE or less: deflate packs zeros 1,000 times, so that 1 MB could
# ask for 1 GB, whereas measured data is rarely packed 50 times (MNIST: 5 times).
LARGEST = 16 * GIB
RATIO = 200
FREE = GIB // 4


@contextmanager
def reading(path: Path, *damage: type[Exception]) -> Iterator[None]:
    """Turn a missing, unreadable or damaged file into a ``DataError`` that names the file.

    Parameters
    ----------
    path
        The file that the block reads.
    damage
        What the format's own code raises for a damaged file, besides ``OSError``.

    Raises
    ------
    DataError
        When the block raises ``OSError`` or one of ``damage``.

    Examples
    --------
    >>> with reading(Path("missing.csv")):
    ...     open("missing.csv")
    Traceback (most recent call last):
    handgrad.errors.DataError: missing.csv: there is no such file
      fix    check the path; it is looked up from the current folder
    """
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
    """Check the sizes of an array's axes as a file's header gives them.

    Raises
    ------
    DataError
        When there is no axis, or an axis has no place: such an array is no data, and its other sizes are free
        to be absurd.

    Examples
    --------
    >>> check_shape(Path("x.npy"), (3, 2))
    """
    if not shape or min(shape) < 1:
        raise DataError(f"{path}: the array has shape {shape}, and one axis or more of 1 or more is needed")


def check_claim(path: Path, claimed: int) -> None:
    """Check what a compressed file claims to hold, before anything is allocated for it.

    Parameters
    ----------
    path
        The file, whose size on disk is compared with the claim.
    claimed
        The bytes its contents would take in memory.

    Raises
    ------
    DataError
        When the claim is above ``LARGEST``, or above ``FREE`` and ``RATIO`` times the file's size.

    Examples
    --------
    >>> check_claim(Path("small.npz"), 1000)
    """
    if claimed <= FREE:
        return
    limit = min(LARGEST, max(FREE, RATIO * path.stat().st_size))
    if claimed > limit:
        raise DataError(
            f"{path}: the file claims {claimed} bytes of contents, and {limit} is the limit for a compressed "
            f"file of {path.stat().st_size} bytes",
            fix="if the data is sound, store it unpacked, or as .npy, which is not read into memory at once",
        )
