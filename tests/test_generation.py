"""What is generated: drawn from the network's own probabilities of the last window, and what cannot be."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from handgrad import ConfigurationError, Embedding, Flatten, Linear, Network, Reshape, SelfAttention, generate
from handgrad.layers import gpt_layers

ENTRIES, PLACES = 7, 6


@pytest.fixture(scope="module")
def network() -> Network:
    """Return a network whose logits are far apart, with a last layer of its own."""
    *layers, _ = gpt_layers(ENTRIES, 8, 2, 2)
    made = Network(*layers, Linear(8, ENTRIES), inputs=(PLACES,), dtype="float64")
    rng = np.random.default_rng(0)
    for array in made.parameters.values():
        array[...] += rng.normal(size=array.shape)
    return made


def test_the_likeliest_is_that_of_the_whole_window(network: Network) -> None:
    """However few places the prompt has, and when there are more than the window holds."""
    seen = [3, 1]
    for index in islice(generate(network, seen, temperature=0), 9):
        window = seen[-PLACES:]
        x = np.array([window + [5] * (PLACES - len(window))])
        assert index == network.output(x)[0, len(window) - 1].argmax()
        seen.append(index)
    assert len(set(seen)) > 2


@pytest.mark.parametrize("top_k", [None, 3])
def test_indices_come_as_often_as_their_probabilities(top_k: int | None) -> None:
    """In one long sequence of a bigram model, for a temperature and for the three likeliest alone."""
    network = Network(Embedding(ENTRIES, ENTRIES), inputs=(PLACES,), dtype="float64")
    logits = network.parameters["E1"]
    logits[...] = np.random.default_rng(0).normal(size=logits.shape)
    drawn = [0, *islice(generate(network, [0], temperature=1.7, top_k=top_k, seed=1), 4000)]
    found = np.zeros((ENTRIES, ENTRIES))
    np.add.at(found, (drawn[:-1], drawn[1:]), 1)
    likely = logits >= np.sort(logits)[:, [-(top_k or ENTRIES)]]
    shares = np.exp(logits / 1.7) * likely
    expected = found.sum(axis=1, keepdims=True) * shares / shares.sum(axis=1, keepdims=True)
    assert (np.abs(found - expected) <= 4 * np.sqrt(expected) + 1e-9).all()


def test_the_same_seed_gives_the_same_indices(network: Network) -> None:
    drawn = [[*islice(generate(network, [0], seed=seed), 30)] for seed in (5, 5, 6)]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    "layers",
    [
        (Linear(PLACES, 3),),
        (Embedding(ENTRIES, 4), Flatten(), Linear(4 * PLACES, 3)),
        (Embedding(ENTRIES, 4),),
    ],
    ids=["values", "one-answer", "features"],
)
def test_another_network_is_refused(layers: tuple) -> None:
    """It needs logits of what comes next, for each place."""
    with pytest.raises(ConfigurationError, match="does not predict each next index of a sequence"):
        generate(Network(*layers, inputs=(PLACES,)), [1])


def test_nothing_follows_an_empty_prompt(network: Network) -> None:
    with pytest.raises(ConfigurationError, match="the prompt is empty"):
        generate(network, [])


@pytest.mark.parametrize("index", [-1, ENTRIES])
def test_an_index_without_an_entry_is_refused(network: Network, index: int) -> None:
    with pytest.raises(ConfigurationError, match=f"the prompt's index {index} has no entry"):
        generate(network, [2, index])


def test_a_network_that_sees_what_comes_after_is_refused() -> None:
    """What is filled in after the prompt would change what follows it."""
    network = Network(Embedding(ENTRIES, 8), SelfAttention(8), Linear(8, ENTRIES), inputs=(PLACES,))
    with pytest.raises(ConfigurationError, match="predicts at a place depends on later ones"):
        generate(network, [1])


def test_a_network_of_whole_windows_is_refused() -> None:
    """Its weights are of a window's places."""
    layers = (
        Embedding(ENTRIES, 4),
        Flatten(),
        Linear(4 * PLACES, ENTRIES * PLACES),
        Reshape((PLACES, ENTRIES)),
    )
    with pytest.raises(ConfigurationError, match=f"takes windows of {PLACES} places only"):
        generate(Network(*layers, inputs=(PLACES,)), [1])


def test_logits_that_are_not_finite_are_told() -> None:
    network = Network(*gpt_layers(ENTRIES, 8, 2, 1), inputs=(PLACES,))
    next(iter(network.parameters.values()))[...] = np.nan
    with pytest.raises(ConfigurationError, match="gives logits that are not finite"):
        next(generate(network, [1]))
