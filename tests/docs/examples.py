"""How the examples of the documentation are run.

In a page, blocks of these languages are examples, run in order, in one folder and one namespace a page:

python   with ``>>>``, its output is compared; without, it is a file and is run as one
text     right after a python file that printed something, is compared with that
console  each ``$`` command is run, by the tests' server where it is one of handgrad's and else by a shell, and what it
         prints is compared
toml     is a file, and is read as a configuration
diff     is a change of handgrad itself, made in a copy of the checkout, where the page's commands then run

A file is called what its first line says, as in ``# network.toml``. In an output, ``...`` stands for
anything. In what a command or a file prints, a number with a decimal point may be a tenth off, because a
training's last digits differ from one processor to the next.
"""

from __future__ import annotations

import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path

from sybil import Example, Sybil
from sybil.evaluators.doctest import NUMBER
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from handgrad.configuration import read_configuration

from ..conftest import Server

SCREEN = {"COLUMNS": "100", "NO_COLOR": "1"}
FLAGS = doctest.ELLIPSIS | NUMBER
TOLERANCE = 0.1
NUMBERS_AND_GAPS = re.compile(r"(-?\d+\.\d+(?:e[+-]?\d+)?|\.\.\.)")


def write_file(example: Example) -> Path:
    """Write a block to the file that its first line names."""
    name = re.match(r"# (\S+\.\w+)\n", str(example.parsed))
    path = Path(name[1] if name else f"{Path(example.path).stem}_line_{example.line}")
    path.write_text(str(example.parsed), encoding="utf-8")
    return path


def run_file(example: Example) -> None:
    """Run a block from a file of its own: a rule is its text, and a page is not Python."""
    path = write_file(example)
    example.namespace.setdefault("__name__", "__main__")
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(str(example.parsed), str(path), "exec", dont_inherit=True), example.namespace)
    example.namespace["_printed"] = printed.getvalue()


def compare_text(example: Example) -> str:
    """Compare a text block with what the block before it printed; return how it differs."""
    lines = example.namespace.pop("_printed", "").splitlines()
    expected, printed = str(example.parsed).rstrip(), "\n".join(line.rstrip() for line in lines).rstrip()
    return "" if not printed or matches(expected, printed) else f"it printed\n{printed}"


def run_commands(example: Example) -> str:
    """Run a console block; return what differs."""
    server = example.namespace.get("_server")
    return "\n".join(filter(None, (run_command(*pair, server) for pair in commands(str(example.parsed)))))


def commands(block: str) -> Iterable[tuple[str, str]]:
    """Divide a console block into commands and what each is to print.

    >>> list(commands("$ echo a\\na\\n$ true\\n"))
    [('echo a', 'a'), ('true', '')]
    """
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = re.sub(r"\\\n\s*", "", part).partition("\n")
        yield command, output.rstrip()


def run_command(command: str, expected: str, server: Server | None) -> str:
    """Run a command as a reader would, and return how it differs from what the page says."""
    with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as out:
        if server is not None and re.fullmatch(r"handgrad [^|<>;&$`'\"]*", command):
            folder, arguments = Path.cwd(), shlex.split(command)[1:]
            process = server.start(folder, arguments, [os.devnull, out.name, out.name], environment=SCREEN)
            code = server.wait(process)
        else:
            path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
            environment = {**os.environ, **SCREEN, "PATH": path, "PYTHONIOENCODING": "utf-8"}
            code = subprocess.run(
                ["/bin/sh", "-c", command], env=environment, stdout=out, stderr=out, timeout=300, check=False
            ).returncode
        out.seek(0)
        printed = "\n".join(line.rstrip() for line in out.read().splitlines()).rstrip()
    fails = re.search(r"^((E +)?\w*Error:|\S+: wrong$)", expected, re.MULTILINE) is not None
    if matches(expected, printed) and fails == (code != 0):
        return ""
    said, did = (textwrap.indent(text, "    ") for text in (expected, printed))
    return f"$ {command}\n  the page says\n{said}\n  it printed (exit {code})\n{did}"


def matches(expected: str, printed: str) -> bool:
    """Whether an output is the one expected, but for gaps and the last digits of numbers.

    >>> matches("loss 0.051 in ... s", "loss 0.052 in 3 s"), matches("loss 0.05", "loss 0.06")
    (True, False)
    """
    parts = NUMBERS_AND_GAPS.split(expected)
    numbers = [float(part) for part in parts[1::2] if part != "..."]
    pattern = [r"(-?\d+\.\d+(?:e[+-]?\d+)?)" if part != "..." else ".*?" for part in parts[1::2]]
    texts = list(map(re.escape, parts[0::2]))
    whole = "".join(a + b for a, b in zip(texts, [*pattern, ""], strict=True))
    found = re.fullmatch(whole, printed, re.DOTALL)
    if found is None:
        return False
    pairs = zip(numbers, map(float, found.groups()), strict=True)
    return all(abs(one - other) <= TOLERANCE * abs(one) for one, other in pairs)


def apply_diff(example: Example) -> str:
    """Make the changes of a block, wherever its lines stand in their files; return what is not there to be changed."""
    for name, body in read_diff(str(example.parsed)):
        path = Path(name)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for hunk in re.split(r"^@@.*\n", body, flags=re.MULTILINE)[1:]:
            lines = hunk.splitlines(keepends=True)
            before, after = ("".join(line[1:] or line for line in lines if line[0] != sign) for sign in "+-")
            if text.count(before) != 1 and path.exists():
                return f"{name} has these lines {text.count(before)} times\n{before}"
            text = text.replace(before, after) if path.exists() else after
        path.write_text(text, encoding="utf-8")
    return ""


def read_diff(block: str) -> list[tuple[str, str]]:
    """Divide a diff into files and what is changed of each."""
    parts = re.split(r"^--- .*\n\+\+\+ (\S+)\n", block, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def read_settings(example: Example) -> None:
    """Read a TOML block as a configuration."""
    read_configuration(write_file(example), {})


class Python(PythonCodeBlockParser):
    """Python blocks, of which those without ``>>>`` are run as files."""

    def __init__(self) -> None:
        super().__init__(doctest_optionflags=FLAGS)
        self.codeblock_parser = CodeBlockParser("python", run_file)


OTHERS = {"console": run_commands, "text": compare_text, "toml": read_settings, "diff": apply_diff}
EVALUATED = {"python", *OTHERS}
PAGES = Sybil([Python(), *(CodeBlockParser(name, evaluate) for name, evaluate in OTHERS.items())])
