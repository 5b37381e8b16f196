"""Names that need no look into forward: from backward's whole matrix, its digits, and what zero upstream gives."""

import ast
import re

import numpy as np
import pytest

from handgrad import check
from handgrad.checking.diagnosis.differences import differences
from handgrad.checking.diagnosis.edited import code_of_edit
from handgrad.checking.diagnosis.formulas import FORMULAS
from handgrad.checking.diagnosis.jacobians import by_jacobian
from handgrad.checking.diagnosis.numbers import affine, by_numbers
from handgrad.checking.numerical.comparison import Evidence, compare, numerical_gradient
from handgrad.checking.subject import Subject

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


@pytest.mark.parametrize(
    ("forward", "backward", "code"),
    [
        (lambda x: x @ A, lambda g, x: g @ A, "transposed"),
        (lambda x: x @ A, lambda g, x: g, "missing-local-derivative"),
        (softmax, lambda g, x: g * softmax(x) * (1 - softmax(x)), "missing-term"),
    ],
    ids=["transposed", "handed on", "diagonal"],
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
def test_digits_are_said_to_be_lost_where_as_many_are_as_a_type_loses(change, lost):
    evidence = evidence_of(np.sin, lambda g, x: change(g * np.cos(x)).astype(float))
    said = [guess for guess in by_numbers(evidence) if guess.code == "dtype-or-overflow"]
    assert bool(said) is lost


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
    guesses = by_numbers(evidence_of(np.round, lambda g, x: g))
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


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_a_gradient_in_a_narrower_type_than_its_argument(kind):
    report = check(np.sin, lambda g, x: {"x": (g * np.cos(x)).astype(kind)}, {"x": X})
    assert report.findings[0].code == "dtype-or-overflow"
    assert f"it is {np.dtype(kind)}" in report.findings[0].evidence


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("A.T @ B", "A @ B.T", "transposed"),
        ("A @ B.T", "A @ B", "transposed"),
        ("np.outer(x.mean(axis=0), g.mean(axis=0))", "x.T @ g / len(x)", "averaged-batch"),
        ("g.mean(axis=0)", "g.sum(axis=0)", "batch-mean-vs-sum"),
        ("np.sum(g, axis=0)", "np.mean(g, axis=0)", "batch-mean-vs-sum"),
        ("x * g", "x.T @ g", "elementwise-instead-of-matmul"),
        ("x @ g", "np.outer(x, g)", "elementwise-instead-of-matmul"),
        ("g.sum(axis=0)", "g.sum(axis=1)", "wrong-axis"),
        ("g.sum(axis=(0, 1))", "g.sum(axis=(0, 2))", "wrong-axis"),
        ("g.sum()", "g.sum(axis=0)", "wrong-axis"),
        ("np.sum(g)", "np.sum(g, axis=0)", "wrong-axis"),
        ("g", "g.sum(axis=0)", "broadcast-not-summed"),
        ("g * x", "np.sum(g * x, axis=0)", "broadcast-not-summed"),
        ("np.random.normal(size=3) * g", "g", "nondeterministic"),
        ("np.abs(g)", "g", "extra-term"),
        ("x @ g", "x.swapaxes(-1, -2) @ g", "transposed"),
        ("components * g", "g", "extra-term"),
    ],
)
def test_an_edit_is_named_by_the_trees_and_not_by_how_they_are_written(before, after, code):
    named = code_of_edit(f"d = {before}", f"d = ( {after} )")
    assert named is not None
    assert named[0] == code


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("d = g", "d = g\nd += h", "missing-term"),
        ("d = g\nd += h", "d = g", "extra-term"),
        ("d = g\nd -= h", "d = g", "stale-or-mutated-state"),
        ("d[i] = g", "d[i] += g", "overwritten-not-accumulated"),
        ("d = {'x': a, 'W': b}", "d = {'x': b, 'W': a}", "swapped-gradients"),
        ("d = g\nd *= 2", "d = g.copy()\nd *= 2", "stale-or-mutated-state"),
    ],
)
def test_an_edit_of_statements_is_named(before, after, code):
    assert code_of_edit(before, after)[0] == code


@pytest.mark.parametrize(
    ("before", "after", "parts"),
    [
        ("d = a * b", "d = a * c", [("b", "c")]),
        ("d = a + b", "d = a - b", [("a + b", "a - b")]),
        ("d = sigmoid(x) * g", "d = tanh(x) * g", [("sigmoid", "tanh")]),
        ("d = np.sin(x) * g", "d = np.cos(x) * g", [("np.sin(x)", "np.cos(x)")]),
        ("d = g.sum(axis=0)", "d = g.sum(axis=1)", [("0", "1")]),
        ("d = g.sum(axis=0)", "d = g.sum()", [("g.sum(axis=0)", "g.sum()")]),
        ("d = x[1:]", "d = x[:]", [("1:", ":")]),
        ("d = a\ne = b", "d = a", [("e = b", "")]),
        ("d = a\nf = c", "d = b\nf = d", [("a", "b"), ("c", "d")]),
    ],
)
def test_two_texts_differ_in_the_smallest_parts(before, after, parts):
    found = differences(ast.parse(before), ast.parse(after))
    assert [tuple((part and ast.unparse(part)) or "" for part in pair) for pair in found] == parts


def test_an_edit_is_described_in_the_users_own_words():
    _, words, _ = code_of_edit("db = g.mean(axis=0)", "db = g.sum(axis=0)")
    assert words == "`g.sum(axis=0)` stands right where `g.mean(axis=0)` was wrong"
    _, words, _ = code_of_edit("d = g\nd += h", "d = g")
    assert words == "`d += h` mends it"


def test_a_formula_is_what_its_text_says():
    """It is what the evidence prints: a product where two stand side by side, and σ, √ and [ > ] as in a book."""
    v = np.array([0.3, 0.7, 0.9])
    scope = {name: getattr(np, name) for name in ("sqrt", "exp", "log", "abs", "sign", "sin", "cos", "tanh")}
    for text, formula in FORMULAS.items():
        spelled = text.format("v").replace("|v|", "abs(v)").replace("[", "(").replace("]", ")")
        spelled = re.sub(r"e\^(-?v)", r"exp(\1)", spelled)
        spelled = re.sub(r"(tanh|log|sign|sin|cos|√)(²?) ?(v|abs\(v\)|\(.*\))", r"\1(\3)\2", spelled)
        spelled = re.sub(r"(?<=[\dv)]) (?=[a-zσ√(])", " * ", spelled)
        spelled = spelled.replace("²", "**2").replace("√", "sqrt").replace("σ", "sigmoid")
        wanted = eval(spelled, scope | {"v": v, "sigmoid": lambda x: 1 / (1 + np.exp(-x))})
        np.testing.assert_allclose(formula(v), wanted * np.ones(3), rtol=1e-14, err_msg=f"{text}: {spelled}")


def test_an_edit_of_everything_has_no_name():
    assert code_of_edit("d = g", "d = g") is None
    assert (
        code_of_edit("; ".join(f"d{k} = g" for k in range(9)), "; ".join(f"d{k} = h" for k in range(9)))
        is None
    )
