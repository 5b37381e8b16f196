"""Get the MNIST files: from the first mirror that has them intact, once, into the user's cache folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from handgrad.errors import DataError, need

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


def fetch_mnist() -> Path:
    """Return the folder of the four MNIST files, downloading those that the user's cache folder lacks."""
    why = "mnist: HANDGRAD_MNIST names no folder with the four files, and downloading them"
    pooch = need("pooch", why, "download")
    return fetch(SHA256, MIRRORS, Path(pooch.os_cache("handgrad"), "mnist"))


def fetch(hashes: Mapping[str, str], mirrors: Sequence[str], folder: Path) -> Path:
    """Download the files that ``folder`` lacks, each from the first mirror that has it intact, and return ``folder``.

    A file is written under a temporary name and renamed when its SHA-256 is right.
    """
    import pooch

    for name, sha256 in hashes.items():
        failures = []
        for mirror in mirrors:
            try:
                pooch.retrieve(mirror + name, known_hash=f"sha256:{sha256}", fname=name, path=folder)
            except (OSError, ValueError) as error:  # the network or the disk; a wrong SHA-256
                failures.append(f"{mirror}: {type(error).__name__}: {error!s:.90}")
            else:
                break
        else:
            raise DataError(
                f"{name}: no mirror gave the file",
                given="\n         ".join(failures),
                fix=f"get {', '.join(SHA256)} by hand, and set HANDGRAD_MNIST to their folder",
            )
    return folder
