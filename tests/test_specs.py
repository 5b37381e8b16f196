"""Layers, losses, optimisers and schedules as tables: there and back, every one, every field."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import partial
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handgrad import (
    Adam,
    ConfigurationError,
    Linear,
    MeanSquaredError,
    Network,
    ReLU,
    Repeat,
    Residual,
    Sequential,
    SoftmaxCrossEntropy,
    Tanh,
)
from handgrad.layers import LAYERS, LOSSES, OPTIMISERS, SCHEDULES
from handgrad.layers.layer import show_call
from handgrad.network.saving import network_from, network_to_table
from handgrad.specs import explain, find, from_table, to_table

# A value of each field that is not its default; other fields take any value of their type.
SPECIAL: dict[str, Any] = {
    "class_weight": [0.5, 2.0],
    "positive_weight": [3.0, 1.0],
    "ignored": -100,
    "initialiser": "lecun_uniform",
    "tied": "E1",
    "nesterov": True,
    "momentum": 0.75,
    "clip_norm": 2.5,
    "rising": 0.25,
    "start": 12.0,
    "end": 90.0,
    "every": 3,
    "targets": "classes",
    "size": (3, 2),
    "stride": 2,
    "shape": (4, 7),
    "truncate": 3,
    "key_heads": 1,
    "padding": 3,
}
NEEDED = {"inputs", "outputs", "entries", "features", "size", "shape"}  # without a default
WHOLE = {"features": 12, "heads": 2}  # whole numbers that have to fit each other; others are 5
READERS = [(kinds, partial(from_table, kinds=kinds)) for kinds in (LAYERS, LOSSES, OPTIMISERS, SCHEDULES)]
KINDS = [
    (kind, reader) for kinds, reader in READERS for kind in kinds.values() if not issubclass(kind, Sequential)
]


def other_value(kind: type, name: str, default: Any) -> Any:
    """Return a value of a field that is not its default."""
    hint = get_type_hints(kind)[name]
    if name in SPECIAL and hint is not int:
        return SPECIAL[name]
    if get_origin(hint) is Literal:
        return next(choice for choice in get_args(hint) if choice != default)
    if hint is bool:
        return not default
    return WHOLE.get(name, 5) if hint is int else 0.375


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and repr(one) == repr(other)


def test_files_have_the_word_of_0_1_for_probabilities() -> None:
    """Files are read by 0.1 and from it: there and here the tables are the same."""
    made = SoftmaxCrossEntropy("probabilities", smoothing=0.25)
    table = {"type": "SoftmaxCrossEntropy", "targets": "shares", "smoothing": 0.25}
    assert to_table(made) == table
    assert same(from_table(table, "loss", LOSSES), made)


@pytest.mark.parametrize(("kind", "reader"), KINDS, ids=[kind.__name__ for kind, _ in KINDS])
def test_every_field_goes_there_and_back(kind: Any, reader: Any) -> None:
    """Also through JSON: with every field away from its default, and with each of them alone."""
    values = {field.name: other_value(kind, field.name, field.default) for field in fields(kind)}
    needed = {name: value for name, value in values.items() if name in NEEDED}
    alone = [{**needed, name: value} for name, value in values.items() if name != "nesterov"]
    together = {k: v for k, v in values.items() if k != "initialiser" or "tied" not in values}
    for given_values in (together, needed, *alone):
        made = kind(**given_values)
        table = to_table(made)
        assert table["type"] == kind.__name__
        changed = {name for name, value in given_values.items() if name != "targets"}
        assert changed <= table.keys()
        assert same(reader(table, "here"), made)
        assert same(reader(json.loads(json.dumps(table)), "here"), made)
        assert to_table(reader(table, "here")) == table


def test_the_defaults_are_left_out() -> None:
    """A table says what is not at its default, so that it reads like a configuration."""
    assert to_table(ReLU()) == {"type": "ReLU"}
    assert to_table(Linear(3, 4, bias=False)) == {"type": "Linear", "inputs": 3, "outputs": 4, "bias": False}


def test_layers_of_layers_go_there_and_back() -> None:
    """As deep as they are."""
    shortened = Residual(Linear(3, 3), shortcut=Sequential(Tanh(), Linear(3, 3)))
    inner = Sequential(
        Tanh(), Repeat(Residual(ReLU()), shortened, times=3), Repeat(ReLU(), times=2, recompute=True)
    )
    made = Residual(Linear(3, 3), inner, Linear(3, 3, bias=False))
    assert same(from_table(to_table(made), "layers[0]", LAYERS), made)


def test_numbers_of_numpy_are_numbers() -> None:
    """Class weights, sizes and rates may come from an array."""
    loss = SoftmaxCrossEntropy(class_weight=np.array([0.5, 2]), smoothing=np.float32(0.25))  # type: ignore[arg-type]
    table = {"type": "SoftmaxCrossEntropy", "smoothing": 0.25, "class_weight": [0.5, 2.0]}
    assert json.loads(json.dumps(to_table(loss))) == table
    assert to_table(Linear(*np.array([3, 4]).tolist())) == {"type": "Linear", "inputs": 3, "outputs": 4}
    assert json.dumps(to_table(Adam(np.float64(0.5)))) == '{"type": "Adam", "learning_rate": 0.5}'


@pytest.mark.parametrize(("kinds", "reader"), READERS)
def test_a_name_alone_is_enough(kinds: Any, reader: Any) -> None:
    """For everything that can be made without a size; in any spelling."""
    for name, kind in kinds.items():
        if (
            not any(field.name in NEEDED for field in fields(kind))
            if not issubclass(kind, Sequential)
            else False
        ):
            assert same(reader(name, "here"), kind())
            assert same(reader({"type": name.lower()}, "here"), kind())


def test_names_are_found_in_any_spelling_and_the_nearest_is_named() -> None:
    """leaky_relu, leaky-relu and LeakyReLU are one."""
    for name in ("leaky_relu", "leaky-relu", "LeakyReLU", "LEAKYRELU"):
        assert find(name, LAYERS, "here").__name__ == "LeakyReLU"
    with pytest.raises(ConfigurationError) as caught:
        find("SoftmaxCrossEntropie", LOSSES, "network.loss")
    assert str(caught.value) == (
        "network.loss: 'SoftmaxCrossEntropie' is unknown\n  fix    did you mean 'SoftmaxCrossEntropy'?"
    )


WRONG = {
    "no type": ({"inputs": 3}, "here is {'inputs': 3}\n  fix    write {type = \"…\", …}"),
    "no table": (3, "here is 3\n  fix    write {type = \"…\", …}"),
    "unknown": ({"type": "Lin"}, "here.type: 'Lin' is unknown\n  fix    did you mean 'Linear'?"),
    "unknown key": (
        {"type": "Linear", "inputs": 3, "outputs": 4, "biass": False},
        "here.biass: Linear has no such setting\n  fix    did you mean 'bias'?",
    ),
    "no keys": ({"type": "ReLU", "slope": 1}, "here.slope: ReLU has no such setting\n  fix    leave it out"),
    "missing": ({"type": "Linear", "inputs": 3}, "here: Linear needs outputs"),
    "type": (
        {"type": "Linear", "inputs": 3, "outputs": "4"}, "here.outputs is '4'\n  fix    give a whole number",
    ),
    "bool": ({"type": "Linear", "inputs": 3, "outputs": 4, "bias": 1}, "here.bias is 1\n  fix    give true or false"),
    "choice": ({"type": "GELU", "form": "tan"}, "here.form is 'tan'\n  fix    choose from exact, tanh"),
    "range": (
        {"type": "Dropout", "rate": 1},
        "here: Dropout: rate is 1.0\n  fix    give a number, 0 or more and less than 1",
    ),
    "size": (
        {"type": "Linear", "inputs": 0, "outputs": 4},
        "here: Linear: inputs is 0\n  fix    give a whole number, 1 or more",
    ),
    "layers": ({"type": "Residual", "layers": 3}, "here.layers is 3\n  fix    give a list of tables, one a layer"),
    "no layers": ({"type": "Residual"}, "here.layers is None\n  fix    give a list of tables, one a layer"),
    "no times": ({"type": "Repeat", "layers": ["ReLU"]}, "here: Repeat needs times"),
    "times": (
        {"type": "Repeat", "layers": ["ReLU"], "times": "3"},
        "here: Repeat: times is '3'\n  fix    give a whole number, 1 or more and at most 10000",
    ),
    "shortcut": (
        {"type": "Residual", "layers": ["ReLU"], "shortcut": "Tan"},
        "here.shortcut: 'Tan' is unknown\n  fix    did you mean 'Tanh'?",
    ),
    "inner": (
        {"type": "Residual", "layers": ["ReLU", {"type": "Tan"}]},
        "here.layers[1].type: 'Tan' is unknown\n  fix    did you mean 'Tanh'?",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_table_is_named_by_its_place(case: str) -> None:
    """Place, value, and what is wanted."""
    table, message = WRONG[case]
    with pytest.raises(ConfigurationError) as caught:
        from_table(table, "here", LAYERS)
    assert str(caught.value) == message


def test_a_network_goes_there_and_back() -> None:
    """Layers, loss, row, dtype and seed; its arrays start anew from the seed."""
    network = Network(
        Linear(3, 4), Residual(Tanh(), Linear(4, 4)), Linear(4, 2), inputs=(7, 3), loss=MeanSquaredError(),
        dtype="float64", seed=9,
    )  # fmt: skip
    table = json.loads(json.dumps(network_to_table(network)))
    made = network_from(table, "here")
    assert repr(made) == repr(network)
    assert (made.row, made.dtype, made.seed) == ((7, 3), "float64", 9)
    for name, array in network.arrays.items():
        assert made.arrays[name].tobytes() == array.tobytes()
    table["loss"] = None
    assert network_from(table, "here").loss is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"row": "ab"}, "here.row is 'ab'\n  fix    give a list"),
        ({"row": [3.5]}, "here.row[0] is 3.5\n  fix    give a whole number"),
        ({"dtype": "float16"}, "here.dtype is 'float16'\n  fix    choose from float32, float64"),
        ({"seed": None}, "here.seed is None\n  fix    give a whole number"),
        ({"more": 1}, "here.more: there is no such setting\n  fix    choose from dtype, layers, loss, row, seed"),
        ({"layers": ["ReLU"]}, "here.layers[0] is 'ReLU'\n  fix    give a table"),
        (
            {"layers": [{"type": "Linear", "inputs": 3, "outputs": 10**30}]},
            f"here.layers[0]: Linear: outputs is {10**30}\n  fix    give a whole number, 1 or more",
        ),
    ],
)  # fmt: skip
def test_a_table_that_is_no_network_is_named(change: dict[str, Any], message: str) -> None:
    """As for a layer."""
    table = network_to_table(Network(Linear(3, 4)))
    with pytest.raises(ConfigurationError) as caught:
        network_from(table | change, "here")
    assert str(caught.value) == message


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "layers", "inputs", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@settings(deadline=None)
@given(
    kind=st.sampled_from([name for kinds, _ in READERS for name in kinds]),
    values=st.dictionaries(
        st.sampled_from(["inputs", "outputs", "rate", "layers", "form", "momentum", "class_weight", "every", "layout"]),
        ANYTHING, max_size=3,
    ),
)  # fmt: skip
def test_no_table_is_a_traceback(kind: str, values: dict[str, Any]) -> None:
    """Whatever stands in a file: something of ours is made, or a ConfigurationError says why not."""
    for kinds, reader in READERS:
        if kind in kinds:
            try:
                made = reader({"type": kind, **values}, "here")
            except ConfigurationError as error:
                assert str(error).startswith("here")  # noqa: PT017 - it may also be made
            else:
                assert show_call(made).startswith(kind) or isinstance(made, Sequential)


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    """A table in a table."""

    size: int = 1


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    """A table."""

    inner: Inner
    some: str | list[str] | None = None


def test_msgspecs_words_become_ours() -> None:
    """Every sort of message that a setting can cause."""
    wrong: list[dict[str, Any]] = [
        {"inner": {"siz": 1}}, {"inner": {"size": "x"}}, {"inner": {}, "some": 3}, {"iner": {}}, {"inner": 3},
    ]  # fmt: skip
    messages = []
    for values in wrong:
        with pytest.raises(msgspec.ValidationError) as caught:
            msgspec.convert(values, Outer)
        messages.append(str(explain(caught.value, values, Outer)))
    assert messages == [
        "inner.siz: there is no such setting\n  fix    did you mean 'size'?",
        "inner.size is 'x'\n  fix    give a whole number",
        "some is 3\n  fix    give text or a list",
        "iner: there is no such setting\n  fix    did you mean 'inner'?",
        "inner is 3\n  fix    give a table",
    ]
