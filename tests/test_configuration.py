"""Configurations: every default, TOML there and back, options over a file, and the network they make."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handgrad import SGD, Adam, AdamW, ConfigurationError, Cosine, RMSProp, StepDecay
from handgrad.configuration import ACTIVATIONS, Configuration, read_configuration, write_configuration
from handgrad.data import Dataset, digits, moons, split
from handgrad.layers import INITIALISERS

VALUES = Dataset("prices", np.arange(12.0).reshape(4, 3), np.arange(8.0).reshape(4, 2), "regression")


def read(tmp_path: Path, text: str, **overrides: Any) -> Configuration:
    """Read a text as a file, with options over it; ``__`` stands for a dot."""
    (tmp_path / "net.toml").write_text(text, encoding="utf-8")
    return read_configuration(
        tmp_path / "net.toml", {name.replace("__", "."): value for name, value in overrides.items()}
    )


def test_every_default() -> None:
    """What an empty configuration is; the documentation and the help of the options say the same."""
    assert msgspec.to_builtins(read_configuration(None, {})) == {
        "data": {
            "source": "digits", "target": None, "task": None, "drop": None, "only": None, "test": 0.2,
            "validation": 0.1, "standardise": "auto", "standardise_targets": True, "context": None,
            "inputs": None, "outputs": None, "fingerprint": None,
        },
        "network": {
            "hidden": [256], "activation": "relu", "normalisation": "none", "dropout": 0.0, "layers": [],
            "transformer": None, "loss": None, "class_weight": None, "dtype": "float32",
        },
        "training": {
            "epochs": None, "batch_size": 32, "micro_batch": None, "optimiser": {"type": "Adam", "learning_rate": 0.003},
            "schedule": "Cosine", "patience": None,
            "seed": 0, "engine": "compiled", "devices": None,
        },
    }  # fmt: skip


def test_the_defaults_make_the_default_network() -> None:
    """Pixels are standardised all together, columns each by itself; rectifiers start with He's variance."""
    default = Configuration()
    assert repr(default.build(digits())) == (
        "Network(Standardise(over='all'), Linear(64, 256, initialiser='glorot_uniform'), ReLU(), "
        "Linear(256, 10, initialiser='glorot_uniform'), loss=SoftmaxCrossEntropy())"
    )
    assert repr(default.build(moons())).startswith("Network(Standardise(), Linear(2, 256, initialiser=")
    assert repr(default.build(VALUES)) == (
        "Network(Standardise(), Linear(3, 256, initialiser='glorot_uniform'), ReLU(), "
        "Linear(256, 2, initialiser='glorot_uniform'), StandardiseTargets(), loss=MeanSquaredError())"
    )
    assert (default.optimiser(), default.schedule()) == (Adam(0.003), Cosine())


@pytest.mark.parametrize(
    ("rows", "batch_size", "epochs"),
    [
        (1, 32, 1000),
        (32, 32, 1000),
        (33, 32, 500),
        (700, 32, 46),
        (1057, 32, 30),
        (10**6, 32, 30),
        (700, 7, 30),
    ],
)
def test_a_small_table_has_more_epochs(rows: int, batch_size: int, epochs: int) -> None:
    """At least 30, and as many as make 1,000 steps; those that are set are taken."""
    default = Configuration()
    default.training.batch_size = batch_size
    assert default.epochs(rows) == epochs
    default.training.epochs = 3
    assert default.epochs(rows) == 3


def test_an_option_of_the_optimiser_leaves_the_default_one(tmp_path: Path) -> None:
    """A name brings the optimiser's own defaults."""
    assert read(tmp_path, "", training__optimiser__weight_decay=0.5).optimiser() == Adam(
        0.003, weight_decay=0.5
    )
    assert read(tmp_path, '[training]\noptimiser = "Adam"').optimiser() == Adam()
    assert read(tmp_path, "", training__optimiser__type="AdamW").optimiser() == AdamW()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation_starts_as_it_should(tmp_path: Path, name: str) -> None:
    """Those that saturate with Glorot's variance, the others with He's but for the first layer; in any spelling."""
    start = "glorot_uniform" if name in ("sigmoid", "tanh") else "he_normal"
    for spelling in (name, name.replace("_", "-"), ACTIVATIONS[name].__name__):
        network = read(tmp_path, f'[network]\nactivation = "{spelling}"\nhidden = [5, 4]').build(VALUES)
        _, first, activation, second, _, last, _ = network.body.layers
        assert type(activation) is ACTIVATIONS[name]
        assert [first.initialiser, second.initialiser, last.initialiser] == [
            "glorot_uniform",
            start,
            "glorot_uniform",
        ]  # type: ignore[attr-defined]
        assert {start, "glorot_uniform"} <= INITIALISERS.keys()


def test_what_stands_between_the_hidden_layers(tmp_path: Path) -> None:
    """Linear, normalisation, activation, dropout; nothing behind the last layer."""
    text = '[network]\nhidden = [5, 4]\nnormalisation = "batch"\nactivation = "tanh"\ndropout = 0.25'
    assert repr(read(tmp_path, text).build(VALUES)) == (
        "Network(Standardise(), "
        "Linear(3, 5, initialiser='glorot_uniform'), BatchNorm(), Tanh(), Dropout(rate=0.25), "
        "Linear(5, 4, initialiser='glorot_uniform'), BatchNorm(), Tanh(), Dropout(rate=0.25), "
        "Linear(4, 2, initialiser='glorot_uniform'), StandardiseTargets(), loss=MeanSquaredError())"
    )


def test_no_hidden_layer_is_a_linear_model(tmp_path: Path) -> None:
    """An empty list."""
    network = read(
        tmp_path, '[network]\nhidden = []\n[data]\nstandardise = "none"\nstandardise_targets = false'
    ).build(VALUES)
    assert repr(network) == "Network(Linear(3, 2, initialiser='glorot_uniform'), loss=MeanSquaredError())"


@pytest.mark.parametrize(
    ("standardise", "pixels", "columns"),
    [
        ("auto", "Standardise(over='all')", "Standardise()"),
        ("feature", "Standardise()", "Standardise()"),
        ("all", "Standardise(over='all')", "Standardise(over='all')"),
        (
            "none",
            "Linear(64, 256, initialiser='glorot_uniform')",
            "Linear(3, 256, initialiser='glorot_uniform')",
        ),
    ],
)
def test_standardisation(tmp_path: Path, standardise: str, pixels: str, columns: str) -> None:
    """Bytes are pixels, of one unit; columns have each their own."""
    configuration = read(tmp_path, f'[data]\nstandardise = "{standardise}"')
    assert repr(configuration.build(digits()).body.layers[0]) == pixels
    assert repr(configuration.build(VALUES).body.layers[0]) == columns


def test_layers_of_ones_own(tmp_path: Path) -> None:
    """As tables or names, with layers in layers; standardised first unless they begin otherwise."""
    text = """
    [network]
    loss = {type = "Huber", delta = 0.5}

    [[network.layers]]
    type = "Linear"
    inputs = 3
    outputs = 4

    [[network.layers]]
    type = "Residual"
    layers = ["Tanh", {type = "Linear", inputs = 4, outputs = 4, bias = false}]

    [[network.layers]]
    type = "Linear"
    inputs = 4
    outputs = 2
    """
    assert repr(read(tmp_path, text).build(VALUES)) == (
        "Network(Standardise(), Linear(3, 4), Residual(Tanh(), Linear(4, 4, bias=False)), Linear(4, 2), "
        "StandardiseTargets(by='median'), loss=Huber(delta=0.5))"
    )


@pytest.mark.parametrize(
    ("first", "network"),
    [
        ('{type = "Standardise", over = "all"}', "Network(Standardise(over='all'), Linear(3, 2), "),
        ('{type = "Embedding", entries = 20, features = 2}', "Network(Embedding(20, 2), Linear(2, 2), "),
        ('"Tanh"', "Network(Standardise(), Tanh(), Linear(3, 2), "),
    ],
)
def test_layers_that_begin_with_the_data_itself_are_not_standardised(
    tmp_path: Path, first: str, network: str
) -> None:
    """Indices would be none afterwards, and twice is once too often."""
    inputs = 2 if "Embedding" in first else 3
    text = f'[network]\nlayers = [{first}, {{type = "Linear", inputs = {inputs}, outputs = 2}}]'
    assert repr(read(tmp_path, text).build(VALUES)).startswith(network)


def test_the_last_layer_must_give_what_the_data_needs(tmp_path: Path) -> None:
    """Two targets need two outputs, ten classes ten, a yes or no one."""
    text = '[network]\nlayers = [{type = "Linear", inputs = 3, outputs = 5}]'
    with pytest.raises(ConfigurationError) as caught:
        read(tmp_path, text).build(VALUES)
    assert str(caught.value) == (
        "network.layers: Linear(3, 5) gives 5 outputs, and prices with MeanSquaredError() needs 2"
    )
    coin = read(tmp_path, '[network]\nloss = "BinaryCrossEntropy"').build(moons())
    assert coin.output_shape == ("n", 1)


RARE = Dataset(
    "rare",
    np.arange(40.0).reshape(20, 2),
    np.repeat([0, 1, 2], [12, 6, 2]),
    "classification",
    ("a", "b", "c"),
)


def test_balanced_class_weights_are_those_of_the_training_rows(tmp_path: Path) -> None:
    """Each is n / (C · count), counted without the validation and test rows; numbers are taken as they are."""
    balanced = read(tmp_path, '[network]\nclass_weight = "balanced"\n[data]\ntest = 0.4\nvalidation = 0')
    train = split(RARE, test=0.4, validation=0, seed=0).train
    assert np.bincount(RARE.t[train]).tolist() == [7, 4, 1]
    assert (
        repr(balanced.build(RARE).loss) == f"SoftmaxCrossEntropy(class_weight={[12 / 21, 12 / 12, 12 / 3]})"
    )
    text = '[network]\nclass_weight = [1, 2, 0.5]\nloss = {type = "SoftmaxCrossEntropy", smoothing = 0.1}'
    given = read(tmp_path, text).build(RARE).loss
    assert repr(given) == "SoftmaxCrossEntropy(smoothing=0.1, class_weight=[1.0, 2.0, 0.5])"


@pytest.mark.peers
@pytest.mark.parametrize("data", [RARE, moons(), digits()], ids=lambda data: data.name)
def test_balanced_class_weights_are_scikit_learns(tmp_path: Path, data: Dataset) -> None:
    from sklearn.utils.class_weight import compute_class_weight

    loss = read(tmp_path, '[network]\nclass_weight = "balanced"').build(data).loss
    t = data.t[split(data).train]
    expected = compute_class_weight("balanced", classes=np.arange(len(data.classes)), y=t)
    assert loss.class_weight == pytest.approx(expected)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("loss", "data", "message"),
    [
        ("Huber", digits(), "digits holds classes, and Huber() is for values\n  fix    choose SoftmaxCrossEntropy"),
        (
            "SoftmaxCrossEntropy", VALUES,
            "prices holds values, and SoftmaxCrossEntropy() is for classes\n  fix    choose MeanSquaredError",
        ),
        (
            "BinaryCrossEntropy", digits(),
            "digits has 10 classes, and BinaryCrossEntropy() is for two\n  fix    choose SoftmaxCrossEntropy",
        ),
    ],
)  # fmt: skip
def test_a_loss_must_suit_the_data(tmp_path: Path, loss: str, data: Dataset, message: str) -> None:
    """Classes, values, or two classes."""
    with pytest.raises(ConfigurationError) as caught:
        read(tmp_path, f'[network]\nloss = "{loss}"').build(data)
    assert str(caught.value) == message


def test_rows_that_are_not_flat_need_layers_of_ones_own(tmp_path: Path) -> None:
    """Hidden sizes are for rows of one axis."""
    data = Dataset("words", np.ones((4, 3, 2)), np.arange(4.0), "regression")
    with pytest.raises(ConfigurationError) as caught:
        Configuration().build(data)
    assert str(caught.value) == (
        "network.hidden: a row of the data has the shape (3, 2), and one axis is needed\n"
        "  fix    write network.layers, or give --config series"
    )


# ----------------------------------------------------------------------------------- there and back

SOME_OPTIMISERS = st.sampled_from(
    ["SGD", "adamw", {"type": "SGD", "momentum": 0.5, "nesterov": True}, {"type": "RMSProp", "decay": 0.5}]
)
CONFIGURATIONS = st.builds(
    lambda **tables: {
        name: {k: v for k, v in table.items() if v is not None} for name, table in tables.items()
    },
    data=st.fixed_dictionaries(
        {},
        optional={
            "source": st.sampled_from(["mnist", 'odd "name\\.csv', "ü/ß.parquet"]),
            "target": st.text(max_size=5) | st.lists(st.text(max_size=5), max_size=3),
            "task": st.sampled_from(["classification", "regression"]),
            "test": st.floats(0, 0.99),
            "validation": st.floats(0.01, 0.5),
            "standardise": st.sampled_from(["auto", "feature", "all", "none"]),
        },
    ),
    network=st.fixed_dictionaries(
        {},
        optional={
            "hidden": st.lists(st.integers(1, 10**9), max_size=3),
            "activation": st.sampled_from([*ACTIVATIONS, "LeakyReLU"]),
            "normalisation": st.sampled_from(["none", "batch", "layer"]),
            "dropout": st.floats(0, 0.99),
            "loss": st.sampled_from(["Huber", {"type": "SoftmaxCrossEntropy", "class_weight": [0.5, 2.0]}]),
            "dtype": st.sampled_from(["float32", "float64"]),
        },
    )
    | st.just(
        {"layers": ["ReLU", {"type": "Residual", "layers": [{"type": "Linear", "inputs": 3, "outputs": 3}]}]}
    ),
    training=st.fixed_dictionaries(
        {},
        optional={
            "epochs": st.integers(1, 10**9),
            "batch_size": st.integers(1, 10**9),
            "optimiser": SOME_OPTIMISERS,
            "schedule": st.sampled_from(["OneCycle", {"type": "Cosine", "warmup": 1.5}]),
            "patience": st.integers(1, 100),
            "seed": st.integers(0, 2**63 - 1),
        },
    ),
)


@settings(deadline=None)
@given(tables=CONFIGURATIONS)
def test_a_configuration_is_the_same_after_it_is_written_and_read(
    tmp_path_factory: pytest.TempPathFactory, tables: dict[str, Any]
) -> None:
    """Every setting is written out, the defaults too, but what is not set or has no place beside layers."""
    import tomli_w

    folder = tmp_path_factory.mktemp("toml")
    configuration = read(folder, tomli_w.dumps(tables))
    text = write_configuration(configuration)
    assert read(folder, text) == configuration
    written = tomllib.loads(text)
    for name, table in tables.items():
        assert table.items() <= written[name].items()
        explicit = name == "network" and configuration.network.layers
        assert written[name].keys() == {
            key
            for key, value in msgspec.to_builtins(getattr(configuration, name)).items()
            if value is not None
            and not (explicit and key in ("hidden", "activation", "normalisation", "dropout"))
        }


# ----------------------------------------------------------------------------------- options


def test_options_go_over_the_file(tmp_path: Path) -> None:
    """What is given is set; what is None is left as the file has it."""
    text = "[training]\nepochs = 5\nseed = 3\n[network]\nhidden = [7]"
    configuration = read(tmp_path, text, training__epochs=9, training__seed=None, network__hidden=[1, 2])
    assert (configuration.training.epochs, configuration.training.seed) == (9, 3)
    assert configuration.network.hidden == [1, 2]


OPTIMISERS: list[tuple[str, dict[str, Any], Any]] = [
    ("", {"training.optimiser.learning_rate": 0.5}, Adam(0.5)),
    ("", {"training.optimiser.type": "SGD"}, SGD()),
    ("", {"training.optimiser.momentum": 0.5, "training.optimiser.type": "SGD"}, SGD(momentum=0.5)),
    ("", {"training.optimiser.type": "SGD", "training.optimiser.momentum": 0.5}, SGD(momentum=0.5)),
    ('optimiser = "RMSProp"', {"training.optimiser.learning_rate": 0.5}, RMSProp(0.5)),
    ('optimiser = {type = "SGD", momentum = 0.5}', {"training.optimiser.learning_rate": 0.2}, SGD(0.2, momentum=0.5)),
    ('optimiser = {type = "SGD", momentum = 0.5}', {"training.optimiser.type": "AdamW"}, AdamW()),
    ("optimiser = {beta1 = 0.5}", {"training.optimiser.clip_norm": 2.0}, Adam(0.003, beta1=0.5, clip_norm=2.0)),
    ("[training.optimiser]\nlearning_rate = 0.5", {"training.optimiser.weight_decay": 0.1}, Adam(0.5, weight_decay=0.1)),
]  # fmt: skip
"""What the file says, what the options say, and the optimiser."""


@pytest.mark.parametrize(("text", "overrides", "expected"), OPTIMISERS)
def test_options_of_the_optimiser_go_into_its_table(
    tmp_path: Path, text: str, overrides: dict[str, Any], expected: Any
) -> None:
    """A setting joins what the file has; a type replaces it, whichever option comes first."""
    (tmp_path / "net.toml").write_text(f"[training]\n{text}\n")
    assert read_configuration(tmp_path / "net.toml", overrides).optimiser() == expected


def test_schedules_are_names_or_tables(tmp_path: Path) -> None:
    """With what they need."""
    text = '[training.schedule]\ntype = "step_decay"\nevery = 3'
    assert read(tmp_path, text).schedule() == StepDecay(every=3)
    assert read(tmp_path, '[training]\nschedule = "Cosine"').schedule() == Cosine()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Missing, a folder, not UTF-8, not TOML, nested without end."""
    problems = []
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "latin.toml").write_bytes(b'[data]\nsource = "\xfc"')
    (tmp_path / "text.toml").write_text("epochs 3")
    (tmp_path / "deep.toml").write_text("x = " + "[" * 100_000)
    for name in ("missing", "folder", "latin", "text", "deep"):
        with pytest.raises(ConfigurationError) as caught:
            read_configuration(tmp_path / f"{name}.toml", {})
        problems.append(caught.value.problem.removeprefix(f"{tmp_path}/"))
    assert problems[:2] == ["missing.toml: No such file or directory", "folder.toml: Is a directory"]
    assert [problem[:20] for problem in problems[2:]] == [
        "latin.toml: not TOML", "text.toml: not TOML:", "deep.toml: not TOML:",
    ]  # fmt: skip


MISTAKES: dict[str, tuple[str, str]] = {
    "activation": (
        '[network]\nactivation = "rellu"\n',
        "line 2: network.activation: 'rellu' is unknown\n  fix    did you mean 'relu'?",
    ),
    "optimiser": (
        '[training]\nseed = 1\noptimiser = "Adm"\n',
        "line 3: training.optimiser: 'Adm' is unknown\n  fix    did you mean 'Adam'?",
    ),
    "optimiser's setting": (
        '[training.optimiser]\ntype = "SGD"\nmomentun = 0.9\n',
        "line 3: training.optimiser.momentun: SGD has no such setting\n  fix    did you mean 'momentum'?",
    ),
    "optimiser's value": (
        '[training.optimiser]\ntype = "SGD"\nmomentum = 1.5\n',
        "line 1: training.optimiser: SGD: momentum is 1.5\n  fix    give a number, 0 or more and less than 1",
    ),
    "optimiser's type": (
        '[training.optimiser]\nlearning_rate = "high"\n',
        "line 2: training.optimiser.learning_rate is 'high'\n  fix    give a number",
    ),
    "table after its inner one": (
        '[training.optimiser]\ntype = "Adm"\n[training]\nepochs = 3\n',
        "line 2: training.optimiser.type: 'Adm' is unknown\n  fix    did you mean 'Adam'?",
    ),
    "schedule": (
        '[training]\nschedule = "cosin"\n',
        "line 2: training.schedule: 'cosin' is unknown\n  fix    did you mean 'Cosine'?",
    ),
    "loss": (
        '[network]\nloss = {type = "Hubert"}\n',
        "line 2: network.loss.type: 'Hubert' is unknown\n  fix    did you mean 'Huber'?",
    ),
    "normalisation": (
        '[network]\nnormalisation = "bach"\n',
        "line 2: network.normalisation is 'bach'\n  fix    choose from none, batch, layer",
    ),
    "dtype": (
        '[network]\ndtype = "float16"\n',
        "line 2: network.dtype is 'float16'\n  fix    choose from float32, float64",
    ),
    "engine": (
        '[training]\nengine = "refrence"\n',
        "line 2: training.engine: 'refrence' is unknown\n  fix    did you mean 'reference'?",
    ),
    "key": (
        "[training]\nepoch = 3\n",
        "line 2: training.epoch: there is no such setting\n  fix    did you mean 'epochs'?",
    ),
    "key of another table": (
        "[training]\nepochs = 3\n[network]\nepochs = 3\n",
        "line 4: network.epochs: there is no such setting\n"
        "  fix    choose from activation, class_weight, dropout, dtype, hidden, layers, loss, normalisation, transformer",
    ),
    "table": (
        "\n[trainig]\n",
        "line 2: trainig: there is no such setting\n  fix    did you mean 'training'?",
    ),
    "type": ('[training]\nepochs = "3"\n', "line 2: training.epochs is '3'\n  fix    give a whole number"),
    "fraction": (
        "[training]\nbatch_size = 1.5\n",
        "line 2: training.batch_size is 1.5\n  fix    give a whole number",
    ),
    "range": (
        "[network]\n# half\ndropout = 1.5\n",
        "line 3: network.dropout is 1.5\n  fix    give a number below 1",
    ),
    "size": (
        "[network]\nhidden = [12, 0]\n",
        "line 2: network.hidden[1] is 0\n  fix    give a whole number, 1 or more",
    ),
    "list": ("[network]\nhidden = 12\n", "line 2: network.hidden is 12\n  fix    give a list"),
    "layer": (
        '[[network.layers]]\ntype = "ReLU"\n\n[[network.layers]]\ntype = "Liner"\n',
        "line 5: network.layers[1].type: 'Liner' is unknown\n  fix    did you mean 'Linear'?",
    ),
    "layer's setting": (
        '[[network.layers]]\ntype = "Linear"\ninputs = 64\noutput = 10\n',
        "line 4: network.layers[0].output: Linear has no such setting\n  fix    did you mean 'outputs'?",
    ),
    "layer's lack": (
        '[[network.layers]]\ntype = "Linear"\noutputs = 64\n',
        "line 1: network.layers[0]: Linear needs inputs",
    ),
    "layer's choice": (
        '[[network.layers]]\ntype = "GELU"\nform = "tan"\n',
        "line 3: network.layers[0].form is 'tan'\n  fix    choose from exact, tanh",
    ),
    "layers within": (
        '[network]\nlayers = [{type = "Residual", layers = [{type = "Tahn"}]}]\n',
        "line 2: network.layers[0].layers[0].type: 'Tahn' is unknown\n  fix    did you mean 'Tanh'?",
    ),
    "layers and hidden": (
        '[network]\nhidden = [3]\nlayers = ["ReLU"]\n',
        "line 2: network.hidden: network.layers sets this already\n  fix    leave one of them out",
    ),
    "patience": (
        "[data]\nvalidation = 0\n[training]\npatience = 3",
        "line 4: training.patience: there are no validation rows to watch\n"
        "  fix    set data.validation to 0.1",
    ),
    "within a fingerprint": (
        '[data]\nfingerprint.x = {shape = [3], dtype = [1], sha256 = "a"}\n',
        "line 1: data.fingerprint[...].dtype does not fit\n  fix    give text",
    ),
}
"""A configuration file, and its error after the file's name."""


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_names_file_line_and_setting(tmp_path: Path, case: str) -> None:
    """With the value, and the nearest name or what is wanted; the line is counted in the file."""
    text, expected = MISTAKES[case]
    number, _, rest = expected.removeprefix("line ").partition(": ")
    for above in (0, 2):
        with pytest.raises(ConfigurationError) as caught:
            read(tmp_path, "\n" * above + text)
        assert str(caught.value) == f"{tmp_path / 'net.toml'}, line {int(number) + above}: {rest}"


ANYTHING = st.recursive(
    st.booleans() | st.integers(-3, 2**70) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "layers", "x"]), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
KEYS = [
    *(
        "source",
        "target",
        "task",
        "test",
        "standardise",
        "hidden",
        "activation",
        "dropout",
        "layers",
        "loss",
        "dtype",
    ),
    *("epochs", "optimiser", "schedule", "patience", "seed", "engine", "odd key", "data", "training"),
]


@settings(deadline=None, max_examples=300)
@given(
    tables=st.dictionaries(
        st.sampled_from(["data", "network", "training", "other"]),
        ANYTHING | st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=3),
    ),
    overrides=st.dictionaries(
        st.sampled_from(["training.epochs", "training.optimiser.momentum", "training.optimiser.type", "data.test"]),
        st.integers(-1, 3) | st.just("SGD"),
    ),
)  # fmt: skip
def test_no_file_is_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, tables: dict[str, Any], overrides: dict[str, Any]
) -> None:
    """Whatever a TOML file says: a configuration, or an error of ours that begins with a setting or the file."""
    import tomli_w

    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text(tomli_w.dumps(tables), encoding="utf-8")
    try:
        read_configuration(path, overrides)
    except ConfigurationError as error:
        names = ("data", "network", "training", "other", str(path))
        assert error.problem.startswith(names)  # noqa: PT017 - it may also be read
