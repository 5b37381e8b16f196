"""Losses as a network takes them, with everything they can be given, against PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import (
    BinaryCrossEntropy,
    HalfSquaredError,
    Huber,
    Linear,
    Loss,
    MeanSquaredError,
    Network,
    Poisson,
    ReLU,
    SoftmaxCrossEntropy,
)
from handgrad.errors import ConfigurationError, DataError, ShapeError

from ..rules.checks import relative_error
from .networks import check_slopes, evaluate, step

Array = NDArray[Any]

ROWS, TIMES, FEATURES, OUTPUTS = 11, 3, 5, 4
CLASS_WEIGHT = [0.5, 2.0, 0.0, 1.25]

CROSS_ENTROPIES = [
    SoftmaxCrossEntropy(targets=targets, smoothing=smoothing, ignored=ignored, class_weight=class_weight)
    for targets, smoothing, ignored, class_weight in product(
        ("classes", "probabilities"), (0.0, 0.2), (None, 1, -100), (None, CLASS_WEIGHT)
    )
    if targets == "classes" or ignored is None
]

OTHERS: dict[str, tuple[Loss, Callable[..., Any]]] = {
    "half-squared-error": (
        HalfSquaredError(),
        lambda F, z, t: F.mse_loss(z, t, reduction="none").sum(-1) / 2,
    ),
    "mean-squared-error": (MeanSquaredError(), lambda F, z, t: F.mse_loss(z, t, reduction="none").mean(-1)),
    "huber": (Huber(), lambda F, z, t: F.huber_loss(z, t, reduction="none").mean(-1)),
    "huber-delta": (Huber(0.3), lambda F, z, t: F.huber_loss(z, t, reduction="none", delta=0.3).mean(-1)),
    "half-squared-error-mean": (
        HalfSquaredError("mean"),
        lambda F, z, t: F.mse_loss(z, t, reduction="none").sum(-1) / 2,
    ),
    "huber-sum": (Huber(0.3, "sum"), lambda F, z, t: F.huber_loss(z, t, reduction="none", delta=0.3).sum(-1)),
    "poisson": (
        Poisson(),
        lambda F, z, t: (F.poisson_nll_loss(z, t, reduction="none") + perfect(t)).mean(-1),
    ),
    "poisson-sum": (
        Poisson("sum"),
        lambda F, z, t: (F.poisson_nll_loss(z, t, reduction="none") + perfect(t)).sum(-1),
    ),
    "binary-sum-smoothed": (
        BinaryCrossEntropy(outputs="sum", smoothing=0.2),
        lambda F, z, t: F.binary_cross_entropy_with_logits(z, 0.8 * t + 0.1, reduction="none").sum(-1),
    ),
    "binary": (
        BinaryCrossEntropy(),
        lambda F, z, t: F.binary_cross_entropy_with_logits(z, t, reduction="none").mean(-1),
    ),
    "binary-one-weight": (
        BinaryCrossEntropy(positive_weight=2.5),
        lambda F, z, t: F.binary_cross_entropy_with_logits(
            z, t, reduction="none", pos_weight=z.new_tensor([2.5])
        ).mean(-1),
    ),
    "binary-weights": (
        BinaryCrossEntropy(positive_weight=[0.5, 1, 2, 7]),
        lambda F, z, t: F.binary_cross_entropy_with_logits(
            z, t, reduction="none", pos_weight=z.new_tensor([0.5, 1, 2, 7])
        ).mean(-1),
    ),
}
"""Losses of each row by PyTorch's functions; those of `HalfSquaredError` are added up where it says so."""


def perfect(t: Any) -> Any:
    """Return what the deviance has and PyTorch's loss leaves out: t log t - t."""
    return t.xlogy(t) - t


RANKS = pytest.mark.parametrize("rank", [2, 3], ids=["rank2", "rank3"])
WEIGHTED = pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])


def network_and_rows(loss: Loss, rank: int) -> tuple[Network, Array]:
    lead = (ROWS, TIMES)[: rank - 1]
    network = Network(Linear(FEATURES, OUTPUTS), loss=loss, inputs=(*lead[1:], FEATURES), dtype="float64")
    rng = np.random.default_rng(0)
    network.parameters["b1"][...] = rng.normal(size=OUTPUTS)
    return network, rng.normal(size=(*lead, FEATURES))


def targets_of(loss: Loss, lead: tuple[int, ...]) -> Array:
    """Draw targets of the kind a loss takes, ignored classes among them."""
    rng = np.random.default_rng(1)
    if getattr(loss, "targets", None) == "probabilities":
        return rng.dirichlet(np.ones(OUTPUTS), lead)
    if isinstance(loss, SoftmaxCrossEntropy):
        t = rng.integers(0, OUTPUTS, lead)
        t[1::3] = 1 if loss.ignored is None else loss.ignored
        return t
    return rng.random((*lead, OUTPUTS))


def row_weights(lead: tuple[int, ...]) -> Array:
    w = np.random.default_rng(2).uniform(0.2, 3, lead)
    w[0] = 0
    return w


def check_against_torch(torch: Any, network: Network, expected: Callable[[Any], Any], **given: Any) -> None:
    """Compare the loss and the gradients with autograd's, ``expected`` being the loss of the logits."""
    W, b = (torch.tensor(network.parameters[name], requires_grad=True) for name in ("W1", "b1"))
    loss = expected(torch.tensor(given["x"]) @ W + b)
    loss.backward()
    found = step(network, **given)
    assert relative_error(found["loss"], loss.detach().numpy()) <= 1e-12
    assert evaluate(network, **given) == pytest.approx(
        loss.item() / (found["count"] if getattr(network.loss, "reduction", "") == "sum" else 1), rel=1e-12
    )
    assert relative_error(found["dW1"], W.grad.numpy()) <= 1e-12
    assert relative_error(found["db1"], b.grad.numpy()) <= 1e-12


@pytest.mark.peers
@RANKS
@pytest.mark.parametrize("loss", CROSS_ENTROPIES, ids=repr)
def test_cross_entropy_is_that_of_torch(torch: Any, loss: SoftmaxCrossEntropy, rank: int) -> None:
    """Smoothing, ignored classes and class weights, in every combination, are torch.nn.CrossEntropyLoss's."""
    network, x = network_and_rows(loss, rank)
    t = targets_of(loss, x.shape[:-1])
    peer = torch.nn.CrossEntropyLoss(
        weight=None if loss.class_weight is None else torch.tensor(loss.class_weight, dtype=torch.float64),
        ignore_index=-100 if loss.ignored is None else loss.ignored,
        label_smoothing=loss.smoothing,
    )
    answers = torch.tensor(t).movedim(-1, 1) if loss.targets == "probabilities" else torch.tensor(t)
    check_against_torch(torch, network, lambda z: peer(z.movedim(-1, 1), answers), x=x, t=t)


@pytest.mark.peers
@RANKS
@pytest.mark.parametrize("loss", CROSS_ENTROPIES, ids=repr)
def test_weighted_cross_entropy_is_a_weighted_mean(torch: Any, loss: SoftmaxCrossEntropy, rank: int) -> None:
    """With row weights it is Σ w l / Σ w over the rows that count, each counted as often as its class."""
    network, x = network_and_rows(loss, rank)
    t, w = targets_of(loss, x.shape[:-1]), row_weights(x.shape[:-1])
    class_weight = None if loss.class_weight is None else torch.tensor(loss.class_weight, dtype=torch.float64)
    peer = torch.nn.CrossEntropyLoss(
        weight=class_weight,
        ignore_index=-100 if loss.ignored is None else loss.ignored,
        label_smoothing=loss.smoothing,
        reduction="none",
    )
    counted = w
    if loss.targets == "classes":
        kept = t != loss.ignored
        counted = w * kept * np.array(loss.class_weight or np.ones(OUTPUTS))[np.where(kept, t, 0)]
    answers = torch.tensor(t).movedim(-1, 1) if loss.targets == "probabilities" else torch.tensor(t)

    def expected(z: Any) -> Any:
        return (peer(z.movedim(-1, 1), answers) * torch.tensor(w)).sum() / counted.sum()

    check_against_torch(torch, network, expected, x=x, t=t, w=w)


@pytest.mark.peers
@RANKS
@WEIGHTED
@pytest.mark.parametrize("kind", OTHERS)
def test_other_losses_are_those_of_torch(torch: Any, kind: str, rank: int, weighted: bool) -> None:
    """Squared errors, Huber and yes-no answers, averaged over the rows with or without weights."""
    loss, row_loss = OTHERS[kind]
    network, x = network_and_rows(loss, rank)
    t = targets_of(loss, x.shape[:-1])
    w = row_weights(x.shape[:-1]) if weighted else np.ones(x.shape[:-1])
    divisor = 1 if getattr(loss, "reduction", "") == "sum" else w.sum()

    def expected(z: Any) -> Any:
        return (row_loss(torch.nn.functional, z, torch.tensor(t)) * torch.tensor(w)).sum() / divisor

    check_against_torch(torch, network, expected, x=x, t=t, **({"w": w} if weighted else {}))


def by_definition(loss: SoftmaxCrossEntropy, z: Array, t: Array, w: Array) -> float:
    """Return the weighted cross-entropy, row by row and class by class."""
    class_weight, total, count = loss.class_weight or [1] * OUTPUTS, 0.0, 0.0
    for row, target, weight in zip(z, t, w, strict=True):
        if loss.targets == "classes" and target == loss.ignored:
            continue
        share = target if loss.targets == "probabilities" else np.eye(OUTPUTS)[target]
        logarithms = np.log(np.exp(row) / np.exp(row).sum())
        for c in range(OUTPUTS):
            smooth = (1 - loss.smoothing) * share[c] + loss.smoothing / OUTPUTS
            total -= weight * class_weight[c] * smooth * logarithms[c]
        count += weight * (class_weight[target] if loss.targets == "classes" else 1)
    return total / count


@WEIGHTED
@pytest.mark.parametrize("loss", CROSS_ENTROPIES, ids=repr)
def test_cross_entropy_is_its_definition(loss: SoftmaxCrossEntropy, weighted: bool) -> None:
    """Every combination, summed up in plain Python, and its gradients by central differences."""
    network, x = network_and_rows(loss, 2)
    t, w = targets_of(loss, (ROWS,)), row_weights((ROWS,)) if weighted else np.ones(ROWS)
    given = {"x": x, "t": t, **({"w": w} if weighted else {})}
    assert evaluate(network, **given) == pytest.approx(
        by_definition(loss, network.output(x), t, w), rel=1e-12
    )
    check_slopes(network, **given)


@pytest.mark.parametrize("smoothing", [0.0, 0.2], ids=["", "smoothed"])
@pytest.mark.parametrize("positive", [None, 2.5, (0.5, 1, 2, 7)], ids=["plain", "one-weight", "weights"])
def test_binary_cross_entropy_is_its_definition(
    positive: float | tuple[float, ...] | None, smoothing: float
) -> None:
    """-positive q log σ - (1 - q) log (1 - σ) of smoothed answers q, averaged over outputs and rows."""
    loss = BinaryCrossEntropy(positive_weight=positive, smoothing=smoothing)
    network, x = network_and_rows(loss, 2)
    t, share = targets_of(loss, (ROWS,)), network.predict(x)
    q = (1 - smoothing) * t + smoothing / 2
    expected = -(np.array(positive or 1) * q * np.log(share) + (1 - q) * np.log(1 - share)).mean()
    assert evaluate(network, x=x, t=t) == pytest.approx(expected, rel=1e-12)
    check_slopes(network, x=x, t=t)


NOTHING_COUNTS: dict[str, tuple[Loss, int, float]] = {
    "all-ignored": (SoftmaxCrossEntropy(ignored=2), 2, 1.0),
    "all-ignored-smoothed": (SoftmaxCrossEntropy(ignored=-100, smoothing=0.1), -100, 1.0),
    "all-of-weight-0": (SoftmaxCrossEntropy(), 1, 0.0),
    "all-of-class-weight-0": (SoftmaxCrossEntropy(class_weight=CLASS_WEIGHT), 2, 1.0),
    "squared-errors-of-weight-0": (MeanSquaredError(), 1, 0.0),
    "sum-of-weight-0": (HalfSquaredError(), 1, 0.0),
    "huber-of-weight-0": (Huber(), 1, 0.0),
    "penalised-of-weight-0": (MeanSquaredError(l2=0.5), 1, 0.0),
    "answers-of-weight-0": (BinaryCrossEntropy(positive_weight=3.0), 1, 0.0),
}
"""A loss, the target of every row, and the weight of every row."""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", NOTHING_COUNTS)
def test_where_nothing_counts_the_loss_is_0(kind: str, dtype: str) -> None:
    """No row counts: the loss is 0 and every gradient is 0, where PyTorch has NaN."""
    loss, target, weight = NOTHING_COUNTS[kind]
    network = Network(Linear(FEATURES, OUTPUTS), loss=loss, dtype=dtype)
    x = np.random.default_rng(0).normal(size=(3, FEATURES))
    t = np.full((3, *loss.target((3, OUTPUTS))[0][1:]), target)
    outputs = step(network, x=x, t=t, w=np.full(3, weight))
    assert outputs["loss"] == 0
    assert not outputs["dW1"].any()
    assert not outputs["db1"].any()


def test_a_sum_is_minimised_and_reported_for_each_row() -> None:
    """Half the squared error is added up over the rows; what is reported is that, over the rows' weight."""
    network, x = network_and_rows(HalfSquaredError(), 2)
    t, w = targets_of(HalfSquaredError(), (ROWS,)), row_weights((ROWS,))
    rows = ((network.output(x) - t) ** 2).sum(axis=1) / 2
    plain, weighted = step(network, x=x, t=t), step(network, x=x, t=t, w=w)
    assert (plain["loss"], weighted["loss"]) == pytest.approx((rows.sum(), w @ rows), rel=1e-12)
    assert (plain["count"], weighted["count"]) == pytest.approx((ROWS, w.sum()), rel=1e-12)
    assert evaluate(network, x=x, t=t) == pytest.approx(rows.mean(), rel=1e-12)


def test_a_row_of_weight_2_counts_as_two_rows() -> None:
    """Whole weights are repeated rows."""
    for loss in (MeanSquaredError(), HalfSquaredError(), SoftmaxCrossEntropy(class_weight=CLASS_WEIGHT)):
        network, x = network_and_rows(loss, 2)
        t, times = targets_of(loss, (ROWS,)), np.arange(ROWS) % 3
        weighted = step(network, x=x, t=t, w=times)
        repeated = step(network, x=np.repeat(x, times, axis=0), t=np.repeat(t, times, axis=0))
        for name in ("loss", "dW1", "db1"):
            np.testing.assert_allclose(weighted[name], repeated[name], rtol=1e-12)


PENALISED: dict[str, tuple[Loss, Loss]] = {
    "half-squared-error": (HalfSquaredError("mean", l2=0.3), HalfSquaredError("mean")),
    "mean-squared-error": (MeanSquaredError(l2=0.3), MeanSquaredError()),
    "huber": (Huber(l2=0.3), Huber()),
    "poisson": (Poisson(l2=0.3), Poisson()),
    "binary": (BinaryCrossEntropy(l2=0.3), BinaryCrossEntropy()),
    "binary-weights": (BinaryCrossEntropy(2.5, l2=0.3), BinaryCrossEntropy(2.5)),
    "classes": (SoftmaxCrossEntropy(l2=0.3), SoftmaxCrossEntropy()),
    "class-weights": (
        SoftmaxCrossEntropy(class_weight=CLASS_WEIGHT, l2=0.3),
        SoftmaxCrossEntropy(class_weight=CLASS_WEIGHT),
    ),
}
"""Losses with and without a penalty."""


@WEIGHTED
@pytest.mark.parametrize("kind", PENALISED)
def test_l2_adds_half_the_squared_weights_beside_the_rows(kind: str, weighted: bool) -> None:
    """(Σ l + l2 ½ Σ W²) / count, over the matrices of all layers and no bias; the gradient is its slope."""
    losses = {}
    for loss in PENALISED[kind]:
        layers = (Linear(FEATURES, 3), ReLU(), Linear(3, OUTPUTS))
        network = Network(*layers, loss=loss, dtype="float64", seed=4)
        network.parameters["b2"] = np.arange(4.0)
        t = targets_of(loss, (ROWS,))
        given = {"x": np.random.default_rng(5).normal(size=(ROWS, FEATURES)), "t": t}
        given |= {"w": row_weights((ROWS,))} if weighted else {}
        losses[bool(loss.l2)] = step(network, **given)
        check_slopes(network, **given)
    squares = sum((network.parameters[name] ** 2).sum() for name in ("W1", "W2"))
    assert losses[True]["total"] - losses[False]["total"] == pytest.approx(0.3 * squares / 2, rel=1e-12)
    assert losses[True]["count"] == losses[False]["count"]


def test_what_no_penalty_fits_is_refused() -> None:
    """A sum of rows has no place beside it, and a network without weights nothing to keep small."""
    with pytest.raises(ConfigurationError, match="reduction"):
        Network(Linear(2, 1), loss=HalfSquaredError(l2=0.1))
    with pytest.raises(ConfigurationError, match=r"l2 is -1"):
        Huber(l2=-1)
    with pytest.raises(ConfigurationError, match="no weights"):
        Network(ReLU(), loss=MeanSquaredError(l2=0.1), inputs=3)


def test_counts_below_0_are_refused() -> None:
    """The Poisson deviance is of counts; the error names the row."""
    network = Network(Linear(2, 1), loss=Poisson())
    with pytest.raises(DataError, match=r"target of row 2 is -0\.5, and must be 0 or more"):
        network.check_targets(np.array([0, 3, -0.5]), 3)


def test_the_answer_of_a_poisson_network_is_what_is_expected() -> None:
    """The network's output is a logarithm; at log t its loss is 0 and so is its gradient."""
    network = Network(Linear(1, 2, initialiser="zeros"), loss=Poisson(), dtype="float64")
    network.parameters["b1"] = np.log([2.0, 5.0])
    np.testing.assert_allclose(network.predict(np.zeros((1, 1))), [[2, 5]], rtol=1e-12)
    found = step(network, x=np.zeros((1, 1)), t=np.array([[2.0, 5.0]]))
    assert abs(found["loss"]) < 1e-12
    assert np.abs(found["db1"]).max() < 1e-12


def test_one_value_a_row_fits_one_output() -> None:
    """Targets (n,) are taken for an output (n, 1), and never broadcast against it."""
    for loss in (MeanSquaredError(), BinaryCrossEntropy()):
        network = Network(Linear(2, 1), loss=loss, dtype="float64")
        x, t = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 4.0]]), np.array([1.0, 0.0, 1.0])
        flat, column = network.gradients(x, t), network.gradients(x, t[:, None])
        np.testing.assert_array_equal(flat["W1"], column["W1"])


@pytest.mark.parametrize(
    ("loss", "t", "error", "message"),
    [
        (
            SoftmaxCrossEntropy(),
            [0, 4, 1],
            DataError,
            "the target of row 1 is class 4, and the network has 4 outputs",
        ),
        (SoftmaxCrossEntropy(), [0, -1, 1], DataError, "the target of row 1 is class -1"),
        (SoftmaxCrossEntropy(ignored=-1), [0, -1, -2], DataError, "the target of row 2 is class -2"),
        (SoftmaxCrossEntropy(), [0.0, 1.0, 2.0], DataError, "hold float64, and classes are whole numbers"),
        (
            SoftmaxCrossEntropy(),
            [[0], [1], [2]],
            ShapeError,
            r"the targets are \(3, 1\), and 3 rows need \(3,\)",
        ),
        (
            SoftmaxCrossEntropy(targets="probabilities"),
            [0, 1, 2],
            ShapeError,
            r"are \(3,\), and 3 rows need \(3, 4\)",
        ),
        (
            MeanSquaredError(),
            [[1.0] * 3] * 3,
            ShapeError,
            r"the targets are \(3, 3\), and 3 rows need \(3, 4\)",
        ),
        (MeanSquaredError(), [["a"] * 4] * 3, DataError, "the targets hold <U1, not numbers"),
    ],
    ids=["too-large", "negative", "not-the-ignored", "floats", "a-column", "no-shares", "too-few", "text"],
)
def test_targets_that_do_not_fit_are_named(
    loss: Loss, t: list[Any], error: type[Exception], message: str
) -> None:
    """The error names the loss, the row and what would fit."""
    network = Network(Linear(FEATURES, OUTPUTS), loss=loss)
    with pytest.raises(error, match=message):
        network.gradients(np.ones((3, FEATURES)), np.array(t))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Huber(0), "Huber: delta is 0"),
        (lambda: BinaryCrossEntropy(positive_weight=[1, 0]), r"positive_weight is \[1, 0\]"),
        (lambda: SoftmaxCrossEntropy(targets="class"), "targets is 'class'"),
        (lambda: SoftmaxCrossEntropy(smoothing=1.0), r"smoothing is 1\.0"),
        (
            lambda: SoftmaxCrossEntropy(targets="probabilities", ignored=1),
            "ignored is a class number, and the targets are",
        ),
        (lambda: SoftmaxCrossEntropy(class_weight=[1, -1]), r"class_weight is \[1, -1\]"),
    ],
    ids=["delta", "positive-weight", "targets", "smoothing", "ignored-shares", "class-weight"],
)
def test_settings_out_of_range_are_named(make: Callable[[], Loss], message: str) -> None:
    """A loss that cannot be is refused when it is made."""
    with pytest.raises(ConfigurationError, match=message):
        make()


def test_as_many_class_weights_as_outputs() -> None:
    """A class weight too few is a shape error when the network is made."""
    with pytest.raises(ShapeError, match=r"axis C is 4 in z\(n, 4\)\[1\] but 3 in class_weight\(3,\)\[0\]"):
        Network(Linear(FEATURES, OUTPUTS), loss=SoftmaxCrossEntropy(class_weight=[1, 2, 3]))
