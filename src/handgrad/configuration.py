"""What a training is made from: data, network and loop, read from a file and from command-line options."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from handgrad.data import Dataset, Task
from handgrad.errors import ConfigurationError, nearest
from handgrad.layers import (
    LAYERS,
    BatchNorm,
    Dropout,
    Layer,
    LayerNorm,
    Linear,
    Loss,
    MeanSquaredError,
    Optimiser,
    Schedule,
    SoftmaxCrossEntropy,
    Standardise,
)
from handgrad.network import Network
from handgrad.specs import find, layer_from, loss_from, optimiser_from, schedule_from

ACTIVATIONS = ("relu", "leaky_relu", "elu", "gelu", "sigmoid", "silu", "softplus", "tanh")
SATURATING = ("sigmoid", "tanh", "softmax")


class DataSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which rows: ``source`` as `handgrad.data.load` takes it, and the shares kept aside.

    ``standardise`` is "feature", "all", "none", or "auto": bytes, as pixels are, all together, else by feature.
    """

    source: str = "digits"
    target: str | list[str] | None = None
    task: Task | None = None
    test: float = 0.2
    validation: float = 0.1
    standardise: str = "auto"


class NetworkSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which network: hidden sizes and what stands between them, or ``layers``, each a table with its type."""

    hidden: list[int] = msgspec.field(default_factory=lambda: [256])
    activation: str = "relu"
    normalisation: str = "none"
    dropout: float = 0.0
    layers: list[str | dict[str, Any]] = []
    loss: str | dict[str, Any] | None = None
    dtype: str = "float32"


class TrainingSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How it is trained; optimiser and schedule are names, or tables with a type."""

    epochs: int = 30
    batch_size: int = 32
    optimiser: str | dict[str, Any] = "Adam"
    schedule: str | dict[str, Any] = "Constant"
    patience: int | None = None
    seed: int = 0
    engine: str = "reference"


class Configuration(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Everything a training is made from; every setting has a default."""

    data: DataSettings = msgspec.field(default_factory=DataSettings)
    network: NetworkSettings = msgspec.field(default_factory=NetworkSettings)
    training: TrainingSettings = msgspec.field(default_factory=TrainingSettings)

    def optimiser(self) -> Optimiser:
        """Make the optimiser."""
        return optimiser_from(self.training.optimiser, "training.optimiser")

    def schedule(self) -> Schedule:
        """Make the schedule."""
        return schedule_from(self.training.schedule, "training.schedule")

    def loss(self, dataset: Dataset) -> Loss:
        """Make the loss: as set, or the one that goes with the task."""
        if self.network.loss is not None:
            return loss_from(self.network.loss, "network.loss")
        return SoftmaxCrossEntropy() if dataset.task == "classification" else MeanSquaredError()

    def build(self, dataset: Dataset) -> Network:
        """Make the network for a data set: its inputs, outputs and loss follow from the data."""
        loss = self.loss(dataset)
        inputs, outputs = dataset.x.shape[1:], _outputs(dataset, loss)
        layers = self._standardise(dataset)
        layers += self._explicit() if self.network.layers else self._hidden(inputs, outputs)
        return Network(*layers, loss=loss, inputs=inputs, seed=self.training.seed, dtype=self.network.dtype)

    def _standardise(self, dataset: Dataset) -> list[Layer]:
        over = self.data.standardise
        if over not in ("auto", "feature", "all", "none"):
            raise ConfigurationError(
                f"data.standardise: {over!r} is unknown", fix="choose from auto, feature, all, none"
            )
        if over == "none":
            return []
        pixels = dataset.x.dtype == "uint8"
        return [Standardise(over="all" if over == "all" or (over == "auto" and pixels) else "feature")]

    def _explicit(self) -> list[Layer]:
        defaults = NetworkSettings()
        for name in ("hidden", "activation", "normalisation", "dropout"):
            if getattr(self.network, name) != getattr(defaults, name):
                raise ConfigurationError(f"network: {name} and layers are both given", fix="leave one out")
        return [layer_from(table, f"network.layers[{k}]") for k, table in enumerate(self.network.layers)]

    def _hidden(self, inputs: tuple[int, ...], outputs: int) -> list[Layer]:
        settings = self.network
        name = settings.activation.lower().replace("-", "_")
        if name not in ACTIVATIONS:
            raise ConfigurationError(
                f"network.activation: {settings.activation!r} is unknown", fix=nearest(name, ACTIVATIONS)
            )
        norms: dict[str, type[Layer] | None] = {"none": None, "batch": BatchNorm, "layer": LayerNorm}
        if settings.normalisation not in norms:
            raise ConfigurationError(
                f"network.normalisation: {settings.normalisation!r} is unknown",
                fix=nearest(settings.normalisation, norms),
            )
        if len(inputs) != 1:
            raise ConfigurationError(
                f"network.hidden: rows are of shape {inputs}, not flat", fix="write network.layers"
            )
        activation, norm = find(name, LAYERS, "network.activation"), norms[settings.normalisation]
        start = "glorot_uniform" if name in SATURATING else "he_normal"
        layers: list[Layer] = []
        width = inputs[0]
        for size in settings.hidden:
            layers += [Linear(width, size, initialiser=start), *([norm()] if norm else []), activation()]
            layers += [Dropout(settings.dropout)] if settings.dropout else []
            width = size
        return [*layers, Linear(width, outputs, initialiser="glorot_uniform")]


def _outputs(dataset: Dataset, loss: Loss) -> int:
    """Return how many outputs the last layer needs."""
    if dataset.task == "classification":
        if loss.task == "regression":
            raise ConfigurationError(
                f"{dataset.name} holds classes, and {loss!r} is for values", fix="choose SoftmaxCrossEntropy"
            )
        return 1 if loss.task == "labels" else len(dataset.classes)
    if loss.task == "classification":
        raise ConfigurationError(
            f"{dataset.name} holds values, and {loss!r} is for classes", fix="choose MeanSquaredError"
        )
    return 1 if dataset.t.ndim == 1 else dataset.t.shape[1]


def read_configuration(path: Path | None, overrides: Mapping[str, Any]) -> Configuration:
    """Read a TOML file, if there is one, and put command-line options over it.

    Parameters
    ----------
    path
        The file, with the tables [data], [network] and [training].
    overrides
        Settings by dotted name, ``{"training.epochs": 5}``; those that are None are left out. A name of a
        setting of the optimiser, ``training.optimiser.learning_rate``, goes into its table.

    Raises
    ------
    ConfigurationError
        With file, line and the nearest key when a key is unknown, or what was expected of a value.
    """
    text, tables = "", {}
    if path is not None:
        try:
            text = path.read_text(encoding="utf-8")
            tables = tomllib.loads(text)
        except OSError as error:
            raise ConfigurationError(f"{path}: {error.strerror or error}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{path}: not TOML: {error}") from None
    for name, value in overrides.items():
        if value is not None:
            _put(tables, name.split("."), value)
    optimiser = (
        tables.get("training", {}).get("optimiser") if isinstance(tables.get("training"), dict) else None
    )
    if isinstance(optimiser, dict):
        optimiser.setdefault("type", "Adam")
    try:
        return msgspec.convert(tables, Configuration)
    except msgspec.ValidationError as error:
        raise _explained(str(error), path, text) from None


def write_configuration(configuration: Configuration) -> str:
    """Return a configuration as TOML, every setting written out."""
    import tomli_w  # only where it writes

    def without_none(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without_none(item) for key, item in value.items() if item is not None}
        return value

    return tomli_w.dumps(without_none(msgspec.to_builtins(configuration)))


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


def _explained(message: str, path: Path | None, text: str) -> ConfigurationError:
    """Turn msgspec's message into ours: the place, the line, the nearest key."""
    where = re.search(r" - at `\$\.?(.*?)`$", message)
    place = where[1] if where and where[1] else "the configuration"
    problem = message[: where.start()] if where else message
    unknown = re.match(r"Object contains unknown field `(.*)`", problem)
    key = unknown[1] if unknown else place.split(".")[-1].split("[")[0]
    fix = ""
    if unknown:
        structs = {"data": DataSettings, "network": NetworkSettings, "training": TrainingSettings}
        known = structs[place].__struct_fields__ if place in structs else Configuration.__struct_fields__
        problem, fix = f"the key {key!r} is unknown", nearest(key, known)
    line = next(
        (
            k
            for k, row in enumerate(text.splitlines(), 1)
            if re.match(rf"\s*\[?\s*{re.escape(key)}\s*[=\].]", row)
        ),
        0,
    )
    file = f"{path}, line {line}: " if path and line else f"{path}: " if path else ""
    return ConfigurationError(f"{file}{place}: {problem}", fix=fix)
