"""The rows and the network that a command works on, from settings or from a run folder."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from handgrad.checkpoints import NAME as CHECKPOINT
from handgrad.configuration import MOST_BYTES, Configuration, read_configuration
from handgrad.data import Dataset, Split, load, split
from handgrad.errors import DataError
from handgrad.files import check_file
from handgrad.fingerprint import Fingerprint, find_change
from handgrad.network import Network


class Experiment:
    """A configuration with its data set, its split and its untrained network, each made when it is first needed."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration

    @cached_property
    def dataset(self) -> Dataset:
        """The rows that the configuration names.

        Raises
        ------
        DataError
            When they cannot be read, or a run was trained on others, with what has changed.
        """
        settings = self.configuration.data
        dataset = load(settings.source, target=settings.target, task=settings.task)
        if settings.fingerprint and (change := find_change(settings.fingerprint, fingerprints(dataset))):
            raise DataError(
                f"{settings.source}: the data has changed since the run: {change}",
                fix="bring back the data as it was, or name the source, to take it as it is",
            )
        return dataset

    @cached_property
    def rows(self) -> Split:
        """Which rows train, validate and test."""
        data, seed = self.configuration.data, self.configuration.training.seed
        return split(self.dataset, test=data.test, validation=data.validation, seed=seed)

    @cached_property
    def network(self) -> Network:
        """The network before training."""
        return self.configuration.build(self.dataset)


def fingerprints(dataset: Dataset) -> dict[str, Fingerprint]:
    """Return the fingerprints of a data set's arrays."""
    return {"x": Fingerprint.of(dataset.x), "t": Fingerprint.of(dataset.t)}


def is_run(source: str | None) -> bool:
    """Whether a source of data or of a network is a run folder, finished or not."""
    return bool(source) and any((Path(source or "") / name).exists() for name in ("run.json", CHECKPOINT))


def read_settings(folder: Path) -> Configuration:
    """Read a run's settings; its file may be untrusted."""
    path = folder / "config.toml"
    check_file(path, MOST_BYTES)
    return read_configuration(path, {})
