"""Networks of neurons: their backward leaves a delta in each, of which only the update after it makes gradients."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.checking.test_published_programs import checked

DICTIONARIES = """
import math
import random

random.seed(1)


def make(n_in, n_hidden, n_out):
    return [
        [{"weights": [random.uniform(-1, 1) for _ in range(n_in + 1)]} for _ in range(n_hidden)],
        [{"weights": [random.uniform(-1, 1) for _ in range(n_hidden + 1)]} for _ in range(n_out)],
    ]


def forward(network, row):
    values = row
    for layer in network:
        found = []
        for neuron in layer:
            z = neuron["weights"][-1] + sum(w * v for w, v in zip(neuron["weights"][:-1], values))
            neuron["output"] = 1 / (1 + math.exp(-z))
            found.append(neuron["output"])
        values = found
    return values


def backward_error(network, expected):
    for i in reversed(range(len(network))):
        for j, neuron in enumerate(network[i]):
            if i == len(network) - 1:
                error = neuron["output"] - expected[j]
            else:
                error = 0.0
                for after in network[i + 1]:
                    error += after["weights"][j] * after["delta"]
            neuron["delta"] = error * neuron["output"] * (1 - neuron["output"])


def update_weights(network, row, rate):
    for i, layer in enumerate(network):
        values = row if i == 0 else [neuron["output"] for neuron in network[i - 1]]
        for neuron in layer:
            for j in range(len(values)):
                neuron["weights"][j] -= rate * neuron["delta"] * values[j]
            neuron["weights"][-1] -= rate * neuron["delta"]


network = make(2, 3, 2)
for row, expected in (([0.5, -1.2], [0, 1]), ([1.5, 0.3], [1, 0])):
    forward(network, row)
    backward_error(network, expected)
    update_weights(network, row, 0.5)
"""

OBJECTS = """
import math
import random

random.seed(0)


class Neuron:
    def __init__(self, n):
        self.weights = [random.uniform(-1, 1) for _ in range(n)]
        self.bias = random.uniform(-1, 1)

    def activate(self, values):
        self.values = values
        self.output = math.tanh(sum(w * v for w, v in zip(self.weights, values)) + self.bias)
        return self.output


class Network:
    def __init__(self, sizes):
        self.layers = [[Neuron(n) for _ in range(m)] for n, m in zip(sizes, sizes[1:])]

    def forward(self, x):
        for layer in self.layers:
            x = [neuron.activate(x) for neuron in layer]
        return x

    def backward(self, target):
        for i in reversed(range(len(self.layers))):
            for j, neuron in enumerate(self.layers[i]):
                if i == len(self.layers) - 1:
                    error = neuron.output - target[j]
                else:
                    error = sum(n.weights[j] * n.delta for n in self.layers[i + 1])
                neuron.delta = error * (1 - neuron.output**2)

    def update(self, lr):
        for neuron in (neuron for layer in self.layers for neuron in layer):
            for j in range(len(neuron.weights)):
                neuron.weights[j] -= lr * neuron.delta * neuron.values[j]
            neuron.bias -= lr * neuron.delta


net = Network([2, 3, 1])
for x, target in (([0, 0], [0]), ([0, 1], [1]), ([1, 0], [1]), ([1, 1], [0])):
    net.forward(x)
    net.backward(target)
    net.update(0.5)
"""

MISTAKES = [
    (DICTIONARIES, ' * neuron["output"] * (1 - neuron["output"])', ' * neuron["output"]', "missing-local-derivative"),
    (DICTIONARIES, 'after["weights"][j]', 'after["weights"][0]', "wrong-evaluation-point"),
    (DICTIONARIES, 'error += after["', 'error = after["', "missing-term"),
    (DICTIONARIES, "in network[i - 1]]", "in network[i]]", "wrong-evaluation-point"),
    (OBJECTS, "n.weights[j] * n.delta", "n.weights[j]", "missing-local-derivative"),
    (OBJECTS, "neuron.output - target[j]", "target[j] - neuron.output", "wrong-sign"),
    (OBJECTS, "(1 - neuron.output**2)", "(1 - neuron.output)", "wrong-local-derivative"),
]  # fmt: skip


def test_deltas_in_dictionaries_are_judged_by_the_step_after_them(tmp_path: Path) -> None:
    done = checked(tmp_path, DICTIONARIES, "--verbose")
    assert done.exit_code == 0, done.output
    assert "forward: right" in done.output
    assert "dnetwork[0][2].weights is (before - after) / learning rate" in done.output
    assert "taken to be 0.5 * sum((output - target)**2)" in done.output  # of one row: no mean over rows


def test_deltas_in_objects_are_judged_by_the_step_after_them(tmp_path: Path) -> None:
    """The first row of XOR has zeros alone, and moves none of the first weights: they are judged, and what that proves."""
    done = checked(tmp_path, OBJECTS)
    assert done.exit_code == 0, done.output
    assert "right dlayers[0][0].weights (2,)" in done.output
    assert (
        "dlayers[0][0].weights is zero everywhere: a backward that cuts its path would pass too"
        in done.output
    )


@pytest.mark.parametrize(("text", "old", "new", "code"), MISTAKES)
def test_a_mistake_between_neurons_is_named_and_mended(
    tmp_path: Path, text: str, old: str, new: str, code: str
) -> None:
    assert text.count(old) == 1
    done = checked(tmp_path, text.replace(old, new), "--fix", "--yes")
    assert done.exit_code == 0, done.output
    assert f"{code} in d" in done.output
    again = checked(tmp_path, (tmp_path / "program.py").read_text())
    assert again.exit_code == 0, again.output


def test_a_step_that_scales_each_neuron_otherwise_is_of_no_weighted_loss(tmp_path: Path) -> None:
    """Each neuron's gradient was a multiple of the right one, and nothing was judged: the multiples differ."""
    done = checked(tmp_path, DICTIONARIES.replace(' * (1 - neuron["output"])', ' * (1 + neuron["output"])'))
    assert done.exit_code == 1, done.output
    assert "forward: wrong" in done.output


def test_an_update_is_sought_only_where_a_backward_leaves_no_gradient(tmp_path: Path) -> None:
    """Two updates are no answer, and one that takes something else first is of something else."""
    for extra in ("update_biases(network, row, rate)", "step(rate, network)"):
        text = DICTIONARIES.replace("\n\nnetwork = make", f"\n\ndef {extra}:\n    pass\n\n\nnetwork = make")
        done = checked(tmp_path, text)
        assert ("forward: right" in done.output) is extra.startswith("step"), done.output


def test_an_update_that_is_more_than_a_step_is_left_out(tmp_path: Path) -> None:
    """Weight decay is no mistake of the backward."""
    text = DICTIONARIES.replace("(network, row, rate):", "(network, row, rate, decay=0.01):")
    text = text.replace(
        'neuron["delta"] * values[j]', '(neuron["delta"] * values[j] + decay * neuron["weights"][j])'
    )
    done = checked(tmp_path, text)
    assert "forward: wrong" not in done.output
    assert (done.exit_code, "no arguments were found that forward takes" in done.output) == (2, True), (
        done.output
    )


def test_what_an_update_has_a_default_for_is_left_to_it(tmp_path: Path) -> None:
    text = DICTIONARIES.replace("(network, row, rate):", "(network, row, rate, decay=0.0, bound=None):")
    assert text != DICTIONARIES
    done = checked(tmp_path, text)
    assert done.exit_code == 0, done.output
    assert "forward: right" in done.output


def test_a_learning_rate_of_the_class_is_one(tmp_path: Path) -> None:
    text = """
class Unit:
    LEARNING_RATE = 0.25

    def __init__(self):
        self.w = [0.3, -0.2]

    def forward(self, x):
        self.x = x
        return sum(w * v for w, v in zip(self.w, x))

    def train(self, x, target):
        error = self.forward(x) - target
        for k, v in enumerate(x):
            self.w[k] -= self.LEARNING_RATE * error * v


Unit().train([0.5, -1.5], 0.7)
"""
    done = checked(tmp_path, text)
    assert done.exit_code == 0, done.output
    assert "taken to be 0.5 * sum((output - target)**2)" in done.output


STEPS = """
import numpy as np

learning_rate = 0.05


class Net:
    lr = 0.05

    def __init__(self):
        self.W = np.random.default_rng(0).normal(size=(3, 2))

    def forward(self, x):
        self.x = x
        self.out = x @ self.W
        return self.out

    def loss(self, y):
        return np.mean((self.out - y) ** 2)

    def backward(self, y):
        self.dW = learning_rate * self.x.T @ (y - self.out) * 2 / y.size
        self.W += self.dW


rng = np.random.default_rng(1)
x, y = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
net = Net()
for _ in range(10):
    net.forward(x)
    net.backward(y)
"""


@pytest.mark.parametrize("of_class", [False, True])
def test_a_step_by_a_gradients_name_is_a_step(tmp_path: Path, of_class: bool) -> None:
    """Its opposite was taken for the gradient; and a learning rate of the module, or of a class, was no learning rate."""
    of_module = STEPS.replace("    lr = 0.05\n\n", "")
    text = STEPS.replace("learning_rate * ", "self.lr * ").replace("learning_rate = 0.05\n", "")
    text = text if of_class else of_module
    done = checked(tmp_path, text)
    assert done.exit_code == 0, done.output
    assert "dW is (before - after) / learning rate" in done.output
    wrong = checked(tmp_path, text.replace("(y - self.out)", "(self.out - y)"))
    assert wrong.exit_code == 1
    assert "wrong-sign in dW" in wrong.output


def test_what_adds_an_error_is_no_loss(tmp_path: Path) -> None:
    text = OBJECTS.replace(
        "    def update(self, lr):",
        "    def addError(self, err):\n        self.total += err\n\n    def update(self, lr):",
    )
    done = checked(tmp_path, text)
    assert done.exit_code == 0, done.output
    assert "right dlayers[0][0].weights (2,)" in done.output


def test_a_training_may_return_its_loss(tmp_path: Path) -> None:
    """One number, it was taken for the gradient of the rate, another one."""
    text = """
class Unit:
    def __init__(self):
        self.w = [0.3, -0.2]

    def predict(self, x):
        return sum(w * v for w, v in zip(self.w, x))

    def learn(self, x, desired, rate):
        error = self.predict(x) - desired
        for k, v in enumerate(x):
            self.w[k] -= rate * error * v
        return 0.5 * error**2


Unit().learn([0.5, -1.5], 0.7, 0.1)
"""
    done = checked(tmp_path, text)
    assert done.exit_code == 0, done.output
    assert "drate" not in done.output


def test_the_delta_of_a_neuron_is_the_gradient_of_no_argument(tmp_path: Path) -> None:
    """Of the same shape as its inputs, it was taken for theirs, without the product with the weights."""
    text = """
import numpy as np


class Layer:
    def __init__(self):
        self.W = np.random.default_rng(0).normal(size=(3, 3))

    def forward(self, x):
        self.x = x
        self.out = np.tanh(x @ self.W)
        return self.out

    def backward(self, error):
        self.delta = error * (1 - self.out**2)
        self.dW = self.x.T @ self.delta


layer = Layer()
x = np.random.default_rng(1).normal(size=(4, 3))
layer.forward(x)
layer.backward(np.ones((4, 3)))
"""
    done = checked(tmp_path, text)
    assert done.exit_code == 0, done.output
    assert "right dW (3, 3)" in done.output
    assert "right dx" not in done.output
