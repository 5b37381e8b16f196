"""The handwritten digits that come with the package; see digits.txt for where they are from."""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from handgrad.data.dataset import Dataset


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
