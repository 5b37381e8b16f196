"""The small edits that a repair tries: for what people get wrong, the right text is among them."""

import ast
import importlib.util

import numpy as np
import pytest

from handgrad.checking.effort import Effort
from handgrad.checking.repair.edits import expression_changes
from handgrad.checking.repair.guard import Guard
from handgrad.checking.repair.places import places
from handgrad.checking.repair.source import read_source
from handgrad.checking.repair.statements import statement_changes
from handgrad.checking.repair.trace import trace
from handgrad.checking.repair.trial import Bench, Goal
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
    ("np.sin(1 - v)", "1 - np.sin(v)"),
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
    ("v > 0", "~(v > 0)"),
    ("np.where(v > 0, v[1:].sum(), -w)", "np.where(v > 0, -w, v[1:].sum())"),
    ("v[1:]", "v[:]"),
    ("v[1:]", "v[1:-1]"),
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
    ("range(n)", "reversed(range(n))"),
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
    """Return every edit of one place as a pair of texts."""
    path = tmp_path_factory.mktemp("edits") / "layer.py"
    path.write_text(TEXT)
    specification = importlib.util.spec_from_file_location("layer", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    draw = np.random.default_rng(0)
    inputs = {"x": draw.normal(size=(2, 3, 4)), "W": draw.normal(size=(4, 5))}
    subject = Subject.of(module.forward, module.backward, inputs)
    right = {name: np.zeros_like(value) for name, value in inputs.items()}
    goal = Goal(inputs, [draw.normal(size=(2, 3, 5))], right, dict.fromkeys(right, 1e-9))
    source = read_source(module.forward, module.backward)
    guard = Guard()
    with guard.search():
        bench = Bench(source, subject, goal, guard, Effort())
        facts = trace(bench)
        changes = [*statement_changes(source, facts), *expression_changes(list(places(source, facts)))]
    single = [change.edits[0] for change in changes if len(change.edits) == 1]
    return {(ast.unparse(edit.old), spelled(edit.new)) for edit in single}


def spelled(new):
    nodes = new if isinstance(new, tuple) else (new,)
    return "\n".join(ast.unparse(ast.fix_missing_locations(node)) for node in nodes)


@pytest.mark.parametrize(("wrong", "right"), RIGHT)
def test_what_was_meant_is_tried(proposed, wrong, right):
    assert (wrong, right) in proposed, sorted(new for old, new in proposed if old == wrong)
