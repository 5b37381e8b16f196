"""Options that several commands share, and the experiment that they describe: its rows and its network."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Mapping
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from handgrad.arrays import Array, Fingerprint, LazyRows, find_change
from handgrad.checkpoints import NAME as CHECKPOINT
from handgrad.configuration import MOST_BYTES, RECIPES, Configuration, read_configuration, read_written
from handgrad.data import Dataset, Split, load
from handgrad.engines import ENGINES
from handgrad.errors import ConfigurationError, DataError, RunError, TrainingError
from handgrad.files import check_file
from handgrad.layers import ACTIVATIONS, LOSSES, OPTIMISERS, SCHEDULES, MeanSquaredError
from handgrad.network import Network
from handgrad.runs import ESTIMATOR
from handgrad.training import RangeTest, find_learning_rate
from handgrad.training.metrics import HEAVY, TAIL, tail_share

F = TypeVar("F", bound=Callable[..., Any])


class NumberRange(click.FloatRange):
    """A range of numbers that nan is not in."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number, or fail as click does."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


class LearningRate(click.ParamType[float | str]):
    """A number, or the word "find"."""

    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Return either, or fail as click does."""
        if value == FIND:
            return FIND
        number: float = click.FLOAT.convert(value, param, ctx)
        return number


class OutputFile(click.Path):
    """A file to be written, named as its format is: another one may be a source that the user has no other copy of."""

    def __init__(self, *endings: str) -> None:
        super().__init__(path_type=Path, dir_okay=False)
        self.endings = endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or fail as click does; a pipe or device such as ``/dev/stdout`` has any name."""
        path: Any = super().convert(value, param, ctx)
        is_device = path.exists() and (not path.is_file() or path.is_relative_to("/dev"))
        if not is_device and path.suffix.lower() not in self.endings:
            self.fail(f"{str(path)!r} does not end in {' or '.join(self.endings)}.", param, ctx)
        return path


FIND = "find"
HTML = OutputFile(".html", ".htm")
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)

SETTINGS: list[tuple[str, str, dict[str, Any]]] = [
    ("data.target", "--target", {"metavar": "NAME", "help": "Column to be predicted (several: a,b)."}),
    ("data.task", "--task", {"metavar": "TASK", "help": "classification or regression, when a file leaves it open."}),
    ("data.drop", "--drop", {"metavar": "NAMES", "help": "Columns that are no features, as a,b."}),
    ("data.only", "--only", {"metavar": "NAMES", "help": "The only columns that are features, as a,b."}),
    ("data.test", "--test", {"type": float, "help": "Share of the rows for the test [0.2; of a text 0.1]."}),
    ("data.validation", "--validation", {"type": float, "help": "Share of the rows watched in training [0.1]."}),
    ("data.standardise", "--standardise", {"metavar": "HOW", "help": "Mean 0 and deviation 1: by feature, over all together, none, or auto: all for pixels, else feature [auto]."}),
    ("data.standardise_targets", "--standardise-targets", {"type": bool, "metavar": "true|false", "help": "The same for values to be predicted [True]."}),
    ("data.context", "--context", {"type": int, "help": "Characters of a text in a window [128]; of a table, that its rows are a time series, and how many a window has."}),
    ("network.transformer.width", "--width", {"type": int, "help": "Features of a text's transformer [128]."}),
    ("network.transformer.heads", "--heads", {"type": int, "help": "Heads of its attention [4]."}),
    ("network.transformer.blocks", "--blocks", {"type": int, "help": "How many blocks it has [4]."}),
    ("network.hidden", "--hidden", {"metavar": "SIZES", "help": "Sizes of the hidden layers, as 128,64 [256]."}),
    ("network.activation", "--activation", {"metavar": "NAME", "help": f"One of {', '.join(ACTIVATIONS)} [relu]."}),
    ("network.normalisation", "--normalisation", {"metavar": "KIND", "help": "none, batch or layer [none]."}),
    ("network.dropout", "--dropout", {"type": float, "help": "Share of hidden values dropped in training [0; of a text 0.2]."}),
    ("network.loss", "--loss", {"metavar": "NAME", "help": f"One of {', '.join(LOSSES)}; by default it follows from the data."}),
    ("network.class_weight", "--class-weight", {"metavar": "HOW", "help": "balanced, so that rare classes count as much as frequent ones, or a number for each class, as 1,4."}),
    ("network.dtype", "--dtype", {"metavar": "TYPE", "help": "float32 or float64 [float32]."}),
    ("training.epochs", "--epochs", {"type": int, "help": "How often to go over the rows; by default 30 times, or more, for 1,000 steps."}),
    ("training.batch_size", "--batch-size", {"type": int, "help": "Rows of an update [32; of a text 4]."}),
    ("training.micro_batch", "--micro-batch", {"type": int, "help": "Rows at a time, whose gradients add up to the batch's; by default all of them."}),
    ("training.optimiser.type", "--optimiser", {"metavar": "NAME", "help": f"One of {', '.join(OPTIMISERS)}; by default Adam at 0.003, for a text AdamW at 0.002."}),
    ("training.optimiser.learning_rate", "--learning-rate", {"type": LearningRate(), "metavar": "RATE", "help": "Length of a step; of `handgrad train` also find: found by a range test."}),
    ("training.optimiser.momentum", "--momentum", {"type": float, "help": "Of SGD."}),
    ("training.optimiser.weight_decay", "--weight-decay", {"type": float, "help": "How fast weights shrink."}),
    ("training.optimiser.clip_norm", "--clip-norm", {"type": float, "help": "Longest gradient, all parameters together."}),
    ("training.schedule", "--schedule", {"metavar": "NAME", "help": f"One of {', '.join(SCHEDULES)} [Cosine]."}),
    ("training.patience", "--patience", {"type": int, "help": "Stop after so many epochs without a lower validation loss."}),
    ("training.seed", "--seed", {"type": int, "help": "Of the split, the weights, the order and the masks [0]."}),
    ("training.engine", "--engine", {"metavar": "NAME", "help": f"What runs the program: one of {', '.join(ENGINES)} [compiled]."}),
    ("training.devices", "--devices", {"type": int, "help": "How many devices the engine jax divides a batch among; by default all."}),
]  # fmt: skip


RATE = "training.optimiser.learning_rate"
REMEDIES = {
    "find_learning_rate:": "--learning-rate find:",
    "try a learning rate of": "try --learning-rate",
    "clip_norm=1.0": "--clip-norm 1",
    "put Standardise() first": "--standardise auto",
    "put StandardiseTargets() last": "--standardise-targets true",
    "with engine='reference', or in float64": "with --engine reference, or --dtype float64",
    "with engine='reference'": "with --engine reference",
    "train in float64": "give --dtype float64",
}
"""What a training's errors advise in Python, and the options for it."""

FLAGS = {name.replace(".", "__"): flag for name, flag, _ in SETTINGS}


def with_settings(command: F) -> F:
    """Give a command the data source and every setting; it receives them as ``settings``.

    A source that ends in .toml is the configuration. An error about a setting that was given as an option names the option.
    """

    @wraps(command)
    def with_option_names(*arguments: Any, **given: Any) -> Any:
        if (source := given["source"] or "").endswith(".toml"):
            if given["config"] is not None:
                raise ConfigurationError(
                    f"two configurations are given, {source} and --config {given['config']}",
                    fix="give one, and what differs as options",
                )
            given |= {"source": None, "config": Path(source)}
        try:
            return command(*arguments, **given)
        except ConfigurationError as error:
            raise _with_option_names(error, given) from None
        except TrainingError as error:
            raise error.reworded(REMEDIES) from None

    decorated: Any = with_option_names
    for name, flag, more in reversed(SETTINGS):
        decorated = click.option(flag, name.replace(".", "__"), **{"default": None, **more})(decorated)
    decorated = click.option(
        "--config", type=FILE, help=f"A TOML file, or a recipe: {', '.join(RECIPES)}; options go over it."
    )(decorated)
    made: F = click.argument("source", required=False)(decorated)
    return made


def _with_option_names(error: ConfigurationError, given: Mapping[str, Any]) -> ConfigurationError:
    """Put the option in place of the setting that an error begins with, if it was given as one, or no file was given."""
    setting = re.match(r"[\w.]*", error.problem)[0]  # type: ignore[index] # which matches any text
    rest = error.problem[len(setting) :]
    for name, flag, _ in SETTINGS:
        of_table = name.startswith(f"{setting}.") and re.search(rf"\b{name.rpartition('.')[2]}\b", rest)
        was_given = given.get(name.replace(".", "__")) is not None
        if (name == setting and (was_given or given.get("config") is None)) or (was_given and of_table):
            fix = error.fix or ""
            for other, its_flag, _ in SETTINGS:
                fix = re.sub(rf"\b{re.escape(other)}\b", its_flag, fix)
            return ConfigurationError(f"{flag}{rest}", given=error.given, fix=fix)
    return error


def json_option(text: str = "Print one JSON object.") -> Callable[[F], F]:
    """Give a command ``--json``; it receives it as ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help=text)


def refuse_settings(source: str | None, what: str, config: Path | None, settings: Mapping[str, Any]) -> None:
    """Raise `ConfigurationError` for the first setting given with a source that has its own."""
    given = [name for name, value in {"config": config, **settings}.items() if value is not None]
    if given:
        raise ConfigurationError(
            f"{source} is {what}, which has its own settings", given=FLAGS.get(given[0], "--config")
        )


def configuration_from(
    source: str | None,
    config: Path | None,
    settings: Mapping[str, Any],
    over: Mapping[str, Any] | None = None,
    *,
    shown: bool = False,
) -> Configuration:
    """Put a command's source and settings over its file, and ``over``, by dotted names, over these.

    A run's fingerprint holds for the run's own data only. What is only ``shown`` needs no data.
    """
    values = {name.replace("__", "."): value for name, value in settings.items()}
    if values[RATE] == FIND:
        raise ConfigurationError(
            "--learning-rate: only a new training finds it", fix="give a number, or the run that found one"
        )
    target = values["data.target"]
    values["data.source"] = source
    if target:
        names = names_in(target, "--target")
        values["data.target"] = names[0] if len(names) == 1 else names
    for name, flag in (("data.drop", "--drop"), ("data.only", "--only")):
        values[name] = names_in(values[name], flag) if values[name] else None
    if (hidden := values["network.hidden"]) is not None:
        values["network.hidden"] = _listed(hidden, int, "--hidden", "sizes", "as in --hidden 128,64")
    if (weights := values["network.class_weight"]) not in (None, "balanced"):
        fix = "as in --class-weight 1,4, or --class-weight balanced"
        values["network.class_weight"] = _listed(weights, float, "--class-weight", "numbers", fix)
    values |= over or {}
    configuration = read_configuration(config, values, shown=shown)
    if any(values[f"data.{name}"] is not None for name in ("source", "target", "task", "drop", "only")):
        configuration.data.fingerprint = None
    return configuration


def names_in(text: str, flag: str) -> list[str]:
    """Return the names of an option: a row of CSV, so that a name with a comma can be quoted.

    Examples
    --------
    >>> names_in('id,"price, net"', "--drop")
    ['id', 'price, net']
    """
    try:
        return next(csv.reader([text]))
    except csv.Error:  # a line end without quotes
        raise ConfigurationError(
            f"{flag}: {text!r} is not a list of names", fix=f"as in {flag} 'id,\"price, net\"'"
        ) from None


def _listed(text: str, kind: type[float], flag: str, what: str, fix: str) -> list[float]:
    """Return the numbers of an option, between commas."""
    try:
        return [kind(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ConfigurationError(f"{flag}: {text!r} is not a list of {what}", fix=fix) from None


class Experiment:
    """A configuration with its data set, its split and its untrained network, each made when it is first needed."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration

    @property
    def dataset(self) -> Dataset:
        """The rows that the configuration names, columns fitted on those that train; a `DataError` when a run had others."""
        return self._data[0]

    @property
    def rows(self) -> Split:
        """Which rows train, validate and test."""
        return self._data[1]

    @cached_property
    def _data(self) -> tuple[Dataset, Split]:
        settings, task = self.configuration.data, self.configuration.data.task
        if task is None and (
            known := (settings.fingerprint or {}).get("t")
        ):  # a run's task is not inferred again
            task = "classification" if known.dtype == "int64" else "regression"
        dataset = load(
            settings.source,
            target=settings.target,
            task=task,
            drop=settings.drop or (),
            only=settings.only or (),
            context=settings.context,
        )
        rows = self.configuration.split(dataset)
        dataset = dataset.fitted_on(rows.train)
        before, now = settings.fingerprint or {}, fingerprints(dataset) if settings.fingerprint else {}
        # older runs have none of the names
        if change := find_change(before, {name: each for name, each in now.items() if name in before}):
            raise DataError(
                f"{settings.source}: the data has changed since the run: {change}",
                fix="bring back the data as it was, or name the source, to take it as it is",
            )
        return dataset, rows

    @property
    def epochs(self) -> int:
        """How often the training goes over its rows."""
        return self.configuration.epochs(len(self.rows.train))

    @cached_property
    def network(self) -> Network:
        """The network before training."""
        return self.configuration.build(self.dataset)

    def find_learning_rate(self, network: Network, rows: Array) -> RangeTest:
        """Find a learning rate for an untrained network on some of the rows, all else as in the configuration."""
        settings = self.configuration.training
        return find_learning_rate(
            network,
            self.dataset.x,
            self.dataset.t,
            optimiser=self.configuration.optimiser(),
            rows=rows,
            batch_size=settings.batch_size,
            micro_batch=settings.micro_batch,
            seed=settings.seed,
            engine=settings.engine,
            devices=settings.devices,
        )

    @cached_property
    def heavy_tails(self) -> dict[str, float] | None:
        """How many training rows have which share of the targets' squared deviations, where `Huber` is to be offered."""
        if not isinstance(self.network.loss, MeanSquaredError):
            return None
        t, rows = self.dataset.t.reshape(len(self.dataset), -1), self.rows.train
        share = tail_share(LazyRows(t, rows))  # type: ignore[arg-type]
        return {"rows": max(1, round(len(rows) * TAIL)), "share": share} if share > HEAVY else None


def fingerprints(dataset: Dataset) -> dict[str, Fingerprint]:
    """Return the fingerprints of a data set's arrays, and of the names of its columns and classes."""
    names = {"columns": dataset.feature_names, "classes": dataset.classes}
    arrays = {"x": Fingerprint.of(dataset.x), "t": Fingerprint.of(dataset.t)}
    return arrays | {name: Fingerprint.of_names(each) for name, each in names.items()}


def is_run(source: str | None) -> bool:
    """Whether a source of data or of a network is a run folder, finished or not."""
    return bool(source) and any((Path(source or "") / name).exists() for name in ("run.json", CHECKPOINT))


def is_own_file(source: str | None) -> bool:
    """Whether a source of a network is a Python file, FILE.py or FILE.py:NAME."""
    return re.search(r"\.py(:\w+)?$", source or "") is not None


def read_settings(folder: Path) -> Configuration:
    """Read a run's settings; its file may be untrusted. An estimator's has no data among them."""
    path = folder / "config.toml"
    check_file(path, MOST_BYTES)
    return read_configuration(path, {}) if (folder / ESTIMATOR).exists() else read_written(path)


def read_data_settings(folder: Path) -> Configuration:
    """Read a run's settings, its data among them, which an estimator's run does not have: that is a `RunError`."""
    if (folder / ESTIMATOR).exists():
        raise RunError(
            f"{folder}: holds an estimator, whose training data is not known",
            fix="name the data where the command takes it; to train further, load the estimator in Python and fit it",
        )
    return read_settings(folder)
