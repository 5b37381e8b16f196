"""Files with PyTorch's and JAX's own arrays, as they stand: taken, named and mended as those with NumPy's are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from handgrad.checking import check
from handgrad.checking.interfaces.jax_functions import _Jax
from handgrad.checking.interfaces.tensors import is_jax
from handgrad.checking.user_files import candidates_in, example_of, run_file
from handgrad.cli import group

pytestmark = pytest.mark.peers


@pytest.fixture
def checked(tmp_path: Path) -> Any:
    """Return a function that checks a file's text with ``--fix``, and returns the output and the new text."""

    def run(text: str) -> tuple[str, str]:
        path = tmp_path / "program.py"
        path.write_text(text)
        done = CliRunner().invoke(group, ["check", str(path), "--fix", "--yes"], standalone_mode=False)
        if done.exception is not None:
            raise done.exception
        return done.output, path.read_text()

    return run


MOMENTUM = """
import torch

torch.manual_seed(3)
X = torch.randn(30, 4)
y = (X[:, 0] > 0).float().view(-1, 1)
W = torch.zeros(4, 1, dtype=torch.float32)
b = torch.zeros(1)
vW, vb = torch.zeros_like(W), torch.zeros_like(b)
with torch.no_grad():
    for epoch in range(10):
        p = torch.mm(X, W) + b
        loss = ((p - y) ** 2).mean()
        dz = 2 * (p - y)
        dW = torch.mm(X.t(), dz)
        db = torch.sum(dz)
        vW = 0.9 * vW + dW
        vb = 0.9 * vb + db
        W -= 0.1 * vW
        b -= 0.1 * vb
        print(loss)
"""


def test_a_script_of_float32_with_momentum_is_judged_in_float64_and_mended(checked: Any) -> None:
    output, text = checked(MOMENTUM)
    assert "batch-mean-vs-sum in d" in output
    assert "how many forward averages over" in output
    assert "checked again: right" in output
    assert "dz = 2 * (p - y) / len(X)" in text


MAKEMORE = """
import torch
import torch.nn.functional as F

torch.manual_seed(1)
n = 8
Xb, Yb = torch.randint(0, 6, (n, 2)), torch.randint(0, 5, (n,))
C, W = torch.randn(6, 3), torch.randn(6, 5)
parameters = [C, W]
for p in parameters:
    p.requires_grad = True


def cmp(s, dt, t):
    same = torch.allclose(dt, t.grad)
    print(f"{s} {same}")


emb = C[Xb]
embcat = emb.view(n, -1)
logits = torch.tanh(embcat) @ W
loss = F.cross_entropy(logits, Yb)
for p in parameters:
    p.grad = None
for t in [logits, emb]:
    t.retain_grad()
loss.backward()
dlogits = F.softmax(logits, 1)
dlogits[range(n), Yb] -= 1
dlogits = dlogits / n
dW = embcat.T @ dlogits
dembcat = (dlogits @ W.T) * (1.0 - torch.tanh(embcat) ** 2)
demb = dembcat.view(emb.shape)
dC = torch.zeros_like(C)
dC.index_add_(0, Xb.view(-1), demb.view(-1, 3))
cmp("logits", dlogits, logits)
cmp("C", dC, C)
"""


def test_gradients_that_are_compared_with_autograds_are_judged(checked: Any) -> None:
    """What prints the comparison, and has PyTorch compute them, is left out."""
    output, text = checked(MAKEMORE)
    assert "wrong        dW (6, 5)" in output
    assert "checked again: right" in output
    assert "dW = torch.tanh(embcat).T @ dlogits" in text


LAYER = """
import torch


class ReLU:
    def forward(self, x):
        self.x = x
        return x.clamp(min=0)

    def backward(self, grad):
        return grad * (grad > 0).float()
"""

STEP = """
import torch


def rnn_step_forward(x, prev_h, Wx, Wh, b):
    next_h = torch.tanh(x @ Wx + prev_h @ Wh + b)
    return next_h, {"x": x, "prev_h": prev_h, "Wx": Wx, "Wh": Wh, "next_h": next_h}


def rnn_step_backward(dnext_h, cache):
    draw = dnext_h * (1 - cache["next_h"] ** 2)
    dWh = cache["prev_h"].t() @ dnext_h
    return draw @ cache["Wx"].t(), draw @ cache["Wh"].t(), cache["x"].t() @ draw, dWh, draw.sum(dim=0)


def rnn_forward(x, h0, Wx, Wh, b):
    first, cache = rnn_step_forward(x[:, 0], h0, Wx, Wh, b)
    return first, [cache]


def rnn_backward(dh, cache):
    return rnn_step_backward(dh, cache[0])
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [(LAYER, "return grad * (self.x > 0).float()"), (STEP, 'dWh = cache["prev_h"].t() @ draw')],
)
def test_functions_of_tensors_that_a_file_never_calls_are_drawn_tensors(
    checked: Any, text: str, line: str
) -> None:
    output, fixed = checked(text)
    assert "checked again: right" in output
    assert line in fixed


BINARIZE = """
import torch


class Binarize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sign(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x.abs() <= 1)
"""


def test_a_straight_through_estimator_is_not_mended_and_may_be_declared(checked: Any) -> None:
    output, text = checked(BINARIZE)
    assert "surrogate" in output
    assert text == BINARIZE
    output, _ = checked(BINARIZE + "\nBinarize_surrogate = torch.nn.Hardtanh()\n")
    assert "Binarize: right" in output or ": right" in output.splitlines()[0]


def test_a_call_with_tensors_that_depend_on_others_is_an_example(checked: Any) -> None:
    output, _ = checked(
        BINARIZE.replace("(x.abs() <= 1)", "0")
        + "\n\nw = torch.randn(3, 4, requires_grad=True)\nBinarize.apply(w * 2).sum().backward()\n"
    )
    assert "dx (3, 4)" in output


PRIMITIVE = """
import autograd.numpy as np
from autograd.extend import defvjp, primitive


@primitive
def softplus(x, beta):
    return np.log1p(np.exp(beta * x)) / beta


defvjp(softplus, lambda ans, x, beta: lambda g: g / (1 + np.exp(beta * x)), None)
"""


def test_a_primitive_of_autograds_is_found_in_a_file(checked: Any) -> None:
    output, _ = checked(PRIMITIVE)
    assert "wrong        dx" in output


MODULE = """
import equinox as eqx
import jax
import jax.numpy as jnp


@jax.custom_vjp
def scaled(x, scale):
    return x * scale


scaled.defvjp(lambda x, scale: (x * scale, (x, scale)), lambda saved, g: (g * saved[1], (g * saved[0]).sum(0)))


class Scale(eqx.Module):
    scale: jax.Array

    def __call__(self, x):
        return scaled(x, self.scale)


layer = Scale(jnp.ones(3))
print(layer(jnp.ones((2, 3))))
"""


def test_a_module_that_is_a_tree_of_arrays_may_stand_in_a_file(checked: Any) -> None:
    output, _ = checked(MODULE)
    assert "scaled: right" in output
    assert "wrong" not in output


CARRIED = """
import torch

class Lin:
    def __init__(self, w, b):
        self.w, self.b = w, b
    def __call__(self, inp):
        self.inp = inp
        self.out = inp @ self.w + self.b
        return self.out
    def backward(self):
        self.inp.g = self.out.g @ self.w.t()
        self.w.g = self.inp.t() @ self.out.g
        self.b.g = self.out.g.sum(0)

class Model:
    def __init__(self, w, b):
        self.lin = Lin(w, b)
    def __call__(self, x, targ):
        self.out = self.lin(x)
        self.targ = targ
        return (self.out - targ).pow(2).mean()
    def backward(self):
        self.lin.out.g = 2 * (self.out - self.targ) / self.targ.numel()
        self.lin.backward()

model = Model(torch.randn(5, 3), torch.zeros(3))
model(torch.randn(7, 5), torch.randn(7, 3))
model.backward()
"""


@pytest.mark.parametrize(
    ("change", "wrong"), [(("", ""), []), (("@ self.out.g\n", "@ self.out.g / 7\n"), ["w"])]
)
def test_gradients_may_be_attributes_of_tensors(tmp_path, change, wrong):
    (tmp_path / "carried.py").write_text(CARRIED.replace(*change))
    file = run_file(tmp_path / "carried.py")
    file.run_samples()
    lin, model = (example_of(each, file, {}) for each in candidates_in(file))
    for example, names in ((lin, {"inp", "w", "b"}), (model, {"x", "lin.w", "lin.b"})):
        report = check(example.forward, None, example.inputs)
        found = {each.name: each.verdict for each in report.arguments}
        assert found.keys() == names
        assert [name[-1] for name, verdict in found.items() if verdict == "wrong"] == wrong


JITTED = """
import jax
import jax.numpy as jnp
import numpy as np


@jax.custom_vjp
def glu(x, A, a0, G, g0):
    return (x @ A + a0) * jax.nn.sigmoid(x @ G + g0)


def glu_fwd(x, A, a0, G, g0):
    lin, gate = x @ A + a0, jax.nn.sigmoid(x @ G + g0)
    return lin * gate, (x, A, G, gate, lin * gate)


def glu_bwd(saved, dout):
    x, A, G, gate, out = saved
    dlin, dpre = dout * gate, dout * out
    return dlin @ A.T + dpre @ G.T, x.T @ dlin, dlin.sum(0), x.T @ dpre, dpre.sum(0)


glu.defvjp(glu_fwd, glu_bwd)


@jax.jit
def update(model, x, y):
    grads = jax.grad(lambda model: jnp.mean((glu(x, *model) - y) ** 2))(model)
    return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, model, grads)


if __name__ == "__main__":
    rng = np.random.default_rng(7)
    model = [rng.normal(size=(3, 4)), np.zeros(4), rng.normal(size=(3, 4)), np.zeros(4)]
    for step in range(3):
        model = update(model, rng.normal(size=(5, 3)), rng.normal(size=(5, 4)))
"""


def test_the_arguments_of_a_jitted_training_are_numbers(tmp_path: Path) -> None:
    """They were JAX's tracers, and none that were drawn instead fit; in float64, though JAX had them in float32."""
    (tmp_path / "jitted.py").write_text(JITTED)
    file = run_file(tmp_path / "jitted.py")
    file.run_samples()
    (example,) = (example_of(each, file, {}) for each in candidates_in(file))
    assert example.origin == "as the file calls it, but a0 drawn, not 0, g0 drawn, not 0"
    given = {name: (array.shape, str(array.dtype)) for name, array in example.inputs.items()}
    sizes = {"x": (5, 3), "A": (3, 4), "a0": (4,), "G": (3, 4), "g0": (4,)}
    assert given == {name: (shape, "float64") for name, shape in sizes.items()}


PRIVATE = """
import torch
from torch import nn


class _Film(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, shift):
        ctx.save_for_backward(x, scale)
        return x * (1 + scale).unsqueeze(-1) + shift.unsqueeze(-1)

    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        d_x = d_scale = d_shift = None
        if ctx.needs_input_grad[0]:
            d_x = grad * (1 + scale).unsqueeze(-1)
        if ctx.needs_input_grad[1]:
            d_scale = (grad * x).sum(dim=-1)
        if ctx.needs_input_grad[2]:
            d_shift = grad.sum(dim=-1)
        return d_x, d_shift, d_scale


class Film(nn.Module):
    def __init__(self, conditions, channels):
        super().__init__()
        self.linear = nn.Linear(conditions, 2 * channels)

    def forward(self, x, c):
        return _Film.apply(x, *self.linear(c).chunk(2, dim=-1))


if __name__ == "__main__":
    Film(3, 6)(torch.randn(5, 6, 7), torch.randn(5, 3)).sum().backward()
"""


def test_a_function_with_a_private_name_is_judged_itself(tmp_path: Path) -> None:
    """Through the module that calls it, no line is named. A gradient that is not computed is a sign, and no name."""
    (tmp_path / "private.py").write_text(PRIVATE)
    file = run_file(tmp_path / "private.py")
    file.run_samples()
    function, module = candidates_in(file)
    assert (function.name, module.name) == ("_Film", "Film")
    report = check(function.forward, None, example_of(function, file, {}).inputs)
    assert [finding.code for finding in report.findings] == ["swapped-gradients"]
    assert "return d_x, d_scale, d_shift" in report.mended.text


BETA = """
import torch


class Softplus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x)
        ctx.beta = beta
        return torch.log1p(torch.exp(beta * x)) / beta

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * torch.sigmoid(x), None


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x ** 3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return 3 * x ** 2 * dy


cube = Cube.apply


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(5, 3)

    def forward(self, x):
        return Softplus.apply(cube(self.lin(x)), 2.0)
"""


def test_a_module_is_wrong_because_of_a_function_that_it_calls(
    checked: Any, torch: Any, tmp_path: Path
) -> None:
    """beta, kept as an attribute and given no gradient, is a number; Softplus is mended, and Cube right."""
    output, text = checked(BETA)
    function = output[output.index("program.py:Softplus:") :]
    assert function.splitlines()[1].startswith("  wrong        dx (7, 6)  relative error")
    assert "dbeta" not in function
    assert "torch.sigmoid(x * ctx.beta), None" in text
    assert "program.py:Cube: right" in output
    block = run_file(tmp_path / "program.py").names["Block"]()
    mended = check(block, inputs={"x": torch.randn(7, 5)})
    assert mended.verdict == "right", "it was wrong because of Softplus alone"


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (("torch.sigmoid(x)", "torch.sigmoid(ctx.beta * x)"), ""),
        (("3 * x ** 2 * dy", "x ** 2 * dy"), "Softplus and Cube"),
        (("def forward(self, x):", "def forward(self, x):\n        x = x.detach() + 0 * x"), ""),
    ],
)
def test_only_functions_that_explain_the_whole_are_its_cause(
    torch: Any, tmp_path: Path, change: tuple[str, str], cause: str
) -> None:
    path = tmp_path / "block.py"
    path.write_text(BETA.replace(*change))
    names = run_file(path).names
    torch.manual_seed(1)
    methods = {name: vars(names["Cube"])[name] for name in ("forward", "setup_context", "backward")}
    report = check(names["Block"](), inputs={"x": torch.randn(7, 5)})
    assert report.cause == cause
    assert (report.verdict == "right") == ("ctx.beta * x" in change[1])
    assert {name: vars(names["Cube"])[name] for name in methods} == methods, "the Functions are as they were"
    assert json.loads(report.to_json())["cause"] == cause
    assert (f"the backward of {cause}, which it calls, is wrong" in str(report)) == bool(cause)
    assert not (cause and report.findings)


def test_a_right_function_is_no_cause_of_a_contract_that_its_caller_breaks(
    torch: Any, tmp_path: Path
) -> None:
    """Without a wrong gradient, all is right with a derivative in its place too."""
    path = tmp_path / "block.py"
    path.write_text(BETA)
    cube = run_file(path).names["cube"]
    seen: list[float] = []

    def caller(x: Any) -> Any:
        seen.append(1.0)
        return cube(x) * (1 if len(seen) < 12 else float(len(seen)))

    report = check(caller, inputs={"x": torch.randn(4, 3, requires_grad=True)})
    assert report.verdict != "right"
    assert not report.cause


NORM = """
import jax
import jax.numpy as jnp


@jax.custom_vjp
def layer_norm(x, gamma, beta):
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    return gamma * centred / jnp.sqrt(jnp.mean(centred ** 2, axis=-1, keepdims=True) + 1e-5) + beta


def fwd(x, gamma, beta):
    mu = jnp.mean(x, axis=-1, keepdims=True)
    inv = 1.0 / jnp.sqrt(jnp.var(x, axis=-1, keepdims=True) + 1e-5)
    xhat = (x - mu) * inv
    return gamma * xhat + beta, (xhat, inv, gamma)


def bwd(res, dy):
    xhat, inv, gamma = res
    dgamma = jnp.sum(dy * xhat, axis=0)
    dbeta = jnp.sum(dy, axis=0)
    dxhat = dy * gamma
    dx = inv * (dxhat - jnp.mean(dxhat, axis=-1, keepdims=True))
    return dx, dgamma, dbeta


layer_norm.defvjp(fwd, bwd)
"""


def test_edits_of_a_rule_of_jax_are_tried_on_numpy_and_its_fwd_is_traced(
    checked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JAX would compile each of hundreds of edits. inv, which the repair needs, is in fwd alone."""
    ran = []
    differentiate = _Jax.differentiate

    def counted(*given: Any) -> Any:
        ran.append(given)
        return differentiate(*given)

    monkeypatch.setattr(_Jax, "differentiate", counted)
    output, text = checked(NORM)
    assert "missing-term in dx" in output
    assert "dx lacks the path through `inv = 1.0 / jnp.sqrt(" in " ".join(output.split())
    assert "xhat * (dxhat * xhat).mean(axis=1, keepdims=True)" in text
    assert "proved on fresh inputs" in output
    assert 50 < len(ran) < 600


STEPS = """
import jax
import jax.numpy as jnp


def forward(params, x):
    h = jnp.maximum(0, x @ params["W1"] + params["b1"])
    return h @ params["W2"] + params["b2"], h


@jax.jit
def loss_fn(params, x, y):
    logits, _ = forward(params, x)
    return -jnp.mean(jnp.sum(y * jax.nn.log_softmax(logits), axis=1))


@jax.jit
def grads(params, x, y):
    logits, h = forward(params, x)
    d = jax.nn.softmax(logits) - y
    dh = (d @ params["W2"].T) * (h > 0)
    return {"W2": h.T @ d, "b2": d.sum(0), "W1": x.T @ dh, "b1": dh.sum(0)}
"""


@pytest.mark.parametrize("unknown", [False, True])
def test_jitted_gradients_belong_to_the_loss_of_their_arguments(tmp_path: Path, unknown: bool) -> None:
    """Layouts are tried on NumPy, where it has what JAX has: each would be compiled, which took too long, or was too slow."""
    known = "jnp.maximum(0,", "jnp.maximum(0, jax.lax.optimization_barrier(1.0) *"
    (tmp_path / "steps.py").write_text(STEPS.replace(*known) if unknown else STEPS)
    file = run_file(tmp_path / "steps.py")
    (candidate,) = candidates_in(file)
    assert (candidate.name, candidate.backward.__name__) == ("loss_fn", "grads")
    example = example_of(candidate, file, {})
    shapes = {name: each.shape for name, each in example.inputs["params"].items()}
    assert shapes == {"W1": (6, 5), "b1": (5,), "W2": (5, 4), "b2": (4,)}
    assert is_jax(example.inputs["x"])
    report = check(candidate.forward, candidate.backward, example.inputs)
    assert {finding.code for finding in report.findings} == {"batch-mean-vs-sum"}
