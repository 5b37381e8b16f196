"""Writing files so that a crash, a full disk or Ctrl-C leaves the old one or the new one, never half of one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from handgrad.errors import RunError


def write_file(path: Path, content: bytes | str) -> None:
    """Write a file whole or not at all.

    The content goes to a temporary file in the same folder, is flushed to the disk, and takes the name.

    Raises
    ------
    RunError
        When the folder cannot be written, or the disk is full.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
            temporary = Path(file.name)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
