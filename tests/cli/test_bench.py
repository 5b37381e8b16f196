"""`handgrad bench`: engine by engine, for people and for machines; and notices, one line each."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from ..conftest import ENVIRONMENT, HANDGRAD, Command, Server
from .test_stopping import Terminal

BOTH = ["compiled", "reference"]
"""The engines that need no optional package."""

QUICK = ["moons", "--hidden", "8", "--seconds", "0.05"]

WITHOUT = {"missing": ["llvmlite"]}
NO_LLVMLITE = "the compiled engine needs llvmlite: import of llvmlite halted; None in sys.modules; fix: pip install llvmlite"


def test_the_default_network_is_timed(handgrad: Command, tmp_path: Path) -> None:
    """`handgrad bench` alone: a row for each engine, the fastest has ratio 1, and nothing is left behind."""
    done = handgrad("bench", "--seconds", "0.1")
    assert done.stderr == (
        "digits: 1,258 training rows, 32 at a time · network 64 → 256 → 10 · 19,210 parameters\n"
    )
    heading, *rows = (re.split("  +", line.strip()) for line in done.stdout.splitlines())
    assert heading == [
        "engine", "µs a step", "varied", "rows a second", "ratio", "start-up", "BLAS", "threads"
    ]  # fmt: skip
    assert [row[0] for row in rows] == BOTH
    ratios = [float(row[4]) for row in rows]
    assert min(ratios) == 1.0 < max(ratios)
    for row in rows:
        micros, speed = (float(row[place].replace(",", "")) for place in (1, 3))
        assert re.fullmatch(r"\d+\.\d×", row[2])
        assert speed == pytest.approx(32e6 / micros, rel=0.01)
    assert rows[0][6].startswith(("OpenBLAS", "MKL"))
    assert list(tmp_path.iterdir()) == []


def test_json_is_one_object_with_every_engine(handgrad: Command) -> None:
    """Numbers as numbers; standard error stays empty in a pipe."""
    done = handgrad("bench", *QUICK, "--batch-size", "50", "--json")
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    results = json.loads(done.stdout)
    engines = results.pop("engines")
    assert results == {
        "data": "moons", "network": "network 2 → 8 → 2 · 42 parameters", "rows": 700, "batch_size": 50
    }  # fmt: skip
    assert [each["engine"] for each in engines] == BOTH
    fastest = min(each["microseconds_per_step"] for each in engines)
    for each in engines:
        assert each["ratio"] == pytest.approx(each["microseconds_per_step"] / fastest)
        assert each["rows_per_second"] == pytest.approx(50e6 / each["microseconds_per_step"])
        assert each["startup_seconds"] > 0
        assert each["steps"] > 0
        assert each["spread"] >= 1
        assert each["problem"] is None
    assert engines[0]["threads"] >= 1
    assert engines[0]["blas"]


def test_one_engine_alone_when_it_is_named(handgrad: Command) -> None:
    """With --engine there is nothing to compare it with."""
    (only,) = json.loads(handgrad("bench", *QUICK, "--engine", "reference", "--json").stdout)["engines"]
    assert (only["engine"], only["ratio"]) == ("reference", 1.0)


def test_a_run_is_timed_with_its_own_settings(handgrad: Command) -> None:
    """A run folder stands for its configuration; options go over it, and the run stays as it is."""
    handgrad("train", "moons", "--hidden", "9", "--batch-size", "20", "--epochs", "1", "--out", "run")
    more = ["--seconds", "0.02", "--engine", "reference", "--json"]
    own = json.loads(handgrad("bench", "run", *more).stdout)
    assert (own["data"], own["network"], own["batch_size"]) == (
        "moons", "network 2 → 9 → 2 · 47 parameters", 20
    )  # fmt: skip
    assert json.loads(handgrad("bench", "run", "--batch-size", "30", *more).stdout)["batch_size"] == 30
    assert json.loads(handgrad("bench", "--config", "run/config.toml", *more).stdout)["batch_size"] == 20


def test_a_batch_larger_than_the_data_is_all_of_it(handgrad: Command) -> None:
    results = json.loads(
        handgrad(
            "bench", "xor", "--hidden", "4", "--batch-size", "100000", "--seconds", "0.02", "--json"
        ).stdout
    )
    assert results["batch_size"] == results["rows"]


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["moons", "--seconds", "0"], 2, "Error: Invalid value for '--seconds'"),
        (["moons", "--seconds", "nan"], 2, "Error: Invalid value for '--seconds': 'nan' is not a number."),
        (["moons", "--engine", "compild"], 1, "Error: --engine: 'compild' is unknown\n"),
        (["nothing.csv"], 1, "Error: nothing.csv: "),
        (
            ["moons", "--optimiser", "SGD", "--learning-rate", "1e30"],
            1,
            "is not finite\n  fix    try a smaller",
        ),
    ],
)
def test_a_mistake_is_one_message(handgrad: Command, arguments: list[str], code: int, problem: str) -> None:
    done = handgrad("bench", *arguments, code=code)
    assert problem in done.stderr
    assert done.stdout == ""


def test_a_terminal_shows_how_far_it_is(tmp_path: Path, server: Server) -> None:
    """On standard error, on one line that is taken away; the JSON stays clean."""
    running = Terminal(server, tmp_path, "bench", *QUICK, "--json")
    code, out = running.end()
    assert code == 0, running.shown
    assert re.search(r"\r\s*\d+%  compiled", running.shown)
    assert re.search(r"\r\s*\d+%  reference", running.shown)
    assert running.shown.endswith("\r" + " " * 40 + "\r")
    assert len(json.loads(out)["engines"]) == len(BOTH)


def test_ctrl_c_ends_it_without_a_traceback(tmp_path: Path, server: Server) -> None:
    """The line is taken away first; nothing is on standard output."""
    running = Terminal(server, tmp_path, "bench", "moons", "--hidden", "8", "--seconds", "6")
    running.read_until(r"[1-9]0%  compiled")
    running.interrupt()
    assert running.end() == (130, "")
    assert running.shown.endswith("\r" + " " * 40 + "\r\r\nStopped.\r\n")


def test_an_engine_that_cannot_run_it_is_told_apart(handgrad: Command) -> None:
    """The others are timed; alone, it is an error."""
    done = handgrad("bench", *QUICK, **WITHOUT)
    last = done.stdout.splitlines()[-1]
    assert last == f"  the compiled engine cannot run this network: {NO_LLVMLITE}"
    done = handgrad("bench", *QUICK, "--json", **WITHOUT)
    compiled, reference, *_ = json.loads(done.stdout)["engines"]
    assert "llvmlite" in compiled["problem"]
    assert compiled["microseconds_per_step"] is compiled["ratio"] is None
    assert reference["ratio"] == 1.0
    done = handgrad("bench", *QUICK, "--engine", "compiled", code=1, **WITHOUT)
    assert done.stdout == ""
    assert done.stderr.splitlines()[1] == f"Error: the compiled engine cannot run this network: {NO_LLVMLITE}"


def test_a_notice_is_one_line_once(handgrad: Command) -> None:
    """Not as Python shows warnings, though warnings are errors here; the training goes on and says what ran it."""
    done = handgrad("train", "moons", "--hidden", "8", "--epochs", "30", "--out", "run", **WITHOUT)
    head, notice = done.stderr.splitlines()
    assert head.startswith("moons: ")
    assert notice.startswith("Notice: the compiled engine is not used")
    assert notice.endswith(NO_LLVMLITE)
    assert re.search(r"^  engine +reference$", done.stdout, re.MULTILINE)


def test_a_notice_does_not_spoil_json(handgrad: Command) -> None:
    arguments = ["train", "moons", "--hidden", "8", "--epochs", "2", "--out", "run", "--json"]
    done = handgrad(*arguments, **WITHOUT)
    assert json.loads(done.stdout)["engine"] == "reference"
    notice, *epochs = done.stderr.splitlines()
    assert notice.startswith("Notice: ")
    assert [json.loads(line)["epoch"] for line in epochs] == [1, 2]
    silent = handgrad(*arguments, "--overwrite", "--engine", "reference", **WITHOUT).stderr.splitlines()
    assert [json.loads(line)["epoch"] for line in silent] == [1, 2]


def test_results_and_show_say_what_ran(handgrad: Command, tmp_path: Path) -> None:
    """The engine, its BLAS and how many threads it may use; on standard error where a program is printed."""
    settings = ["moons", "--hidden", "8", "--epochs", "1"]
    done = handgrad("train", *settings, "--out", "run")
    (said,) = re.findall(r"^  engine +(.+)$", done.stdout, re.MULTILINE)
    assert re.fullmatch(r"compiled, (OpenBLAS \S+( \(AVX2\))?|MKL), \d+ threads?", said)
    assert handgrad("show", "run").stderr == f"run: engine {said}\n"
    results = json.loads(handgrad("train", *settings, "--out", "run", "--overwrite", "--json").stdout)
    history = json.loads((tmp_path / "run" / "history.jsonl").read_text().splitlines()[0])["facts"]
    assert {name: results[name] for name in ("engine", "blas", "threads")}.items() <= history.items()
    handgrad("train", *settings, "--engine", "reference", "--out", "run", "--overwrite")
    assert handgrad("show", "run").stderr == "run: engine reference\n"


@pytest.mark.parametrize("damage", ["", "{}", "[1]", '{"facts": {"engine": 3}}', "[" * 9999, "\xff"])
def test_show_needs_no_history(handgrad: Command, tmp_path: Path, damage: str) -> None:
    """What ran is left out when the file is gone, or says something else."""
    handgrad("train", "moons", "--hidden", "8", "--epochs", "1", "--out", "run")
    page = handgrad("show", "run").stdout
    history = tmp_path / "run" / "history.jsonl"
    history.write_bytes(damage.encode("latin-1"))
    done = handgrad("show", "run")
    assert (done.stdout, done.stderr) == (page, "")
    history.unlink()
    assert handgrad("show", "run").stderr == ""


def test_a_history_of_a_stranger_sends_nothing_to_the_terminal(handgrad: Command, tmp_path: Path) -> None:
    """Escape sequences and line breaks are left out."""
    handgrad("train", "moons", "--hidden", "8", "--epochs", "1", "--out", "run")
    facts = {"engine": "compiled\x1b[2J\n", "blas": "\x07BLAS", "threads": 1}
    (tmp_path / "run" / "history.jsonl").write_text(json.dumps({"facts": facts}) + "\n")
    assert handgrad("show", "run").stderr == "run: engine compiled[2J, BLAS, 1 thread\n"


def test_the_number_of_threads_follows_the_environment(tmp_path: Path) -> None:
    """As NumPy's own products do."""
    done = subprocess.run(
        [*HANDGRAD, "bench", *QUICK, "--engine", "compiled", "--json"],
        cwd=tmp_path, env={**ENVIRONMENT, "OPENBLAS_NUM_THREADS": "1"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    (compiled,) = json.loads(done.stdout)["engines"]
    assert compiled["threads"] == 1
