"""``handgrad train``."""

from __future__ import annotations

import math
import os
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from handgrad.arrays import some_rows
from handgrad.checkpoints import NAME as CHECKPOINT
from handgrad.checkpoints import read_past
from handgrad.cli.cluster import in_cluster
from handgrad.cli.console import engine_text, show_columns, show_results
from handgrad.cli.evaluation import Evaluation
from handgrad.cli.likely_cause import WAITING, find_cause
from handgrad.cli.options import (
    FIND,
    FOLDER,
    RATE,
    Experiment,
    NumberRange,
    configuration_from,
    fingerprints,
    json_option,
    with_settings,
)
from handgrad.cli.run_folder import (
    RATES,
    RunFolder,
    ended,
    folder_of_new,
    folder_to_resume,
    located,
    new_folder,
    quoted,
    resumed,
    terminated_as_interrupted,
)
from handgrad.configuration import Configuration, engine_in, write_configuration
from handgrad.data.sources import BY_SUFFIX
from handgrad.engines import DEFAULT_ENGINE
from handgrad.engines.cluster import JOINING_SECONDS, announced, check_same, is_first
from handgrad.errors import ConfigurationError, EngineError, RunError, TrainingError, notify
from handgrad.files import FolderLock
from handgrad.layers import SoftmaxCrossEntropy
from handgrad.network import Network
from handgrad.runs import Run, load_run, replace_run, target_names, write_run
from handgrad.training import EpochRecord, History, RangeTest, train

if TYPE_CHECKING:  # imported where used: the terminal should not wait for it
    from handgrad.explaining.record import Snapshot

MOST_OF_PAGE = 10_000  # numbers that a network makes of a row, up to which its page is always written
DIVERGED = 10.0  # times the loss of equal probabilities
FAR_ABOVE = 2.0  # times the lowest validation loss
PAGE, PICTURE = "explanation.html", "evaluation.png"


@click.command(name="train")
@with_settings
@click.option("--out", type=FOLDER, help="The run folder [runs/DATA-TIME].")
@click.option(
    "--snapshots",
    metavar="N",
    type=click.IntRange(2, 1000),
    help="Snapshots of the training to record for the page, start and end among them [none].",
)
@click.option("--overwrite", is_flag=True, help="Replace the run in --out when the new one is finished.")
@click.option(
    "--resume",
    type=FOLDER,
    help="Go on with the training in this run folder, interrupted or finished, to --epochs in all.",
)
@click.option(
    "--checkpoint-minutes",
    metavar="N",
    type=NumberRange(min=0, max=10**6),
    default=5.0,
    show_default=True,
    help="How old the last checkpoint may become.",
)
@click.option("--tensorboard", is_flag=True, help="Write event files for TensorBoard into the run folder.")
@click.option(
    "--cluster/--no-cluster",
    default=None,
    help="Train in several processes, on one machine or many: give each the same command. srun, mpirun and the TPUs of a "
    "cloud tell each which it is, and --engine jax does without this option there; elsewhere the next three options do.",
)
@click.option(
    "--coordinator", metavar="HOST:PORT", envvar="HANDGRAD_COORDINATOR", help="Where process 0 listens."
)
@click.option(
    "--processes",
    metavar="N",
    type=click.IntRange(1),
    envvar="HANDGRAD_PROCESSES",
    help="How many there are.",
)
@click.option(
    "--process", metavar="K", type=click.IntRange(0), envvar="HANDGRAD_PROCESS", help="Which this is, from 0."
)
@click.option(
    "--join-minutes",
    metavar="N",
    type=NumberRange(min=0, min_open=True, max=10**4),
    default=JOINING_SECONDS / 60,
    show_default=True,
    help="How long to wait for the other processes at the start.",
)
@json_option("Print the results as JSON, and each epoch on standard error.")
def train_command(
    source: str | None,
    config: Path | None,
    out: Path | None,
    snapshots: int | None,
    overwrite: bool,
    resume: Path | None,
    checkpoint_minutes: float,
    tensorboard: bool,
    cluster: bool | None,
    coordinator: str | None,
    processes: int | None,
    process: int | None,
    join_minutes: float,
    as_json: bool,
    **settings: Any,
) -> int:
    """Train a network, and save it in a run folder, with a page that explains it.

    SOURCE is digits (the default), alice, mackey-glass, mnist, moons, spirals, xor, a configuration (.toml), or a
    file: SUFFIXES, .txt, or a folder of CSV or Parquet files that together are one table, of IDX files, of CIFAR's, or
    with a folder of images for each class.
    For a text it is a transformer that predicts each next character.

    \b
    handgrad train
    handgrad train mnist --hidden 128 --batch-size 128 --epochs 5
    handgrad train houses.csv --target price --hidden 64,64 --patience 10 --out runs/houses
    handgrad train houses.csv --target price --learning-rate find
    handgrad train text.txt --blocks 2 --out runs/text
    handgrad train --config lenet
    handgrad train images --config resnet
    handgrad train prices.csv --target close --config series
    handgrad train network.toml --json
    handgrad train --resume runs/houses --epochs 60

    Ctrl-C saves the last finished epoch. A training that was interrupted is resumed with --resume, with the same
    results as if it had not been; with --epochs, and --patience, it goes on for longer, a finished one too.
    """

    def run() -> int:
        return _run(
            source,
            config,
            out,
            snapshots,
            overwrite,
            resume,
            checkpoint_minutes,
            tensorboard,
            as_json,
            settings,
        )

    given = any(each is not None for each in (coordinator, processes, process))
    started = announced(os.environ) if cluster is None and not given else 1
    if cluster is None:
        cluster = given or started > 1
    if not cluster:
        return run()
    own = resume and resume / "config.toml"
    file = config or (own if own and own.exists() else None)
    default = DEFAULT_ENGINE if started > 1 else "jax"
    engine = settings["training__engine"] or engine_in(file) or default
    if engine != "jax":
        what = f"{started} processes are started together" if started > 1 else "--cluster is given"
        raise ConfigurationError(
            f"{what}, and the engine {engine} trains in one",
            fix="--engine jax trains one network in all of them, --no-cluster one in each",
        )
    settings["training__engine"] = "jax"
    return in_cluster(run, coordinator, processes, process, join_minutes)


def _run(
    source: str | None, config: Path | None, out: Path | None, snapshots: int | None, overwrite: bool,
    resume: Path | None, checkpoint_minutes: float, tensorboard: bool, as_json: bool, settings: dict[str, Any],
) -> int:  # fmt: skip
    """Begin a training, or resume one."""
    if resume is None:
        notes = {"snapshots": snapshots or 0, "tensorboard": int(tensorboard)}
        if find := settings[rate := RATE.replace(".", "__")] == FIND:
            settings[rate] = None
        configuration = configuration_from(source, config, settings)
        if out is None:
            with new_folder(Path(configuration.data.source).stem) as folder:
                return _Training(configuration, folder, folder, notes, None, as_json, find=find).run(
                    checkpoint_minutes
                )
        into = folder_of_new(out, configuration, overwrite=overwrite)
        if into is None:
            click.echo(f"{out}: not replaced", err=True)
            return 1
        return _Training(configuration, out, into, notes, None, as_json, find=find).run(checkpoint_minutes)
    if out is not None or overwrite:
        given = "--out" if out else "--overwrite"
        raise click.UsageError(f"Give {given} or --resume: a training is resumed in its own folder.")
    folder = folder_to_resume(resume)
    configuration = resumed(folder, lambda own: configuration_from(source, config or own, settings))
    history = ended(folder, configuration.training)
    if history is not None and not is_first():
        return 0
    if history is not None:
        if folder != resume:
            replace_run(resume)
        click.echo(f"{resume}: {_why_ended(history, configuration)}", err=True)
        results = load_run(resume).results
        rows = next(iter(results), "").partition("_")[0]  # of the test, or else of the validation
        shown = {name: score for name, score in results.items() if name.startswith(rows)}
        show_results({**shown, "run": str(resume)}, as_json=as_json)
        return 0
    past, notes = read_past(folder / CHECKPOINT)
    return _Training(configuration, resume, folder, notes, past, as_json).run(checkpoint_minutes)


train_command.help = str(train_command.help).replace("SUFFIXES", ", ".join(BY_SUFFIX))


def _why_ended(history: History, configuration: Configuration) -> str:
    """Return why there is nothing left to train."""
    if history.stopped != "early":
        return "the training is finished"
    patience = configuration.training.patience
    return (
        f"the training stopped early, after {len(history.epochs)} epochs: the validation loss had not fallen for "
        f"{patience}; to go on, give --patience {2 * (patience or 1)} or more"
    )


@dataclass
class _Training:
    """A training into the folder ``into``, which replaces the run in ``out`` at the end where it is another."""

    configuration: Configuration
    out: Path
    into: Path
    notes: dict[str, int]
    past: History | None
    as_json: bool
    find: bool = False
    """Whether to find the learning rate first."""

    @property
    def command(self) -> str:
        """The command that resumes it."""
        return f"handgrad train --resume {quoted(self.out)}"

    def run(self, minutes: float) -> int:
        """Train, and save the run; return the exit code."""
        experiment = Experiment(self.configuration)
        dataset = experiment.dataset  # errors name the files as they were given
        self.configuration.data.fingerprint = fingerprints(dataset)
        self.configuration.training.epochs = experiment.epochs
        most = experiment.epochs + 1
        if self.notes["snapshots"] > most:
            click.echo(f"{most} snapshots: of the start, and after each of {most - 1} epochs", err=True)
        network = experiment.network
        found = self.find_learning_rate(experiment) if self.find else None
        check_same(write_configuration(self.configuration))
        experiment.configuration = located(self.configuration)
        run_folder = RunFolder(self.into, experiment, minutes, self.notes, self.past, found)
        if not is_first():
            return 0 if _train(experiment, run_folder, as_json=False).stopped != "interrupted" else 1
        with (
            nullcontext() if self.into == self.out else FolderLock(self.out),
            terminated_as_interrupted() as signals,
        ):
            with run_folder:
                if not self.as_json:
                    count = len(experiment.rows.train)
                    show_columns(dataset.columns, self.configuration.data.drop)
                    click.echo(f"{dataset.name}: {count:,} training rows · {network.title}", err=True)
                    if found is not None:
                        click.echo(f"{found}, drawn in {self.into / RATES}", err=True)
                if tails := experiment.heavy_tails:
                    notify(
                        f"{tails['rows']:,} of {len(experiment.rows.train):,} training rows have {tails['share']:.1%} of "
                        "the targets' squared deviations from the median, and decide the fit; --loss Huber counts them less"
                    )
                with self.resumable():
                    history = _train(experiment, run_folder, as_json=self.as_json)
                interrupted = 128 + (signals[0] if signals else signal.SIGINT)
                if not history.epochs:
                    saved = f"to resume: {self.command}" if run_folder.path.exists() else "nothing is saved."
                    click.echo(f"Stopped before the first epoch was finished: {saved}", err=True)
                    return interrupted
                with self.resumable(experiment.network):
                    evaluations = _save(self.into, experiment, history, run_folder.snapshots)
            if history.stopped != "interrupted" and self.into != self.out:
                with self.resumable():
                    replace_run(self.out)
                self.into = self.out
        self.show(experiment, history, evaluations)
        if history.stopped != "interrupted":
            return 0
        click.echo(f"Interrupted; to resume: {self.command}", err=True)
        return interrupted

    def find_learning_rate(self, experiment: Experiment) -> RangeTest:
        """Find the learning rate, and set it."""
        settings = self.configuration.training
        found = experiment.find_learning_rate(experiment.network, experiment.rows.train)
        table = settings.optimiser if isinstance(settings.optimiser, dict) else {"type": settings.optimiser}
        settings.optimiser = {**table, "learning_rate": found.learning_rate}
        return found

    @contextmanager
    def resumable(self, trained: Network | None = None) -> Iterator[None]:
        """End what stops the training with the command that resumes it, or with where the network is if it cannot be."""
        try:
            yield
        except (TrainingError, RunError, EngineError, OSError, MemoryError, KeyboardInterrupt) as error:
            if resumes := (self.into / CHECKPOINT).exists():
                error.add_note(f"To resume: {self.command}{self.epochs_left(error)}")
            if trained is not None and not (resumes and isinstance(error, KeyboardInterrupt)):
                error.add_note(_saved_elsewhere(trained))
            raise

    def epochs_left(self, error: BaseException) -> str:
        """Return the option that ends a training which cannot go on at its last finished epoch."""
        if not isinstance(error, TrainingError):
            return ""
        return f" --epochs {len(read_past(self.into / CHECKPOINT)[0].epochs)}, with the weights before that"

    def show(self, experiment: Experiment, history: History, evaluations: Mapping[str, Evaluation]) -> None:
        """Print the results, on the test rows or else the validation rows, with what mends a useless fit."""
        name, evaluation = next(iter(evaluations.items()), ("", None))
        last = history.epochs[(history.best_epoch or len(history.epochs)) - 1]
        if evaluation is not None:
            evaluation = replace(evaluation, diverged=_diverged(experiment, last))
        remedy, warning = None, evaluation and evaluation.warning
        alone = history.facts.get("processes", 1) == 1
        if warning and alone and not experiment.dataset.entries and history.stopped != "interrupted":
            remedy = find_cause(experiment, history, quiet=self.as_json)
        found = remedy and asdict(remedy)
        noticed = {"heavy_tails": experiment.heavy_tails, "warning": warning, "remedy": found}
        ran = {"engine": engine_text(history.facts)}
        if self.as_json:
            ran = {
                name: history.facts[name] for name in ("engine", "blas", "threads") if name in history.facts
            }
        results = (
            {f"{name}_{score}": value for score, value in evaluation.lines.items()} if evaluation else {}
        )
        show_results(
            {"epochs": len(history.epochs), "stopped": history.stopped, "kept_epoch": last.epoch}
            | {"training_loss": last.loss, "validation_loss": last.validation_loss}
            | ({"learning_rate": self.configuration.optimiser().learning_rate} if self.find else {})
            | results
            | ran
            | {"rows_per_second": history.facts["rows_per_second"], "run": str(self.into)}
            | ({"explanation": str(self.into / PAGE)} if (self.into / PAGE).exists() else {})
            | (noticed if self.as_json else {}),
            as_json=self.as_json,
        )
        if evaluation is not None and not self.as_json:
            evaluation.show(str(remedy or ""))
        if notice := _better_before(history, last):
            notify(notice)


def _better_before(history: History, last: EpochRecord) -> str | None:
    """Return that an epoch before had a far lower validation loss, where there is one: its weights are not saved."""
    losses = {
        record.validation_loss: record.epoch
        for record in history.epochs
        if record.validation_loss is not None
    }
    lowest = min(losses, default=0.0)
    if last.validation_loss is None or last.validation_loss <= FAR_ABOVE * lowest or lowest <= 0:
        return None
    patience = max(len(history.epochs) // WAITING, 1)
    return (
        f"validation loss {last.validation_loss:.4g} is far above the lowest, {lowest:.4g} after epoch {losses[lowest]}; "
        f"--patience {patience} stops when it has not fallen for {patience} epochs, and keeps the weights of the lowest"
    )


def _diverged(experiment: Experiment, last: EpochRecord) -> str | None:
    """Return that a training diverged, where its loss is far above that of a network that knows nothing."""
    which, loss = "validation", last.validation_loss
    if loss is None:
        which, loss = "training", last.loss
    classes = int(experiment.network.output_shape[-1])
    if not isinstance(experiment.network.loss, SoftmaxCrossEntropy) or loss <= DIVERGED * math.log(classes):
        return None
    return (
        f"the training diverged: {which} loss {loss:.4g}; equal probabilities for the {classes} classes have "
        f"{math.log(classes):.4g}"
    )


def _train(experiment: Experiment, run_folder: RunFolder, *, as_json: bool) -> History:
    dataset, rows, settings = experiment.dataset, experiment.rows, experiment.configuration.training
    with run_folder.callback(as_json=as_json) as after_epoch:
        return train(
            experiment.network,
            dataset.x,
            dataset.t,
            rows=rows.train,
            validation=rows.validation if len(rows.validation) else None,
            epochs=experiment.epochs,
            batch_size=settings.batch_size,
            micro_batch=settings.micro_batch,
            optimiser=experiment.configuration.optimiser(),
            schedule=experiment.configuration.schedule(),
            patience=settings.patience,
            seed=settings.seed,
            engine=settings.engine,
            devices=settings.devices,
            progress=None if is_first() else False,
            after_epoch=after_epoch,
            checkpoints=run_folder,
        )


def _saved_elsewhere(network: Network) -> str:
    """Save a network whose run folder cannot be written where that can be done, and return where it is."""
    for folder in (Path(tempfile.gettempdir()), Path.home()):
        place = folder / f"handgrad-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.safetensors"
        with suppress(RunError):
            network.save(place)
            return f"The trained network is saved in {place}: handgrad.Network.load opens it."
    return "The trained network could not be saved anywhere else either."


def _is_small(network: Network) -> bool:
    """Whether a page takes seconds: its Jacobians have entries for each two numbers that are made of a row."""
    made = sum(
        math.prod(map(int, node.output.shape[1:])) for node in network.nodes() if len(node.output.shape) > 1
    )
    return made <= MOST_OF_PAGE


def _evaluate(experiment: Experiment, run: Run) -> dict[str, Evaluation]:
    """Return how good the network is on the test rows and on the validation rows, where there are any."""
    dataset, rows, network, found = experiment.dataset, experiment.rows, run.network, {}
    assert network.loss is not None
    for name, chosen in (("test", rows.test), ("validation", rows.validation)):
        if len(chosen):
            prediction = network.predict(some_rows(dataset.x, chosen))
            targets = network.check_targets(np.asarray(some_rows(dataset.t, chosen)), len(chosen))
            names = target_names(run, prediction.shape[-1])
            found[name] = Evaluation.of(network.loss, prediction, targets, dataset.classes, names)
    return found


def _save(
    folder: Path, experiment: Experiment, history: History, snapshots: Sequence[Snapshot]
) -> dict[str, Evaluation]:
    """Write the run folder, with its page and picture, and return how good the network is, as `_evaluate`."""
    from handgrad.explaining import explain
    from handgrad.explaining.page import render_page
    from handgrad.explaining.snapshots import small_batch, with_training

    dataset, rows, network = experiment.dataset, experiment.rows, experiment.network
    configuration, data = experiment.configuration, experiment.configuration.data
    features = dataset.feature_names
    run = Run(
        network,
        data.source,
        dataset.task,
        data.target,
        dataset.classes,
        features,
        columns=dataset.columns,
        entries=dataset.entries,
    )
    evaluations = _evaluate(experiment, run)
    results = {
        f"{rows}_{name}": value for rows, each in evaluations.items() for name, value in each.lines.items()
    }
    run = replace(run, results=results)
    files: dict[str, bytes | str] = {}
    if _is_small(network):
        few = rows.train[small_batch(len(rows.train), configuration.training.seed)]
        explanation = explain(network, dataset.x[few], dataset.t[few], optimiser=configuration.optimiser())
        origin = f"weights after training, {len(few)} of the training rows"
        files[PAGE] = render_page(replace(with_training(explanation, snapshots), origin=origin))
    for name, evaluation in [*evaluations.items()][:1]:
        files[PICTURE] = evaluation.picture(f"{dataset.name}: {len(getattr(rows, name)):,} {name} rows")
    write_run(folder, run, history, write_configuration(configuration), snapshots, files)
    return evaluations
