"""What every layer, loss, optimiser and schedule is: settings that stay, shown as the call that makes them."""

from __future__ import annotations

import inspect
import re
from ast import literal_eval
from dataclasses import MISSING, FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest

from handgrad import Linear, Network, rules
from handgrad.layers import ACTIVATIONS, KINDS, LAYERS, LOSSES, OPTIMISERS, SCHEDULES, Sequential

SIZES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("Linear", "Embedding", "SwiGLU", "RNN", "LSTM", "GRU"), (3, 4)),
    "SelfAttention": (6,),
    **dict.fromkeys(("Conv1d", "Conv2d", "ConvTranspose2d", "SeparableConv2d"), (3, 4, 2)),
    **dict.fromkeys(("AvgPool2d", "MaxPool2d"), (2,)),
    "Reshape": ((4, 7),),
}
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
    assert {"relu", "gelu"} <= ACTIVATIONS.keys()
    assert ACTIVATIONS.keys().isdisjoint({"softmax", "dropout", "identity"})
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
    assert repr(MADE[name]) == f"{name}({', '.join(map(repr, SIZES.get(name, ())))})"


@EACH
def test_layers_and_losses_that_look_alike_are_two_and_settings_of_a_training_are_one(name: str) -> None:
    """A layer keeps arrays; an optimiser or a schedule is no more than its numbers."""
    other = KINDS[name](*SIZES.get(name, ()))
    assert (other == MADE[name]) == (name in {**OPTIMISERS, **SCHEDULES})


@pytest.mark.parametrize(
    "name", sorted((LAYERS | LOSSES).keys() - {"Concat", "Repeat", "Residual", "Sequential"})
)
def test_settings_not_given_are_those_of_the_rules(name: str) -> None:
    """A layer and the rule that it applies have the same defaults: alone, a rule does as in a network."""
    module = getattr(inspect.getmodule(KINDS[name]), "__name__", "")
    of_images = module.endswith("convolution") or name == "GroupNorm"
    alone = (
        of_images
        or module.endswith(("attention", "recurrence"))
        or name in ("Standardise", "Embedding", "Linear")
    )
    before = [] if alone else [Linear(3, 4)]
    made = (*before, MADE[name]) if name in LAYERS else (Linear(3, 4),)
    rows = {"Conv1d": (6, 3), "Reshape": 28, "SelfAttention": (5, 6), "Positions": (5, 6)}
    rows |= dict.fromkeys(("RNN", "LSTM", "GRU", "Last"), (5, 3))
    row = rows.get(name, (5, 6, 3) if of_images else 3)
    network = Network(*made, loss=MADE[name] if name in LOSSES else None, inputs=row)
    for node in network.nodes():
        if node.rule is not rules.sum_of_outputs and name not in (
            "Reshape",
            "SeparableConv2d",
        ):  # an option that is a size of the network
            assert node.options == node.rule.settings({}), node.rule.name


@pytest.mark.parametrize("name", sorted(OPTIMISERS.keys() - {"SGD"}))
def test_settings_of_an_optimiser_not_given_are_those_of_its_rule(name: str) -> None:
    """Of SGD the momentum chooses the rule."""
    usual = MADE[name].rule.text.options
    assert {option: getattr(MADE[name], option) for option in usual} == usual


@EACH
def test_every_setting_is_documented_with_its_default(name: str) -> None:
    """On its class, which is what help() and the reference show."""
    text = inspect.getdoc(KINDS[name]) or ""
    for field in fields(KINDS[name]):
        needed = field.default is MISSING
        entry = re.search(rf"^{field.name} : .*{'' if needed else ', default (.+)'}$", text, re.MULTILINE)
        wanted = f"{field.name} : …{'' if needed else f', default {field.default!r}'}"
        assert entry, f"the docstring of {name} has no line `{wanted}`"
        assert needed or literal_eval(entry[1]) == field.default, f"{name}: `{entry[0]}` is not `{wanted}`"
