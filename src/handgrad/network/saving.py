"""A network as a file: its layers and loss as a table, its parameters and buffers as safetensors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from handgrad.errors import ConfigurationError, HandgradError, RunError
from handgrad.files import Tensors, check_arrays, tensor_bytes, write_output
from handgrad.layers import LAYERS, LOSSES, Graph, Layer, Loss, Parameter, Sequential
from handgrad.network.network import Network
from handgrad.specs import explain, from_table, to_table

FORMAT = 1  # of files that `save_network` writes
MOST_LAYERS = 5000  # of a file, each of which takes a fraction of a millisecond to be made


class NetworkTable(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A network as a table: all that makes it, but not its arrays."""

    layers: list[dict[str, Any]]
    loss: dict[str, Any] | None
    row: tuple[int, ...]
    dtype: Literal["float32", "float64"]
    seed: int


class FileHead(msgspec.Struct, kw_only=True):
    """What the metadata of a network's file holds beside the arrays."""

    format: int
    network: dict[str, Any]
    own: dict[str, str]


def network_to_table(network: Network) -> dict[str, Any]:
    """Return a network as a `NetworkTable`."""
    return {
        "layers": [to_table(layer) for layer in network.body.layers],
        "loss": to_table(network.loss) if network.loss is not None else None,
        "row": list(network.row),
        "dtype": network.dtype,
        "seed": network.seed,
    }


def own_kinds(network: Network) -> dict[str, str]:
    """Return the layers and the loss of a network that are not handgrad's, each with the file it was defined in."""

    def walk(layer: Layer) -> Iterator[Layer]:
        yield layer
        inner = [*layer.layers, getattr(layer, "shortcut", None)] if isinstance(layer, Sequential) else []
        for each in filter(None, inner):
            yield from walk(each)

    made = {type(layer) for layer in walk(network.body)} | ({type(network.loss)} if network.loss else set())
    known = {*LAYERS.values(), *LOSSES.values()}
    return {kind.__name__: str(getattr(sys.modules.get(kind.__module__), "__file__", "a notebook"))
            for kind in made - known}  # fmt: skip


def save_network(network: Network, path: Path) -> None:
    """Write a network to a safetensors file, whole or not at all; see `Network.save`."""
    head = {"format": FORMAT, "network": network_to_table(network), "own": own_kinds(network)}
    write_output(path, tensor_bytes(network.arrays, head))


def load_network(path: Path, own: Sequence[type[Layer] | type[Loss]] = ()) -> Network:
    """Read what `save_network` wrote; see `Network.load`."""
    with Tensors.open_anywhere(path, RunError) as tensors:
        if "handgrad" not in tensors.metadata:
            raise RunError(
                f"{path}: holds no network of handgrad's, only arrays",
                fix="make the network, then handgrad.interop.load_torch_weights(network, path)",
            )
        head = tensors.header(FileHead, FORMAT)
        return read_network(head.network, head.own, tensors, path, own, "Network.load(path, own=[{}])")


def read_network(
    table: Mapping[str, Any], own_files: Mapping[str, str], tensors: Tensors, place: Path,
    own: Sequence[type[Layer] | type[Loss]], call: str,
) -> Network:  # fmt: skip
    """Make a network from its table and fill it from an open file, comparing shapes before any array is made.

    ``table`` and ``own_files`` are what `network_to_table` and `own_kinds` returned; ``own`` are layers and losses that are
    not handgrad's, as a file never names code to be run; ``place`` and ``call`` (how to open such a file) are for errors.
    """
    for name in own_files.keys() - {kind.__name__ for kind in own}:
        raise RunError(
            f"{place}: the network has a {name}, which is not handgrad's; it was defined in {own_files[name]}",
            fix=f"open it from Python: {call.format(name)}",
        )
    found, dtype = tensors.shapes(), str(table.get("dtype"))

    def check(arrays: Mapping[str, Parameter]) -> None:
        wanted = {name: (each.shape, dtype) for name, each in arrays.items()}
        check_arrays(str(tensors.path), {name: found[name] for name in wanted.keys() & found.keys()}, wanted)

    try:
        network = network_from(table, "network", own, check)
    except RunError:
        raise
    except HandgradError as error:
        raise RunError(f"{place}: {error.problem}", given=error.given, fix=error.fix) from None
    tensors.check(network.arrays)
    for name, array in network.arrays.items():
        array[...] = tensors.read(name)
    return network


def _count_tables(value: object) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(_count_tables, value.values()))
    return sum(map(_count_tables, value)) if isinstance(value, list) else 0


def network_from(
    values: Mapping[str, Any], place: str, own: Sequence[type[Layer] | type[Loss]] = (),
    check: Callable[[Mapping[str, Parameter]], None] | None = None,
) -> Network:  # fmt: skip
    """Make a network from what `network_to_table` returned; its arrays start anew.

    ``check`` is called with what the layers will hold, by name, before any of it is made.
    """
    kinds = {kind.__name__: kind for kind in own}
    known_layers = LAYERS | {name: kind for name, kind in kinds.items() if issubclass(kind, Layer)}
    known_losses = LOSSES | {name: kind for name, kind in kinds.items() if issubclass(kind, Loss)}
    try:
        table = msgspec.convert(values, NetworkTable)
        if (count := _count_tables(table.layers)) > MOST_LAYERS:
            raise ConfigurationError(
                f"{place}: {count:,} layers, and a file's network has at most {MOST_LAYERS:,}"
            )
    except msgspec.ValidationError as error:
        raise explain(error, values, NetworkTable, place) from None
    layers = [from_table(layer, f"{place}.layers[{k}]", known_layers) for k, layer in enumerate(table.layers)]
    loss = from_table(table.loss, f"{place}.loss", known_losses) if table.loss is not None else None
    try:
        if check is not None:
            graph = Graph()
            Sequential(*layers).connect(graph, graph.input("x", ("n", *table.row), "input"))
            check({**graph.parameters, **graph.states})
        network = Network(*layers, loss=loss, inputs=table.row, dtype=table.dtype, seed=table.seed)
        assert network.arrays is not None  # drawn here, where an error has a place
    except ValueError as error:  # NumPy's, for a size that no machine holds
        raise ConfigurationError(f"{place}: {error}") from None
    return network
