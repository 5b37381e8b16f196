"""Engines: what runs a program over batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from handgrad.engines.engine import BoundProgram, Engine, Epoch, NonFiniteLossError
from handgrad.engines.jax_engine import JaxEngine
from handgrad.engines.reference import ReferenceEngine
from handgrad.errors import ConfigurationError, EngineError, MissingPackageError, nearest, notify
from handgrad.forks import LOCK
from handgrad.program import Program
from handgrad.program.lowered import UnsupportedLineError


def _compiled() -> Engine:
    try:
        with LOCK:
            from handgrad.engines.compiled import CompiledEngine
    except (ImportError, OSError) as error:  # OSError where its library cannot be loaded
        raise MissingPackageError(
            f"the compiled engine needs llvmlite: {error}", fix="pip install llvmlite"
        ) from None
    return CompiledEngine()


ENGINES: dict[str, Callable[[], Engine]] = {
    "compiled": _compiled,
    "reference": ReferenceEngine,
    "jax": JaxEngine,
}
"""How to get every engine, by name."""

DEFAULT_ENGINE = "compiled"
"""What training uses unless it is asked for another."""


def check_devices(name: str, devices: int | None) -> None:
    """Raise `ConfigurationError` where a number of devices goes with an engine that has none to choose from."""
    if devices is not None and name != "jax":
        raise ConfigurationError(
            f"training.devices: devices are of the jax engine, and the engine is {name}",
            fix="choose the engine jax, or leave devices out",
        )


def create(name: str, devices: int | None = None) -> Engine:
    """Return an engine by its name. ``devices`` is how many of each process the jax engine uses; all by default.

    Raises `ConfigurationError` where no engine has this name.
    """
    if name not in ENGINES:
        raise ConfigurationError(f"no engine is called {name!r}", fix=nearest(name, ENGINES))
    return JaxEngine(devices) if name == "jax" else ENGINES[name]()


def bind(name: str, program: Program, arrays: Mapping[str, Any], devices: int | None = None) -> BoundProgram:
    """Bind a program to an engine, or to the reference engine, with a notice, where that engine cannot run it.

    Raises `MissingPackageError` where an engine that is not the default, and so was asked for, is not installed.
    """
    try:
        return create(name, devices).bind(program, arrays)
    except (UnsupportedLineError, EngineError, MissingPackageError) as error:
        if isinstance(error, MissingPackageError) and name != DEFAULT_ENGINE:
            raise
        notify(f"the {name} engine is not used, training goes on with the reference engine: {error}")
        return ReferenceEngine().bind(program, arrays)


__all__ = [
    "DEFAULT_ENGINE",
    "ENGINES",
    "BoundProgram",
    "Engine",
    "Epoch",
    "NonFiniteLossError",
    "ReferenceEngine",
    "UnsupportedLineError",
    "bind",
]
