"""The comparison with PyTorch sees a conversion that went wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .comparing import Pair
from .networks import COUNT, drawn


def planted(attribute: str, change: Callable[[Any], Any]) -> Callable[[Any, Any], bool]:
    """Return what changes an attribute wherever it is, and says whether it was anywhere."""

    def plant(module: Any, loss: Any) -> bool:
        having = [inner for inner in (*module.modules(), loss) if getattr(inner, attribute, None) is not None]
        for inner in having:
            setattr(inner, attribute, change(getattr(inner, attribute)))
        return bool(having)

    return plant


def weights_transposed(module: Any, loss: Any) -> bool:
    square = [p for p in module.parameters() if p.ndim == 2 and p.shape[0] == p.shape[1]]
    for parameter in square:
        parameter.data = parameter.data.T.clone()
    return bool(square)


def statistics_swapped(module: Any, loss: Any) -> bool:
    having = [inner for inner in module.modules() if hasattr(inner, "deviation")]
    for inner in having:
        inner.mean, inner.deviation = inner.deviation.clone(), inner.mean.clone()
    return bool(having)


def gain_and_shift_swapped(module: Any, loss: Any) -> bool:
    having = [inner for inner in module.modules() if hasattr(inner, "eps")]
    for inner in having:
        inner.weight.data, inner.bias.data = inner.bias.data.clone(), inner.weight.data.clone()
    return bool(having)


def biased_running_variance(module: Any, loss: Any) -> bool:
    """As if the running variance took in the batch's own: 2 of 41 rows' worth less."""
    having = [inner for inner in module.modules() if getattr(inner, "running_var", None) is not None]
    for inner in having:
        inner.running_var *= 1 - 1 / 41
    return bool(having)


def other_weights_of_classes(module: Any, loss: Any) -> bool:
    if getattr(loss, "weight", None) is None:
        return False
    loss.weight[0] *= 1.01
    return True


MUTANTS: dict[str, Callable[[Any, Any], bool]] = {
    "momentum the other way round": planted("momentum", lambda m: 1 - m),
    "another epsilon": planted("eps", lambda e: e * 1.01),
    "another slope": planted("negative_slope", lambda s: s + 0.001),
    "another alpha": planted("alpha", lambda a: a + 0.001),
    "another rate of dropout": planted("p", lambda p: p + 0.01),
    "the other form of GELU": planted("approximate", lambda a: "none" if a == "tanh" else "tanh"),
    "softmax over another axis": planted("dim", lambda d: 0),
    "weights transposed": weights_transposed,
    "mean and deviation swapped": statistics_swapped,
    "gain and shift swapped": gain_and_shift_swapped,
    "the running variance biased": biased_running_variance,
    "no smoothing": planted("label_smoothing", lambda s: s + 0.01),
    "another class passed over": planted("ignore_index", lambda c: 2 if c == 1 else 1),
    "other weights of classes": other_weights_of_classes,
    "other weights of a yes": planted("pos_weight", lambda w: w * 1.001),
    "another delta": planted("delta", lambda d: d * 1.01),
}


@pytest.mark.peers
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_conversion_that_went_wrong_is_seen(torch: Any, mutant: str) -> None:
    """In every network that has what is planted, the comparison above finds it."""
    tried = 0
    for number in range(COUNT):
        pair = Pair(torch, drawn(number))
        with torch.no_grad():
            planted_here = MUTANTS[mutant](pair.module, pair.loss)
        if planted_here:
            tried += 1
            assert any(not d <= pair.made.tight for d in pair.distances().values()), drawn(number).network
        if tried == 4:
            break
    assert tried
