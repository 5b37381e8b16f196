"""Optional packages, imported when they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from handgrad.errors import MissingPackageError


def need(package: str, why: str) -> Any:
    """Import an optional package; when it is not there, the error says what to install."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingPackageError(
            f"{why} needs the package {package}", fix=f"pip install 'handgrad[{package}]'"
        ) from error
