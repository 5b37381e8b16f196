"""Habits of people who publish hand-written gradients, each met first in a program that nobody of this project had seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from handgrad.checking import Report, check
from handgrad.checking.interfaces import adapt_script
from handgrad.checking.user_files import candidates_in, example_of, run_file


def report_on(folder: Path, source: str, name: str) -> Report:
    """Check what a file has under a name, as ``handgrad check`` does."""
    (folder / "given.py").write_text("import numpy as np\n" + source)
    file = run_file(folder / "given.py")
    file.run_samples()
    (candidate,) = (each for each in candidates_in(file) if each.name == name)
    example = example_of(candidate, file, {})
    return check(example.forward, example.backward, example.inputs)


def named(report: Report) -> list[str]:
    return [each.code for each in report.findings]


def new_lines(report: Report) -> list[str]:
    assert report.mended is not None
    added = [
        each[1:] for each in report.mended.diff.splitlines() if each.startswith("+") and each[:3] != "+++"
    ]
    return [each.strip() for each in added]


COLUMNS = """
def forward(X, W1, b1, W2, b2):
    A1 = np.maximum(0, W1 @ X + b1)
    return W2 @ A1 + b2

def backward(dZ2, X, W1, b1, W2, b2):
    Z1 = W1 @ X + b1
    dW2 = dZ2 @ np.maximum(0, Z1).T
    db2 = dZ2.sum(axis=1, keepdims=True)
    dZ1 = W2.T @ dZ2 * (Z1 > 0)
    dW1 = dZ1 @ X.T
    db1 = dZ1.sum(axis=1, keepdims=True)
    return dW1, db1, dW2, db2
"""


def test_fewer_gradients_than_inputs_belong_to_those_of_their_names(tmp_path):
    report = report_on(tmp_path, COLUMNS, "forward")
    assert {each.name: each.verdict for each in report.arguments} == dict.fromkeys(
        ("W1", "b1", "W2", "b2"), "right"
    )


@pytest.mark.parametrize("trained", [False, True], ids=["never called", "trained"])
def test_a_bias_has_the_size_of_its_matrix_whatever_it_is_summed_over(tmp_path, trained):
    """A bias for each example would fit too; and the update that fails, where the file trains, is no reason to stop."""
    step = """
X, T = np.ones((3, 20)), np.zeros((1, 20))
W1, b1, W2, b2 = np.ones((5, 3)), np.zeros((5, 1)), np.ones((1, 5)), np.zeros((1, 1))
if __name__ == "__main__":
    dW1, db1, dW2, db2 = backward(forward(X, W1, b1, W2, b2) - T, X, W1, b1, W2, b2)
    W1 -= 0.1 * dW1; b1 -= 0.1 * db1
"""
    wrong = COLUMNS.replace("db1 = dZ1.sum(axis=1", "db1 = dZ1.sum(axis=0")
    report = report_on(tmp_path, wrong + step * trained, "forward")
    assert named(report) == ["wrong-axis"]
    assert new_lines(report) == ["db1 = dZ1.sum(axis=1, keepdims=True)"]


def test_what_normalises_the_gradient_is_taken_out_and_not_cancelled(tmp_path):
    source = """
def dense(x, W):
    y = np.tanh(x @ W)

    def back(g):
        g = g * (1 - y**2)
        g = g / (np.linalg.norm(g) + 1e-8)
        return g @ W.T, x.T @ g

    return y, back

y, back = dense(np.linspace(-1, 1, 12).reshape(4, 3), np.linspace(-1, 2, 6).reshape(3, 2))
back(np.ones((4, 2)))
"""
    report = report_on(tmp_path, source, "dense")
    assert named(report) == ["not-proportional"]
    assert new_lines(report) == []


def test_several_rounded_constants_are_no_mistake(tmp_path):
    source = """
def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

def gelu_grad(x):
    t = np.tanh(0.7979 * (x + 0.0447 * x**3))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7979 * (1 + 0.1341 * x**2)
"""
    report = report_on(tmp_path, source, "gelu")
    assert report.verdict == "right, but"
    assert "0.7979 is 0.7978845608" in report.reason
    assert "0.0447 is 0.044715," in report.reason


def test_axes_are_put_in_the_order_in_which_forward_puts_them(tmp_path):
    source = """
def split(x, W):
    N, D = x.shape
    y = (W @ x.T).reshape(2, 3, N).transpose(2, 0, 1)
    return y, (x, W)

def split_backward(dy, cache):
    x, W = cache
    d = dy.reshape(6, -1)
    return (W.T @ d).T, d @ x

split_backward(np.ones((5, 2, 3)), split(np.linspace(-1, 1, 20).reshape(5, 4), np.linspace(-2, 2, 24).reshape(6, 4))[1])
"""
    report = report_on(tmp_path, source, "split")
    assert named(report) == ["wrong-position"]
    assert new_lines(report) == ["d = dy.transpose(1, 2, 0).reshape(6, -1)"]


def test_a_derivative_in_the_output_is_given_the_output_of_a_function_that_returns_its_cache_too(tmp_path):
    source = """
def sigmoid(Z):
    return 1 / (1 + np.exp(-Z)), Z

def layer(A, W, b):
    P, cache = sigmoid(W @ A + b)
    return P, (A, W, b, cache)

def layer_backward(dP, cache):
    A, W, b, Z = cache
    dZ = dP * Z * (1 - Z)
    return W.T @ dZ, dZ @ A.T, dZ.sum(axis=1, keepdims=True)
"""
    report = report_on(tmp_path, source, "layer")
    assert named(report) == ["wrong-evaluation-point"]
    assert new_lines(report) == ["dZ = dP * sigmoid(Z)[0] * (1 - sigmoid(Z)[0])"]


def test_a_network_without_a_loss_is_judged_by_the_loss_beside_it(tmp_path):
    source = """
def nll(rate, y):
    return np.mean(rate - y * np.log(rate))

class Poisson:
    def __init__(self, dim):
        self.w = np.zeros(dim)

    def predict(self, X):
        return np.exp(X @ self.w)

    def gradients(self, X, y):
        return X.T @ (self.predict(X) - y) / len(y)
"""
    report = report_on(tmp_path, source, "Poisson")
    assert report.verdict == "right"
    assert any("nll(output, y)" in each for each in report.tried)


def test_gradients_with_names_belong_to_a_list_of_parameters_in_their_order(tmp_path):
    source = """
def perdida_y_gradientes(modelo, X, t):
    W, b, v, c = modelo
    h = np.tanh(X @ W + b)
    delta = (h @ v + c - t) / len(t)
    dz = delta[:, None] * v * (1 - h**2)
    return np.mean((h @ v + c - t) ** 2) / 2, [X.T @ dz, dz.sum(0), delta @ h, delta.sum()]

rng = np.random.default_rng(0)
modelo = [rng.normal(size=(3, 4)), rng.normal(size=4), rng.normal(size=4), 0.5]
perdida, gradientes = perdida_y_gradientes(modelo, rng.normal(size=(6, 3)), rng.normal(size=6))
"""
    for returned in ("[X.T @ dz, dz.sum(0), delta @ h, delta.sum()]", "[gW, gb, gv, gc]"):
        named_first = "gW, gb, gv, gc = X.T @ dz, dz.sum(0), delta @ h, delta.sum()\n    return"
        changed = source.replace("[X.T @ dz, dz.sum(0), delta @ h, delta.sum()]", returned)
        changed = changed.replace("    return", f"    {named_first}")
        report = report_on(tmp_path, changed, "perdida_y_gradientes")
        assert report.verdict == "right"
        assert [each.name for each in report.arguments] == [f"modelo[{k}]" for k in range(4)]


def test_a_recommender_calls_its_learning_rate_gamma(tmp_path):
    source = """
class Recommender:
    def __init__(self):
        rng = np.random.default_rng(1)
        self.p, self.q = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
        self.gamma, self.lam = 0.02, 0.05

    def predict(self, u, i):
        return self.p[u] @ self.q[i]

    def update(self, u, i, r):
        e = r - self.predict(u, i)
        pu = self.p[u].copy()
        self.p[u] += self.gamma * (e * self.q[i] - self.lam * self.p[u])
        self.q[i] += self.gamma * (e * pu - self.lam * self.q[i])
        return e

if __name__ == "__main__":
    Recommender().update(1, 2, 3.5)
"""
    assert report_on(tmp_path, source, "Recommender").verdict == "right"


def test_an_error_that_happens_to_have_a_parameters_shape_is_not_its_gradient(tmp_path):
    (tmp_path / "given.py").write_text("""
import numpy as np

def s(x, derivee=False):
    return x * (1 - x) if derivee else 1 / (1 + np.exp(-x))

X = np.array([[0.0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1]])
y = np.array([[0.0, 1, 1, 0]]).T
np.random.seed(1)
W0, W1 = 2 * np.random.random((3, 4)) - 1, 2 * np.random.random((4, 1)) - 1
for _ in range(10):
    l1 = s(X.dot(W0))
    l2 = s(l1.dot(W1))
    delta2 = (y - l2) * s(l2, derivee=True)
    delta1 = delta2.dot(W1.T) * s(l1, derivee=True)
    W1 += l1.T.dot(delta2)
    W0 += X.T.dot(delta1)
""")
    pair = adapt_script(tmp_path / "given.py")
    assert check(pair.forward, pair.backward, pair.inputs).verdict == "right"


WORDS = """
class Netz:
    def __init__(self, n_ein, n_aus):
        self.W = np.random.default_rng(0).normal(size=(n_aus, n_ein))

    def {forward}(self, X):
        self.X = X
        return np.tanh(self.W @ X)

    def {loss}(self, X, Y):
        return 0.5 * np.sum((self.{forward}(X) - Y) ** 2)

    def {backward}(self, X, Y):
        A = self.{forward}(X)
        return {{"W": ((A - Y) * (1 - A**2)) @ X.T}}

    def {train}(self, X, Y, schritte=3):
        for _ in range(schritte):
            self.W -= 0.1 * self.{backward}(X, Y)["W"]

if __name__ == "__main__":
    Netz(3, 2).{train}(np.ones((3, 5)), np.zeros((2, 5)))
"""


@pytest.mark.parametrize(
    ("forward", "loss", "backward", "train"),
    [
        ("vorwaerts", "verlust", "rueckwaerts", "trainieren"),
        ("propager", "cout", "retropropager", "entrainer"),
        ("adelante", "perdida", "atras", "entrenar"),
        ("vorhersage", "kosten", "gradienten", "lernen"),
    ],
)
def test_methods_have_names_in_other_languages(tmp_path, forward, loss, backward, train):
    source = WORDS.format(forward=forward, loss=loss, backward=backward, train=train)
    report = report_on(tmp_path, source, "Netz")
    assert report.verdict == "right"
    assert "W" in [each.name for each in report.arguments]


def test_a_state_that_is_returned_as_a_copy_is_none_of_the_gradients(tmp_path):
    source = """
rng = np.random.default_rng(0)
V, H = 5, 4
Wx, Wh, Wy = 0.3 * rng.normal(size=(H, V)), 0.3 * rng.normal(size=(H, H)), 0.3 * rng.normal(size=(V, H))

def step(inputs, targets, h0):
    hs, ps, loss = {-1: h0}, {}, 0
    for t, k in enumerate(inputs):
        hs[t] = np.tanh(Wx[:, [k]] + Wh @ hs[t - 1])
        e = np.exp(Wy @ hs[t])
        ps[t] = e / e.sum()
        loss -= np.log(ps[t][targets[t], 0])
    dWx, dWh, dWy = np.zeros_like(Wx), np.zeros_like(Wh), np.zeros_like(Wy)
    later = np.zeros_like(h0)
    for t in reversed(range(len(inputs))):
        dy = ps[t].copy()
        dy[targets[t]] -= 1
        dWy += dy @ hs[t].T
        dz = (Wy.T @ dy + later) * (1 - hs[t] ** 2)
        dWx[:, [inputs[t]]] += dz
        dWh += dz @ hs[t - 1].T
        later = Wh.T @ dz
    return loss, dWx, dWh, dWy, hs[len(inputs) - 1].copy()

h = np.zeros((H, 1))
for k in range(3):
    loss, dWx, dWh, dWy, h = step([0, 3, 1, 4], [3, 1, 4, 2], h)
    for w, g in zip((Wx, Wh, Wy), (dWx, dWh, dWy)):
        w -= 0.1 * g
"""
    report = report_on(tmp_path, source, "step")
    assert {each.name: each.verdict for each in report.arguments} == dict.fromkeys(
        ("Wx", "Wh", "Wy"), "right"
    )


def test_functions_in_any_language_are_a_pair_where_one_is_given_what_the_other_returned(tmp_path):
    source = """
def passo_frente(a, h0, x):
    h, memoria, perda = h0, [], 0.0
    for xt in x:
        erro = xt - a * h
        memoria.append((h, erro))
        h = a * h + 0.5 * erro
        perda += 0.5 * erro ** 2
    return perda, (a, memoria)

def passo_tras(cache):
    a, passos = cache
    da, dh = 0.0, 0.0
    for antes, erro in passos[::-1]:
        dprev = SIGN
        da += dprev * antes
        dh = dprev * a
    return da, dh

def treinar(x, a=0.5):
    perda, cache = passo_frente(a, 0.3, x)
    da, dh0 = passo_tras(cache)
    return a - 0.01 * da

treinar(np.random.default_rng(0).normal(size=7))
"""
    right = report_on(tmp_path, source.replace("SIGN", "0.5 * dh - erro"), "passo_frente")
    assert [each.verdict for each in right.arguments if each.name == "a"] == ["right"]
    wrong = report_on(tmp_path, source.replace("SIGN", "0.5 * dh + erro"), "passo_frente")
    assert named(wrong) == ["wrong-sign"]


def test_a_method_and_the_one_that_is_called_its_gradient_are_a_pair(tmp_path):
    source = """
class Process:
    def __init__(self, y):
        self.y, self.theta = y, np.array([0.3, -0.2])

    def nlml(self, theta):
        scale, noise = np.exp(theta)
        return 0.5 * np.sum(self.y ** 2) / (scale + noise ** 2) + np.log(scale + noise ** 2)

    def nlml_grad(self, theta):
        scale, noise = np.exp(theta)
        whole = scale + noise ** 2
        common = 1 / whole - 0.5 * np.sum(self.y ** 2) / whole ** 2
        return np.array([common * scale, common * noise ** 2])

process = Process(np.random.default_rng(0).normal(size=5))
process.nlml(process.theta)
process.nlml_grad(process.theta)
"""
    assert named(report_on(tmp_path, source, "Process")) == ["constant-factor"]
    mended = source.replace("common * noise ** 2])", "2 * common * noise ** 2])")
    assert report_on(tmp_path, mended, "Process").verdict == "right"


def test_a_sigmoid_and_its_derivative_among_the_methods_are_not_what_the_network_is(tmp_path):
    source = """
class NeuralNetwork:
    def __init__(self):
        self.weights = 2 * np.random.RandomState(1).rand(3, 1) - 1

    def sigmoid(self, x):
        return 1 / (1 + np.exp(-x))

    def sigmoid_derivative(self, x):
        return x * (1 - x)

    def think(self, X):
        return self.sigmoid(X @ self.weights)

    def train(self, X, y, epochs=1):
        for _ in range(epochs):
            out = self.think(X)
            self.weights += X.T @ ((y - out) * self.sigmoid_derivative(out))

network = NeuralNetwork()
network.train(np.array([[0.2, 0, 1], [1, 1.5, 1], [1, 0.3, 1], [0, 1, 1]]), np.array([[0.0, 1, 1, 0]]).T, 100)
"""
    report = report_on(tmp_path, source, "NeuralNetwork")
    assert report.verdict == "right"
    assert "weights" in report.arguments[0].name


def test_an_input_that_forward_returns_is_a_cache_and_no_output(tmp_path):
    source = """
def square_forward(x):
    return x ** 2, x

def square_backward(dout, x):
    return 2 * x * dout

y, cache = square_forward(np.random.default_rng(0).normal(size=(3, 4)))
square_backward(y - 1, cache)
"""
    assert report_on(tmp_path, source, "square_forward").verdict == "right"


def test_a_matrix_called_B_is_no_bias(tmp_path):
    source = """
def lora_forward(x, W, A, B):
    return x @ W.T + (x @ A.T) @ B.T, (x, W, A, B)

def lora_backward(dout, cache):
    x, W, A, B = cache
    dx = dout @ W.T + dout @ B @ A
    return dx, dout.T @ x, (dout @ B).T @ x, dout.T @ (x @ A.T)

rng = np.random.default_rng(0)
W, A, B = rng.normal(size=(6, 6)), rng.normal(size=(2, 6)), rng.normal(size=(6, 2))
out, cache = lora_forward(rng.normal(size=(9, 6)), W, A, B)
lora_backward(out, cache)
"""
    report = report_on(tmp_path, source, "lora_forward")
    assert named(report) == ["transposed"]
    assert [each.name for each in report.arguments if each.verdict == "wrong"] == ["x"]


TRAINED = """
def forward(x):
    return np.tanh(x @ W)

def backward(dy, x):
    y = np.tanh(x @ W)
    return dy * (1 - y) @ W.T

if __name__ == "__main__":
    rng = np.random.default_rng(0)
    W, x = rng.normal(size=(3, 4)), rng.normal(size=(5, 3))
    for _ in range(50):
        y = forward(x)
        dx = backward(np.ones_like(y), x)
        W += 10.0
"""


def test_a_training_of_the_file_itself_moves_no_array_that_a_function_reads(tmp_path):
    """After it, these weights would be so large that every slope is zero."""
    report = report_on(tmp_path, TRAINED, "forward")
    assert named(report) == ["wrong-local-derivative"]
    assert new_lines(report) == ["return dy * (1 - y ** 2) @ W.T"]


SPIRALS = """
import numpy as np
rng = np.random.default_rng(0)
N, K = 100, 3
t = np.tile(np.linspace(0, 4, N), K) + np.repeat(4 * np.arange(K), N)
X = np.c_[np.sin(t), np.cos(t)] * np.tile(np.linspace(0, 1, N), K)[:, None]
y = np.repeat(np.arange(K), N)
W, b = 0.01 * rng.normal(size=(2, 50)), np.zeros((1, 50))
W2, b2 = 0.01 * rng.normal(size=(50, K)), np.zeros((1, K))
for i in range(2000):
    hidden = np.maximum(0, X @ W + b)
    scores = hidden @ W2 + b2
    exps = np.exp(scores)
    probs = exps / exps.sum(axis=1, keepdims=True)
    loss = -np.log(probs[range(N * K), y]).sum() / (N * K) + 0.0005 * np.sum(W * W)
    dscores = probs.copy()
    dscores[range(N * K), y] -= 1
    dscores /= N * K
    dW2 = hidden.T @ dscores
    db2 = np.sum(dscores, axis=0, keepdims=True)
    dhidden = dscores @ W2.T
    dW = X.T @ dhidden
    db = np.sum(dhidden, axis=0, keepdims=True)
    dW += 0.001 * W
    W -= dW
    b -= db
    W2 -= dW2
    b2 -= db2
"""


def test_a_factor_that_two_gradients_lack_is_set_where_what_both_read_is_assigned(tmp_path):
    """The evidence names the line of forward, and the search ends before its budget, at 300 rows and 50 units."""
    (tmp_path / "given.py").write_text(SPIRALS)
    pair = adapt_script(tmp_path / "given.py")
    report = check(pair.forward, pair.backward, pair.inputs)
    assert named(report) == ["missing-local-derivative"]
    assert "`hidden = np.maximum(0, X @ W + b)` (line 11) is left out" in report.findings[0].evidence
    assert new_lines(report) == ["dhidden = dscores @ W2.T * (hidden > 0)"]


HELD = """
class NeuralNetwork:
    def __init__(self, x, y):
        self.input, self.y = x, y
        self.weights1, self.weights2 = np.random.rand(x.shape[1], 4), np.random.rand(4, 1)

    def feedforward(self):
        self.layer1 = sigmoid(self.input @ self.weights1)
        self.output = sigmoid(self.layer1 @ self.weights2)

    def backprop(self):
        error = 2 * (self.y - self.output) * sigmoid_derivative(self.output)
        d_weights2 = self.layer1.T @ error
        d_weights1 = self.input.T @ (error @ self.weights2.T{slope})
        self.weights1 += d_weights1
        self.weights2 += d_weights2

def sigmoid(x):
    return 1 / (1 + np.exp(-x))

def sigmoid_derivative(x):
    return x * (1 - x)

if __name__ == "__main__":
    X, y = np.array([[0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1]]), np.array([[0], [1], [1], [0]])
    net = NeuralNetwork(X, y)
    for _ in range(1500):
        net.feedforward()
        net.backprop()
"""


@pytest.mark.parametrize(
    ("slope", "wrong"),
    [(" * sigmoid_derivative(self.layer1)", []), ("", ["weights1"])],
    ids=["right", "wrong"],
)
def test_a_network_that_holds_its_target_is_judged_by_the_loss_of_its_error(tmp_path, slope, wrong):
    report = report_on(tmp_path, HELD.format(slope=slope), "NeuralNetwork")
    assert [each.name for each in report.arguments if each.verdict == "wrong"] == wrong
    assert {each.name for each in report.arguments} == {"weights1", "weights2"}


CACHE = """
def forward(X, p):
    A1 = np.tanh(p["W1"] @ X)
    A2 = 1 / (1 + np.exp(-p["W2"] @ A1))
    return A2, {"A1": A1, "A2": A2}

def cost(A2, Y):
    return -np.sum(Y * np.log(A2) + (1 - Y) * np.log(1 - A2)) / Y.shape[1]

def backward(X, Y, p, c):
    dZ2 = (c["A2"] - Y) / Y.shape[1]
    dZ1 = p["W2"].T @ dZ2 * (1 - c["A2"] ** 2)
    return {"dW2": dZ2 @ c["A1"].T, "dW1": dZ1 @ X.T}

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(3, 40)), rng.integers(0, 2, (1, 40)).astype(float)
p = {"W1": rng.normal(size=(6, 3)), "W2": rng.normal(size=(1, 6))}
A2, c = forward(X, p)
grads = backward(X, Y, p, c)
"""


def test_what_backward_takes_besides_the_target_may_be_the_cache_by_any_name(tmp_path):
    report = report_on(tmp_path, CACHE, "forward")
    assert new_lines(report) == ["dZ1 = p[\"W2\"].T @ dZ2 * (1 - c['A1'] ** 2)"]


def test_queries_keys_and_values_are_drawn_with_one_rank(tmp_path):
    source = """
class Attention:
    def forward(self, Q, K, V):
        self.Q, self.K, self.V = Q, K, V
        S = np.exp(Q @ K.transpose(0, 2, 1) / np.sqrt(Q.shape[-1]))
        self.A = S / S.sum(-1, keepdims=True)
        return self.A @ V

    def backward(self, dO):
        dA = dO @ self.V.transpose(0, 2, 1)
        dS = self.A * (dA - (dA * self.A).sum(-1, keepdims=True))
        return dS @ self.K, dS.transpose(0, 2, 1) @ self.Q, self.A.transpose(0, 2, 1) @ dO
"""
    report = report_on(tmp_path, source, "Attention")
    assert [(each.name, len(each.shape)) for each in report.arguments] == [("Q", 3), ("K", 3), ("V", 3)]
    assert named(report) == ["constant-factor"]


def test_a_temperature_called_t_is_not_1(tmp_path):
    source = """
def softmax(logits, T):
    e = np.exp(logits / T)
    return e / e.sum(-1, keepdims=True)

def softmax_backward(g, logits, T):
    p = softmax(logits, T)
    return p * (g - (g * p).sum(-1, keepdims=True))
"""
    assert report_on(tmp_path, source, "softmax").verdict == "wrong"


PENALISED = """
import numpy as np
rng = np.random.default_rng(1)
X = rng.normal(size=(64, 5))
y = X @ rng.normal(size=5)
W1, b1, W2 = rng.normal(size=(5, 8)) * 0.3, np.zeros(8), rng.normal(size=8) * 0.3
lam = 0.01
for epoch in range(500):
    h = np.tanh(X @ W1 + b1)
    err = h @ W2 - y
    loss = np.mean(err**2) + lam * (np.sum(W1**2) + np.sum(W2**2))
    dpred = 2 * err / len(y)
    gW2 = h.T @ dpred + lam * W2
    dh = np.outer(dpred, W2) * (1 - h**2)
    gW1 = X.T @ dh + lam * W1
    gb1 = dh.sum(axis=0)
    W1 -= 0.05 * gW1
    b1 -= 0.05 * gb1
    W2 -= 0.05 * gW2
"""


def test_a_script_is_repaired_by_two_edits(tmp_path):
    """The second is judged by what the first has left, not by the script as it was."""
    (tmp_path / "given.py").write_text(PENALISED)
    pair = adapt_script(tmp_path / "given.py")
    report = check(pair.forward, pair.backward, pair.inputs)
    assert new_lines(report) == ["gW2 = h.T @ dpred + 2 * lam * W2", "gW1 = X.T @ dh + 2 * lam * W1"]


GUARDED = """
EPS = 1e-9

class Classifier:
    def __init__(self, inputs, hidden, classes, eps=1e-9):
        rng = np.random.default_rng(0)
        self.W1 = rng.normal(size=(inputs, hidden))
        self.W2 = rng.normal(size=(hidden, classes))
        self.eps = eps

    def forward(self, X):
        self.X = X
        self.a1 = np.maximum(0, X @ self.W1)
        z = self.a1 @ self.W2
        e = np.exp(z - z.max(axis=1, keepdims=True))
        self.p = e / e.sum(axis=1, keepdims=True)
        return self.p

    def loss(self, y):
        return -np.mean(np.log(self.p[np.arange(len(y)), y] + 1e-9))

    def backward(self, y):
        dz = self.p.copy()
        dz[np.arange(len(y)), y] -= 1
        dz /= len(y)
        self.dW2 = self.a1.T @ dz
        da1 = dz @ self.W2.T
        self.dW1 = self.X.T @ da1
"""


@pytest.mark.parametrize("guard", ["1e-9", "EPS", "self.eps"])
def test_what_guards_a_logarithm_in_forward_alone_hides_no_mistake(tmp_path, guard):
    """Else every gradient would be wrong in its eighth digit, and no repair of backward right."""
    source = GUARDED.replace("+ 1e-9", f"+ {guard}")
    report = report_on(tmp_path, source, "Classifier")
    assert [(each.name, each.verdict) for each in report.arguments] == [("W2", "right"), ("W1", "wrong")]
    assert named(report) == ["missing-local-derivative"]
    assert new_lines(report) == ["self.dW1 = self.X.T @ (da1 * (self.a1 > 0))"]
    assert report.reason == (
        f"judged without 1e-09 in `return -np.mean(np.log(self.p[np.arange(len(y)), y] + {guard}))` (line 21), "
        "which backward does not have"
    )
    (tmp_path / "given.py").write_text(report.mended.text)
    assert (
        "the gradient is right but for 1e-09" in report_on(tmp_path, report.mended.text, "Classifier").reason
    )


def test_what_guards_both_is_left_where_it_is(tmp_path):
    source = """
def loss(z, t):
    p = 1 / (1 + np.exp(-z))
    return -np.sum(t * np.log(p + 1e-7))

def loss_backward(dy, z, t):
    p = 1 / (1 + np.exp(-z))
    return {"z": dy * t / (p + 1e-7) * p * (1 - p)}
"""
    report = report_on(tmp_path, source, "loss")
    assert report.reason == ""
    assert new_lines(report) == ['return {"z": dy * t / (p + 1e-7) * p * (p - 1)}']


def test_a_guard_that_is_no_number_in_its_line_is_not_left_out(tmp_path):
    """So that nothing is said of what was not done."""
    report = report_on(
        tmp_path, GUARDED.replace("EPS = 1e-9", "EPS = 10.0 ** -9").replace("+ 1e-9", "+ EPS"), "Classifier"
    )
    assert report.reason == ""


@pytest.mark.parametrize("output", ["z", "s", "scores"])
def test_what_a_loss_takes_beside_the_target_are_no_numbers_of_classes(tmp_path, output):
    source = f"""
def loss({output}, t):
    return -np.sum(t * np.log(1 / (1 + np.exp(-{output}))))

def loss_backward(dy, {output}, t):
    return {{"{output}": dy * t / (1 + np.exp(-{output}))}}
"""
    report = report_on(tmp_path, source, "loss")
    assert report.verdict == "wrong"
    assert new_lines(report)
