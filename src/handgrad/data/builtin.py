"""Sets known by name: a text, handwritten digits, points of the plane that no straight line divides, and MNIST, downloaded.

digits.txt states where the digits are from.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from handgrad.arguments import Seed, judged
from handgrad.arrays import Array
from handgrad.data.dataset import Dataset
from handgrad.data.idx import read_idx, read_idx_header, read_idx_into
from handgrad.data.series import mackey_glass
from handgrad.data.text import alice
from handgrad.errors import DataError, need

TURNS = 1.5  # of each spiral's arm

MNIST_VARIABLE = "HANDGRAD_MNIST"
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
SHA256 = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}


def digits() -> Dataset:
    """Return 1,797 handwritten digits of 8 × 8 pixels, without any download.

    Returns
    -------
    Dataset
        ``x`` uint8 of shape (1797, 64), rows of pixels from 0 to 16; ``t`` of shape (1797,), classes 0 to 9.

    Examples
    --------
    >>> data = digits()
    >>> data.x.shape, data.x.dtype, len(data.classes)
    ((1797, 64), dtype('uint8'), 10)
    """
    with (files(__package__) / "digits.npz").open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        x, t = arrays["x"], arrays["t"]
    return Dataset("digits", x, t.astype(np.int64), "classification", tuple("0123456789"))


@judged
def moons(rows: int = 1000, noise: float = 0.1, seed: Seed = 0) -> Dataset:
    """Two half circles, each reaching into the other.

    Parameters
    ----------
    rows
        How many points, 2 or more, shared equally between the classes.
    noise
        Standard deviation of the normal noise added to each coordinate.
    seed
        The same seed gives the same points.

    Returns
    -------
    Dataset
        ``x`` float64 of shape (rows, 2), ``t`` of shape (rows,) with two classes.

    Raises
    ------
    DataError
        When ``rows`` is too small, or ``noise`` is negative or not finite.

    Examples
    --------
    >>> moons(rows=6).x.shape
    (6, 2)
    """

    def points(rng: np.random.Generator, t: Array) -> Array:
        angle = np.pi * rng.random(rows)
        upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return np.where(t[:, None] == 0, upper, [1.0, 0.5] - upper)

    return _in_the_plane("moons", points, rows, 2, noise, seed)


@judged
def spirals(rows: int = 1000, noise: float = 0.03, seed: Seed = 0, arms: int = 2) -> Dataset:
    """Arms that wind around each other in the unit circle, one class each.

    Parameters
    ----------
    rows, noise, seed
        As for `moons`; a row or more for each arm.
    arms
        How many classes, 2 or more.

    Returns
    -------
    Dataset
        ``x`` float64 of shape (rows, 2), ``t`` of shape (rows,) with a class for each arm.

    Examples
    --------
    >>> spirals(rows=6, arms=3).t
    array([0, 1, 2, 0, 1, 2])
    """

    def points(rng: np.random.Generator, t: Array) -> Array:
        radius = np.sqrt(rng.random(rows))  # the root spreads the points evenly over the circle's area
        angle = 2 * np.pi * (TURNS * radius + t / arms)
        return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)

    return _in_the_plane("spirals", points, rows, arms, noise, seed)


@judged
def xor(rows: int = 1000, noise: float = 0.1, seed: Seed = 0) -> Dataset:
    """Four squares around the origin: class 1 where the signs of the coordinates differ, before noise.

    Parameters
    ----------
    rows, noise, seed
        As for `moons`.

    Returns
    -------
    Dataset
        ``x`` float64 of shape (rows, 2), ``t`` of shape (rows,) with two classes.

    Examples
    --------
    >>> data = xor(rows=4, noise=0)
    >>> (np.sign(data.x).prod(axis=1) < 0).astype(int), data.t
    (array([0, 1, 0, 1]), array([0, 1, 0, 1]))
    """

    def points(rng: np.random.Generator, t: Array) -> Array:
        x = rng.uniform(-1, 1, (rows, 2))
        x[:, 1] = np.copysign(x[:, 1], np.where(t == 0, x[:, 0], -x[:, 0]))
        return x

    return _in_the_plane("xor", points, rows, 2, noise, seed)


def _in_the_plane(
    name: str, points: Callable[[np.random.Generator, Array], Array], rows: int, classes: int,
    noise: float, seed: int,
) -> Dataset:  # fmt: skip
    if classes < 2:
        raise DataError(f"{name}: arms is {classes}, and must be 2 or more")
    if rows < classes:
        raise DataError(f"{name}: rows is {rows}, and must be {classes} or more, one for each class")
    if not 0 <= noise < np.inf:
        raise DataError(f"{name}: noise is {noise}, and must be 0 or more and finite")
    rng, t = np.random.default_rng(seed), np.arange(rows) % classes
    x = points(rng, t)
    x = x + noise * rng.standard_normal(x.shape)
    names = tuple(map(str, range(classes)))
    return Dataset(name, x, t, "classification", names, feature_names=("x1", "x2"))


@judged
def mnist(folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Read the MNIST digits, or a set in the same four files, such as Fashion-MNIST.

    Parameters
    ----------
    folder
        Where the four files are, packed with gzip or not. Without it, the folder that the environment
        variable ``HANDGRAD_MNIST`` names; without that, the download cache, which is filled when it is empty.

    Returns
    -------
    Dataset
        ``x`` uint8 of shape (70000, 784), ``t`` of shape (70000,), classes 0 to 9. The last 10,000 rows are
        the fixed test set.

    Raises
    ------
    DataError
        When a file is missing or wrong, or nothing can be downloaded.
    MissingPackageError
        When a download is needed, and pooch is not installed.

    Examples
    --------
    >>> mnist("no-such-folder")
    Traceback (most recent call last):
    handgrad.errors.DataError: no-such-folder: there is no file train-images-idx3-ubyte
      fix    put the four MNIST files there, or name their folder in HANDGRAD_MNIST
    """
    place = Path(folder or os.environ.get(MNIST_VARIABLE) or fetch_mnist())
    x, t, test_rows = read_mnist(place)
    return Dataset("mnist", x, t, "classification", tuple("0123456789"), test_rows=test_rows)


def read_mnist(folder: Path) -> tuple[Array, NDArray[np.int64], int]:
    """Read four IDX files: images (n, pixels), all in one array, labels (n,), and how many of the last are for testing."""
    images, labels = [], []
    for part in ("train", "t10k"):
        path, shape = _find(folder, f"{part}-images", rank=3)
        images.append((path, shape))
        labels.append(read_idx(_find(folder, f"{part}-labels", rank=1)[0]))
        if shape[0] != len(labels[-1]):
            raise DataError(
                f"{folder}: {part} has {shape[0]} images and {len(labels[-1])} labels; they must agree"
            )
    (train, (rows, *pixels)), (test, (test_rows, *test_pixels)) = images
    if pixels != test_pixels:
        raise DataError(
            f"{folder}: train has images of {tuple(pixels)} pixels and t10k of {tuple(test_pixels)}; they must agree"
        )
    x = np.empty((rows + test_rows, math.prod(pixels)), np.uint8)
    read_idx_into(x[:rows], train)
    read_idx_into(x[rows:], test)
    return x, np.concatenate(labels).astype(np.int64), test_rows


def _find(folder: Path, stem: str, rank: int) -> tuple[Path, tuple[int, ...]]:
    """Find a file of bytes, and read its shape."""
    names = [f"{stem}{mark}idx{rank}-ubyte{suffix}" for mark in "-." for suffix in ("", ".gz")]
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        raise DataError(
            f"{folder}: there is no file {names[0]}",
            fix=f"put the four MNIST files there, or name their folder in {MNIST_VARIABLE}",
        )
    dtype, shape = read_idx_header(path)
    if dtype != np.uint8 or len(shape) != rank:
        raise DataError(f"{path}: bytes of rank {rank} expected, {dtype.name} of rank {len(shape)} found")
    return path, shape


def fetch_mnist() -> Path:
    """Return the folder of the four MNIST files, downloading those that the user's cache folder lacks."""
    why = (
        "mnist: its four files do not come with handgrad, no environment variable HANDGRAD_MNIST names a folder that has "
        "them, and downloading them"
    )
    pooch = need("pooch", why, "download")
    return fetch(SHA256, MIRRORS, Path(pooch.os_cache("handgrad"), "mnist"))


def fetch(hashes: Mapping[str, str], mirrors: Sequence[str], folder: Path) -> Path:
    """Download the files that ``folder`` lacks, each from the first mirror that has it intact, and return ``folder``."""
    import pooch

    for name, sha256 in hashes.items():
        failures = []
        for mirror in mirrors:
            try:
                pooch.retrieve(mirror + name, known_hash=f"sha256:{sha256}", fname=name, path=folder)
            except (OSError, ValueError) as error:  # the network or the disk; a wrong SHA-256
                failures.append(f"{mirror}: {type(error).__name__}: {error!s:.60}…")
            else:
                break
        else:
            raise DataError(
                f"{name}: no mirror gave the file",
                given="; ".join(failures),
                fix=f"get {', '.join(SHA256)} by hand, and set HANDGRAD_MNIST to their folder",
            )
    return folder


BUILT_IN: dict[str, Callable[[], Dataset]] = {
    "alice": alice,
    "digits": digits,
    "mackey-glass": mackey_glass,
    "mnist": mnist,
    "moons": moons,
    "spirals": spirals,
    "xor": xor,
}
