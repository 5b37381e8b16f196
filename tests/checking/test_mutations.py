"""Mutations of the right gradient: the mistake that was made is found, whatever else would give the same numbers."""

import numpy as np
import pytest

from handgrad.checking.diagnosis.mutations import by_mutation
from handgrad.checking.subject import Subject
from handgrad.checking.verdict.comparison import Evidence, compare, numerical_gradient

DRAW = np.random.default_rng(6)
SQUARES = {"a": DRAW.normal(size=(4, 4)), "b": DRAW.normal(size=(4, 4))}


def found(forward, backward, inputs=SQUARES):
    """Return what explains the numbers of a wrong backward that has no source, the nearest first."""
    subject = Subject.of(forward, backward, inputs)
    draws = [inputs, {name: value + 0.1 * DRAW.normal(size=value.shape) for name, value in inputs.items()}]
    comparisons = tuple(
        compare(subject, numerical_gradient(subject, draw, tuple(inputs), k)) for k, draw in enumerate(draws)
    )
    with np.errstate(all="ignore"):
        explained = by_mutation(Evidence(subject, comparisons, comparisons[0].wrong))
    return sorted(explained, key=lambda diagnosis: diagnosis.cost)


def matmul(a, b):
    return a @ b


@pytest.mark.parametrize(
    ("da", "db", "code"),
    [
        ("g @ b", "a @ g", "transposed"),
        ("b.T @ g", "g @ a.T", "transposed"),
        ("b @ g", "g @ a", "transposed"),
        ("g.T @ b", "a @ g.T", "transposed"),
        ("g.T @ b.T", "a.T @ g.T", "transposed"),
        ("(g @ b.T).T", "(a.T @ g).T", "transposed"),
        ("g * b", "g * a", "elementwise-instead-of-matmul"),
        ("g * b.T", "a.T * g", "elementwise-instead-of-matmul"),
    ],
)
def test_another_product_than_the_right_one_is_found(da, db, code):
    right = {"a": "g @ b.T", "b": "a.T @ g"}
    for wrong in ({"a": da}, {"b": db}):

        def backward(g, a, b, formulas=right | wrong):
            return {name: eval(text, {"g": g, "a": a, "b": b}) for name, text in formulas.items()}

        best, *_ = found(matmul, backward)
        assert (best.code, best.arguments) == (code, tuple(wrong))


def tanh_layer(a, b):
    return np.tanh(a) @ b


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda g, a, s: g, "missing-local-derivative"),
        (lambda g, a, s: g * (1 - a**2), "wrong-evaluation-point"),
        (lambda g, a, s: g * (1 - s) ** 2, "wrong-local-derivative"),
        (lambda g, a, s: g * (1 + s**2), "wrong-sign"),
        (lambda g, a, s: (g * (1 - s**2)).T, "transposed"),
        (lambda g, a, s: g * (1 - s**2) * a, "extra-term"),
        (lambda g, a, s: g.mean(axis=0, keepdims=True) * (1 - s**2), "averaged-batch"),
        (lambda g, a, s: g.T * (1 - s**2), "transposed"),
    ],
    ids=["left out", "elsewhere", "brackets", "sign", "turned", "twice", "averaged", "turned before"],
)
def test_a_local_derivative_that_went_wrong_is_found_with_the_line_of_forward(change, code):
    def backward(g, a, b):
        s = np.tanh(a)
        return {"a": change(g @ b.T, a, s), "b": s.T @ g}

    best, *_ = found(tanh_layer, backward)
    assert (best.code, best.arguments) == (code, ("a",))
    assert best.evidence.startswith("the right gradient gives these numbers with `")
    assert best.place == "" or "np.tanh(a) @ b" in best.place


def test_a_path_that_was_forgotten_is_found():
    def forward(a, b):
        return np.tanh(a @ b) + a

    def backward(g, a, b):
        d = g * (1 - np.tanh(a @ b) ** 2)
        return {"a": d @ b.T, "b": a.T @ d}

    best, *_ = found(forward, backward)
    assert (best.code, best.arguments) == ("missing-term", ("a",))


def test_a_mutation_must_give_the_numbers_at_fresh_inputs_too():
    """Where every entry of a is 1, g * a is g."""

    def forward(a):
        return a**2

    def backward(g, a):
        return {"a": g + 0.3 * np.cosh(a)}

    assert not found(forward, backward, {"a": np.full((3, 2), 1.5)})
