"""Images as (n, H, W, C): a folder with a folder of images for each class, and the binary files of CIFAR."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from handgrad.arguments import judged
from handgrad.arrays import Array
from handgrad.data.dataset import Dataset
from handgrad.data.reading import reading
from handgrad.errors import DataError

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".pgm", ".ppm"}
SIDE = 32  # of CIFAR's images
CIFAR: dict[int, tuple[Sequence[str], str, str, int]] = {
    10: ([f"data_batch_{k}.bin" for k in range(1, 6)], "test_batch.bin", "batches.meta.txt", 1),
    100: (["train.bin"], "test.bin", "fine_label_names.txt", 2),
}
"""By how many classes: the files to train on, those to test on, the names of the classes, the labels of an image."""


@judged
def read_images(folder: str | os.PathLike[str]) -> Dataset:
    """Read a folder with a folder of images for each class; or with train, and perhaps test, that have such folders.

    Parameters
    ----------
    folder
        Of folders; all images have one size. Files that are no images are passed over.

    Returns
    -------
    Dataset
        ``x`` uint8 of shape (n, H, W, C), with C = 1 where all images are grey and 3 otherwise; 16 bits of grey become 8.
        ``t`` the numbers of the folders, by name. Images in ``test`` are the fixed test set.

    Raises
    ------
    DataError
        When a folder is missing, an image is damaged or has another size, there is none, or there is a folder val.
    """
    folder = Path(folder)
    parts = _parts(folder)
    if others := [path for path in (folder / "val", folder / "valid") if parts != [folder] and path.is_dir()]:
        raise DataError(
            f"{others[0]}: would not be read, as validation rows are drawn from {parts[0]}",
            fix=f"move its images into {parts[0]}",
        )
    classes = sorted({path.name for part in parts for path in _folders(part)})
    paths = [[(k, path) for k, name in enumerate(classes) for path in _images(part / name)] for part in parts]
    flat = [pair for part in paths for pair in part]
    if not flat:
        raise DataError(
            f"{folder}: there are no images", fix="make a folder for each class, with its images in it"
        )
    x = stack_images([path for _, path in flat])
    t = np.array([k for k, _ in flat], np.int64)
    tested = len(paths[1]) if len(paths) > 1 else 0
    return Dataset(folder.name, x, t, "classification", tuple(classes), test_rows=tested)


def _parts(folder: Path) -> list[Path]:
    """Return the folders that have a folder for each class: train, and test if it is there, or the folder itself."""
    parts = [path for path in (folder / "train", folder / "test") if path.is_dir() and _holds_images(path)]
    return parts if folder / "train" in parts else [folder]


def _holds_images(folder: Path) -> bool:
    return any(map(_images, _folders(folder)))


def _folders(folder: Path) -> list[Path]:
    return [path for path in _contents(folder) if path.is_dir()]


def _contents(folder: Path) -> list[Path]:
    with reading(folder):
        return sorted(folder.iterdir())


def stack_images(paths: Sequence[Path]) -> Array:
    """Return images of one size as bytes (n, H, W, C), C = 1 where all are grey."""
    images = [_read(path) for path in paths]
    for path, image in zip(paths, images, strict=True):
        if image.shape[:2] != images[0].shape[:2]:
            one, other = (f"{each.shape[1]} × {each.shape[0]}" for each in (images[0], image))
            raise DataError(
                f"{path}: {other} pixels, and {paths[0]} has {one}", fix="bring all images to one size"
            )
    colours = max(image.shape[2] for image in images)
    return np.stack([np.broadcast_to(image, (*image.shape[:2], colours)) for image in images])


def images_in(path: Path) -> list[Path]:
    """Return the images of a folder, by name, or the image that it is itself."""
    return [path] if path.suffix.lower() in SUFFIXES else _images(path)


def _images(folder: Path) -> list[Path]:
    contents = _contents(folder) if folder.is_dir() else []
    return [path for path in contents if path.suffix.lower() in SUFFIXES]


def _read(path: Path) -> Array:
    """Return an image (H, W, C), grey or of three colours."""
    from PIL import Image, UnidentifiedImageError

    with (
        reading(path, UnidentifiedImageError, SyntaxError, ValueError, Image.DecompressionBombError),
        Image.open(path) as image,
    ):
        if image.mode.startswith("I;16"):
            return (np.asarray(image) >> 8).astype(np.uint8)[
                ..., None
            ]  # Pillow would make all above 255 white
        if image.mode in ("I", "F"):
            raise DataError(
                f"{path}: the mode is {image.mode!r}, which has no largest value",
                fix="save the image with 8 or 16 bits a colour",
            )
        grey = image.mode in ("1", "L", "LA")
        return np.asarray(image.convert("L" if grey else "RGB")).reshape(image.height, image.width, -1)


@judged
def read_cifar(folder: str | os.PathLike[str]) -> Dataset:
    """Read CIFAR-10 or CIFAR-100 (its fine labels) from a folder with the binary files.

    Returns
    -------
    Dataset
        ``x`` uint8 of shape (60000, 32, 32, 3), the test batch last, as the fixed test set.

    Raises
    ------
    DataError
        When a file is missing or has another length.
    """
    folder = Path(folder)
    count = 100 if (folder / CIFAR[100][1]).exists() else 10
    training, testing, names, labels = CIFAR[count]
    parts = [_records(folder / name, labels) for name in (*training, testing)]
    records = np.concatenate(parts)
    x = records[:, labels:].reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)  # there a plane for each colour
    classes = tuple(map(str, range(count)))
    if (folder / names).exists():
        classes = tuple((folder / names).read_text(encoding="utf-8").split())
    return Dataset(
        folder.name, np.ascontiguousarray(x), records[:, labels - 1].astype(np.int64), "classification", classes,
        test_rows=len(parts[-1]),
    )  # fmt: skip


def _records(path: Path, labels: int) -> Array:
    length = labels + 3 * SIDE**2
    with reading(path):
        content = np.fromfile(path, np.uint8)
    if not len(content) or len(content) % length:
        raise DataError(
            f"{path}: {len(content)} bytes, and images of {length} bytes each are needed",
            fix="get the file again",
        )
    return content.reshape(-1, length)


def is_cifar(folder: Path) -> bool:
    """Whether a folder has CIFAR's binary files."""
    return any((folder / testing).exists() for _, testing, _, _ in CIFAR.values())


def holds_images(folder: Path) -> bool:
    """Whether `read_images` finds an image there."""
    return folder.is_dir() and any(map(_holds_images, _parts(folder)))
