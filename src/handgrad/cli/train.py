"""``handgrad train``."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from handgrad.checkpoints import NAME as CHECKPOINT
from handgrad.checkpoints import read_past
from handgrad.cli.console import engine_text, show_columns, show_results
from handgrad.cli.evaluation import Evaluation
from handgrad.cli.options import (
    FOLDER,
    Experiment,
    NumberRange,
    configuration_from,
    fingerprints,
    json_option,
    with_settings,
)
from handgrad.cli.run_folder import (
    RunFolder,
    is_finished,
    located,
    new_folder,
    resumed,
    terminated_as_interrupted,
)
from handgrad.configuration import Configuration, write_configuration
from handgrad.data.sources import BY_SUFFIX
from handgrad.files import write_file
from handgrad.runs import Run, load_run, save_run, target_names
from handgrad.training import History, train
from handgrad.training.metrics import metric_name

if TYPE_CHECKING:  # imported where used: the terminal should not wait for it
    from handgrad.explaining.record import Snapshot

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
@click.option("--resume", type=FOLDER, help="Resume the interrupted training in this run folder.")
@click.option(
    "--checkpoint-minutes",
    metavar="N",
    type=NumberRange(min=0, max=10**6),
    default=5.0,
    show_default=True,
    help="How old the last checkpoint may become.",
)
@click.option("--tensorboard", is_flag=True, help="Write event files for TensorBoard into the run folder.")
@json_option("Print the results as JSON, and each epoch on standard error.")
def train_command(
    source: str | None,
    config: Path | None,
    out: Path | None,
    snapshots: int | None,
    resume: Path | None,
    checkpoint_minutes: float,
    tensorboard: bool,
    as_json: bool,
    **settings: Any,
) -> int:
    """Train a network, and save it in a run folder, with a page that explains it.

    SOURCE is digits (the default), mnist, moons, spirals, xor, or a file: SUFFIXES,
    or a folder of IDX files.

    \b
    handgrad train
    handgrad train mnist --hidden 128 --batch-size 128 --epochs 5
    handgrad train houses.csv --target price --hidden 64,64 --patience 10 --out runs/houses
    handgrad train --config network.toml --json
    handgrad train --resume runs/houses

    Ctrl-C saves the last finished epoch. A training that was interrupted can be resumed with --resume, with the same
    results as if it had not been.
    """
    if resume is None:
        notes = {"snapshots": snapshots or 0, "tensorboard": int(tensorboard)}
        configuration = configuration_from(source, config, settings)
        with nullcontext(out) if out else new_folder(Path(configuration.data.source).stem) as folder:
            return _run(configuration, folder, checkpoint_minutes, notes, None, as_json)
    if out is not None:
        raise click.UsageError("Give --out or --resume: a training is resumed in its own folder.")
    if is_finished(resume):
        click.echo(f"{resume}: the training is finished", err=True)
        show_results({**load_run(resume).results, "run": str(resume)}, as_json=as_json)
        return 0
    configuration = resumed(resume, lambda own: configuration_from(source, config or own, settings))
    past, notes = read_past(resume / CHECKPOINT)
    return _run(configuration, resume, checkpoint_minutes, notes, past, as_json)


train_command.help = str(train_command.help).replace("SUFFIXES", ", ".join(BY_SUFFIX))


def _run(
    configuration: Configuration,
    folder: Path,
    minutes: float,
    notes: dict[str, int],
    past: History | None,
    as_json: bool,
) -> int:
    """Train into a folder, which is locked meanwhile."""
    experiment = Experiment(configuration)
    dataset = experiment.dataset  # errors name the files as they were given
    configuration.data.fingerprint = fingerprints(dataset)
    experiment.configuration = located(configuration)
    network, run_folder = experiment.network, RunFolder(folder, experiment, minutes, notes, past)
    with run_folder, terminated_as_interrupted() as signals:
        if not as_json:
            count = len(experiment.rows.train)
            show_columns(dataset.columns, configuration.data.drop)
            click.echo(f"{dataset.name}: {count:,} training rows · {network.title}", err=True)
        history = _train(experiment, run_folder, as_json=as_json)
        interrupted = 128 + (signals[0] if signals else signal.SIGINT)
        if not history.epochs:
            click.echo("Stopped before the first epoch was finished: nothing is saved.", err=True)
            return interrupted
        evaluation = _save(folder, experiment, history, run_folder.snapshots)
        if history.stopped != "interrupted":
            run_folder.remove()
    last = history.epochs[(history.best_epoch or len(history.epochs)) - 1]
    ran = {"engine": engine_text(history.facts)}
    if as_json:
        ran = {name: history.facts[name] for name in ("engine", "blas", "threads") if name in history.facts}
    results = {} if evaluation is None else {f"test_{k}": value for k, value in evaluation.lines.items()}
    show_results(
        {"epochs": len(history.epochs), "stopped": history.stopped, "kept_epoch": last.epoch}
        | {"training_loss": last.loss, "validation_loss": last.validation_loss}
        | results
        | ran
        | {"rows_per_second": history.facts["rows_per_second"], "run": str(folder)}
        | {"explanation": str(folder / PAGE)}
        | ({"warning": evaluation and evaluation.warning} if as_json else {}),
        as_json=as_json,
    )
    if evaluation is not None and not as_json:
        evaluation.show()
    if history.stopped != "interrupted":
        return 0
    click.echo(f"Interrupted; to resume: handgrad train --resume {shlex.quote(str(folder))}", err=True)
    return interrupted


def _train(experiment: Experiment, run_folder: RunFolder, *, as_json: bool) -> History:
    dataset, rows, settings = experiment.dataset, experiment.rows, experiment.configuration.training
    watched = (dataset.x[rows.validation], dataset.t[rows.validation]) if len(rows.validation) else None
    with run_folder.callback(as_json=as_json) as after_epoch:
        return train(
            experiment.network,
            dataset.x[rows.train],
            dataset.t[rows.train],
            validation=watched,
            epochs=settings.epochs,
            batch_size=settings.batch_size,
            optimiser=experiment.configuration.optimiser(),
            schedule=experiment.configuration.schedule(),
            patience=settings.patience,
            seed=settings.seed,
            engine=settings.engine,
            after_epoch=after_epoch,
            checkpoints=run_folder,
        )


def _save(
    folder: Path, experiment: Experiment, history: History, snapshots: Sequence[Snapshot]
) -> Evaluation | None:
    """Write the run folder, with its page and picture, and return how good the network is on the test rows."""
    from handgrad.explaining import explain
    from handgrad.explaining.page import render_page
    from handgrad.explaining.snapshots import small_batch, with_training

    dataset, rows, network = experiment.dataset, experiment.rows, experiment.network
    configuration, data = experiment.configuration, experiment.configuration.data
    features = dataset.feature_names
    run = Run(
        network, data.source, dataset.task, data.target, dataset.classes, features, columns=dataset.columns
    )
    evaluation, results = None, {}
    if len(rows.test):
        assert network.loss is not None
        prediction = network.predict(dataset.x[rows.test])
        targets = network.check_targets(np.asarray(dataset.t[rows.test]), len(rows.test))
        names = target_names(run, prediction.shape[-1])
        evaluation = Evaluation.of(network.loss, prediction, targets, dataset.classes, names)
        metric = metric_name(network.loss)
        results[f"test_{metric}"] = evaluation.scores[metric]
    run = replace(run, results=results)
    save_run(folder, run, history, write_configuration(configuration), snapshots)
    few = rows.train[small_batch(len(rows.train), configuration.training.seed)]
    explanation = explain(network, dataset.x[few], dataset.t[few], optimiser=configuration.optimiser())
    write_file(folder / PAGE, render_page(with_training(explanation, snapshots)))
    if evaluation is not None:
        evaluation.save_picture(folder / PICTURE, f"{dataset.name}: {len(rows.test):,} test rows")
    return evaluation
