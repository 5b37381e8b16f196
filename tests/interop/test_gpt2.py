"""GPT-2's published form: weights there and back, logits and every gradient PyTorch's, tokens, and text that is sampled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad import (
    ConversionError,
    DataError,
    Dropout,
    Embedding,
    Linear,
    Network,
    RunError,
    SoftmaxCrossEntropy,
)
from handgrad.files import tensor_bytes, write_file
from handgrad.generation import generate
from handgrad.interop import BytePairs, gpt2, load_gpt2, save_gpt2
from handgrad.layers import GELU, LayerNorm, Positions, Residual, SelfAttention, gpt_layers

from ..conftest import Command

SMALL = {"entries": 23, "features": 12, "blocks": 3, "places": 7}


def write_tensors(path: Path, arrays: Mapping[str, Any], **metadata: str) -> None:
    """Write a safetensors file."""
    write_file(path, tensor_bytes(arrays, **metadata))


def published(
    entries: int, features: int, blocks: int, places: int, dtype: type = np.float64
) -> dict[str, np.ndarray]:
    """Return random weights as they are published, with a mask and the name that the table has twice."""
    D, rng = features, np.random.default_rng(0)

    def draw(*shape: int, mean: float = 0.0, deviation: float = 0.3) -> np.ndarray:
        return (mean + deviation * rng.standard_normal(shape, np.float32)).astype(dtype)

    arrays = {"wte.weight": draw(entries, D), "wpe.weight": draw(places, D)}
    for b in range(blocks):
        block = {
            "ln_1.weight": draw(D, mean=1), "ln_1.bias": draw(D),
            "attn.bias": np.tri(places)[None, None], "attn.masked_bias": np.array(-1e4),
            "attn.c_attn.weight": draw(D, 3 * D, deviation=D**-0.5), "attn.c_attn.bias": draw(3 * D),
            "attn.c_proj.weight": draw(D, D, deviation=D**-0.5), "attn.c_proj.bias": draw(D),
            "ln_2.weight": draw(D, mean=1), "ln_2.bias": draw(D),
            "mlp.c_fc.weight": draw(D, 4 * D, deviation=D**-0.5), "mlp.c_fc.bias": draw(4 * D),
            "mlp.c_proj.weight": draw(4 * D, D, deviation=D**-0.5), "mlp.c_proj.bias": draw(D),
        }  # fmt: skip
        arrays |= {f"h.{b}.{name}": array for name, array in block.items()}
    return arrays | {
        "ln_f.weight": draw(D, mean=1),
        "ln_f.bias": draw(D),
        "lm_head.weight": arrays["wte.weight"],
    }


def of_torch(torch: Any, w: dict[str, Any], x: Any, heads: int) -> Any:
    """Return the logits of GPT-2, as its authors' code has it: Conv1D layers, which multiply from the right."""
    functional = torch.nn.functional

    def norm(h: Any, name: str) -> Any:
        return functional.layer_norm(h, h.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"])

    def conv1d(h: Any, name: str) -> Any:
        return h @ w[f"{name}.weight"] + w[f"{name}.bias"]

    h = w["wte.weight"][x] + w["wpe.weight"][: x.shape[1]]
    mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
    for b in range(sum(name.endswith("ln_1.weight") for name in w)):
        parts = conv1d(norm(h, f"h.{b}.ln_1"), f"h.{b}.attn.c_attn").chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in parts)
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, float("-inf"))
        found = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        h = h + conv1d(found, f"h.{b}.attn.c_proj")
        inner = functional.gelu(conv1d(norm(h, f"h.{b}.ln_2"), f"h.{b}.mlp.c_fc"), approximate="tanh")
        h = h + conv1d(inner, f"h.{b}.mlp.c_proj")
    return norm(h, "ln_f") @ w["wte.weight"].T


def compare(torch: Any, path: Path, weights: dict[str, np.ndarray], x: Any, heads: int, close: float) -> None:
    """Compare logits, loss and every gradient, norm by norm; the gradients in the published form too."""
    network = load_gpt2(path, heads=heads, context=x.shape[1])
    t = np.random.default_rng(1).integers(0, len(weights["wte.weight"]), x.shape)
    t[0, 1] = -100
    network.loss = SoftmaxCrossEntropy(ignored=-100)
    network._graphs.clear()
    tensors = {
        name: torch.tensor(array, requires_grad=True)
        for name, array in weights.items()
        if not name.endswith((".attn.bias", "masked_bias", "lm_head.weight"))
    }
    logits = of_torch(torch, tensors, torch.tensor(x), heads)
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.tensor(t).flatten()).backward()

    def near(found: Any, expected: Any) -> bool:
        return bool(np.linalg.norm(found - expected) <= close * np.linalg.norm(expected))

    assert near(network.output(x), logits.detach().numpy())
    found = network.gradients(x, t)
    like = Network(*network.body.layers, inputs=network.row, dtype=network.dtype)
    for name, array in like.parameters.items():
        array[...] = found[name]
    save_gpt2(like, path)
    from safetensors.numpy import load_file

    for name, gradient in load_file(path).items():
        expected = tensors[name].grad.numpy()
        assert near(gradient, expected[: len(gradient)]), name


@pytest.mark.peers
def test_logits_and_gradients_are_pytorchs(torch: Any, tmp_path: Path) -> None:
    weights = published(**SMALL)
    write_tensors(tmp_path / "model.safetensors", weights)
    x = np.random.default_rng(2).integers(0, SMALL["entries"], (4, 5))
    compare(torch, tmp_path / "model.safetensors", weights, x, 3, 1e-12)


@pytest.mark.peers
def test_logits_and_gradients_are_pytorchs_at_gpt2s_own_sizes(torch: Any, tmp_path: Path) -> None:
    """All of its 124 million parameters, in float32."""
    weights = published(50257, 768, 12, 1024, np.float32)
    write_tensors(tmp_path / "model.safetensors", weights)
    compare(torch, tmp_path / "model.safetensors", weights, np.arange(18).reshape(2, 9) * 2791, 12, 1e-3)


def test_weights_go_there_and_back(tmp_path: Path) -> None:
    """In the published names and shapes; a prefix and other types are read too."""
    weights = published(**SMALL, dtype=np.float32)
    write_tensors(
        tmp_path / "a", {f"transformer.{name}": array for name, array in weights.items() if "lm" not in name}
    )
    network = load_gpt2(tmp_path / "a", heads=2)
    assert network.row == (7,)
    save_gpt2(network, tmp_path / "b")
    again = load_gpt2(tmp_path / "b", heads=2)
    assert sum(array.size for array in again.parameters.values()) == sum(
        array.size
        for name, array in weights.items()
        if not name.endswith((".attn.bias", "masked_bias", "lm_head.weight"))
    )
    for name, array in network.parameters.items():
        np.testing.assert_array_equal(again.parameters[name], array)
    np.testing.assert_array_equal(network.parameters["W4"], weights["h.0.attn.c_attn.weight"][:, 12:24])
    half = {name: array.astype(np.float16) for name, array in weights.items()}
    write_tensors(tmp_path / "half", half)
    assert load_gpt2(tmp_path / "half", heads=2, context=3).parameters["P2"].dtype == np.float32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"wte.weight": None}, "wte.weight is none\\(\\), and a GPT-2 has a matrix"),
        (
            {"wpe.weight": np.ones((7, 12), np.int64)},
            "wpe.weight is int64\\(7, 12\\), and a GPT-2 has a matrix",
        ),
        ({"h.1.ln_2.bias": None}, "h.1.ln_2.bias is only in the network"),
        ({"h.1.extra": np.ones(3)}, "h.1.extra is only in the file"),
        ({"h.1.mlp.c_fc.weight": np.ones((48, 12))}, r"h.1.mlp.c_fc.weight is float64\(48, 12\) in the file"),
    ],
)
def test_a_file_of_something_else_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    weights = {**published(**SMALL), **change}
    write_tensors(tmp_path / "m", {name: array for name, array in weights.items() if array is not None})
    with pytest.raises(RunError, match=message):
        load_gpt2(tmp_path / "m", heads=2)


def test_more_positions_than_the_file_has_are_refused(tmp_path: Path) -> None:
    write_tensors(tmp_path / "m", published(**SMALL))
    with pytest.raises(RunError, match="context is 8, and the file has 7 positions"):
        load_gpt2(tmp_path / "m", heads=2, context=8)
    with pytest.raises(RunError, match="No such file"):
        load_gpt2(tmp_path / "n")


def test_only_a_gpt_is_written(tmp_path: Path) -> None:
    """Dropout makes no difference to its weights."""
    for layers in ((Linear(3, 2),), (Embedding(5, 4), Dropout())):
        with pytest.raises(ConversionError, match="is no GPT-2"):
            save_gpt2(Network(*layers, inputs=3), tmp_path / "m")
    save_gpt2(Network(*gpt_layers(9, 8, 2, 1, 0.5), inputs=(4,)), tmp_path / "m")
    assert load_gpt2(tmp_path / "m", heads=2).parameters["E1"].shape == (9, 8)


@pytest.mark.parametrize("other", ["epsilon", "untied", "width", "heads", "shortcut"])
def test_what_would_be_another_network_when_read_is_not_written(tmp_path: Path, other: str) -> None:
    """Settings, tied weights, sizes and what is added to what are those of GPT-2."""
    heads = 4 if other == "heads" else 2
    inner = 20 if other == "width" else 32
    norm = LayerNorm(epsilon=0.1) if other == "epsilon" else LayerNorm()
    tied = {} if other == "untied" else {"tied": "E1"}
    attention = Residual(norm, SelfAttention(8, heads, causal=True))
    mlp = [Linear(8, inner), GELU("tanh"), Linear(inner, 8)]
    layers = [
        Embedding(9, 8), Positions(), attention,
        *([Residual(LayerNorm(), *mlp), Residual(LayerNorm(), SelfAttention(8, 2, causal=True))] if other == "heads" else []),
        *([LayerNorm()] if other == "shortcut" else []),
        Residual(*mlp) if other == "shortcut" else Residual(LayerNorm(), *mlp),
        LayerNorm(), Linear(8, 9, bias=False, layout="out_in", **tied),
    ]  # fmt: skip
    with pytest.raises(ConversionError, match="is no GPT-2"):
        save_gpt2(Network(*layers, inputs=(4,)), tmp_path / "m")


def test_heads_are_read_from_the_file_and_not_guessed(tmp_path: Path) -> None:
    """Those that were written; 64 features each where the file states none."""
    network = Network(*gpt_layers(9, 128, 4, 1), inputs=(5,))
    save_gpt2(network, tmp_path / "m")
    x = [[1, 2, 3, 4, 5]]
    np.testing.assert_array_equal(load_gpt2(tmp_path / "m").output(x), network.output(x))
    write_tensors(tmp_path / "n", published(**SMALL))
    with pytest.raises(RunError, match="does not state its heads, and 12 features are not so many") as caught:
        load_gpt2(tmp_path / "n")
    assert caught.value.fix == "give heads"
    for stated in ("5", "-2", "0"):
        write_tensors(tmp_path / "n", published(**SMALL), heads=stated)
        with pytest.raises(RunError, match=f"states '{stated}', and 12 features"):
            load_gpt2(tmp_path / "n")


def test_gpt2_has_the_published_number_of_parameters() -> None:
    assert "124,439,808" in gpt2().title
    assert "1,557,611,200" in gpt2("gpt2-xl").title


LETTERS = "abehtĠ!ÃŃ0"
MERGES = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("a", "b"), ("ab", "ab")]


@pytest.fixture
def tokens(tmp_path: Path) -> BytePairs:
    pieces = [*LETTERS, *(one + other for one, other in MERGES)]
    (tmp_path / "vocab.json").write_text(
        json.dumps({piece: k for k, piece in enumerate(pieces)}), encoding="utf-8"
    )
    lines = ["#version: 0.2", *map(" ".join, MERGES), ""]
    (tmp_path / "merges.txt").write_text("\n".join(lines), encoding="utf-8")
    return BytePairs.read(tmp_path)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("the the", ["the", "Ġthe"]),
        ("ababab", ["abab", "ab"]),
        ("thethe0th!", ["the", "the", "0", "th", "!"]),
        ("the  the", ["the", "Ġ", "Ġthe"]),
        ("í", ["Ã", "Ń"]),
        ("", []),
    ],
)
def test_tokens_are_the_merges_in_their_order(tokens: BytePairs, text: str, pieces: list[str]) -> None:
    """Within words, which begin with their space; a letter beyond ASCII is its bytes."""
    numbers = tokens.encode(text)
    assert [tokens.texts[number] for number in numbers] == pieces
    assert tokens.decode(numbers) == text


def test_what_is_no_token_is_named(tokens: BytePairs, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'xa': 'x' is no token"):
        tokens.encode("the xa"[4:])
    (tmp_path / "merges.txt").write_text("a b c\n")
    with pytest.raises(DataError, match=r"merges.txt: damaged, or not GPT-2's"):
        BytePairs.read(tmp_path)
    (tmp_path / "vocab.json").write_text("[1]")
    with pytest.raises(DataError, match=r"vocab.json: damaged, or not GPT-2's"):
        BytePairs.read(tmp_path)
    with pytest.raises(DataError, match=r"vocab.json: No such file") as caught:
        BytePairs.read(tmp_path / "nowhere")
    assert caught.value.fix == "give a folder with vocab.json and merges.txt"


def test_text_is_sampled_from_published_files(handgrad: Command, tokens: BytePairs, tmp_path: Path) -> None:
    """The same as from the network in Python."""
    write_tensors(tmp_path / "model.safetensors", published(len(tokens.tokens), 64, 2, 9))
    network = load_gpt2(tmp_path / "model.safetensors")
    seen = tokens.encode("the ab")
    for _ in range(4):
        x = np.array([seen + [0] * (9 - len(seen))])
        seen.append(int(network.output(x)[0, len(seen) - 1].argmax()))
    done = handgrad("generate", tmp_path, "--prompt", "the ab", "--tokens", 4, "--temperature", 0, "--json")
    assert json.loads(done.stdout)["text"] == tokens.decode(seen[len(tokens.encode("the ab")) :])


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("vocab.json", "{", "Expecting property name"),
        ("vocab.json", "[1]", r"it holds \[1\], and tokens with their numbers are needed"),
        ("vocab.json", "{}", "it holds {}, and tokens"),
        ("vocab.json", '{"a": [0]}', r"the number of 'a' is \[0\], and a whole number is needed"),
        ("vocab.json", '{"a": 0.0}', "the number of 'a' is 0.0, and"),
        ("vocab.json", '{"a": true}', "the number of 'a' is True, and"),
        ("vocab.json", '{"a": -1}', "the number of 'a' is -1, and"),
        ("vocab.json", '{"a b": 1}', "the token 'a b' has the letter ' ', which stands for no byte"),
        ("vocab.json", '{"a": 1, "b": 1}', "'a' and 'b' have the same number, 1"),
        (
            "merges.txt",
            "#version: 0.2\nt h\nab\n",
            "line 3 is 'ab', and two tokens with a space between them are needed",
        ),
        ("merges.txt", "t h e\n", "line 1 is 't h e', and two tokens"),
        ("merges.txt", "t \n", "line 1 is 't ', and two tokens"),
        ("merges.txt", "t h\nt b\n", "line 2 has 'tb', which is no token of vocab.json"),
    ],
)
def test_damaged_tokens_are_named(
    tokens: BytePairs, tmp_path: Path, name: str, content: str, problem: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=rf"{name}: damaged, or not GPT-2's: {problem}") as caught:
        BytePairs.read(tmp_path)
    assert caught.value.fix == "get the file again, as it was published beside the weights"


def test_merges_may_end_their_lines_as_windows_does(tokens: BytePairs, tmp_path: Path) -> None:
    path = tmp_path / "merges.txt"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert BytePairs.read(tmp_path).ranks == tokens.ranks


def test_heads_are_those_of_the_config(handgrad: Command, tokens: BytePairs, tmp_path: Path) -> None:
    """Which other files of a model have beside it; what is another network's is an error."""
    write_tensors(tmp_path / "model.safetensors", published(len(tokens.tokens), 12, 2, 9))
    given = ("generate", tmp_path, "--prompt", "the ab", "--tokens", 4, "--temperature", 0, "--json")
    assert "model.safetensors: does not state its heads" in handgrad(*given, code=1).stderr
    config = tmp_path / "config.json"
    config.write_text('{"n_head": 3, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-05}')
    network = load_gpt2(tmp_path / "model.safetensors", heads=3)
    drawn = [*islice(generate(network, tokens.encode("the ab"), temperature=0), 4)]
    assert json.loads(handgrad(*given).stdout)["text"] == tokens.decode(drawn)
    for text, problem in (
        ('{"n_head": "3"}', "n_head is '3', and a whole number of heads is needed"),
        ('{"n_head": 0}', "n_head is 0, and a whole number of heads is needed"),
        (
            '{"n_head": 3, "activation_function": "relu"}',
            "activation_function is 'relu', and GPT-2's is 'gelu_new'",
        ),
        ("[3]", "damaged, or not handgrad's"),
    ):
        config.write_text(text)
        assert f"config.json: {problem}" in handgrad(*given, code=1).stderr


def test_the_tokens_are_the_network_s(handgrad: Command, tokens: BytePairs, tmp_path: Path) -> None:
    for entries, problem in (
        (17, "model.safetensors has 17 tokens, and vocab.json has no token 15"),
        (9, "vocab.json has a token 14, and model.safetensors has 9 tokens"),
    ):
        write_tensors(tmp_path / "model.safetensors", published(entries, 64, 2, 9))
        assert problem in handgrad("generate", tmp_path, "--prompt", "a", "--tokens", 1, code=1).stderr
