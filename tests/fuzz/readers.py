"""Every reader of files, by name: sound files to begin with, and how a file is read."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from handgrad import Adam, History
from handgrad.checkpoints import read_checkpoint, read_past
from handgrad.configuration import read_configuration
from handgrad.data import load, load_features, read_idx
from handgrad.errors import HandgradError
from handgrad.runs import load_run, read_facts, read_snapshots

CORPUS = Path(__file__).parent / "corpus"
RUN = CORPUS / "run"
ESTIMATOR = CORPUS / "estimator"


@dataclass(frozen=True)
class Reader:
    """A reader of one kind of file.

    Attributes
    ----------
    file
        What such a file is called, and where the corpus begins: a path in the corpus.
    read
        Reads the file at a path.
    folder
        What has to lie beside it.
    """

    file: str
    read: Callable[[Path], Any]
    folder: Path | None = None

    def sound(self) -> list[bytes]:
        """Return the files to begin with: the sound one, and what was hard to read before."""
        first = CORPUS / self.file
        more = sorted(CORPUS.glob(f"hard/{first.name}-*"))
        return [path.read_bytes() for path in (first, *more)]

    def try_on(self, content: bytes) -> None:
        """Read a file with this content; only an error of handgrad's may come out."""
        folder = self._place()
        path = folder / Path(self.file).name
        path.write_bytes(content)
        with suppress(HandgradError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's about headers of its first versions
            self.read(path)

    @cache  # noqa: B019 - there are a dozen readers, which stay
    def _place(self) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="handgrad-fuzz-"))
        if self.folder is not None:
            shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return folder


def _table(path: Path) -> None:
    with suppress(HandgradError):
        load(path, target="y")
    load_features(path, ["b", "a"])


def _npy(path: Path) -> None:
    with suppress(HandgradError):
        np.asarray(load_features(path)).sum()
    load(path, target=str(path))


def _npz(path: Path) -> None:
    with suppress(HandgradError):
        load_features(path)
    load(path)


def _idx(path: Path) -> None:
    with suppress(HandgradError):
        load_features(path)
    read_idx(path)


def _history(path: Path) -> None:
    read_facts(path.parent)
    History.from_json_lines(path.read_bytes().decode(errors="replace"))


def _checkpoint(path: Path) -> None:
    read_past(path)
    read_checkpoint(path, _kept())


@cache
def _kept() -> dict[str, Any]:
    network = load_run(RUN).network
    slots = network.program(Adam()).slots
    return {**network.arrays, **{name: np.zeros(shape, "float32") for name, shape in slots.items()}}


def _estimator(path: Path) -> None:
    from handgrad.sklearn import MLPClassifier

    MLPClassifier.load(path.parent)


READERS = {
    "idx": Reader("d.idx", _idx),
    "packed idx": Reader("packed.idx.gz", _idx),
    "csv": Reader("d.csv", _table),
    "parquet": Reader("d.parquet", _table),
    "npy": Reader("d.npy", _npy),
    "npz": Reader("d.npz", _npz),
    "toml": Reader("run/config.toml", lambda path: read_configuration(path, {})),
    "run.json": Reader("run/run.json", lambda path: load_run(path.parent), RUN),
    "weights": Reader("run/weights.safetensors", lambda path: load_run(path.parent), RUN),
    "snapshots": Reader("run/snapshots.jsonl", lambda path: read_snapshots(path.parent), RUN),
    "history": Reader("run/history.jsonl", _history, RUN),
    "checkpoint": Reader("run/checkpoint.safetensors", _checkpoint, RUN),
    "estimator": Reader("estimator/estimator.json", _estimator, ESTIMATOR),
    "descent": Reader("estimator/descent.safetensors", _estimator, ESTIMATOR),
}
NEED_SCIKIT_LEARN = {"estimator", "descent"}
