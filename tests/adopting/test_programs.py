"""The programs of the checker's corpus are adopted: which of them wholly, and what is then equal."""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from handgrad.adopting import side_by_side
from handgrad.adopting.adoption import Adoption, adopt, recognise
from handgrad.adopting.author import AdoptError, Program
from handgrad.adopting.written import write_adoption
from handgrad.checking import check
from handgrad.checking.interfaces import adapt_script

from ..checking.test_programs import GIVEN, LABELS, PROGRAMS, names_of

LAYERS = {
    "affine_images": "Linear(12, 4)",
    "affine_pair": "Linear(3, 4)",
    "batchnorm_frozen": "BatchNorm()",
    "batchnorm_no_mean_path": "BatchNorm()",
    "batchnorm_staged": "BatchNorm()",
    "deep_course_right": "Linear(3, 4), Tanh(), Linear(4, 1), loss=BinaryCrossEntropy(outputs='sum')",
    "deep_course_twice": "Linear(3, 4), Tanh(), Linear(4, 1), loss=BinaryCrossEntropy(outputs='sum')",
    "dense_course": "Linear(3, 4), Sigmoid()",
    "hand_forward_backward": "Linear(3, 5), Tanh(), Linear(5, 4), loss=SoftmaxCrossEntropy(targets='probabilities')",
    "layer_batchnorm_class": "BatchNorm()",
    "layer_batchnorm_var_power": "BatchNorm(epsilon=1e-08)",
    "layer_dense_bias_mean": "Linear(3, 4)",
    "layer_dense_column": "Linear(3, 4)",
    "layer_dense_self": "Linear(3, 4)",
    "layer_dense_updates_first": "Linear(3, 4)",
    "layer_activation_strategy": "Tanh()",
    "layer_elu_class": "ELU(alpha=1.3)",
    "layer_gelu_right": "GELU(form='tanh')",
    "layer_grads_dict": "Linear(3, 4)",
    "layer_grads_list": "Linear(3, 4, bias=False)",
    "layer_relu_class": "ReLU()",
    "layer_residual": "Residual(Linear(4, 4, bias=False), ReLU(), Linear(4, 4, bias=False))",
    "layer_sigmoid_at_input": "Sigmoid()",
    "layer_sigmoid_right": "Sigmoid()",
    "layer_softmax_class": "Softmax()",
    "layer_softplus_wrong": "Softplus()",
    "layer_square_weights": "Linear(4, 4, bias=False)",
    "layer_swish_product_rule": "SiLU()",
    "layer_tanh_twice": "Tanh()",
    "layernorm_cache": "LayerNorm()",
    "layernorm_wrong_axis": "LayerNorm(epsilon=1e-06)",
    "leaky_cache": "LeakyReLU(slope=0.3)",
    "loss_deep_list_l2": "Linear(3, 5, bias=False), Tanh(), Linear(5, 6, bias=False), Tanh(), Linear(6, 4, bias=False), "
    "loss=SoftmaxCrossEntropy(l2=0.07)",
    "loss_deep_nested": "Linear(3, 6), ReLU(), Linear(6, 5), ReLU(), Linear(5, 2), loss=HalfSquaredError(reduction='mean')",
    "loss_linear_regression": "Linear(3, 1, bias=False), loss=HalfSquaredError(reduction='mean')",
    "loss_linear_regression_half": "Linear(3, 1), loss=MeanSquaredError()",
    "loss_logistic_averaged": "Linear(3, 1), loss=BinaryCrossEntropy(outputs='sum')",
    "loss_logistic_right": "Linear(3, 1), loss=BinaryCrossEntropy(outputs='sum')",
    "loss_softmax_naive_divide": "Linear(3, 4, bias=False), loss=SoftmaxCrossEntropy(l2=0.7)",
    "loss_softmax_vectorised": "Linear(3, 4, bias=False), loss=SoftmaxCrossEntropy(l2=1.4)",
    "loss_two_layer_dict": "Linear(3, 5), Tanh(), Linear(5, 2), loss=HalfSquaredError(reduction='mean')",
    "net_container_skips_activation": "Linear(3, 5), Tanh(), Linear(5, 4), Tanh(), Linear(4, 2), Tanh()",
    "net_layers_container": "Linear(4, 6), ReLU(), Linear(6, 3)",
    "net_nabla_lists": "Linear(3, 5), Sigmoid(), Linear(5, 4), Sigmoid(), Linear(4, 2), Sigmoid(), loss=HalfSquaredError()",
    "net_nabla_off_by_one": "Linear(3, 3), Sigmoid(), Linear(3, 3), Sigmoid(), Linear(3, 3), Sigmoid(), "
    "loss=HalfSquaredError()",
    "net_two_layer_self": "Linear(3, 5), ReLU(), Linear(5, 4), loss=SoftmaxCrossEntropy(l2=0.6)",
    "notes_modules": "Linear(3, 5), Tanh(), Linear(5, 2)",
    "notes_outer_product": "Linear(7, 3), Sigmoid(), loss=HalfSquaredError()",
    "notes_shallow_svd": "Linear(3, 5), ReLU(), Linear(5, 2), loss=HalfSquaredError()",
    "notes_vector_derivatives": "Linear(2, 3, bias=False), ReLU(), Linear(3, 1, bias=False), Sigmoid()",
    "relu_cache_inplace": "ReLU()",
    "script_line_fit": "Linear(1, 1), loss=MeanSquaredError()",
    "script_logistic_columns": "Linear(4, 1), loss=BinaryCrossEntropy(outputs='sum')",
    "script_relu_regression": "Linear(7, 5, bias=False), ReLU(), Linear(5, 3, bias=False), loss=HalfSquaredError()",
    "script_softmax_spiral": "Linear(2, 12), ReLU(), Linear(12, 3), loss=SoftmaxCrossEntropy(l2=0.6)",
    "script_xor_loop": "Linear(3, 4, bias=False), Sigmoid(), Linear(4, 1, bias=False), Sigmoid(), loss=HalfSquaredError()",
    "softmax_diagonal_only": "Softmax()",
    "softmax_jacobian_cache": "Softmax()",
    "softmax_wrong_axis_cache": "Softmax()",
    "train_bias_forgotten_slope": "Linear(4, 5, bias=False), Sigmoid(), Linear(5, 3, bias=False), Sigmoid(), "
    "loss=HalfSquaredError()",
    "train_minibatch_sum_right": "Linear(4, 3), loss=SoftmaxCrossEntropy(targets='probabilities')",
    "train_momentum": "Linear(3, 5, bias=False), ReLU(), Linear(5, 2, bias=False), loss=HalfSquaredError(reduction='mean')",
    "train_perceptron_loop_indent": "Linear(3, 2), Sigmoid(), loss=HalfSquaredError()",
    "train_right_sgd": "Linear(3, 5), Tanh(), Linear(5, 1), loss=MeanSquaredError()",
    "train_stochastic_functions": "Linear(3, 4), Tanh(), Linear(4, 1), loss=HalfSquaredError()",
    "train_updates_too_early": "Linear(3, 5, bias=False), Tanh(), Linear(5, 2, bias=False), loss=HalfSquaredError()",
    "train_weight_decay_twice": "Linear(3, 2, bias=False), loss=HalfSquaredError(l2=0.6, reduction='mean')",
    "train_xor_class": "Linear(3, 4, bias=False), Sigmoid(), Linear(4, 1, bias=False), Sigmoid(), loss=HalfSquaredError()",
}
"""The networks that the programs are, by eye."""

OTHERS = {
    "conv_loops", "embedding_cache", "hand_gates", "layer_attention_scale", "layer_gru_class", "layer_mse_class",
    "layer_maxpool_class",
    "layer_prelu", "loss_autoencoder_tied", "loss_huber", "loss_matrix_factorisation", "loss_svm_vectorised_count",
    "lstm_step_right", "rnn_whole_truncated",
}  # fmt: skip
"""Some that are no chain of handgrad's layers with one of its losses."""

TRAINED = (
    "deep_course_right", "loss_deep_nested", "loss_softmax_vectorised", "net_layers_container", "net_nabla_lists",
    "notes_modules", "notes_outer_product", "notes_shallow_svd",
)  # fmt: skip
"""Of every shape some, right and wrong."""

UPDATES = {  # learning rate, momentum and factor of the loss, of those that update themselves
    "script_xor_loop": (1.0, 0.0, 1.0),
    "script_logistic_columns": (0.5, 0.0, 1.0),
    "script_relu_regression": (0.002, 0.0, 2.0),
    "train_minibatch_sum_right": (0.1, 0.0, 1.0),
    "train_momentum": (0.02, 0.9, 2.0),
    "train_right_sgd": (0.05, 0.0, 1.0),
    "train_xor_class": (2.0, 0.0, 2.0),
}


def program(name: str) -> Program:
    """Return a program of the corpus as its author gives it."""
    path = PROGRAMS / f"{name}.py"
    if LABELS[name].shape == "script":
        pair = adapt_script(path)
        return Program(pair.forward, pair.backward, pair.inputs, path)
    names: dict[str, Any] = names_of(path)
    exec(LABELS[name].call, names)
    return Program(*eval(GIVEN[name], names))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time a turn of a few milliseconds."""
    monkeypatch.setattr(side_by_side, "TURNS", 1)
    monkeypatch.setattr(side_by_side, "SECONDS", 0.003)


def adopted(name: str) -> Adoption:
    """Adopt a program."""
    return adopt(recognise(program(name)))


@pytest.mark.parametrize("name", LAYERS)
def test_a_network_is_recognised_by_its_values(name):
    found = recognise(program(name)).found
    shown = ", ".join(map(repr, found.layers)) + (f", loss={found.loss.loss!r}" if found.loss else "")
    assert shown == LAYERS[name]


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_what_is_no_chain_of_layers_is_not_claimed(name):
    with pytest.raises(AdoptError) as error:
        adopted(name)
    assert error.value.fix


@pytest.mark.parametrize("name", TRAINED)
def test_losses_are_equal_to_rounding_where_the_gradient_is_right_and_part_where_it_is_wrong(name):
    adoption = adopted(name)
    assert adoption.exact
    assert adoption.report.verdict == ("wrong" if LABELS[name].codes else "right")
    assert adoption.steps.author[0] == pytest.approx(adoption.steps.handgrad[0], rel=1e-12)
    assert adoption.steps.equal == (not LABELS[name].codes)
    if not LABELS[name].codes:
        assert len(set(adoption.steps.author)) == 6
    assert adoption.steps.author_seconds > 0 < adoption.steps.handgrad_seconds


@pytest.mark.parametrize(("name", "update"), UPDATES.items())
def test_the_authors_own_update_is_recognised(name, update):
    adoption = adopted(name)
    optimiser = adoption.steps.optimiser
    assert (optimiser.learning_rate, optimiser.momentum, adoption.factor) == pytest.approx(update)
    assert adoption.steps.trained
    assert adoption.steps.equal


def test_parameters_have_the_authors_names_and_numbers():
    given = program("train_right_sgd")
    adoption = adopt(recognise(given))
    assert adoption.sources == {"W1": "w_hidden", "b1": "b_hidden", "W2": "w_out", "b2": "b_out"}
    assert np.array_equal(adoption.network.parameters["W1"], given.forward.w_hidden)


def test_a_bias_may_be_the_last_row_of_its_weights():
    def loss(W, x, t):
        ones = np.hstack([x, np.ones((len(x), 1))])
        difference = np.tanh(ones @ W) - t
        return 0.5 * np.sum(difference**2), ones.T @ (difference * (1 - np.tanh(ones @ W) ** 2))

    rng = np.random.default_rng(0)
    W, x, t = rng.normal(size=(4, 2)), rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    adoption = adopt(recognise(Program(loss, None, {"W": W, "x": x, "t": t})))
    assert repr(adoption.network) == "Network(Linear(3, 2), Tanh(), loss=HalfSquaredError())"
    assert np.array_equal(adoption.network.parameters["b1"], W[3])
    assert adoption.steps.equal


def test_a_tiny_number_in_a_logarithm_is_told():
    def loss(W, b, x, t):
        p = 1 / (1 + np.exp(-(x @ W + b)))
        dz = (p - t) / len(x)
        return -np.mean(t * np.log(p + 1e-8) + (1 - t) * np.log(1 - p + 1e-8)), x.T @ dz, dz.sum(axis=0)

    rng = np.random.default_rng(0)
    given = {
        "W": rng.normal(size=(3, 1)),
        "b": np.zeros(1),
        "x": rng.normal(size=(6, 3)),
        "t": rng.integers(0, 2, (6, 1)),
    }
    found = recognise(Program(loss, None, given)).found
    assert found.loss is not None
    assert (repr(found.loss.loss), found.loss.factor, found.loss.exact) == (
        "BinaryCrossEntropy(outputs='sum')",
        1.0,
        False,
    )


def test_a_network_that_looks_like_one_and_has_other_gradients_is_not_claimed():
    """The second matrix is the first one transposed: handgrad would train two."""

    def loss(W, x):
        h = np.tanh(x @ W)
        difference = h @ W.T - x
        dh = difference @ W * (1 - h**2)
        return 0.5 * np.sum(difference**2), difference.T @ h + x.T @ dh

    rng = np.random.default_rng(0)
    with pytest.raises(AdoptError, match="one array of the author's is two of the network's"):
        adopt(recognise(Program(loss, None, {"W": rng.normal(size=(4, 3)), "x": rng.normal(size=(5, 4))})))


class _Wiggling:
    """Its activations are none of handgrad's, and its output layer computes only the negative of what it is."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.V, self.U = rng.normal(size=(3, 5)), rng.normal(size=(5, 2))

    def forward(self, x):
        self.z = x @ self.V
        self.h = self.z * np.sin(self.z)
        self.y = 1 / (1 + np.exp(-self.h @ self.U))
        return self.y / (1 + np.abs(self.y))

    def loss(self, x, t):
        return np.sum((self.forward(x) - t) ** 2)

    def train(self, x, t, lr=0.05):
        dy = 2 * (self.forward(x) - t) / (1 + np.abs(self.y)) ** 2
        do = dy * self.y * (1 - self.y)
        dz = do @ self.U.T * (np.sin(self.z) + self.z * np.cos(self.z))
        self.U -= lr * self.h.T @ do
        self.V -= lr * x.T @ dz


def test_an_activation_that_is_not_handgrads_becomes_a_rule_of_its_own(tmp_path):
    rng = np.random.default_rng(1)
    adoption = adopt(
        recognise(Program(_Wiggling(), None, {"x": rng.normal(size=(7, 3)), "t": rng.uniform(size=(7, 2))}))
    )
    layers = [type(layer).__name__ for layer in adoption.network.body.layers]
    assert layers == ["Linear", "Activation", "Linear", "Sigmoid", "Activation2"]
    assert adoption.report.verdict == "right"
    assert adoption.steps.equal
    file, *_ = write_adoption(adoption, tmp_path / "wiggling")
    names: dict[str, Any] = {"__file__": str(file), "__name__": "network"}
    linecache.checkcache()
    exec(compile(file.read_text(), file, "exec"), names)
    written = names["make_network"]()
    assert check(names["activation"]).verdict == check(names["activation_2"]).verdict == "right"
    assert np.array_equal(written.output(adoption.x), adoption.network.output(adoption.x))


def _sigmoid(z):
    return 1 / (1 + np.exp(-z))


class _Twice:
    """Its derivative is taken of what is a sigmoid already; its backward updates, and its forward comes before."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.V, self.U = rng.normal(size=(3, 4)), rng.normal(size=(4, 1))

    def feedforward(self, X):
        self.hidden = _sigmoid(X @ self.V)
        self.output = _sigmoid(self.hidden @ self.U)
        return self.output

    def backprop(self, X, y):
        dz = 2 * (y - self.output) * _sigmoid(self.output) * (1 - _sigmoid(self.output))
        dU = self.hidden.T @ dz
        dV = X.T @ (dz @ self.U.T * _sigmoid(self.hidden) * (1 - _sigmoid(self.hidden)))
        self.V += 0.5 * dV
        self.U += 0.5 * dU


def test_a_backward_that_updates_is_timed_whatever_its_lines_are_read_as():
    """The lines of a method are looked for in the file where it is, and a timed one's are elsewhere."""
    rng = np.random.default_rng(0)
    inputs = {"X": rng.normal(size=(5, 3)), "y": np.array([[0.0], [1], [1], [0], [1]])}
    assert adopt(recognise(Program(_Twice(), None, inputs))).steps.author_seconds > 0


class _Activation:
    __slots__ = ()

    def forward(self, x):
        return np.tanh(x)

    def backward(self, grad_output, x):
        return grad_output * (1 - np.tanh(x) ** 2)


@dataclass(frozen=True)
class _Frozen(_Activation):
    scale: float = 2.0


@pytest.mark.parametrize("kind", [_Activation, _Frozen])
def test_an_object_whose_attributes_cannot_be_set_is_timed(kind):
    inputs = {"x": np.random.default_rng(0).normal(size=(5, 3))}
    adoption = adopt(recognise(Program(kind(), None, inputs)))
    assert repr(adoption.network.body.layers[0]) == "Tanh()"
    assert adoption.steps.author_seconds > 0


def _loss(w, x, t):
    difference = x @ w - t
    return difference @ difference.T / 2


def _loss_backward(w, x, t):
    return x.T @ (x @ w - t)


def test_a_loss_may_be_a_matrix_of_one_entry():
    """It is what a network returns that is called with one row at a time."""
    rng = np.random.default_rng(0)
    inputs = {"w": rng.normal(size=(3, 2)), "x": rng.normal(size=(1, 3)), "t": rng.normal(size=(1, 2))}
    adoption = adopt(recognise(Program(_loss, _loss_backward, inputs)))
    assert adoption.own_loss
    assert repr(adoption.network.loss) == "HalfSquaredError()"
