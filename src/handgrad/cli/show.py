"""``handgrad show``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click

from handgrad.cli.console import engine_text
from handgrad.cli.experiment import Experiment, is_run, read_settings
from handgrad.cli.options import configuration_from, refuse_settings, with_settings
from handgrad.program.program import render_text
from handgrad.runs import load_run, read_facts


@click.command(name="show")
@with_settings
@click.option("--evaluation", is_flag=True, help="The lines outside training instead.")
def command(source: str | None, config: Path | None, evaluation: bool, **settings: Any) -> None:
    """Print a network as a program: every line with its shape and its reason.

    SOURCE is a run folder, or data as for `handgrad train`, with the same settings. For a run, a line on standard
    error names the engine that trained it.

    \b
    handgrad show
    handgrad show moons --hidden 8 --activation tanh --optimiser SGD
    handgrad show runs/digits --evaluation
    """
    if source is not None and is_run(source):
        refuse_settings(source, "a run", config, settings)
        network, configuration = load_run(source).network, read_settings(Path(source))
        if facts := read_facts(Path(source)):
            click.echo(f"{source}: engine {engine_text(facts)}", err=True)
    else:
        configuration = configuration_from(source, config, settings)
        network = Experiment(configuration).network
    program = network.evaluation_program() if evaluation else network.program(configuration.optimiser())
    click.echo(render_text(program, width=max(80, shutil.get_terminal_size((120, 24)).columns)))
