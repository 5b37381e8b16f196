"""Run folders of strangers: links, bombs, lies about sizes, names that lead elsewhere; refused before they cost anything."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file

from handgrad import HalfSquaredError, HandgradError, History, Layer, Linear, Network, RunError
from handgrad.checkpoints import read_checkpoint, read_past
from handgrad.configuration import read_configuration
from handgrad.layers import Graph, Value
from handgrad.runs import Run, load_run, read_facts, read_snapshots, save_run

RUN = Path(__file__).parents[1] / "fuzz" / "corpus" / "run"
FORMAT_1 = Path(__file__).parent / "format1"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Copy a sound run folder, unfinished and finished in one."""
    return Path(shutil.copytree(RUN, tmp_path / "run"))


def kept() -> dict[str, Any]:
    network = load_run(RUN).network
    slots = network.program().slots
    return {**network.arrays, **{name: np.zeros(shape, "float32") for name, shape in slots.items()}}


READ: dict[str, Callable[[Path], Any]] = {
    "run.json": load_run,
    "weights.safetensors": load_run,
    "snapshots.jsonl": read_snapshots,
    "checkpoint.safetensors": lambda run: read_past(run / "checkpoint.safetensors"),
}


@pytest.mark.parametrize("name", READ)
def test_links_out_of_the_folder_are_refused(run: Path, tmp_path: Path, name: str) -> None:
    """Even to a sound file: what is read is what the folder holds. A link within it is no harm."""
    outside = tmp_path / "outside"
    shutil.move(run / name, outside)
    (run / name).symlink_to(outside)
    with pytest.raises(RunError, match=f"{name}: is a link that leads out of the folder"):
        READ[name](run)
    (run / name).unlink()
    shutil.move(outside, run / "inside")
    (run / name).symlink_to("inside")
    READ[name](run)


@pytest.mark.parametrize("name", READ)
def test_a_link_to_itself_a_pipe_and_a_folder(run: Path, name: str) -> None:
    """None of them hangs the reader."""
    (run / name).unlink()
    (run / name).symlink_to(name)
    with pytest.raises(RunError, match=name):
        READ[name](run)
    (run / name).unlink()
    os.mkfifo(run / name)
    with pytest.raises(RunError, match=f"{name}: is a pipe or a device, and no file"):
        READ[name](run)
    (run / name).unlink()
    (run / name).mkdir()
    with pytest.raises(RunError, match=f"{name}: is a folder, and no file"):
        READ[name](run)


@pytest.mark.parametrize("name", ["run.json", "snapshots.jsonl"])
def test_a_file_of_gigabytes_is_not_read(run: Path, name: str) -> None:
    with (run / name).open("wb") as file:
        file.truncate(2**33)
    with pytest.raises(RunError, match=r"8,589,934,592 bytes, and a run's has at most 67,108,864"):
        READ[name](run)


def head_of(path: Path, **changes: Any) -> bytes:
    """Return a safetensors file whose head lies."""
    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    head = json.loads(content[8 : 8 + size]) | changes
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + content[8 + size :]


LIES: dict[str, Callable[[Path], bytes]] = {
    "a head of 2⁶³ bytes": lambda path: struct.pack("<Q", 2**63) + path.read_bytes()[8:],
    "a head longer than the file": lambda path: struct.pack("<Q", 10**6) + path.read_bytes()[8:],
    "more data than there is": lambda path: head_of(
        path, W1={"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}
    ),
    "a size that runs over": lambda path: head_of(
        path, W1={"dtype": "F32", "shape": [2**33, 2**33], "data_offsets": [0, 16]}
    ),
    "a size below zero": lambda path: head_of(
        path, W1={"dtype": "F32", "shape": [-1], "data_offsets": [0, 16]}
    ),
    "a size that is no number": lambda path: path.read_bytes().replace(b"[2,2]", b"[NaN]"),
    "data that overlaps": lambda path: head_of(
        path, W1={"dtype": "F32", "shape": [2, 2], "data_offsets": [4, 20]}
    ),
    "another name": lambda path: path.read_bytes().replace(b"W1", b"..", 1),
    "a name that leads elsewhere": lambda path: head_of(
        path, **{"../../x": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}
    ),
    "nothing": lambda path: b"",
}


@pytest.mark.parametrize("name", ["weights.safetensors", "checkpoint.safetensors"])
@pytest.mark.parametrize("lie", LIES)
def test_lies_about_sizes_and_names(run: Path, tmp_path: Path, name: str, lie: str) -> None:
    """Refused by the file's name; nothing is made for them, and nothing is written anywhere."""
    path = run / name
    path.write_bytes(LIES[lie](path))
    before = sorted(tmp_path.rglob("*"))
    arrays = kept()
    tracemalloc.start()
    with pytest.raises(HandgradError, match=name):
        load_run(run) if name.startswith("weights") else read_checkpoint(path, arrays)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * 2**20
    assert sorted(tmp_path.rglob("*")) == before


def damage_json(run: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = run / "run.json"
    table = json.loads(path.read_text())
    change(table)
    path.write_text(json.dumps(table))


def test_a_network_larger_than_its_weights_is_not_made(run: Path) -> None:
    """Shapes are compared before an array is: a layer of 4 TB costs nothing."""
    layers = [
        {"type": "Linear", "inputs": 10**6, "outputs": 10**6},
        {"type": "Linear", "inputs": 10**6, "outputs": 2},
    ]
    damage_json(run, lambda table: table["network"].update(layers=layers, row=[10**6]))
    tracemalloc.start()
    with pytest.raises(RunError, match=r"W1 is float32\(2, 2\) in the file and float32\(1000000, 1000000\)"):
        load_run(run)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * 2**20


@pytest.mark.parametrize("what", ["layers", "nested", "repeated", "nested and repeated"])
def test_a_file_of_many_layers_costs_no_minutes(
    run: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Of a few characters each, or of a few altogether."""
    monkeypatch.setattr("handgrad.layers.graph.MOST_NODES", 500)
    relu: dict[str, Any] = {"type": "ReLU"}
    many = {
        "layers": [relu] * 20_000,
        "nested": [{"type": "Sequential", "layers": [relu] * 100}] * 200,
        "repeated": [{"type": "Repeat", "layers": [relu], "times": 10**9}],
        "nested and repeated": [
            {
                "type": "Repeat",
                "layers": [{"type": "Repeat", "layers": [relu] * 4, "times": 900}],
                "times": 900,
            }
        ],
    }[what]
    damage_json(run, lambda table: table["network"].update(layers=many))
    with pytest.raises(RunError, match=r"20,\d+ layers|times|more than 500 operations"):
        load_run(run)


def test_no_name_in_a_file_forges_a_line(run: Path) -> None:
    """An error has the lines that handgrad gives it."""
    forged = "x\n  fix    curl example.org | sh\x1b[2J"
    path = run / "weights.safetensors"
    path.write_bytes(head_of(path, **{forged: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}))
    with pytest.raises(RunError) as caught:
        load_run(run)
    assert "\n" not in str(caught.value)
    assert "x\\n  fix    curl example.org | sh\\x1b[2J is only in the file" in str(caught.value)
    damage_json(run, lambda table: table["network"]["layers"][1].update({forged: 1}))
    with pytest.raises(RunError) as caught:
        load_run(run)
    assert "curl" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 2  # with the fix that is handgrad's


JSON: dict[str, tuple[str, str]] = {
    "deep": ("[" * 200_000, "damaged, or not handgrad's"),
    "deep objects": ('{"a":' * 200_000, "damaged, or not handgrad's"),
    "twice": ('{"format": 2, "format": 1}', "the key 'format' is there twice"),
    "a number of 9 million digits": ('{"format": ' + "9" * 9_000_000 + "}", "damaged, or not handgrad's"),
    "NaN": ('{"format": NaN}', "format nan, and this handgrad reads 1 and 2"),
    "no text": ("\ud800", "damaged, or not handgrad's"),
}


@pytest.mark.parametrize("what", JSON)
def test_json_that_is_meant_to_hurt(run: Path, what: str) -> None:
    text, said = JSON[what]
    (run / "run.json").write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(RunError, match=f"run.json: .*{said}"):
        load_run(run)
    (run / "snapshots.jsonl").write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(RunError, match=r"snapshots.jsonl:1: damaged"):
        read_snapshots(run)
    with pytest.raises(HandgradError):
        History.from_json_lines(text)


def test_settings_that_are_meant_to_hurt(tmp_path: Path) -> None:
    for text in (
        "a = " + "[" * 100_000,
        "a = 1\na = 2",
        "a." * 50_000 + "b = 1",
        "\0",
        "training.epochs = 1e999",
    ):
        (tmp_path / "config.toml").write_text(text)
        with pytest.raises(HandgradError, match=r"config\.toml"):
            read_configuration(tmp_path / "config.toml", {})


def test_a_checkpoint_whose_numbers_contradict_each_other(run: Path) -> None:
    """Positions below zero or past the history are no place to go on from."""
    path = run / "checkpoint.safetensors"
    sound = path.read_bytes()
    for before, after in ((b'\\"epoch\\":3,\\"best', b'\\"epoch\\":2,\\"best'), (b'\\"batches\\":0', b'\\"batches\\":-'),
                          (b'\\"format\\":1', b'\\"format\\":7')):  # fmt: skip
        assert before in sound
        path.write_bytes(sound.replace(before, after))
        with pytest.raises(RunError, match=r"checkpoint\.safetensors"):
            read_past(path)


def test_what_trained_a_run_is_its_history_s_first_line(run: Path) -> None:
    """Without what a terminal would obey; a line of more than 64 KiB is none of ours, and neither is no line."""
    facts = {"engine": "compiled\x1b[2J\n", "blas": "", "threads": 2}
    for length, expected in ((0, {"engine": "compiled[2J", "threads": 2}), (2**16, {})):
        line = json.dumps({"facts": facts, "more": "x" * length})
        (run / "history.jsonl").write_text(f"{line}\n[1]\n")
        assert read_facts(run) == expected
    (run / "history.jsonl").unlink()
    assert read_facts(run) == {}


# -------------------------------------------------------------------------------------------- formats


def test_format_1_is_still_read() -> None:
    """A folder that the first version wrote: its network answers with its own numbers."""
    run = load_run(FORMAT_1)
    weights = load_file(FORMAT_1 / "weights.safetensors")
    assert json.loads((FORMAT_1 / "run.json").read_text())["format"] == 1
    assert run.network.arrays.keys() == weights.keys()
    assert (run.source, run.task, run.classes) == ("moons", "classification", ("0", "1"))
    assert run.network.predict(np.array([[0.0, 1.0], [1.0, -0.5]])).argmax(axis=1).tolist() == [0, 1]
    assert read_configuration(FORMAT_1 / "config.toml", {}).training.epochs == 40
    assert len(History.from_json_lines((FORMAT_1 / "history.jsonl").read_text()).epochs) == 40


@dataclass(frozen=True, eq=False, repr=False)
class Twice(Layer):
    """A layer of one's own."""

    sure: bool = True

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return Linear(3, 3).connect(graph, x)


@dataclass(frozen=True, eq=False, repr=False)
class OwnError(HalfSquaredError):
    """A loss of one's own."""


def test_layers_of_ones_own_are_named_and_given(tmp_path: Path) -> None:
    """A run folder never names code to be run: who opens it gives the layers; else the error says where they were."""
    network = Network(Linear(4, 3), Twice(sure=False), Linear(3, 1), loss=OwnError())
    save_run(tmp_path, Run(network, "x.csv", "regression"), History("r2"), "")
    for given, missing in (([], "OwnError|Twice"), ([Twice], "OwnError"), ([OwnError], "Twice")):
        with pytest.raises(
            RunError, match=rf"the network has a ({missing}), .* defined in .*test_hostile\.py"
        ):
            load_run(tmp_path, own=given)
    opened = load_run(tmp_path, own=[Twice, OwnError]).network
    assert repr(opened) == repr(network)
    x = np.ones((2, 4))
    np.testing.assert_array_equal(opened.predict(x), network.predict(x))


PEAK = """
import json, sys
import pyarrow as pa
from handgrad.data import load

data = load(sys.argv[1], target="t")
peak = pa.default_memory_pool().max_memory()
print(json.dumps([[len(name) for name in data.classes], data.t.tolist(), peak]))
"""


def test_a_parquet_file_of_a_long_text_stays_small(tmp_path: Path) -> None:
    """A text that stands once in the file for all its rows stands once in memory too: 100 kB do not become 400 MB."""
    rows, text = 400, "x" * 2**20
    column = pa.DictionaryArray.from_arrays(pa.array([row % 2 for row in range(rows)]), [text, text + "y"])
    table = pa.table({"a": np.arange(float(rows)), "t": column})
    path = tmp_path / "long.parquet"
    pq.write_table(table, path, store_schema=False)
    # In a process of its own: the peak is this load's, whatever other tests took before.
    done = subprocess.run([sys.executable, "-c", PEAK, path], capture_output=True, text=True, check=True)
    classes, t, peak = json.loads(done.stdout)
    assert classes == [2**20, 2**20 + 1]
    assert t == [row % 2 for row in range(rows)]
    assert 2**20 < peak < 100 * 2**20
