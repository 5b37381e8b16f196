"""Native code: compiled once for each text, cached on disk, linked when it is used.

A cached file is named after a digest of the text, of LLVM's version and of the processor, so that code of another
machine or another version is never loaded. Where no folder can be written, everything works in memory.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
import threading
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

MARK = b"handgrad native code 1\n"


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


class Native:
    """The processor's compiler and linker."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple()
        self.machine = target.create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, jit=True
        )
        self.linker = llvm.create_lljit_compiler(self.machine, use_jit_link=False, suppress_errors=True)
        self.linked: dict[str, tuple[object, int]] = {}
        self.lock = threading.Lock()
        self.count = 0

    @cached_property
    def version(self) -> str:
        """What the compiled code depends on beside its text."""
        processor = llvm.get_host_cpu_name() + llvm.get_host_cpu_features().flatten()
        return f"{llvmlite.__version__} {llvm.llvm_version_info} {self.machine.triple} {processor}"

    def has(self, feature: str) -> bool:
        """Whether the processor has instructions of this name, as LLVM has it."""
        return bool(llvm.get_host_cpu_features().get(feature))

    @property
    def triple(self) -> str:
        return str(self.machine.triple)

    def address(self, text: str, name: str = "kernel") -> int:
        key = hashlib.sha256((self.version + name + text).encode()).hexdigest()[:32]
        with self.lock:
            if key not in self.linked:
                image = self.cached(key) or self.compiled(key, text)
                library = llvm.JITLibraryBuilder().add_object_img(image).add_current_process()
                self.count += 1  # no name twice, also when an interruption comes between
                tracker = library.export_symbol(name).link(self.linker, f"{key}-{self.count}")
                self.linked[key] = (tracker, tracker[name])
            return self.linked[key][1]

    def cached(self, key: str) -> bytes | None:
        content = read_cached(f"{key}.o") or b""
        image = content[len(MARK) + 32 :]
        return image if content == MARK + hashlib.sha256(image).digest() + image else None

    def compiled(self, key: str, text: str) -> bytes:
        """Compile, and cache the result if that is possible."""
        module = llvm.parse_assembly(text)
        module.triple = self.machine.triple
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


@cache
def native() -> Native:
    """Return the compiler of this process."""
    return Native()
