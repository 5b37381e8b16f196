import importlib
from types import FunctionType

import numpy as np
import pytest

from handgrad.checking.adjoint import adjoints, vjp_table
from handgrad.checking.adjoint.chain_rule import vector_jacobian_product
from handgrad.checking.forward_trace import trace_forward
from handgrad.checking.gradient_code import write_gradient

from . import forwards_to_trace as written

FUNCTIONS = [f for f in vars(written).values() if isinstance(f, FunctionType)]

# Nothing in the table says how these go backwards: their derivative is numerical, and has no text.
UNSPELLED = {
    "vectorized_python": "a Python function of its own",
    "factorised": "eigenvalues",
    "masked_sum": "nansum, nanmean, where=",
    "convolved": "np.interp",
    "fourier_and_rest": "np.percentile",
    "several_matrices_for_one_side": "several matrices with one right-hand side",
    "without_a_text": "an index that comes twice, a trace by einsum, other repeats for each entry, kron of one number",
}


def doubled(inputs):
    return {n: v.astype(float) if v.dtype.kind == "f" else v for n, v in inputs.items()}


def slopes(function, inputs, name, upstream):
    """Return the gradient by differences, extrapolated twice."""
    start = np.array(inputs[name])

    def value(change):
        result = function(**{**inputs, name: start + change})
        result = result if isinstance(result, tuple) else (result,)
        return sum(np.sum(part * g) for part, g in zip(result, upstream, strict=True))

    gradient = np.zeros(start.size)
    for j in range(start.size):
        basis = np.zeros(start.shape)
        basis.flat[j] = 1
        coarse, middle, fine = ((value(h * basis) - value(-h * basis)) / (2 * h) for h in (8e-4, 4e-4, 2e-4))
        first, second = (4 * middle - coarse) / 3, (4 * fine - middle) / 3
        gradient[j] = (16 * second - first) / 15
    return gradient.reshape(start.shape)


@pytest.fixture(scope="module", params=sorted(written.FORWARDS))
def passed(request):
    """Return a recorded forward, an upstream, and the gradients by differences."""
    function, inputs = written.FORWARDS[request.param]
    trace = trace_forward(lambda given: function(**given), doubled(inputs), FUNCTIONS)
    draw = np.random.default_rng(3)
    upstream = tuple(draw.normal(size=np.shape(trace.values[i])) for i in trace.outputs)
    names = [n for n, v in inputs.items() if v.dtype.kind == "f"]
    with np.errstate(all="ignore"):
        wanted = {n: slopes(function, doubled(inputs), n, upstream) for n in names}
    return request.param, trace, upstream, wanted


def close(found, wanted):
    scale = max(1e-3, float(np.max(np.abs(wanted))))
    assert np.shape(found) == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-7 * scale)


def test_gradients_are_those_of_differences(passed):
    name, trace, upstream, wanted = passed
    found = adjoints(trace, trace.values, upstream)
    for argument, gradient in wanted.items():
        if name != "single_precision":  # its forward rounds to float32 by itself
            close(found.get(trace.inputs[argument], np.zeros(gradient.shape)), gradient)


def test_the_written_gradient_gives_the_same(passed):
    name, trace, upstream, wanted = passed
    lines = write_gradient(trace, list(wanted))
    assert (lines is None) == (name in UNSPELLED)
    if lines is None:
        return
    given = {n: trace.values[i].copy() for n, i in trace.inputs.items()}
    scope = {**vars(written), **given, "grad_output": upstream if len(upstream) > 1 else upstream[0]}
    with np.errstate(all="ignore"):
        exec("\n".join(lines.lines), scope)
    found = adjoints(trace, trace.values, upstream)
    for argument, i in trace.inputs.items():
        np.testing.assert_array_equal(scope[argument], trace.values[i])  # nothing was changed in place
        if argument in wanted:
            right = found.get(i, np.zeros(wanted[argument].shape))
            np.testing.assert_allclose(scope[lines.results[argument]], right, rtol=1e-5, atol=1e-9)


def test_every_entry_of_the_table_is_used_by_a_forward():
    used = set()
    for function, inputs in written.FORWARDS.values():
        trace = trace_forward(lambda given, f=function: f(**given), inputs, FUNCTIONS)
        used |= {operation.name for operation, _ in trace.edges()}
    of_scipy = {"erf", "erfc", "expit", "logit", "ndtr", "softmax", "log_softmax", "logsumexp"}
    assert vjp_table.ENTRIES.keys() - used == of_scipy


@pytest.mark.peers
@pytest.mark.parametrize(
    "name", ["erf", "erfc", "expit", "logit", "ndtr", "softmax", "log_softmax", "logsumexp"]
)
def test_functions_of_scipy(name):
    special = importlib.import_module("scipy.special")
    scope = {"__name__": "user", "special": special}
    axis = "" if len(name) < 6 or name.startswith("erf") else ", axis=1"
    exec(f"def forward(x):\n    return special.{name}(x{axis})", scope)
    x = np.random.default_rng(0).uniform(0.1, 0.9, size=(3, 5))
    trace = trace_forward(lambda given: scope["forward"](**given), {"x": x}, [scope["forward"]])
    upstream = np.random.default_rng(1).normal(size=np.shape(trace.values[trace.output]))
    wanted = slopes(scope["forward"], {"x": x}, "x", (upstream,))
    close(adjoints(trace, trace.values, upstream)[trace.inputs["x"]], wanted)
    lines = write_gradient(trace, "x")
    exec("\n".join(lines.lines), scope | {"x": x, "grad_output": upstream, "np": np}, found := {})
    close(found["dx"], wanted)


# ------------------------------------------------------------------ the parts of a pass


def two_paths(given):
    h = np.tanh(given["x"] @ given["W"])
    return h * h.sum(axis=0)


@pytest.fixture
def pass_of_two_paths():
    draw = np.random.default_rng(0)
    trace = trace_forward(two_paths, {"x": draw.normal(size=(5, 3)), "W": draw.normal(size=(3, 2))})
    return trace, draw.normal(size=(5, 2))


def test_contributions_add_up_to_the_gradient(pass_of_two_paths):
    trace, upstream = pass_of_two_paths
    gradients = adjoints(trace, trace.values, upstream)
    totals = {trace.output: upstream}
    for operation, k in trace.edges():
        product = vector_jacobian_product(operation, k, trace.values, gradients[operation.output])
        totals[operation.inputs[k]] = totals.get(operation.inputs[k], 0) + product
    assert totals.keys() == gradients.keys()
    for value, total in totals.items():
        np.testing.assert_allclose(total, gradients[value])


def test_a_seed_is_a_gradient_that_is_added(pass_of_two_paths):
    trace, upstream = pass_of_two_paths
    h = trace.producer[trace.output].inputs[0]
    extra = np.ones((5, 2))
    both = adjoints(trace, trace.values, upstream, seeds={h: extra})
    one = adjoints(trace, trace.values, upstream)
    other = adjoints(trace, trace.values, None, seeds={h: extra}, until=[trace.inputs["W"]])
    W = trace.inputs["W"]
    np.testing.assert_allclose(both[W], one[W] + other[W])
    assert trace.inputs["x"] not in other


# ------------------------------------------------------------------ kinks, and where the forward saturates


def gradient_of(forward, x):
    trace = trace_forward(lambda given: forward(given["x"]), {"x": x})
    found = adjoints(trace, trace.values, np.ones(np.shape(trace.values[trace.output])))
    lines = write_gradient(trace, "x")
    scope = {"np": np, "x": x, "grad_output": np.ones(np.shape(trace.values[trace.output]))}
    with np.errstate(all="ignore"):
        exec("\n".join(lines.lines), scope)
    np.testing.assert_allclose(scope["dx"], found[trace.inputs["x"]], rtol=1e-12)
    return found[trace.inputs["x"]]


def test_relu_has_no_slope_at_0():
    assert gradient_of(lambda x: np.maximum(x, 0), np.array([-1.0, 0.0, 2.0])).tolist() == [0, 0, 1]
    assert gradient_of(lambda x: np.where(x > 0, x, 0.0), np.array([-1.0, 0.0, 2.0])).tolist() == [0, 0, 1]


def test_ties_share():
    assert gradient_of(lambda x: x.max(), np.array([1.0, 3.0, 3.0])).tolist() == [0, 0.5, 0.5]


def halves_of_sigmoid(x):
    e = np.exp(-abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def other_halves_of_sigmoid(x):
    e = np.exp(-abs(x))
    return np.where(x > 0, 1 / (1 + e), e / (1 + e))


@pytest.mark.parametrize(
    ("forward", "slope"),
    [
        (halves_of_sigmoid, 0.25),
        (other_halves_of_sigmoid, 0.25),
        (lambda x: np.maximum(x, 0) + np.log1p(np.exp(-abs(x))), 0.5),  # softplus
        (lambda x: abs(x) * abs(x), 0),
    ],
)
def test_kinks_that_cancel_leave_the_true_slope(forward, slope):
    np.testing.assert_allclose(gradient_of(forward, np.zeros(2)), slope, atol=1e-15)


@pytest.mark.parametrize(
    ("forward", "x", "gradient"),
    [
        (lambda x: 1 / (1 + np.exp(-x)), [-800.0, 800.0], [0, 0]),
        (lambda x: np.sqrt((x**2).sum()), [0.0, 0.0], [0, 0]),
        (lambda x: np.linalg.norm(x), [0.0, 0.0], [0, 0]),
        (lambda x: np.std(x), [1.0, 1.0], [0, 0]),
        (lambda x: np.where(x > 0, np.sqrt(x), 0.0), [0.0, 4.0], [0, 0.25]),
        (lambda x: x - x.max() - np.log(np.exp(x - x.max()).sum()), [-431.0, 900.0], [1, -1]),
    ],
)
def test_gradients_are_finite_where_the_true_one_is(forward, x, gradient):
    np.testing.assert_allclose(gradient_of(forward, np.array(x)), gradient, atol=1e-300)


# ------------------------------------------------------------------ how it reads


@pytest.mark.parametrize(
    ("forward", "shapes", "argument", "text"),
    [
        (
            lambda v: v["x"] @ v["W"] + v["b"],
            {"x": (5, 3), "W": (3, 2), "b": (2,)},
            "W",
            "dW = x.T @ grad_output",
        ),
        (
            lambda v: v["x"] @ v["W"] + v["b"],
            {"x": (5, 3), "W": (3, 2), "b": (2,)},
            "b",
            "db = grad_output.sum(axis=0)",
        ),
        (
            lambda v: ((v["x"] - v["y"]) ** 2).mean(),
            {"x": (5, 3), "y": (5, 3)},
            "x",
            "dx = 2 * (grad_output / x.size) * (x - y)",
        ),
        (
            lambda v: np.exp(v["x"]) / np.exp(v["x"]).sum(axis=1, keepdims=True),
            {"x": (5, 3)},
            "x",
            "v1 = np.exp(x)\n"
            "v2 = v1 / v1.sum(axis=1, keepdims=True)\n"
            "dx = v2 * (grad_output - (grad_output * v2).sum(axis=1, keepdims=True))",
        ),
        (
            lambda v: 0.5 * (1 + np.tanh(v["x"] / 2)) * v["y"],
            {"x": (5, 3), "y": (3,)},
            "y",
            "dy = (0.5 * grad_output * (1 + np.tanh(x / 2))).sum(axis=0)",
        ),
        (lambda v: v["x"] * 2, {"x": (3,), "y": (2,)}, "y", "dy = np.zeros_like(y)"),
    ],
)
def test_the_text(forward, shapes, argument, text):
    draw = np.random.default_rng(0)
    trace = trace_forward(forward, {name: draw.normal(size=shape) for name, shape in shapes.items()})
    assert "\n".join(write_gradient(trace, argument).lines) == text


def test_taken_names_are_left_alone():
    trace = trace_forward(lambda v: np.exp(v["v1"]) * np.sin(np.exp(v["v1"])), {"v1": np.ones(3)})
    lines = write_gradient(trace, "v1").lines
    assert lines[0].startswith("v2 = ")
    assert all(not line.startswith("v1 ") for line in lines)


def test_what_has_no_text_is_none():
    trace = trace_forward(lambda v: np.linalg.eigvalsh(v["x"]), {"x": np.eye(3)})
    assert write_gradient(trace, "x") is None
