"""What a network takes and gives: its settings, its rows, targets and weights, its arrays by name."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save

from handgrad import (
    BatchNorm,
    BinaryCrossEntropy,
    ConfigurationError,
    DataError,
    Dropout,
    Embedding,
    HalfSquaredError,
    HandgradError,
    Linear,
    MeanSquaredError,
    Network,
    ReLU,
    RunError,
    ShapeError,
    SoftmaxCrossEntropy,
    Standardise,
    Tanh,
    train,
)
from handgrad.layers import Graph

Array = NDArray[Any]

ROWS = 9
X = np.random.default_rng(0).normal(size=(ROWS, 4))


def classifier(**more: Any) -> Network:
    return Network(Linear(4, 5), ReLU(), Linear(5, 3), loss=SoftmaxCrossEntropy(), **more)


# ------------------------------------------------------------------------------------------ how it is made


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Network(), "a network needs a layer\n  fix    for example Network(Linear(64, 10))"),
        (
            lambda: Network(ReLU(), Tanh()),
            "the layers do not determine how long a row is: Network(ReLU(), Tanh())\n"
            "  fix    give inputs=64 (or inputs=(7, 64)), or begin with Linear(64, …)",
        ),
        (
            lambda: Network(Embedding(9, 4), Linear(4, 3)),
            "Embedding(9, 4) does not say how many indices a row has\n"
            "  fix    give inputs=7, or inputs=() for one alone",
        ),
        (
            lambda: Network(Linear(4, 5), Linear(6, 3)),
            "layer 2, Linear(6, 3): axis I is 5 in x(n, 5)[1] but 6 in W(6, 3)[0]\n"
            "  given  z1(n, 5) comes from layer 1, Linear(4, 5)\n  fix    make the two sizes the same",
        ),
    ],
)  # fmt: skip
def test_what_is_no_network_is_refused(make: Any, message: str) -> None:
    """When it is made, not when it first runs."""
    with pytest.raises(HandgradError) as caught:
        make()
    assert str(caught.value) == message


def test_the_seed_and_the_type_decide_the_arrays() -> None:
    """The same seed gives the same weights; float32 are the float64 ones, rounded."""
    one, same, other = classifier(seed=3), classifier(seed=3), classifier(seed=4)
    exact = classifier(seed=3, dtype="float64")
    for name, array in one.parameters.items():
        assert array.tobytes() == same.parameters[name].tobytes()
        np.testing.assert_array_equal(array, exact.parameters[name].astype(np.float32))
        assert (array.dtype, exact.parameters[name].dtype) == (np.float32, np.float64)
    assert (one.parameters["W1"] != other.parameters["W1"]).any()


@pytest.mark.parametrize(
    ("network", "title"),
    [
        (classifier(), "network 4 → 5 → 3 · 43 parameters"),
        (Network(Embedding(9, 4), Linear(4, 2), inputs=()), "network index → 4 → 2 · 46 parameters"),
        (
            Network(Standardise(), BatchNorm(), Dropout(), Linear(4, 4), inputs=4),
            "network 4 → 4 · 28 parameters",
        ),
        (Network(Linear(1000, 1000)), "network 1000 → 1000 · 1,001,000 parameters"),
    ],
)
def test_the_title_has_sizes_and_count(network: Network, title: str) -> None:
    """Widths as they change, and how many numbers are trained."""
    assert network.title.startswith(title)


# ------------------------------------------------------------------------------------------ what it takes


def test_answers_do_not_depend_on_how_many_rows_are_computed_at_a_time() -> None:
    """Any batch size, any number of rows, none at all."""
    network = classifier(dtype="float64")
    whole = network.predict(X)
    assert whole.shape == (ROWS, 3)
    np.testing.assert_allclose(whole.sum(axis=1), 1)
    for size in (1, 4, 100):
        np.testing.assert_allclose(network.predict(X, batch_size=size), whole, rtol=1e-13)
    np.testing.assert_allclose(np.concatenate([network.predict(X[k : k + 1]) for k in range(ROWS)]), whole)
    assert network.predict(X[:0]).shape == (0, 3)
    np.testing.assert_allclose(
        np.log(whole), (z := network.output(X)) - np.log(np.exp(z).sum(1, keepdims=True))
    )


def test_rows_in_lists_are_rows() -> None:
    """What NumPy makes an array of."""
    np.testing.assert_array_equal(classifier().predict(X.tolist()), classifier().predict(X))


INDICES = Network(Embedding(9, 4), Linear(4, 3), inputs=2, loss=HalfSquaredError())
LABELS = Network(Linear(4, 2), loss=BinaryCrossEntropy())
SHARES = Network(Linear(4, 3), loss=SoftmaxCrossEntropy(targets="probabilities"))
VALUES = Network(Linear(4, 1), loss=MeanSquaredError())
OVER_TIME = Network(Linear(4, 3), inputs=(6, 4), loss=SoftmaxCrossEntropy(ignored=-1))
HALF = np.full((ROWS, 3), 1 / 3)


def changed(array: Array, place: Any, value: Any) -> Array:
    array = np.array(array)
    array[place] = value
    return array


FITS = "layer 1 is Linear(4, 5)\n  fix    x(n, 4) would fit"

ROWS_REFUSED: list[tuple[Network, Array, str]] = [
    (
        classifier(), X[:, :3],
        f"the data has rows of (3,), the network takes (4,)\n  given  x(9, 3); {FITS}",
    ),
    (classifier(), X[0], f"the data has rows of (), the network takes (4,)\n  given  x(4,); {FITS}"),
    (classifier(), np.float64(3), f"the data has rows of (), the network takes (4,)\n  given  x(); {FITS}"),
    (classifier(), X.astype(complex), "x holds complex128, not numbers"),
    (classifier(), X.astype(object), "x holds object, not numbers"),
    (
        INDICES, changed(np.zeros((ROWS, 2), int), (5, 1), 9),
        "x[5, 1] is 9, and an index is a whole number from 0 to 8\n  given  layer 1 is Embedding(9, 4)",
    ),
    (
        INDICES, changed(np.zeros((ROWS, 2)), (3, 0), -1),
        "x[3, 0] is -1.0, and an index is a whole number from 0 to 8\n  given  layer 1 is Embedding(9, 4)",
    ),
    (
        INDICES, changed(np.zeros((ROWS, 2)), (3, 0), 1.5),
        "x[3, 0] is 1.5, and an index is a whole number from 0 to 8\n  given  layer 1 is Embedding(9, 4)",
    ),
    (
        INDICES, changed(np.zeros((ROWS, 2)), (3, 0), np.nan),
        "x[3, 0] is nan, and an index is a whole number from 0 to 8\n  given  layer 1 is Embedding(9, 4)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("network", "x", "message"), ROWS_REFUSED)
def test_rows_that_do_not_fit_are_refused(network: Network, x: Array, message: str) -> None:
    """By shape, by type, and indices by their range: NumPy would take -1 for the last row."""
    for use in (network.predict, network.output, network.check_rows):
        with pytest.raises(HandgradError) as caught:
            use(x)
        assert str(caught.value) == message


TARGETS_REFUSED: list[tuple[Network, Array, str]] = [
    (
        classifier(), np.arange(ROWS) % 4,
        "SoftmaxCrossEntropy(): the target of row 3 is class 3, and the network has 3 outputs (0 to 2)",
    ),
    (
        classifier(), changed(np.zeros(ROWS, int), 5, -1),
        "SoftmaxCrossEntropy(): the target of row 5 is class -1, and the network has 3 outputs (0 to 2)",
    ),
    (
        classifier(), np.zeros(ROWS),
        "SoftmaxCrossEntropy(): the targets hold float64, and classes are whole numbers",
    ),
    (
        classifier(), np.zeros((ROWS, 1), int),
        "SoftmaxCrossEntropy(): the targets are (9, 1), and 9 rows need (9,)\n"
        "  fix    class numbers need one whole number a row",
    ),
    (
        OVER_TIME, changed(np.zeros((ROWS, 6), int), (4, 2), -2),
        "SoftmaxCrossEntropy(ignored=-1): the target t[4, 2] is class -2, and the network has 3 outputs (0 to 2)",
    ),
    (
        LABELS, changed(np.zeros((ROWS, 2)), (7, 1), 2),
        "BinaryCrossEntropy(): the target of row 7 is 2.0, and must be from 0 to 1",
    ),
    (
        LABELS, changed(np.zeros((ROWS, 2)), (7, 1), np.nan),
        "BinaryCrossEntropy(): the target of row 7 is nan, and must be from 0 to 1",
    ),
    (LABELS, np.zeros(ROWS), "BinaryCrossEntropy(): the targets are (9,), and 9 rows need (9, 2)"),
    (
        SHARES, changed(HALF, (6, 0), 0.5),
        "SoftmaxCrossEntropy(targets='probabilities'): the target probabilities of row 6 add up to 1.167, not to 1",
    ),
    (
        SHARES, changed(HALF, 6, [1.5, -0.5, 0]),
        "SoftmaxCrossEntropy(targets='probabilities'): the target of row 6 is 1.5, and must be from 0 to 1",
    ),
    (VALUES, np.zeros((ROWS, 2)), "MeanSquaredError(): the targets are (9, 2), and 9 rows need (9, 1)"),
    (VALUES, np.zeros(ROWS, complex), "the targets hold complex128, not numbers"),
]  # fmt: skip


@pytest.mark.parametrize(("network", "t", "message"), TARGETS_REFUSED)
def test_targets_that_do_not_fit_are_refused(network: Network, t: Array, message: str) -> None:
    """By shape, by type, by what the loss may be asked for; the row is named."""
    x = np.zeros((ROWS, *network.row))
    for use in (lambda: network.check_targets(t, ROWS), lambda: network.gradients(x, t)):
        with pytest.raises((ShapeError, DataError)) as caught:
            use()
        assert str(caught.value) == message


def test_targets_that_fit_are_taken() -> None:
    """Ignored class numbers of any value; one value a row for one output; whole numbers as values."""
    assert OVER_TIME.check_targets(np.full((ROWS, 6), -1), ROWS).shape == (ROWS, 6)
    assert VALUES.check_targets(np.arange(ROWS), ROWS).shape == (ROWS, 1)
    assert LABELS.check_targets(np.ones((ROWS, 2), bool), ROWS).shape == (ROWS, 2)
    assert SHARES.check_targets(HALF.astype(np.float32), ROWS).shape == (ROWS, 3)
    assert classifier().check_targets(np.full(ROWS, 2, np.uint8), ROWS).dtype == np.uint8


def test_a_weight_of_a_row_weighs_all_its_answers() -> None:
    """For rows of several answers, one weight each, or one for every answer: (n,) or (n, time)."""
    w = np.random.default_rng(0).uniform(size=ROWS)
    x, t = np.random.default_rng(1).normal(size=(ROWS, 6, 4)), np.zeros((ROWS, 6), int)
    by_row = OVER_TIME.gradients(x, t, w)
    by_answer = OVER_TIME.gradients(x, t, np.repeat(w[:, None], 6, axis=1))
    for name, gradient in by_row.items():
        np.testing.assert_array_equal(gradient, by_answer[name])
    assert (OVER_TIME.gradients(x, t)["W1"] != by_row["W1"]).any()


@pytest.mark.parametrize(
    ("w", "message"),
    [
        (np.ones(4), "sample_weight is (4,), and 9 rows need (9, 6)"),
        (np.ones((6, 9)), "sample_weight is (6, 9), and 9 rows need (9, 6)"),
        (changed(np.ones(ROWS), 4, -1), "sample_weight of row 4 is -1.0, and must be finite, 0 or more"),
        (changed(np.ones(ROWS), 4, np.inf), "sample_weight of row 4 is inf, and must be finite, 0 or more"),
    ],
)
def test_weights_that_do_not_fit_are_refused(w: Array, message: str) -> None:
    """By shape and by value."""
    with pytest.raises((ShapeError, DataError)) as caught:
        OVER_TIME.gradients(np.zeros((ROWS, 6, 4)), np.zeros((ROWS, 6), int), w)
    assert str(caught.value) == message


# ------------------------------------------------------------------------------------------ what it keeps


def test_gradients_change_nothing() -> None:
    """Neither weights nor running statistics, however often they are asked for."""
    network = Network(Linear(4, 5), BatchNorm(), Dropout(0.5), Linear(5, 3), loss=SoftmaxCrossEntropy())
    before = {name: array.copy() for name, array in network.arrays.items()}
    first = network.gradients(X, np.arange(ROWS) % 3, seed=7)
    again = network.gradients(X, np.arange(ROWS) % 3, seed=7)
    other = network.gradients(X, np.arange(ROWS) % 3, seed=8)
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])
    assert (first["W1"] != other["W1"]).any()
    assert all((network.arrays[name] == before[name]).all() for name in before)


@pytest.mark.parametrize("use", ["gradients", "loss_program", "write", "check_targets"])
def test_without_a_loss_it_only_predicts(use: str) -> None:
    """What needs one says so."""
    network = Network(Linear(4, 3))
    arguments = {"gradients": (X, X), "check_targets": (X, ROWS)}.get(use, ())
    with pytest.raises(ConfigurationError) as caught:
        getattr(network, use)(*arguments)
    assert str(caught.value) == "the network has no loss\n  fix    Network(…, loss=SoftmaxCrossEntropy())"
    np.testing.assert_array_equal(network.predict(X), network.output(X))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda network: pickle.loads(pickle.dumps(network))])
def test_a_copy_is_a_network_of_its_own(copied: Callable[[Network], Network]) -> None:
    """It answers as the first does, also after that has answered, and shares no array with it."""
    network = Network(Linear(3, 4), ReLU(), Linear(4, 2), loss=SoftmaxCrossEntropy())
    x = np.random.default_rng(0).normal(size=(5, 3))
    before = network.predict(x)
    other = copied(network)
    assert np.array_equal(other.predict(x), before)
    other.parameters["W1"] = np.zeros((3, 4))
    assert not np.array_equal(other.predict(x), before)
    assert np.array_equal(network.predict(x), before)


def test_arrays_of_a_network_are_changed_and_never_replaced() -> None:
    """However they are set: what is bound to them goes on with the same ones."""
    network = Network(Linear(2, 1), loss=MeanSquaredError())
    x = np.ones((1, 2))
    network.predict(x)
    network.parameters.update(W1=np.full((2, 1), 3.0))
    network.parameters.update({"b1": np.ones(1)})
    assert network.predict(x) == network.output(x) == 7
    for change in (lambda kept: kept.pop("W1"), MutableMapping.clear, MutableMapping.popitem):
        with pytest.raises(ConfigurationError, match=r"^\w+ cannot be taken from its network"):
            change(network.parameters)


@pytest.mark.parametrize("numbers", [7, np.ones(2), np.ones((1, 1)), np.ones((1, 2, 1)), np.ones((3, 1))])
def test_arrays_are_set_to_arrays_of_their_shape_only(numbers: Any) -> None:
    """Also where NumPy would fit one into the other; what was there stays."""
    network = Network(Linear(2, 1))
    before = network.parameters["W1"].copy()
    with pytest.raises(ShapeError, match=r"^W1 is \(2, 1\), and \(.*\) is given$"):
        network.parameters["W1"] = numbers
    with pytest.raises(ConfigurationError, match=r"^the network has no 'w1'\n  fix    did you mean 'W1'"):
        network.parameters["w1"] = numbers
    np.testing.assert_array_equal(network.parameters["W1"], before)


def test_the_graph_has_the_rules_that_are_written_out() -> None:
    """Those of a loss over rows that all count alike, and which layer keeps which arrays."""
    first = Linear(5, 3)
    network = Network(first, ReLU(), loss=MeanSquaredError())
    graph = network.graph()
    assert tuple(graph.nodes) == network.nodes()
    assert [node.rule.name for node in graph.nodes] == ["linear", "relu", "mean_squared_error", "mean"]
    assert graph.names_of(first) == {"W": "W1", "b": "b1"}


@pytest.mark.parametrize(("weighted", "graphs"), [(False, 1), (True, 2)])
def test_the_graph_is_built_once(weighted: bool, graphs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """For all programs, checks and titles of one network; with row weights it is another graph."""
    built: list[Graph] = []

    def counted() -> Graph:
        built.append(Graph())
        return built[-1]

    monkeypatch.setattr("handgrad.network.network.Graph", counted)
    network = Network(Linear(2, 3), ReLU(), Linear(3, 1), loss=MeanSquaredError())
    x = np.ones((4, 2))
    train(network, x, x[:, :1], sample_weight=np.ones(4) if weighted else None, epochs=1)
    assert network.predict(x).shape == (4, 1)
    assert network.title.startswith("network 2")
    assert len(built) == graphs


# ------------------------------------------------------------------------------------------ called, saved, loaded


def test_a_network_is_called_as_a_function() -> None:
    network = classifier()
    np.testing.assert_array_equal(network(X), network.output(X))


@pytest.mark.parametrize("call", [Network.check_batch, Network.gradients, train])
@pytest.mark.parametrize(
    ("network", "t"),
    [
        (classifier(), np.arange(ROWS) % 3),
        (Network(Linear(4, 1), loss=MeanSquaredError()), np.ones(ROWS)),
        (Network(Linear(4, 2), loss=MeanSquaredError()), np.ones((ROWS, 2))),
    ],
)
def test_rows_and_targets_that_are_swapped_are_recognised(call: Any, network: Network, t: Array) -> None:
    with pytest.raises(ShapeError, match=r"^x and t are swapped: .*\n  fix    give the rows first, then"):
        call(network, t, X)


def test_what_does_not_fit_either_way_is_not_called_swapped() -> None:
    with pytest.raises(ShapeError, match=r"^the data has rows of \(5,\), the network takes \(4,\)"):
        train(classifier(), np.ones((ROWS, 5)), np.ones((ROWS, 4)))
    one = Network(Linear(1, 1), loss=MeanSquaredError())  # both could be targets: a column is forgotten
    with pytest.raises(ShapeError, match=r"^the data has rows of \(\), the network takes \(1,\)"):
        train(one, np.ones(ROWS), np.ones((ROWS, 1)))


def test_a_network_is_saved_to_one_file_and_loaded(tmp_path: Path) -> None:
    """Parameters and running statistics to the last bit, and what makes the network; other code is not named."""
    network = Network(
        Linear(4, 3, initialiser="ones"), BatchNorm(), ReLU(), Linear(3, 2), seed=7, dtype="float64",
        loss=SoftmaxCrossEntropy("probabilities", smoothing=0.1),
    )  # fmt: skip
    train(network, X, np.eye(2)[np.arange(ROWS) % 2], epochs=1)
    path = tmp_path / "some" / "network.safetensors"
    network.save(path)
    loaded = Network.load(str(path))
    assert repr(loaded) == repr(network)
    assert (loaded.seed, loaded.dtype, loaded.row) == (7, "float64", (4,))
    assert {n: a.tobytes() for n, a in loaded.arrays.items()} == {
        n: a.tobytes() for n, a in network.arrays.items()
    }
    Network(Linear(2, 1), inputs=2).save(path)
    assert Network.load(path).loss is None


@dataclass(frozen=True, eq=False, repr=False)
class Doubled(ReLU):
    """A layer that is not handgrad's."""


def test_a_layer_of_ones_own_is_given_to_load(tmp_path: Path) -> None:
    path = tmp_path / "own.safetensors"
    Network(Linear(2, 2), Doubled()).save(path)
    message = (
        r"own\.safetensors: the network has a Doubled, which is not handgrad's; it was defined in .*py\n"
    )
    with pytest.raises(RunError, match=message + r"  fix .* Network\.load\(path, own=\[Doubled\]\)"):
        Network.load(path)
    assert isinstance(Network.load(path, own=[Doubled]).body.layers[1], Doubled)


def test_a_file_that_holds_no_network_is_refused(tmp_path: Path) -> None:
    """Before any array is made: its table is read with care, and shapes are compared first."""
    path = tmp_path / "network.safetensors"
    with pytest.raises(RunError, match=r"network\.safetensors: No such file"):
        Network.load(path)
    path.write_bytes(b"no tensors")
    with pytest.raises(RunError, match="damaged, or no safetensors file"):
        Network.load(path)
    network = Network(Linear(2, 1))
    table = {
        "layers": [{"type": "Linear", "inputs": 2, "outputs": 1}],
        "loss": None,
        "row": [2],
        "dtype": "float32",
    }
    arrays, head = dict(network.arrays), {"format": 1, "network": table | {"seed": 0}, "own": {}}
    huge = {"layers": [{"type": "Linear", "inputs": 2, "outputs": 10**12}], "loss": None, "seed": 0}
    for metadata, message in (
        (None, "holds no network of handgrad's, only arrays"),
        ({"handgrad": "{"}, "damaged, or not handgrad's"),
        ({"handgrad": json.dumps(head | {"format": 2})}, "format 2, and this handgrad reads 1"),
        ({"handgrad": json.dumps(head | {"network": table})}, "network: NetworkTable needs seed"),
        (
            {"handgrad": json.dumps(head | {"network": table | huge})},
            r"W1 is float32\(2, 1\) in the file and",
        ),
    ):
        path.write_bytes(save(arrays, metadata))
        with pytest.raises(RunError, match=message):
            Network.load(path)
