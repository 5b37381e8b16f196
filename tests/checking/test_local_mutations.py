"""A mistake at one place of the chain rule is found by its numbers alone: no source of backward is looked at."""

import numpy as np
import pytest

from handgrad.checking.diagnosis.local_mutations import by_local_mutation
from handgrad.checking.subject import Subject
from handgrad.checking.verdict.comparison import Evidence, compare, numerical_gradient

RNG = np.random.default_rng(4)
X, W, V = RNG.normal(size=(5, 3)), RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2))


def found(forward, backward, inputs):
    subject = Subject.of(forward, backward, inputs)
    draws = [inputs, {name: value + 0.2 * RNG.normal(size=value.shape) for name, value in inputs.items()}]
    comparisons = tuple(
        compare(subject, numerical_gradient(subject, draw, subject.arguments(), k))
        for k, draw in enumerate(draws)
    )
    with np.errstate(all="ignore"):
        every = by_local_mutation(Evidence(subject, comparisons, comparisons[0].wrong))
    return min(every, key=lambda diagnosis: (-len(diagnosis.arguments), diagnosis.cost), default=None)


def normalise(x):
    mu = x.mean(axis=0)
    sd = np.sqrt(((x - mu) ** 2).mean(axis=0) + 0.1)
    return (x - mu) / sd


def sd_of(x):
    return np.sqrt(x.var(axis=0) + 0.1)


@pytest.mark.parametrize(
    ("backward", "path"),
    [
        (lambda g, x: g / sd_of(x), ("`mu`", "`sd`")),
        (lambda g, x: (g - g.mean(axis=0)) / sd_of(x), ("sd = ",)),
        (lambda g, x: (g - normalise(x) * (g * normalise(x)).mean(axis=0)) / sd_of(x), ("mu",)),
    ],
)
def test_the_paths_of_a_normalisation_that_are_left_out_are_named(backward, path):
    best = found(normalise, lambda g, x: {"x": backward(g, x)}, {"x": X})
    assert best.code == "missing-term"
    assert all(each in best.evidence for each in path)


def network(x, W, V):
    z = x @ W
    h = np.tanh(z)
    return h @ V


def backward_with(slope):
    def backward(g, x, W, V):
        z = x @ W
        h = np.tanh(z)
        dz = g @ V.T * slope(z, h)
        return {"x": dz @ W.T, "W": x.T @ dz, "V": h.T @ g}

    return backward


@pytest.mark.parametrize(
    ("slope", "code"),
    [
        (lambda z, h: 1.0, "missing-local-derivative"),
        (lambda z, h: (1 - h**2) ** 2, "extra-term"),
        (lambda z, h: 1 - z**2, "wrong-evaluation-point"),
        (lambda z, h: 1 - np.tanh(h) ** 2, "wrong-evaluation-point"),
    ],
    ids=["left out", "twice", "at the input", "at the output"],
)
def test_another_derivative_of_an_activation_is_named_with_its_line(slope, code):
    best = found(network, backward_with(slope), {"x": X, "W": W, "V": V})
    assert (best.code, set(best.arguments)) == (code, {"x", "W"})
    assert "h = np.tanh(z)" in best.evidence


def test_an_error_passed_on_without_the_derivative_is_told_from_a_wrong_derivative():
    inputs = {"x": X, "W": W, "V": V}

    def forward(x, W, V):
        return np.tanh(np.tanh(x @ W) @ V)

    def backward(g, x, W, V):
        h = np.tanh(x @ W)
        delta = g * (1 - np.tanh(h @ V) ** 2)
        dz = (g @ V.T) * (1 - h**2)  # the error, not the delta
        return {"x": dz @ W.T, "W": x.T @ dz, "V": h.T @ delta}

    best = found(forward, backward, inputs)
    assert (best.code, set(best.arguments)) == ("missing-local-derivative", {"x", "W"})
    assert "passed on" in best.evidence


def test_windows_that_are_assigned_keep_the_last_of_their_gradients():
    def forward(x):
        return np.stack([(x[k : k + 3] ** 2).sum(axis=0) for k in range(3)])

    def backward(g, x):
        dx = np.zeros_like(x)
        for k in range(3):
            dx[k : k + 3] = 2 * x[k : k + 3] * g[k]
        return {"x": dx}

    best = found(forward, backward, {"x": X})
    assert best.code == "overwritten-not-accumulated"


def test_a_penalty_that_is_averaged_is_named_by_the_number_of_rows_at_other_sizes_too():
    def forward(x, w):
        return ((x @ w) ** 2).mean() + 0.3 * (w**2).sum()

    def backward(g, x, w):
        return {"w": g * (2 * x.T @ (x @ w) + 0.6 * w) / len(x)}

    best = found(forward, backward, {"x": RNG.normal(size=(7, 3)), "w": RNG.normal(size=3)})
    assert (best.code, best.arguments) == ("batch-mean-vs-sum", ("w",))
    assert "with 6 for 7" in best.evidence
