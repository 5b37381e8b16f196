"""Losses to PyTorch and from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from handgrad.errors import ConversionError, need
from handgrad.layers import BinaryCrossEntropy, Huber, Loss, MeanSquaredError, SoftmaxCrossEntropy

NOT_IGNORED = -100
"""The class number that PyTorch's CrossEntropyLoss ignores by default."""

WITHOUT = {
    "HalfSquaredError": "torch.nn.MSELoss(reduction='sum') is twice its sum, and so are the gradients",
    "Poisson": "torch.nn.PoissonNLLLoss() is this loss but for a part that depends on the targets alone, and has the "
    "same gradients",
}
"""Losses without a counterpart in PyTorch, and what comes nearest."""

INSTEAD = {
    "BCELoss": "leave the model's last Sigmoid out, and give BCEWithLogitsLoss()",
    "BCEWithLogitsLoss": "give the rows weights when training, instead of the option weight",
    "L1Loss": "HuberLoss with a small delta comes near",
    "NLLLoss": "leave the model's last LogSoftmax out, and give CrossEntropyLoss()",
    "SmoothL1Loss": "HuberLoss(delta=beta) is beta times this loss; with beta=1 they are the same",
}
"""Losses of PyTorch's without a counterpart here, and what to do."""


def loss_to(loss: Any, dtype: str) -> Any:
    """Return the module that a loss is."""
    torch = need("torch", "to_torch_loss")
    nn, kind = torch.nn, type(loss)
    if getattr(loss, "l2", 0):
        raise ConversionError(
            f"{loss!r}: PyTorch's losses have no l2", fix="give the optimiser weight_decay instead"
        )
    if getattr(loss, "outputs", "mean") != "mean":
        raise ConversionError(
            f"{loss!r}: PyTorch's losses add up all or nothing, and this one adds up each row",
            fix='give outputs="mean"',
        )

    def tensor(numbers: Any) -> Any:
        return None if numbers is None else torch.tensor(np.asarray(numbers, dtype))

    if kind is MeanSquaredError:
        return nn.MSELoss()
    if kind is Huber:
        return nn.HuberLoss(delta=loss.delta)
    if kind is BinaryCrossEntropy:
        return nn.BCEWithLogitsLoss(pos_weight=tensor(loss.positive_weight))
    if kind is SoftmaxCrossEntropy:
        ignored = NOT_IGNORED if loss.ignored is None else loss.ignored
        return nn.CrossEntropyLoss(
            tensor(loss.class_weight), ignore_index=ignored, label_smoothing=loss.smoothing
        )
    raise ConversionError(
        f"{loss!r}: torch.nn has no counterpart of {kind.__name__}", fix=WITHOUT.get(kind.__name__, "")
    )


def loss_from(module: Any) -> Loss:
    """Return the loss that a module is."""
    nn = need("torch.nn", "from_torch")
    kind = type(module)
    if getattr(module, "reduction", "mean") != "mean":
        raise ConversionError(
            f"loss {module!r}: reduction is {module.reduction!r}, and handgrad's losses average",
            fix="HalfSquaredError() is half of MSELoss(reduction='sum')"
            if kind is nn.MSELoss
            else "give reduction='mean'",
        )
    if kind is nn.MSELoss:
        return MeanSquaredError()
    if kind is nn.HuberLoss:
        return Huber(module.delta)
    if kind is nn.SmoothL1Loss and module.beta == 1:
        return Huber(1.0)
    if kind is nn.BCEWithLogitsLoss and module.weight is None:
        return BinaryCrossEntropy(_numbers(module.pos_weight))
    if kind is nn.CrossEntropyLoss:
        return SoftmaxCrossEntropy(
            smoothing=module.label_smoothing,
            ignored=module.ignore_index,
            class_weight=_numbers(module.weight),
        )
    raise ConversionError(f"loss {module!r}: handgrad has no counterpart", fix=INSTEAD.get(kind.__name__, ""))


def _numbers(tensor: Any) -> Any:
    return None if tensor is None else tensor.detach().cpu().tolist()
