"""How many batches run at once: all of an epoch, unless somebody wants to look in between."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from handgrad import Linear, MeanSquaredError, Network, train
from handgrad.engines import ENGINES, Epoch, ReferenceEngine
from handgrad.engines.reference import BoundReference
from handgrad.training.training_state import TrainingState

X = np.random.default_rng(0).normal(size=(23, 3))


class Store(nullcontext[None]):
    """Keeps nothing, and counts how often it is asked."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds, self.asked = seconds, 0

    def load(self, arrays: Mapping[str, Any]) -> TrainingState | None:  # noqa: D102 - as in CheckpointStore
        return None

    def is_due(self, *, between_epochs: bool) -> bool:  # noqa: D102 - as in CheckpointStore
        self.asked += 1
        return False

    def save(self, state: TrainingState) -> None:  # noqa: D102 - as in CheckpointStore
        assert len(state.history.epochs) == 2, "nothing was due before the end"


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({}, [6, 6]),
        (
            {"checkpoints": Store(60.0)},
            [1, 5, 6],
        ),  # one is measured, and the rest is done before it wants to look
        ({"checkpoints": Store(0.0)}, [1] * 12),
        ({"after_batch": lambda record: None}, [1] * 12),
    ],
    ids=["nobody", "a checkpoint now and then", "a checkpoint always", "every batch"],
)
def test_so_many_batches_run_at_once(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], parts: list[int]
) -> None:
    seen: list[int] = []

    class Watched(BoundReference):
        def epoch(self, epoch: Epoch, progress: Any = None) -> tuple[float, float]:
            seen.append(len(epoch))
            return super().epoch(epoch, progress)

    class Watching(ReferenceEngine):
        def bind(self, program: Any, arrays: Any) -> BoundReference:
            return Watched(program, arrays)

    monkeypatch.setitem(ENGINES, "watching", Watching)
    network = Network(Linear(3, 1), loss=MeanSquaredError())
    train(network, X, X[:, :1], epochs=2, batch_size=4, engine="watching", **settings)
    assert seen == parts
    if "checkpoints" in settings:
        assert settings["checkpoints"].asked == len(parts)
