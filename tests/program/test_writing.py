"""Writing a network out: the lines, their names, their order, and what is left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from handgrad import (
    GELU,
    SGD,
    Adam,
    BatchNorm,
    Dropout,
    Embedding,
    Layer,
    LayerNorm,
    Linear,
    MeanSquaredError,
    Network,
    ReLU,
    Residual,
    SelfAttention,
    ShapeError,
    Softmax,
    SoftmaxCrossEntropy,
    Standardise,
    Tanh,
    rule,
)
from handgrad.layers import Graph, Value
from handgrad.layers.elementwise import RuleLayer
from handgrad.program import Program
from handgrad.rules import PRIMITIVES
from handgrad.rules.primitives import rows

PLAIN = Network(Linear(5, 7), ReLU(), Linear(7, 3), loss=SoftmaxCrossEntropy())

DEEP = Network(
    Linear(5, 7), BatchNorm(), ReLU(), Dropout(0.25), Residual(Linear(7, 7), Tanh()), LayerNorm(), GELU(),
    Linear(7, 3), loss=SoftmaxCrossEntropy(smoothing=0.1, ignored=1, class_weight=[1, 2, 3]),
)  # fmt: skip

RANK_3 = Network(
    Embedding(9, 5), Residual(Linear(5, 5), LayerNorm()), BatchNorm(), Softmax(),
    inputs=4, loss=MeanSquaredError(),
)  # fmt: skip

PROGRAMS: dict[str, Program] = {
    "plain": PLAIN.program(),
    "deep": DEEP.program(Adam(weight_decay=0.1, clip_norm=1.0), weighted=True),
    "rank-3": RANK_3.program(SGD(momentum=0.9)),
    "gradients": DEEP.program().without_updates(),
    "evaluation": DEEP.evaluation_program(prediction=True),
    "loss": RANK_3.loss_program(),
}

EACH = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)


def test_a_program_reads_like_the_page_of_a_textbook() -> None:
    """Names, lines, their order and phases, of a network everyone knows."""
    found = [(line.phase, str(line)) for line in PLAIN.program().lines]
    assert found == [
        ("forward", "z1 = x @ W1 + b1"),
        ("forward", "a1 = np.maximum(z1, 0)"),
        ("forward", "z2 = a1 @ W2 + b2"),
        ("loss", "q = one_hot(t, z2)"),
        ("loss", "s = z2 - z2.max(axis=-1, keepdims=True)"),
        ("loss", "e = np.exp(s)"),
        ("loss", "whole = e.sum(axis=-1, keepdims=True)"),
        ("loss", "l = (q * (np.log(whole) - s)).sum(axis=-1)"),
        ("loss", "total = l.sum()"),
        ("loss", "count = l.size"),
        ("loss", "loss = total / count"),
        ("backward", "dloss = 1.0"),
        ("backward", "dl = np.full_like(l, dloss / count)"),
        ("backward", "p = e / whole"),
        ("backward", "dz2 = (p - q) * dl[..., None]"),
        ("backward", "da1 = dz2 @ W2.T"),
        ("backward", "dW2 = a1.T @ dz2"),
        ("backward", "db2 = dz2.sum(axis=0)"),
        ("backward", "dz1 = da1 * (z1 > 0)"),
        ("backward", "dW1 = x.T @ dz1"),
        ("backward", "db1 = dz1.sum(axis=0)"),
        ("update", "W1 -= learning_rate * dW1"),
        ("update", "b1 -= learning_rate * db1"),
        ("update", "W2 -= learning_rate * dW2"),
        ("update", "b2 -= learning_rate * db2"),
    ]


@EACH
def test_every_name_is_defined_once_and_before_it_is_read(program: Program) -> None:
    """Straight lines: nothing has two meanings, and nothing is read that is not there yet."""
    known = {"np", "n", *program.arguments, *program.scalars, *program.primitives}
    for line in program.lines:
        assert line.reads <= known, str(line)
        assert (line.target in known) == (line.operator != "="), str(line)
        known.add(line.target)
    assert set(program.outputs) <= known


@EACH
def test_every_line_is_needed(program: Program) -> None:
    """Each line's value is read later, is asked for, or changes what is kept."""
    for place, line in enumerate(program.lines):
        read = any(line.target in later.reads for later in program.lines[place + 1 :])
        assert read or line.target in program.outputs or line.operator != "=", str(line)


@EACH
def test_phases_follow_one_another(program: Program) -> None:
    """Sample, forward, loss, backward, update, each in one piece."""
    order = ["sample", "forward", "loss", "backward", "update"]
    places = [order.index(line.phase) for line in program.lines]
    assert places == sorted(places)


@EACH
def test_measured_shapes_are_those_of_a_run(program: Program) -> None:
    """With 6 rows in place of n, every line has the shape and the type that was foretold."""
    sizes = {"n": 6, **{f"{k}n": 6 * k for k in range(2, 30)}}
    scope = {"n": 6, "learning_rate": 0.1, "step": 1, "seed": 0, **program.initial(0)}
    scope |= {name: np.zeros(shape, program.dtype) for name, shape in program.slots.items()}
    for value in program.inputs:
        shape = tuple(sizes.get(size, size) for size in value.shape)
        scope[value.name] = np.ones(shape, int if value.kind in ("index", "class") else program.dtype)
    for line in program.lines:
        if line.operator == "=":
            scope[line.target] = eval(line.expression, dict(PRIMITIVES), scope)
        measured = tuple(sizes.get(size, size) for size in line.shape)
        assert np.shape(scope[line.target]) == measured, str(line)
        assert str(np.result_type(scope[line.target])) == line.dtype, str(line)


@rule("N... F -> N... F", constant=True)
def join_rows(x):
    j = rows(x)
    return j  # noqa: RET504 - rules return names


@dataclass(frozen=True, eq=False, repr=False)
class Join(Layer):
    """A layer that joins the rows of a batch."""

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(join_rows, x)


def test_rows_of_a_batch_are_n_whatever_they_are_joined_with() -> None:
    """A size that grows with the batch is written so; one that does not is a number."""
    shapes = {line.target: line.shape for line in PROGRAMS["rank-3"].lines}
    assert shapes["h1"] == ("n", 4, 5)
    assert shapes["dW1"] == (5, 5)
    assert shapes["loss"] == ()
    joined = Network(Join(), inputs=(4, 3, 5)).program()
    assert joined.line("j1").shape == ("12n", 5)


def test_the_gradient_of_the_data_is_left_out() -> None:
    """Nobody needs dx, nor what only dx needs."""
    for program in (PLAIN.program(), DEEP.program()):
        assert "dx" not in {line.target for line in program.lines}
    behind = Network(BatchNorm(), Linear(5, 3), inputs=5, loss=MeanSquaredError()).program()
    targets = [line.target for line in behind.phase("backward")]
    assert targets == ["dloss", "dl", "dz1", "dy1", "dW1", "db1", "dgamma1", "dbeta1"]


def test_without_parameters_there_is_nothing_to_write_backward() -> None:
    """No gradient is asked for, so no line is there."""
    program = Network(ReLU(), inputs=3, loss=MeanSquaredError()).program()
    assert program.phase("backward", "update") == ()


def test_a_loss_program_stops_at_total_and_count_and_predicts() -> None:
    """The ratio of the two is for the caller, over all batches; forward is written once for both."""
    program = PLAIN.loss_program()
    assert program.outputs == ("total", "count", "prediction")
    assert "loss" not in {line.target for line in program.lines}
    assert [line.target for line in program.lines].count("z1") == 1
    assert program.lines[-1].target == "prediction"
    values = Network(Linear(5, 3), inputs=5, loss=MeanSquaredError()).loss_program()
    assert values.outputs == ("total", "count", "z1")


def test_rows_is_left_out_where_there_is_one_axis_of_rows() -> None:
    """In rank 2 the product is plain; in rank 3 the rows are joined first."""
    assert PLAIN.program().line("dW2").expression == "a1.T @ dz2"
    tall = Network(Linear(5, 3), inputs=(4, 5), loss=MeanSquaredError()).program()
    assert tall.line("dW1").expression == "rows(x).T @ rows(dz1)"
    assert (PLAIN.program().primitives, tall.primitives) == (("one_hot",), ("rows",))


def test_layers_are_numbered_and_what_belongs_together_shares_the_number() -> None:
    """An activation has the number of the layer before it; a second of the same letters counts on."""
    made = [line.target for line in DEEP.evaluation_program().lines if line.target[0] in "zayhr"]
    assert made == ["z1", "rstd1", "y1", "a1", "h1", "z2", "a2", "r2", "rstd2", "y2", "a3", "z3"]
    twice = Network(Linear(5, 7), ReLU(), Tanh(), inputs=5).program()
    assert [line.target for line in twice.lines] == ["z1", "a1", "a2"]


def test_what_comes_before_the_first_linear_layer_does_not_take_its_number() -> None:
    """The gradient of an argument is called after what is given for it, and counts for no layer."""
    layers = Standardise(), Linear(5, 7), ReLU(), Linear(7, 3)
    network = Network(*layers, inputs=5, loss=SoftmaxCrossEntropy())
    program = network.program()
    assert [line.target for line in program.phase("forward")] == ["h1", "z1", "a1", "z2"]
    assert list(network.parameters) == ["W1", "b1", "W2", "b2"]
    assert [line.target for line in program.phase("backward") if line.target[:2] == "dW"] == ["dW2", "dW1"]


def test_the_lines_of_an_update_are_named_after_their_parameter() -> None:
    """Slots, locals, clipped and decayed gradients."""
    lines = [str(line) for line in PROGRAMS["deep"].phase("update") if "W1" in str(line)]
    assert lines == [
        "squares_W1 = (dW1 * dW1).sum()",
        lines[1],
        "dW1_clipped = dW1 * scale",
        "dW1_decayed = dW1_clipped + 0.1 * W1",
        "m_W1 += (1 - 0.9) * (dW1_decayed - m_W1)",
        "v_W1 += (1 - 0.999) * (dW1_decayed * dW1_decayed - v_W1)",
        "mhat_W1 = m_W1 / (1 - 0.9 ** step)",
        "vhat_W1 = v_W1 / (1 - 0.999 ** step)",
        "W1 -= learning_rate * mhat_W1 / (np.sqrt(vhat_W1) + 1e-08)",
    ]
    assert lines[1].startswith("squares = squares_W1 + squares_b1 + squares_gamma1")


def test_a_backward_line_says_what_it_undoes_and_why() -> None:
    """The layer, the rule, the value whose line it undoes, and the reason in the program's names."""
    line = PLAIN.program().line("dW2")
    assert (line.layer, line.rule, line.undoes) == ("layer 3, Linear(7, 3)", "linear", "z2")
    assert line.reason == "the same W2 serves every row: the rows add up"


def test_a_transposed_name_in_a_reason_is_the_program_s_too() -> None:
    """The superscript is a letter, and no part of the name."""
    layers = [Embedding(9, 6), SelfAttention(6, heads=2), Linear(6, 3)]
    network = Network(*layers, inputs=5, loss=SoftmaxCrossEntropy())
    (reason,) = (line.reason for line in network.program().lines if "diag" in line.reason)
    name = reason[len("(diag(") :].partition(")")[0]
    assert name != "p"
    assert reason == f"(diag({name}) - {name} {name}ᵀ) d{name}"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_number_of_a_line_is_of_the_program_s_type(dtype: str) -> None:
    """No line leaves the type the network computes in, but whole numbers, truth values and the 1 of dloss."""
    layers = DEEP.body.layers
    program = Network(*layers, loss=DEEP.loss, dtype=dtype).program(Adam(clip_norm=1.0), weighted=True)
    assert {line.dtype for line in program.lines if line.target != "dloss"} - {"bool", "int64"} == {dtype}


@dataclass(frozen=True, eq=False, repr=False)
class Constant(Layer):
    """A layer through which no gradient passes."""

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(stop, x)


@rule("... -> ...", constant=True)
def stop(x):
    s = x + 0
    return s  # noqa: RET504 - rules return names


def test_no_gradient_passes_a_constant_rule() -> None:
    """What stands before it is not trained, and has no backward lines."""
    program = Network(Linear(5, 7), Constant(), Linear(7, 3), loss=MeanSquaredError()).program()
    assert [line.target for line in program.phase("backward")] == ["dloss", "dl", "dz2", "dW2", "db2"]
    assert [line.target for line in program.phase("update")] == ["W2", "b2"]


def test_a_rule_whose_shapes_do_not_fit_is_named_with_its_line() -> None:
    """Before anything runs: a network checks what it is given, so the line itself must be wrong."""

    @rule("... A -> ... A")
    def square(x):
        y = x * x
        return y  # noqa: RET504 - as below

    @square.backward
    def square_backward(dy, x):
        dx = dy @ x
        return dx  # noqa: RET504 - a rule names what it returns

    @dataclass(frozen=True, eq=False, repr=False)
    class Square(RuleLayer):
        rule = square

    wrong = Network(Linear(3, 4), Square(), Linear(4, 2), loss=MeanSquaredError())
    with pytest.raises(ShapeError, match=r"^`dz1 = dy1 @ z1`, of the rule square: matmul"):
        wrong.program()
