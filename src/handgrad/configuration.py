"""What a training is made from: data, network and loop, read from a file and from command-line options."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from handgrad.arrays import Array, Fingerprint, is_sparse
from handgrad.data import Dataset, Split, Task
from handgrad.data.dataset import divide
from handgrad.data.text import is_text
from handgrad.engines import ENGINES, check_devices
from handgrad.errors import ConfigurationError, nearest
from handgrad.layers import (
    ACTIVATIONS,
    LAYERS,
    LOSSES,
    OPTIMISERS,
    SCHEDULES,
    BatchNorm,
    Dropout,
    Embedding,
    Huber,
    Layer,
    LayerNorm,
    Linear,
    Loss,
    MeanSquaredError,
    Optimiser,
    Schedule,
    Sigmoid,
    SoftmaxCrossEntropy,
    Standardise,
    StandardiseTargets,
    Tanh,
    gpt_layers,
)
from handgrad.network import Network
from handgrad.specs import explain, find, from_table

# The defaults of a training, chosen on tables of 20 to 6,000 rows: see benchmarks/tables.py.
LEAST_EPOCHS, LEAST_STEPS = 30, 1000
OPTIMISER: dict[str, Any] = {"type": "Adam", "learning_rate": 0.003}

NORMALISATIONS: dict[str, type[Layer]] = {"batch": BatchNorm, "layer": LayerNorm}

RECURRENT = ("RNN", "GRU", "LSTM")
"""Layers that may come first and leave it to a series how many columns it has."""

RECIPES = {path.stem: path for path in sorted(Path(__file__).with_name("recipes").glob("*.toml"))}
"""Files of settings that come with the package, by name."""

FOR_TEXT = RECIPES["gpt"]
"""The settings that a text has where none are given."""

MOST_BYTES = 2**20  # of a file of settings
TOO_DEEP = re.compile(
    r"""(?<![\w"'-])(?:[\w"'-]+\s*\.\s*){30}"""
)  # tomllib takes minutes for a.a.a… of 100 kB

Count = Annotated[int, Meta(ge=1, le=10**9)]
Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Share = Annotated[float, Meta(ge=0, lt=1)]


class DataSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which rows: ``source`` and its columns as `handgrad.data.load` takes them, and the shares of validation and test.

    ``standardise`` is "feature", "all", "none", or "auto": bytes, as pixels are, all together, else by feature.
    ``standardise_targets`` does the same to the values that a regression predicts, each column by itself; for `Huber` by
    median and median absolute deviation.
    ``inputs`` and ``outputs`` are the shape of a row and the number of classes that a recipe is for, by which `handgrad show`
    shows it without the data.
    ``context`` is how many characters of a text, or rows of a time series, a window has.
    ``fingerprint`` is what identifies the data of a run.
    """

    source: str = "digits"
    target: str | list[str] | None = None
    task: Task | None = None
    drop: list[str] | None = None
    only: list[str] | None = None
    test: Share = 0.2
    validation: Share = 0.1
    standardise: Literal["auto", "feature", "all", "none"] = "auto"
    standardise_targets: bool = True
    context: Count | None = None
    inputs: list[Count] | None = None
    outputs: Count | None = None
    fingerprint: dict[str, Fingerprint] | None = None


class TransformerSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A network for texts, as `handgrad.layers.gpt_layers` makes it."""

    width: Count = 128
    heads: Count = 4
    blocks: Count = 4
    recompute: bool = False


class NetworkSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which network: hidden sizes, or of a text a transformer's, or ``layers``, each a table with its type.

    ``class_weight`` is how many times each class counts in the loss: a number for each, in the order of the classes, or
    "balanced", n / (C · count) of the training rows, so that each class counts as much as any other.
    """

    hidden: list[Count] = msgspec.field(default_factory=lambda: [256])
    activation: str = "relu"
    normalisation: Literal["none", "batch", "layer"] = "none"
    dropout: Share = 0.0
    layers: list[str | dict[str, Any]] = []
    transformer: TransformerSettings | None = None
    loss: str | dict[str, Any] | None = None
    class_weight: Literal["balanced"] | list[float] | None = None
    dtype: Literal["float32", "float64"] = "float32"


class TrainingSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How it is trained; optimiser and schedule are names, or tables with a type.

    Where ``epochs`` is not set, there are 30, and for small data as many as make 1,000 steps. The learning rate falls to 0.
    """

    epochs: Count | None = None
    batch_size: Count = 32
    micro_batch: Count | None = None
    optimiser: str | dict[str, Any] = msgspec.field(default_factory=OPTIMISER.copy)
    schedule: str | dict[str, Any] = "Cosine"
    patience: Count | None = None
    seed: Seed = 0
    engine: str = "compiled"
    devices: Count | None = None


class Configuration(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Everything a training is made from; every setting has a default."""

    data: DataSettings = msgspec.field(default_factory=DataSettings)
    network: NetworkSettings = msgspec.field(default_factory=NetworkSettings)
    training: TrainingSettings = msgspec.field(default_factory=TrainingSettings)

    def optimiser(self) -> Optimiser:
        """Make the optimiser."""
        return from_table(self.training.optimiser, "training.optimiser", OPTIMISERS)

    def schedule(self) -> Schedule:
        """Make the schedule."""
        return from_table(self.training.schedule, "training.schedule", SCHEDULES)

    def epochs(self, rows: int) -> int:
        """Return how often to go over so many training rows: as set, or what the default is for them."""
        steps = -(-rows // self.training.batch_size)
        return self.training.epochs or max(LEAST_EPOCHS, -(-LEAST_STEPS // steps))

    def loss(self, dataset: Dataset) -> Loss:
        """Make the loss: as set, or the one that goes with the task; with the weights of the classes."""
        if self.network.loss is not None:
            loss = from_table(self.network.loss, "network.loss", LOSSES)
        else:
            loss = SoftmaxCrossEntropy() if dataset.task == "classification" else MeanSquaredError()
        weights, count = self.network.class_weight, len(dataset.classes)
        if weights is None:
            return loss
        if not isinstance(loss, SoftmaxCrossEntropy):
            raise ConfigurationError(
                f"network.class_weight: {loss!r} takes no class weights",
                fix="leave it out, or choose SoftmaxCrossEntropy for classes",
            )
        if weights == "balanced":
            weights = _balanced(dataset.t[self.split(dataset).train], count)
        elif len(weights) != count:
            raise ConfigurationError(
                f"network.class_weight: {len(weights)} numbers, and {dataset.name} has {count} classes",
                fix=f"give a number for each of {', '.join(dataset.classes)}, in this order",
            )
        return replace(loss, class_weight=weights)

    def changed(self, setting: str, value: Any) -> Configuration:
        """Return a configuration with another value of a setting, by its dotted name."""
        tables = msgspec.to_builtins(self)
        _put(tables, setting.split("."), value)
        return msgspec.convert(tables, Configuration)

    def split(self, dataset: Dataset) -> Split:
        """Return which rows of a data set train, validate and test."""
        data = self.data
        return divide(dataset, data.test, data.validation, self.training.seed)

    def build(self, dataset: Dataset) -> Network:
        """Make the network for a data set: its inputs, outputs and loss follow from the data."""
        loss = self.loss(dataset)
        inputs, outputs = dataset.x.shape[1:], _outputs(dataset, loss)
        own = (
            self._explicit(outputs, inputs[-1]) or self._transformer(dataset) or self._hidden(inputs, outputs)
        )
        layers = [*self._standardise(dataset, own[0]), *own, *self._standardise_targets(loss, own[-1])]
        training, dtype = self.training, self.network.dtype
        network = Network(*layers, loss=loss, inputs=inputs, seed=training.seed, dtype=dtype)
        if network.output_shape[-1] != outputs:
            raise ConfigurationError(
                f"network.layers: {own[-1]!r} gives {network.output_shape[-1]} outputs, "
                f"and {dataset.name} with {loss!r} needs {outputs}"
            )
        return network

    def check(self) -> None:
        """Raise `ConfigurationError`, beginning with the setting, for what is wrong whatever the data."""
        self.optimiser()
        self.schedule()
        find(self.network.activation, ACTIVATIONS, "network.activation")
        find(self.training.engine, ENGINES, "training.engine")
        check_devices(self.training.engine, self.training.devices)
        self._explicit()
        if self.network.loss is not None:
            from_table(self.network.loss, "network.loss", LOSSES)
        if self.training.patience is not None and not self.data.validation:
            raise ConfigurationError(
                "training.patience: there are no validation rows to watch", fix="set data.validation to 0.1"
            )

    def _standardise(self, dataset: Dataset, first: Layer) -> list[Layer]:
        over = self.data.standardise
        if isinstance(first, Embedding) and over not in ("auto", "none"):
            what = "characters of a text" if dataset.entries else "indices"
            raise ConfigurationError(
                f"data.standardise: {dataset.name} holds {what}, which have neither mean nor deviation",
                fix="leave it out",
            )
        as_they_are = isinstance(first, Embedding | Standardise) or is_sparse(dataset.x)
        if over == "none" or (over == "auto" and as_they_are):
            return []
        pixels = dataset.x.dtype == "uint8"
        return [Standardise(over="all" if over == "all" or (over == "auto" and pixels) else "feature")]

    def _standardise_targets(self, loss: Loss, last: Layer) -> list[Layer]:
        if isinstance(last, StandardiseTargets) or loss.task != "regression" or loss.least is not None:
            return []
        by: Literal["mean", "median"] = (
            "median" if isinstance(loss, Huber) else "mean"
        )  # outliers are far by that
        return [StandardiseTargets(by)] if self.data.standardise_targets else []

    def _explicit(self, outputs: int = 1, features: int = 1) -> list[Layer]:
        """Make the layers; a recurrent first one has the data's inputs, and a linear last one its outputs, unless stated."""
        tables = [*self.network.layers]
        if tables and isinstance(tables[0], dict) and tables[0].get("type") in RECURRENT:
            tables[0] = {"inputs": features, **tables[0]}
        if tables and isinstance(tables[-1], dict) and tables[-1].get("type") == "Linear":
            tables[-1] = {"outputs": outputs, **tables[-1]}
        layers = [from_table(table, f"network.layers[{k}]", LAYERS) for k, table in enumerate(tables)]
        defaults = NetworkSettings()
        others: tuple[str, ...] = ("hidden", "activation", "normalisation")
        if layers:
            others = (*others, "transformer", "dropout")
        for name in others:
            if (layers or self.network.transformer) and getattr(self.network, name) != getattr(
                defaults, name
            ):
                raise ConfigurationError(
                    f"network.{name}: network.{'layers' if layers else 'transformer'} sets this already",
                    fix="leave one of them out"
                    if layers
                    else "a text's sizes are --width, --heads and --blocks",
                )
        return layers

    def _transformer(self, dataset: Dataset) -> list[Layer]:
        sizes = self.network.transformer
        if sizes is None:
            return []
        if not dataset.entries:
            raise ConfigurationError(
                f"network.transformer: {dataset.name} is no text", fix="leave it out, or train on a text"
            )
        classes, dropout = len(dataset.classes), self.network.dropout
        made = gpt_layers(classes, sizes.width, sizes.heads, sizes.blocks, dropout, recompute=sizes.recompute)
        return [*made]

    def _hidden(self, inputs: tuple[int, ...], outputs: int) -> list[Layer]:
        settings = self.network
        if len(inputs) != 1:
            raise ConfigurationError(
                f"network.hidden: a row of the data has the shape {inputs}, and one axis is needed",
                fix="write network.layers" + (", or give --config series" if len(inputs) == 2 else ""),
            )
        activation = find(settings.activation, ACTIVATIONS, "network.activation")
        start = "glorot_uniform" if activation in (Sigmoid, Tanh) else "he_normal"
        sizes = [*inputs, *settings.hidden, outputs]
        layers = hidden_layers(sizes, start, activation, settings.normalisation, settings.dropout)
        # Inputs are few: from 2 / fan_in the network would begin as a random function as large as standardised targets.
        layers[0] = Linear(sizes[0], sizes[1], initialiser="glorot_uniform")
        return layers


def hidden_layers(
    sizes: Sequence[int], initialiser: str, activation: type[Layer] | None, normalisation: str | None,
    dropout: float,
) -> list[Layer]:  # fmt: skip
    """Return linear layers from each size to the next, with the layers that follow each but the last."""
    kinds = [kind for kind in (NORMALISATIONS.get(str(normalisation)), activation) if kind]
    layers: list[Layer] = []
    *hidden, last = pairwise(sizes)
    for pair in hidden:
        layers += [Linear(*pair, initialiser=initialiser), *(kind() for kind in kinds)]
        layers += [Dropout(dropout)] if dropout else []
    return [*layers, Linear(*last, initialiser="glorot_uniform")]


def _balanced(t: Array, classes: int) -> list[float]:
    """Return n / (C · count) for each class, as scikit-learn has it; a class without rows counts as one with one."""
    counts = np.maximum(np.bincount(t.ravel(), minlength=classes), 1)
    weights: list[float] = (t.size / (classes * counts)).tolist()
    return weights


def _outputs(dataset: Dataset, loss: Loss) -> int:
    """Return how many outputs the last layer needs."""
    if dataset.task == "classification":
        if loss.task == "regression":
            raise ConfigurationError(
                f"{dataset.name} holds classes, and {loss!r} is for values", fix="choose SoftmaxCrossEntropy"
            )
        if loss.task == "labels" and len(dataset.classes) > 2:
            raise ConfigurationError(
                f"{dataset.name} has {len(dataset.classes)} classes, and {loss!r} is for two",
                fix="choose SoftmaxCrossEntropy",
            )
        return 1 if loss.task == "labels" else len(dataset.classes)
    if loss.task == "classification":
        raise ConfigurationError(
            f"{dataset.name} holds values, and {loss!r} is for classes", fix="choose MeanSquaredError"
        )
    return 1 if dataset.t.ndim == 1 else dataset.t.shape[1]


def read_configuration(
    path: Path | None, overrides: Mapping[str, Any], *, shown: bool = False
) -> Configuration:
    """Read a TOML file, if there is one, and put command-line options over it, those that are not None.

    Options have dotted names, ``{"training.epochs": 5}``; ``training.optimiser.learning_rate`` goes into its table.
    Raises `ConfigurationError` with file, line and the nearest key, or what was expected of a value. A recipe without data of
    its own can be ``shown``.
    """
    recipe = RECIPES.get(str(path)) if path and not path.exists() else None
    text, tables = _read_toml(recipe or path)
    given = {name: value for name, value in overrides.items() if value is not None}
    if recipe and "data.source" not in given and "source" not in tables.get("data", {}):
        if shown and "inputs" in tables.get("data", {}):
            given["data.source"] = str(path)
        else:
            raise ConfigurationError(
                f"--config {path}: this recipe has no data of its own",
                fix=f"name the data: handgrad train SOURCE --config {path}",
            )
    for name in sorted(given, key=lambda name: not name.endswith(".type")):  # a type replaces its whole table
        _put(tables, name.split("."), given[name])
    data, network = tables.get("data"), tables.get("network")
    if isinstance(data, dict) and is_text(str(data.get("source", ""))):
        layers = isinstance(network, dict) and network.get("layers")
        _, defaults = _read_toml(FOR_TEXT)
        if layers:
            del defaults["network"]
        tables = _over(defaults, tables)
    training = tables.get("training")
    if isinstance(training, dict) and isinstance(training.get("optimiser"), dict):
        table = training["optimiser"]
        training["optimiser"] = table if "type" in table else OPTIMISER | table
    try:
        configuration = msgspec.convert(tables, Configuration)
        configuration.check()
    except msgspec.ValidationError as error:
        raise _located(explain(error, tables, Configuration), path, text, given) from None
    except ConfigurationError as error:
        raise _located(error, path, text, given) from None
    return configuration


def engine_in(path: Path | None) -> Any:
    """Return the engine that a TOML file or recipe names itself, unchecked; None where it leaves it to the default."""
    recipe = RECIPES.get(str(path)) if path and not path.exists() else None
    training = _read_toml(recipe or path)[1].get("training")
    return training.get("engine") if isinstance(training, dict) else None


def read_written(path: Path) -> Configuration:
    """Read settings that `write_configuration` wrote; raises `ConfigurationError` as `read_configuration`.

    They are complete: where those are missing that choose the rows, the file is damaged, and defaults would be other rows.
    """
    configuration, tables = read_configuration(path, {}), _read_toml(path)[1]
    for table, name in (("data", "source"), ("data", "test"), ("data", "validation"), ("training", "seed")):
        if name not in tables.get(table, {}):
            raise ConfigurationError(
                f"{path}: {'damaged' if tables else 'empty'}: it has no {table}.{name}",
                fix="bring back the file as the training wrote it, or name the data where the command takes it",
            )
    return configuration


def _over(defaults: Mapping[str, Any], tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested tables over their defaults; one with a type replaces a default whole."""
    merged = dict(defaults)
    for name, value in tables.items():
        before = defaults.get(name)
        if isinstance(before, dict) and isinstance(value, dict) and "type" not in value:
            merged[name] = _over(before, value)
        else:
            merged[name] = value
    return merged


def _read_toml(path: Path | None) -> tuple[str, dict[str, Any]]:
    if path is None:
        return "", {}
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ConfigurationError(
                f"{path}: larger than {MOST_BYTES:,} bytes, the most that settings may have"
            )
        text = content.decode().replace("\r\n", "\n")
        if TOO_DEEP.search(text):
            raise ConfigurationError(f"{path}: a key has more than 30 parts, and settings have 3 at most")
        return text, tomllib.loads(text)
    except OSError as error:
        fix = "" if path.suffix or path.exists() else f"of recipes, {nearest(path.name, RECIPES)}"
        raise ConfigurationError(f"{path}: {error.strerror or error}", fix=fix) from None
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, or nested without end
        fix = 'a setting is a line such as epochs = 30, hidden = [64, 64] or loss = "Huber", a table begins with [training]'
        raise ConfigurationError(f"{path}: not TOML: {error}", fix=fix) from None


def write_configuration(configuration: Configuration) -> str:
    """Return a configuration as TOML, every setting that is in force written out."""
    import tomli_w  # only where it writes

    def without_none(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without_none(item) for key, item in value.items() if item is not None}
        return value

    tables = msgspec.to_builtins(configuration)
    network = tables["network"]
    if network["layers"] or network["transformer"]:  # which leave nothing to these
        for name in ("hidden", "activation", "normalisation", *(["dropout"] if network["layers"] else [])):
            del network[name]
    return tomli_w.dumps(without_none(tables))


def _put(tables: dict[str, Any], path: list[str], value: Any) -> None:
    """Set a value in nested tables; a name alone, as in ``optimiser = "Adam"``, becomes a table."""
    *outer, last = path
    for key in outer:
        inner = tables.get(key, {})
        if isinstance(inner, str):
            inner = {"type": inner}
        if not isinstance(inner, dict):
            return  # the wrong type is reported when the whole is read
        tables[key] = tables = inner
    if last == "type" and len(path) > 2:
        tables.clear()
    tables[last] = value


def _located(
    error: ConfigurationError, path: Path | None, text: str, given: Mapping[str, Any]
) -> ConfigurationError:
    """Put file and line before an error that begins with a setting, unless the command line gave that one."""
    setting = error.problem.partition(" ")[0].rstrip(":")
    if path is None or any(name.startswith(setting) or setting.startswith(name) for name in given):
        return error
    line = _line_of(setting, text)
    place = f"{path}, line {line}" if line else str(path)
    return ConfigurationError(f"{place}: {error.problem}", given=error.given, fix=error.fix)


def _line_of(setting: str, text: str) -> int:
    """Return the line of a TOML text that sets something, or the nearest table around it; 0 when none does."""
    table, tables, longest, found = "", Counter[str](), 0, 0
    for number, row in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*(\[\[?)\s*([\w.-]+)", row):
            name = table = header[2] + (f"[{tables[header[2]]}]" if header[1] == "[[" else "")
            tables[header[2]] += 1
        elif key := re.match(r"\s*([\w.-]+)\s*=", row):
            name = f"{table}.{key[1]}".removeprefix(".")
        else:
            continue
        if len(name) > longest and re.match(rf"{re.escape(name)}($|[.\[])", setting):
            longest, found = len(name), number
    return found
