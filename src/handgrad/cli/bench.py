"""``handgrad bench``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from handgrad.cli.console import one_line
from handgrad.cli.options import (
    Experiment,
    NumberRange,
    configuration_from,
    is_run,
    json_option,
    read_data_settings,
    with_settings,
)
from handgrad.errors import EngineError
from handgrad.training import EngineTime, measure_engines

COLUMNS = "  {:<9}  {:>9}  {:>6}  {:>13}  {:>5}  {:>8}  {:<22}  {:>7}"
HEADINGS = ("engine", "µs a step", "varied", "rows a second", "ratio", "start-up", "BLAS", "threads")


@click.command(name="bench")
@with_settings
@click.option(
    "--seconds",
    type=NumberRange(min=0, min_open=True, max=3600),
    default=1.0,
    show_default=True,
    help="How long each engine runs.",
)
@json_option()
def bench_command(
    source: str | None, config: Path | None, seconds: float, as_json: bool, **settings: Any
) -> None:
    """Time a network on this machine, engine by engine.

    SOURCE is data as for `handgrad train`, with the same settings, or a run folder. Every engine, or the one that
    --engine names, has ten turns; a step is one batch forward, backward and the update. When the slowest turn
    took far longer than the fastest ("varied"), the machine was busy with something else. Start-up is the time before:
    libraries, and compiling what this machine has not compiled before. Nothing is saved.

    \b
    handgrad bench
    handgrad bench mnist --hidden 128 --batch-size 128
    handgrad bench runs/digits --seconds 3 --json
    """
    if source is not None and is_run(source) and config is None:
        read_data_settings(Path(source))  # raises where they are not whole
        config, source = Path(source) / "config.toml", None
    configuration = configuration_from(source, config, settings)
    experiment, training = Experiment(configuration), configuration.training
    dataset, rows, network = experiment.dataset, experiment.rows.train, experiment.network
    batch_size = min(training.batch_size, len(rows))
    if not as_json:
        at_once = f"{len(rows):,} training rows, {batch_size:,} at a time"
        click.echo(f"{dataset.name}: {at_once} · {network.title}", err=True)
    with _progress() as progress:
        times = measure_engines(
            network,
            dataset.x[rows],
            dataset.t[rows],
            engines=[training.engine] if settings["training__engine"] else None,
            batch_size=batch_size,
            optimiser=configuration.optimiser(),
            devices=training.devices,
            seconds=seconds,
            seed=training.seed,
            progress=progress,
        )
    if all(each.problem for each in times):
        raise EngineError(_problem(times[0]))
    if as_json:
        given = {"data": dataset.name, "network": network.title, "rows": len(rows), "batch_size": batch_size}
        click.echo(json.dumps(given | {"engines": [_as_json(each) for each in times]}))
    else:
        _show(times)


@contextmanager
def _progress() -> Iterator[Callable[[str, float], None] | None]:
    """Give a callback that shows the progress, on a terminal; the line is erased at the end."""
    if not sys.stderr.isatty():
        yield None
        return

    def show(engine: str, share: float) -> None:
        click.echo(f"\r{f'{share:4.0%}  {engine}':<40}", err=True, nl=False)

    try:
        yield show
    finally:
        click.echo(f"\r{'':<40}\r", err=True, nl=False)


def _as_json(each: EngineTime) -> dict[str, Any]:
    facts = {name: value for name, value in each.facts.items() if name != "engine"}
    return {
        "engine": each.engine,
        "microseconds_per_step": each.step_seconds and each.step_seconds * 1e6,
        "spread": each.spread,
        "rows_per_second": each.rows_per_second,
        "ratio": each.ratio,
        "startup_seconds": each.startup_seconds,
        "steps": each.steps,
        "problem": each.problem or None,
        **facts,
    }


def _show(times: list[EngineTime]) -> None:
    click.echo(click.style(COLUMNS.format(*HEADINGS), dim=True))
    for each in sorted(times, key=lambda each: bool(each.problem)):
        if each.step_seconds is None or each.rows_per_second is None:
            click.echo(f"  {_problem(each)}")
            continue
        is_xla = "devices" in each.facts
        micros = each.step_seconds * 1e6
        cells = (
            each.engine,
            f"{micros:,.{1 if micros < 100 else 0}f}",
            f"{each.spread:.1f}×",
            f"{each.rows_per_second:,.0f}",
            f"{each.ratio:.2f}",
            f"{each.startup_seconds:.2f} s",
            str(each.facts.get("blas", f"XLA, {each.facts['devices']}" if is_xla else "NumPy's")),
            str(each.facts.get("threads", "XLA's" if is_xla else "NumPy's")),
        )
        click.echo(COLUMNS.format(*cells))


def _problem(each: EngineTime) -> str:
    return f"the {each.engine} engine cannot run this network: {one_line(each.problem)}"
