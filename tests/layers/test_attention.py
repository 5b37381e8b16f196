"""A small GPT: every gradient is PyTorch's, it learns, and what does not fit is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad import (
    GELU,
    AdamW,
    ConfigurationError,
    Embedding,
    Last,
    Layer,
    LayerNorm,
    Linear,
    Network,
    Positions,
    Repeat,
    Reshape,
    Residual,
    SelfAttention,
    SoftmaxCrossEntropy,
    train,
)
from handgrad.program.lines_in_python import run_lines

PLACES, WIDTH, ENTRIES = 5, 8, 7


def gpt(*, tied: bool = False, **attention: Any) -> Network:
    """Return two blocks of GPT-2, of sizes of which no two are alike."""
    layout = {"layout": "out_in", "tied": "E1"} if tied else {}
    return Network(
        Embedding(ENTRIES, WIDTH),
        Positions(),
        Repeat(
            Residual(LayerNorm(), SelfAttention(WIDTH, 2, causal=True, **attention)),
            Residual(LayerNorm(), Linear(WIDTH, 3 * WIDTH), GELU("tanh"), Linear(3 * WIDTH, WIDTH)),
            times=2,
        ),
        LayerNorm(),
        Linear(WIDTH, ENTRIES, bias=False, **layout),
        loss=SoftmaxCrossEntropy(ignored=-100 if tied else None),
        inputs=(PLACES,),
        dtype="float64",
    )


def of_torch(torch: Any, arrays: dict[str, Any], x: Any, t: Any) -> Any:
    """Return the loss of the same network, of PyTorch's own functions."""
    functional = torch.nn.functional
    left = iter(arrays.values())
    h = functional.embedding(torch.tensor(x), next(left)) + next(left)
    for _ in range(2):
        y = functional.layer_norm(h, (WIDTH,), next(left), next(left))
        heads = [(y @ next(left) + next(left)).unflatten(-1, (2, -1)).transpose(1, 2) for _ in range(3)]
        found = functional.scaled_dot_product_attention(*heads, is_causal=True)
        h = h + found.transpose(1, 2).flatten(2) @ next(left) + next(left)
        y = functional.layer_norm(h, (WIDTH,), next(left), next(left))
        inner = functional.gelu(y @ next(left) + next(left), approximate="tanh")
        h = h + inner @ next(left) + next(left)
    y = functional.layer_norm(h, (WIDTH,), next(left), next(left))
    last = next(left, arrays["E1"].T)  # tied, where none is left
    return functional.cross_entropy((y @ last).flatten(0, 1), torch.tensor(t).flatten())


@pytest.mark.peers
@pytest.mark.parametrize("tied", [False, True])
def test_every_gradient_of_a_gpt_is_pytorchs(torch: Any, tied: bool) -> None:
    """With the embedding's table as the last weights, too, and with places whose label is ignored."""
    network, rng = gpt(tied=tied), np.random.default_rng(0)
    x, t = rng.integers(0, ENTRIES, (3, PLACES)), rng.integers(0, ENTRIES, (3, PLACES))
    t[0, 2:] = t[2, 1] = -100 if tied else 0
    program = network.program(optimiser=None).without_updates()
    found = run_lines(program.lines, {"x": x, "t": t, "n": 3, **network.arrays})
    tensors = {name: torch.tensor(array, requires_grad=True) for name, array in network.arrays.items()}
    loss = of_torch(torch, tensors, x, t)
    loss.backward()
    assert abs(found["loss"] - loss.item()) < 1e-13
    for name, tensor in tensors.items():
        np.testing.assert_allclose(found[f"d{name}"], tensor.grad, rtol=0, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("rotary", [False, True])
def test_a_gpt_learns_what_follows(rotary: bool) -> None:
    """Each place names the next entry but one: it must look back one place, and at no later one."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, ENTRIES, (150, PLACES))
    t = np.column_stack([x[:, :1], x[:, :-1]])
    network = gpt(rotary=rotary)
    history = train(network, x, t, epochs=25, batch_size=25, optimiser=AdamW(0.01))
    assert history.facts["engine"] == "compiled"
    assert history.epochs[-1].loss < 0.1 < history.epochs[0].loss
    late = x.copy()
    late[:, -1] = (x[:, -1] + 1) % ENTRIES
    np.testing.assert_array_equal(network.predict(late)[:, :-1], network.predict(x)[:, :-1])


def test_heads_that_do_not_divide_the_features_are_named() -> None:
    for features, heads, rotary, fix in (
        (8, 3, False, "give heads=2 or 4, or features=9"),
        (8, 9, False, "give heads=8, or features=9"),
        (12, 4, True, "give heads=3 or 6, or features=16"),
        (7, 1, True, "give features=8"),
    ):
        with pytest.raises(ConfigurationError, match=f"{features} features are not {heads} heads") as caught:
            SelfAttention(features, heads, rotary=rotary)
        assert caught.value.problem.endswith("an even number each") == rotary
        assert caught.value.fix == fix


def attended(torch: Any, arrays: dict[str, Any], x: Any, h: Any, shared: int, padding: int) -> Any:
    """Return what 4 heads find with as many heads of keys and a mask, of PyTorch's own functions."""
    q, k, v = (
        (h @ arrays[f"W{n}"] + arrays[f"b{n}"]).unflatten(-1, (heads, -1)).transpose(1, 2)
        for n, heads in ((1, 4), (2, shared), (3, shared))
    )
    seen = (torch.tensor(x) != padding)[:, None, None, :]
    found = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)
    return found.transpose(1, 2).flatten(2) @ arrays["W4"] + arrays["b4"]


@pytest.mark.peers
@pytest.mark.parametrize("shared", [1, 2, 4])
def test_every_gradient_of_grouped_queries_with_padding_is_pytorchs(torch: Any, shared: int) -> None:
    attention = SelfAttention(WIDTH, 4, key_heads=shared, padding=2)
    layers = Embedding(ENTRIES, WIDTH), attention, Linear(WIDTH, ENTRIES)
    network = Network(*layers, loss=SoftmaxCrossEntropy(), inputs=(PLACES,), dtype="float64")
    rng = np.random.default_rng(0)
    x, t = rng.integers(2, ENTRIES, (3, PLACES)), rng.integers(0, ENTRIES, (3, PLACES))
    x[0, 3:] = x[1, :2] = 2
    program = network.program(optimiser=None).without_updates()
    found = run_lines(program.lines, {"x": x, "t": t, "n": 3, **network.arrays})
    tensors = {name: torch.tensor(array, requires_grad=True) for name, array in network.arrays.items()}
    renamed = dict(
        zip(("E", "W1", "b1", "W2", "b2", "W3", "b3", "W4", "b4", "V", "c"), tensors.values(), strict=True)
    )
    h = attended(torch, renamed, x, torch.nn.functional.embedding(torch.tensor(x), renamed["E"]), shared, 2)
    logits = h @ renamed["V"] + renamed["c"]
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.tensor(t).flatten()).backward()
    for name, tensor in tensors.items():
        np.testing.assert_allclose(found[f"d{name}"], tensor.grad, rtol=0, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("causal", [False, True])
def test_what_fills_a_sequence_up_changes_nothing(causal: bool) -> None:
    """Whichever place of another sequence was there: the row of the table for padding is in no other place's output."""
    attention = SelfAttention(WIDTH, 2, causal=causal, padding=0)
    network = Network(Embedding(ENTRIES, WIDTH), attention, inputs=(PLACES,), dtype="float64")
    x = np.array([[3, 1, 4, 0, 0], [0, 5, 2, 0, 6]])
    before = network.predict(x)
    network.arrays["E1"][0] += 1
    after = network.predict(x)
    np.testing.assert_array_equal(after[x != 0], before[x != 0])
    assert np.abs(after - before)[x == 0].min() > 1e-6
    assert np.isfinite(network.predict(np.zeros((1, PLACES), int))).all()


def test_heads_of_keys_divide_those_of_queries() -> None:
    with pytest.raises(
        ConfigurationError, match="6 heads of queries cannot share 4 heads of keys evenly"
    ) as caught:
        SelfAttention(12, 6, key_heads=4)
    assert caught.value.fix == "give key_heads=1 or 2 or 3 or 6"


@pytest.mark.parametrize(
    "layers", [(), (Embedding(7, 4), Linear(4, 4), Last(), Linear(4, 12), Reshape((3, 4)))]
)
def test_padding_is_an_index_of_each_place(layers: tuple[Layer, ...]) -> None:
    with pytest.raises(ConfigurationError, match="padding is an index of each place") as caught:
        Network(*layers, SelfAttention(4, padding=0), inputs=(5,) if layers else (5, 4))
    assert caught.value.fix == "put Embedding first, or leave padding out"
