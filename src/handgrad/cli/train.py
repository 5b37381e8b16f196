"""``handgrad train``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from handgrad.cli.console import engine_text, show_results
from handgrad.cli.options import configuration_from, load_data, with_settings
from handgrad.configuration import Configuration, write_configuration
from handgrad.data import Dataset, Split, split
from handgrad.files import write_file
from handgrad.network import Network
from handgrad.runs import Run, check_writable, save_run
from handgrad.training import History, measure_metric, metric_name, train

if TYPE_CHECKING:  # imported where used: the terminal should not wait for it
    from handgrad.explaining.explanation import Snapshot
    from handgrad.explaining.snapshots import Recorder

RUNS = Path("runs")


@click.command(name="train")
@with_settings
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="The run folder [runs/DATA-TIME]."
)
@click.option(
    "--snapshots",
    metavar="N",
    type=click.IntRange(2, 1000),
    help="How many moments of the training to record for the page: the start, the last epoch, and between [none].",
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def command(
    source: str | None,
    config: Path | None,
    out: Path | None,
    snapshots: int | None,
    as_json: bool,
    **settings: Any,
) -> int:
    """Train a network, and keep it in a run folder, with a page that explains it.

    SOURCE is digits (the default), mnist, moons, spirals, xor, or a file: .csv, .tsv, .parquet, .npz, .npy,
    or a folder of IDX files.

    \b
    handgrad train
    handgrad train mnist --hidden 128 --batch-size 128 --epochs 5
    handgrad train houses.csv --target price --hidden 64,64 --patience 10 --out runs/houses
    handgrad train --config network.toml --json

    Ctrl-C keeps the last finished epoch.
    """
    configuration = configuration_from(source, config, settings)
    dataset = load_data(configuration)
    chosen = configuration.data
    rows = split(dataset, test=chosen.test, validation=chosen.validation, seed=configuration.training.seed)
    network = configuration.build(dataset)
    check_writable(out or RUNS)
    if not as_json:
        click.echo(f"{dataset.name}: {len(rows.train):,} training rows · {network.title}", err=True)
    recorder = _recorder(configuration, dataset, rows, network, snapshots) if snapshots else None
    history = _train(configuration, dataset, rows, network, recorder)
    if not history.epochs:
        click.echo("Stopped before the first epoch was finished: nothing is kept.", err=True)
        return 130
    results = _score(dataset, rows, network)
    run = Run(
        network, chosen.source, dataset.task, chosen.target, dataset.classes, dataset.feature_names, results
    )
    folder = out or _new_folder(Path(chosen.source).stem)
    moments = recorder.snapshots if recorder is not None else []
    save_run(folder, run, history, write_configuration(configuration), moments)
    page = _write_page(folder, configuration, dataset, rows, network, moments)
    kept = history.epochs[(history.best_epoch or len(history.epochs)) - 1]
    show_results(
        {"epochs": len(history.epochs), "stopped": history.stopped, "kept_epoch": kept.epoch}
        | {"training_loss": kept.loss, "validation_loss": kept.validation_loss}
        | results
        | _ran(history.facts, as_json=as_json)
        | {"rows_per_second": history.facts["rows_per_second"], "run": str(folder), "explanation": str(page)},
        as_json=as_json,
    )
    return 130 if history.stopped == "interrupted" else 0


def _ran(facts: Mapping[str, Any], *, as_json: bool) -> dict[str, Any]:
    """Return what ran it: a fact each for machines, a few words for people."""
    if not as_json:
        return {"engine": engine_text(facts)}
    return {name: facts[name] for name in ("engine", "blas", "threads") if name in facts}


def _new_folder(name: str) -> Path:
    """Make a run folder named after data and time; trainings that end together get one each."""
    RUNS.mkdir(parents=True, exist_ok=True)
    folder = first = RUNS / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    for number in count(2):
        with suppress(FileExistsError):
            folder.mkdir()
            break
        folder = first.with_name(f"{first.name}-{number}")
    return folder


def _recorder(
    configuration: Configuration, dataset: Dataset, rows: Split, network: Network, moments: int
) -> Recorder:
    """Return what records moments of the training, with the first."""
    from handgrad.explaining.snapshots import Recorder

    settings = configuration.training
    recorder = Recorder(
        network,
        dataset.x[rows.train],
        dataset.t[rows.train],
        epochs=settings.epochs,
        moments=moments,
        batch_size=settings.batch_size,
        optimiser=configuration.optimiser(),
        seed=settings.seed,
    )
    recorder.start()
    return recorder


def _write_page(
    folder: Path,
    configuration: Configuration,
    dataset: Dataset,
    rows: Split,
    network: Network,
    moments: Sequence[Snapshot],
) -> Path:
    """Explain the trained network on a few of its training rows, on a page in the run folder."""
    from handgrad.explaining.page import render_page
    from handgrad.explaining.snapshots import explain_training, small_batch

    few = rows.train[small_batch(len(rows.train), configuration.training.seed)]
    explanation = explain_training(
        network, dataset.x[few], dataset.t[few], configuration.optimiser(), moments
    )
    page = folder / "explanation.html"
    write_file(page, render_page(explanation))
    return page


def _train(
    configuration: Configuration, dataset: Dataset, rows: Split, network: Network, recorder: Recorder | None
) -> History:
    settings = configuration.training
    watched = (dataset.x[rows.validation], dataset.t[rows.validation]) if len(rows.validation) else None
    return train(
        network,
        dataset.x[rows.train],
        dataset.t[rows.train],
        validation=watched,
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        optimiser=configuration.optimiser(),
        schedule=configuration.schedule(),
        patience=settings.patience,
        seed=settings.seed,
        engine=settings.engine,
        after_epoch=recorder,
    )


def _score(dataset: Dataset, rows: Split, network: Network) -> dict[str, float]:
    assert network.loss is not None
    if not len(rows.test):
        return {}
    prediction = network.predict(dataset.x[rows.test])
    targets = network.check_targets(np.asarray(dataset.t[rows.test]), len(rows.test))
    return {f"test_{metric_name(network.loss)}": measure_metric(network.loss, prediction, targets)}
