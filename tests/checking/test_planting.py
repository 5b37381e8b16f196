"""Mistakes planted in a recording of forward: the one that was made is found where it was made, whatever else fits."""

import numpy as np
import pytest

from handgrad.checking.diagnosis.edges import at_edges
from handgrad.checking.diagnosis.paths import additions
from handgrad.checking.diagnosis.planted import plant
from handgrad.checking.diagnosis.replayed import replay
from handgrad.checking.diagnosis.slopes import in_regions
from handgrad.checking.numerical.comparison import Evidence, compare, numerical_gradient
from handgrad.checking.subject import Subject

DRAW = np.random.default_rng(6)
SQUARES = {"a": DRAW.normal(size=(4, 4)), "b": DRAW.normal(size=(4, 4))}


def found(mistakes, forward, backward, inputs=SQUARES):
    """Return what explains the numbers of a wrong backward, the nearest first."""
    subject = Subject.of(forward, backward, inputs)
    draws = [inputs, {name: value + 0.1 * DRAW.normal(size=value.shape) for name, value in inputs.items()}]
    numerical = (numerical_gradient(subject, draw, tuple(inputs), k) for k, draw in enumerate(draws))
    comparisons = tuple(compare(subject, each) for each in numerical)
    replays = replay(Evidence(subject, comparisons, comparisons[0].wrong))
    return sorted(plant(replays, mistakes(replays), seconds=np.inf), key=lambda guess: guess.cost)


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
        ("g * b.T", "g * a.T", "elementwise-instead-of-matmul"),
        ("g.T * b", "g.T * a", "elementwise-instead-of-matmul"),
    ],
)
def test_another_product_than_the_right_one_is_found(da, db, code):
    right = {"a": "g @ b.T", "b": "a.T @ g"}
    for wrong in ({"a": da}, {"b": db}):

        def backward(g, a, b, formulas=right | wrong):
            return {name: eval(text, {"g": g, "a": a, "b": b}) for name, text in formulas.items()}

        best, *_ = found(at_edges, matmul, backward)
        assert (best.code, best.arguments) == (code, tuple(wrong))


def test_a_square_gradient_is_transposed_on_its_way():
    def forward(a, b):
        return np.einsum("ij,jk->ik", np.tanh(a), b)

    def backward(g, a, b):
        return {"a": (g @ b.T).T * (1 - np.tanh(a) ** 2), "b": np.tanh(a).T @ g}

    best, *_ = found(at_edges, forward, backward)
    assert best.code == "transposed"
    assert "np.einsum" in best.place


def test_a_slope_that_is_there_twice_costs_more_than_one_left_out():
    def forward(a, b):
        return np.tanh(a) @ b

    def backward(power):
        return lambda g, a, b: {"a": (g @ b.T) * (1 - np.tanh(a) ** 2) ** power, "b": np.tanh(a).T @ g}

    twice, *_ = found(in_regions, forward, backward(2))
    none, *_ = found(in_regions, forward, backward(0))
    assert (twice.code, none.code) == ("extra-term", "missing-local-derivative")
    assert 1 < none.cost < twice.cost


def test_a_multiple_of_a_value_that_is_added_is_found_whatever_the_other_values_are():
    def backward(g, a, b):
        return {"a": g @ b.T + 0.3 * a, "b": a.T @ g}

    inputs = {"a": SQUARES["a"][:3], "b": SQUARES["b"]}
    best, *_ = found(additions, matmul, backward, inputs)
    assert (best.code, best.arguments) == ("extra-term", ("a",))
    assert "a multiple of a is added" in best.evidence


@pytest.mark.parametrize(("name", "wrong_axis"), [("cumsum", 0), ("cumsum", 1), ("sort", 0)])
def test_what_moves_along_another_axis_is_found(name, wrong_axis):
    def forward(a):
        return getattr(np, name)(np.tanh(a), axis=1 - wrong_axis)

    def backward(g, a):
        if name == "cumsum":
            d = np.flip(np.cumsum(np.flip(g, wrong_axis), wrong_axis), wrong_axis)
        else:
            d = np.zeros_like(g)
            np.put_along_axis(d, np.argsort(a, axis=wrong_axis), g, axis=wrong_axis)
        return {"a": d * (1 - np.tanh(a) ** 2)}

    best, *_ = found(at_edges, forward, backward, {"a": SQUARES["a"]})
    assert best.code == "wrong-axis"
    assert f"through {name} along axis {wrong_axis}" in best.evidence
