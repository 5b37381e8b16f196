"""``handgrad write``."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import click
import numpy as np

from handgrad.cli.experiment import Experiment
from handgrad.cli.options import FOLDER, configuration_from, with_settings
from handgrad.files import write_file
from handgrad.program import Loop


@click.command(name="write")
@with_settings
@click.option(
    "--out", type=FOLDER, default="written", show_default=True, help="The folder for train.py and data.npz."
)
def command(source: str | None, config: Path | None, out: Path, **settings: Any) -> None:
    """Write a network out as a script that needs NumPy only, with its data.

    The script's losses and weights are, bit for bit, those of `handgrad train` on the reference engine with
    the same settings.

    \b
    handgrad write --out digits
    cd digits && python train.py
    """  # fmt: skip
    configuration = configuration_from(source, config, settings)
    experiment, training = Experiment(configuration), configuration.training
    dataset, rows = experiment.dataset, experiment.rows
    loop = Loop(training.epochs, training.batch_size, training.seed, schedule=configuration.schedule())
    script = experiment.network.write(configuration.optimiser(), loop)
    arrays: dict[str, Any] = {"x": dataset.x[rows.train], "t": dataset.t[rows.train]}
    if len(rows.test):
        arrays |= {"x_test": dataset.x[rows.test], "t_test": dataset.t[rows.test]}
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    write_file(out / "data.npz", file.getvalue())
    write_file(out / "train.py", script)
    click.echo(f"wrote {out / 'train.py'} and {out / 'data.npz'}: cd {out} && python train.py")
