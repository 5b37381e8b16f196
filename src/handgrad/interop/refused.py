"""What of PyTorch's has no counterpart here, and what can be done instead."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from handgrad.errors import ConversionError
from handgrad.interop.counterparts import Counterpart

NO_IMAGES = "handgrad has no layers of images"
NO_SEQUENCES = "handgrad has no layers of sequences"

INSTEAD = {
    "BatchNorm2d, BatchNorm3d, GroupNorm, InstanceNorm*": NO_IMAGES,
    "Conv*, *Pool*, Upsample*, Pixel*": NO_IMAGES,
    "RNN*, LSTM*, GRU*, MultiheadAttention, Transformer*": NO_SEQUENCES,
    "DataParallel, DistributedDataParallel": "give its .module",
    "Flatten": "it may stand first, before flat rows: leave it out, and give the network flat rows",
    "Lazy*": "run the model once on a batch: then it knows its sizes",
    "LogSoftmax": "leave it out, and give the loss CrossEntropyLoss, which has it inside",
    "Parametrized*": "torch.nn.utils.parametrize.remove_parametrizations makes it a plain module again",
    "PReLU": "LeakyReLU has a counterpart; its slope is not trained",
    "RMSNorm": "LayerNorm has a counterpart",
}
"""What to do about modules that people have often, by patterns of their names."""

OWN = "write a rule and a layer of your own, and build the network of them"


def explain_unknown(module: Any, place: str) -> ConversionError:
    """Return the error for a module without a counterpart."""
    kind = type(module).__name__
    known = (fix for names, fix in INSTEAD.items() if any(fnmatchcase(kind, n) for n in names.split(", ")))
    return ConversionError(f"{place}: handgrad has no counterpart of {kind}", fix=next(known, OWN))


def objection(module: Any, counterpart: Counterpart, axes: int) -> tuple[str, str] | None:
    """Return what about a module has no counterpart, and what to do; None when all has.

    Parameters
    ----------
    module
        Of a kind that has a counterpart.
    counterpart
        Its row of the table.
    axes
        How many axes one row of its input has.
    """
    kind = type(module).__name__
    for called in counterpart.arrays.values():
        if getattr(module, called) is None and (kind, called) != ("Linear", "bias"):
            return f"it has no {called}, and handgrad's {counterpart.layer.__name__} does", _options(kind)
    match kind:
        case "Softplus" if module.beta != 1 or module.threshold < 20:
            return f"beta is {module.beta} and threshold {module.threshold}", "beta=1, threshold=20 has one"
        case "Softmax" if module.dim not in (-1, axes):
            return f"dim is {module.dim}, and handgrad's is the last", "give dim=-1"
        case "BatchNorm1d" if axes > 1:
            return (
                f"it takes the second of {axes + 1} axes, and handgrad's BatchNorm the last",
                "use handgrad.interop.modules.BatchNormOfRows in the model",
            )
        case "BatchNorm1d" | "BatchNormOfRows" if module.momentum is None:
            return "momentum is None: an average over all batches", "give a number"
        case "LayerNorm" if len(module.normalized_shape) > 1:
            return (
                f"it normalises {len(module.normalized_shape)} axes, and handgrad's the last",
                "give the network flat rows",
            )
        case "Embedding":
            return _embedding(module)
    return None


def _embedding(module: Any) -> tuple[str, str] | None:
    for name in ("padding_idx", "max_norm"):
        if getattr(module, name) is not None:
            return (
                f"{name} is {getattr(module, name)}, and handgrad's Embedding has none",
                f"give {name}=None",
            )
    if module.scale_grad_by_freq:
        problem = "scale_grad_by_freq changes the gradient, and handgrad's Embedding has none"
        return problem, "give scale_grad_by_freq=False"
    return None


def _options(kind: str) -> str:
    known = {
        "BatchNorm1d": "give affine=True, track_running_stats=True",
        "BatchNormOfRows": "give affine=True, track_running_stats=True",
        "LayerNorm": "give elementwise_affine=True, bias=True",
    }
    return known.get(kind, "")
