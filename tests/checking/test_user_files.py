"""Anyone's file, as it stands: what is found in it, and what it is checked at."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

from handgrad.checking import check
from handgrad.checking.interfaces import Closures, adapt_script, pair_of
from handgrad.checking.subject import CheckError
from handgrad.checking.user_files import candidates_in, example_of, run_file

PROGRAMS = Path(__file__).parent / "programs"


def examples_of(path: Path) -> dict[str, object]:
    file = run_file(path)
    file.run_samples()
    made: dict[str, object] = {}
    for candidate in candidates_in(file):
        example = example_of(candidate, file, made)
        made[candidate.name] = example
    return made


@pytest.mark.parametrize(
    ("program", "names", "differentiated"),
    [
        ("affine_pair", ["affine_forward"], {"x", "w", "b"}),
        ("dense_course", ["linear_activation_forward"], {"A_prev", "W", "b"}),
        ("deep_course_right", ["forward_propagation"], {"parameters.W1", "parameters.b1", "parameters.W2", "parameters.b2"}),
        ("rnn_step", ["rnn_step_forward"], {"x", "prev_h", "Wx", "Wh", "b"}),
        ("lstm_step_right", ["lstm_cell_forward"],
         {f"parameters.{k}{g}" for k in "Wb" for g in "fico"} | {"xt", "a_prev", "c_prev"}),
        ("conv_loops", ["conv_forward_naive"], {"x", "w", "b"}),
        ("layer_dense_self", ["Dense"], {"x", "W", "b"}),
        ("layer_grads_list", ["MatMul"], {"x", "params[0]"}),
        ("net_two_layer_self", ["TwoLayerNet"], {"params.W1", "params.b1", "params.W2", "params.b2"}),
        ("net_layers_container", ["Linear", "ReLU", "Sequential"],
         {"x", "layers[0].weight", "layers[0].bias", "layers[2].weight", "layers[2].bias"}),
        ("loss_softmax_vectorised", ["softmax_loss_vectorized"], {"W"}),
        ("train_updates_too_early", ["Net"], {"W1", "W2"}),
        ("prime_many", ["elu", "gaussian", "arctan"], {"x"}),
        ("notes_outer_product", ["OneLayer"], {"weights", "biases"}),
        ("notes_lin_grad", ["lin"], {"x", "w", "b"}),
        ("loss_chars_right", ["lossFun"], {"Wxh", "Whh", "Why", "bh", "by"}),
        ("loss_chars_state", ["loss_and_gradients"], {"Wxh", "Whh", "Why", "bh", "by"}),
        ("net_skip_gram", ["SkipGram"], {"W_in", "W_out"}),
    ],
)  # fmt: skip
def test_a_file_says_nothing_and_its_candidates_are_found_with_arguments_that_they_take(
    program, names, differentiated
):
    made = examples_of(PROGRAMS / f"{program}.py")
    assert list(made) == names
    example = made[names[-1]]
    pair = pair_of(example.forward, example.backward, example.inputs)
    output = pair.forward(**pair.inputs)
    upstream = (
        tuple(np.ones(np.shape(part)) for part in output)
        if isinstance(output, tuple)
        else np.ones(np.shape(output))
    )
    assert set(pair.backward(upstream, **pair.inputs)) == differentiated


SAMPLES = """
import sys
import numpy as np
from nowhere_at_all import plotting

class Scale:
    def __init__(self, size):
        self.g = np.full(size, 2.5)
    def forward(self, x):
        self.x = x
        return x * self.g
    def backward(self, d):
        self.dg = np.sum(d * self.x, axis=0)
        return d * self.g

X = np.loadtxt("not_there.csv")
name = input("who? ")
plotting.show()
if __name__ == "__main__":
    layer = Scale(11)
    while True:
        layer.backward(np.ones_like(layer.forward(np.arange(22.0).reshape(2, 11))))
"""


def test_the_files_own_calls_are_the_example(tmp_path):
    """Its loops are cut off, and what it cannot do here is noted and left out."""
    (tmp_path / "scaling.py").write_text(SAMPLES)
    file = run_file(tmp_path / "scaling.py")
    file.run_samples()
    (candidate,) = candidates_in(file)
    example = example_of(candidate, file, {})
    assert example.origin == "as the file calls it"
    assert example.inputs["x"].shape == (2, 11)
    assert [problem.split(":")[0] for _, problem in file.failures] == [
        "ModuleNotFoundError", "FileNotFoundError", "EOFError", "NameError",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("backward", "forward"),
    [
        ("affine_backward", "affine_forward"), ("L_model_backward", "L_model_forward"), ("dsigmoid", "sigmoid"),
        ("relu_prime", "relu"), ("backprop", "feedforward"), ("back_propagation", "forward_propagation"),
        ("linearBackward", "linearForward"),
        ("derivative_of_tanh", "tanh"), ("compute_gradients", "compute_cost"), ("d_gelu", "gelu"),
    ],
)  # fmt: skip
def test_a_backward_is_paired_with_its_forward_by_their_names(tmp_path, backward, forward):
    (tmp_path / "pairs.py").write_text(
        f"def {forward}(x):\n    return x\ndef {backward}(x):\n    return x\ndef helper(x):\n    return x\n"
    )
    (candidate,) = candidates_in(run_file(tmp_path / "pairs.py"))
    assert (candidate.name, candidate.backward_name) == (forward, backward)


TRAINED = """
import numpy as np

class Net:
    def __init__(self, n_in, n_hidden, n_out):
        self.V = np.random.randn(n_in, n_hidden)
        self.W = np.random.randn(n_hidden, n_out)

    def think(self, a):
        return 1 / (1 + np.exp(-np.tanh(a @ self.V) @ self.W))

    def train(self, x, targets, lr=0.1):
        h = np.tanh(x @ self.V)
        out = self.think(x)
        error = (out - targets) / len(x)
        self.W, before = self.W - lr * h.T @ error, self.W
        self.V = self.V - lr * x.T @ (error @ before.T * (1 - h**2))
"""


@pytest.mark.parametrize(("change", "wrong"), [(("", ""), set()), (("* (1 - h**2)", "* (1 - h)"), {"V"})])
def test_a_network_without_a_loss_is_checked_with_the_one_that_its_gradients_are_of(tmp_path, change, wrong):
    """Here cross-entropy over the number of rows; what is wrong does not hide it."""
    (tmp_path / "trained.py").write_text(TRAINED.replace(*change))
    example = examples_of(tmp_path / "trained.py")["Net"]
    pair = pair_of(example.forward, example.backward, example.inputs)
    assert "log(1 - output)) / rows" in pair.matched[0]
    assert "dW is (before - after) / learning rate" in pair.matched[1]
    gradients = pair.backward(1.0, **pair.inputs)
    direction = {
        name: np.random.default_rng(2).normal(size=np.shape(pair.inputs[name])) for name in gradients
    }
    slopes = {}
    for name, d in direction.items():
        above, below = (
            pair.forward(**{**pair.inputs, name: pair.inputs[name] + h * d}) for h in (1e-5, -1e-5)
        )
        slopes[name] = (above - below) / 2e-5
    assert {
        n for n, g in gradients.items() if not np.isclose(np.sum(g * direction[n]), slopes[n], rtol=1e-5)
    } == wrong


OPTIMISED = """
import numpy as np

class Net:
    def __init__(self):
        rng = np.random.default_rng(3)
        self.V, self.W, self.lr, self.t = rng.normal(size=(4, 6)), rng.normal(size=(6, 3)), 0.1, 0
        self.s = [np.zeros((4, 6)), np.zeros((6, 3))]
        self.r = [np.zeros((4, 6)), np.zeros((6, 3))]

    def loss(self, x, y):
        self.h = np.tanh(x @ self.V)
        self.out = self.h @ self.W
        return np.mean((self.out - y) ** 2)

    def step(self, x, y):
        self.loss(x, y)
        d = 2 * (self.out - y) / self.out.size
        gW = self.h.T @ d
        gV = x.T @ (d @ self.W.T * (1 - self.h**2))
        self.t += 1
        for k, g in enumerate((gV, gW)):
            self.s[k] = 0.9 * self.s[k] + 0.1 * g
            self.r[k] = 0.99 * self.r[k] + 0.01 * g**2
        UPDATE
"""
UPDATES = {
    "averaged": "self.V -= self.lr * self.s[0]; self.W -= self.lr * self.s[1]",
    "rmsprop": "self.V -= self.lr * gV / np.sqrt(self.r[0] + 1e-8); self.W -= self.lr * gW / np.sqrt(self.r[1] + 1e-8)",
    "decay": "self.V -= self.lr * (gV + 0.02 * self.V); self.W = (1 - self.lr * 0.02) * self.W - self.lr * gW",
}


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize(("change", "wrong"), [(("", ""), []), (("1 - self.h**2", "1 - self.h"), ["V"])])
def test_an_optimisers_step_is_no_mistake_of_the_gradient(tmp_path, update, change, wrong):
    (tmp_path / "optimised.py").write_text(OPTIMISED.replace("UPDATE", UPDATES[update]).replace(*change))
    example = examples_of(tmp_path / "optimised.py")["Net"]
    report = check(example.forward, example.backward, example.inputs)
    assert [each.name for each in report.arguments if each.verdict == "wrong"] == wrong
    assert "dW is gW" in report.tried[0]


CLIPS = {
    "a method": "gW, gV = gW.clip(-0.05, 0.05), gV.clip(-0.05, 0.05)",
    "in place": "[np.clip(g, -0.05, 0.05, out=g) for g in (gW, gV)]",
    "by norm": """norm = np.sqrt(np.sum(gW**2) + np.sum(gV**2))
        if norm > 0.1:
            gW, gV = gW * 0.1 / norm, gV * 0.1 / norm""",
    "by a factor": """norm = np.sqrt(np.sum(gW**2) + np.sum(gV**2))
        gW, gV = gW * min(1, 0.1 / norm), gV * min(1, 0.1 / norm)""",
}


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize(
    ("change", "verdict"), [(("", ""), "right, but"), (("1 - self.h**2", "1 - self.h"), "wrong")]
)
def test_a_gradient_that_is_clipped_before_the_step_is_right_but_for_that(tmp_path, clip, change, verdict):
    update = f"{CLIPS[clip]}\n        self.V -= self.lr * gV\n        self.W -= self.lr * gW"
    (tmp_path / "clips.py").write_text(OPTIMISED.replace("UPDATE", update).replace(*change))
    example = examples_of(tmp_path / "clips.py")["Net"]
    report = check(example.forward, example.backward, example.inputs)
    assert report.verdict == verdict
    assert report.reason.startswith("the gradient is clipped in line 2") == (verdict != "wrong")


def test_a_step_up_the_slope_is_wrong_with_an_optimiser_too(tmp_path):
    update = UPDATES["averaged"].replace("-=", "+=")
    (tmp_path / "ascending.py").write_text(OPTIMISED.replace("UPDATE", update))
    example = examples_of(tmp_path / "ascending.py")["Net"]
    assert check(example.forward, example.backward, example.inputs).verdict == "wrong"


TRAINS = """
import numpy as np

def sigmoid(z):
    return 1 / (1 + np.exp(-z))

def train(X, y, epochs=1000, lr=0.1):
    X = (X - X.mean(axis=0)) / 2
    W1, b1 = np.random.randn(X.shape[1], 4), np.zeros((1, 4))
    W2 = np.random.randn(4, y.shape[1])
    for epoch in range(epochs):
        h = np.tanh(X @ W1 + b1)
        out = sigmoid(h @ W2)
        LOSS
        d2 = (out - y) / len(X)
        dW2 = h.T @ d2
        d1 = d2 @ W2.T * (1 - h**2)
        dW1 = X.T @ d1
        db1 = d1.sum(axis=0, keepdims=True)
        W1 -= lr * dW1
        b1 -= lr * db1
        W2 -= lr * dW2
    return W1, b1, W2
"""
CALLED = """
if __name__ == "__main__":
    train(np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([[0], [1], [1], [0]]), 5000)
"""


@pytest.mark.parametrize("called", ["", CALLED], ids=["drawn", "called"])
@pytest.mark.parametrize(
    "loss", ["pass", "loss = -np.mean(np.sum(y * np.log(out) + (1 - y) * np.log(1 - out), axis=1))"]
)
@pytest.mark.parametrize(("change", "wrong"), [(("", ""), []), (("(1 - h**2)", "(1 - h)"), ["W1", "b1"])])
def test_a_function_that_trains_in_its_own_loop_is_a_script(tmp_path, called, loss, change, wrong):
    """Its loss is found, or is the one that its gradients are of; it is run for one step."""
    (tmp_path / "trains.py").write_text((TRAINS + called).replace("LOSS", loss).replace(*change))
    example = examples_of(tmp_path / "trains.py")["train"]
    assert example.inputs["epochs"] == 1
    report = check(example.forward, None, example.inputs)
    assert [each.name for each in report.arguments if each.verdict == "wrong"] == wrong
    assert report.verdict == ("wrong" if wrong else "right")
    assert "dW1 is dW1, " in report.tried[0 if "loss" in loss else 1]


GLOBALS = """
import numpy as np
rng = np.random.default_rng(1)
W1, b1, W2 = rng.normal(size=(3, 5)), np.zeros(5), rng.normal(size=(5, 2))

def forward(x):
    global h, out
    h = np.tanh(x @ W1 + b1)
    out = h @ W2
    return out

def backward(x, y):
    global dW1, db1, dW2
    d = (out - y) / len(x)
    dW2 = h.T @ d
    dh = d @ W2.T * (1 - h**2)
    dW1, db1 = x.T @ dh, dh.sum(axis=0)
"""
RETURNS = """
import numpy as np
W = np.random.default_rng(1).normal(size=(3, 5))

def forward(x):
    return np.tanh(x @ W)

def backward(x, dout):
    dz = dout * (1 - forward(x)**2)
    dW = x.T @ dz
    return dz @ W.T, dW
"""


@pytest.mark.parametrize(
    ("source", "change", "wrong"),
    [
        (GLOBALS, ("", ""), []),
        (GLOBALS, ("(1 - h**2)", "(1 - h)"), ["W1", "b1"]),
        (RETURNS, ("", ""), []),
        (RETURNS, ("dW = x.T @ dz", "dW = x.T @ dout"), ["W"]),
    ],
)
def test_parameters_may_be_global_variables(tmp_path, source, change, wrong):
    (tmp_path / "with_globals.py").write_text(source.replace(*change))
    example = examples_of(tmp_path / "with_globals.py")["forward"]
    names = example.forward.__globals__
    before = {name: np.array(names[name]) for name in names if name.startswith(("W", "b1"))}
    report = check(example.forward, example.backward, example.inputs)
    assert [each.name for each in report.arguments if each.verdict == "wrong"] == wrong
    assert {"W1", "b1", "W2"} <= {each.name for each in report.arguments} or "W" in before
    assert all(np.array_equal(names[name], value) for name, value in before.items())
    assert not {"dW1", "h", "out"} & set(names)


INTERLEAVED = """
import numpy as np
rng = np.random.default_rng(3)
X, y = rng.normal(size=(6, 3)), (rng.random((6, 1)) > 0.5).astype(float)
V, W = rng.normal(size=(3, 4)), rng.normal(size=(4, 1))
for _ in range(100):
    h = 1 / (1 + np.exp(-X @ V))
    out = 1 / (1 + np.exp(-h @ W))
    out_delta = (y - out) * out * (1 - out)
    W += h.T @ out_delta
    h_delta = out_delta @ W.T * h * (1 - h)
    V += X.T @ h_delta
"""


def test_a_gradient_that_a_script_computes_after_its_first_update_is_of_what_that_moved(tmp_path):
    """The lines between the updates are run with them."""
    path = tmp_path / "interleaved.py"
    path.write_text(INTERLEAVED)
    pair = adapt_script(path)
    report = check(pair.forward, pair.backward, pair.inputs)
    assert [each.name for each in report.arguments if each.verdict == "wrong"] == ["V"]
    assert report.findings[0].code == "stale-or-mutated-state"
    assert report.first_wrong.source == "W += h.T @ out_delta"


COST = """
import numpy as np

class CrossEntropy:
    @staticmethod
    def fn(a, y):
        return np.sum(-y * np.log(a) - (1 - y) * np.log(1 - a))

    @staticmethod
    def delta(z, a, y):
        return a - y

class Net:
    def __init__(self, sizes):
        rng = np.random.default_rng(1)
        self.biases = [rng.normal(size=(n, 1)) for n in sizes[1:]]
        self.weights = [rng.normal(size=(n, m)) for m, n in zip(sizes, sizes[1:])]

    def feedforward(self, a):
        for b, w in zip(self.biases, self.weights):
            a = 1 / (1 + np.exp(-(w @ a + b)))
        return a

    def total_cost(self, data, lmbda):
        c = sum(CrossEntropy.fn(self.feedforward(x), y) for x, y in data) / len(data)
        return c + 0.5 * lmbda * sum(np.sum(w**2) for w in self.weights)

    def backprop(self, x, y):
        activations, zs = [x], []
        for b, w in zip(self.biases, self.weights):
            zs.append(w @ activations[-1] + b)
            activations.append(1 / (1 + np.exp(-zs[-1])))
        delta = CrossEntropy.delta(zs[-1], activations[-1], y)
        nabla_b, nabla_w = [delta], [delta @ activations[-2].T]
        for k in range(2, len(self.weights) + 1):
            delta = self.weights[-k + 1].T @ delta * activations[-k] * (1 - activations[-k])
            nabla_b.insert(0, delta)
            nabla_w.insert(0, delta @ activations[-k - 1].T)
        return nabla_b, nabla_w

rng = np.random.default_rng(2)
data = [(rng.normal(size=(4, 1)), np.eye(3)[:, [k % 3]]) for k in range(6)]
net = Net([4, 5, 3])
net.total_cost(data, 0.1)
net.backprop(*data[0])
"""


def test_the_loss_of_all_data_is_not_what_the_backward_of_an_example_differentiates(tmp_path):
    """And what a cost class calls delta is the error before the activation, no derivative of its cost."""
    (tmp_path / "with_cost.py").write_text(COST)
    made = examples_of(tmp_path / "with_cost.py")
    assert list(made) == ["Net"]
    example = made["Net"]
    assert check(example.forward, example.backward, example.inputs).verdict == "right"


GRADIENTS = """
import numpy as np

def distance(a, b):
    return np.sum((a - b) ** 2)

def distance_grad(a, b):
    return 2 * (a - b), 2 * (a - b)
"""


def test_a_function_that_returns_several_gradients_is_no_derivative_of_one_argument(tmp_path):
    (tmp_path / "several.py").write_text(GRADIENTS)
    example = examples_of(tmp_path / "several.py")["distance"]
    report = check(example.forward, example.backward, example.inputs)
    assert {each.name: each.verdict for each in report.arguments} == {"a": "right", "b": "wrong"}
    assert report.findings[0].code == "wrong-sign"


UNCALLED = """
import torch

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale=2.0):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return scale * x**2

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return ctx.scale * x * grad_output, None

square = Square.apply
"""
CALLED = """
print(Square.apply(torch.ones(2, 3)).sum())
"""
CUSTOM = """
import jax
import jax.numpy as jnp

@jax.custom_vjp
def product(x, y):
    return x * y

def product_fwd(x, y):
    return x * y, (x, y)

def product_bwd(saved, g):
    x, y = saved
    return g * x, g * y

product.defvjp(product_fwd, product_bwd)

@jax.jit
def loss_and_grads(params, x):
    out = x @ params["w"]
    loss = 0.5 * jnp.sum(out**2)
    grads = {"w": 2 * x.T @ out}
    return loss, grads

@jax.jit
def predict(params, x):
    return x @ params["w"]
"""
BY_HAND = """
import torch
import torch.nn.functional as F

torch.manual_seed(1)
x, y = torch.randn(6, 3), torch.randint(0, 4, (6,))
W = torch.randn(3, 4, requires_grad=True)
logits = x @ W
loss = F.cross_entropy(logits, y)
with torch.no_grad():
    dlogits = F.softmax(logits, 1)
    dlogits[range(6), y] -= 1
    dW = x.T @ dlogits
"""


@pytest.mark.peers
@pytest.mark.parametrize("more", ["", CALLED], ids=["uncalled", "called"])
def test_a_function_of_pytorch_is_drawn_arguments_once(tmp_path, more):
    (tmp_path / "square.py").write_text(UNCALLED + more)
    made = examples_of(tmp_path / "square.py")
    assert list(made) == ["Square"]
    report = check(made["Square"].forward, inputs=made["Square"].inputs)
    assert [(each.name, each.verdict) for each in report.arguments] == [("x", "wrong")]


@pytest.mark.peers
def test_a_function_of_jax_is_checked_without_the_parts_of_its_rule_and_gradients_by_hand_though_jitted(
    tmp_path,
):
    (tmp_path / "custom.py").write_text(CUSTOM)
    made = examples_of(tmp_path / "custom.py")
    assert list(made) == ["product", "loss_and_grads"]
    verdicts = {}
    for name, example in made.items():
        report = check(example.forward, example.backward, example.inputs)
        verdicts[name] = {each.name: each.verdict for each in report.arguments}
    assert verdicts["product"] == {"x": "wrong", "y": "wrong"}
    assert verdicts["loss_and_grads"] == {"params.w": "wrong"}


@pytest.mark.peers
def test_gradients_by_hand_need_no_update_and_may_be_in_a_block(tmp_path):
    (tmp_path / "by_hand.py").write_text(BY_HAND)
    pair = adapt_script(tmp_path / "by_hand.py")
    report = check(pair.forward, pair.backward, pair.inputs)
    assert [(each.name, each.verdict) for each in report.arguments] == [("W", "wrong")]
    assert report.findings[0].code in ("batch-mean-vs-sum", "constant-factor")


def test_a_definition_that_needs_a_missing_module_says_which(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("import nowhere.at_all as nn\n\n\nclass Layer(nn.Module):\n    pass\n")
    with pytest.raises(CheckError, match="install what it imports: nowhere") as caught:
        run_file(path)
    assert "program.py:4: NameError: name 'nn' is not defined" in str(caught.value)


def test_a_script_that_fails_names_its_line(tmp_path):
    path = tmp_path / "failing.py"
    path.write_text(INTERLEAVED.replace("out_delta = (y - out)", "out_delta = missing * (y - out)"))
    with pytest.raises(CheckError, match=r"failing\.py:9: NameError: name 'missing' is not defined"):
        adapt_script(path)


CLASSIFIER = """
import numpy as np

class Softmax:
    def __init__(self, features, classes):
        self.params = {"W": 0.1 * np.random.randn(features, classes)}

    def loss(self, X, y=None, reg=0.0):
        scores = X @ self.params["W"]
        if y is None:
            return scores
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        data = -np.log(p[np.arange(len(y)), y]).mean()
        p[np.arange(len(y)), y] -= 1
        grads = {"W": X.T @ p / len(y) + reg * self.params["W"]}
        return data + 0.5 * reg * (self.params["W"] ** 2).sum(), grads

    def train(self, X, y, reg=1e-2, rate=0.1, steps=5):
        for _ in range(steps):
            rows = np.random.choice(len(X), 8)
            _, grads = self.loss(X[rows], y[rows], reg)
            self.params["W"] -= rate * grads["W"]

    def predict(self, X):
        return self.loss(X).argmax(axis=1)

np.random.seed(0)
X, y = np.random.randn(20, 3), np.random.randint(0, 4, 20)
model = Softmax(3, 4)
model.train(X, y)
print(model.predict(X)[:3])
"""


def checked(path, source):
    """Check the only candidate of a file."""
    path.write_text(source)
    (example,) = examples_of(path).values()
    return check(example.forward, example.backward, example.inputs)


@pytest.mark.parametrize(
    ("change", "wrong"), [(("", ""), []), (("+ reg * self", "+ 2 * reg * self"), ["params.W"])]
)
def test_a_method_with_loss_and_gradients_comes_before_the_training_that_calls_it(tmp_path, change, wrong):
    """With the arguments of that call: with no penalty, its gradient shows no mistake."""
    report = checked(tmp_path / "softmax.py", CLASSIFIER.replace(*change))
    assert [each.name for each in report.arguments if each.verdict == "wrong"] == wrong, str(report)
    assert [each.name for each in report.arguments] == ["params.W"]


RIDGE = """
import numpy as np

def cost(theta, X, y, lam):
    r = X @ theta - y
    J = (r @ r + lam * np.sum(theta[1:] ** 2)) / (2 * len(y))
    grad = X.T @ r / len(y)
    grad[1:] += lam / len(y) * theta[1:]
    return J, grad

X, y = np.random.default_rng(0).normal(size=(9, 4)), np.arange(9.0)
for lam in (0, 1):
    theta = np.zeros(4)
    for _ in range(3):
        theta -= 0.1 * cost(theta, X, y, lam)[1]
"""


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (("", ""), "right"),
        (("grad[1:] += lam / len(y) * theta[1:]", "grad += lam / len(y) * theta"), "wrong"),
    ],
)
def test_weights_and_penalties_of_zero_hide_no_mistake(tmp_path, change, verdict):
    """The first call is with lam = 0, and every weight is 0: what is right there is no repair."""
    report = checked(tmp_path / "ridge.py", RIDGE.replace(*change))
    assert report.verdict == verdict, str(report)
    repaired = [each.repair for each in report.findings if each.proved]
    assert all("+    grad += lam / len(y) * np.append(0.0, theta[1:])" in each for each in repaired)
    assert len(repaired) == (verdict == "wrong")


MARGIN = """
import numpy as np

class SVM:
    def __init__(self):
        self.w, self.b, self.hprev = np.array([0.3, -0.2]), 0.5, np.ones((2, 1))

    def loss(self, X, y):
        return 0.5 * self.w @ self.w + (np.maximum(0, 1 - y * (X @ self.w + self.b)) ** 2).sum()

    def gradients(self, X, y):
        t = -2 * np.maximum(0, 1 - y * (X @ self.w + self.b)) * y
        return self.w + X.T @ t, t.sum()

model = SVM()
X, y = np.random.default_rng(0).normal(size=(6, 2)), np.array([1.0, -1, 1, 1, -1, -1])
print(model.loss(X, y), model.gradients(X, y))
"""


def test_gradients_without_names_are_not_those_of_arguments_of_other_shapes(tmp_path):
    """Two are returned and two arguments are taken, and they are of the object's arrays."""
    report = checked(tmp_path / "margin.py", MARGIN)
    assert report.verdict == "right", str(report)
    assert "w" in [each.name for each in report.arguments]


BAG = """
import numpy as np

def loss_and_grads(params, ctx, tgt):
    hidden = params["emb"][ctx].sum(axis=1)
    error = hidden @ params["out"].T - tgt
    d_emb = np.zeros_like(params["emb"])
    np.add.at(d_emb, ctx, (error @ params["out"])[:, None])
    return 0.5 * (error**2).sum(), {"emb": d_emb, "out": error.T @ hidden}

rng = np.random.default_rng(0)
params = {"emb": rng.normal(size=(7, 3)), "out": rng.normal(size=(2, 3))}
print(loss_and_grads(params, rng.integers(0, 7, (5, 4)), rng.normal(size=(5, 2))))
"""


def test_an_argument_called_ctx_is_one_where_no_library_calls_it(tmp_path):
    report = checked(tmp_path / "bag.py", BAG)
    assert (report.verdict, [each.name for each in report.arguments]) == (
        "right",
        ["params.emb", "params.out"],
    )


def test_a_penalty_that_is_switched_on_is_said(tmp_path):
    """The report names each argument that the file calls it with otherwise."""
    (tmp_path / "ridge.py").write_text(RIDGE)
    (example,) = examples_of(tmp_path / "ridge.py").values()
    assert (example.inputs["lam"], example.origin) == (
        0.1,
        "as the file calls it, but lam 0.1, theta drawn, not 0",
    )


KEPT_PENALTY = """
import numpy as np


class Ridge:
    def __init__(self, features, reg=0.0):
        self.W, self.reg = np.ones((features, 1)), reg

    def loss(self, X, y):
        error = X @ self.W - y
        loss = 0.5 * np.sum(error ** 2) / len(X) + 0.5 * self.reg * np.sum(self.W ** 2)
        return loss, {"W": X.T @ error / len(X)}


rng = np.random.default_rng(0)
model = Ridge(3)
print(model.loss(rng.normal(size=(5, 3)), rng.normal(size=(5, 1))))
"""


def test_a_penalty_that_an_layerkeeps_is_switched_on_too(tmp_path):
    """Of 0 it would hide that the gradient lacks its term; the file's own object is not changed."""
    path = tmp_path / "ridge.py"
    path.write_text(KEPT_PENALTY)
    (example,) = examples_of(path).values()
    assert (example.forward.reg, example.origin) == (0.1, "as the file calls it, but reg 0.1")
    assert check(example.forward, inputs=example.inputs).verdict == "wrong"


def make_scale(n: int):
    """Return a forward and a backward that share what forward saves."""
    w, saved = np.linspace(1, 2, n), {}

    def forward(x):
        saved["x"] = x
        return x * w

    def backward(dout):
        return dout * w, (dout * saved["x"]).mean(axis=0)

    return forward, backward


def test_two_functions_that_share_variables_are_judged_and_mended():
    report = check(*make_scale(3), inputs={"x": np.arange(12.0).reshape(4, 3) - 5})
    assert [(each.name, each.verdict) for each in report.arguments] == [("x", "right"), ("w", "wrong")]
    assert report.findings[0].code == "batch-mean-vs-sum"
    assert "+        return dout * w, (dout * saved['x']).sum(axis=0)" in report.mended.diff.replace('"', "'")


def test_a_copy_of_closures_has_a_state_of_its_own():
    forward, backward = make_scale(2)
    layer = Closures.of((forward, backward))
    other = copy.deepcopy(layer)
    layer.forward(np.array([[1.0, 3.0]]))
    other.forward(np.array([[5.0, 7.0]]))
    assert np.array_equal(layer.backward(np.ones((1, 2)))[1], [1, 3])
    assert np.array_equal(other.backward(np.ones((1, 2)))[1], [5, 7])


def test_a_pullback_is_mended_in_the_function_that_makes_it(tmp_path):
    (tmp_path / "squares.py").write_text(
        "import numpy as np\n\n\ndef square(x):\n    def pullback(g):\n        return g * x\n\n    return x**2, pullback\n"
    )
    report = check(
        run_file(tmp_path / "squares.py").names["square"], inputs={"x": np.array([1.0, -2.0, 3.0])}
    )
    assert report.verdict == "wrong"
    assert "+        return 2 * g * x" in report.mended.diff


@pytest.mark.parametrize("step", ["0.3 * (y - x @ w) * x", "(y - (x @ w > 0)) * x"])
def test_a_step_that_may_be_of_a_loss_which_is_not_known_is_no_mistake(tmp_path, step):
    (tmp_path / "steps.py").write_text(
        "import numpy as np\n\n\ndef train(x, y, w, lr=0.1):\n    w += lr * " + step + "\n    return w\n"
    )
    train = run_file(tmp_path / "steps.py").names["train"]
    with pytest.raises(CheckError, match=r"these steps are of none that is known|depends on none"):
        check(train, inputs={"x": np.array([1.0, -2.0, 3.0]), "y": 1.0, "w": np.array([0.5, 0.1, 0.2])})


def example_in(folder: Path, source: str, name: str):
    (folder / "given.py").write_text(source)
    file = run_file(folder / "given.py")
    (candidate,) = (each for each in candidates_in(file) if each.name == name)
    return example_of(candidate, file, {})


def test_the_upstream_gradient_of_a_recorded_call_is_no_input(tmp_path):
    """Whatever the backward's name is: it is another one in each check."""
    example = example_in(
        tmp_path,
        """
import numpy as np

class Tangente:
    def propagar(self, entrada):
        self.salida = np.tanh(entrada)
        return self.salida

    def retropropagar(self, error):
        return error * (1 - self.salida ** 2)

capa = Tangente()
capa.propagar(np.ones((3, 2)))
capa.retropropagar(np.ones((3, 2)))
""",
        "Tangente",
    )
    assert [*example.inputs] == ["entrada"]


def test_what_takes_rows_is_not_given_images(tmp_path):
    example = example_in(
        tmp_path,
        """
import numpy as np

def margin_loss(W, x1, x2, same, margin=1.0):
    diff = (x1 - x2) @ W
    dist = np.sqrt(np.sum(diff ** 2, axis=1) + 1e-12)
    gap = np.maximum(0, margin - dist)
    loss = np.mean(same * dist ** 2 + (1 - same) * gap ** 2)
    coef = 2 * same - 2 * (1 - same) * gap / dist
    return loss, (x1 - x2).T @ (coef[:, None] * diff) / len(same)
""",
        "margin_loss",
    )
    assert {np.ndim(value) for value in example.inputs.values()} <= {0, 1, 2}


@pytest.mark.parametrize("call", ["", "forward(np.ones((2, 7)), {'stride': 1})"], ids=["drawn", "called"])
def test_a_stride_is_not_1(tmp_path, call):
    """At 1 it may be forgotten."""
    source = """
import numpy as np

def forward(x, options):
    stride = options['stride']
    return x[:, ::stride], (x, stride)

def backward(dout, cache):
    x, stride = cache
    dx = np.zeros_like(x)
    dx[:, ::1] = dout
    return dx

"""
    assert example_in(tmp_path, source.replace("::1", "::stride") + call, "forward").inputs["options"] == {
        "stride": 2
    }


def test_no_repair_takes_an_update_back(tmp_path):
    """What an optimiser's step does is its own; the update is to come after the gradient."""
    (tmp_path / "dense.py").write_text("""
import numpy as np

class Optimiser:
    def __init__(self):
        self.lr = 0.5

    def step(self, w, g):
        return w - self.lr * g

class Dense:
    def __init__(self):
        self.W = np.arange(6.0).reshape(3, 2) / 7
        self.optimiser = Optimiser()

    def forward(self, x):
        self.x = x
        return x @ self.W

    def backward(self, delta):
        dW = self.x.T @ delta
        self.W = self.optimiser.step(self.W, dW)
        return delta @ self.W.T

layer = Dense()
layer.forward(np.ones((4, 3)))
layer.backward(np.ones((4, 2)))
""")
    file = run_file(tmp_path / "dense.py")
    (candidate,) = (each for each in candidates_in(file) if each.name == "Dense")
    example = example_of(candidate, file, {})
    report = check(example.forward, inputs=example.inputs)
    assert report.findings[0].code == "stale-or-mutated-state"
    assert "lr" not in report.text()


def test_a_step_that_broadcasts_its_parameter_shows_that_the_gradient_was_not_summed(tmp_path):
    example = example_in(tmp_path, """
import numpy as np

class Dense:
    def __init__(self, inputs, outputs):
        self.W = np.random.rand(inputs, outputs) - 0.5
        self.b = np.random.rand(1, outputs) - 0.5

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, error, learning_rate):
        passed = error @ self.W.T
        self.W = self.W - learning_rate * (self.x.T @ error)
        self.b = self.b - learning_rate * error
        return passed
""", "Dense")  # fmt: skip
    report = check(example.forward, inputs=example.inputs)
    assert [(each.code, each.argument) for each in report.findings] == [("broadcast-not-summed", "b")]
    assert {each.name: each.verdict for each in report.arguments} == {
        "x": "right",
        "W": "right",
        "b": "wrong",
    }


@pytest.mark.parametrize("value", ["emb", "z"])
def test_a_backward_takes_the_output_or_an_input_under_a_name_of_its_own(tmp_path, value):
    """Neither is named by forward: which of them it is, the slopes decide."""
    derivative = {"emb": "1 - emb ** 2", "z": "1 - np.tanh(z) ** 2"}[value]
    example = example_in(tmp_path, f"""
import numpy as np

def activate(x):
    return np.tanh(x)

def activate_backward({value}, d_emb):
    return d_emb * ({derivative})

out = activate(np.linspace(-1, 2, 12).reshape(4, 3))
activate_backward({"out" if value == "emb" else "np.linspace(-1, 2, 12).reshape(4, 3)"}, np.ones((4, 3)))
""", "activate")  # fmt: skip
    assert check(example.forward, example.backward, example.inputs).verdict == "right"
