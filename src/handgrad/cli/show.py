"""A network as its program: ``handgrad show`` prints it, ``handgrad write`` writes it as a script."""

from __future__ import annotations

import io
import os
import re
import shutil
from pathlib import Path
from typing import Any, cast

import click
import numpy as np

from handgrad.arrays import is_sparse
from handgrad.cli.console import engine_text, show_columns
from handgrad.cli.options import (
    FOLDER,
    Experiment,
    configuration_from,
    is_own_file,
    is_run,
    read_settings,
    refuse_settings,
    with_settings,
)
from handgrad.configuration import Configuration
from handgrad.data import Dataset
from handgrad.data.builtin import BUILT_IN
from handgrad.errors import DataError, RunError, nearest
from handgrad.files import write_file
from handgrad.interop.gpt2 import GPT2, Size, gpt2
from handgrad.network import Network
from handgrad.program import Loop
from handgrad.program.printing import render_text
from handgrad.rules import RULES
from handgrad.runs import load_run, read_facts

MOST_LINES = 100  # of a program that is printed line by line


@click.command(name="show")
@with_settings
@click.option("--evaluation", is_flag=True, help="The lines outside training instead.")
@click.option(
    "--fold/--unfold",
    default=None,
    help="Repeated blocks once and long rules as calls, or every line [fold from 100 lines].",
)
@click.option(
    "--rules/--no-rules",
    default=None,
    help="The lines of the rules that are called too [where they need no further screen of 50 lines].",
)
def show_command(
    source: str | None,
    config: Path | None,
    evaluation: bool,
    fold: bool | None,
    rules: bool | None,
    **settings: Any,
) -> None:
    """Print a network as a program: every line with its shape and its reason.

    SOURCE is a run folder, or data as for `handgrad train`, with the same settings; or one of GPT2. For a run, a line on
    standard error names the engine that trained it. A recipe, as --config lenet, is shown without its data too.

    \b
    handgrad show
    handgrad show moons --hidden 8 --activation tanh --optimiser SGD
    handgrad show runs/digits --evaluation
    handgrad show gpt2 --unfold
    """
    if source is not None and is_run(source):
        refuse_settings(source, "a run", config, settings)
        run, configuration = load_run(source), read_settings(Path(source))
        network = run.network
        show_columns(run.columns, configuration.data.drop)
        if facts := read_facts(Path(source)):
            click.echo(f"{source}: engine {engine_text(facts)}", err=True)
    elif source in GPT2:
        optimiser = {
            name: value for name, value in settings.items() if name.startswith("training__optimiser__")
        }
        others = {name: value for name, value in settings.items() if name not in optimiser}
        refuse_settings(str(source), "a published network", config, others)
        optimiser["training__optimiser__type"] = optimiser["training__optimiser__type"] or "AdamW"
        configuration = configuration_from(None, None, others | optimiser)
        network = gpt2(cast("Size", source))
    elif source and re.fullmatch(r"[\w-]+", source) and source not in BUILT_IN and not Path(source).exists():
        fix = nearest(source, [*BUILT_IN, *GPT2])
        if source in RULES:
            fix = f"it is a rule, which handgrad explain {source} shows"
        raise DataError(f"{source}: there is no data set, no run and no network of this name", fix=fix)
    elif is_own_file(source):
        raise DataError(
            f"{source}: show takes no file of your own",
            fix=f"handgrad explain {source}, or print(network.program()) in it",
        )
    else:
        configuration = configuration_from(source, config, settings, shown=True)
        network = _network(configuration, stated=source is None)
    program = (
        network.evaluation_program()
        if evaluation
        else network.program(configuration.optimiser(), micro_batch=configuration.training.micro_batch)
    )
    width = max(80, shutil.get_terminal_size((110, 24)).columns)
    folded = len(program.lines) > MOST_LINES if fold is None else fold
    click.echo(program.folded(width, rules=rules) if folded else render_text(program, width))


def _network(configuration: Configuration, *, stated: bool) -> Network:
    """Make the network for its data; where that is not there, of the sizes that a recipe states."""
    data = configuration.data
    try:
        return Experiment(configuration).network
    except DataError:
        if not stated or data.inputs is None or data.outputs is None:
            raise
    rows = np.zeros((data.outputs, *data.inputs), np.uint8)
    classes = tuple(map(str, range(data.outputs)))
    click.echo(f"without the data, of rows {tuple(data.inputs)} and {data.outputs} classes", err=True)
    return configuration.build(Dataset(data.source, rows, np.arange(data.outputs), "classification", classes))


show_command.help = str(show_command.help).replace("GPT2", ", ".join(GPT2))


@click.command(name="write")
@with_settings
@click.option(
    "--out", type=FOLDER, default="written", show_default=True, help="The folder for train.py and data.npz."
)
def write_command(source: str | None, config: Path | None, out: Path, **settings: Any) -> None:
    """Write a network out as a script that needs NumPy only, with its data.

    The script's losses and weights are, bit for bit, those of `handgrad train` on the reference engine with
    the same settings.

    \b
    handgrad write --out digits
    cd digits && python train.py
    """  # fmt: skip
    _check_replaceable(out)
    configuration = configuration_from(source, config, settings)
    experiment, training = Experiment(configuration), configuration.training
    dataset, rows = experiment.dataset, experiment.rows
    if is_sparse(dataset.x):
        raise DataError(
            f"{dataset.name}: the rows are sparse, and a script that needs only NumPy has none",
            fix="write it for an array of a few of them, x[:1000].toarray(), in a .npy file",
        )
    loop = Loop(
        experiment.epochs,
        training.batch_size,
        training.seed,
        schedule=configuration.schedule(),
        micro_batch=training.micro_batch,
    )
    script = experiment.network.write(configuration.optimiser(), loop)
    arrays: dict[str, Any] = {"x": dataset.x[rows.train], "t": dataset.t[rows.train]}
    if len(rows.test):
        arrays |= {"x_test": dataset.x[rows.test], "t_test": dataset.t[rows.test]}
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    write_file(out / "train.py", script)  # first: it is what makes the folder one that may be replaced
    write_file(out / "data.npz", file.getvalue())
    click.echo(f"wrote {out / 'train.py'} and {out / 'data.npz'}: cd {out} && python train.py")


def _check_replaceable(folder: Path) -> None:
    """Raise `RunError` where a folder has a script or data of these names, and not those of an earlier `handgrad write`."""
    script = folder / "train.py"
    written = script.is_file() and b"Written out by handgrad" in script.read_bytes()
    for name in ("train.py", "data.npz"):
        if not written and os.path.lexists(folder / name):
            raise RunError(
                f"{folder / name}: is there already, and `handgrad write` did not write it",
                fix="choose another folder with --out",
            )
