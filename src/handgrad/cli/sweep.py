"""``handgrad sweep``: a training for each combination of some settings' values, several at a time."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from threading import Event, Lock
from typing import Any

import click

from handgrad.cli.console import printable
from handgrad.cli.evaluation import LINES
from handgrad.cli.options import FOLDER, SETTINGS, configuration_from, json_option, with_settings
from handgrad.cli.run_folder import ended, located, new_folder, quoted, resumed, terminated_as_interrupted
from handgrad.configuration import Configuration, write_configuration
from handgrad.errors import ConfigurationError, RunError, nearest, need, notify
from handgrad.files import read_file, write_file
from handgrad.runs import MOST_BYTES, holds_run, load_run
from handgrad.training import History

SCORES = ("loss", *LINES)
SMALLER_IS_BETTER = ("loss", "root_mean_squared_error", "mean_absolute_error")

DEFAULT = "default"  # as a value: the setting as it is without --over

LOG = "train.log"
"""What a training printed, in its run folder."""

RUNNING: set[subprocess.Popen[bytes]] = set()
LOCK, STOPPED = Lock(), Event()
"""Trainings that this process has started, and whether it starts no more: they are started in threads."""


@click.command(name="sweep")
@with_settings
@click.option(
    "--over",
    metavar="SETTING=A,B,…",
    multiple=True,
    required=True,
    help="A setting by its name in a TOML file, and its values; with several, every combination is trained.",
)
@click.option("--out", type=FOLDER, help="The folder of the run folders [runs/DATA-TIME].")
@click.option("--jobs", metavar="N", type=click.IntRange(1), help="How many are trained at a time [1].")
@click.option(
    "--by",
    metavar="SCORE",
    type=click.Choice(SCORES),
    help=f"The score of the validation rows that decides which is best [accuracy, or r2]: {', '.join(SCORES)}.",
)
@json_option()
def sweep_command(
    source: str | None, config: Path | None, over: tuple[str, ...], out: Path | None, jobs: int | None,
    by: str | None, as_json: bool, **settings: Any,
) -> int:  # fmt: skip
    """Train a network for each combination of settings, and compare them by their validation rows.

    SOURCE and the other options are those of `handgrad train`. Each training is one of `handgrad train`, in a process and
    a run folder of its own; what it printed is in its train.log.

    \b
    handgrad sweep --over training.optimiser.learning_rate=0.001,0.003,0.01
    handgrad sweep houses.csv --target price --over network.hidden=[64],[64,64] --over training.seed=0,1,2 --jobs 4
    handgrad sweep network.toml --over training.optimiser.type=SGD,Adam --out runs/optimisers
    handgrad sweep fraud.csv --target fraud --over training.batch_size=32,128 --by roc_auc

    The same command with --out FOLDER goes on: finished trainings stay, interrupted ones are resumed, and what is new in
    --over is trained.
    """
    joblib = need("joblib", "handgrad sweep", "sweep")
    chosen = combinations(over)
    configurations: dict[str, Configuration] = {}
    for name, values in chosen.items():
        with _told_of(name):
            configurations[name] = configuration_from(source, config, settings, values)
            if not configurations[name].data.validation:
                raise ConfigurationError(
                    "data.validation is 0, and trainings are compared by their validation rows",
                    fix="leave it out, or give 0.1",
                )
    if out is not None and holds_run(out):
        raise RunError(f"{out}: holds a run", fix="give a folder of runs, or one that is not there yet")
    stem = Path(next(iter(configurations.values())).data.source).stem
    with new_folder(stem) if out is None else nullcontext(out) as folder:
        members = [_member(folder / name, chosen[name], each) for name, each in configurations.items()]
        with terminated_as_interrupted() as signals:
            try:
                _train(joblib, members, jobs)
                code = int(any("error" in member.result for member in members))
            except KeyboardInterrupt:
                click.echo(
                    f"Interrupted; to go on, give the same command with --out {quoted(folder)}", err=True
                )
                code = 128 + (signals[0] if signals else signal.SIGINT)
    show(members, by, as_json=as_json)
    return code


def combinations(over: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return every combination of the values of some settings, by a name that is the name of a folder too.

    Values are TOML, or words, of which ``default`` leaves the setting as it is without ``--over``. A name has the last part
    of each setting's.

    Examples
    --------
    >>> combinations(["training.seed=0,1", "network.hidden=[64,32]"])  # doctest: +NORMALIZE_WHITESPACE
    {'seed=0,hidden=[64,32]': {'training.seed': 0, 'network.hidden': [64, 32]},
     'seed=1,hidden=[64,32]': {'training.seed': 1, 'network.hidden': [64, 32]}}
    """
    axes: dict[str, list[Any]] = {}
    for each in over:
        setting, _, text = each.partition("=")
        if not text or setting in axes:
            problem = "is given twice" if setting in axes else "has no values"
            raise ConfigurationError(f"--over {each}: {setting} {problem}", fix=f"as in --over {setting}=A,B")
        known = {flag.removeprefix("--"): name for name, flag, _ in SETTINGS}
        if "." not in setting:
            fix = f"write {known[setting]}" if setting in known else nearest(setting, known.values())
            raise ConfigurationError(f"--over {each}: no setting is called {setting!r}", fix=fix)
        axes[setting] = _values(text)
    last = [setting.rpartition(".")[2] for setting in axes]
    names = last if len(set(last)) == len(last) else [*axes]
    made = {}
    for values in product(*axes.values()):
        parts = (f"{name}={_written(value)}" for name, value in zip(names, values, strict=True))
        name = re.sub(r"[^\w.,=+\[\]-]", lambda found: f"%{ord(found[0]):02X}", ",".join(parts))
        made[name] = dict(zip(axes, values, strict=True))
    return made


def _values(text: str) -> list[Any]:
    """Read values between commas."""
    try:
        return list(tomllib.loads(f"values = [{text}]")["values"])
    except tomllib.TOMLDecodeError:  # words without quotation marks
        return [_value(part.strip()) for part in text.split(",")]


def _value(text: str) -> Any:
    if text == DEFAULT:
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _written(value: Any) -> str:
    if value is None:
        return DEFAULT
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), default=str)


@contextmanager
def _told_of(name: str) -> Any:
    """Say in an error of a setting which combination it is of."""
    try:
        yield
    except ConfigurationError as error:
        fix = error.fix.replace(
            " to resume, or begin a new training without --resume", ", or give another --out"
        )
        raise ConfigurationError(f"--over {name}: {error.problem}", given=error.given, fix=fix) from None


@dataclass
class Member:
    """One training of a sweep: its run folder, its own values, all its settings; what came out, as `_result` has it."""

    folder: Path
    values: Mapping[str, Any]
    configuration: Configuration
    result: Mapping[str, Any]


def _member(folder: Path, values: Mapping[str, Any], configuration: Configuration) -> Member:
    """Return a training as an earlier sweep has left it, or as it is to be begun."""
    if not holds_run(folder):
        return Member(folder, values, located(configuration), {})
    with _told_of(folder.name):
        configuration = resumed(folder, lambda own: configuration)
    finished = ended(folder, configuration.training) is not None
    return Member(folder, values, configuration, _result(folder) if finished else {})


def _train(joblib: Any, members: Sequence[Member], jobs: int | None) -> None:
    """Train those that are not finished."""
    left = {str(member.folder): member for member in members if not member.result}
    if len(left) < len(members):
        click.echo(f"{len(members) - len(left)} of {len(members)} trainings are finished", err=True)
    at_once = joblib.effective_n_jobs(jobs)
    threads = max(1, (os.cpu_count() or 1) // at_once) if at_once > 1 else None
    backend, _ = joblib.parallel.get_active_backend(prefer="threads")
    # Some backends, as Ray's, return results only when all are there; each training's folder has its own before that.
    unordered = getattr(backend, "supports_return_generator", False)
    parallel = joblib.Parallel(
        jobs, prefer="threads", return_as="generator_unordered" if unordered else "list"
    )
    trainings = (
        joblib.delayed(train_member)(name, write_configuration(member.configuration), threads)
        for name, member in left.items()
    )
    STOPPED.clear()
    try:
        for name, code in parallel(trainings):
            member = left[name]
            member.result = _result(member.folder) if code == 0 else {"error": _error(member.folder, code)}
            click.echo(printable(f"{member.folder.name}: {_in_words(member.result)}"), err=True)
    finally:
        with LOCK:
            STOPPED.set()
        for process in (*RUNNING,):
            process.send_signal(signal.SIGINT)  # it saves its last finished epoch
        for process in (*RUNNING,):
            process.wait()


def train_member(folder: str, configuration: str, threads: int | None) -> tuple[str, int]:
    """Begin or resume a training in a process of its own; return its folder and exit code."""
    how = (
        ["--resume", folder]
        if holds_run(Path(folder))
        else ["--config", f"{folder}/config.toml", "--out", folder]
    )
    Path(folder).mkdir(parents=True, exist_ok=True)
    write_file(Path(folder) / "config.toml", configuration)
    environment = dict(os.environ) if threads is None else {"OMP_NUM_THREADS": str(threads), **os.environ}
    with (Path(folder) / LOG).open("wb") as log, LOCK:
        if STOPPED.is_set():
            return folder, 128 + signal.SIGINT
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "handgrad", "train", *how, "--no-cluster", "--json"],
            env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,  # Ctrl-C comes to the sweep alone, which hands it on
        )  # fmt: skip
        RUNNING.add(process)
    code = process.wait()
    RUNNING.discard(process)
    return folder, code


def _result(folder: Path) -> dict[str, Any]:
    """Return what a finished training came to, at the epoch whose weights it has."""
    text = read_file(folder / "history.jsonl", MOST_BYTES).decode()
    history = History.from_json_lines(text, str(folder))
    kept = history.epochs[(history.best_epoch or len(history.epochs)) - 1]
    scores = load_run(folder).results
    return {
        "epochs": len(history.epochs),
        "training_loss": kept.loss,
        "validation_loss": kept.validation_loss,
        f"validation_{history.metric}": kept.validation_metric,
        **{name: score for name, score in scores.items() if name.startswith("validation_")},
    }


def _error(folder: Path, code: int) -> str:
    """Return why a training ended."""
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    log = (folder / LOG).read_text(errors="replace").splitlines()
    errors = [line.removeprefix("Error: ") for line in log if line.startswith("Error: ")]
    return errors[-1] if errors else f"ended with exit code {code}; see {folder / LOG}"


def _in_words(result: Mapping[str, Any]) -> str:
    if "error" in result:
        return f"failed: {result['error']}"
    return ", ".join(f"{name.replace('_', ' ')} {_short(value)}" for name, value in result.items())


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else _written(value)


def show(members: Sequence[Member], by: str | None, *, as_json: bool) -> None:
    """Print the trainings that have ended, the best by a score first, of equals by loss; those that failed last.

    ``by`` is one of `SCORES`; None is accuracy, or R² where there are no classes.
    """
    finished = [member for member in members if member.result]
    found = {name for member in finished for name in member.result}
    metric = "validation_accuracy" if "validation_accuracy" in found else "validation_r2"
    score = f"validation_{by}" if by else metric
    if by and finished and score not in found:
        known = ", ".join(name for name in SCORES if f"validation_{name}" in found)
        notify(
            f"--by {by}: these trainings have no such score, but {known}; they are sorted by {metric[11:]}"
        )
        score = metric

    def rank(member: Member) -> tuple[float, ...]:
        result = member.result
        if result.get(score) is None:
            return (1,)
        sign = 1 if by in SMALLER_IS_BETTER else -1
        return (0, sign * result[score], result["validation_loss"])

    shown = sorted(finished, key=rank)
    if as_json:
        rows = [{"run": str(each.folder), "settings": each.values, **each.result} for each in shown]
        click.echo(json.dumps({"runs": rows, "left": len(members) - len(shown)}))
        return
    if not shown:
        return
    columns = [
        name for name in ("epochs", "training_loss", "validation_loss", metric, score) if name in found
    ]
    heads = [*shown[0].values, *dict.fromkeys(columns), "run"]
    table = [[head.rpartition(".")[2].replace("_", " ") for head in heads]]
    for each in shown:
        cells: dict[str, Any] = {**each.values, **each.result, "run": str(each.folder)}
        table.append([_short(cells[head]) if head in cells else "" for head in heads])
        if "error" in each.result:
            table[-1][-1] += f": {_in_words(each.result)}"
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        *before, run = (f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        click.echo(printable("  ".join([*before, run.strip()])))
