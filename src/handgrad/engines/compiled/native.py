"""Native code: compiled once for each text, cached on disk, linked when it is used.

A cached file is named after a digest of the text, of LLVM's version and of the processor, so that code of another
machine or another version is never loaded. Where no folder can be written, everything works in memory.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import llvmlite
import llvmlite.binding as llvm

from handgrad.forks import LOCK

MARK = b"handgrad native code 1\n"

MOST_CACHED = 2**27
"""How many bytes of compiled code the cache may have: what is oldest goes first."""

LEFT_BEHIND = 3600
"""After so many seconds, nobody writes a temporary file any more."""

MOST_LINKED = 256
"""How many functions that no program uses any more stay linked, for the next that does."""


def cache_folder() -> Path | None:
    """Return where compiled code is cached, or None for a user who has no folder of their own."""
    if given := os.environ.get("HANDGRAD_CACHE"):
        return Path(given)
    usual = "~/Library/Caches" if sys.platform == "darwin" else os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    if sys.platform == "win32":
        usual = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    with suppress(RuntimeError):  # no home
        return Path(usual).expanduser() / "handgrad"
    return None


def read_cached(name: str) -> bytes | None:
    """Return a file of the cache, or None."""
    folder = cache_folder()
    with suppress(OSError):
        return (folder / name).read_bytes() if folder is not None else None
    return None


def cache_file(name: str, content: bytes) -> None:
    """Write a file of the cache whole or not at all; a folder that cannot be written costs time only."""
    folder = cache_folder()
    if folder is None:
        return
    file = folder / name
    temporary = file.with_name(f".{file.name}-{secrets.token_hex(4)}")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        temporary.replace(file)
    with suppress(OSError):
        temporary.unlink(missing_ok=True)
    _limit_cache(folder)


@cache
def _limit_cache(folder: Path) -> None:
    """Delete the oldest compiled code beyond what the cache may have, and what was left by processes that were killed.

    Once in a process, as it looks at every file.
    """
    found = []
    for file in folder.glob(f".?*-{'[0-9a-f]' * 8}"):
        with suppress(OSError):
            if file.stat().st_mtime < time.time() - LEFT_BEHIND:
                file.unlink()
    for file in folder.glob(f"{'[0-9a-f]' * 32}.o"):
        with suppress(OSError):  # another process may be deleting them too
            status = file.stat()
            found.append((status.st_mtime, status.st_size, file))
    total = 0
    for _, size, file in sorted(found, reverse=True):
        total += size
        if total > MOST_CACHED:
            with suppress(OSError):
                file.unlink()


class Address(int):
    """The address of a function; its code is freed with the last of them."""

    code: object


class Native:
    """The processor's compiler and linker."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple()
        processor, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features()
        self.features = features
        self.machine = target.create_target_machine(
            cpu=processor, features=features.flatten(), opt=3, jit=True
        )
        self.linker = llvm.create_lljit_compiler(self.machine, use_jit_link=False, suppress_errors=True)
        self.linked: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self.latest: dict[str, object] = {}
        self.count = 0
        self.triple = str(self.machine.triple)
        # what the compiled code depends on beside its text
        self.version = (
            f"{llvmlite.__version__} {llvm.llvm_version_info} {self.triple} {processor}{features.flatten()}"
        )

    def has(self, feature: str) -> bool:
        """Whether the processor has instructions of this name, as LLVM has it."""
        return bool(self.features.get(feature))

    def address(self, text: str, name: str = "kernel") -> Address:
        """Return the address of a function; its code is there as long as the address is."""
        key = hashlib.sha256((self.version + name + text).encode()).hexdigest()[:32]
        with LOCK:
            code = self.linked.get(key)
            if code is None:
                image = self.cached(key) or self.compiled(key, text)
                library = llvm.JITLibraryBuilder().add_object_img(image).add_current_process()
                self.count += 1  # no name twice, also when an interruption comes between
                code = library.export_symbol(name).link(self.linker, f"{key}-{self.count}")
                self.linked[key] = code
            self.latest.pop(key, None)
            self.latest[key] = code
            if len(self.latest) > MOST_LINKED:
                del self.latest[next(iter(self.latest))]
            address = Address(code[name])
            address.code = code
            return address

    def cached(self, key: str) -> bytes | None:
        content = read_cached(f"{key}.o") or b""
        image = content[len(MARK) + 32 :]
        return image if content == MARK + hashlib.sha256(image).digest() + image else None

    def compiled(self, key: str, text: str) -> bytes:
        """Compile, and cache the result if that is possible."""
        module = llvm.parse_assembly(text)
        module.triple = self.triple
        module.data_layout = str(self.machine.target_data)
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        # the code has its vectors already: looking for more takes half of the time and gains nothing
        options.loop_vectorization = options.slp_vectorization = False
        options.loop_unrolling = options.loop_interleaving = False
        builder = llvm.create_pass_builder(self.machine, options)
        builder.getModulePassManager().run(module, builder)
        image: bytes = self.machine.emit_object(module)
        cache_file(f"{key}.o", MARK + hashlib.sha256(image).digest() + image)
        return image


def native() -> Native:
    """Return the compiler of this process."""
    with LOCK:
        return _native()


@cache
def _native() -> Native:
    return Native()
