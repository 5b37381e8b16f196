"""Python's expressions as mathematics writes them."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad.explaining.jacobian_structure import recognise
from handgrad.explaining.tex import Formula, name_to_tex

SCOPE = {
    "x": np.ones((3, 4)), "W1": np.ones((4, 5)), "z1": np.ones((3, 5)), "dz1": np.ones((3, 5)), "l": np.ones(3),
    "count": 3, "i": np.array([0, 1, 2]), "rate": 0.5,
}  # fmt: skip
LETTERS = {(3, 4): ("N", "I"), (4, 5): ("I", "O1"), (3, 5): ("N", "O1"), (3,): ("N",)}

FORMULAS = {
    "x @ W1": r"x \, W_{1}",
    "x.T @ dz1": r"{x}^{\top} \, \frac{\partial L}{\partial z_{1}}",
    "(x @ W1) * z1": r"x \, W_{1} \odot z_{1}",
    "(z1 * z1) @ W1.T": r"\left(z_{1} \odot z_{1}\right) \, {W_{1}}^{\top}",
    "2 * z1": r"2 \, z_{1}",
    "dz1 * (z1 > 0)": r"\frac{\partial L}{\partial z_{1}} \odot \mathbf{1}\left[z_{1} > 0\right]",
    "z1 - (z1 - dz1)": r"z_{1} - \left(z_{1} - \frac{\partial L}{\partial z_{1}}\right)",
    "dz1.sum(axis=0)": r"\sum_{n} \frac{\partial L}{\partial z_{1}}",
    "(z1 * z1).mean(axis=-1)": r"\frac{1}{O_{1}} \sum_{o_{1}} \left(z_{1} \odot z_{1}\right)",
    "z1.max(axis=-1, keepdims=True)": r"\max_{o_{1}} z_{1}",
    "l.size": "N",
    "z1.shape[-1]": "O_{1}",
    "l[..., None]": r"\ell",
    "W1[i]": r"{W_{1}}_{i}",
    "np.exp(-np.abs(z1))": r"e^{-\left|z_{1}\right|}",
    "np.log1p(z1)": r"\log\left(1 + z_{1}\right)",
    "1 / np.sqrt(z1 + 1e-05)": r"\frac{1}{\sqrt{z_{1} + 1 \cdot 10^{-5}}}",
    "(1 + z1) ** 2": r"{\left(1 + z_{1}\right)}^{2}",
    "np.where(z1 > 0, z1, 0)": r"\begin{cases} z_{1} & z_{1} > 0 \\ 0 & \text{else} \end{cases}",
    "np.full_like(l, 1 / count)": r"\frac{1}{\mathrm{count}} \, \mathbf{1}",
    "normal_cdf(z1)": r"\Phi\left(z_{1}\right)",
    "one_hot(i, z1)": r"\operatorname{one\_hot}\left(i\right)",
}


@pytest.mark.parametrize("expression", FORMULAS)
def test_an_expression_is_written_as_mathematics_does(expression: str) -> None:
    """What holds together less tightly is in brackets, and axes have their letters."""
    formula = Formula(SCOPE, {"dz1": "z1"}, lambda shape: LETTERS[shape])
    assert formula.write(expression) == FORMULAS[expression]


def test_shapes_stand_under_the_factors_of_a_product() -> None:
    """Of whole factors, not of what is within a function."""
    formula = Formula(SCOPE, {}, lambda shape: LETTERS[shape], braces=True)
    assert formula.write("x @ W1") == r"\underbrace{x}_{3 \times 4} \, \underbrace{W_{1}}_{4 \times 5}"
    assert formula.write("np.tanh(x @ W1)") == r"\tanh\left(x \, W_{1}\right)"


@pytest.mark.parametrize(
    ("name", "tex"),
    [("loss", "L"), ("gamma2", r"\gamma_{2}"), ("xhat1", r"\hat{x}_{1}"), ("running_var3", r"\mathrm{running\_var}_{3}")],
)  # fmt: skip
def test_a_name_is_written_with_its_number_below(name: str, tex: str) -> None:
    """Greek letters by their names, words upright."""
    assert name_to_tex(name) == tex


def test_equal_sizes_are_shared_only_where_nothing_is_off_the_diagonal() -> None:
    """A square matrix is no diagonal one."""
    rng = np.random.default_rng(0)
    assert recognise(rng.normal(size=(4, 4)), 1).kind == "full"
    assert recognise(np.diag(rng.normal(size=4)), 1).kind == "diagonal"
    blocks = np.einsum("nm,nij->nimj", np.eye(4), rng.normal(size=(4, 4, 4)))
    assert recognise(blocks, 2).kind == "block diagonal"
    assert recognise(np.zeros((3, 3)), 1).kind == "zero"


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_diagonal_with_a_low_rank_is_taken_apart(rank: int) -> None:
    """Whatever the diagonal; one rank more than pays is left full."""
    rng = np.random.default_rng(rank)
    left, right = rng.normal(size=(2, 14, rank))
    matrix = np.diag(rng.normal(size=14)) + left @ right.T
    stored = recognise(matrix, 1)
    assert (stored.kind, stored.numbers) == ("diagonal plus low rank", 14 + 28 * rank)
    np.testing.assert_allclose(stored.pull(np.eye(14)[3]), matrix[3], rtol=0, atol=1e-9)
    nearly = matrix + 1e-6 * rng.normal(size=(14, 14))
    assert recognise(nearly, 1).kind == "full"
