"""Rules, layers, networks, and the functions of torch and JAX: each is checked with one argument."""

# ruff: noqa: RET504 - rules return names

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad import (
    GELU,
    BatchNorm,
    CheckError,
    Dropout,
    Embedding,
    Huber,
    Layer,
    LayerNorm,
    Linear,
    MeanSquaredError,
    Network,
    ReLU,
    Residual,
    RuleError,
    Sequential,
    ShapeError,
    Softmax,
    SoftmaxCrossEntropy,
    Standardise,
    Tanh,
    check,
)
from handgrad.checking import Report
from handgrad.checking.input_draws import draw_for
from handgrad.checking.interfaces.neural_counterparts import NEURAL
from handgrad.checking.interfaces.own_objects import draw_rows
from handgrad.layers import Graph, Parameter, Value
from handgrad.rules import RULES, Rule, Target, embedding, rule, softmax_cross_entropy
from handgrad.rules.primitives import one_hot, rows

OWN = [each for each in RULES.values() if not each.constant]

LAYERS = [
    Linear(7, 3),
    ReLU(),
    Softmax(),
    BatchNorm(),
    LayerNorm(),
    Dropout(0.3),
    Standardise(),
    Embedding(9, 4),
    Residual(Linear(5, 5), Tanh()),
    Sequential(Linear(4, 3), GELU()),
]

NETWORKS = [
    Network(Linear(6, 5), BatchNorm(), ReLU(), Dropout(), Linear(5, 4), loss=SoftmaxCrossEntropy()),
    Network(Linear(6, 5), LayerNorm(), Tanh(), Linear(5, 2), loss=Huber()),
    Network(Linear(6, 3), loss=SoftmaxCrossEntropy(targets="probabilities")),
    Network(Embedding(20, 5), Linear(5, 2), loss=MeanSquaredError(), inputs=(3,)),
]


def first(report: Report) -> tuple[str, str]:
    assert report.verdict == "wrong", str(report)
    return report.findings[0].code, report.findings[0].argument


@pytest.mark.parametrize("own", OWN, ids=lambda each: each.name)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_rule_is_right(own: Rule, seed: int) -> None:
    """At inputs that it draws itself, of every kind its signature has."""
    report = check(own, seed=seed)
    assert report.verdict == "right", str(report)
    assert report.subject.partition("(")[0] == own.name
    assert [each.name for each in report.arguments] == list(own.differentiable)


@rule("... -> ...")
def bent(x, *, alpha=1.0, slope=0.25, power=1):
    y = np.where(x > 0, slope * x**power, alpha * np.expm1(x))
    return y


@bent.backward
def bent_backward(dy, x):
    dx = dy * np.where(x > 0, 0.25, np.exp(x))
    return dx


@rule("... -> ...")
def picky(x, *, order=2.0, scale=1.0):
    y = x * np.sqrt(order - 1.5) * scale
    return y


@picky.backward
def picky_backward(dy, *, order):
    dx = dy * np.sqrt(order - 1.5)
    return dx


def test_a_rule_is_checked_at_other_options_than_its_defaults() -> None:
    """At a default of 1 a backward without it would be right, and so would one with a default written into it."""
    report = check(bent)
    assert report.subject == "bent(alpha=0.7, slope=0.1875)"  # whole numbers may be axes and counts
    assert report.verdict == "wrong"
    assert check(bent, inputs=(np.array([2.0, 3.0]),)).verdict == "wrong"
    assert check(bent, inputs=(np.array([-2.0, -3.0]),)).verdict == "wrong"


@rule("... -> ...")
def counting(x, *, end=2.6, scale=1.0):
    y = scale * x + np.arange(0.0, end)  # three numbers, or two
    return y


@counting.backward
def counting_backward(dy):
    dx = dy * 1
    return dx


@pytest.mark.parametrize("own", [picky, counting])
def test_options_that_forward_refuses_stay_at_their_defaults(own: Rule) -> None:
    """Here the root of a negative number, and a size that does not fit; the others are changed all the same."""
    report = check(own)
    assert (report.subject, report.verdict) == (f"{own.name}(scale=0.75)", "wrong")


def test_a_number_that_is_1_by_default_is_no_proof_for_others() -> None:
    """Nor one that is 0; it is said, until it is given in the inputs."""

    def forward(x: Any, alpha: float = 1.0, beta: float = 0.0, gamma: float = 0.5, axis: int = 0) -> Any:
        return alpha * np.exp(gamma * x) + beta * x.sum(axis)

    def backward(
        dy: Any, x: Any, alpha: float = 1.0, beta: float = 0.0, gamma: float = 0.5, axis: int = 0
    ) -> Any:
        return {"x": dy * gamma * np.exp(gamma * x)}

    x = np.array([[0.5, -1.0], [2.0, 0.25]])
    report = check(forward, backward, {"x": x})
    assert report.verdict == "right"
    assert report.not_proved == (
        "alpha is 1, its default: a factor or a term of it left out would not show; "
        "give another alpha in the inputs",
        "beta is 0, its default: a factor or a term of it left out would not show; "
        "give another beta in the inputs",
    )
    assert check(forward, backward, {"x": x, "alpha": 1.0, "beta": 0.0}).not_proved == (
        "backward returns no dalpha and dbeta, and none was checked",
        "alpha is 1: a factor or a term of it left out would not show; give another alpha",
        "beta is 0: a factor or a term of it left out would not show; give another beta",
    )
    for given in ({"alpha": 0.5}, {"beta": 2.0}):
        assert check(forward, backward, {"x": x, **given}).verdict == "wrong"


@rule("N... I, I -> N... I")
def gained(x, gamma):
    y = x * gamma
    return y


@gained.backward
def gained_backward(dy, x):
    dx = dy * 1  # gamma is forgotten
    dgamma = rows(dy * x).sum(axis=0)
    return dx, dgamma


@dataclass(frozen=True, eq=False, repr=False)
class Gain(Layer):
    """A layer whose parameter begins with ones."""

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(gained, x, Parameter((4,), "ones"))

    def input_shape(self) -> tuple[int, ...]:  # noqa: D102 - as in Layer
        return (4,)


@pytest.mark.parametrize("thing", [Gain(), Network(Linear(3, 4), Gain(), loss=MeanSquaredError())], ids=repr)
def test_a_forgotten_gain_is_wrong_even_where_it_is_1(thing: Layer | Network) -> None:
    """Parameters that are one number everywhere are taken beside it; others are as they are."""
    before = thing.parameters["gamma1"].copy() if isinstance(thing, Network) else None
    report = check(thing)
    assert report.verdict == "wrong"
    assert report.findings[0].argument in ("x", "W1", "b1")
    assert not any("everywhere" in note for note in report.not_proved)
    if isinstance(thing, Network):
        np.testing.assert_array_equal(thing.parameters["gamma1"], before)


@rule("N... F, F -> N... F")
def centred(x, beta):
    y = x - rows(x).mean(axis=0) + beta
    return y


@centred.backward
def centred_backward(dy):
    dx = dy - dy.mean(axis=0)  # over the first axis of a stack only
    dbeta = rows(dy).sum(axis=0)
    return dx, dbeta


@rule("N... I, I O -> N... O")
def for_matrices(x, W):
    z = x @ W
    return z


@for_matrices.backward
def for_matrices_backward(dz, x, W):
    dx = dz @ W.T
    dW = x.T @ dz  # of matrices only
    return dx, dW


def test_axes_with_dots_are_two_where_a_rule_can_be_computed_for_two() -> None:
    """So that a sum over the first of them only is wrong."""
    report = check(centred)
    assert [each.verdict for each in report.arguments] == ["wrong", "right"]
    assert [each.shape for each in report.arguments] == [(5, 3, 7), (7,)]
    report = check(for_matrices)
    assert report.verdict == "right"
    assert [each.shape for each in report.arguments] == [(5, 3), (3, 7)]


@rule("... -> ...")
def relu6(z):
    a = np.minimum(np.maximum(z, 0), 6)
    return a


@relu6.backward
def relu6_backward(da, z):
    dz = da * (z > 0)  # nor beyond 6
    return dz


@rule("... -> ...")
def root(z):
    a = np.sqrt(9 - z)  # of nothing beyond 9
    return a


@root.backward
def root_backward(da, a):
    dz = -da / (2 * a)
    return dz


@pytest.mark.parametrize("seed", range(5))
def test_values_far_from_0_are_among_those_a_rule_is_checked_at(seed: int) -> None:
    """Of both signs, where forward is finite there."""
    assert check(relu6, seed=seed).verdict == "wrong"
    assert check(root, seed=seed).verdict == "right"


@rule("... -> ...")
def window(x, *, low=0.0, high=1.0):
    y = np.where((x > low) & (x < high), 3 * x, 0 * x)
    return y


@window.backward
def window_backward(dy, x, *, low, high):
    dx = 2 * dy * (x > low) * (x < high)
    return dx


@rule("N... I, I O -> N... O")
def steep(x, W):
    z = x @ W
    y = np.where(z > 0, np.exp(z), 1 + z)
    return y


@steep.backward
def steep_backward(dy, x, W, z, y):
    dz = dy * np.where(z > 0, y, 0.5)  # the slope is 1 below 0
    dx = dz @ W.T
    dW = rows(x).T @ rows(dz)
    return dx, dW


def test_what_is_changed_to_see_more_hides_nothing() -> None:
    """Options stay apart, and large products of large values do not drown the others."""
    assert check(window).verdict == "wrong"
    assert check(steep).verdict == "wrong"


@rule("N... I, I O -> N... O")
def einsum_of_matrices(x, W):
    z = np.einsum("ni,io->no", x, W)
    return z


@einsum_of_matrices.backward
def einsum_of_matrices_backward(dz, x, W):
    dx = dz @ W.T
    dW = x.T @ dz
    return dx, dW


@rule("... -> ...")
def in_fours(x, *, shift=10.0):
    y = np.sqrt(x.reshape(4, -1) + shift).reshape(x.shape)
    return y


@in_fours.backward
def in_fours_backward(dy, y):
    dx = dy / (2 * y)
    return dx


@rule("N... A, A B, B C, C D, D E -> N... E")
def chain(x, P, Q, R, S):
    y = x @ P @ Q @ R @ S
    return y


@chain.backward
def chain_backward(dy, x, P, Q, R, S):
    dx = dy @ (P @ Q @ R @ S).T
    dP = rows(x).T @ rows(dy) @ (Q @ R @ S).T
    dQ = rows(x @ P).T @ rows(dy) @ (R @ S).T
    dR = rows(x @ P @ Q).T @ rows(dy) @ S.T
    dS = rows(x @ P @ Q @ R).T @ rows(dy)
    return dx, dP, dQ, dR, dS


def test_rules_that_cannot_be_computed_everywhere_are_checked_where_they_can() -> None:
    """For matrices only, at the caller's inputs only, or with five letters."""
    assert check(einsum_of_matrices).verdict == "right"
    with pytest.raises(CheckError, match="in_fours cannot be computed at the sizes that are drawn for it"):
        check(in_fours)
    report = check(in_fours, inputs={"x": np.array([[-8.0, 1.0], [0.5, 3.0]])})
    assert (report.subject, report.verdict) == ("in_fours", "right")
    report = check(in_fours, inputs={"x": np.array([[2.0, 1.0], [0.5, 3.0]])})
    assert (report.subject, report.verdict) == ("in_fours(shift=7)", "right")
    assert check(chain).verdict == "right"


@rule("N... I, I -> N... I")
def rooted(x, g):
    y = x * np.sqrt(g)
    return y


@rooted.backward
def rooted_backward(dy, x, g):
    dx = dy * np.sqrt(g)
    dg = rows(dy * x).sum(axis=0) / (2 * np.sqrt(g))
    return dx, dg


@dataclass(frozen=True, eq=False, repr=False)
class Rooted(Layer):
    """A layer whose parameter must not be below 0."""

    start: float = 0.1

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(rooted, x, Parameter((4,), np.full(4, self.start)))

    def input_shape(self) -> tuple[int, ...]:  # noqa: D102 - as in Layer
        return (4,)


@pytest.mark.parametrize("start", [0.1, 1.0])
def test_parameters_are_changed_within_their_sign(start: float) -> None:
    """A parameter that has to be positive stays so."""
    assert check(Rooted(start)).verdict == "right"
    network = Network(Linear(3, 4), Rooted(start), loss=MeanSquaredError())
    assert check(network).verdict == "right"


@rule("N... C -> N... C")
def root_mean_square(x):
    m = (x * x).mean(axis=-1, keepdims=True)
    y = x / np.sqrt(m)
    return y


@root_mean_square.backward
def root_mean_square_backward(dy, x, y, m):
    s = (dy * y).sum(axis=-1, keepdims=True) / x.shape[0]  # as many as there are rows
    dx = (dy - y * s) / np.sqrt(m)
    return dx


@dataclass(frozen=True, eq=False, repr=False)
class RootMeanSquare(Layer):
    """A layer of five features: as many as the first number of rows that is drawn elsewhere."""

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(root_mean_square, x)

    def input_shape(self) -> tuple[int, ...]:  # noqa: D102 - as in Layer
        return (5,)


@pytest.mark.parametrize(
    "thing",
    [root_mean_square, RootMeanSquare(), Network(Linear(3, 5), RootMeanSquare(), loss=MeanSquaredError())],
    ids=repr,
)
def test_no_two_sizes_are_alike(thing: Rule | Layer | Network) -> None:
    """Else a division by the wrong one is right."""
    assert check(thing).verdict == "wrong"


def test_equal_inputs_are_no_proof_that_each_has_its_own_gradient() -> None:
    """As in an attention of a sequence to itself: other inputs are drawn, at which one taken for the other shows."""
    q = np.random.default_rng(0).normal(size=(4, 3))
    report = check(lambda q, k: q @ k.T, lambda g, q, k: {"q": g @ q, "k": g.T @ k}, {"q": q, "k": q.copy()})
    assert report.verdict == "wrong"
    assert {result.name for result in report.arguments if result.verdict == "wrong"} == {"q", "k"}


def test_a_gradient_of_whole_numbers_is_not_checked_and_said_so() -> None:
    """It may be wrong: as numbers of floating point it is seen."""
    W = np.random.default_rng(0).normal(size=(3, 3))
    x = np.array([[1, 2, 3], [4, 5, 7]])
    given = lambda x: check(lambda x, W: x @ W, lambda g, x, W: {"x": g @ W, "W": x.T @ g}, {"x": x, "W": W})  # noqa: E731
    assert given(x).not_proved == ("x came as whole numbers, and no dx was checked; give x.astype(float)",)
    assert given(x.astype(float)).verdict == "wrong"


def test_a_rule_is_checked_at_inputs_of_the_callers() -> None:
    """By name, or in the rule's order."""
    x, W = np.ones((2, 3)), np.eye(3)
    assert check(RULES["linear_without_bias"], inputs={"x": x, "W": W}).arguments[0].shape == (2, 3)
    assert check(RULES["linear_without_bias"], inputs=(x, W)).arguments[1].shape == (3, 3)


def test_draws_are_of_the_kinds_that_a_rule_names() -> None:
    """Shares add up to 1, indices lie in their table, every mask keeps some and drops some, and all sizes differ."""
    drawn = draw_for(softmax_cross_entropy, np.random.default_rng(0))
    np.testing.assert_allclose(drawn["q"].sum(axis=-1), 1)
    drawn = draw_for(embedding, np.random.default_rng(0))
    assert drawn["i"].dtype.kind == "i"
    assert drawn["i"].max() < len(drawn["E"])
    kept = [draw_for(RULES["dropout"], np.random.default_rng(seed))["kept"] for seed in range(20)]
    assert {(mask.any(), mask.all()) for mask in kept} == {(True, False)}
    assert np.all(np.any(kept, axis=0) & ~np.all(kept, axis=0))  # each entry is kept, and dropped
    sizes = [
        size for value in draw_for(RULES["linear"], np.random.default_rng(0)).values() for size in value.shape
    ]
    assert sorted(set(sizes)) == [3, 5, 7]


@rule("N... I, I C, N... -> N...")
def classes_missed(x, W, t: Target):
    z = x @ W
    q = one_hot(t, 2 * z)
    e = ((z - q) ** 2).sum(axis=-1)
    return e


@classes_missed.backward
def classes_missed_backward(de, x, W, z):
    dz = 2 * z * de[..., None]
    dx = dz @ W.T
    dW = rows(x).T @ rows(dz)
    return dx, dW


def test_a_target_that_forward_reads_as_class_numbers_is_drawn_as_such() -> None:
    """Any other number is of no class, and where no row has one, a backward that forgets them is right."""
    drawn = [draw_for(classes_missed, np.random.default_rng(seed))["t"] for seed in range(20)]
    assert {t.shape for t in drawn} == {(5,)}
    assert {*np.ravel(drawn).tolist()} == set(range(7))
    assert [each.verdict for each in check(classes_missed).arguments] == ["wrong", "wrong"]


@pytest.mark.parametrize("network", NETWORKS, ids=repr)
def test_rows_are_drawn_as_a_network_takes_them(network: Network) -> None:
    """As many as are asked for; what training checks of rows and targets holds of them."""
    x, t = draw_rows(network, 6, np.random.default_rng(0))
    assert len(x) == 6
    assert network.check_rows(x).shape == x.shape
    assert len(network.check_targets(t, 6)) == 6


@rule("N I, I O, O -> N O")
def biased(x, W, b):
    z = x @ W + b
    return z


@biased.backward
def biased_backward(dz, x, W):
    dx = dz @ W.T
    dW = x.T @ dz
    db = dz.mean(axis=0)
    return dx, dW, db


@rule("... -> ...")
def log_squared(z):
    a = np.log(z) ** 2
    return a


@log_squared.backward
def log_squared_backward(da, z):
    dz = da * 2 * np.log(z) / z
    return dz


@rule("... -> ...")
def without_backward(z):
    a = z * z
    return a


def test_a_rule_of_ones_own_is_checked() -> None:
    """A mistake in it has a name; inputs are drawn in its domain; without a backward it says so."""
    assert first(check(biased)) == ("batch-mean-vs-sum", "b")
    assert check(log_squared).verdict == "right"
    with pytest.raises(RuleError, match="no backward is written"):
        check(without_backward)


@pytest.mark.parametrize("layer", LAYERS, ids=repr)
def test_every_kind_of_layer_is_right(layer: Layer) -> None:
    """The gradients of its input and of its parameters, for any upstream gradient."""
    report = check(layer)
    assert report.verdict == "right", str(report)
    assert report.subject == repr(layer)
    assert report.arguments[0].name == ("E1" if isinstance(layer, Embedding) else "x")
    assert not any(said.startswith("x is 0") or "is zero everywhere" in said for said in report.not_proved)


@pytest.mark.parametrize("network", NETWORKS, ids=repr)
def test_a_whole_network_is_right_parameter_by_parameter(network: Network) -> None:
    """As training computes the gradients, dropout and all; the network is left as it was."""
    before = {name: array.copy() for name, array in network.arrays.items()}
    report = check(network)
    assert report.verdict == "right", str(report)
    assert [each.name for each in report.arguments] == list(network.parameters)
    for name, array in network.arrays.items():
        np.testing.assert_array_equal(array, before[name])


class BiasedLayer(Layer):
    """A layer of one's own, with a rule that is wrong."""

    def connect(self, graph: Any, x: Any) -> Any:
        """Apply it."""
        from handgrad.layers import Parameter

        weights = Parameter((6, 5), np.eye(6, 5) + 0.1)
        return graph.apply(biased, x, weights, Parameter((5,), np.ones(5)), layer=self)


def test_a_wrong_rule_in_a_network_is_placed_at_its_parameter() -> None:
    """The line of the program is the place."""
    network = Network(BiasedLayer(), Tanh(), Linear(5, 3), loss=SoftmaxCrossEntropy(), inputs=6)
    report = check(network)
    assert first(report) == ("batch-mean-vs-sum", "b1")
    assert {each.name for each in report.arguments if each.verdict == "wrong"} == {"b1"}


def test_a_network_is_checked_at_rows_of_the_callers() -> None:
    """They are checked as training checks them."""
    network = NETWORKS[2]
    x, t = np.ones((4, 6)), np.full((4, 3), 1 / 3)
    assert check(network, inputs={"x": x, "t": t}).verdict == "right"
    with pytest.raises(CheckError, match="rows x and targets t"):
        check(network, inputs={"x": x})
    with pytest.raises(ShapeError, match=r"rows of \(5,\)"):
        check(network, inputs={"x": np.ones((4, 5)), "t": t})
    with pytest.raises(CheckError, match="has no loss"):
        check(Network(Linear(2, 2)))


def test_a_second_backward_is_refused() -> None:
    """A rule has its own."""
    with pytest.raises(CheckError, match="has a backward of its own"):
        check(biased, lambda g, x, W, b: g)


# --------------------------------------------------------------------------------------------------- peers


@pytest.fixture(scope="session")
def jax() -> Any:
    """JAX, for tests marked ``peers``."""
    import jax

    return jax


def inputs() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"x": rng.normal(size=(5, 4)), "W": rng.normal(size=(4, 4)), "b": rng.normal(size=4)}


MISTAKES = {
    "right": (lambda g, x, W: (g @ W.T, x.T @ g, g.sum(0)), None),
    "sign": (lambda g, x, W: (-g @ W.T, x.T @ g, g.sum(0)), ("wrong-sign", "x")),
    "factor": (lambda g, x, W: (g @ W.T, 2 * x.T @ g, g.sum(0)), ("constant-factor", "W")),
    "rows": (lambda g, x, W: (g @ W.T, x.T @ g, g.mean(0)), ("batch-mean-vs-sum", "b")),
    "operand": (lambda g, x, W: (g @ W, x.T @ g, g.sum(0)), ("transposed", "x")),
    "result": (lambda g, x, W: (g @ W.T, g.T @ x, g.sum(0)), ("transposed", "W")),
    "zero": (lambda g, x, W: (g @ W.T, 0 * W, g.sum(0)), ("zero-gradient", "W")),
}


@pytest.mark.peers
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_torch_function_is_checked(torch: Any, mistake: str) -> None:
    """The same report, with the same names."""
    gradients, expected = MISTAKES[mistake]

    class Layer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, W, b):
            ctx.save_for_backward(x, W)
            return torch.matmul(x, W) + b

        @staticmethod
        def backward(ctx, grad_output):
            return gradients(grad_output, *ctx.saved_tensors)

    report = check(Layer, inputs=inputs())
    assert report.subject == "Layer"
    assert report.verdict == "right" if expected is None else first(report) == expected
    if mistake == "operand":
        assert "(g @ W.T, x.T @ g, g.sum(0))" in report.findings[0].repair  # where its author wrote it


@pytest.mark.peers
def test_a_helper_in_another_module_is_traced(
    torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torch's own functions are called, wherever from."""
    text = "import torch\n\ndef affine(x, W):\n    return torch.nn.functional.silu(torch.matmul(x, W))\n"
    (tmp_path / "affine_helper.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    affine = importlib.import_module("affine_helper").affine

    class Layer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, W):
            ctx.save_for_backward(x, W)
            return affine(x, W)

        @staticmethod
        def backward(ctx, g):
            x, W = ctx.saved_tensors
            s = torch.sigmoid(x @ W)
            dz = g * (s + x @ W * s * (1 - s))
            return dz @ W, x.T @ dz

    given = inputs()
    assert first(check(Layer, inputs={"x": given["x"], "W": given["W"]})) == ("transposed", "x")


@pytest.mark.peers
def test_a_number_is_differentiated_too(torch: Any) -> None:
    """An array or a tensor without axes; a float is an option, as torch's own are."""

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x, scale)
            return x * scale

        @staticmethod
        def backward(ctx, g):
            x, scale = ctx.saved_tensors
            return g * scale, 2 * (g * x).sum()

    report = check(Scaled, inputs={"x": np.array([1.0, -2.0]), "scale": np.array(0.5)})
    assert [each.name for each in report.arguments] == ["x", "scale"]
    assert first(report) == ("constant-factor", "scale")


@pytest.mark.peers
def test_inputs_may_be_tensors(torch: Any) -> None:
    """With a gradient or without, of any type: they are checked in float64."""

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    x = torch.linspace(-1, 2, 3)
    assert check(Square, inputs={"x": x}).verdict == "right"
    assert check(Square, inputs=(x.clone().requires_grad_(),)).verdict == "right"
    assert check(Square, inputs={"x": x.bfloat16()}).arguments[0].error_bound < 1e-7
    with pytest.raises(CheckError, match="the input 'x' is complex"):
        check(Square, inputs={"x": x * 1j})


AXES: dict[str, list[tuple[Any, ...]]] = {
    "softmax": [(0,), (1,)], "log_softmax": [(0,), (1,)], "logsumexp": [(0,), (1, True)],
}  # fmt: skip


@pytest.mark.peers
@pytest.mark.parametrize("name", NEURAL)
def test_what_stands_in_for_torch_gives_the_same(torch: Any, name: str) -> None:
    """Along each axis, where there is one, which may be kept."""
    x = np.random.default_rng(0).normal(size=(3, 4))
    own = getattr(torch, name, None) or getattr(torch.nn.functional, {"swish": "silu"}.get(name, name))
    for axes in AXES.get(name, [()]):
        wanted = own(torch.from_numpy(x), *axes).numpy()
        np.testing.assert_allclose(NEURAL[name](x, *axes), wanted, rtol=1e-12, strict=True)


@pytest.mark.peers
def test_a_torch_function_of_several_outputs_and_a_flag(torch: Any) -> None:
    """Flags stay numbers; a path of the second output that is left out is found."""

    class Pair(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.save_for_backward(x)
            ctx.k = k
            return x * k, x.sin()

        @staticmethod
        def backward(ctx, g, h):
            (x,) = ctx.saved_tensors
            return g * ctx.k + (h * x.cos() if ctx.k > 2 else 0), None

    x = np.linspace(-1, 1, 3) + 0.1
    assert check(Pair, inputs=(x, 3)).verdict == "right"
    assert check(Pair, inputs={"x": x, "k": 2}).verdict == "wrong"


@pytest.mark.peers
def test_a_torch_function_keeps_the_contract(torch: Any) -> None:
    """A gradient changed in place, and one of another shape, which torch itself refuses."""

    class InPlace(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(min=0)

        @staticmethod
        def backward(ctx, g):
            g[ctx.saved_tensors[0] < 0] = 0
            return g

    class Swapped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, W):
            ctx.save_for_backward(x, W)
            return x @ W

        @staticmethod
        def backward(ctx, g):
            x, W = ctx.saved_tensors
            return x.T @ g, g @ W.T

    given = inputs()
    report = check(InPlace, inputs={"x": given["x"]})
    assert report.verdict == "right, but"
    assert (report.findings[0].code, report.findings[0].argument) == ("stale-or-mutated-state", "x")
    report = check(Swapped, inputs={"x": given["x"], "W": given["W"]})
    assert report.findings[0].code == "swapped-gradients"
    assert "of another shape" in str(report)


@pytest.mark.peers
def test_what_torch_raises_is_one_message(torch: Any) -> None:
    """With the user's own line as its place."""

    class Raises(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g @ torch.ones(7, 7, dtype=g.dtype)

    with pytest.raises(CheckError, match="backward raised RuntimeError") as caught:
        check(Raises, inputs=(np.ones(3),))
    assert "return g @ torch.ones(7, 7" in str(caught.value)
    with pytest.raises(CheckError, match="Raises: the inputs are missing"):
        check(Raises)


@pytest.mark.peers
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_jax_function_is_checked(jax: Any, mistake: str) -> None:
    """In float64, whatever JAX is set to; the mistake is placed in the user's source."""
    gradients, expected = MISTAKES[mistake]

    @jax.custom_vjp
    def layer(x, W, b):
        return jax.numpy.matmul(x, W) + b

    layer.defvjp(lambda x, W, b: (layer(x, W, b), (x, W)), lambda kept, g: gradients(g, *kept))
    report = check(layer, inputs=tuple(inputs().values()))
    assert report.subject == "layer"
    if expected is None:
        assert report.verdict == "right", str(report)
        return
    assert (report.stopped, *first(report)) == ("", *expected)
    if mistake == "operand":
        assert "(g @ W.T, x.T @ g, g.sum(0))" in report.findings[0].repair


@pytest.mark.peers
def test_what_jax_raises_is_one_message(jax: Any) -> None:
    """As when a gradient is missing."""

    @jax.custom_vjp
    def product(x, y):
        return x * y

    product.defvjp(lambda x, y: (x * y, (x, y)), lambda kept, g: (g * kept[1],))
    with pytest.raises(CheckError, match="backward raised TypeError"):
        check(product, inputs=(np.ones(2), np.ones(2)))
