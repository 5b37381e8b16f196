"""``handgrad write``."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import click
import numpy as np

from handgrad.cli.options import configuration_from, load_data, with_settings
from handgrad.data import split
from handgrad.files import write_file
from handgrad.program import Loop


@click.command(name="write")
@with_settings
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default="written",
    show_default=True,
    help="The folder for train.py and data.npz.",
)
def command(source: str | None, config: Path | None, out: Path, **settings: Any) -> None:
    """Write a network out as a script that needs NumPy only, with its data beside it.

    The script's losses and weights are, bit for bit, those of `handgrad train` on the reference engine with
    the same settings.

    \b
    handgrad write --out digits
    cd digits && python train.py
    """  # fmt: skip
    configuration = configuration_from(source, config, settings)
    dataset, training = load_data(configuration), configuration.training
    rows = split(
        dataset, test=configuration.data.test, validation=configuration.data.validation, seed=training.seed
    )
    network = configuration.build(dataset)
    loop = Loop(training.epochs, training.batch_size, training.seed, schedule=configuration.schedule())
    file = io.BytesIO()
    tested: dict[str, Any] = (
        {"x_test": dataset.x[rows.test], "t_test": dataset.t[rows.test]} if len(rows.test) else {}
    )
    np.savez_compressed(file, x=dataset.x[rows.train], t=dataset.t[rows.train], **tested)
    write_file(out / "data.npz", file.getvalue())
    write_file(out / "train.py", network.write(configuration.optimiser(), loop))
    click.echo(f"wrote {out / 'train.py'} and {out / 'data.npz'}: cd {out} && python train.py")
