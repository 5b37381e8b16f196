"""Weights in safetensors files, named as in a ``state_dict`` of PyTorch's; PyTorch itself is not needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.arguments import judged
from handgrad.errors import ConversionError, DataError
from handgrad.files import Tensors, tensor_bytes, write_output
from handgrad.interop.counterparts import places
from handgrad.interop.torch_state import StateTensor, state_tensors
from handgrad.layers import BatchNorm
from handgrad.network import Network
from handgrad.rules import show_shape

Array = NDArray[Any]

COUNTER = "num_batches_tracked"
"""PyTorch's count of batches, used for nothing unless momentum is None."""


def to_state(network: Network) -> dict[str, Array]:
    """Return what the ``state_dict`` of the network's PyTorch module holds: copies, in PyTorch's layout."""
    state = {name: tensor.numbers() for name, tensor in state_tensors(network, network.arrays).items()}
    counted = (place.path for place in places(network.body) if type(place.layer) is BatchNorm)
    return state | {f"{path}.{COUNTER}": np.zeros((), np.int64) for path in counted}


@judged
def save_torch_weights(network: Network, path: str | Path) -> None:
    """Write a network's weights and running statistics as PyTorch would name them: ``0.weight``, ``0.bias``.

    ``model.load_state_dict(safetensors.torch.load_file(path))`` reads them into what `to_torch` makes, or into any
    model of the same modules.

    Raises
    ------
    ConversionError
        When a layer that has arrays has no counterpart.
    RunError
        When the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from handgrad import BatchNorm, Linear, Network
    >>> from handgrad.interop import load_torch_weights, save_torch_weights
    >>> network = Network(Linear(5, 3), BatchNorm())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_torch_weights(network, Path(folder, "model.safetensors"))
    ...     load_torch_weights(Network(Linear(5, 3), BatchNorm()), Path(folder, "model.safetensors"))
    """
    write_output(Path(path), tensor_bytes(to_state(network), format="pt"))


@judged
def load_torch_weights(network: Network, path: str | Path, *, layers: Sequence[str] | None = None) -> None:
    """Read weights and running statistics from a file with PyTorch's names; nothing changes unless all fits.

    Parameters
    ----------
    network
        Gets the numbers.
    path
        A safetensors file, as `save_torch_weights` or ``safetensors.torch.save_file`` writes it.
    layers
        What the file calls the layers that have arrays, in order, where it does not count them as the network does:
        ``["fc1", "fc2"]``.

    Raises
    ------
    DataError
        When the file is missing or damaged, or a name, a shape or a type in it is not the network's.
    """
    path, wanted = Path(path), _renamed(network, layers)
    with Tensors.open_anywhere(path, DataError) as tensors:
        found = tensors.shapes()
        _check_names(path, wanted, found)
        for name, tensor in wanted.items():
            _check_array(f"{path}: {name}", found[name], (tensor.shape, network.dtype))
        arrays = {name: tensors.read(name) for name in wanted}
    _check_shared(path, wanted, arrays)
    for name, tensor in wanted.items():
        tensor.fill(arrays[name])


def _renamed(network: Network, layers: Sequence[str] | None) -> dict[str, StateTensor]:
    """Return the network's arrays by the names they are to have in the file."""
    names = state_tensors(network, network.arrays)
    if layers is None:
        return names
    own = list(dict.fromkeys(name.rpartition(".")[0] for name in names))
    if len(layers) != len(own) or len(set(layers)) != len(layers):
        raise ConversionError(
            f"layers has {len(layers)} names, and {len(own)} layers have arrays",
            given=f"the network's are {', '.join(own)}",
            fix="give one name for each, all different",
        )
    called = dict(zip(own, layers, strict=True))
    parts = [(*name.rpartition("."), view) for name, view in names.items()]
    return {f"{called[path]}.{last}": view for path, _, last, view in parts}


def _check_names(path: Path, wanted: Mapping[str, StateTensor], found: Mapping[str, Any]) -> None:
    there = [name for name in found if name.rpartition(".")[2] != COUNTER]
    missing, more = [n for n in wanted if n not in found], [n for n in there if n not in wanted]
    if not missing and not more:
        return
    problem = f"there is no {missing[0]}" if missing else f"{more[0]} is not the network's"
    layers = list(dict.fromkeys(name.rpartition(".")[0] for name in there))
    fits = len(layers) == len({name.rpartition(".")[0] for name in wanted})
    raise DataError(
        f"{path}: {problem}",
        given=f"the file has {_listed(there)}; the network has {_listed(list(wanted))}",
        fix=f"if they are the same layers, give layers={layers!r}" if fits and missing and more else "",
    )


def _listed(names: list[str]) -> str:
    shown = ", ".join(name[:80] for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown or "nothing"


def _check_array(place: str, found: tuple[tuple[int, ...], str], own: tuple[tuple[int, ...], str]) -> None:
    if found != own:
        given, needed = (f"{kind}{show_shape(shape)}" for shape, kind in (found, own))
        raise DataError(
            f"{place} is {given} in the file, and the network needs {needed}",
            fix=f"save the model as {own[1]}" if found[0] == own[0] else "",
        )


def _check_shared(path: Path, wanted: Mapping[str, StateTensor], arrays: Mapping[str, Array]) -> None:
    """Check that the arrays of a layer that is used twice are the same under each of their names."""
    first: dict[tuple[int, str], str] = {}
    for name, tensor in wanted.items():
        other = first.setdefault((id(tensor.layer), tensor.name), name)
        if other != name and arrays[name].tobytes() != arrays[other].tobytes():
            raise DataError(
                f"{path}: {other} and {name} are one array in the network, and differ in the file"
            )
