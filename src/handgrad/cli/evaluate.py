"""``handgrad evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from handgrad.cli.console import show_results
from handgrad.cli.experiment import Experiment, read_settings
from handgrad.cli.options import FOLDER, json_option
from handgrad.data import Dataset, load
from handgrad.engines import Epoch, ReferenceEngine
from handgrad.errors import DataError
from handgrad.runs import Run, load_run, match_classes, match_features
from handgrad.training.metrics import measure_metric, metric_name

TABLES = (".csv", ".tsv", ".parquet")


@click.command(name="evaluate")
@click.argument("run", type=FOLDER)
@click.argument("source", required=False)
@click.option(
    "--target", metavar="NAME", help="Column of SOURCE, or .npy file, with the targets, when it is another."
)
@json_option("Print the results as JSON.")
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
        experiment = Experiment(read_settings(run))
        dataset, rows = experiment.dataset, experiment.rows.test
        if not len(rows):
            raise DataError(f"{run}: there are no test rows", fix="name rows to score on")
    else:
        own = trained.target if source.endswith(TABLES) else None  # other sources have their own targets
        dataset = load(source, target=target or own, task=trained.task)
        rows = np.arange(len(dataset))
    show_results({"rows": len(rows), **score(trained, dataset, rows)}, as_json=as_json)


def score(run: Run, dataset: Dataset, rows: Any) -> dict[str, float]:
    """Return the loss and the metric of some rows of a data set."""
    network = run.network
    assert network.loss is not None
    x = network.check_rows(match_features(run, dataset))
    t = network.check_targets(match_classes(run, dataset), len(x))
    bound = ReferenceEngine().bind(network.loss_program(), network.arrays)
    total, count = bound.epoch(Epoch({"x": x, "t": t}, rows))
    metric = measure_metric(network.loss, network.predict(x[rows]), t[rows])
    return {"loss": total / max(count, 1e-30), metric_name(network.loss): metric}
