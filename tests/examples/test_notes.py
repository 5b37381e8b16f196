"""The scripts of examples/ run as they stand, say what their README says, and notice when they are wrong."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from handgrad import HalfSquaredError, Linear, Network, ReLU
from handgrad.data import mnist, read_idx
from handgrad.rules import linear, linear_out_in, sigmoid

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("notes_*.py"))
EXACT, CLOSE = 1e-12, 1e-7


def run(name: str, **environment: str) -> str:
    """Run a script in a process of its own and return what it printed."""
    inherited = {key: value for key, value in os.environ.items() if key != "HANDGRAD_MNIST"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py")],
        env={**inherited, "PYTHONUTF8": "1", **environment},
        capture_output=True, encoding="utf-8", timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def load(name: str) -> ModuleType:
    """Import a script, which runs nothing yet."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbers(pattern: str, text: str) -> list[float]:
    """Return the numbers in the groups of the one place where the pattern is found; 45% is 0.45."""
    found = re.findall(pattern, text)
    assert len(found) == 1, (pattern, text)
    groups = found[0] if isinstance(found[0], tuple) else (found[0],)
    return [float(g.rstrip("%")) / (100 if g.endswith("%") else 1) for g in groups]


def off(wrong: np.ndarray, right: np.ndarray) -> float:
    return float(np.linalg.norm(wrong - right) / np.linalg.norm(right))


# What they print.


def test_the_shallow_net_prints_its_numbers() -> None:
    text = run("notes_000_shallow_net")
    assert numbers(r"\n  largest difference (\S+)", text)[0] < CLOSE
    assert numbers(r"d_x2 \* φ': largest difference (\S+)", text) == [0]
    assert [s.split() for s in re.findall(r"d_(\w+ +\(.*?\)) ", text)] == [
        ["weights1", "(3,", "5)"], ["bias1", "(5,)"], ["weights2", "(5,", "2)"], ["bias2", "(2,)"]
    ]  # fmt: skip
    (single,) = numbers(r"best single \(5, 5\) matrix is off by (\d+%)", text)
    (svd,) = numbers(r"as it should be, and off by (\d+%)", text)
    assert 0.1 < single < svd
    shear = numbers(r"eigenvalues \[(\S+) (\S+)\] and singular values \[(\S+) (\S+)\]", text)
    assert shear == [1, 1, 1.62, 0.62]
    start, down, up = numbers(r"from (\S+) to (\S+) with y_pred - y, and to (\S+) with y - y_pred", text)
    assert down < start < up


def check_three_layers(text: str, least: float) -> None:
    scores = re.findall(r"(\d) of (\w+) +(\S+)% +(\S+)%", text)
    assert [(layers, name) for layers, name, *_ in scores] == [
        ("1", "Sigmoid"), ("2", "Sigmoid"), ("3", "ReLU"), ("3", "Sigmoid")
    ]  # fmt: skip
    assert min(float(share) for *_, online, batches in scores for share in (online, batches)) > 100 * least
    assert max(numbers(r"one example (\S+), a mini-batch as the sum of its examples (\S+)", text)) < EXACT
    start = numbers(r"at the start, off by (\d+%), (\d+%), (\d+%)", text)
    trained = numbers(r"in the trained net, off by (\d+%), (\d+%), (\d+%)", text)
    assert min(trained) > max(0.3, *start)
    averages, sums = numbers(r"trained with them, (\S+%) right; with the sums, (\S+%)", text)
    assert averages < 0.5 < least < sums
    assert numbers(r"after w3 has changed, the chain is off by (\d+%)", text)[0] > 0.01
    assert "forward → loss → backward → update" in text
    stored, not_stored = re.findall(r"the network stores (.*)\n  and not (.*)", text)[0]
    assert set(re.findall(r"[a-z]\d", stored)) == {"e1", "a1", "e2", "a2", "e3"}
    assert set(re.findall(r"[a-z]\d", not_stored)) == {"z1", "z2", "z3", "a3"}
    assert "slope of ReLU at -2, 0 and 3: [0. 0. 1.]" in text


def test_three_layers_learn_the_digits() -> None:
    text = run("notes_001_three_layers")
    assert text.startswith("1,200 digits of 64 pixels to learn from, 597 to test on\n")
    check_three_layers(text, 0.8)


@pytest.mark.mnist
def test_three_layers_learn_mnist() -> None:
    text = run("notes_001_three_layers", HANDGRAD_MNIST=os.environ["HANDGRAD_MNIST"])
    assert text.startswith("1,200 digits of 784 pixels to learn from, 10,000 to test on\n")
    check_three_layers(text, 0.7)


def test_the_batch_jacobian_prints_its_numbers() -> None:
    text = run("notes_002_batch_jacobian")
    assert "dh/dW for x = [1. 2.] is (3, 2, 3)" in text
    assert "   [1. 0. 0.] [0. 1. 0.] [0. 0. 1.]\n   [2. 0. 0.] [0. 2. 0.] [0. 0. 2.]\n" in text
    assert numbers(r"(\d+) of (\d+) numbers are not 0", text) == [6, 18]
    assert numbers(r"outer\(x, dh\): largest difference (\S+)", text)[0] < EXACT
    exact, close = numbers(r"difference from the program (\S+), from central differences (\S+)", text)
    assert exact < EXACT
    assert close < CLOSE
    by_loss, by_ones = numbers(r"off by (\d+%) with the loss's dH, by (\d+%) with ones", text)
    assert by_loss > 0.5 > by_ones == 0
    slopes = numbers(r"rule (\S+), central differences (\S+), sigmoid\(out\) sigmoid\(1 - out\) (\S+)", text)
    assert slopes == [0.1050, 0.1050, 0.2369]


def test_the_modules_are_the_program() -> None:
    text = run("notes_003_modules")
    assert max(numbers(r"dW1 (\S+), db1 (\S+), dW2 (\S+), db2 (\S+)", text)) < EXACT
    assert numbers(r"dL/dx \(7, 5\).* central differences: (\S+)", text)[0] < CLOSE
    lines = dict(re.findall(r"  (\w+) +(.* = .*)", text))
    assert list(lines) == ["loss", "second", "sigma", "first"]
    assert [line.split(" = ")[0] for line in lines["second"].split("; ")] == ["da1", "dW2", "db2"]


def test_gradients_hang_on_every_variable() -> None:
    text = run("notes_004_gradients_on_variables")
    rows = re.findall(r"\n  (\w+) +(\(.*?\)) +(\(.*?\)) *(\S*)", text.split("\n\n")[0])
    assert [name for name, *_ in rows] == ["x", "w1", "b1", "l1", "l2", "w2", "b2", "y"]
    assert all(shape == shape_of_g for _, shape, shape_of_g, _ in rows)
    assert max(float(differs) for *_, differs in rows if differs) < CLOSE
    assert "(7, 4) * (4, 5) do not fit" in text
    assert numbers(r"with n = m = h = 4 they do, and x.g is off by (\d+%)", text)[0] > 0.5


@pytest.mark.parametrize("name", [name for name in NAMES if name != "notes_001_three_layers"])
def test_they_say_the_same_every_time(name: str) -> None:
    assert run(name) == run(name)


def test_the_readme_names_every_script() -> None:
    commands = re.findall(r"\| `python examples/(\w+)\.py` \|", (EXAMPLES / "README.md").read_text("utf-8"))
    assert commands == NAMES


# What they define.


@pytest.mark.parametrize("rows", [1, 6])
def test_backprop_of_the_shallow_net_at_other_sizes(rows: int) -> None:
    rng = np.random.default_rng(1)
    network = Network(Linear(4, 7), ReLU(), Linear(7, 3), loss=HalfSquaredError(), dtype="float64")
    x, y = rng.normal(size=(rows, 4)), rng.normal(size=(rows, 3))
    gradients = load("notes_000_shallow_net").backprop(x, *network.parameters.values(), y)
    own = network.gradients(x, y)
    for name, program in (("weights1", "W1"), ("bias1", "b1"), ("weights2", "W2"), ("bias2", "b2")):
        assert np.abs(gradients[name] - own[program]).max() < EXACT
    assert np.abs(gradients["y_pred"] - (network.predict(x) - y)).max() < EXACT


def test_numerical_slopes_leave_what_they_nudge_as_it_was() -> None:
    module = load("notes_000_shallow_net")
    v = np.array([[1.0, -2.0, 0.5]])
    slopes = module.numerical(lambda: (v**3).sum(), v)
    assert np.abs(slopes - 3 * v**2).max() < CLOSE
    assert np.array_equal(v, [[1.0, -2.0, 0.5]])


def test_idx_files_are_as_mnist_writes_them(tmp_path: Path) -> None:
    array = np.arange(2 * 3 * 5, dtype=np.uint8).reshape(2, 3, 5)
    path = tmp_path / "images"
    load("notes_001_three_layers").write_idx(path, array)
    assert path.read_bytes()[:16] == bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 5])
    assert np.array_equal(read_idx(path), array)


def test_digits_come_through_idx_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HANDGRAD_MNIST", raising=False)
    module = load("notes_001_three_layers")
    data, digits = module.read_digits(), module.digits()
    assert data.x.max() == 255
    assert np.array_equal(np.round(data.x / 255 * 16), digits.x)
    assert np.array_equal(data.t, digits.t)


def test_a_folder_with_mnist_files_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load("notes_001_three_layers")
    images, labels = np.arange(24, dtype=np.uint8).reshape(4, 2, 3), np.arange(4, dtype=np.uint8)
    for part in ("train", "t10k"):
        module.write_idx(tmp_path / f"{part}-images-idx3-ubyte", images)
        module.write_idx(tmp_path / f"{part}-labels-idx1-ubyte", labels)
    monkeypatch.setenv("HANDGRAD_MNIST", str(tmp_path))
    assert np.array_equal(module.read_digits().x, mnist(tmp_path).x)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_layers_of_the_question_are_right_for_one_example(layers: int) -> None:
    module = load("notes_001_three_layers")
    rng = np.random.default_rng(2)
    net, x, label = module.make_net(11, layers), rng.normal(size=(1, 11)), rng.normal(size=(1, 10))
    alone = [(w, i[0], o[0]) for w, i, o in module.go_forward(net, x)]
    gradients = module.go_back(alone, label[0])
    own = net.gradients(x, label)
    assert gradients.keys() == own.keys()
    assert max(np.abs(gradients[name] - own[name]).max() for name in own) < EXACT


def test_the_tensor_of_one_example_is_its_formula() -> None:
    module = load("notes_002_batch_jacobian")
    x = np.array([[0.7, -1.3]])
    assert np.array_equal(module.one_example(x), np.einsum("j,ik->ijk", x[0], np.eye(3)))


def test_modules_hand_on_through_any_number_of_modules() -> None:
    module = load("notes_003_modules")
    rng = np.random.default_rng(3)
    weights = [rng.normal(size=(4, 4)) for _ in range(5)]  # square: shapes would not show a transpose
    value, last, whole = rng.normal(size=(2, 4)), None, np.eye(4)
    for W in weights:
        last = module.Module(linear_out_in, W, np.zeros(4), previous_module=last)
        value = last.forward(value)
        whole = W @ whole
    assert last is not None
    upstream = rng.normal(size=(2, 4))
    assert off(last.backward(upstream), upstream @ whole) < EXACT


def test_lin_grad_hangs_on_what_the_rule_says() -> None:
    module = load("notes_004_gradients_on_variables")
    rng = np.random.default_rng(4)
    x, w, b = (module.variable(rng.normal(size=shape)) for shape in ((1, 5), (5, 2), (2,)))
    y = linear(x, w, b)
    y.g = rng.normal(size=(1, 2))
    module.lin_grad(x, w, b, y)
    for v, right in ((x, y.g @ w.T), (w, x.T @ y.g), (b, y.g[0])):
        assert v.g.shape == v.shape
        assert np.abs(v.g - right).max() < EXACT


# They notice when they are wrong.


def wrong_backprop(module: ModuleType) -> None:
    right = module.backprop
    module.backprop = lambda *given, **named: {k: 1.001 * v for k, v in right(*given, **named).items()}


def wrong_batch(module: ModuleType) -> None:
    right = module.batch
    module.batch = lambda *given: tuple(1.001 * v for v in right(*given))


def wrong_module(module: ModuleType) -> None:
    right = module.Module.propagate_gradient
    module.Module.propagate_gradient = lambda self, gradient: right(self, 1.001 * gradient)


def wrong_variable(module: ModuleType) -> None:
    right = module.relu_grad

    def relu_grad(x: Any, y: Any) -> None:
        right(x, y)
        x.g = 1.001 * x.g

    module.relu_grad = relu_grad


@pytest.mark.parametrize(
    ("name", "break_it"),
    [
        ("notes_000_shallow_net", wrong_backprop),
        ("notes_002_batch_jacobian", wrong_batch),
        ("notes_003_modules", wrong_module),
        ("notes_004_gradients_on_variables", wrong_variable),
    ],
)
def test_a_gradient_off_by_a_thousandth_ends_with_1(name: str, break_it: Any) -> None:
    module = load(name)
    assert module.main() == 0
    break_it(module)
    assert module.main() == 1


def test_layers_off_by_a_thousandth_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HANDGRAD_MNIST", raising=False)
    module = load("notes_001_three_layers")
    module.ROWS, right = 20, module.go_back
    data = module.read_digits()
    x, label = data.x[:20] / 255, np.eye(10)[data.t[:20]]
    trained = module.make_net(64, 3)
    assert module.mini_batches(data, x, label, trained)[0] < EXACT
    module.go_back = lambda *given: {k: 1.001 * v for k, v in right(*given).items()}
    assert module.mini_batches(data, x, label, trained)[0] > 1e-6


# A second opinion.


@pytest.mark.peers
def test_the_batch_is_pytorchs(torch: Any) -> None:
    module = load("notes_002_batch_jacobian")
    X, t, W, wout = (torch.tensor(v) for v in (module.X, module.t, module.W, module.wout))
    W.requires_grad_()
    wout.requires_grad_()
    h = X @ W
    h.retain_grad()
    ((torch.sigmoid(torch.relu(h) @ wout) - t) ** 2).sum().backward()
    for ours, theirs in zip(module.batch(module.X, module.W, module.wout), (h, W, wout), strict=True):
        assert np.abs(ours - theirs.grad.numpy()).max() < EXACT


@pytest.mark.peers
def test_the_tensor_of_one_example_is_pytorchs(torch: Any) -> None:
    module = load("notes_002_batch_jacobian")
    x = torch.tensor(module.X[:1])
    theirs = torch.autograd.functional.jacobian(lambda W: (x @ W)[0], torch.tensor(module.W))
    assert np.array_equal(module.one_example(module.X[:1]), theirs.numpy())


@pytest.mark.peers
def test_the_variables_have_pytorchs_gradients(torch: Any) -> None:
    module = load("notes_004_gradients_on_variables")
    rng = np.random.default_rng(5)
    shapes = ((6, 5), (5, 4), (4,), (4, 3), (3,))
    ours = [module.variable(rng.normal(size=shape)) for shape in shapes]
    t = rng.normal(size=(6, 3))
    theirs = [torch.tensor(np.array(v), requires_grad=True) for v in ours]
    module.forward_and_backward(*ours, t)
    x, w1, b1, w2, b2 = theirs
    torch.nn.functional.mse_loss(torch.relu(x @ w1 + b1) @ w2 + b2, torch.tensor(t)).backward()
    for own, other in zip(ours, theirs, strict=True):
        assert np.abs(own.g - other.grad.numpy()).max() < EXACT


@pytest.mark.peers
def test_the_modules_have_pytorchs_gradients(torch: Any) -> None:
    module = load("notes_003_modules")
    theirs = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Sigmoid(), torch.nn.Linear(4, 3)).double()
    W1, b1, W2, b2 = (v.detach().numpy().copy() for v in theirs.parameters())
    first = module.Module(linear_out_in, W1, b1)
    sigma = module.Module(sigmoid, previous_module=first)
    second = module.Module(linear_out_in, W2, b2, previous_module=sigma)
    rng = np.random.default_rng(6)
    x, upstream = rng.normal(size=(7, 5)), rng.normal(size=(7, 3))
    leaf = torch.tensor(x, requires_grad=True)
    theirs(leaf).backward(torch.tensor(upstream))
    second.forward(sigma.forward(first.forward(x)))
    assert np.abs(second.backward(upstream) - leaf.grad.numpy()).max() < EXACT
    for own, other in zip([*first.gradients, *second.gradients], theirs.parameters(), strict=True):
        assert np.abs(own - other.grad.numpy()).max() < EXACT
