"""What a hurried user types: each slip is one error that says where, what was given, and what to give."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pytest

import handgrad
from handgrad import Adam, ConfigurationError, Dropout, HandgradError, Layer, Linear, Optimiser, data, train
from handgrad.arguments import ELSEWHERE, Count, judged
from handgrad.layers import KINDS, LAYERS, OPTIMISERS
from handgrad.rules import linear, relu
from handgrad.runs import load_run
from handgrad.specs import from_table
from handgrad.testing import assert_right
from handgrad.training import measure_engines

SLIPS: dict[str, tuple[str, str]] = {
    "train(n, x)": ("train: t is not given", "train(network, x, t, …)"),
    "train(n, t, x)": (
        "x and t are swapped: x has rows of (), which are targets, and t of (64,), which are rows",
        "give the rows first, then the targets",
    ),
    "train(x, t, n)": ("train: network is an array (100, 64)", "give a Network"),
    "train(Network, x, t)": ("train: network is the class Network", "make one: Network(…)"),
    "train(n, x, t, 10)": (
        "train: 10 is one argument too many",
        "by name it takes sample_weight, rows, validation, epochs, batch_size, micro_batch, optimiser, schedule, patience, seed, shuffle, engine, devices, progress, after_epoch, after_batch, checkpoints",
    ),
    "train(n, x, t, x=x)": ("train: x is given twice", ""),
    "train(n, x, t, epoch=3)": ("train: there is no argument 'epoch'", "did you mean 'epochs'?"),
    "train(n, x, t, optimizer=Adam())": (
        "train: there is no argument 'optimizer'",
        "did you mean 'optimiser'?",
    ),
    'train(n, x, t, optimiser="adam")': ("train: optimiser is 'adam'", "did you mean Adam()?"),
    "train(n, x, t, optimiser=Adam)": ("train: optimiser is the class Adam", "make one: Adam()"),
    "train(n, x, t, optimiser=0.1)": (
        "train: optimiser is 0.1",
        f"choose from {', '.join(f'{name}()' for name in OPTIMISERS)}",
    ),
    'train(n, x, t, schedule="Cosine")': ("train: schedule is 'Cosine'", "did you mean Cosine()?"),
    "train(n, x, t, schedule=Cosine)": ("train: schedule is the class Cosine", "make one: Cosine()"),
    'train(n, x, t, checkpoints="folder")': ("train: checkpoints is 'folder'", "choose from Checkpoints(…)"),
    "train(n, x, t, epochs=2.5)": ("train: epochs is 2.5", "give a whole number, 1 or more"),
    "train(n, x, t, epochs=True)": ("train: epochs is True", "give a whole number, 1 or more"),
    'train(n, x, t, batch_size="32")': ("train: batch_size is '32'", "give a whole number, 1 or more"),
    "train(n, x, t, batch_size=0)": ("train: batch_size is 0", "give a whole number, 1 or more"),
    "train(n, x, t, devices=0)": ("train: devices is 0", "give a whole number, 1 or more"),
    "train(n, x, t, devices=2)": (
        "training.devices: devices are of the jax engine, and the engine is compiled",
        "choose the engine jax, or leave devices out",
    ),
    "train(n, x, t, rows=np.array([0, 100]))": (
        "train: rows are no numbers of rows",
        "give whole numbers from 0, as `handgrad.data.split` returns them",
    ),
    "train(n, x, t, patience=0)": ("train: patience is 0", "give a whole number, 1 or more"),
    "train(n, x, t, patience=3)": ("train: patience needs validation rows", "give validation=0.1"),
    "train(n, x, t, seed=None)": ("train: seed is None", "give a whole number, 0 or more"),
    "train(n, x, t, seed=2**63)": ("train: seed is 9223372036854775808", "give a whole number, 0 or more"),
    "train(n, x, t, validation=1.5)": (
        "train: validation is 1.5: 0 of 100 rows",
        "give a share between 0 and 1 that leaves rows on both sides, or arrays (x, t)",
    ),
    'train(n, x, t, validation="0.1")': ("train: validation is '0.1'", "give a number, a list or an array"),
    "train(n, x, t, validation=x)": (
        "train: validation are no numbers of rows",
        "give whole numbers from 0, as `handgrad.data.split` returns them",
    ),
    "train(n, x, t, validation=(x,))": (
        "train: validation holds 1 arrays",
        "give two, (x, t), or a share of the rows",
    ),
    "train(n, x, t, engine=None)": ("train: engine is None", "give text"),
    'train(n, x, t, engine="compild")': ("train: no engine is called 'compild'", "did you mean 'compiled'?"),
    "train(n, x, t, after_epoch=3)": ("train: after_epoch is 3", "give a function"),
    'train(n, x, t, shuffle="yes")': ("train: shuffle is 'yes'", "give True or False"),
    "train(n, d, t)": (
        "x is a Dataset, and an array is needed",
        "a sparse matrix becomes one by .toarray(), a generator by list(…)",
    ),
    "Network([Linear(64, 10), ReLU()])": (
        "Network: layer 1 is [Linear(64, 10), ReLU()]",
        "give them one by one: *[…]",
    ),
    "Network(layers=[Linear(64, 10)])": (
        "Network: there is no argument 'layers'",
        "choose from dtype, inputs, loss, seed",
    ),
    "Network(Linear, ReLU)": ("Network: layer 1 is the class Linear", "make one: Linear(…)"),
    "Network(Linear(64, 10), ReLU)": ("Network: layer 2 is the class ReLU", "make one: ReLU()"),
    'Network(Linear(64, 10), "relu")': ("Network: layer 2 is 'relu'", "did you mean ReLU()?"),
    "Network(64, 32, 10)": ("Network: layer 1 is 64", "give a Layer"),
    "Network(Linear(64, 10), seed=1.5)": ("Network: seed is 1.5", "give a whole number, 0 or more"),
    "Network(Linear(64, 10), seed=-1)": ("Network: seed is -1", "give a whole number, 0 or more"),
    "BinaryCrossEntropy(positive_weight=[1, -1])": (
        "BinaryCrossEntropy: positive_weight is [1, -1]",
        "give a number above 0, or a list, each a number above 0",
    ),
    "Network(ReLU(), inputs=-2)": (
        "Network: inputs is -2",
        "give a whole number, 1 or more, or a list, each a whole number, 1 or more",
    ),
    'Network(ReLU(), inputs="64")': (
        "Network: inputs is '64'",
        "give a whole number, 1 or more, or a list, each a whole number, 1 or more",
    ),
    "Network(ReLU(), inputs=(7, 2.5))": (
        "Network: inputs is (7, 2.5)",
        "give a whole number, 1 or more, or a list, each a whole number, 1 or more",
    ),
    "Network(Linear(64, 10), loss=MeanSquaredError)": (
        "Network: loss is the class MeanSquaredError",
        "make one: MeanSquaredError()",
    ),
    'Network(Linear(64, 10), loss="huber")': ("Network: loss is 'huber'", "did you mean Huber()?"),
    'Network(Linear(64, 10), loss="mse")': ("Network: loss is 'mse'", "did you mean MeanSquaredError()?"),
    "Network(Linear(64, 10), loss=ReLU())": (
        "Network: loss is ReLU()",
        "choose from BinaryCrossEntropy(), HalfSquaredError(), Huber(), MeanSquaredError(), Poisson(), SoftmaxCrossEntropy()",
    ),
    "Network(Linear(64, 10), dtype=np.float16)": (
        "Network: dtype is the class float16",
        "choose from float32, float64",
    ),
    'Network(Linear(64, 10, initialiser="he"))': (
        "layer 1, Linear(64, 10, initialiser='he'): no initialiser is called 'he'",
        "choose from glorot_normal, glorot_uniform, he_normal, he_uniform, lecun_normal, lecun_uniform, ones, small_normal, standard_normal, zeros",
    ),
    "Network(Linear(64, 10, initialiser=None))": ("Linear: initialiser is None", "give text"),
    "Residual(Linear)": ("Residual: layer 1 is the class Linear", "make one: Linear(…)"),
    'Sequential(Linear(64, 10), "tanh")': ("Sequential: layer 2 is 'tanh'", "did you mean Tanh()?"),
    "n.predict()": ("Network.predict: x is not given", "predict(x, …)"),
    "n.predict(x, 32)": ("Network.predict: 32 is one argument too many", "by name it takes batch_size"),
    "n.predict(x, batch_size=0)": ("Network.predict: batch_size is 0", "give a whole number, 1 or more"),
    "n.gradients(x)": ("Network.gradients: t is not given", "gradients(x, t, …)"),
    "n.gradients(x, t, seed=1.5)": ("Network.gradients: seed is 1.5", "give a whole number, 0 or more"),
    "n.standardise()": ("Network.standardise: x is not given", "standardise(x, …)"),
    'n.program("adam")': ("Network.program: optimiser is 'adam'", "did you mean Adam()?"),
    'n.program().phase("backwards")': ("Program.phase: phase 1 is 'backwards'", "did you mean 'backward'?"),
    "n.program().line(3)": ("Program.line: target is 3", "give text"),
    "n.write(SGD)": ("Network.write: optimiser is the class SGD", "make one: SGD()"),
    "n.write(SGD(0.1), 50)": ("Network.write: loop is 50", "give a Loop"),
    "n.write(SGD(0.1), epochs=50)": (
        "Network.write: there is no argument 'epochs'",
        "choose from loop, name, optimiser, weighted",
    ),
    'Loop(schedule="Cosine")': ("Loop: schedule is 'Cosine'", "did you mean Cosine()?"),
    "Loop(epochs=0)": ("Loop: epochs is 0", "give a whole number, 1 or more"),
    "Linear(64)": ("Linear: outputs is not given", "Linear(inputs, outputs, …)"),
    "Linear(64.0, 10)": ("Linear: inputs is 64.0", "give a whole number, 1 or more"),
    "Linear(64, 10, 5)": ("Linear: bias is 5", "give True or False"),
    "Linear(in_features=64, out_features=10)": (
        "Linear: there is no argument 'in_features'",
        "handgrad's name for in_features is inputs",
    ),
    'Linear(64, 10, initializer="he_normal")': (
        "Linear: there is no argument 'initializer'",
        "did you mean 'initialiser'?",
    ),
    'Linear(64, 10, layout="outin")': ("Linear: layout is 'outin'", "choose from in_out, out_in"),
    "Dropout(p=0.5)": ("Dropout: there is no argument 'p'", "handgrad's name for p is rate"),
    'Dropout("0.5")': ("Dropout: rate is '0.5'", "give a number, 0 or more and less than 1"),
    "Embedding(10)": ("Embedding: features is not given", "Embedding(entries, features, …)"),
    "BatchNorm(64)": ("BatchNorm: 64 is one argument too many", "by name it takes epsilon, momentum"),
    "LayerNorm(64)": ("LayerNorm: 64 is one argument too many", "by name it takes epsilon"),
    'GELU("fast")': ("GELU: form is 'fast'", "choose from exact, tanh"),
    "Adam(lr=0.01)": ("Adam: there is no argument 'lr'", "handgrad's name for lr is learning_rate"),
    'Adam("0.01")': ("Adam: learning_rate is '0.01'", "give a number above 0"),
    'Adam(float("nan"))': ("Adam: learning_rate is nan", "give a number above 0"),
    "Adam(0.01, 0.9)": (
        "Adam: 0.9 is one argument too many",
        "by name it takes weight_decay, clip_norm, beta1, beta2, epsilon",
    ),
    "Adam(0.01, weight_decay=-1)": ("Adam: weight_decay is -1", "give a number, 0 or more"),
    'Adam(clip_norm="1")': ("Adam: clip_norm is '1'", "give a number above 0"),
    "Adam(None)": ("Adam: learning_rate is None", "give a number above 0"),
    'SGD(0.1, nesterov="yes")': ("SGD: nesterov is 'yes'", "give True or False"),
    "Cosine(10)": ("Cosine: 10 is one argument too many", "by name it takes warmup, final"),
    "Cosine(warm_up=1)": ("Cosine: there is no argument 'warm_up'", "did you mean 'warmup'?"),
    "StepDecay(every=2.5)": ("StepDecay: every is 2.5", "give a whole number, 1 or more"),
    "Constant(0.1)": ("Constant: 0.1 is one argument too many", ""),
    "SoftmaxCrossEntropy(label_smoothing=0.1)": (
        "SoftmaxCrossEntropy: there is no argument 'label_smoothing'",
        "handgrad's name for label_smoothing is smoothing",
    ),
    'SoftmaxCrossEntropy(class_weight="balanced")': (
        "SoftmaxCrossEntropy: class_weight is 'balanced'",
        "give a list, each a number, 0 or more",
    ),
    "SoftmaxCrossEntropy(class_weight={0: 1.0})": (
        "SoftmaxCrossEntropy: class_weight is {0: 1.0}",
        "give a list, each a number, 0 or more",
    ),
    'HalfSquaredError(reduction="none")': ("HalfSquaredError: reduction is 'none'", "choose from sum, mean"),
    'Huber("1")': ("Huber: delta is '1'", "give a number above 0"),
    "Layer()": ("Layer: connect is not written, and every one needs it", ""),
    "explain(n)": ("explain: x is not given", "explain(subject, x, …)"),
    'explain(n, x, t, jacobians="z1:W1")': ("explain: jacobians is 'z1:W1'", "give a list: ['z1:W1']"),
    'explain(n, x, t, jacobians=[("z1", "W1")])': (
        "explain: jacobians is [('z1', 'W1')]",
        "give a list, each text",
    ),
    "explain(n, x, t, example=-1)": ("explain: example is -1", "give a whole number, 0 or more"),
    'explain(n, x, t, optimiser="adam")': ("explain: optimiser is 'adam'", "did you mean Adam()?"),
    'explain("digits", x, t)': ("explain: subject is 'digits'", "give a Network or a Rule"),
    "check()": ("check: forward is not given", "check(forward, …)"),
    "check(n, seed=1.5)": ("check: seed is 1.5", "give a whole number, 0 or more"),
    "check(n, seed=-1)": ("check: seed is -1", "give a whole number, 0 or more"),
    "check(n, x, t, 1)": ("check: 1 is one argument too many", "by name it takes seed, surrogate"),
    'check(len, len, "x")': ("check: inputs is 'x'", "give a dict, a function or a list"),
    'check(len, "backward", {"x": x})': ("check: backward is 'backward'", "give a function"),
    "assert_right(n, seeds=1)": ("assert_right: there is no argument 'seeds'", "did you mean 'seed'?"),
    'measure_engines(n, x, t, engines="reference")': (
        "measure_engines: engines is 'reference'",
        "give a list: ['reference']",
    ),
    "measure_engines(n, x, t, batch_size=0)": (
        "measure_engines: batch_size is 0",
        "give a whole number, 1 or more",
    ),
    'measure_engines(n, x, t, seconds="1")': ("measure_engines: seconds is '1'", "give a number above 0"),
    'relu("x")': ("relu: z holds <U1, not numbers", ""),
    "relu(None)": ("relu: z holds object, not numbers", ""),
    "relu(x, slope=0.1)": ("relu has no option slope", ""),
    "split(x, t)": (
        "split: an array (100,) is one argument too many",
        "by name it takes test, validation, seed",
    ),
    "split(d, 0.2)": ("split: 0.2 is one argument too many", "by name it takes test, validation, seed"),
    'split(d, test="0.2")': ("split: test is '0.2'", "give a number"),
    "split(d, test_size=0.2)": ("split: there is no argument 'test_size'", "did you mean 'test'?"),
    "split(d, seed=-1)": ("split: seed is -1", "give a whole number, 0 or more"),
    'split("digits")': ("split: dataset is 'digits'", "give a Dataset"),
    "load()": ("load: source is not given", "load(source, …)"),
    'load("")': (
        "the data has no name",
        "choose from alice, digits, mackey-glass, mnist, moons, spirals, xor, or give a file or a folder",
    ),
    "load(3)": ("load: source is 3", "give text or a path"),
    'load("digits", task="classify")': ("load: task is 'classify'", "choose from classification, regression"),
    'moons("100")': ("moons: rows is '100'", "give a whole number"),
    "moons(n_samples=10)": ("moons: there is no argument 'n_samples'", "choose from noise, rows, seed"),
    'spirals(arms="2")': ("spirals: arms is '2'", "give a whole number"),
    "xor(seed=1.5)": ("xor: seed is 1.5", "give a whole number, 0 or more"),
    'read_csv("people.csv")': ("read_csv: target is not given", "read_csv(path, target=…, …)"),
    'read_csv(3, target="a")': ("read_csv: path is 3", "give text or a path"),
    'Dataset("rows", [[1.0]], [0], "classification")': ("Dataset: x is [[1.0]]", "give an array"),
    "Checkpoints()": ("Checkpoints: folder is not given", "Checkpoints(folder, …)"),
    'Checkpoints("folder", minutes="5")': ("Checkpoints: minutes is '5'", "give a number, 0 or more"),
    "load_run(3)": ("load_run: folder is 3", "give text or a path"),
    'load_run("folder", own=ReLU)': ("load_run: own is the class ReLU", "give a list: [ReLU]"),
}
"""Each wrong call, the first line of its error, and what it says to do."""


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """Return what the slips are typed with: a network n, rows x and targets t of the digits d."""
    known = {name: getattr(module, name) for module in (handgrad, data) for name in module.__all__}
    others = {each.__name__: each for each in (assert_right, load_run, measure_engines)}
    rows = data.digits()
    n = handgrad.Network(Linear(64, 8), handgrad.ReLU(), Linear(8, 10), loss=handgrad.SoftmaxCrossEntropy())
    own = {"np": np, "relu": relu, "d": rows, "n": n, "x": rows.x[:100] / 16, "t": rows.t[:100]}
    return {**known, **others, **own}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_named(slip: str, names: dict[str, Any]) -> None:
    with pytest.raises(HandgradError) as raised:
        eval(slip, names)
    assert (raised.value.problem, raised.value.fix) == SLIPS[slip]


def test_numbers_of_numpys_are_numbers() -> None:
    """A network's width is often counted by NumPy; a layer shows, and a run folder keeps, Python's number."""
    assert repr(Linear(np.int64(3), np.int32(2))) == "Linear(3, 2)"
    assert repr(Dropout(np.float64(0.25))) == "Dropout(rate=0.25)"
    assert type(Adam(np.float32(0.5)).learning_rate) is float


def test_lists_are_arrays_to_a_rule() -> None:
    x, W, b = [[1.0, 2.0]], [[1.0, 0.0, 2.0], [0.0, 1.0, 3.0]], [0.0, 0.5, 0.0]
    assert linear(x, W, b).tolist() == [[1.0, 2.5, 8.0]]
    assert linear.gradients([[1.0, 10.0, 100.0]], x, W, b)["x"].tolist() == [[201.0, 310.0]]


def test_what_a_user_writes_is_judged_too() -> None:
    """By its own annotations; one that means nothing here is left alone."""

    @dataclass(frozen=True, eq=False, repr=False)
    class Scale(Layer):
        by: float
        how: Unheard = None  # type: ignore[name-defined] # noqa: F821

        def connect(self, graph: Any, x: Any) -> Any:
            return x

    assert Scale("2", how=3).by == "2"  # nobody can tell what an annotation of this class means
    with pytest.raises(
        ConfigurationError, match=r"^Scale: there is no argument 'bye'\n  fix    did you mean 'by'\?$"
    ):
        Scale(bye=2.0)

    @dataclass(frozen=True, eq=False, repr=False)
    class Named(Layer):
        of: tuple[int, str]
        sign: Literal[1, -1] = 1
        length: Annotated[float, "metres"] = 1.0

        def connect(self, graph: Any, x: Any) -> Any:
            return x

    assert Named((3, "a"), -1, 2).of == (3, "a")
    with pytest.raises(ConfigurationError, match=r"^Named: sign is 2\n  fix    choose from 1, -1$"):
        Named((3, "a"), 2)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"^Named: length is 'far'\n  fix    give a number$"):
        Named((3, "a"), length="far")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"^Named: of is \('a', 3\)\n"):
        Named(("a", 3))  # type: ignore[arg-type]

    @judged
    def draw(rows: Count, *names: str, noise: float = 0.1) -> tuple[Any, ...]:
        return rows, names, noise

    assert draw(3, "a", "b", noise=1) == (3, ("a", "b"), 1)
    with pytest.raises(ConfigurationError, match=r"^draw: name 2 is 7\n  fix    give text$"):
        draw(3, "a", 7)  # type: ignore[arg-type]


def test_a_layer_without_settings_is_made_as_before() -> None:
    """One that is no dataclass, and has no ``__init__``."""

    class Plain(Layer):
        def connect(self, graph: Any, x: Any) -> Any:
            return x

    assert repr(Plain()) == "Plain()"


def test_what_is_judged_shows_its_own_arguments() -> None:
    """In help, in a notebook, in the documentation."""
    assert str(inspect.signature(Dropout)) == "(rate: 'Fraction' = 0.5)"
    assert list(inspect.signature(Optimiser).parameters) == ["learning_rate", "weight_decay", "clip_norm"]
    assert next(iter(inspect.signature(train).parameters)) == "network"


@pytest.mark.parametrize(
    "call",
    [
        lambda: handgrad.rules.dropout(np.ones(2), np.ones(2), p=0.5),
        lambda: from_table({"type": "Dropout", "p": 0.5}, "here", LAYERS),
    ],
)
def test_rules_and_tables_know_the_names_of_other_libraries_too(call: Any) -> None:
    with pytest.raises(HandgradError, match="handgrad's name for p is rate"):
        call()


@pytest.mark.parametrize(
    ("call", "given", "own"),
    [
        (lambda: handgrad.Conv2d(in_channels=3, outputs=4, size=5), "in_channels", "inputs"),
        (lambda: handgrad.Conv2d(3, filters=4, size=5), "filters", "outputs"),
        (lambda: handgrad.Conv2d(3, 4, kernel_size=5), "kernel_size", "size"),
        (lambda: handgrad.Conv1d(3, 4, 5, strides=2), "strides", "stride"),
        (lambda: handgrad.MaxPool2d(pool_size=2), "pool_size", "size"),
        (lambda: handgrad.LSTM(3, hidden_size=4), "hidden_size", "outputs"),
        (lambda: handgrad.GRU(3, units=4), "units", "outputs"),
        (lambda: handgrad.SelfAttention(8, num_heads=2), "num_heads", "heads"),
        (lambda: handgrad.SelfAttention(embed_dim=8), "embed_dim", "features"),
        (lambda: handgrad.GroupNorm(num_groups=2), "num_groups", "groups"),
        (lambda: handgrad.RMSNorm(eps=1e-3), "eps", "epsilon"),
    ],
)
def test_names_of_pytorch_and_keras_are_answered_with_handgrads(call: Any, given: str, own: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        call()
    assert caught.value.problem.endswith(f": there is no argument {given!r}")
    assert caught.value.fix == f"handgrad's name for {given} is {own}"


def test_every_name_of_other_libraries_leads_to_an_argument() -> None:
    """And is nowhere an argument itself, which it would be taken for."""
    functions = [*KINDS.values(), handgrad.Network, handgrad.train, handgrad.Network.gradients]
    known = {name for function in functions for name in inspect.signature(function).parameters}
    assert set(ELSEWHERE.values()) <= known
    assert not ELSEWHERE.keys() & known
