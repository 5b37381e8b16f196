"""More of a sequence, index by index, from a network that predicts each next one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from handgrad.arguments import Count, NonNegative, Seed, judged
from handgrad.arrays import Array
from handgrad.engines import ReferenceEngine
from handgrad.engines.reference import BoundReference
from handgrad.errors import ConfigurationError
from handgrad.layers import Graph
from handgrad.network import Network
from handgrad.program.builder import write_evaluation

__all__ = ["generate"]


@judged
def generate(
    network: Network,
    prompt: Sequence[int],
    *,
    temperature: NonNegative = 1.0,
    top_k: Count | None = None,
    seed: Seed = 0,
) -> Iterator[int]:
    """Yield one index after another that follows a prompt, without end.

    Parameters
    ----------
    network
        From windows of indices (n, T) to logits of each next one (n, T, V), as of `handgrad.layers.gpt_layers`. No place may
        look at later ones. Of what has come so far it sees the last T.
    prompt
        What to begin with, one index or more.
    temperature
        What the logits are divided by: below 1 likelier indices come more often; at 0 the likeliest one always comes.
    top_k
        Draw from so many of the likeliest; by default from all.
    seed
        The same seed gives the same indices.

    Raises
    ------
    ConfigurationError
        When the prompt is empty or the network is another.

    Examples
    --------
    >>> from itertools import islice
    >>> from handgrad import Network
    >>> from handgrad.layers import gpt_layers
    >>> network = Network(*gpt_layers(entries=9, features=8, heads=2, blocks=1), inputs=(5,))
    >>> len([*islice(generate(network, [3, 1]), 20)])
    20
    """
    if network.output_shape != ("n", *network.row, network.entries) or len(network.row) != 1:
        raise ConfigurationError(
            f"generate: {network!r} does not predict each next index of a sequence",
            fix="give a network from windows of indices (n, T) to logits (n, T, V)",
        )
    if not len(prompt):
        raise ConfigurationError("generate: the prompt is empty", fix="give one index or more")
    return _indices(network, list(prompt), temperature, top_k, np.random.default_rng(seed))


def _indices(
    network: Network, seen: list[int], temperature: float, top_k: int | None, rng: np.random.Generator
) -> Iterator[int]:
    context, bound = network.row[0], dict[int, BoundReference]()
    while True:
        seen = seen[-context:]
        places = min(context, 1 << (len(seen) - 1).bit_length())  # half of a short window is not empty
        if places not in bound:
            bound = {places: _shortened(network, places)}
        x = np.array([seen + [0] * (places - len(seen))])  # no place looks at what is filled in after it
        (logits,) = bound[places].run(x=x).values()
        seen.append(_draw(logits[0, len(seen) - 1].astype(np.float64), temperature, top_k, rng))
        yield seen[-1]


def _shortened(network: Network, places: int) -> BoundReference:
    """Return the network for windows of fewer places, on its own arrays: of positions, the first."""
    graph = Graph()
    x = graph.input("x", ("n", places), "input")
    output = network.body.connect(graph, x)
    program = write_evaluation(
        graph, (replace(x, kind="index"),), output, None, title=network.title, dtype=network.dtype
    )
    arrays = {name: network.arrays[name][tuple(map(slice, shape))] for name, shape in program.shapes.items()}
    return ReferenceEngine().bind(program, arrays)


def _draw(logits: Array, temperature: float, top_k: int | None, rng: np.random.Generator) -> int:
    if temperature == 0:
        return int(logits.argmax())
    if top_k is not None and top_k < len(logits):
        logits = np.where(logits >= np.partition(logits, -top_k)[-top_k], logits, -np.inf)
    shares = np.exp((logits - logits.max()) / temperature)
    return int(rng.choice(len(logits), p=shares / shares.sum()))
