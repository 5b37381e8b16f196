"""Where a descent stands, as a file: `partial_fit` goes on from there as if the estimator had never been put away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from handgrad.errors import RunError
from handgrad.files import Tensors, check_arrays, parse_versioned, write_file
from handgrad.sklearn.building import build_optimiser
from handgrad.sklearn.descent import Position

Array = NDArray[Any]

NAME = "descent.safetensors"
FORMAT = 1
GENERATOR = "random/key"
"""The state of the generator that shuffles (MT19937), which whole numbers of 64 bits hold."""

SLOT = "slot/"


class _Generator(msgspec.Struct, forbid_unknown_fields=True):
    """What a generator keeps besides its key."""

    position: int
    has_normal: int
    normal: float


class _Head(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What the file says besides its arrays."""

    format: int
    rate: float
    seed: int
    step: int
    epoch: int
    waited: int
    generator: _Generator | None


def save_position(estimator: Any, folder: Path) -> None:
    """Write where the last descent of an estimator stands; nothing where its parameters would not go on from there."""
    from safetensors.numpy import save

    position: Position | None = estimator._position
    if position is None or {name: array.shape for name, array in position.slots.items()} != _shapes(
        estimator
    ):
        (folder / NAME).unlink(missing_ok=True)
        return
    arrays = {SLOT + name: np.ascontiguousarray(array) for name, array in position.slots.items()}
    state, generator = estimator._random_state.get_state(legacy=False), None
    if state["bit_generator"] == "MT19937":  # RandomState may be given another, which begins anew
        arrays[GENERATOR] = state["state"]["key"].astype(np.int64)
        generator = _Generator(state["state"]["pos"], state["has_gauss"], state["gauss"])
    head = _Head(
        format=FORMAT, rate=position.rate, seed=position.seed, step=position.step, epoch=position.epoch,
        waited=position.waited, generator=generator,
    )  # fmt: skip
    write_file(folder / NAME, save(arrays, metadata={"handgrad": msgspec.json.encode(head).decode()}))


def load_position(estimator: Any, folder: Path) -> None:
    """Give an estimator, which has its network already, where its last descent stood.

    Raises
    ------
    RunError
        When the file is damaged, or of another network or optimiser.
    """
    estimator._position, path = None, folder / NAME
    if not path.exists():
        return
    with Tensors.open(path) as tensors:
        head = parse_versioned(tensors.metadata.get("handgrad", "").encode(), _Head, str(path), FORMAT)
        shapes, dtype = _shapes(estimator), estimator.network_.dtype
        wanted = {SLOT + name: (shape, dtype) for name, shape in shapes.items()}
        if head.generator:
            wanted[GENERATOR] = ((624,), "int64")
        check_arrays(str(path), tensors.shapes(), wanted)
        slots = {name: tensors.read(SLOT + name) for name in shapes}
        key = tensors.read(GENERATOR) if head.generator else np.zeros(0)
    if head.generator:
        estimator._random_state = _generator(head.generator, key, str(path))
    counts = head.seed, head.step, head.epoch, head.waited
    if not 0 < head.rate < float("inf") or not all(0 <= count < 2**53 for count in counts):
        raise RunError(f"{path}: damaged, or not handgrad's: its numbers are none of a descent")
    estimator._position = Position(head.rate, *counts, slots)


def _shapes(estimator: Any) -> dict[str, tuple[int, ...]]:
    """Return the shapes of what the optimiser of an estimator's parameters keeps."""
    return dict(estimator.network_.program(build_optimiser(estimator.get_params())).slots)


def _generator(said: _Generator, key: Array, place: str) -> np.random.RandomState:
    if not (key.min() >= 0 and key.max() < 2**32 and 0 <= said.position <= 624):
        raise RunError(f"{place}: damaged, or not handgrad's: its random state is none of MT19937")
    state = np.random.RandomState()
    state.set_state(
        ("MT19937", key.astype(np.uint32), said.position, int(bool(said.has_normal)), said.normal)
    )
    return state
