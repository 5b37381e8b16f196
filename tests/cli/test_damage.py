"""A run folder that is damaged, incomplete or of another time is refused by name, whatever the damage."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from handgrad import HandgradError
from handgrad.runs import load_run

from ..conftest import Command


@pytest.fixture
def run(runs: Path, tmp_path: Path) -> Path:
    """Copy the run of pets, to damage it."""
    shutil.copytree(runs / "runs" / "pets", tmp_path / "run")
    return tmp_path / "run"


def damage_json(run: Path, **changes: Any) -> None:
    head = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(head | changes))


def rewrite(run: Path, change: Any) -> None:
    path = run / "weights.safetensors"
    path.write_bytes(save_arrays(change(load_arrays(path.read_bytes()))))


def retype(arrays: dict[str, Any]) -> dict[str, Any]:
    return arrays | {"W1": arrays["W1"].astype(np.float64)}


def transpose(arrays: dict[str, Any]) -> dict[str, Any]:
    return arrays | {"W1": np.ascontiguousarray(arrays["W1"].T)}


def without(arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: array for name, array in arrays.items() if name != "b2"}


def half(run: Path) -> None:
    """Write a network of bfloat16, which NumPy does not have."""
    header = json.dumps({"W1": {"dtype": "BF16", "shape": [3, 9], "data_offsets": [0, 54]}}).encode()
    content = len(header).to_bytes(8, "little") + header + bytes(54)
    (run / "weights.safetensors").write_bytes(content)


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


DAMAGE: dict[str, tuple[Any, str]] = {
    "no run.json": (lambda run: (run / "run.json").unlink(), "run/run.json: No such file or directory"),
    "empty run.json": (
        lambda run: (run / "run.json").write_text(""),
        "run/run.json: damaged, or not handgrad's: ",
    ),
    "half a run.json": (
        lambda run: cut(run / "run.json", 100),
        "run/run.json: damaged, or not handgrad's: ",
    ),
    "a list": (lambda run: (run / "run.json").write_text("[1]"), "run/run.json: damaged, or not handgrad's: "),
    "no UTF-8": (
        lambda run: (run / "run.json").write_bytes(b'{"format": "\xff"}'),
        "run/run.json: damaged, or not handgrad's: ",
    ),
    "nested without end": (
        lambda run: (run / "run.json").write_text("[" * 100_000),
        "run/run.json: damaged, or not handgrad's: ",
    ),
    "newer": (lambda run: damage_json(run, format=3), "run/run.json: format 3, and this handgrad reads 1 and 2"),
    "no format": (lambda run: damage_json(run, format=None), "run/run.json: format None, and this handgrad reads 1 and 2"),
    "another key": (
        lambda run: damage_json(run, more=1),
        "run/run.json: damaged, or not handgrad's: Object contains unknown field `more`",
    ),
    "task": (
        lambda run: damage_json(run, task="guess"),
        "run/run.json: damaged, or not handgrad's: Invalid enum value 'guess' - at `$.task`",
    ),
    "classes": (
        lambda run: damage_json(run, classes=["a", "b", "c"]), "run/run.json: 3 classes, and the network has 2 outputs"
    ),
    "no layers": (
        lambda run: damage_json(run, network={"layers": [], "loss": None, "row": [3], "dtype": "float32", "seed": 0}),
        "run/run.json: a network needs a layer",
    ),
    "no loss": (
        lambda run: damage_json(
            run, network=json.loads((run / "run.json").read_text())["network"] | {"loss": None}
        ),
        "run/run.json: the network has no loss, and a run's is trained",
    ),
    "unknown layer": (
        lambda run: damage_json(
            run,
            network={"layers": [{"type": "Liner"}], "loss": None, "row": [3], "dtype": "float32", "seed": 0},
        ),
        "run/run.json: network.layers[0].type: 'Liner' is unknown",
    ),
    "no weights": (
        lambda run: (run / "weights.safetensors").unlink(), "run/weights.safetensors: No such file or directory"
    ),
    "weights are a folder": (
        lambda run: [(run / "weights.safetensors").unlink(), (run / "weights.safetensors").mkdir()],
        "run/weights.safetensors: is a folder, and no file",
    ),
    "empty weights": (lambda run: cut(run / "weights.safetensors", 0), "run/weights.safetensors: damaged, or no "),
    "half the weights": (lambda run: cut(run / "weights.safetensors", 400), "run/weights.safetensors: damaged, or no "),
    "other weights": (half, "run/weights.safetensors: W1 is BF16(3, 9) in the file and float32(3, 9) in the network"),
    "wrong type": (
        lambda run: rewrite(run, retype),
        "run/weights.safetensors: W1 is float64(3, 9) in the file and float32(3, 9) in the network",
    ),
    "wrong shape": (
        lambda run: rewrite(run, transpose),
        "run/weights.safetensors: W1 is float32(9, 3) in the file and float32(3, 9) in the network",
    ),
    "missing array": (
        lambda run: rewrite(run, without), "run/weights.safetensors: b2 is only in the network"
    ),
    "one array more": (
        lambda run: rewrite(run, lambda arrays: arrays | {"W9": np.ones(3)}),
        "run/weights.safetensors: W9 is only in the file",
    ),
}  # fmt: skip
"""What is done to a run, and what its error begins with."""


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_run_is_named(handgrad: Command, run: Path, runs: Path, case: str) -> None:
    """The file and what is wrong with it; the same for every command that opens a run."""
    do, problem = DAMAGE[case]
    do(run)
    for arguments in (
        ["predict", "run", str(runs / "pets.csv")],
        ["evaluate", "run", str(runs / "pets.csv")],
    ):
        done = handgrad(*arguments, code=1)
        assert done.stderr.startswith(f"Error: {problem}"), done.stderr
        assert done.stdout == ""
    if case != "no run.json":
        assert handgrad("show", "run", code=1).stderr.startswith(f"Error: {problem}")


def _cut_settings(run: Path) -> None:
    """Write the settings without the training's, as a copy that was cut short has them."""
    path = run / "config.toml"
    path.write_text(path.read_text().partition("[training]")[0])


@pytest.mark.parametrize(
    ("do", "problem"),
    [
        (lambda run: (run / "config.toml").unlink(), "run/config.toml: No such file or directory"),
        (lambda run: (run / "config.toml").write_text("[data"), "run/config.toml: not TOML: "),
        (
            lambda run: (run / "config.toml").write_text("[data]\ntest = 7\n"),
            "run/config.toml, line 2: data.test is 7",
        ),
        (lambda run: (run / "config.toml").write_text(""), "run/config.toml: empty: it has no data.source"),
        (_cut_settings, "run/config.toml: damaged: it has no training.seed"),
    ],
)
def test_damaged_settings_are_named_where_they_are_needed(
    handgrad: Command, run: Path, do: Any, problem: str, runs: Path
) -> None:
    """To find the test rows again; predicting needs no settings."""
    do(run)
    commands = (
        ["evaluate", "run"],
        ["explain", "run"],
        ["bench", "run"],
        ["train", "--resume", "run"],
        ["show", "run"],
    )
    for command in commands:
        assert handgrad(*command, code=1).stderr.startswith(f"Error: {problem}"), command
    handgrad("predict", "run", runs / "pets.csv")
    handgrad("evaluate", "run", runs / "pets.csv")


def test_pictures_and_records_are_not_needed(handgrad: Command, run: Path, runs: Path) -> None:
    """A run without its history and its picture predicts, scores and shows."""
    (run / "history.jsonl").unlink()
    (run / "learning_curve.png").unlink()
    assert len(handgrad("predict", "run", runs / "pets.csv").stdout.splitlines()) == 61
    assert "z1 = " in handgrad("show", "run").stdout


# ---------------------------------------------------------------------------------- all sorts of damage


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from _places(item, (*place, key))


def _put(table: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    changed = inner = copy.deepcopy(table)
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return changed


VALUES = [None, 0, -1, 2, 1.5, 10**30, "x", "", [], {}, [[]], ["x"], [1], {"type": "Linear"}, {"a": 1}, True]


def test_no_value_anywhere_in_run_json_is_a_traceback(run: Path) -> None:
    """Every value replaced by others of every type: a run that answers, or an error of handgrad's."""
    table = json.loads((run / "run.json").read_text())
    refused = opened = 0
    for place in _places(table):
        for value in VALUES:
            (run / "run.json").write_text(json.dumps(_put(table, place, value)))
            try:
                network = load_run(run).network
            except HandgradError:
                refused += 1
            else:
                assert network.predict(np.ones((2, *network.row))).shape[0] == 2
                opened += 1
    assert refused > 300
    assert opened > 20


@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_no_byte_of_the_weights_is_a_traceback(
    runs: Path, tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    """Bytes of the header replaced, or the file cut anywhere: the run opens, or handgrad says why not."""
    source = runs / "runs" / "pets"
    content = bytearray((source / "weights.safetensors").read_bytes())
    header = 8 + int.from_bytes(content[:8], "little")
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, header - 1))] = data.draw(st.integers(0, 255))
    size = data.draw(st.sampled_from([len(content), len(content) - 1, header, header + 9]))
    folder = tmp_path_factory.mktemp("run")
    shutil.copy(source / "run.json", folder)
    (folder / "weights.safetensors").write_bytes(content[:size])
    try:
        load_run(folder)
    except HandgradError as error:
        assert str(folder) in str(error)  # noqa: PT017 - it may also open
