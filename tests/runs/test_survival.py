"""What a training survives besides being killed: full disks, other processes, changed data, changed settings."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad.files
from handgrad import (
    SGD,
    Adam,
    BatchNorm,
    Checkpoints,
    ConfigurationError,
    DataError,
    Dropout,
    HandgradError,
    History,
    Linear,
    MeanSquaredError,
    Network,
    OneCycle,
    ReLU,
    RunError,
    Standardise,
    train,
)
from handgrad.checkpoints import NAME, read_checkpoint, read_past
from handgrad.errors import EngineError, HandgradNotice
from handgrad.files import FolderLock
from handgrad.training import EpochRecord
from handgrad.training.history import BatchRecord

from ..conftest import EACH_ENGINE, ENVIRONMENT

RNG = np.random.default_rng(3)
X = RNG.normal(size=(47, 5))
T = X[:, :2] * [2, -1] + 0.1 * RNG.normal(size=(47, 2))
HOW: dict[str, Any] = {
    "epochs": 7, "batch_size": 6, "validation": 0.2, "patience": 6, "seed": 5,
    "optimiser": Adam(0.02), "schedule": OneCycle(),
}  # fmt: skip


def network(**more: Any) -> Network:
    layers = [Standardise(), Linear(5, 9), BatchNorm(), ReLU(), Dropout(0.3), Linear(9, 2)]
    return Network(*layers, loss=MeanSquaredError(), **more)


def outcome(network: Network, history: History) -> Any:
    """Return all that must not depend on whether a training was stopped."""
    records = [
        (r.epoch, r.loss, r.validation_loss, r.validation_metric, r.learning_rate) for r in history.epochs
    ]
    weights = {name: array.tobytes() for name, array in network.arrays.items()}
    return weights, records, history.stopped, history.best_epoch


def straight(**more: Any) -> Any:
    """Return the outcome of a training that nothing stops."""
    made = network()
    return outcome(made, train(made, X, T, **HOW | more))


def stopping_at(step: int, error: type[BaseException] = ZeroDivisionError) -> Callable[[BatchRecord], None]:
    def look(record: BatchRecord) -> None:
        if record.step == step:
            raise error

    return look


def stop(folder: Path, step: int, **more: Any) -> None:
    """Train until a step, with a checkpoint after every batch, and break down there."""
    with pytest.raises(ZeroDivisionError):
        train(
            network(), X, T, checkpoints=Checkpoints(folder, minutes=0), after_batch=stopping_at(step), **HOW | more
        )  # fmt: skip


def go_on(folder: Path, **more: Any) -> Any:
    made = network()
    return outcome(made, train(made, X, T, checkpoints=Checkpoints(folder, resume=True), **HOW | more))


@pytest.mark.parametrize("engine", EACH_ENGINE)
@pytest.mark.parametrize("step", [2, 7, 8, 13, 28, 49])
def test_stopped_after_any_step_it_goes_on_to_the_last_bit(tmp_path: Path, engine: str, step: int) -> None:
    """In the middle of an epoch of seven batches, at its end, at the start of the next; on every engine."""
    stop(tmp_path, step, engine=engine)
    assert go_on(tmp_path, engine=engine) == straight(engine=engine)


def test_the_best_weights_and_the_waiting_go_on_too(tmp_path: Path) -> None:
    """The best epoch may lie before the stop, and patience may end after it."""
    how: dict[str, Any] = {"validation": (X[:9], -T[:9]), "patience": 4, "epochs": 30, "schedule": None}
    stop(tmp_path, 26, **how)
    expected = straight(**how)
    assert expected[2:] == ("early", 2)
    assert go_on(tmp_path, **how) == expected


def test_a_training_may_be_stopped_again_and_again(tmp_path: Path) -> None:
    """At every third step once: each time it goes on from there."""
    stop(tmp_path, 3)
    for step in range(6, 50, 3):
        with pytest.raises(ZeroDivisionError):
            train(
                network(), X, T, checkpoints=Checkpoints(tmp_path, minutes=0, resume=True),
                after_batch=stopping_at(step), **HOW
            )  # fmt: skip
    assert go_on(tmp_path) == straight()


def test_ctrl_c_keeps_where_it_was_and_never_goes_back(tmp_path: Path) -> None:
    """The checkpoint is of the last finished epoch, or of the middle of this one where that was kept already."""
    for step, minutes, place in ((17, 60, (2, 0)), (17, 0, (2, 2))):
        made, folder = network(), tmp_path / str(minutes)
        history = train(
            made, X, T, checkpoints=Checkpoints(folder, minutes=minutes),
            after_batch=stopping_at(step, KeyboardInterrupt), **HOW,
        )  # fmt: skip
        assert (history.stopped, len(history.epochs)) == ("interrupted", 2)
        state = read_checkpoint(folder / NAME, _kept(made))
        assert (state.last.epoch, state.done.batches) == place
        assert go_on(folder) == straight()


def _kept(network: Network) -> dict[str, Any]:
    program = network.program(Adam())
    return {**network.arrays, **{name: np.zeros(shape, "float32") for name, shape in program.slots.items()}}


@pytest.mark.parametrize("at", range(1, 7))
def test_ctrl_c_while_a_checkpoint_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Before any of what writing does: the file is the one before or the new one, and no other is left."""
    calls = 0

    def counted(original: Any) -> Any:
        def call(*arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == at + 9:  # three calls a checkpoint: the fourth is the first that is interrupted
                raise KeyboardInterrupt
            return original(*arguments)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(handgrad.files.os, "fsync", counted(os.fsync))
        patched.setattr(Path, "replace", counted(Path.replace))
        history = train(network(), X, T, checkpoints=Checkpoints(tmp_path, minutes=0), **HOW)
    assert history.stopped == "interrupted"
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    assert len(read_past(tmp_path / NAME)[0].epochs) == len(history.epochs)
    assert go_on(tmp_path) == straight()


# -------------------------------------------------------------------------------------------- disks


@pytest.mark.parametrize("problem", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO])
def test_a_disk_that_is_full_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: int
) -> None:
    """Training goes on with a notice; the checkpoint before stays whole; later ones are written again."""
    original, full = os.fsync, True

    def fsync(descriptor: int) -> None:
        if full:
            raise OSError(problem, os.strerror(problem))
        original(descriptor)

    stop(tmp_path, 10)
    before = (tmp_path / NAME).read_bytes()
    seen: list[bool] = []

    def look(record: EpochRecord) -> None:
        nonlocal full
        seen.append((tmp_path / NAME).read_bytes() == before)
        full = record.epoch < 4

    monkeypatch.setattr(handgrad.files.os, "fsync", fsync)
    made = network()
    with pytest.warns(
        HandgradNotice, match=f"training goes on without a new checkpoint: .*{os.strerror(problem)}"
    ):
        history = train(
            made, X, T, checkpoints=Checkpoints(tmp_path, minutes=0, resume=True), after_epoch=look, **HOW
        )
    assert outcome(made, history) == straight()
    assert seen == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]  # epochs 2 to 7; after the fourth there is room again
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    assert go_on(tmp_path) == straight()


def test_a_folder_that_cannot_be_written_is_known_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before an epoch is lost."""

    def refuse(*arguments: Any) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("handgrad.files.os.open", refuse)
    with pytest.raises(RunError, match="run: cannot be written: Read-only file system"):
        train(network(), X, T, checkpoints=Checkpoints(tmp_path / "run"), **HOW)
    assert list(tmp_path.iterdir()) == []


# -------------------------------------------------------------------------------------------- locks

HOLDER = """
import sys
from pathlib import Path
from handgrad.files import FolderLock
with FolderLock(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_two_processes_cannot_train_into_one_folder(tmp_path: Path) -> None:
    """The second is told the number of the first; when that has ended, however, the folder is free."""
    for way in ("leaves", "is killed"):
        with subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(tmp_path / "run")], env=ENVIRONMENT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        ) as other:  # fmt: skip
            assert other.stdin is not None
            assert other.stdout is not None
            assert other.stdout.readline() == b"locked\n"
            with pytest.raises(RunError) as caught:
                train(network(), X, T, checkpoints=Checkpoints(tmp_path / "run"), **HOW)
            assert str(caught.value).startswith(
                f"{tmp_path / 'run'}: another process is training into this folder: its process id is {other.pid}\n"
            )
            if way == "is killed":
                other.kill()
            other.stdin.close()
            other.wait()
        train(network(), X, T, checkpoints=Checkpoints(tmp_path / "run"), **HOW)


@pytest.mark.skipif(sys.platform == "win32", reason="locks otherwise")
@pytest.mark.parametrize("problem", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_where_there_are_no_locks_it_trains_with_a_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: int
) -> None:
    import fcntl

    def flock(file: Any, operation: int) -> None:
        raise OSError(problem, os.strerror(problem))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.warns(HandgradNotice, match="its file system has no locks"):
        history = train(network(), X, T, checkpoints=Checkpoints(tmp_path), **HOW | {"epochs": 1})
    assert history.stopped == "finished"
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_epochs_for_which_there_is_no_memory() -> None:
    """What helps is fewer of them."""
    with pytest.raises(ConfigurationError) as caught:
        train(network(), X, T, **HOW | {"epochs": 10**9})
    assert str(caught.value).startswith(
        "train: 1,000,000,000 epochs of 7 steps are more than 268,435,456 steps"
    )
    assert caught.value.fix.startswith("give fewer epochs")


def test_a_lock_is_not_taken_through_a_link(tmp_path: Path) -> None:
    """A stranger's folder does not choose which file is emptied."""
    (tmp_path / "precious").write_text("all I have")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(tmp_path / "precious")
    with pytest.raises(RunError, match="cannot be written"), FolderLock(tmp_path / "run"):
        pass
    assert (tmp_path / "precious").read_text() == "all I have"


# -------------------------------------------------------------------------------------------- what has changed

LONGER = np.vstack([X, X[:1]])
CHANGED: dict[str, tuple[Any, Any, str]] = {
    "rows": (LONGER, np.vstack([T, T[:1]]), "x has 48 rows, and had 47"),
    "columns": (X[:, :4], T, "x has 4 columns, and had 5"),
    "numbers": (X + 1e-9 * (X[40, 3] == X), T, "the numbers in x are others"),
    "targets": (X, T[::-1], "the numbers in t are others"),
    "type": (X.astype(np.float32), T, "x holds float32, and held float64"),
}


@pytest.mark.parametrize("what", CHANGED)
def test_data_that_has_changed_is_refused(tmp_path: Path, what: str) -> None:
    """Saying what: rows, columns, type, or the numbers."""
    x, t, said = CHANGED[what]
    stop(tmp_path, 10)
    made = Network(*network().body.layers[:1], Linear(x.shape[1], 9), *network().body.layers[2:],
                   loss=MeanSquaredError(), inputs=x.shape[1])  # fmt: skip
    with pytest.raises(HandgradError) as caught:
        train(made, x, t, checkpoints=Checkpoints(tmp_path, resume=True), **HOW)
    if what == "columns":  # the network has to be another too, and that is noticed first
        assert "last/W1 is float32(5, 9) in the file and float32(4, 9) in the network" in str(caught.value)
    else:
        assert isinstance(caught.value, DataError)
        assert caught.value.problem == f"the data has changed since the training began: {said}"


def test_validation_rows_of_their_own_count_too(tmp_path: Path) -> None:
    how = {"validation": (X[:9], T[:9])}
    stop(tmp_path, 10, **how)
    with pytest.raises(DataError, match="the numbers in validation t are others"):
        go_on(tmp_path, validation=(X[:9], T[:9] + 1))


SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "batch size": ({"batch_size": 7}, "batch size is 7, and the training that is to go on has 6"),
    "seed": ({"seed": 6}, "seed is 6, and the training that is to go on has 5"),
    "shuffle": ({"shuffle": False}, "shuffle is False, and the training that is to go on has True"),
    "schedule": (
        {"schedule": None},
        "schedule is Constant(), and the training that is to go on has OneCycle()",
    ),
    "rate": (
        {"optimiser": Adam(0.03)},
        "optimiser is Adam(0.03), and the training that is to go on has Adam(0.02)",
    ),
    "validation": ({"validation": 0.3}, "validation is 0.3, and the training that is to go on has 0.2"),
}


@pytest.mark.parametrize("what", SETTINGS)
def test_other_settings_are_refused(tmp_path: Path, what: str) -> None:
    """Saying which, and both values."""
    given, said = SETTINGS[what]
    stop(tmp_path, 10)
    with pytest.raises(ConfigurationError) as caught:
        go_on(tmp_path, **given)
    assert caught.value.problem.startswith(said)


def test_another_optimiser_or_network_keeps_other_arrays(tmp_path: Path) -> None:
    stop(tmp_path, 10)
    with pytest.raises(RunError, match=r"last/m_W1 is only in the file"):
        go_on(tmp_path, optimiser=SGD(0.1))


def test_another_engine_is_refused(tmp_path: Path) -> None:
    """What the compiled engine began, the reference engine would not end to the last bit."""
    stop(tmp_path, 10, engine="reference")
    with pytest.raises(
        EngineError, match="the compiled engine would go on with what the reference engine began"
    ):
        go_on(tmp_path, engine="compiled")


def test_another_library_is_a_notice(tmp_path: Path) -> None:
    """Last digits may differ with it: who needs them the same is told, at the line that calls train."""
    stop(tmp_path, 10)
    path = tmp_path / NAME
    now = np.__version__.encode()
    path.write_bytes(
        path.read_bytes().replace(b'\\"numpy\\":\\"' + now, b'\\"numpy\\":\\"' + b"7" * len(now))
    )
    with pytest.warns(HandgradNotice, match=f"numpy is {np.__version__} and was 7") as caught:
        go_on(tmp_path)
    assert [notice.filename for notice in caught] == [__file__]


# -------------------------------------------------------------------------------------------- costs


def test_within_an_epoch_a_checkpoint_waits_for_its_time(tmp_path: Path) -> None:
    """By default an epoch of milliseconds is not interrupted; the file is that of an epoch's end."""
    made = network()
    train(made, X, T, checkpoints=Checkpoints(tmp_path), **HOW)
    assert read_checkpoint(tmp_path / NAME, _kept(made)).done.batches == 0


def test_a_look_at_every_batch(tmp_path: Path) -> None:
    """Records are numbered, and their losses are those of the batches: weighted by rows, the epoch's."""
    seen: list[BatchRecord] = []
    with warnings.catch_warnings():
        history = train(network(), X, T, after_batch=seen.append, **HOW)
    assert [(r.epoch, r.batch, r.step) for r in seen[:9]] == [
        *((1, batch, batch) for batch in range(1, 8)), (2, 1, 8), (2, 2, 9)
    ]  # fmt: skip
    rows = np.array([6, 6, 6, 6, 6, 6, 2])
    loss = sum(r.loss * n for r, n in zip(seen[:7], rows, strict=True)) / 38
    assert loss == pytest.approx(history.epochs[0].loss, rel=1e-6)
    assert seen[-1].learning_rate == history.epochs[-1].learning_rate


def test_the_logger_hears_of_every_epoch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Through the standard library, at INFO, under "handgrad"; and of where a training goes on."""
    stop(tmp_path, 10)
    with caplog.at_level("INFO", logger="handgrad"):
        go_on(tmp_path)
    assert {record.name.partition(".")[0] for record in caplog.records} == {"handgrad"}
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == "going on after epoch 1 and 2 batches"
    assert [text.startswith(f"EpochRecord(epoch={epoch}, ") for epoch, text in enumerate(said[1:], 2)] == [
        True
    ] * 6
