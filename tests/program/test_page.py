"""A program as data and as a page of text."""

from __future__ import annotations

from html import escape

import numpy as np
import pytest

from handgrad import SGD, Adam, BatchNorm, Dropout, Embedding, Linear, MeanSquaredError, Network, ReLU
from handgrad.errors import ProgramError
from handgrad.program.printing import WIDEST_CODE, render_text

NETWORK = Network(Linear(5, 7), BatchNorm(), ReLU(), Dropout(0.2), Linear(7, 3), loss=MeanSquaredError())


def test_the_page_has_columns_for_line_shape_and_reason() -> None:
    """Word for word, for a network of one layer."""
    page = render_text(Network(Linear(3, 2), loss=MeanSquaredError()).program(), width=90)
    assert page.splitlines()[:6] == [
        "network 3 → 2 · 8 parameters · n rows",
        "",
        "forward",
        "  z1 = x @ W1 + b1                                   (n, 2)",
        "",
        "loss",
    ]
    assert "  W1 -= learning_rate * dW1                          (3, 2)" in page.splitlines()


@pytest.mark.parametrize("width", [100, 120, 150])
def test_no_line_is_wider_than_the_page(width: int) -> None:
    """A reason that does not fit goes on below itself; only code longer than its column stands out."""
    program = NETWORK.program(Adam())
    wide = tuple(f"  {line}" for line in program.lines if len(str(line)) > WIDEST_CODE)
    rows = [row for row in render_text(program, width).splitlines() if not row.startswith(wide)]
    assert max(map(len, rows)) <= width


def test_every_line_and_every_word_is_on_the_page() -> None:
    """Nothing is cut."""
    program = NETWORK.program(Adam())
    page = " ".join(str(program).split())
    for line in program.lines:
        assert " ".join(str(line).split()) in page
    for word in {word for line in program.lines for word in line.reason.split()}:
        assert word in page


def test_a_notebook_has_every_line_too_under_its_phase() -> None:
    """A table, with the title above it."""
    program = NETWORK.program(Adam())
    page = program._repr_html_()
    assert page.startswith(f"<p><strong>{program.title} · n rows</strong></p><table>")
    phases = ("sample", "forward", "loss", "backward", "update")
    shown = [text for phase in phases for text in (phase, *map(str, program.phase(phase)))]
    places = [page.index(f">{escape(text)}<") for text in shown]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("network", "title"),
    [
        (Network(Linear(64, 32), ReLU(), Linear(32, 10)), "network 64 → 32 → 10 · 2,410 parameters"),
        (NETWORK, "network 5 → 7 → 3 · 80 parameters"),
        (Network(Embedding(9, 4), inputs=()), "network index → 4 · 36 parameters"),
    ],
    ids=["two-layers", "batch-norm", "index"],
)
def test_the_title_says_the_widths_and_counts_the_parameters(network: Network, title: str) -> None:
    """Widths that layers pass on are not repeated; running statistics are no parameters."""
    assert network.program().title == title


def test_keeping_leaves_out_what_the_outputs_do_not_need() -> None:
    """A program for one value has that value's lines only."""
    program = NETWORK.program().without_updates().keeping("a1")
    assert program.outputs == ("a1",)
    assert [line.target for line in program.lines][-2:] == ["y1", "a1"]
    assert program.phase("sample", "loss", "backward", "update") == ()


def test_without_updates_the_gradients_are_left_to_the_caller() -> None:
    """No slot, no learning rate, no running statistic."""
    program = NETWORK.program(SGD(momentum=0.9))
    gradients = program.without_updates()
    assert (gradients.phase("update"), gradients.slots) == ((), {})
    assert (program.scalars, gradients.scalars) == (("learning_rate", "step", "seed"), ("step", "seed"))
    assert gradients.outputs == program.outputs
    assert [line for line in program.lines if line.phase != "update"] == list(gradients.lines)


def test_arguments_are_inputs_then_parameters_states_and_slots() -> None:
    """In this order, by name."""
    network = Network(Linear(3, 2), BatchNorm(), loss=MeanSquaredError())
    program = network.program(SGD(momentum=0.9), weighted=True)
    kept = ["W1", "b1", "gamma1", "beta1"]
    assert program.arguments == (
        "x", "t", "w", *kept, "running_mean1", "running_var1", *(f"v_{name}" for name in kept)
    )  # fmt: skip


def test_initial_draws_what_the_network_keeps() -> None:
    """A program knows how its arrays start, and draws them as the network does."""
    program = NETWORK.program()
    for name, v in program.initial(NETWORK.seed).items():
        np.testing.assert_array_equal(v, NETWORK.arrays[name])
        assert v.dtype == NETWORK.arrays[name].dtype


def test_a_line_knows_what_it_reads() -> None:
    """Names of the expression, and its own target when it changes it in place."""
    program = NETWORK.program()
    assert program.line("z1").reads == {"x", "W1", "b1"}
    assert program.line("W1").reads == {"W1", "learning_rate", "dW1"}


def test_a_line_that_is_none_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(ProgramError) as caught:
        NETWORK.program().line("dw1")
    assert str(caught.value) == "no line makes 'dw1'\n  fix    did you mean 'dW1'?"
