"""`handgrad train` and its run folder: stopped and gone on with, refused, followed while it runs."""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
import signal
import struct
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from handgrad import History, Network, RunError
from handgrad.cli import group
from handgrad.errors import HandgradNotice
from handgrad.runs import load_run
from handgrad.training import EpochRecord

from ..conftest import Command, Server

SMALL = ["--hidden", "5", "--epochs", "6", "--seed", "3"]
CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus" / "run"
LONG = ["moons", "--hidden", "5", "--epochs", "100000", "--out", "run"]


def write_table(
    path: Path, rows: int = 40, columns: int = 2, seed: int = 0, names: str = "abcdef",
    classes: Sequence[str] = ("0", "1"),
) -> None:  # fmt: skip
    x = np.random.default_rng(seed).normal(size=(rows, columns)).round(3)
    lines = [",".join([*(f"{value:g}" for value in row), classes[int(row[0] > 0)]]) for row in x]
    path.write_text("\n".join([",".join([*names[:columns], "t"]), *lines]) + "\n")


def started(server: Server, folder: Path, *arguments: str) -> int:
    """Start the command, and wait until its history has an epoch and a checkpoint is there."""
    checkpoint = folder / "run" / "checkpoint.safetensors"
    before = checkpoint.stat().st_ino if checkpoint.exists() else None
    process = server.start(folder, ["train", *arguments], [os.devnull, folder / "out", folder / "err"])
    while not checkpoint.exists() or checkpoint.stat().st_ino == before:
        assert server.poll(process) is None, (folder / "err").read_text()
        time.sleep(0.01)
    return process


def end(server: Server, process: int, number: signal.Signals) -> int:
    """Send a signal; return the exit code."""
    os.kill(process, number)
    return server.wait(process)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Path:
    """Train on a table of one's own, far too long, and stop it."""
    folder = tmp_path_factory.mktemp("stopped")
    write_table(folder / "t.csv")
    process = started(server, folder, "t.csv", "--target", "t", *LONG[1:])
    assert end(server, process, signal.SIGINT) == 130
    return folder


@pytest.fixture
def again(stopped: Path, tmp_path: Path) -> Path:
    """Copy it, so that each test has its own."""
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    config = tmp_path / "run" / "config.toml"
    config.write_text(config.read_text().replace(str(stopped), str(tmp_path)))
    return tmp_path


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_keeps_the_last_epoch_and_its_number_is_in_the_exit_code(
    server: Server, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """128 more than the signal's, as shells have it; the results are printed; the folder is a run, and can go on."""
    process = started(server, tmp_path, *LONG, "--json")
    assert end(server, process, number) == code
    results, err = json.loads((tmp_path / "out").read_text()), (tmp_path / "err").read_text()
    assert results["stopped"] == "interrupted"
    *err, last = err.splitlines()
    assert last == "Interrupted; to resume: handgrad train --resume run"
    assert abs(len(err) - results["epochs"]) <= 1  # the signal may come before an epoch's line, or after
    assert {"run.json", "checkpoint.safetensors"} <= {path.name for path in (tmp_path / "run").iterdir()}


def test_the_history_can_be_read_while_it_runs(server: Server, tmp_path: Path, handgrad: Command) -> None:
    """As JSON Lines and as CSV, an epoch after the other; the folder is locked meanwhile."""
    process = started(server, tmp_path, *LONG)
    while len((text := (tmp_path / "run" / "history.jsonl").read_text()).splitlines()) < 3:
        time.sleep(0.01)
    history = History.from_json_lines(text[: text.rindex("\n") + 1])
    assert history.stopped == "running"
    rows = list(csv.DictReader((tmp_path / "run" / "history.csv").read_text().splitlines()[:3]))
    assert [float(row["loss"]) for row in rows] == [record.loss for record in history.epochs[:2]]
    assert list(rows[0]) == [*EpochRecord.__dataclass_fields__]
    second = handgrad("train", "--resume", "run", code=1)
    assert end(server, process, signal.SIGKILL) == -signal.SIGKILL
    assert second.stdout == ""
    assert second.stderr.startswith(
        f"Error: run: another process is training into this folder: its process id is {process}\n"
    )


REFUSED: dict[str, tuple[list[str], int, str]] = {
    "rate": (
        ["--learning-rate", "0.5"],
        1,
        "training.optimiser is Adam(0.5), and the run in run has Adam(0.003)",
    ),
    "hidden": (["--hidden", "6"], 1, "--hidden is [6], and the run in run has [5]"),
    "engine": (["--engine", "reference"], 1, "--engine is 'reference', and the run in run has 'compiled'"),
    "data": (["moons"], 1, "data.source is 'moons', and the run in run has "),
    "folder": (["--out", "other"], 2, "Give --out or --resume"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_other_settings_are_named(again: Path, handgrad: Command, what: str) -> None:
    more, code, said = REFUSED[what]
    assert said in handgrad("train", "--resume", "run", *more, code=code).stderr


def test_changed_data_is_named(again: Path, handgrad: Command) -> None:
    """Rows, columns, or the numbers; also when a finished run is scored on its own rows again."""
    cases = {
        "x has 41 rows, and had 40": {"rows": 41},
        "x has 3 columns, and had 2 columns": {"columns": 3},
        "the numbers in x are others": {"seed": 1},
        "the names of the columns are others": {"names": "ac"},
        "the names of the classes are others": {"classes": ["low", "up"]},
    }
    for said, change in cases.items():
        write_table(again / "t.csv", **change)
        for command in (["train", "--resume", "run"], ["evaluate", "run"]):
            assert f"the data has changed since the run: {said}" in handgrad(*command, code=1).stderr


def test_the_same_settings_may_be_given_again(server: Server, again: Path) -> None:
    """And the file may be named from where one stands."""
    process = started(
        server, again, "t.csv", "--target", "t", "--epochs", "100000", "--resume", "run"
    )  # until the checkpoint is another
    assert end(server, process, signal.SIGINT) == 130


def test_a_finished_run_has_nothing_to_go_on_with(handgrad: Command) -> None:
    """Its results are printed again, so that a script may ask until it is finished."""
    handgrad("train", "moons", *SMALL, "--out", "run")
    done = handgrad("train", "--resume", "run", "--json")
    assert done.stderr == "run: the training is finished\n"
    scores = {"test_accuracy", "test_balanced_accuracy", "test_f1", "test_roc_auc"}
    assert json.loads(done.stdout).keys() == {*scores, "run"}


def test_an_unfinished_run_says_how_it_goes_on(again: Path, handgrad: Command) -> None:
    (again / "run" / "run.json").unlink()
    said = handgrad("predict", "run", "t.csv", code=1).stderr
    assert "the training is not finished: handgrad train --resume run" in said


def test_nothing_comes_of_a_folder_that_is_none(handgrad: Command, tmp_path: Path) -> None:
    assert "there is no training to resume" in handgrad("train", "--resume", "no", code=1).stderr
    assert list(tmp_path.iterdir()) == []


def records(content: bytes) -> Iterator[bytes]:
    """Yield the records of a file: each has its length, a checksum, the bytes, and a checksum."""
    while content:
        (size,) = struct.unpack("<Q", content[:8])
        yield content[12 : 12 + size]
        content = content[16 + size :]


@pytest.mark.peers
def test_event_files_for_tensorboard(again: Path, handgrad: Command) -> None:
    """Every epoch's numbers, as the history has them; what goes on begins a file that passes over what was later."""
    from tensorboardX.proto.event_pb2 import Event

    handgrad("train", "moons", *SMALL, "--tensorboard", "--out", "watched")
    (events,) = (again / "watched" / "tensorboard").iterdir()
    history = History.from_json_lines((again / "watched" / "history.jsonl").read_text())
    seen = {
        (value.tag, event.step): value.simple_value
        for event in map(Event.FromString, records(events.read_bytes()))
        for value in event.summary.value
    }
    for record in history.epochs:
        assert seen["loss/training", record.epoch] == np.float32(record.loss)
        assert seen["accuracy/validation", record.epoch] == np.float32(record.validation_metric)
    assert {name for name, _ in seen} == {
        "loss/training", "loss/validation", "accuracy/validation", "learning_rate", "seconds"
    }  # fmt: skip


def test_without_its_package_tensorboard_is_an_error_before_training(
    tmp_path: Path, handgrad: Command
) -> None:
    arguments = ["train", "moons", *SMALL, "--tensorboard", "--out", "run"]
    done = handgrad(*arguments, code=1, missing=["tensorboardX"])
    assert "Error: writing event files for TensorBoard needs the package tensorboardX" in done.stderr
    assert "pip install 'handgrad[tensorboard]'" in done.stderr
    assert not (tmp_path / "run").exists()


# -------------------------------------------------------------------------------------------- in this process

XOR = ["train", "xor", "--hidden", "3", "--epochs", "1", "--test", "0", "--validation", "0", "--out", "run"]


def test_a_disk_that_stays_full_loses_no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there never was a checkpoint, they are saved elsewhere, and it is said where; in a thread, as it happens."""

    def fsync(descriptor: int) -> None:
        if "/run/" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def command() -> None:
        with pytest.raises(RunError, match="No space left on device") as caught:
            group.main(XOR, standalone_mode=False)
        notes.extend(caught.value.__notes__)

    notes: list[str] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("handgrad.files.os.fsync", fsync)
    thread = threading.Thread(target=command)
    with warnings.catch_warnings(record=True) as caught_notices:
        warnings.simplefilter("always")
        thread.start()
        thread.join()
    assert {notice.category for notice in caught_notices} == {HandgradNotice}
    (note,) = notes
    (place,) = tmp_path.glob("handgrad-*.safetensors")
    assert note == f"The trained network is saved in {place}: handgrad.Network.load opens it."
    assert Network.load(place).output_shape[-1] == 2


def test_a_run_folder_that_cannot_be_written_at_the_end_loses_no_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is a checkpoint, so it can be resumed, but nobody may be able to mend the folder."""

    def refuse(*_: object) -> None:
        raise RunError("run: cannot be written: Input/output error")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("handgrad.cli.train.write_run", refuse)
    with pytest.raises(RunError) as caught:
        group.main(XOR, standalone_mode=False)
    (place,) = tmp_path.glob("handgrad-*.safetensors")
    assert caught.value.__notes__ == [
        "To resume: handgrad train --resume run",
        f"The trained network is saved in {place}: handgrad.Network.load opens it.",
    ]


def test_a_run_that_cannot_replace_another_says_how_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is finished and in its folder, and the old one stays; the command then puts it in place."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(CORPUS, tmp_path / "run")

    def refuse(path: Path, **more: bool) -> None:
        if path.parent.name == "run":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        unlink(path, **more)

    unlink = Path.unlink
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refuse)
        with pytest.raises(RunError, match="run: cannot be written: Input/output error") as caught:
            group.main([*XOR, "--overwrite"], standalone_mode=False)
    assert caught.value.__notes__ == ["To resume: handgrad train --resume run"]
    assert load_run("run").source == "d.csv"
    group.main(["train", "--resume", "run"], standalone_mode=False)
    assert load_run("run").source == "xor"
