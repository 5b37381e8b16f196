"""``handgrad explain``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from handgrad.checking.subject.adapters import draw_rows
from handgrad.checking.subject.draws import draw, draw_for
from handgrad.cli.evaluate import arranged
from handgrad.cli.options import configuration_from, load_data, with_settings
from handgrad.cli.run_folder import is_run
from handgrad.cli.user_file import Found, find, import_file, importing_from
from handgrad.configuration import read_configuration
from handgrad.data import split
from handgrad.errors import ConfigurationError
from handgrad.explaining import Explanation, explain
from handgrad.explaining.record import Snapshot
from handgrad.explaining.snapshots import with_training
from handgrad.explaining.terminal import show_health, show_jacobian, show_line, show_overview
from handgrad.files import write_file
from handgrad.layers import Optimiser
from handgrad.network import Network
from handgrad.rules import Rule
from handgrad.runs import load_run, match_classes, read_snapshots


@click.command(name="explain")
@click.option("--line", metavar="NAME", help="One line's shape, reason, chain rule and Jacobian: dW1.")
@click.option("--jacobian", metavar="OUTPUT:INPUT", help="Of one value with respect to another: z1:W1.")
@click.option("--example", type=click.IntRange(min=0), help="The row whose Jacobian it is, from 0.")
@click.option("--health", is_flag=True, help="What is dead, saturated, vanishing, and why.")
@click.option("--numbers", is_flag=True, help="The numbers too, some of them.")
@click.option("--rows", type=click.IntRange(min=1), default=32, show_default=True, help="Size of the batch.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write a page to look at.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole explanation as one JSON object.")
@with_settings
def command(
    source: str | None,
    config: Path | None,
    line: str | None,
    jacobian: str | None,
    example: int | None,
    health: bool,
    numbers: bool,
    rows: int,
    html: Path | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Explain gradients: every shape and why, which line undoes which, Jacobians, and what went dead.

    SOURCE is a run folder, a configuration (.toml), data as for `handgrad train` with the same settings, or
    FILE.py:NAME, a network or a rule of your own. The batch is the first rows that training did not see; for a
    file of your own NAME_inputs or inputs, as for `handgrad check`, or random numbers.

    \b
    handgrad explain --line dW1
    handgrad explain runs/digits --jacobian z1:W1 --example 0
    handgrad explain runs/digits --health
    handgrad explain layer.py:swish --html swish.html
    """
    subject = _subject(source, config, settings, rows)
    explanation = explain(
        subject.thing,
        *subject.arrays,
        jacobians=[jacobian] if jacobian else [],
        example=example,
        optimiser=subject.optimiser,
    )
    if subject.snapshots:
        explanation = with_training(explanation, subject.snapshots)
    if html is not None:
        from handgrad.explaining.page import render_page

        write_file(html, render_page(explanation))
        click.echo(f"wrote {html}", err=True)
    if as_json:
        click.echo(explanation.to_json())
    elif html is None or line or jacobian or health:
        click.echo(_coloured(_text(explanation, line, jacobian, health=health, numbers=numbers)))


def _text(
    explanation: Explanation, line: str | None, jacobian: str | None, *, health: bool, numbers: bool
) -> str:
    parts = [show_line(explanation, line, numbers=numbers)] if line else []
    parts += [show_jacobian(each, explanation, numbers=numbers) for each in explanation.jacobians if jacobian]
    parts += [show_health(explanation)] if health else []
    return "\n\n".join(parts or [show_overview(explanation)])


@dataclass(frozen=True)
class _Subject:
    """What is explained, at which arrays."""

    thing: Network | Rule
    arrays: tuple[Any, ...]
    optimiser: Optimiser | None = None
    snapshots: tuple[Snapshot, ...] = ()


def _subject(source: str | None, config: Path | None, settings: Mapping[str, Any], rows: int) -> _Subject:
    named = source or ""
    own = re.search(r"\.py(:\w+)?$", named)
    given = [name for name, value in {"config": config, **settings}.items() if value is not None]
    if (own or is_run(source)) and given:
        what = "a file of your own" if own else "a run"
        raise ConfigurationError(
            f"{named} is {what}, which has its own settings", given=given[0].replace("__", ".")
        )
    if own:
        return _of_file(named, rows)
    if is_run(source):
        return _of_run(Path(named), rows)
    if named.endswith(".toml"):
        source, config = None, Path(named)
    configuration = configuration_from(source, config, dict(settings))
    dataset = load_data(configuration)
    network = configuration.build(dataset)
    chosen = _batch(configuration, dataset, rows)
    network.standardise(dataset.x)
    return _Subject(network, (dataset.x[chosen], dataset.t[chosen]), configuration.optimiser())


def _of_run(folder: Path, rows: int) -> _Subject:
    run, configuration = load_run(folder), read_configuration(folder / "config.toml", {})
    dataset = load_data(configuration)
    chosen = _batch(configuration, dataset, rows)
    x, t = arranged(run, dataset)[chosen], match_classes(run, dataset)[chosen]
    return _Subject(run.network, (x, t), configuration.optimiser(), read_snapshots(folder))


def _batch(configuration: Any, dataset: Any, rows: int) -> Any:
    """Return the numbers of the first rows that are kept from training, or of all where none are."""
    data, seed = configuration.data, configuration.training.seed
    kept = split(dataset, test=data.test, validation=data.validation, seed=seed).test
    return np.sort(kept if len(kept) else np.arange(len(dataset)))[:rows]


def _of_file(source: str, rows: int) -> _Subject:
    file, _, name = source.partition(".py")
    path = Path(f"{file}.py")
    generator = np.random.default_rng(0)
    with importing_from(path.parent):
        found = _chosen(find(import_file(path), path, name.removeprefix(":")), source)
        thing = found.forward
        if found.inputs is not None:
            return _Subject(thing, tuple(draw(found.inputs, generator).values()))
        if isinstance(thing, Rule):
            return _Subject(thing, tuple(draw_for(thing, generator).values()))
        return _Subject(thing, draw_rows(thing, rows, generator))


def _chosen(found: list[Found], source: str) -> Found:
    """Return the only network or rule of what was found."""
    known = [each for each in found if isinstance(each.forward, Network | Rule)]
    if not known:
        raise ConfigurationError(
            f"{source}: there is no network and no rule",
            fix="explain takes a Network, or a function with @rule",
        )
    if len(known) > 1:
        names = ", ".join(f"{each.name}" for each in known)
        raise ConfigurationError(
            f"{source}: there are {len(known)}: {names}", fix=f"name one, {source}:{known[0].name}"
        )
    return known[0]


def _coloured(text: str) -> str:
    """Put headings and verdicts in colour, which click leaves out where no terminal reads."""
    if os.environ.get("NO_COLOR"):
        return text
    return "\n".join(map(_coloured_line, text.splitlines()))


def _coloured_line(line: str) -> str:
    if line and not line.startswith(" "):
        return click.style(line, bold=True)
    colours = {"✓": "green", "✗": "red", "right:": "green", "wrong:": "red"}
    for mark, colour in colours.items():
        if re.match(rf"  (witness +)?{mark}", line):
            return line.replace(mark, click.style(mark, fg=colour), 1)
    return line
