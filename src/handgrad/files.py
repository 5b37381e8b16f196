"""Writing files so that a crash, a full disk or Ctrl-C leaves the old one or the new one, never half of one."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from handgrad.errors import RunError


def write_file(path: Path, content: bytes | str) -> None:
    """Write a file whole or not at all.

    The content goes to a temporary file in the same folder, is flushed to the disk, and takes the name. What is
    not a file, such as a pipe, is written to as it is.

    Raises
    ------
    RunError
        When the folder cannot be written, or the disk is full.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except FileExistsError:  # from mkdir
        raise RunError(f"{path}: cannot be written: {path.parent} is no folder") from None
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
