"""Names that need no look into forward: from backward's whole matrix, its digits, and what zero upstream gives."""

import numpy as np
import pytest

from handgrad import check
from handgrad.checking.diagnosis.gradient_patterns import affine, by_jacobian, by_numbers
from handgrad.checking.subject import Subject
from handgrad.checking.verdict.comparison import Evidence, compare, numerical_gradient

RNG = np.random.default_rng(5)
X, A = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 4))


def evidence_of(forward, backward, x=X):
    subject = Subject.of(forward, lambda grad_output, x: {"x": backward(grad_output, x)}, {"x": x})
    draws = [x, x + 0.1 * RNG.normal(size=x.shape)]
    numerical = (numerical_gradient(subject, {"x": draw}, ("x",), k) for k, draw in enumerate(draws))
    comparisons = tuple(compare(subject, each) for each in numerical)
    assert comparisons[0].wrong == ("x",)
    return Evidence(subject, comparisons, ("x",))


def softmax(x):
    e = np.exp(x)
    return e / e.sum(axis=1, keepdims=True)


def all_rows(x, of):
    """Return the mean or the sum of all rows' Jacobians of softmax."""
    return of([np.diag(row) - np.outer(row, row) for row in softmax(x)], axis=0)


@pytest.mark.parametrize(
    ("forward", "backward", "code"),
    [
        (lambda x: x @ A, lambda g, x: g @ A, "transposed"),
        (softmax, lambda g, x: g @ all_rows(x, np.mean), "averaged-batch"),
        (softmax, lambda g, x: g @ all_rows(x, np.sum), "averaged-batch"),
        (softmax, lambda g, x: g * softmax(x) * (1 - softmax(x)), "missing-term"),
    ],
    ids=["transposed", "mean of Jacobians", "sum of Jacobians", "diagonal"],
)
def test_a_matrix_that_stands_for_the_right_one_is_named(forward, backward, code):
    first, *_ = by_jacobian("x", evidence_of(forward, backward))
    assert first.code == code
    assert first.cost < 1.5


@pytest.mark.parametrize(
    ("forward", "backward", "code"),
    [
        (np.sin, lambda g, x: g * np.cos(x + 0.2), "wrong-local-derivative"),
        (lambda x: np.maximum(x, 0), lambda g, x: g * np.abs(x), "missing-local-derivative"),
        (lambda x: np.cumsum(x, axis=1), lambda g, x: g[:, ::-1].cumsum(axis=1)[:, ::-1] * (x > 0), "missing-term"),
        (lambda x: np.cumsum(x, axis=1), lambda g, x: g[::-1].cumsum(axis=0)[::-1], "wrong-axis"),
        (lambda x: (x**2).sum(axis=1), lambda g, x: 2 * x * g.sum(), "wrong-axis"),
    ],
    ids=["another slope", "not stopped", "missing", "along another axis", "mixed"],
)  # fmt: skip
def test_the_wrong_entries_tell_the_kind_of_mistake(forward, backward, code):
    *_, last = by_jacobian("x", evidence_of(forward, backward))
    assert last.code == code


def test_no_matrix_is_made_of_a_backward_that_is_not_linear():
    assert not list(by_jacobian("x", evidence_of(np.sin, lambda g, x: g**2)))


def test_a_narrow_type_that_backward_alone_names_loses_digits():
    def backward(grad_output, x):
        return {"x": (grad_output * np.cos(x)).astype(np.float16).astype(float)}

    assert check(lambda x: np.sin(x), backward, {"x": X}).findings[0].code == "dtype-or-overflow"


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        (lambda d: d.astype(np.float16), True),
        (lambda d: d.astype(np.float32), True),
        (lambda d: d * (1 + 1e-6 * X), False),
        (lambda d: d * (1 + 1e-9 * X), False),
        (lambda d: 1.001 * d, False),
        (lambda d: d + 2e-4 * np.cos(1e9 * d), True),
    ],
    ids=["float16", "float32", "a millionth", "a billionth", "a thousandth", "cancelled"],
)
def test_digits_are_reported_as_lost_where_as_many_are_as_a_type_loses(change, lost):
    evidence = evidence_of(np.sin, lambda g, x: change(g * np.cos(x)).astype(float))
    found = [guess for guess in by_numbers(evidence) if guess.code == "dtype-or-overflow"]
    assert bool(found) is lost


@pytest.mark.parametrize(
    ("backward", "code"),
    [
        (lambda g, x: np.cos(x) + 0 * g, "ignores-upstream"),
        (lambda g, x: g * np.cos(x) + 0.01 * x, "extra-term"),
        (lambda g, x: (g - 0.5) * np.cos(x) + 0.5 * np.cos(x) + 0.3 * (1 - g), "ignores-upstream"),
        (lambda g, x: g * x + 0.3, "extra-term"),
    ],
    ids=["not used", "something added", "a term without it", "neither"],
)
def test_what_zero_upstream_leaves_is_a_term_too_many_or_one_that_ignores_it(backward, code):
    assert affine(evidence_of(np.sin, backward), "x")[0] == code


def test_a_small_error_that_is_no_factor_is_not_called_one():
    """Near as it is to the right gradient, it is nearer to none of the mistakes that have a formula."""
    evidence = evidence_of(np.sin, lambda g, x: g * np.cos(x) * (1 + 1e-8 * (3 + X)))
    assert {guess.code for guess in by_numbers(evidence)} <= {"wrong-local-derivative", "missing-term"}


@pytest.mark.parametrize("shape", [(5, 3), (3,)])
def test_a_factor_of_the_own_columns_is_no_batch(shape):
    def backward(grad_output, Y, T):
        return {"Y": grad_output * 2 * (Y - T) / Y.size}

    inputs = {"Y": RNG.normal(size=(5, 3)), "T": RNG.normal(size=shape)}
    subject = Subject.of(lambda Y, T: ((Y - T) ** 2).sum() / len(Y), backward, inputs)
    expected = numerical_gradient(subject, inputs, ("Y",), 0)
    evidence = Evidence(subject, (compare(subject, expected),), ("Y",))
    assert min(by_numbers(evidence), key=lambda guess: guess.cost).code == "constant-factor"


def test_a_slope_where_forward_is_flat_is_another_functions():
    guesses = by_numbers(evidence_of(np.round, lambda g, x: g, np.round(X)))  # far from its steps
    assert min(guesses, key=lambda guess: guess.cost).code == "wrong-local-derivative"


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_factor_near_one_is_a_factor_in_few_digits_too(kind):
    report = check(lambda x: np.sin(x.astype(kind)), lambda g, x: {"x": 1.001 * g * np.cos(x)}, {"x": X})
    assert report.verdict == "wrong"
    assert report.findings[0].code != "dtype-or-overflow"


def test_slopes_by_differences_have_lost_digits():
    """Their errors have no form; at a single number that is zero, too."""

    def backward(grad_output, x):
        return {"x": grad_output * (np.exp(x + 1e-9) - np.exp(x)) / 1e-9}

    for x in (np.zeros(1), X):
        assert check(np.exp, backward, {"x": x}).findings[0].code == "dtype-or-overflow"


def test_a_gradient_in_a_narrower_type_than_its_argument():
    report = check(np.sin, lambda g, x: {"x": (g * np.cos(x)).astype(np.float16)}, {"x": X})
    assert report.findings[0].code == "dtype-or-overflow"
    assert "it is float16" in report.findings[0].evidence


def test_a_gradient_in_float32_is_right_but_for_its_digits():
    report = check(np.sin, lambda g, x: {"x": (g * np.cos(x)).astype(np.float32)}, {"x": X})
    assert report.verdict == "right, but"
    assert "float32" in report.reason


def normalised(grad_output, x):
    return {"x": grad_output / np.linalg.norm(grad_output) * np.cos(x)}


def signs(grad_output, x):
    return {"x": np.sign(grad_output) * np.cos(x)}


def squashed(grad_output, x):
    dx = grad_output * np.cos(x)
    dx = np.tanh(dx)
    return {"x": dx}


def upstream_twice(grad_output, x):
    return {"x": grad_output * np.cos(x) * grad_output}


def slope_at_the_upstream(grad_output, x):
    return {"x": grad_output * np.cos(grad_output)}


@pytest.mark.parametrize(
    ("backward", "code"),
    [
        (normalised, "not-proportional"),
        (signs, "not-proportional"),
        (squashed, "not-proportional"),
        (upstream_twice, "extra-term"),
        (slope_at_the_upstream, "wrong-evaluation-point"),
    ],
)
def test_a_function_of_the_upstream_gradient_is_not_proportional_to_it(backward, code):
    """What is multiplied twice is, as a factor, known better; and so is a derivative taken there."""
    assert check(np.sin, backward, {"x": X}).findings[0].code == code
