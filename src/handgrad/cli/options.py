"""Options that several commands share: what a network and a training are made from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from handgrad.configuration import Configuration, read_configuration
from handgrad.data import Dataset, load
from handgrad.engines import ENGINES
from handgrad.errors import ConfigurationError, DataError
from handgrad.fingerprint import Fingerprint, find_change
from handgrad.layers import ACTIVATIONS, LOSSES, OPTIMISERS, SCHEDULES

F = TypeVar("F", bound=Callable[..., Any])

SETTINGS: list[tuple[str, str, dict[str, Any]]] = [
    ("data.target", "--target", {"metavar": "NAME", "help": "Column to be predicted (several: a,b)."}),
    ("data.task", "--task", {"metavar": "TASK", "help": "classification or regression, when a file leaves it open."}),
    ("data.test", "--test", {"type": float, "help": "Share of the rows kept for the test [0.2]."}),
    ("data.validation", "--validation", {"type": float, "help": "Share of the rows watched in training [0.1]."}),
    ("data.standardise", "--standardise", {"metavar": "HOW", "help": "Mean 0 and deviation 1: by feature, all together, or none [auto]."}),
    ("network.hidden", "--hidden", {"metavar": "SIZES", "help": "Sizes of the hidden layers, as 128,64 [256]."}),
    ("network.activation", "--activation", {"metavar": "NAME", "help": f"One of {', '.join(ACTIVATIONS)} [relu]."}),
    ("network.normalisation", "--normalisation", {"metavar": "KIND", "help": "none, batch or layer [none]."}),
    ("network.dropout", "--dropout", {"type": float, "help": "Share of hidden values dropped in training [0]."}),
    ("network.loss", "--loss", {"metavar": "NAME", "help": f"One of {', '.join(LOSSES)}; by default it follows from the data."}),
    ("network.dtype", "--dtype", {"metavar": "TYPE", "help": "float32 or float64 [float32]."}),
    ("training.epochs", "--epochs", {"type": int, "help": "How often to go over the rows [30]."}),
    ("training.batch_size", "--batch-size", {"type": int, "help": "Rows at a time [32]."}),
    ("training.optimiser.type", "--optimiser", {"metavar": "NAME", "help": f"One of {', '.join(OPTIMISERS)} [Adam]."}),
    ("training.optimiser.learning_rate", "--learning-rate", {"type": float, "help": "Length of a step."}),
    ("training.optimiser.momentum", "--momentum", {"type": float, "help": "Of SGD."}),
    ("training.optimiser.weight_decay", "--weight-decay", {"type": float, "help": "How fast weights shrink."}),
    ("training.optimiser.clip_norm", "--clip-norm", {"type": float, "help": "Longest gradient, all parameters together."}),
    ("training.schedule", "--schedule", {"metavar": "NAME", "help": f"One of {', '.join(SCHEDULES)} [Constant]."}),
    ("training.patience", "--patience", {"type": int, "help": "Stop after so many epochs without a lower validation loss."}),
    ("training.seed", "--seed", {"type": int, "help": "Of the split, the weights, the order and the masks [0]."}),
    ("training.engine", "--engine", {"metavar": "NAME", "help": f"What runs the program: one of {', '.join(ENGINES)} [compiled]."}),
]  # fmt: skip


def with_settings(command: F) -> F:
    """Give a command the data source and every setting; it receives them as ``settings``."""
    for name, flag, more in reversed(SETTINGS):
        command = click.option(flag, name.replace(".", "__"), **{"default": None, **more})(command)
    command = click.option(
        "--config", type=click.Path(path_type=Path, dir_okay=False), help="A TOML file; options go over it."
    )(command)
    return click.argument("source", required=False)(command)


def configuration_from(source: str | None, config: Path | None, settings: dict[str, Any]) -> Configuration:
    """Put a command's source and settings over its configuration file.

    What a run's file says of the data it was trained on does not hold for other data.
    """
    values = {name.replace("__", "."): value for name, value in settings.items()}
    values["data.source"] = source
    hidden, target = values["network.hidden"], values["data.target"]
    values["network.hidden"] = _sizes(hidden) if hidden is not None else None
    values["data.target"] = target.split(",") if target and "," in target else target
    configuration = read_configuration(config, values)
    if any(values[f"data.{name}"] is not None for name in ("source", "target", "task")):
        configuration.data.fingerprint = None
    return configuration


def _sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ConfigurationError(
            f"--hidden: {text!r} is not a list of sizes", fix="as in --hidden 128,64"
        ) from None


def load_data(configuration: Configuration) -> Dataset:
    """Load the rows a configuration names.

    Raises
    ------
    DataError
        When they cannot be read, or a run was trained on others: it says what has changed.
    """
    settings = configuration.data
    dataset = load(settings.source, target=settings.target, task=settings.task)
    if settings.fingerprint and (change := find_change(settings.fingerprint, fingerprints(dataset))):
        raise DataError(
            f"{settings.source}: the data has changed since the run: {change}",
            fix="bring back the data as it was, or name the source, to take it as it is",
        )
    return dataset


def fingerprints(dataset: Dataset) -> dict[str, Fingerprint]:
    """Return what tells whether a data set has changed."""
    return {"x": Fingerprint.of(dataset.x), "t": Fingerprint.of(dataset.t)}
