"""Arrays of several axes in the compiled engine: other orders, parts, products of stacks, sums over axes in the middle."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad import Layer, Linear, MeanSquaredError, Network, SelfAttention, rule
from handgrad.engines import ReferenceEngine
from handgrad.engines.compiled import CompiledEngine, triangles
from handgrad.engines.compiled.compiled_engine import BoundCompiled
from handgrad.rules import Rule
from handgrad.rules.primitives import join_last, rows, split_last

from .agreement import BOUNDS, Case, Training, check_agreement, check_case, check_same, threads
from .random_programs import drawn
from .test_compiled_rules import Own

# ruff: noqa: RET504 - rules return names

TIME, FEATURES, OUTPUTS = 4, 12, 3


@rule("N T F -> N T F")
def along_the_middle(x):
    y = x - x.mean(axis=1, keepdims=True)
    return y


@along_the_middle.backward
def along_the_middle_backward(dy):
    dx = dy - dy.mean(axis=1, keepdims=True)
    return dx


@rule("N... F -> N... F")
def transposed_by_hand(x):
    y = (x.T * 2.0).T
    return y


@transposed_by_hand.backward
def transposed_by_hand_backward(dy):
    dx = 2.0 * dy
    return dx


@rule("N T F -> N T F")
def parts_and_wholes(x):
    """Take parts, scale them, put them together in another order, twice over."""
    half = x.shape[-1] // 2
    low = x[..., :half]
    high = x[..., half:]
    u = np.concatenate([high * 2.0, low * low], axis=-1)
    y = np.concatenate([u[:, 1:], u[:, :1]], axis=1)
    return y


@parts_and_wholes.backward
def parts_and_wholes_backward(dy, half, low):
    du = np.concatenate([dy[:, -1:], dy[:, :-1]], axis=1)
    dx = np.concatenate([2 * low * du[..., half:], du[..., :half] * 2.0], axis=-1)
    return dx


@rule("N T F -> N T F")
def one_place_for_all(x):
    """Read one place of each sequence, and one feature of each place."""
    first = x[:, 0]
    last = x[:, -1, :]
    y = x * first[:, None] + np.expand_dims(last, 1) * x[..., 2][..., None]
    return y


@one_place_for_all.backward
def one_place_for_all_backward(dy, x, first):
    dx = dy * first[:, None] + x.max(axis=1, keepdims=True)
    return dx


@rule("N T F -> N T F")
def groups(x, *, parts=4):
    """Normalise over the places and the features of a group, by the largest and the mean."""
    u = split_last(x, parts)
    v = u - u.mean(axis=(1, 3), keepdims=True)
    y = join_last(v / (1 + np.abs(u).max(axis=(1, 3), keepdims=True)))
    return y


@groups.backward
def groups_backward(dy, x, *, parts):
    du = split_last(dy, parts)
    dx = join_last(du - du.sum(axis=(1, 3), keepdims=True) * 0.1)
    return dx


@rule("N T F -> N T F")
def gram(x, *, parts=3):
    """Multiply stacks of matrices in every order of their axes, one with a stack of one."""
    q = split_last(x, parts).swapaxes(1, 2)
    s = q @ q.mT * 0.1
    u = s.mT @ q
    v = (q.mT @ s).mT
    w = np.swapaxes(u, 0, 1) + np.transpose(v).T.swapaxes(0, 1)
    y = join_last(w.swapaxes(0, 1).swapaxes(1, 2))
    return y


@gram.backward
def gram_backward(dy, q, *, parts):
    mix = np.ones((q.shape[-1], q.shape[-1]), q.dtype) + np.tri(q.shape[-1], dtype=q.dtype)
    dq = split_last(dy, parts).swapaxes(1, 2) @ mix
    dx = join_last(dq.swapaxes(1, 2))
    return dx


@rule("N T F, F F -> N T F")
def moved(x, W):
    """Map the features with places and rows exchanged, and matrices that are parts of others."""
    z = (x.swapaxes(0, 1) @ W).swapaxes(0, 1)
    y = z + x[..., 1:5] @ W[2:6]
    return y


@moved.backward
def moved_backward(dy, x, W):
    dx = dy @ W.T
    dW = rows(x.swapaxes(0, 1)).T @ rows(dy.swapaxes(0, 1))
    return dx, dW


@rule("N T F, T F, F -> N T F")
def positions(x, P, g):
    """Add what depends on the place and on the feature, mask by both; sum over the rows."""
    seen = np.tri(x.shape[-2], x.shape[-1]) > 0
    y = np.where(seen, x + P * g, np.arange(x.shape[-1], dtype=x.dtype) * 0.1)
    return y


@positions.backward
def positions_backward(dy, P, g, seen):
    dx = np.where(seen, dy, 0)
    dP = dx.sum(axis=0) * g
    dg = (dx.sum(axis=0) * P).sum(axis=0)
    return dx, dP, dg


RNG = np.random.default_rng(0)
X, T = RNG.normal(size=(23, TIME, FEATURES)), RNG.normal(size=(23, TIME, OUTPUTS))
RULES: dict[str, tuple[Rule, tuple[tuple[int, ...], ...]]] = {
    "along the middle": (along_the_middle, ()),
    "transposed by hand": (transposed_by_hand, ()),
    "parts and wholes": (parts_and_wholes, ()),
    "one place for all": (one_place_for_all, ()),
    "groups": (groups, ()),
    "gram": (gram, ()),
    "moved": (moved, ((FEATURES, FEATURES),)),
    "positions": (positions, ((TIME, FEATURES), (FEATURES,))),
}


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("name", RULES)
def test_axes_of_every_kind_are_compiled(name: str, dtype: str) -> None:
    """A rule gives the numbers of its own NumPy lines."""
    check_axes(name, dtype)


def check_axes(name: str, dtype: str) -> None:
    """Compare a rule with the reference."""
    own, shapes = RULES[name]

    def network(dtype: str) -> Network:
        layers = [Linear(FEATURES, FEATURES, bias=False), Own(own, shapes), Linear(FEATURES, OUTPUTS)]
        return Network(*layers, loss=MeanSquaredError(), inputs=(TIME, FEATURES), dtype=dtype)

    check_case(Case(network, {"x": X, "t": T}, rate=0.01), dtype, (1, 6, 30))


@rule("N T F -> N T F")
def looked_back(x):
    """Average the places up to each, by products of pairs; sum the shares over the rows of the matrix too."""
    s = x @ x.mT * 0.1
    past = np.where(np.tri(x.shape[-2]) > 0, s, -np.inf)
    e = np.exp(past - past.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    y = p @ x + p.mT @ x + p.sum(axis=-2)[..., None]
    return y


@looked_back.backward
def looked_back_backward(dy, x, p):
    dx = p.mT @ dy + (p * (dy @ x.mT)) @ x
    return dx


@rule("N T F -> N T F")
def only_before(x):
    """Sum over what comes before, by numbers that are 0 elsewhere."""
    s = np.where(np.tri(x.shape[-2]) > 0, x @ x.mT * 0.01, 0.0)
    y = (-s / 7.0) @ x
    return y


@only_before.backward
def only_before_backward(dy, x, s):
    ds = dy @ x.mT * s
    dx = ((ds + s) @ x - ds.mT @ x) * 0.01
    return dx


def looks_back(layer: Layer, places: int) -> Case:
    """Return a case of a layer with a causal mask, on sequences of so many places."""

    def network(dtype: str) -> Network:
        layers = [Linear(3, FEATURES, bias=False), layer, Linear(FEATURES, OUTPUTS)]
        made = Network(*layers, loss=MeanSquaredError(), inputs=(places, 3), dtype=dtype)
        for name, array in made.parameters.items():
            array += 0.1 * np.arange(array.size).reshape(array.shape) % 0.7 if name[0] == "b" else 0
        return made

    shapes = (9, places, 3), (9, places, OUTPUTS)
    x, t = (np.random.default_rng(2).normal(size=shape) for shape in shapes)
    return Case(network, {"x": x, "t": t}, rate=0.01)


LOOKING_BACK = {
    "attention": SelfAttention(FEATURES, 3, causal=True),
    "shares that are summed": Own(looked_back),
    "zeros": Own(only_before),
}


@pytest.mark.parametrize("name", LOOKING_BACK)
@pytest.mark.parametrize("places", [24, 40])
def test_what_a_causal_mask_leaves_out_is_not_computed(
    name: str, places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of rows up to the diagonal give the numbers of whole matrices, the last block shorter than others."""
    check_looking_back(name, places, monkeypatch)


def check_looking_back(name: str, places: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare what a causal mask leaves half of with the reference."""
    monkeypatch.setattr(triangles, "SMALLEST", 17)
    case = looks_back(LOOKING_BACK[name], places)
    step = Training(CompiledEngine(), case, "float64").bound
    assert isinstance(step, BoundCompiled)
    assert step.schedule.triangles
    for batch_size in (1, 6, 9):
        expected = Training(ReferenceEngine(), case, "float64").run(batch_size)
        for count in (1, 2):
            with threads(count):
                found = Training(CompiledEngine(), case, "float64").run(batch_size)
            check_agreement(found, expected, "float64", f"{count} threads")


def test_small_matrices_are_computed_whole() -> None:
    training = Training(CompiledEngine(), looks_back(LOOKING_BACK["attention"], 24), "float64")
    assert isinstance(training.bound, BoundCompiled)
    assert not training.bound.schedule.triangles


@pytest.mark.parametrize("seed", range(0, 400, 16))
def test_random_programs_agree(seed: int) -> None:
    """On one thread and on two, to the last bit."""
    program, x = drawn(seed)
    expected = ReferenceEngine().bind(program, {}).run(x=x)
    bound = CompiledEngine().bind(program, {})
    with threads(1):
        found = bound.run(x=x)
    check_agreement(found, expected, "float64", f"seed {seed}")
    with threads(2):
        check_same(bound.run(x=x), found)
