"""What commands print: a small table for people, JSON for machines, a line for a notice."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from handgrad.errors import HandgradNotice, escaped

if TYPE_CHECKING:
    from handgrad.data.columns import Column


def prepare_streams() -> None:
    """Escape characters that a terminal does not have; discard output to a closed stream, and keep its number taken."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def repeat_lost_interrupts() -> None:
    """Interrupt again where Ctrl-C came during a garbage collection, in a callback as JAX has one: Python only prints it."""
    usual = sys.unraisablehook

    def unraisable(lost: Any) -> None:
        if isinstance(lost.exc_value, KeyboardInterrupt):
            # when this has returned, or it would be lost as well
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        else:
            usual(lost)

    sys.unraisablehook = unraisable


def show_results(results: Mapping[str, Any], *, as_json: bool) -> None:
    """Print names and values, as a table or as one JSON object."""
    if as_json:
        click.echo(json.dumps(results))
        return
    width = max(map(len, results))
    for name, value in results.items():
        if value is None:
            continue
        number = "," if isinstance(value, int) else ".4g" if isinstance(value, float) else ""
        label = click.style(printable(name).replace("_", " ").ljust(width), dim=True)
        click.echo(f"  {label}  {value:{number}}")


def show_columns(columns: Sequence[Column], dropped: Sequence[str] | None) -> None:
    """Print on standard error what was done to every column, unless all of them are numbers as they are."""
    from handgrad.data.columns import column_table  # with NumPy, which help waits for otherwise

    if dropped or any(column.text() != "number" for column in columns):
        click.echo(printable(column_table(columns, dropped or ())), err=True)


def echo_coloured(text: str, colour: Callable[[str], str]) -> None:
    """Print a text, its lines coloured, unless NO_COLOR is set; click takes colours away where no terminal reads."""
    click.echo(text if os.environ.get("NO_COLOR") else "\n".join(map(colour, text.splitlines())))


def engine_text(facts: Mapping[str, Any]) -> str:
    """Return in a few words what ran a program.

    Examples
    --------
    >>> engine_text({"engine": "compiled", "blas": "OpenBLAS 0.3.31", "threads": 2, "rows": 90})
    'compiled, OpenBLAS 0.3.31, 2 threads'
    >>> engine_text({"engine": "reference"})
    'reference'
    """
    threads = facts.get("threads")
    parts = [facts["engine"], facts.get("blas"), threads and f"{threads} thread{'s' * (threads != 1)}"]
    return ", ".join(filter(None, parts))


@contextmanager
def notices_as_lines() -> Iterator[None]:
    """Show each notice as one line on standard error, once, rather than as Python shows warnings."""
    shown: set[str] = set()
    others = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if not issubclass(category, HandgradNotice):
            others(message, category, *place, **more)
        elif str(message) not in shown:
            shown.add(str(message))
            click.echo(f"Notice: {printable(one_line(str(message)))}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", HandgradNotice)
        warnings.showwarning = show
        yield


def printable(text: str) -> str:
    """Return a text with control characters, which could move a cursor or rename a window, escaped.

    Examples
    --------
    >>> print(printable("there is no column '\\x1b[2Jage'"))
    there is no column '\\x1b[2Jage'
    """
    return escaped(text, keep="\n")


def one_line(text: str) -> str:
    """Put an error's message on one line.

    Examples
    --------
    >>> one_line("llvmlite is missing\\n  fix    pip install llvmlite")
    'llvmlite is missing; fix: pip install llvmlite'
    """
    return " ".join(re.sub(r"\n\s*(given|fix)\s+", r"; \1: ", text).split())
