"""GPT-2: its networks by name, and its weights in the form in which they were published."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from handgrad.arguments import Count, Fraction, Seed, judged
from handgrad.errors import ConversionError, RunError
from handgrad.files import Tensors, check_arrays, tensor_bytes, write_output
from handgrad.layers import SoftmaxCrossEntropy, gpt_layers
from handgrad.network import Network
from handgrad.network.network import DType
from handgrad.rules import show_shape

ENTRIES, CONTEXT, WIDTH = 50257, 1024, 64  # tokens, places, features of a head

LEFT_OUT = (".attn.bias", ".attn.masked_bias", "lm_head.weight")
"""What a file may have beside the weights: masks, and the table again."""

GPT2 = {
    "gpt2": (768, 12, 12),
    "gpt2-medium": (1024, 16, 24),
    "gpt2-large": (1280, 20, 36),
    "gpt2-xl": (1600, 25, 48),
}
"""Features, heads and blocks, by name."""

Size = Literal["gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"]


@judged
def gpt2(
    size: Size = "gpt2",
    *,
    context: Count = CONTEXT,
    dropout: Fraction = 0.0,
    dtype: DType = "float32",
    seed: Seed = 0,
) -> Network:
    """Return an untrained GPT-2 of a published size; its weights are drawn when they are first asked for.

    Parameters
    ----------
    size
        "gpt2" (124 million parameters), "gpt2-medium", "gpt2-large" or "gpt2-xl".
    context
        T, the tokens of a window; published ones have 1024.
    dropout, dtype, seed
        As for `handgrad.layers.gpt_layers` and `handgrad.Network`.

    Examples
    --------
    >>> gpt2().title
    'network 1024 → 768 → 768 → 768 → … → 768 → 768 → 3072 → 768 → 50257 · 124,439,808 parameters'
    """
    layers = gpt_layers(ENTRIES, *GPT2[size], dropout)
    return Network(*layers, loss=SoftmaxCrossEntropy(), inputs=(context,), dtype=dtype, seed=seed)


@judged
def load_gpt2(path: str | Path, *, heads: Count | None = None, context: Count | None = None) -> Network:
    """Read a GPT-2 from safetensors in their published form: ``wte.weight``, ``h.0.attn.c_attn.weight``, ….

    Parameters
    ----------
    path
        The file, ``model.safetensors``; masks in it are left out.
    heads
        Of attention; by default those that `save_gpt2` wrote, else D / 64, as in the published ones.
    context
        T of the network, of the file's positions the first; by default all.

    Returns
    -------
    Network
        With the file's weights, in the file's type.

    Raises
    ------
    RunError
        When the file is missing or damaged, or holds something else, or its heads are not known.

    Examples
    --------
    >>> import tempfile
    >>> from handgrad import Network
    >>> network = Network(*gpt_layers(entries=70, features=12, heads=2, blocks=3), inputs=(5,))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_gpt2(network, Path(folder, "model.safetensors"))
    ...     same = load_gpt2(Path(folder, "model.safetensors"))
    >>> bool((same.output([[1, 2, 3, 4, 5]]) == network.output([[1, 2, 3, 4, 5]])).all())
    True
    """
    path = Path(path)
    with Tensors.open_anywhere(path, RunError) as tensors:
        found = {name: each for name, each in tensors.shapes().items() if not name.endswith(LEFT_OUT)}
        prefix = "transformer." if "transformer.wte.weight" in found else ""
        entries, features, dtype = _table(path, found, f"{prefix}wte.weight")
        places = _table(path, found, f"{prefix}wpe.weight")[0]
        if context is not None and context > places:
            raise RunError(f"{path}: context is {context}, and the file has {places} positions")
        blocks = sum(name.endswith(".ln_1.weight") for name in found)
        heads = heads or _heads(path, tensors.metadata.get("heads", ""), features)
        layers = gpt_layers(entries, features, heads, max(1, blocks))
        precise: DType = "float64" if dtype == "float64" else "float32"
        whole, network = (
            Network(*layers, loss=SoftmaxCrossEntropy(), inputs=(length,), dtype=precise)
            for length in (places, context or places)
        )
        wanted = {f"{prefix}{name}": parts for name, parts in _published(whole.graph().parameters).items()}
        check_arrays(str(path), found, {name: (_shape(parts), dtype) for name, parts in wanted.items()})
        for name, own in zip(wanted, _published(network.parameters).values(), strict=True):
            for array, part in zip(own, np.split(tensors.read(name), len(own), axis=-1), strict=True):
                array[...] = part[: len(array)]  # of positions, the first
    return network


@judged
def save_gpt2(network: Network, path: str | Path) -> None:
    """Write the weights of a network of `handgrad.layers.gpt_layers` in GPT-2's published form; see `load_gpt2`.

    Raises
    ------
    ConversionError
        When the network is another.
    RunError
        When the file cannot be written.
    """
    heads = _heads_of_gpt(network)
    if heads is None:
        raise ConversionError(f"{network!r}: is no GPT-2", fix="make it of handgrad.layers.gpt_layers")
    parts = _published(network.parameters).items()
    arrays = {name: np.concatenate(each, axis=-1) for name, each in parts}
    write_output(Path(path), tensor_bytes(arrays, format="pt", heads=str(heads)))


def _published(arrays: Any) -> dict[str, list[Any]]:
    """Return the network's arrays, in order, by GPT-2's names; queries, keys and values are one there, side by side."""
    table, positions, *inner, gain, shift = arrays.values()
    names = {"wte.weight": [table], "wpe.weight": [positions]}
    for number, start in enumerate(range(0, len(inner), 16)):
        gain1, shift1, *maps, wo, bo, gain2, shift2, w1, b1, w2, b2 = inner[start : start + 16]
        own = {
            "ln_1.weight": [gain1], "ln_1.bias": [shift1],
            "attn.c_attn.weight": maps[::2], "attn.c_attn.bias": maps[1::2],
            "attn.c_proj.weight": [wo], "attn.c_proj.bias": [bo],
            "ln_2.weight": [gain2], "ln_2.bias": [shift2],
            "mlp.c_fc.weight": [w1], "mlp.c_fc.bias": [b1], "mlp.c_proj.weight": [w2], "mlp.c_proj.bias": [b2],
        }  # fmt: skip
        names |= {f"h.{number}.{name}": parts for name, parts in own.items()}
    return names | {"ln_f.weight": [gain], "ln_f.bias": [shift]}


def _table(path: Path, found: Mapping[str, tuple[tuple[int, ...], str]], name: str) -> tuple[int, int, str]:
    """Return the shape and type of a table in the file; a `RunError` where there is none."""
    shape, dtype = found.get(name, ((), "none"))
    if len(shape) != 2 or dtype not in ("float16", "float32", "float64"):
        raise RunError(
            f"{path}: {name} is {dtype}{show_shape(shape)}, and a GPT-2 has a matrix of float16, float32 or float64 there",
            fix="give model.safetensors of a GPT-2",
        )
    return (*shape, dtype)


def _shape(parts: list[Any]) -> tuple[int, ...]:
    *rest, last = parts[0].shape
    return (*rest, last * len(parts))


def _heads(path: Path, stated: str, features: int) -> int:
    """Return how many heads a file states, or those of published ones; a `RunError` where neither divides the features."""
    heads = (int(stated) if re.fullmatch(r"[1-9]\d{0,8}", stated) else 0) if stated else features / WIDTH
    if not heads or features % heads or heads % 1:
        how = f"states {stated!r:.20}" if stated else "does not state its heads"
        raise RunError(
            f"{path}: {how}, and {features} features are not so many heads of equally many, nor of {WIDTH} each",
            fix="give heads",
        )
    return int(heads)


def _heads_of_gpt(network: Network) -> int | None:
    """Return the heads of a network that computes what one of `gpt_layers` does, but for dropout; None for another."""
    nodes, tables = network.nodes(), [*network.graph().parameters.values()]
    rules = [node.rule.name for node in nodes]
    heads = next((node.options["heads"] for node in nodes if node.rule.name == "split_heads"), None)
    if heads is None or rules[0] != "embedding" or tables[0].shape[1] % heads:
        return None
    blocks = rules.count("causal_attention")
    entries, features = tables[0].shape
    layers = gpt_layers(entries, features, heads, max(1, blocks))
    return heads if _steps(network) == _steps(Network(*layers, inputs=network.row)) else None


def _steps(network: Network) -> list[Any]:
    """Return the layers' rules but dropout, each with its settings, and shape and first use of each value it takes."""
    places: dict[str, Any] = {}
    steps: list[Any] = []
    for node in network.nodes():
        if node.rule.name == "dropout":
            before = node.inputs[0].name
            places[node.output.name] = places.get(before, before)  # which may be the network's input
        elif node.part == "forward":
            taken = [
                (places.setdefault(value.name, (len(steps), k)), value.shape)
                for k, value in enumerate(node.inputs)
            ]
            places[node.output.name] = len(steps)
            steps.append((node.rule.name, node.options, taken))
    return steps
