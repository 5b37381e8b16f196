"""More of a sequence, index by index, from a network that predicts each next one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from handgrad.arguments import Count, NonNegative, Seed, judged
from handgrad.arrays import Array
from handgrad.engines import ReferenceEngine
from handgrad.engines.reference import BoundReference
from handgrad.errors import ConfigurationError, ShapeError
from handgrad.layers import Graph
from handgrad.network import Network
from handgrad.program.builder import write_evaluation

__all__ = ["generate"]

CAUSAL = "give a network that sees only what came before, as of SelfAttention(…, causal=True)"


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
        When the prompt is empty or has an index that the network has no entry for, when the network is another, and when
        its logits are not finite.

    Examples
    --------
    >>> from itertools import islice
    >>> from handgrad import Network
    >>> from handgrad.layers import gpt_layers
    >>> network = Network(*gpt_layers(entries=9, features=8, heads=2, blocks=1), inputs=(5,))
    >>> len([*islice(generate(network, [3, 1]), 20)])
    20
    """
    entries = network.entries
    if entries is None or len(network.row) != 1 or network.output_shape != ("n", *network.row, entries):
        raise ConfigurationError(
            f"generate: {network!r} does not predict each next index of a sequence",
            fix="give a network from windows of indices (n, T) to logits (n, T, V)",
        )
    if not len(prompt):
        raise ConfigurationError("generate: the prompt is empty", fix="give one index or more")
    if outside := [index for index in prompt if not 0 <= index < entries]:
        raise ConfigurationError(
            f"generate: the prompt's index {outside[0]} has no entry",
            fix=f"give indices from 0 to {entries - 1}",
        )
    _check_order(network, entries)
    return _indices(network, list(prompt), temperature, top_k, np.random.default_rng(seed))


def _check_order(network: Network, entries: int) -> None:
    """Raise `ConfigurationError` where a place's logits depend on later places, or on how many there are."""
    places = min(network.row[0], 4)  # few are enough: a long window costs seconds
    x = np.random.default_rng(0).integers(entries, size=(1, places))
    seen = max(1, places // 2)
    other = np.concatenate([x[:, :seen], (x[:, seen:] + 1) % entries], axis=1)
    whole = _shortened(network, places)
    logits, changed, alone = (
        next(iter(bound.run(x=each).values()))[:, :seen]
        for bound, each in ((whole, x), (whole, other), (_shortened(network, seen), x[:, :seen]))
    )
    if not np.isfinite(logits).all():
        return  # said of the prompt's own logits
    for outputs, what in ((changed, "on later ones"), (alone, "on how many there are")):
        if not np.allclose(logits, outputs, rtol=1e-3, atol=1e-3 * np.abs(logits).max()):
            raise ConfigurationError(
                f"generate: what {network!r} predicts at a place depends {what}", fix=CAUSAL
            )


def _indices(
    network: Network, seen: list[int], temperature: float, top_k: int | None, rng: np.random.Generator
) -> Iterator[int]:
    context, places = network.row[0], 0
    while True:
        seen = seen[-context:]
        if len(seen) > places:
            places = min(context, 1 << (len(seen) - 1).bit_length())  # half of a short window is not empty
            bound = _shortened(network, places)
        x = np.array([seen + [0] * (places - len(seen))])  # no place looks at what is filled in after it
        (logits,) = bound.run(x=x).values()
        if not np.isfinite(logits[0, : len(seen)]).all():
            raise ConfigurationError(
                f"generate: {network!r} gives logits that are not finite",
                fix="look for NaN in its weights, or train it with a smaller learning rate",
            )
        seen.append(_draw(logits[0, len(seen) - 1].astype(np.float64), temperature, top_k, rng))
        yield seen[-1]


def _shortened(network: Network, places: int) -> BoundReference:
    """Return the network for windows of fewer places, on its own arrays: of positions, the first."""
    graph = Graph()
    x = graph.input("x", ("n", places), "input")
    try:
        output = network.body.connect(graph, x)
    except ShapeError as error:
        raise ConfigurationError(
            f"generate: {network!r} takes windows of {network.row[0]} places only",
            given=error.problem,
            fix=CAUSAL,
        ) from None
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
    weights = np.exp((logits - logits.max()) / temperature)
    return int(rng.choice(len(logits), p=weights / weights.sum()))
