"""``handgrad explain``."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from handgrad.checking.input_draws import draw, draw_for
from handgrad.checking.interfaces.own_objects import draw_rows
from handgrad.checking.subject import CheckError
from handgrad.cli.console import echo_coloured
from handgrad.cli.lab import ROWS, lab_page, small_network
from handgrad.cli.options import (
    HTML,
    Experiment,
    configuration_from,
    is_own_file,
    is_run,
    json_option,
    read_data_settings,
    refuse_settings,
    with_settings,
)
from handgrad.cli.user_file import find, import_file, importing_from
from handgrad.data.builtin import BUILT_IN
from handgrad.errors import ConfigurationError, DataError, nearest
from handgrad.explaining import Explanation, explain
from handgrad.explaining.record import Snapshot
from handgrad.explaining.snapshots import with_training
from handgrad.explaining.terminal import WIDTH, show_health, show_jacobian, show_line, show_overview
from handgrad.files import write_output
from handgrad.layers import Optimiser
from handgrad.network import Network
from handgrad.rules import RULES, Rule
from handgrad.runs import load_run, match_classes, match_features, read_snapshots

NEXT_STEP = "`handgrad explain --line dW1` explains one line; `handgrad explain --html page.html` is all of it as a page."


@click.command(name="explain")
@click.option("--line", metavar="NAME", help="One line's shape, reason, chain rule and Jacobian: dW1.")
@click.option("--jacobian", metavar="OUTPUT:INPUT", help="Of one value with respect to another: z1:W1.")
@click.option("--example", type=click.IntRange(min=0), help="The row whose Jacobian it is, from 0.")
@click.option("--health", is_flag=True, help="What is dead, saturated, vanishing, and why.")
@click.option("--numbers", is_flag=True, help="The numbers too, some of them.")
@click.option("--rows", type=click.IntRange(min=1), help="Size of the batch [32; of the small network 64].")
@click.option("--html", type=HTML, help="Write a page to look at.")
@json_option("Print the whole explanation as one JSON object.")
@with_settings
def explain_command(
    source: str | None,
    config: Path | None,
    line: str | None,
    jacobian: str | None,
    example: int | None,
    health: bool,
    numbers: bool,
    rows: int | None,
    html: Path | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Explain gradients: every shape and why, which line differentiates which, Jacobians, and what went dead.

    With nothing named it is the small untrained network of `handgrad lab`. SOURCE is a run folder, a configuration
    (.toml), data as for `handgrad train` with the same settings, a rule of handgrad's by its name, or FILE.py:NAME, a
    network or a rule of your own.
    The batch is the first rows that training did not see; for a file of your own NAME_inputs or inputs, as for
    `handgrad check`, or random numbers.

    \b
    handgrad explain --line dW1
    handgrad explain runs/digits --jacobian z1:W1 --example 0
    handgrad explain runs/digits --health
    handgrad explain softmax --jacobian y:z
    handgrad explain layer.py:swish --html swish.html
    """
    pairs = [jacobian] if jacobian else []
    unnamed = source is None and config is None and all(value is None for value in settings.values())
    if unnamed:
        explanation = small_network(rows or ROWS, pairs, example)
    else:
        subject = _subject(source, config, settings, rows or 32)
        found = explain(
            subject.model, *subject.arrays, jacobians=pairs, example=example, optimiser=subject.optimiser
        )
        explanation = replace(with_training(found, subject.snapshots), origin=subject.origin)
    if html is not None:
        from handgrad.explaining.page import render_page

        as_in_lab = unnamed and not (rows or jacobian or example)
        write_output(html, lab_page() if as_in_lab else render_page(explanation))
        click.echo(f"wrote {html}", err=True)
    if as_json:
        click.echo(explanation.to_json())
    elif html is None or line or jacobian or health:
        echo_coloured(_text(explanation, line, jacobian, health=health, numbers=numbers), _coloured)
        wrong = [
            each.target for each in explanation.lines if each.witness and each.witness.verdict == "wrong"
        ]
        if wrong and is_own_file(source):
            click.echo(
                f"\n{', '.join(wrong)}: wrong, against numerical gradients; `handgrad check {source}` names the mistake"
            )
        if unnamed and not (line or jacobian or health):
            click.echo(f"\n{textwrap.fill(NEXT_STEP, WIDTH)}")


def _text(
    explanation: Explanation, line: str | None, jacobian: str | None, *, health: bool, numbers: bool
) -> str:
    parts = [show_line(explanation, line, numbers=numbers)] if line else []
    parts += [show_jacobian(each, explanation, numbers=numbers) for each in explanation.jacobians if jacobian]
    parts += [show_health(explanation)] if health else []
    return "\n\n".join(parts or [show_overview(explanation)])


class _Subject(NamedTuple):
    """A network or a rule, and the arrays that it is explained at."""

    model: Network | Rule
    arrays: tuple[Any, ...]
    optimiser: Optimiser | None = None
    snapshots: tuple[Snapshot, ...] = ()
    origin: str = ""


def _subject(source: str | None, config: Path | None, settings: Mapping[str, Any], rows: int) -> _Subject:
    named = source or ""
    if is_own_file(source):
        refuse_settings(named, "a file of your own", config, settings)
        return _of_file(named, rows)
    if is_run(source):
        refuse_settings(named, "a run", config, settings)
        run, experiment = load_run(named), Experiment(read_data_settings(Path(named)))
        dataset, chosen = experiment.dataset, _batch(experiment, rows)
        arrays = match_features(run, dataset)[chosen], match_classes(run, dataset)[chosen]
        optimiser = experiment.configuration.optimiser()
        origin = f"trained weights of {Path(named).name}, {_which(experiment, len(chosen))}"
        return _Subject(run.network, arrays, optimiser, read_snapshots(Path(named)), origin)
    if named in RULES and named not in BUILT_IN and not Path(named).exists():
        refuse_settings(named, "a rule", config, settings)
        drawn = draw_for(RULES[named], np.random.default_rng(0))
        return _Subject(RULES[named], tuple(drawn.values()), origin="random inputs")
    if re.fullmatch(r"[\w-]+", named) and named not in BUILT_IN and not Path(named).exists():
        known = [*BUILT_IN, *RULES]
        near = get_close_matches(named, known)
        raise DataError(
            f"{named}: there is no data set, no run and no rule of this name",
            fix=f"the nearest are {', '.join(near)}" if len(near) > 1 else nearest(named, known),
        )
    experiment = Experiment(configuration_from(source, config, settings))
    dataset, network, chosen = experiment.dataset, experiment.network, _batch(experiment, rows)
    network.standardise(dataset.x, dataset.t)
    arrays, optimiser = (dataset.x[chosen], dataset.t[chosen]), experiment.configuration.optimiser()
    return _Subject(network, arrays, optimiser, (), f"initial weights, {_which(experiment, len(chosen))}")


def _batch(experiment: Experiment, rows: int) -> Any:
    """Return the numbers of the first test rows, or of all where there are none."""
    test = experiment.rows.test
    return np.sort(test if len(test) else np.arange(len(experiment.dataset)))[:rows]


def _which(experiment: Experiment, count: int) -> str:
    """State which rows `_batch` returned."""
    if len(experiment.rows.test):
        return f"the first {count} test rows, which training does not see"
    return f"the first {count} rows, which are training rows"


def _of_file(source: str, rows: int) -> _Subject:
    """Return the only network or rule of a file, or the one named, with its inputs or random ones."""
    file, _, name = source.partition(".py")
    path, generator = Path(f"{file}.py"), np.random.default_rng(0)
    with importing_from(path):
        module = import_file(path)
        own = [
            each for each, value in vars(module).items()
            if isinstance(value, Network) or (isinstance(value, Rule) and value.__module__ == module.__name__)
        ]  # fmt: skip
        if not name and len(own) > 1:
            raise ConfigurationError(
                f"{source}: there are {len(own)} networks and rules: {', '.join(own)}",
                fix=f"name one, {source}:{own[0]}",
            )
        try:
            every = find(module, path, name.removeprefix(":") or "".join(own))
        except CheckError:
            if any(isinstance(each, Network | Rule) for each in vars(module).values()):
                raise
            every = []
        known = [each for each in every if isinstance(each.forward, Network | Rule)]
        if not known:
            raise ConfigurationError(
                f"{source}: there is no network and no rule",
                fix=f"explain takes a Network, or a function with @rule; handgrad check {path} judges other functions, and "
                f"handgrad adopt {path} makes a Network of a from-scratch one",
            )
        model, inputs = known[0].forward, known[0].inputs
        if isinstance(model, Network) and model.loss is None:
            raise ConfigurationError(
                f"{source}: {known[0].name} has no loss, at which its gradients begin",
                fix="give it one: Network(…, loss=MeanSquaredError())",
            )
        if inputs is None and isinstance(model, Network):
            origin = f"the weights of {known[0].name} in {path.name}, {rows} random row{'s' * (rows != 1)}"
            return _Subject(model, draw_rows(model, rows, generator), origin=origin)
        drawn = draw(inputs, generator) if inputs is not None else draw_for(model, generator)
        whose = "the inputs that the file gives" if inputs is not None else "random inputs"
        weights = f"the weights of {known[0].name} in {path.name}, " if isinstance(model, Network) else ""
        return _Subject(model, tuple(drawn.values()), origin=f"{weights}{whose}")


def _coloured(line: str) -> str:
    """Put a heading or a verdict in colour."""
    if line and not line.startswith(" "):
        return click.style(line, bold=True)
    colours = {"✓": "green", "✗": "red", "right:": "green", "wrong:": "red"}
    for mark, colour in colours.items():
        if re.match(rf"  (check +)?{mark}", line):
            return line.replace(mark, click.style(mark, fg=colour), 1)
    return line
