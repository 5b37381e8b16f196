"""A network explained: its ledger, its formulas, its derivations, its Jacobians, its witness; and what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import handgrad
from handgrad import (
    RNN,
    Adam,
    BatchNorm,
    Dropout,
    Embedding,
    Explanation,
    HalfSquaredError,
    Last,
    Layer,
    Linear,
    MeanSquaredError,
    Network,
    ReLU,
    Residual,
    ShapeError,
    Softmax,
    SoftmaxCrossEntropy,
    Tanh,
    explain,
    rule,
)
from handgrad.errors import HandgradError
from handgrad.explaining.execution import execute_network
from handgrad.explaining.terminal import show_line
from handgrad.program.lines_in_python import evaluate
from handgrad.rules import RULES, attention


@pytest.fixture(scope="module")
def network() -> Network:
    return Network(Linear(4, 7), ReLU(), Linear(7, 3), loss=SoftmaxCrossEntropy(), dtype="float64", seed=3)


@pytest.fixture(scope="module")
def batch() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(5, 4)), rng.integers(0, 3, 5)


@pytest.fixture(scope="module")
def explained(network: Network, batch: tuple[Any, Any]) -> Explanation:
    return explain(network, *batch)


def test_a_gradient_names_the_forward_line_that_reads_its_value() -> None:
    """In a loop too; the sum of a tied table's gradients, which undoes no line of its own, names none."""
    rng = np.random.default_rng(0)
    recurrent = Network(RNN(2, 3), Last(), Linear(3, 2), inputs=(4, 2), loss=MeanSquaredError())
    of_state = show_line(explain(recurrent, rng.normal(size=(5, 4, 2)), rng.normal(size=(5, 2))), "dU1")
    assert re.search(r"differentiates\s+.*@ U1", of_state), of_state
    tied = Network(
        Embedding(5, 3),
        Linear(3, 5, bias=False, layout="out_in", tied="E1"),
        inputs=(4,),
        loss=SoftmaxCrossEntropy(),
    )
    indices = rng.integers(0, 5, (2, 4))
    assert "differentiates" not in show_line(explain(tied, indices, indices), "dE1")


def test_a_line_within_a_rule_differentiates_the_line_that_its_gradient_comes_through() -> None:
    """Of attention, q is read by the scores and not by the output; of what is no gradient's own line, the nearest."""
    rng = np.random.default_rng(0)
    explained = explain(attention, *(rng.normal(size=(5, 4, 3)) for _ in range(3)))
    of = {line.target: str(explained.undone(line)) for line in explained.lines if line.phase == "backward"}
    assert of["dv"] == of["dp"] == "y = p @ v"
    assert of["dq"] == of["dk"] == "s = q @ k.mT / q.shape[-1] ** 0.5"
    assert of["ds"].startswith("p = e / ")


def test_each_value_has_letters_sizes_and_its_gradient(explained: Explanation) -> None:
    """One axis has one letter in the whole network; a gradient has its value's."""
    letters = {name: " ".join(entry.axes) for name, entry in explained.ledger.items()}
    assert letters["x"] == "N I"
    assert (letters["W1"], letters["z1"], letters["a1"], letters["b1"]) == ("I O1", "N O1", "N O1", "O1")
    assert (letters["W2"], letters["z2"], letters["p"], letters["whole"]) == ("O1 O2", "N O2", "N O2", "N 1")
    entry = explained.ledger["dW2"]
    assert (entry.axes, entry.shape, entry.sizes, entry.gradient_of) == (("O1", "O2"), (7, 3), (7, 3), "W2")
    assert (explained.ledger["W2"].gradient, explained.ledger["z1"].shape) == ("dW2", ("n", 7))
    for entry in explained.ledger.values():
        if entry.gradient_of:
            assert entry.sizes == explained.ledger[entry.gradient_of].sizes


def test_what_is_kept_is_said_with_the_line_it_is_for(explained: Explanation) -> None:
    """The backward lines' own names, and the bytes of this batch."""
    kept = {name: entry.kept_for for name, entry in explained.ledger.items() if entry.kept_for}
    assert kept == {
        "x": ("dW1",), "W2": ("da1",), "z1": ("dz1",), "a1": ("dW2",), "q": ("dz2",),
        "e": ("p",), "whole": ("p",), "l": ("dl",), "count": ("dl",),
    }  # fmt: skip
    assert explained.ledger["z1"].bytes == 5 * 7 * 8


def test_the_loss_and_the_gradients_are_the_network_s(
    network: Network, batch: tuple[Any, Any], explained: Explanation
) -> None:
    """What is explained is what runs."""
    gradients = network.gradients(*batch)
    for name, gradient in gradients.items():
        summary = explained.ledger[f"d{name}"].summary
        assert summary is not None
        assert summary.norm == pytest.approx(np.linalg.norm(gradient), rel=1e-12)
    assert explained.loss == pytest.approx(execute_network(network, *batch).values["loss"])


def test_the_product_of_a_derivation_is_the_gradient(network: Network, batch: tuple[Any, Any]) -> None:
    """The lines put into one another still compute it."""
    execution = execute_network(network, *batch)
    for of, derivation in explain(network, *batch).derivations.items():
        target, _, product = derivation.text.partition(" = ")
        assert target == f"d{of}"
        np.testing.assert_allclose(evaluate(product, execution.values), execution.values[target], rtol=1e-12)


def test_a_derivation_goes_from_the_loss_to_the_parameter(explained: Explanation) -> None:
    """One factor for each line, with the shape of what it hands on."""
    factors = explained.derivations["W1"].factors
    passed = [explained.lines[factor.line].target for factor in factors]
    assert passed == ["dloss", "dl", "p", "dz2", "da1", "dz1", "dW1"]
    assert [factor.sizes for factor in factors] == [(), (5,), (5, 3), (5, 3), (5, 7), (5, 7), (4, 7)]
    assert factors[4].symbol == r"\frac{\partial z_{2}}{\partial a_{1}}"
    assert r"\underbrace{{W_{2}}^{\top}}_{3 \times 7}" in factors[4].tex
    assert factors[-1].text.splitlines() == ["dW1 = x.T @ dz1", "      4×5   5×7"]


def test_jacobians_of_a_network_are_of_one_row(explained: Explanation) -> None:
    """With the stored form in the program's names."""
    stored = {f"{each.output}:{each.input}": each.stored for each in explained.jacobians}
    assert stored["z1:W1"] == "x[0] ⊗ I"
    assert stored["a1:z1"] == "diag((z1 > 0)[0])"
    assert stored["l:z2"] == "(p - q)[0]"
    assert stored["loss:l"] == "1 / count"
    (weights,) = (each for each in explained.jacobians if (each.output, each.input) == ("z1", "W1"))
    assert (weights.stored_numbers, weights.full_numbers, weights.stored_operations) == (4, 196, 28)


def test_a_sentence_from_one_row_speaks_of_that_row() -> None:
    """Batch norm mixes the rows, and a bias is shared by them: neither gradient is one row's."""
    network = Network(Linear(3, 4), BatchNorm(), Linear(4, 2), loss=MeanSquaredError(), dtype="float64")
    rng = np.random.default_rng(4)
    x, t = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    why = {f"{each.output}:{each.input}": each.explanation for each in explain(network, x, t).jacobians}
    assert "no single row's Jacobian gives it. For row 0 alone: " in why["y1:z1"]
    assert "so what y1[0] sends back to z1[0] is dy1[0] times 4 numbers, entry by entry." in why["y1:z1"]
    assert "what they send back adds up, so db1[o1] = Σ_n dz1[n, o1]. For row 0 alone: " in why["z1:b1"]
    (whole,) = explain(network, x, t, jacobians=["z1:b1"]).jacobians
    assert "z1[0]" not in whole.explanation


def test_a_bias_before_batch_norm_does_nothing() -> None:
    """Its gradient is rounding alone, in float32 too, and no other is."""
    network = Network(Linear(3, 4), BatchNorm(), Tanh(), Linear(4, 2), loss=SoftmaxCrossEntropy())
    rng = np.random.default_rng(4)
    explained = explain(network, rng.normal(size=(9, 3)), rng.integers(0, 2, 9))
    assert [name for name, entry in explained.ledger.items() if entry.rounding] == ["db1"]
    assert "b1 does not change the loss on this" in show_line(explained, "db1")


def test_the_lines_end_with_the_updates() -> None:
    """Those of the optimiser that trains, each as a formula; the weights are not moved by them."""
    network = Network(Linear(3, 2), loss=MeanSquaredError(), dtype="float64")
    x, t, before = np.ones((4, 3)), np.ones((4, 2)), network.parameters["W1"].copy()
    lines = [line for line in explain(network, x, t, optimiser=Adam()).lines if line.phase == "update"]
    assert [str(line) for line in lines] == [str(line) for line in network.program(Adam()).phase("update")]
    assert r" \leftarrow " in lines[0].tex
    np.testing.assert_array_equal(network.parameters["W1"], before)


def test_rows_added_too_early_are_the_wrong_gradient(network: Network, batch: tuple[Any, Any]) -> None:
    """The sum of the Jacobians times the sum of the gradients, as NumPy computes both by hand."""
    values = execute_network(network, *batch).values
    (jacobian,) = explain(network, *batch, jacobians=["z1:W1"], example=2).jacobians
    added = jacobian.added
    assert added is not None
    right, wrong = values["x"].T @ values["dz1"], np.outer(values["x"].sum(0), values["dz1"].sum(0))
    size = np.linalg.norm(wrong - right) / np.linalg.norm(right)
    assert added.difference == pytest.approx(size, rel=1e-9)
    assert added.difference > 0.5
    assert f"{np.linalg.norm(wrong):.4g}" in added.explanation


@pytest.mark.parametrize("pair", ["loss:W1", "l:b1", "z2:z1", "e:z2", "whole:a1", "loss:x"])
@pytest.mark.parametrize("example", [None, 3])
def test_a_run_of_lines_has_a_jacobian(
    network: Network, batch: tuple[Any, Any], pair: str, example: int | None
) -> None:
    """Through several rules by their backward lines, and by differences where a value is local to a rule."""
    (found,) = explain(network, *batch, jacobians=[pair], example=example).jacobians
    assert found.proof < 1e-8
    assert found.full_numbers == np.prod(found.output_sizes) * np.prod(found.input_sizes)
    assert (found.structure == "zero") is False


def test_the_jacobian_of_the_loss_is_the_gradient(network: Network, batch: tuple[Any, Any]) -> None:
    """One row, as long as the parameter has entries."""
    (found,) = explain(network, *batch, jacobians=["loss:b1"]).jacobians
    assert found.sample.numbers == pytest.approx(network.gradients(*batch)["b1"], rel=1e-5)


@rule("... -> ...")
def cube(z: Any) -> Any:
    a = z * z * z
    return a  # noqa: RET504 - a rule returns names


@cube.backward
def cube_backward(da: Any, z: Any) -> Any:
    dz = 2 * z * z * da  # wrong on purpose: it is 3
    return dz  # noqa: RET504


class Cube(Layer):
    """A layer whose gradient is wrong."""

    def connect(self, graph: Any, x: Any) -> Any:  # noqa: D102 - as in Layer
        return graph.apply(cube, x, layer=self)


def test_the_witness_finds_the_line_that_is_wrong() -> None:
    """And no other: each line is checked by itself."""
    network = Network(Linear(4, 7), Cube(), Linear(7, 2), loss=MeanSquaredError())
    rng = np.random.default_rng(1)
    lines = explain(network, rng.normal(size=(6, 4)), rng.normal(size=(6, 2))).lines
    wrong = [line.target for line in lines if line.witness and line.witness.verdict != "right"]
    assert wrong == ["dz1"]
    found = next(line.witness for line in lines if line.target == "dz1")
    assert found is not None
    assert 1e-2 < found.error < 1
    assert found.error > 1e6 * found.allowed


@rule("... -> ...", constant=True)
def stop(x: Any) -> Any:
    c = x * 1.0
    return c  # noqa: RET504


class Stop(Layer):
    """A layer that lets no gradient through."""

    def connect(self, graph: Any, x: Any) -> Any:  # noqa: D102 - as in Layer
        stopped = graph.apply(stop, x, layer=self)
        return graph.apply(handgrad.rules.add, stopped, stopped, layer=self)


def test_a_jacobian_that_no_gradient_reaches_is_zero() -> None:
    network = Network(Linear(3, 4), Stop(), Linear(4, 2), loss=SoftmaxCrossEntropy())
    x, t = np.random.default_rng(0).normal(size=(5, 3)), np.array([0, 1, 1, 0, 1])
    (found,) = explain(network, x, t, jacobians=["loss:W1"]).jacobians
    assert found.sample.numbers is not None
    assert not np.any(found.sample.numbers)


NETWORKS = {
    "dropout and batch norm": Network(
        Linear(4, 7), BatchNorm(), Tanh(), Dropout(0.3), Linear(7, 3), loss=SoftmaxCrossEntropy(smoothing=0.1)
    ),
    "residual": Network(
        Linear(4, 7), Residual(Linear(7, 7), ReLU()), Linear(7, 3), loss=SoftmaxCrossEntropy()
    ),
    "softmax inside": Network(Linear(4, 6), Softmax(), Linear(6, 3), loss=SoftmaxCrossEntropy(ignored=2)),
    "time": Network(Linear(4, 3), inputs=(6, 4), loss=SoftmaxCrossEntropy()),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_other_networks_are_explained_and_all_their_lines_are_right(name: str) -> None:
    """Values used twice, masks, statistics, several axes of rows."""
    network, rng = NETWORKS[name], np.random.default_rng(2)
    x = rng.normal(size=(9, *network.row))
    t = rng.integers(0, 3, x.shape[:-1])
    explanation = explain(network, x, t)
    assert Explanation.from_json(explanation.to_json()) == explanation
    for line in explanation.lines:
        if line.phase == "backward" and line.target != "dloss":
            assert line.witness is not None, line.target
            assert line.witness.verdict == "right", (line.target, line.witness)
    shown = {number for block in explanation.drawing for number in block.lines}
    added = {line.number for line in explanation.lines if line.phase == "backward" and not line.rule}
    updates = {line.number for line in explanation.lines if line.phase == "update"}
    assert shown | added | updates == {line.number for line in explanation.lines}
    assert list(explanation.derivations)[: len(network.parameters)] == list(network.parameters)
    made = {line.target for line in explanation.lines if line.phase == "backward"}
    assert {f"d{of}" for of in explanation.derivations} <= made


def test_an_embedding_is_stored_as_the_rows_that_were_looked_up() -> None:
    """As many rows of the identity; indices themselves have no derivatives."""
    network = Network(Embedding(11, 4), Linear(4, 3), inputs=6, loss=SoftmaxCrossEntropy())
    rng = np.random.default_rng(3)
    batch = rng.integers(0, 11, (7, 6)), rng.integers(0, 3, (7, 6))
    stored = {each.input: each.stored for each in explain(network, *batch).jacobians if each.output == "h1"}
    assert stored == {"E1": "I[x[0]] ⊗ I"}
    with pytest.raises(HandgradError, match="x holds int64, and has no derivatives"):
        explain(network, *batch, jacobians=["h1:x"])


@pytest.mark.parametrize("size", [1e38, np.nan])
def test_a_network_that_has_overflowed_is_explained_as_far_as_it_goes(
    network: Network, batch: tuple[Any, Any], size: float
) -> None:
    """Without a loss, with what cannot be told, and as a record that can be read again."""
    spoiled = Network(Linear(4, 7), ReLU(), Linear(7, 3), loss=SoftmaxCrossEntropy())
    for name in ("W1", "W2"):
        spoiled.parameters[name][...] = size
    explanation = explain(spoiled, *batch)
    assert explanation.loss is None
    assert "cannot tell" in {line.witness.verdict for line in explanation.lines if line.witness}
    assert Explanation.from_json(explanation.to_json()) == explanation


def test_rows_with_weights_are_explained(network: Network, batch: tuple[Any, Any]) -> None:
    """Another reduction, with the weights beside the targets."""
    weights = np.array([1.0, 2.0, 0.0, 1.0, 3.0])
    explanation = explain(network, *batch, sample_weight=weights)
    assert explanation.ledger["w"].axes == ("N",)
    gradient = network.gradients(*batch, weights)["W1"]
    summary = explanation.ledger["dW1"].summary
    assert summary is not None
    assert summary.norm == pytest.approx(np.linalg.norm(gradient))


ERRORS = {
    "z1": "'z1' names no two values",
    "z1:z2": "z1 does not depend on z2",
    "z9:W1": "the forward has no value 'z9'",
    "dz1:W1": "the forward has no value 'dz1'",
}


@pytest.mark.parametrize("pair", ERRORS)
def test_a_jacobian_that_cannot_be_is_one_message(
    network: Network, batch: tuple[Any, Any], pair: str
) -> None:
    """It names the value, and what to do."""
    with pytest.raises(HandgradError) as error:
        explain(network, *batch, jacobians=[pair])
    assert error.value.problem == ERRORS[pair]
    assert error.value.fix


def test_the_upstream_gradient_of_a_rule_is_no_value_of_its_forward() -> None:
    with pytest.raises(HandgradError) as error:
        explain(RULES["sigmoid"], np.ones((2, 3)), jacobians=["y:z"])
    assert error.value.fix == "choose from a, e, z"


def test_a_jacobian_too_large_says_what_to_take_instead() -> None:
    """One row of it, or a smaller layer."""
    network = Network(Linear(3, 400), ReLU(), Linear(400, 2), loss=HalfSquaredError())
    x, t = np.ones((50, 3)), np.ones((50, 2))
    with pytest.raises(HandgradError, match="entries") as error:
        explain(network, x, t, jacobians=["a1:z1"])
    assert error.value.fix == "take one row: --example 0"


def test_rows_of_the_wrong_shape_are_named_with_what_fits(network: Network) -> None:
    """Both sizes, and a shape that would do."""
    with pytest.raises(ShapeError) as error:
        explain(network, np.ones((5, 6)), np.zeros(5, int))
    assert error.value.problem == "the data has rows of (6,), the network takes (4,)"
    assert error.value.fix == "x(n, 4) would fit"


def test_an_argument_of_the_wrong_shape_is_named_with_its_axis() -> None:
    """The axis, both operands, both sizes, and what would fit."""
    with pytest.raises(ShapeError) as error:
        explain(handgrad.rules.linear, np.ones((5, 6)), np.ones((4, 7)), np.ones(7))
    assert error.value.problem == "linear: axis I is 6 in x(5, 6)[1] but 4 in W(4, 7)[0]"
    assert error.value.fix == "W(6, 7) would fit"


def test_a_damaged_record_is_an_error() -> None:
    """Not a traceback of the reader's."""
    with pytest.raises(HandgradError, match="this is no explanation"):
        Explanation.from_json("{}")
