"""A command that is stopped: by Ctrl-C, by a full disk, by a terminal that is watched while it happens."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import resource
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from handgrad import History, Network

from ..conftest import ENVIRONMENT, HANDGRAD, Command, Server


class Terminal:
    """The command with standard error on a terminal of its own, and perhaps standard output too."""

    def __init__(
        self, server: Server, folder: Path, *arguments: str, columns: int = 80, everything: bool = False
    ) -> None:
        self.terminal, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        name = os.ttyname(inner)
        self.server, self.out = server, folder.with_name(f"{folder.name}.out")
        self.process = server.start(
            folder, arguments, [name, name if everything else self.out, name],
            environment={"TERM": "xterm-256color", "COLUMNS": None, "NO_COLOR": None},
        )  # fmt: skip
        os.close(inner)
        self.shown = ""

    def read_until(self, pattern: str) -> None:
        """Read the terminal until it has shown a pattern, or has been left."""
        while not re.search(pattern, self.shown):
            try:
                self.shown += os.read(self.terminal, 2**16).decode(errors="replace")
            except OSError:  # nobody is there any more
                return

    def end(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and standard output, where it was no terminal."""
        self.read_until(r"(?!)")
        os.close(self.terminal)
        code = self.server.wait(self.process)
        return code, self.out.read_text(encoding="utf-8") if self.out.exists() else ""

    def interrupt(self) -> None:
        """Send what Ctrl-C sends."""
        os.kill(self.process, signal.SIGINT)


LONG = ["moons", "--hidden", "64", "--epochs", "5000"]


def test_ctrl_c_keeps_the_last_finished_epoch(tmp_path: Path, server: Server, handgrad: Command) -> None:
    """Exit code 130; the folder is a run with its history up to there; the bar is on the terminal, the JSON is clean."""
    running = Terminal(server, tmp_path, "train", *LONG, "--out", "run", "--json")
    running.read_until(r"epoch [3-9].*rows/s")
    running.interrupt()
    code, out = running.end()
    results = json.loads(out)
    assert code == 130
    assert results["stopped"] == "interrupted"
    assert 3 <= results["epochs"] == results["kept_epoch"] < 5000
    history = History.from_json_lines((tmp_path / "run" / "history.jsonl").read_text())
    assert (history.stopped, len(history.epochs)) == ("interrupted", results["epochs"])
    again = json.loads(handgrad("evaluate", "run", "--json").stdout)
    assert again["accuracy"] == results["test_accuracy"]


def test_ctrl_c_in_the_first_epoch_keeps_nothing(tmp_path: Path, server: Server) -> None:
    """Weights that nothing was learned with are no run: it says so, and leaves no folder."""
    running = Terminal(
        server, tmp_path, "train", "digits", "--hidden", "2048,2048,2048", "--batch-size", "1", "--out", "run"
    )
    running.read_until("━")
    running.interrupt()
    code, out = running.end()
    assert (code, out) == (130, "")
    assert "Stopped before the first epoch was finished: nothing is saved." in running.shown
    assert "Traceback" not in running.shown
    assert list(tmp_path.iterdir()) == []


LOST = """
import gc, time
from handgrad import cli

def wait(standalone_mode):
    def callback(phase, info):
        gc.callbacks.remove(callback)
        raise KeyboardInterrupt
    gc.callbacks.append(callback)
    gc.collect()
    time.sleep(60)

cli.group.main = wait
cli.main()
"""


def test_ctrl_c_during_a_garbage_collection_is_not_lost() -> None:
    """Python itself only prints an exception in a callback of the collector."""
    command = [sys.executable, "-c", LOST]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Stopped.\n")


def test_ctrl_c_before_training_is_no_traceback(tmp_path: Path) -> None:
    """While the data is still read, here from a pipe whose end does not come."""
    os.mkfifo(tmp_path / "slow.csv")
    process = subprocess.Popen(
        [*HANDGRAD, "train", "slow.csv", "--target", "t"],
        cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with (tmp_path / "slow.csv").open("wb", buffering=0) as pipe:
        pipe.write(b"a" * 200_000)  # more than a pipe holds: written when the command has begun to read
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.strip() == "Stopped."


@pytest.mark.parametrize(
    ("columns", "source", "shown"),
    [
        (80, ["moons"], r"loss 0\.\d{4}  accuracy [01]\.\d{4}"),
        (120, ["prices.csv", "--target", "price"], r"loss [\d.]+  r2 -?\d\.\d{4}"),
    ],
)
def test_a_terminal_shows_loss_metric_speed_and_time_left(
    server: Server, shop: Path, columns: int, source: list[str], shown: str
) -> None:
    """On one line, which fits; afterwards it is taken away, and the results are there in colour."""
    arguments = ["train", *source, "--hidden", "8", "--epochs", "4", "--out", f"watched {columns}"]
    running = Terminal(server, shop, *arguments, columns=columns, everything=True)
    assert running.end()[0] == 0
    bars = [part for part in re.split(r"\r|\n", running.shown) if "━" in part and "epoch 4" in part]
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", bars[-1])
    assert re.fullmatch(rf"━+ epoch 4  {shown} [\d,]+ rows/s 0:00:00", plain)
    assert len(plain) <= columns
    after = running.shown.split(bars[-1])[-1]
    assert "━" not in after
    assert "\x1b[2mtest " in after
    assert "\x1b[?25h" in after  # the cursor is back


def test_a_full_disk_is_one_message(tmp_path: Path) -> None:
    """The weights do not fit, here or elsewhere: the file is named, the reason given, and no half of a file is left."""
    done = subprocess.run(
        [*HANDGRAD, "train", "moons", "--hidden", "999", "--epochs", "1", "--out", "run"],
        cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)),
    )  # fmt: skip
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-2:] == [
        "Error: run/weights.safetensors: cannot be written: File too large",
        "The trained network could not be saved anywhere else either.",
    ]
    assert (
        "training goes on without a new checkpoint: run/checkpoint.safetensors: cannot be written"
        in done.stderr
    )
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert left == {"config.toml", "history.csv", "history.jsonl"}


def test_a_disk_that_fills_up_at_the_end_loses_neither_run(tmp_path: Path, handgrad: Command) -> None:
    """The older run stays as it was; the new one ends with the command that finishes it, and has every epoch."""
    handgrad("train", "moons", "--hidden", "8", "--epochs", "1", "--out", "run")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    new = ["train", "moons", "--hidden", "8", "--epochs", "2", "--seed", "1", "--out"]
    done = subprocess.run(
        [*HANDGRAD, *new, "run", "--overwrite"],
        cwd=tmp_path, env=ENVIRONMENT | {"TMPDIR": str(tmp_path)}, capture_output=True, text=True, timeout=120, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)),  # not enough for the picture
    )  # fmt: skip
    assert done.returncode == 1
    *_, problem, resume, saved = done.stderr.splitlines()
    assert problem == "Error: run/new/learning_curve.png: cannot be written: File too large"
    assert resume == "To resume: handgrad train --resume run"
    assert Network.load(saved.split(" is saved in ")[1].split(": ")[0]).parameters
    after = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.is_file()}
    assert after == before
    handgrad("train", "--resume", "run")
    handgrad(*new, "straight")
    one, other = (tmp_path / name / "weights.safetensors" for name in ("run", "straight"))
    assert one.read_bytes() == other.read_bytes()
    assert not (tmp_path / "run" / "new").exists()
