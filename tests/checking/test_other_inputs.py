"""A repair must be right at more inputs than the few that are judged: others of these sizes, and other sizes."""

from dataclasses import replace

import numpy as np

from handgrad.checking import check
from handgrad.checking.repair.other_inputs import OtherInputs
from handgrad.checking.subject import Subject
from handgrad.checking.verdict.comparison import Evidence, compare, numerical_gradient


def leaky_mean(x):
    return np.where(x > 0, x, 0.1 * x).mean(axis=0)


def evidence_of(forward, backward, inputs):
    subject = Subject.of(forward, backward, inputs)
    expected = numerical_gradient(subject, subject.inputs, tuple(inputs), 0)
    judgement = compare(subject, expected)
    return Evidence(subject, (judgement,), judgement.wrong)


def leaky_backward(count, threshold):
    def backward(grad_output, x):
        rows = count or len(x)
        return {"x": np.where(x > threshold, 1.0, 0.1) * grad_output / rows}

    return backward


X = np.random.default_rng(3).normal(size=(5, 3))


def test_a_threshold_between_the_inputs_is_found_at_others():
    evidence = evidence_of(leaky_mean, leaky_backward(0, 0.0), {"x": X})
    others = OtherInputs(evidence)
    near = np.abs(X).min() / 2
    off = replace(evidence.subject, backward=leaky_backward(0, near))
    assert len(others.draws) == 24 + 8 + 8  # moved, drawn anew, and drawn as large as 1
    assert not compare(off, evidence.comparisons[0].numerical).wrong
    assert others.is_right(evidence.subject, others.draws)
    assert not others.is_right(off, others.draws)


def test_a_number_that_is_a_length_is_found_at_other_sizes():
    evidence = evidence_of(leaky_mean, leaky_backward(5, 0.0), {"x": X})
    others = OtherInputs(evidence)
    assert others.is_right(evidence.subject, others.draws)
    assert {target.inputs["x"].shape for target in others.sizes} == {(4, 3), (5, 2)}
    assert not others.is_right(evidence.subject, others.sizes)
    any_size = replace(evidence.subject, backward=leaky_backward(0, 0.0))
    assert others.is_right(any_size, others.sizes)


def test_sizes_at_which_a_bias_only_broadcasts_are_no_other_sizes():
    """Two biases and one: forward takes (1,) for (2,), and the author's gradient of it has the shape (2,)."""

    def backward(grad_output, x, b):
        return {"x": grad_output, "b": grad_output.sum(axis=0)}

    evidence = evidence_of(np.add, backward, {"x": X[:, :2], "b": X[0, :2]})
    shapes = {(t.inputs["x"].shape, t.inputs["b"].shape) for t in OtherInputs(evidence).sizes}
    assert shapes == {((5, 1), (1,)), ((4, 2), (2,))}


def test_an_argument_alone_is_smaller_and_labels_never_are():
    """With a label less, forward takes the mean over fewer rows, and a right backward need not know."""

    def forward(x, y, w):
        shifted = x * w
        logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return -logs[np.arange(len(y)), y].mean()

    def backward(grad_output, x, y, w):
        shares = np.exp(x * w) / np.exp(x * w).sum(axis=1, keepdims=True)
        shares[np.arange(len(y)), y] -= 1
        return {"x": 2 * grad_output * shares * w / len(y)}

    y = np.array([0, 2, 1, 1, 0])
    subject = Subject.of(forward, backward, {"x": X, "y": y, "w": np.float64(1.5)})
    judgement = compare(subject, numerical_gradient(subject, subject.inputs, ("x",), 0))
    others = OtherInputs(Evidence(subject, (judgement,), judgement.wrong))
    right = replace(subject, backward=lambda g, **given: {"x": backward(g / 2, **given)["x"]})
    assert others.sizes
    assert all(len(target.inputs["y"]) == len(target.inputs["x"]) for target in others.sizes)
    assert others.is_right(right, others.sizes)


def test_sizes_that_an_array_filled_by_backward_has_not_are_no_other_sizes():
    whole = np.zeros((5, 3))

    def backward(grad_output, x):
        whole[...] = 0
        whole[: len(x)] = grad_output * np.cos(x)
        return {"x": whole.copy()}

    assert not OtherInputs(evidence_of(np.sin, backward, {"x": X})).sizes


def test_a_branch_that_the_first_inputs_do_not_take_is_followed():
    def forward(x):
        return np.tanh(x) if x.sum() > X.sum() else x**2

    def backward(grad_output, x):
        slope = 1 - np.tanh(x) ** 2 if x.sum() > X.sum() else 2 * x
        return {"x": slope * grad_output}

    def one_branch(grad_output, x):
        return {"x": 2 * x * grad_output}

    evidence = evidence_of(forward, backward, {"x": X})
    others = OtherInputs(evidence)
    assert others.is_right(evidence.subject, others.draws)
    assert not others.is_right(replace(evidence.subject, backward=one_branch), others.draws)


def test_a_kink_at_every_draw_is_judged_with_care():
    """Whole numbers stay as they are, and any slope between the two is right at zero."""

    def forward(x):
        return np.maximum(x, 0)

    def backward(grad_output, x):
        return {"x": grad_output * np.where(x > 0, 1, np.where(x < 0, 0, 0.3))}

    evidence = evidence_of(forward, backward, {"x": np.array([0.0, 1.0, -2.0])})
    others = OtherInputs(evidence)
    assert others.is_right(evidence.subject, others.draws)


def test_what_divides_by_an_input_is_not_finite_at_its_zeros():
    def divided(grad_output, x):
        return {"x": grad_output / len(x) * np.where(x > 0, x, 0.1 * x) / x}

    evidence = evidence_of(leaky_mean, leaky_backward(0, 0.0), {"x": X})
    others = OtherInputs(evidence)
    off = replace(evidence.subject, backward=divided)
    assert others.is_right(off, others.draws)
    assert others.is_finite(evidence.subject)
    assert not others.is_finite(off)


SIZED = """import numpy as np

def forward(x, w):
    return x @ w

def backward(grad_output, x, w):
    d = 1.7 ** grad_output
    return {"x": np.cosh(d).sum() * x, "w": np.cosh(d).sum() * w}
"""


def test_a_repair_is_tried_at_half_a_length_where_one_less_does_not_run(tmp_path):
    path = tmp_path / "sized.py"
    text = SIZED.replace("return x @ w", "return (x @ w).reshape(-1, 2).sum(axis=1)")
    path.write_text(text)
    names = {}
    exec(compile(text, str(path), "exec"), names)
    report = check(names["forward"], names["backward"], {"x": X[:4], "w": X[0]})
    assert report.findings[0].proved  # written for 4 rows, with a 2 in it that is half of them
    assert not report.findings[0].any_size


def test_a_repair_for_these_sizes_only_says_so(tmp_path, monkeypatch):
    path = tmp_path / "sized.py"
    path.write_text(SIZED)
    names = {}
    exec(compile(SIZED, str(path), "exec"), names)
    inputs = {"x": X[:4], "w": X[0]}
    report = check(names["forward"], names["backward"], inputs)
    assert report.findings[0].proved
    assert report.findings[0].any_size
    monkeypatch.setattr(OtherInputs, "is_right", lambda self, candidate, targets: targets is not self.sizes)
    report = check(names["forward"], names["backward"], inputs)
    assert not report.findings[0].any_size
    assert "proved on fresh inputs; at these sizes only" in str(report)


ATTENTION = """import numpy as np

def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)

def forward(x, wq, wk):
    q, k = x @ wq, x @ wk
    a = softmax(q @ k.T / np.sqrt(q.shape[1]))
    return a, (x, q, k, a, wq, wk)

def backward(da, cache):
    x, q, k, a, wq, wk = cache
    ds = a * (da - np.sum(da * a, axis=-1, keepdims=True))
    return x.T @ (ds @ k), x.T @ (ds.T @ q)
"""


def test_what_a_square_matrix_takes_and_returns_are_two_sizes(tmp_path):
    """The scores are divided by the square root of len(wq), the size of a row of x, and not of a query."""
    path = tmp_path / "attention.py"
    path.write_text(ATTENTION)
    names = {}
    exec(compile(ATTENTION, str(path), "exec"), names)
    draw = np.random.default_rng(0).normal
    inputs = {"x": draw(size=(7, 6)), "wq": draw(size=(6, 6)), "wk": draw(size=(6, 6))}
    report = check(names["forward"], names["backward"], inputs)
    assert report.findings[0].code == "constant-factor"
    assert "len(wq)" not in report.mended.diff or not report.findings[0].any_size
