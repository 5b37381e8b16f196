"""Run folders and the files in them: there and back, whole or not at all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import (
    Adam,
    BatchNorm,
    DataError,
    Dropout,
    Embedding,
    History,
    Linear,
    MeanSquaredError,
    Network,
    ReLU,
    Residual,
    RunError,
    SoftmaxCrossEntropy,
    Standardise,
    train,
)
from handgrad.data import Dataset
from handgrad.files import LEFT_BEHIND, FolderLock, write_file, write_output
from handgrad.runs import Run, delete_files, load_run, match_classes, save_run

Array = NDArray[Any]

X = np.random.default_rng(0).normal(size=(30, 4))
HISTORY = History("accuracy")


def classifier() -> Network:
    return Network(
        Standardise(over="all"),
        Linear(4, 6, layout="out_in"),
        BatchNorm(momentum=0.2),
        ReLU(),
        Residual(Linear(6, 6, bias=False), Dropout(0.1)),
        Linear(6, 3),
        loss=SoftmaxCrossEntropy(smoothing=0.1, class_weight=[1.0, 2.0, 0.5]),
        seed=4,
        dtype="float64",
    )


def run_of(network: Network, **more: Any) -> Run:
    return Run(
        network,
        "pets.csv",
        "classification",
        "kept",
        ("a", "b", "ü"),
        tuple("wxyz"),
        {"test_accuracy": 0.5},
        **more,
    )


def test_a_run_is_the_same_when_it_is_opened_again(tmp_path: Path) -> None:
    """The trained network to the last bit, running statistics included, and all that was said of it."""
    network = classifier()
    train(network, X, np.arange(30) % 3, epochs=2, optimiser=Adam(0.01))
    run = run_of(network)
    save_run(tmp_path / "run", run, HISTORY, "x = 1\n")
    opened = load_run(tmp_path / "run")
    assert repr(opened.network) == repr(network)
    assert (opened.network.dtype, opened.network.seed, opened.network.row) == ("float64", 4, (4,))
    assert opened.network.arrays.keys() == network.arrays.keys()
    for name, array in network.arrays.items():
        assert opened.network.arrays[name].tobytes() == array.tobytes(), name
    assert opened.network.predict(X).tobytes() == network.predict(X).tobytes()
    for name, value in vars(run).items():
        assert name == "network" or getattr(opened, name) == value
    assert (tmp_path / "run" / "config.toml").read_text() == "x = 1\n"


def test_a_run_of_values_over_indices(tmp_path: Path) -> None:
    """Several targets, no classes, rows that are indices alone."""
    network = Network(Embedding(7, 3), Linear(3, 2), inputs=(), loss=MeanSquaredError())
    save_run(tmp_path, Run(network, "t.npz", "regression", ["u", "v"]), History("r2"), "")
    opened = load_run(tmp_path)
    assert (opened.task, opened.target, opened.classes, opened.feature_names) == (
        "regression",
        ["u", "v"],
        (),
        (),
    )
    np.testing.assert_array_equal(opened.network.output(np.arange(7)), network.output(np.arange(7)))


@pytest.mark.parametrize(
    "view",
    [
        lambda W: np.ascontiguousarray(W.T).T,
        lambda W: np.repeat(W, 2, axis=1)[:, ::2],
        lambda W: W[:, ::-1].copy()[:, ::-1],
        lambda W: np.asfortranarray(W),
    ],
    ids=["transposed", "every second column", "backwards", "by columns"],
)
def test_weights_are_saved_as_they_read_not_as_they_lie(tmp_path: Path, view: Any) -> None:
    """A parameter may be a view of other memory: its numbers are saved in its own order."""
    network = Network(Linear(4, 3), loss=SoftmaxCrossEntropy())
    W = network.parameters["W1"].copy()
    network.parameters._arrays["W1"] = view(W)
    assert not network.parameters["W1"].flags.c_contiguous
    save_run(tmp_path, run_of(network), HISTORY, "")
    np.testing.assert_array_equal(load_run(tmp_path).network.parameters["W1"], W)


def test_saving_over_a_run_never_mixes_the_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped at any file that is written or moved, the folder holds the old run, no run, or the new one, and goes on."""
    old, new = (
        Network(Linear(4, 3), loss=SoftmaxCrossEntropy()),
        Network(Linear(4, 3), loss=SoftmaxCrossEntropy(), seed=1),
    )
    calls, stop_at, found = 0, 0, []

    def stopping(original: Any) -> Any:
        def call(*arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == stop_at:
                raise KeyboardInterrupt
            return original(*arguments)

        return call

    while not found or found[-1] != "new":
        stop_at += 1
        folder = tmp_path / str(stop_at)
        calls = -1000
        save_run(folder, run_of(old), HISTORY, "old", files={"checkpoint.safetensors": b"old"})
        calls = 0
        with monkeypatch.context() as patched:
            patched.setattr("handgrad.runs.write_file", stopping(write_file))
            patched.setattr("handgrad.runs.delete_files", stopping(delete_files))
            patched.setattr(Path, "rename", stopping(Path.rename))
            patched.setattr(Path, "replace", stopping(Path.replace))
            try:
                save_run(folder, run_of(new), HISTORY, "new", overwrite=True)
                found.append("new")
            except KeyboardInterrupt:
                if (folder / "run.json").exists():
                    assert load_run(folder).network.seed == 0
                    assert (folder / "checkpoint.safetensors").read_bytes() == b"old"
                found.append("old" if (folder / "run.json").exists() else "none")
        save_run(folder, run_of(new), HISTORY, "new", overwrite=True)
        assert load_run(folder).network.seed == 1
        assert not (folder / "checkpoint.safetensors").exists()
        assert not (folder / "new").exists()
    assert found == sorted(found, key=["old", "none", "new"].index)
    assert set(found) == {"old", "none", "new"}


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    """Neither a run nor a file of somebody's own that has the name of one of a run's; others are left alone."""
    run = run_of(classifier())
    save_run(tmp_path / "run", run, HISTORY, "")
    (tmp_path / "own").mkdir()
    for name in ("history.csv", "mine.txt"):
        (tmp_path / "own" / name).write_text("mine")
    for folder, found in (("run", "holds a run"), ("own", "holds history.csv, though no run")):
        with pytest.raises(RunError, match=found) as caught:
            save_run(tmp_path / folder, run, HISTORY, "")
        assert "overwrite=True" in caught.value.fix
    assert {path.name for path in (tmp_path / "own").iterdir()} == {"history.csv", "mine.txt"}
    (tmp_path / "log").mkdir()  # a history.jsonl of another program is no training that was killed
    (tmp_path / "log" / "history.jsonl").write_text('{"event": 1}\n')
    with pytest.raises(RunError, match=r"log: holds history\.jsonl, though no run"):
        save_run(tmp_path / "log", run, HISTORY, "")
    (tmp_path / "project" / "new").mkdir(parents=True)  # where the new run is written first
    (tmp_path / "project" / "new" / "thesis.txt").write_text("mine")
    with pytest.raises(RunError, match=r"new: holds thesis\.txt, which is no run's"):
        save_run(tmp_path / "project", run, HISTORY, "", overwrite=True)
    assert (tmp_path / "project" / "new" / "thesis.txt").read_text() == "mine"
    (tmp_path / "project" / "new" / "thesis.txt").unlink()
    (
        tmp_path / "project" / "new" / "tensorboard"
    ).mkdir()  # what a training that was killed has left is replaced
    for left in (".lock", "config.toml", ".weights.safetensors.12345678.tmp"):
        (tmp_path / "project" / "new" / left).touch()
    save_run(tmp_path / "project", run, HISTORY, "", overwrite=True)
    save_run(tmp_path / "own", run, HISTORY, "", overwrite=True)
    assert (tmp_path / "own" / "history.csv").read_text() != "mine"
    assert (tmp_path / "own" / "mine.txt").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_known_before_the_training(tmp_path: Path) -> None:
    """Also for root, to whom every permission is given: a file is no folder. Nothing is left behind."""
    (tmp_path / "file").write_text("")
    for folder, why in (
        (tmp_path / "file", "it is no folder"),
        (tmp_path / "file" / "deep", "Not a directory"),
    ):
        with pytest.raises(RunError) as caught, FolderLock(folder):
            pass
        assert str(caught.value).splitlines()[0] == f"{folder}: cannot be written: {why}"
    with FolderLock(tmp_path / "new" / "run"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    with pytest.raises(RunError, match="cannot be written"):
        save_run(tmp_path / "file" / "below", run_of(classifier()), HISTORY, "")


def test_a_file_of_another_size_is_not_read(tmp_path: Path) -> None:
    """A run.json of gigabytes is not ours: it is refused before it is read."""
    with (tmp_path / "run.json").open("wb") as file:
        file.truncate(65 * 2**20)
    with pytest.raises(RunError, match=r"run.json: 68,157,440 bytes, and a run's has at most 67,108,864"):
        load_run(tmp_path)


def test_classes_are_matched_by_name() -> None:
    """The numbers of a data set become the run's; a class the run does not know is named."""
    run = run_of(classifier())

    def dataset(t: list[int], *classes: str) -> Dataset:
        return Dataset("new.csv", np.ones((len(t), 4)), np.array(t), "classification", classes)

    assert match_classes(run, dataset([0, 1, 1], "b", "ü")).tolist() == [1, 2, 2]
    assert match_classes(run, dataset([0, 2, 1], "a", "b", "ü")).tolist() == [0, 2, 1]
    assert match_classes(run, dataset([2, 0, 1], "ü", "b", "a")).tolist() == [0, 2, 1]
    with pytest.raises(DataError) as caught:
        match_classes(run, dataset([0, 1], "a", "c"))
    assert str(caught.value) == (
        "new.csv: the class 'c' is not one of the run's\n  given  the run's classes are a, b, ü"
    )


# ------------------------------------------------------------------------------------------ files


def test_a_file_is_written_with_its_folders(tmp_path: Path) -> None:
    """Text in UTF-8 or bytes; an older file is replaced; nothing else is left."""
    path = tmp_path / "new" / "deep" / "file.txt"
    write_file(path, "→ ü\n")
    assert path.read_bytes() == "→ ü\n".encode()
    write_file(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert list(path.parent.iterdir()) == [path]


def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever step fails, the old content stays, and no temporary file."""
    path = tmp_path / "file.txt"
    write_file(path, "old")

    def fail(*arguments: Any, **more: Any) -> None:
        raise OSError(28, "No space left on device")

    for where, name in ((os, "fsync"), (Path, "replace")):
        with monkeypatch.context() as patched:
            patched.setattr(where, name, fail)
            with pytest.raises(RunError) as caught:
                write_file(path, "new")
        assert str(caught.value) == f"{path}: cannot be written: No space left on device"
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]


def test_a_path_that_the_user_names_may_be_no_file(tmp_path: Path) -> None:
    """A device is written to and not replaced, also where it leads to a file, as /dev/stdout may."""
    write_output(Path(os.devnull), "text")
    assert not Path(os.devnull).is_file()
    with (tmp_path / "file").open("w") as file:
        write_output(Path(f"/dev/fd/{file.fileno()}"), "text")
    write_output(tmp_path / "other", "text")
    assert (tmp_path / "file").read_text() == (tmp_path / "other").read_text() == "text"
    (tmp_path / "folder").mkdir()
    with pytest.raises(RunError, match="folder: cannot be written: Is a directory"):
        write_output(tmp_path / "folder", "text")


def test_what_a_killed_process_left_is_cleared(tmp_path: Path) -> None:
    """By the next that locks the folder, and nothing else is; what cannot be removed does not matter."""
    for name in (".a.json.0123abcd.tmp", ".mine.tmp", "a.json"):
        (tmp_path / name).write_text("")
    (tmp_path / ".b.json.0123abcd.tmp").mkdir()
    with FolderLock(tmp_path):
        assert {path.name for path in tmp_path.iterdir()} == {
            ".mine.tmp",
            "a.json",
            ".b.json.0123abcd.tmp",
            ".lock",
        }


WRITER = """
import sys
from pathlib import Path
from handgrad.files import write_file
print("ready", flush=True)
for turn in range(10**6):
    write_file(Path(sys.argv[1]), ("A" if turn % 2 else "B") * 500_000)
"""


def test_a_file_is_whole_however_its_writer_ends(tmp_path: Path) -> None:
    """Killed while it writes again and again, a process leaves one whole version or the other."""
    path = tmp_path / "file.txt"
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        process.stdout.readline()
        while len(list(tmp_path.iterdir())) < 2:  # until it is in the middle of writing again
            pass
        process.kill()
        process.stdout.close()
        assert process.wait(timeout=60) == -signal.SIGKILL
        assert len(list(tmp_path.glob(LEFT_BEHIND))) < 2
        text = path.read_text()
        assert text in ("A" * 500_000, "B" * 500_000)
        path.unlink()
        for left in tmp_path.iterdir():
            left.unlink()


def test_run_json_is_for_people_too(tmp_path: Path) -> None:
    """Indented, with the network as a table of its layers."""
    save_run(tmp_path, run_of(classifier()), HISTORY, "")
    text = (tmp_path / "run.json").read_text(encoding="utf-8")
    head = json.loads(text)
    assert text.startswith('{\n  "format": 2,\n  "network": {\n    "layers": [\n')
    assert head["network"]["layers"][1] == {"type": "Linear", "inputs": 4, "outputs": 6, "layout": "out_in"}
    assert head["network"]["loss"] == {
        "type": "SoftmaxCrossEntropy",
        "smoothing": 0.1,
        "class_weight": [1.0, 2.0, 0.5],
    }
