"""The small edits that a repair tries: for what people get wrong, the right text is among them."""

import ast
import importlib.util

import numpy as np
import pytest

from handgrad.checking.repair.edit_candidates import small_changes
from handgrad.checking.repair.expressions import observe
from handgrad.checking.repair.guard import Guard
from handgrad.checking.repair.module_source import read_sources
from handgrad.checking.repair.sandbox import Sandbox, Target
from handgrad.checking.subject import Subject

TEXT = """import numpy as np

def forward(x, W):
    return x @ W

def backward(grad_output, x, W):
    g, v, w = grad_output, W[0], W[1]
    n, scale = len(x), 0.5
    rows = g.reshape(g.shape[0], -1).sum(axis=0)
    slope = np.sin(1 - v) * (1 - w) ** 2
    kept = np.where(v > 0, v[1:].sum(), -w)
    chain = v * w * slope
    even = np.mean(slope / n, axis=0, keepdims=True)
    both = np.outer(v, w) @ W.T
    total = np.zeros(5)
    for k in range(n):
        total[k] += v[k] * w[k] + 1e-3
        total[k] = v[k]
    total *= scale
    return {"x": g @ W.T, "W": np.tensordot(x, g, 2 * [[0, 1]])}
"""

RIGHT = [
    ("g.reshape(g.shape[0], -1)", "g.reshape(-1, g.shape[-1])"),  # rows of the last axis
    ("g.reshape(g.shape[0], -1).sum(axis=0)", "g.reshape(g.shape[0], -1).sum(axis=1, keepdims=True)"),
    ("np.sin(1 - v)", "np.cos(1 - v)"),
    ("slope", "v"),
    ("v", "-v"),
    ("v", "1 - v"),
    ("-w", "w"),
    ("w", "scale"),
    ("(1 - w) ** 2", "1 - w ** 2"),  # brackets elsewhere
    ("(1 - w) ** 2", "(1 - w) * 2"),
    ("2", "n"),
    ("2", "3"),
    ("v > 0", "v >= 0"),
    ("np.where(v > 0, v[1:].sum(), -w)", "np.where(v > 0, -w, v[1:].sum())"),
    ("v[1:]", "v"),
    ("v[1:]", "v[:-1]"),
    ("v * w * slope", "v"),  # two factors too many
    ("v * w * slope", "v * w / slope"),
    ("slope / n", "slope"),
    ("slope / n", "slope * n"),
    ("np.mean(slope / n, axis=0, keepdims=True)", "(slope / n).sum(axis=0, keepdims=True)"),
    ("np.mean(slope / n, axis=0, keepdims=True)", "np.mean(slope / n, axis=0)"),  # a keyword left out
    ("len(x)", "len(x) - 1"),
    ("len(x)", "grad_output.shape[1]"),
    ("np.outer(v, w)", "np.outer(w, v)"),
    ("np.outer(v, w)", "v * w"),
    ("np.outer(v, w) @ W.T", "np.outer(v, w) * W"),
    ("W.T", "W"),
    ("v[k]", "v[k + 1]"),
    ("total[k] += v[k] * w[k] + 0.001", "total[k] = v[k] * w[k] + 0.001"),
    ("total[k] += v[k] * w[k] + 0.001", "total[k] -= v[k] * w[k] + 0.001"),
    ("total[k] += v[k] * w[k] + 0.001", "np.add.at(total, k, v[k] * w[k] + 0.001)"),
    ("total[k] = v[k]", "total[k] += v[k]"),
    ("total *= scale", "total /= scale"),
    ("total *= scale", "total = total * scale"),
    ("total *= scale", ""),  # left out
]  # fmt: skip


@pytest.fixture(scope="module")
def proposed(tmp_path_factory):
    """Return every edit as a pair of texts, with the mistakes that it undoes and makes."""
    path = tmp_path_factory.mktemp("edits") / "layer.py"
    path.write_text(TEXT)
    specification = importlib.util.spec_from_file_location("layer", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    draw = np.random.default_rng(0)
    inputs = {"x": draw.normal(size=(2, 3, 4)), "W": draw.normal(size=(4, 5))}
    subject = Subject.of(module.forward, module.backward, inputs)
    right = {name: np.zeros_like(value) for name, value in inputs.items()}
    target = Target(inputs, [draw.normal(size=(2, 3, 5))], right, dict.fromkeys(right, 1e-9))
    source = read_sources(subject)[0]
    guard = Guard()
    with guard.search():
        changes = small_changes(source, observe(Sandbox(source, subject, target, guard)))
    found = {}
    for change in changes:
        key = tuple((ast.unparse(edit.old), spelled(edit.new)) for edit in change.edits)
        found.setdefault(key if len(key) > 1 else key[0], set()).add((change.undoes, change.makes))
    return found


def spelled(new):
    nodes = new if isinstance(new, tuple) else (new,)
    return "\n".join(ast.unparse(ast.fix_missing_locations(node)) for node in nodes)


@pytest.mark.parametrize(("wrong", "right"), RIGHT)
def test_what_was_meant_is_tried(proposed, wrong, right):
    assert (wrong, right) in proposed, sorted(new for old, new in proposed if old == wrong)


CODES = [  # of what is wrong, and of what is right
    ("np.outer(v, w) @ W.T", "np.outer(v, w) @ W", "transposed", "transposed"),
    ("np.outer(v, w)", "np.outer(w, v)", "transposed", "transposed"),
    ("g @ W.T", "g * W.T", "elementwise-instead-of-matmul", "elementwise-instead-of-matmul"),
    ("v * w", "np.outer(v, w)", "elementwise-instead-of-matmul", "elementwise-instead-of-matmul"),
    ("-w", "w", "wrong-sign", "wrong-sign"),
    ("1 - v", "1 + v", "wrong-sign", "wrong-sign"),
    ("v * w * slope", "v * w", "extra-term", "missing-local-derivative"),
    ("v * w * slope", "v", "extra-term", "missing-local-derivative"),
    ("slope", "slope * v", "missing-local-derivative", "extra-term"),
    ("total[k] += v[k] * w[k] + 0.001", "", "extra-term", "missing-term"),
    ("v[k] * w[k] + 0.001", "v[k] * w[k]", "extra-term", "missing-term"),
    ("slope / n", "slope", "extra-term", "missing-local-derivative"),
    ("slope", "slope / len(grad_output)", "batch-mean-vs-sum", "batch-mean-vs-sum"),
    ("v[1:].sum()", "v[1:].mean()", "batch-mean-vs-sum", "batch-mean-vs-sum"),
    ("v[1:].sum()", "v[1:]", "averaged-batch", "broadcast-not-summed"),
    ("grad_output", "grad_output.sum(axis=0)", "broadcast-not-summed", "averaged-batch"),
    ("g.reshape(g.shape[0], -1).sum(axis=0)", "g.reshape(g.shape[0], -1).sum(axis=1)", "wrong-axis", "wrong-axis"),
    ("0", "1", "wrong-axis", "wrong-axis"),  # in axis=0
    ("v[1:]", "v[:-1]", "wrong-evaluation-point", "wrong-evaluation-point"),
    ("slope", "v", "wrong-evaluation-point", "wrong-evaluation-point"),
    ("np.sin(1 - v)", "np.cos(1 - v)", "wrong-local-derivative", "wrong-local-derivative"),
    ("total[k] = v[k]", "total[k] += v[k]", "overwritten-not-accumulated", "extra-term"),
    ("total[k] += v[k] * w[k] + 0.001", "np.add.at(total, k, v[k] * w[k] + 0.001)", *["overwritten-not-accumulated"] * 2),
    ("g", "g.copy()", "stale-or-mutated-state", "stale-or-mutated-state"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "right", "undoes", "makes"), CODES)
def test_an_edit_knows_the_mistake_that_it_undoes_and_the_one_it_makes(proposed, wrong, right, undoes, makes):
    """A mistake mended, and the same one made, by one row of the table."""
    assert (undoes, makes) in proposed[wrong, right]


def test_two_results_that_change_places_are_swapped_gradients(proposed):
    dx, dW = "g @ W.T", "np.tensordot(x, g, 2 * [[0, 1]])"
    assert proposed[(dx, dW), (dW, dx)] == {("swapped-gradients", "swapped-gradients")}
