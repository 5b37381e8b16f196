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
    HandgradNotice,
    LayerNorm,
    Linear,
    Network,
    Positions,
    Residual,
    SelfAttention,
    SoftmaxCrossEntropy,
    train,
)
from handgrad.program.lines_in_python import run_lines

PLACES, WIDTH, ENTRIES = 5, 8, 7


def gpt(**attention: Any) -> Network:
    """Return two blocks of GPT-2, of sizes of which no two are alike."""
    blocks = [
        part
        for _ in range(2)
        for part in (
            Residual(LayerNorm(), SelfAttention(WIDTH, 2, causal=True, **attention)),
            Residual(LayerNorm(), Linear(WIDTH, 3 * WIDTH), GELU("tanh"), Linear(3 * WIDTH, WIDTH)),
        )
    ]
    return Network(
        Embedding(ENTRIES, WIDTH),
        Positions(),
        *blocks,
        LayerNorm(),
        Linear(WIDTH, ENTRIES, bias=False),
        loss=SoftmaxCrossEntropy(),
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
    return functional.cross_entropy((y @ next(left)).flatten(0, 1), torch.tensor(t).flatten())


@pytest.mark.peers
def test_every_gradient_of_a_gpt_is_pytorchs(torch: Any) -> None:
    network, rng = gpt(), np.random.default_rng(0)
    x, t = rng.integers(0, ENTRIES, (3, PLACES)), rng.integers(0, ENTRIES, (3, PLACES))
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
    with pytest.warns(HandgradNotice, match="the compiled engine is not used"):
        history = train(network, x, t, epochs=25, batch_size=25, optimiser=AdamW(0.01))
    assert history.epochs[-1].loss < 0.1 < history.epochs[0].loss
    late = x.copy()
    late[:, -1] = (x[:, -1] + 1) % ENTRIES
    np.testing.assert_array_equal(network.predict(late)[:, :-1], network.predict(x)[:, :-1])


def test_heads_that_do_not_divide_the_features_are_named() -> None:
    with pytest.raises(ConfigurationError, match="8 features are not 3 heads of equally many"):
        Network(SelfAttention(8, 3), inputs=(5, 8))
    with pytest.raises(ConfigurationError, match="an even number each"):
        Network(SelfAttention(6, 2, rotary=True), inputs=(5, 6))
