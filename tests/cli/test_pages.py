"""`handgrad show`, `handgrad write` and every --help: pages for people."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from handgrad.cli import COMMANDS
from handgrad.runs import load_run

from ..conftest import ENVIRONMENT, HANDGRAD, Command


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_has_help_with_an_example(handgrad: Command, name: str, flag: str) -> None:
    """What it does, every option with a line of its own, and a command to copy, in 80 columns."""
    page = handgrad(name, flag).stdout
    assert page.startswith(f"Usage: handgrad {name} [OPTIONS]")
    examples = [line.strip() for line in page.splitlines() if line.startswith("  handgrad ")]
    assert any(example.split()[:2] == ["handgrad", name] for example in examples)
    for line in page.split("Options:")[1].splitlines():
        if line.strip().startswith("-"):
            assert len(line.split("  ")) >= 2
    assert "\\b" not in page


def test_the_group_names_its_commands(handgrad: Command) -> None:
    """Each with what it does."""
    page = handgrad("--help").stdout
    for name, said in COMMANDS.items():
        assert f"  {name}" in page
        assert said in " ".join(page.split())
    assert handgrad("--version").stdout.startswith("handgrad, version ")


def test_a_documented_first_example_runs(handgrad: Command) -> None:
    """The page of mathematics that the group's help promises."""
    page = handgrad("show", "--hidden", "32").stdout
    assert page.startswith("network 64 → 32 → 10 · 2,410 parameters")
    assert "\nbackward\n" in page


def test_show_prints_the_network_that_would_be_trained(handgrad: Command, tmp_path: Path) -> None:
    """With the data's own sizes and the update lines of the optimiser asked for."""
    settings = ["moons", "--hidden", "8", "--activation", "tanh", "--optimiser", "SGD", "--momentum", "0.9"]
    page = handgrad("show", *settings).stdout
    assert "  a1 = np.tanh(z1)" in page
    assert "  v_W1 *= 0.9" in page
    handgrad("train", *settings, "--epochs", "1", "--out", "run")
    assert handgrad("show", "run").stdout == page


def test_show_leaves_training_out_when_asked(handgrad: Command) -> None:
    """Only the forward lines, without masks."""
    page = handgrad("show", "moons", "--dropout", "0.5", "--evaluation").stdout
    assert [line for line in page.splitlines() if line and not line.startswith((" ", "network"))] == [
        "forward"
    ]
    assert "kept" not in page


@pytest.mark.parametrize(("columns", "widest"), [("40", 80), ("100", 100), ("160", 120)])
def test_show_fits_the_terminal(tmp_path: Path, columns: str, widest: int) -> None:
    """Reasons are wrapped into the columns there are, 80 at least; not one line is longer."""
    page = subprocess.run(
        [*HANDGRAD, "show", "xor", "--hidden", "8"],
        env={**ENVIRONMENT, "COLUMNS": columns}, cwd=tmp_path, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    longest = max(map(len, page.splitlines()))
    assert min(widest, 113) - 10 < longest <= widest


def test_a_pipe_that_closes_early_is_no_error(tmp_path: Path) -> None:
    """`handgrad show | head -1` ends quietly."""
    process = subprocess.Popen(
        [*HANDGRAD, "show", "digits"],
        env=ENVIRONMENT, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == 1


@pytest.mark.parametrize("arguments", ["show moons --hidden 3", "--version", "train --help"])
def test_standard_output_on_a_full_disk_is_one_message(tmp_path: Path, arguments: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*HANDGRAD, *arguments.split()],
            cwd=tmp_path, env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "Error: standard output: No space left on device\n")


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_closed_stream_is_no_error(tmp_path: Path, closed: int) -> None:
    """As under a service that gives none; no file of the run takes the stream's place."""
    code = f"import os, sys; os.close({closed}); os.execv(sys.argv[1], sys.argv[1:])"
    command = [
        sys.executable,
        "-c",
        code,
        *HANDGRAD,
        "train",
        "moons",
        "--hidden",
        "3",
        "--epochs",
        "30",
        "--out",
        "run",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        "" if closed == 2 else "moons: 700 training rows · network 2 → 3 → 2 · 17 parameters\n"
    )
    assert ("test accuracy" in done.stdout) == (closed != 1)
    assert load_run(tmp_path / "run").network.row == (2,)


@pytest.mark.parametrize(("encoding", "arrow"), [("ascii", "→".encode()), ("latin-1", rb"\u2192")])
def test_a_terminal_without_unicode_is_no_error(tmp_path: Path, encoding: str, arrow: bytes) -> None:
    """What it cannot show is spelled out; one of ASCII alone is taken by click for one that was not set up."""
    done = subprocess.run(
        [*HANDGRAD, "show", "moons", "--hidden", "3"],
        cwd=tmp_path, env={**ENVIRONMENT, "PYTHONIOENCODING": encoding}, capture_output=True, check=True,
    )  # fmt: skip
    assert done.stderr == b""
    assert b"dW1 = h1.T @ dz1" in done.stdout
    assert (
        b"network 2 " + arrow + b" 3 " in done.stdout
    )  # and not "?", which any other character would be too


def test_folders_may_have_spaces_and_letters_of_any_language(handgrad: Command, tmp_path: Path) -> None:
    place = tmp_path / "läufe und" / "≤ 1"
    handgrad("train", "xor", "--hidden", "3", "--epochs", "1", "--out", place)
    assert "accuracy" in handgrad("evaluate", place).stdout
    handgrad("explain", place, "--html", place / "seite ß.html")
    assert (place / "seite ß.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_write_leaves_a_script_and_its_data(handgrad: Command, tmp_path: Path) -> None:
    """Both in the folder asked for; the script says how to run it, and runs."""
    done = handgrad("write", "xor", "--hidden", "4", "--epochs", "1", "--out", "deep/xor")
    assert done.stdout == "wrote deep/xor/train.py and deep/xor/data.npz: cd deep/xor && python train.py\n"
    folder = tmp_path / "deep" / "xor"
    assert sorted(path.name for path in folder.iterdir()) == ["data.npz", "train.py"]
    assert "python train.py [data.npz]" in (folder / "train.py").read_text(encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-I", "train.py"], cwd=folder, capture_output=True, text=True, check=True
    )
    assert ran.stdout.startswith("epoch 1  loss ")


def test_write_takes_a_configuration(handgrad: Command, tmp_path: Path) -> None:
    """A run's own settings give the script that trains it: the same scores."""
    trained = handgrad("train", "xor", "--hidden", "4", "--epochs", "2", "--out", "run", "--json")
    handgrad("write", "--config", "run/config.toml", "--out", "script")
    handgrad("write", "--config", "run/config.toml", "--out", "script")  # in place of its own
    ran = subprocess.run(
        [sys.executable, "-I", "train.py"],
        cwd=tmp_path / "script",
        capture_output=True,
        text=True,
        check=True,
    )
    accuracy = load_run(tmp_path / "run").results["test_accuracy"]
    assert json.loads(trained.stdout)["test_accuracy"] == accuracy
    assert ran.stdout.splitlines()[-1] == f"test accuracy {accuracy:.4f}"


def test_no_command_needs_a_home(tmp_path: Path) -> None:
    """Where nothing may be written at home, as in a container, training works."""
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    bare = {name: value for name, value in os.environ.items() if name not in ("HOME", "MPLCONFIGDIR")}
    done = subprocess.run(
        [*HANDGRAD, "train", "xor", "--hidden", "4", "--epochs", "1", "--json"],
        env={**bare, "HOME": str(nowhere)}, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["epochs"] == 1
