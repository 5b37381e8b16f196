"""What every layer, loss, optimiser and schedule is: settings that stay, shown as the call that makes them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from handgrad import (
    ELU,
    SGD,
    Adam,
    AdamW,
    BatchNorm,
    Cosine,
    Dropout,
    Huber,
    LayerNorm,
    LeakyReLU,
    Linear,
    MeanSquaredError,
    Network,
    OneCycle,
    RMSProp,
    SoftmaxCrossEntropy,
)
from handgrad.layers import ACTIVATIONS, KINDS, LAYERS, LOSSES, OPTIMISERS, SCHEDULES, Sequential

SIZES: dict[str, tuple[int, ...]] = {"Linear": (3, 4), "Embedding": (3, 4)}
MADE = {name: kind(*SIZES.get(name, ())) for name, kind in KINDS.items() if not issubclass(kind, Sequential)}
EACH = pytest.mark.parametrize("name", MADE)


def test_kinds_are_those_of_layers_losses_optimisers_and_schedules() -> None:
    """Each by its name, none twice and none that is only there to be built upon."""
    assert {**LAYERS, **LOSSES, **OPTIMISERS, **SCHEDULES} == KINDS
    assert len(KINDS) == len(LAYERS) + len(LOSSES) + len(OPTIMISERS) + len(SCHEDULES)
    assert all(kind.__name__ == name for name, kind in KINDS.items())
    assert {"Layer", "Loss", "Optimiser", "Schedule"}.isdisjoint(KINDS)


def test_activations_work_on_each_value_by_itself() -> None:
    """By the names that configurations have for them; a softmax looks at its row, and dropout is none."""
    names = ["elu", "gelu", "leaky_relu", "relu", "sigmoid", "silu", "softplus", "tanh"]
    assert sorted(ACTIVATIONS) == names
    z = np.array([[-1.5, 0.25, 2.0]])
    for kind in ACTIVATIONS.values():
        whole = Network(kind(), inputs=3).predict(z)
        np.testing.assert_allclose(whole, Network(kind(), inputs=1).predict(z.T).T, rtol=1e-6)


@EACH
def test_settings_stay_as_they_were_checked(name: str) -> None:
    """Nothing can be set afterwards, past what looks at it when it is made."""
    for setting in (*vars(MADE[name]), "anything"):
        with pytest.raises(FrozenInstanceError):
            setattr(MADE[name], setting, -1)


@EACH
def test_it_is_shown_as_the_call_that_makes_it(name: str) -> None:
    """What is at its default is left out."""
    assert repr(MADE[name]) == f"{name}({', '.join(map(str, SIZES.get(name, ())))})"


@EACH
def test_layers_and_losses_that_look_alike_are_two_and_settings_of_a_training_are_one(name: str) -> None:
    """A layer keeps arrays; an optimiser or a schedule is no more than its numbers."""
    other = KINDS[name](*SIZES.get(name, ()))
    assert (other == MADE[name]) == (name in {**OPTIMISERS, **SCHEDULES})


USUAL: list[tuple[Any, dict[str, Any]]] = [
    (ELU(), {"alpha": 1.0}),
    (LeakyReLU(), {"slope": 0.01}),
    (Dropout(), {"rate": 0.5}),
    (BatchNorm(), {"epsilon": 1e-5, "momentum": 0.1}),
    (LayerNorm(), {"epsilon": 1e-5}),
    (Linear(3, 4), {"bias": True}),
    (MeanSquaredError(), {"l2": 0.0}),
    (Huber(), {"delta": 1.0}),
    (SoftmaxCrossEntropy(), {"smoothing": 0.0}),
    (SGD(), {"learning_rate": 0.1, "momentum": 0.0, "weight_decay": 0.0, "nesterov": False}),
    (RMSProp(), {"decay": 0.99, "epsilon": 1e-8}),
    (Adam(), {"learning_rate": 1e-3, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.0}),
    (AdamW(), {"learning_rate": 1e-3, "weight_decay": 0.01}),
    (OneCycle(), {"rising": 0.3, "start": 25.0, "end": 1e4}),
    (Cosine(), {"final": 0.0}),
]


@pytest.mark.parametrize(("made", "usual"), USUAL, ids=[type(made).__name__ for made, _ in USUAL])
def test_settings_not_given_are_the_usual_ones(made: Any, usual: dict[str, Any]) -> None:
    """Those of PyTorch's documentation, but for the learning rate of SGD."""
    assert {name: getattr(made, name) for name in usual} == usual
