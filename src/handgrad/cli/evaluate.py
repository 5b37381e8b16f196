"""``handgrad evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from handgrad.cli.console import show_results
from handgrad.cli.options import load_data
from handgrad.configuration import MOST_BYTES, Configuration, read_configuration
from handgrad.data import Dataset, load, split
from handgrad.data.sources import takes
from handgrad.engines import Epoch, ReferenceEngine
from handgrad.errors import DataError
from handgrad.files import check_file
from handgrad.runs import Run, load_run, match_classes
from handgrad.training.metrics import measure_metric, metric_name


@click.command(name="evaluate")
@click.argument("run", type=click.Path(path_type=Path, file_okay=False))
@click.argument("source", required=False)
@click.option(
    "--target", metavar="NAME", help="Column of SOURCE, or .npy file, with the targets, when it is another."
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def command(run: Path, source: str | None, target: str | None, as_json: bool) -> None:
    """Score a trained network on rows with known targets.

    RUN is a folder that `handgrad train` wrote. Without SOURCE, the test rows of its own data are used; else
    all rows of SOURCE, which is as for `handgrad train`.

    \b
    handgrad evaluate runs/digits
    handgrad evaluate runs/houses newer.csv --json
    """
    trained = load_run(run)
    if source is None:
        check_file(run / "config.toml", MOST_BYTES)
        settings = read_configuration(run / "config.toml", {})
        dataset = load_data(settings)
        rows = _test_rows(run, settings, dataset)
    else:
        own = trained.target if takes(source, "column") else None  # other sources have their own targets
        dataset = load(source, target=target or own, task=trained.task)
        rows = np.arange(len(dataset))
    show_results({"rows": len(rows), **score(trained, dataset, rows)}, as_json=as_json)


def _test_rows(run: Path, settings: Configuration, dataset: Dataset) -> Any:
    chosen = settings.data
    rows = split(dataset, test=chosen.test, validation=chosen.validation, seed=settings.training.seed).test
    if not len(rows):
        raise DataError(f"{run}: no rows were kept for the test", fix="name rows to score on")
    return rows


def score(run: Run, dataset: Dataset, rows: Any) -> dict[str, float]:
    """Return the loss and the metric of some rows of a data set."""
    network = run.network
    assert network.loss is not None
    x = network.check_rows(arranged(run, dataset))
    t = network.check_targets(match_classes(run, dataset), len(x))
    bound = ReferenceEngine().bind(network.loss_program(), network.arrays)
    total, count = bound.epoch(Epoch({"x": x, "t": t}, rows))
    metric = measure_metric(network.loss, network.predict(x[rows]), t[rows])
    return {"loss": total / max(count, 1e-30), metric_name(network.loss): metric}


def arranged(run: Run, dataset: Dataset) -> Any:
    """Return the columns in the order of the training."""
    if dataset.feature_names == run.feature_names or not run.feature_names or not dataset.feature_names:
        return dataset.x
    missing = [name for name in run.feature_names if name not in dataset.feature_names]
    if missing:
        raise DataError(f"{dataset.name}: there is no column {missing[0]!r}, which the run was trained on")
    return dataset.x[:, [dataset.feature_names.index(name) for name in run.feature_names]]
