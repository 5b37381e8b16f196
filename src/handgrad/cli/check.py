"""``handgrad check``."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TextIO

import click
import numpy as np

from handgrad.checking import Report, check
from handgrad.checking.check import check_in_stages
from handgrad.checking.interfaces import pair_of
from handgrad.checking.interfaces.torch_and_jax import draw_once
from handgrad.checking.live_code import functions_of
from handgrad.checking.progress import watched_by
from handgrad.checking.repair import Repair, write_repair
from handgrad.checking.report import COLOURS, Verdict, coloured_parts
from handgrad.checking.subject import CheckError
from handgrad.checking.user_files import UserFile, never_set_to_zero, run_file
from handgrad.cli.console import echo_coloured
from handgrad.cli.options import json_option
from handgrad.cli.user_file import Found, find_all, importing_from, named_failures
from handgrad.errors import HandgradError
from handgrad.rules import RULES

SHOWN_EVERY = 0.1  # seconds: faster is not read
CODES: dict[Verdict, int] = {"right": 0, "wrong": 1, "cannot tell": 2, "right, but": 3}


@click.command(name="check")
@click.argument("source", required=False, metavar="[FILE.py[:NAME]]")
@click.option("--rules", is_flag=True, help="Check every rule of handgrad's own instead of a file.")
@click.option(
    "--fix", is_flag=True, help="Write a proved repair into the file where the mistake is, after asking."
)
@click.option("--yes", is_flag=True, help="Do not ask before writing.")
@click.option(
    "--loss", default="", metavar="NAME", help="Of a script: the name of its loss, or an expression."
)
@click.option(
    "--gradient",
    "gradients",
    multiple=True,
    metavar="dW1=W1",
    help="Of a script: a gradient, and whose it is. Repeatable.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of everything drawn.")
@click.option("--verbose", is_flag=True, help="Print all of a report, not only what fits a screen.")
@json_option()
def check_command(
    source: str | None,
    rules: bool,
    fix: bool,
    yes: bool,
    loss: str,
    gradients: tuple[str, ...],
    seed: int,
    verbose: bool,
    as_json: bool,
) -> int:
    """Check a hand-written gradient, and name the mistake when it is wrong.

    FILE.py is your code as it stands, and is run. Everything in it that has a backward is checked, or only NAME:
    functions (f and f_backward, f and f_prime), classes (forward and backward, also networks that update themselves),
    functions that return a loss with its gradients, scripts up to their first update. The arguments are those that the
    file calls it with (also under `if __name__ == "__main__"`), or drawn. A file that has `forward`, `backward` and
    `inputs` is checked at inputs(rng). What the file prints when it is run is shown first.

    \b
    handgrad check layer.py
    handgrad check network.py:Dense --fix
    handgrad check script.py --loss loss --gradient dW1=W1
    handgrad check --rules

    \b
    Exit codes:
      0  every gradient is right
      1  one is wrong
      2  one cannot be judged, or there is an error
      3  right, but a contract is broken, a constant rounded, or the gradient clipped
    """
    if rules == (source is not None) or (rules and (fix or loss or gradients)):
        raise click.UsageError("Give a file, or --rules alone.")
    if fix and not yes and not sys.stdin.isatty():
        raise click.UsageError("--fix asks before it writes, and there is no terminal to ask at: add --yes.")
    if source is None:
        return _check_rules(seed, as_json=as_json)
    file, _, name = source.rpartition(":")
    named = name.isidentifier() and bool(file) and not Path(source).exists()
    path, name = (Path(file), name) if named else (Path(source), "")
    try:
        request = _Request(
            path, name, loss, dict(map(_gradient, gradients)), seed, fix, yes, verbose, as_json
        )
        with importing_from(path):
            return _check_file(request)
    except (HandgradError, RecursionError) as error:
        if isinstance(error, RecursionError):
            error = CheckError(
                f"{path}: an expression is nested too deep to be read",
                fix="divide the expression that has hundreds of operations",
            )
        if as_json:
            click.echo(Report(source, "cannot tell", not_proved=(str(error),)).to_json())
        click.echo(f"Error: {error}", err=True)
        return CODES["cannot tell"]


@dataclass(frozen=True)
class _Request:
    """What is to be checked, and how."""

    path: Path
    name: str
    loss: str
    gradients: dict[str, str]
    seed: int
    fix: bool
    yes: bool
    verbose: bool
    as_json: bool


def _gradient(text: str) -> tuple[str, str]:
    gradient, equals, array = text.partition("=")
    if not (gradient and equals and array):
        raise click.UsageError(
            f"--gradient {text}: give the gradient and whose it is, as in --gradient dW1=W1."
        )
    return gradient, array


def _check_file(request: _Request) -> int:
    """Check what a file holds, one after another; a repair that is written changes the file for the next."""
    modules = set(sys.modules)
    every = list(_find(_run(request), request))
    first: list[Report] = []
    last: list[Report] = []
    for k in range(len(every)):
        report = _report(every[k], request, alone=len(every) == 1)
        report = _as_a_part(report, every[k], every[:k], last)
        first.append(report)
        if not request.as_json:
            _print(report, request, is_first=k == 0, short=len(every) > 1)
        if request.fix and report.verdict == "wrong" and _write(report, request):
            _forget(set(sys.modules) - modules)
            every = list(_find(_run(request), request))
            report = _report(every[k], request, alone=True)
            click.echo(f"checked again: {report.verdict}", err=True)
        last.append(report)
    if request.as_json:
        click.echo(_json(first))
    return _code(last)


def _forget(names: set[str]) -> None:
    """Remove modules, so that a repaired file is imported anew; installed ones stay: not all can be imported twice."""
    for name in names:
        file = getattr(sys.modules[name], "__file__", None)
        if file and not {"site-packages", "dist-packages"} & set(Path(file).parts) and not _is_ours(name):
            del sys.modules[name]


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in {"handgrad", *sys.stdlib_module_names}


def _run(request: _Request) -> UserFile:
    """Run the user's file; what it could not do is reported, and is no error where something is left to check."""
    # a check calls small functions thousands of times, and threads that wait for each other on a busy machine take minutes
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with redirect_stdout(sys.stderr if request.as_json else sys.stdout):
        return run_file(request.path)


def _find(user_file: UserFile, request: _Request) -> Iterator[Found]:
    with _quiet(), named_failures(request.path, request.path):
        yield from find_all(user_file, request.name, request.loss, request.gradients)
    for place, problem in user_file.failures[:3]:
        click.echo(f"left out: {place}: {problem}", err=True)
    if added := never_set_to_zero(user_file.tree):
        line, name = added
        problem = f"this loop trains, backward adds to {name}, and nothing that is called sets {name} to 0 between two steps"
        click.echo(f"warning: {request.path}:{line}: {problem}", err=True)


def _quiet() -> redirect_stdout[TextIO]:
    """Hide what functions print, hundreds of times."""
    return redirect_stdout(io.StringIO())


def _report(found: Found, request: _Request, *, alone: bool) -> Report:
    """Check one of a file's functions; after an error in one of several, the others are still checked."""
    label = f"{request.path}:{found.name}" if found.name else str(request.path)
    try:
        with _quiet(), _stages(), named_failures(label, request.path):
            if found.problem is not None:
                raise found.problem
            report = check_in_stages(
                found.forward, found.backward, found.inputs, found.surrogate, request.seed,
                partial(_show_verdict, label),
            )  # fmt: skip
    except HandgradError as error:
        if alone:
            raise
        return Report(label, "cannot tell", not_proved=(str(error),))
    origin = [f"inputs: {found.origin}"] if found.origin else []
    tried, limits = (*origin, *found.matched, *report.tried), (*found.limits, *report.not_proved)
    return replace(report, subject=label, tried=tried, not_proved=limits)


def _as_a_part(report: Report, found: Found, before: list[Found], reports: list[Report]) -> Report:
    """Return the report on a part of what is right, or right in this line: what it leaves to the rest is no mistake.

    That is often a factor 1/m.
    """
    if report.verdict != "wrong":
        return report
    name = getattr(found.backward, "__name__", found.name)
    line = f"{report.first_wrong.line}: " if report.first_wrong else ""

    def is_right(whole: Found, known: Report) -> bool:
        if known.verdict == "right":
            return name in _running_in(whole)
        if not {each.code for each in report.findings} <= {"constant-factor", "batch-mean-vs-sum"}:
            return False
        first = known.first_wrong
        lines = (*first.right, *first.later) if first and line else ()
        return any(each.startswith(line) for each in lines)

    pairs = zip(before, reports, strict=True)
    whole = next((each for each, known in pairs if name in each.parts and is_right(each, known)), None)
    if whole is None:
        return report
    note = f"alone, {name} is not the gradient of {found.name}: {', '.join(each.code for each in report.findings)}"
    said = (f"it is right as a part of {whole.backward.__name__ if whole.backward else whole.name}", note)
    arguments = tuple(replace(each, verdict="right") for each in report.arguments)
    return replace(report, verdict="right", findings=(), mended=None, arguments=arguments, not_proved=said)


def _running_in(found: Found) -> set[str]:
    """Return the names of the functions that run in a backward: of those that it may call, an option may leave some out."""

    def run() -> None:
        pair = pair_of(found.forward, found.backward, found.inputs)
        inputs = draw_once(pair.inputs)
        output = pair.forward(**inputs)
        ones = [np.ones(np.shape(part)) for part in (output if isinstance(output, tuple) else (output,))]
        pair.backward(tuple(ones) if len(ones) > 1 else ones[0], **inputs)

    return {each.__name__ for each in functions_of(run)}


def _show_verdict(label: str, report: Report) -> None:
    """Print a verdict to a terminal at once: to name the mistake takes longer."""
    if sys.stderr.isatty():
        click.echo(f"{label}: {report.verdict}; Ctrl-C stops what follows", err=True)


@contextmanager
def _stages() -> Iterator[None]:
    """Show on a terminal what is done after the verdict, in one line that is erased at the end."""
    if not sys.stderr.isatty():
        yield
        return
    stream, width, last = sys.stderr, shutil.get_terminal_size((100, 24)).columns - 1, 0.0

    def show(stage: str) -> None:
        nonlocal last
        if time.monotonic() > last + SHOWN_EVERY:
            last = time.monotonic()
            click.echo(f"\r{stage[:width]:<{width}}", file=stream, nl=False)

    try:
        with watched_by(show):
            yield
    finally:
        if last:
            click.echo(f"\r{'':<{width}}\r", file=stream, nl=False)


def _print(report: Report, request: _Request, *, is_first: bool, short: bool) -> None:
    """Print a report; of several, those that are right in one line."""
    width = max(80, min(120, shutil.get_terminal_size((100, 24)).columns))
    text = report.text(width=width, full=request.verbose)
    if short and report.verdict == "right":
        listed = ", ".join(f"d{each.name} {each.shape}" for each in report.arguments)
        notes = [f"\n  {note}" for note in report.not_proved if note.startswith("it is right as a part")]
        text = f"{text.splitlines()[0]}\n  {listed}{''.join(notes)}"
    echo_coloured("\n" * (not is_first) + text, _coloured)
    if is_first:
        echo_coloured(f"  {request.path} was run", _coloured)


def _write(report: Report, request: _Request) -> bool:
    """Write the proved repair into the file where the mistake is, and report it."""
    found, path = report.mended, request.path
    if found is None:
        click.echo(f"{path} is as it was: no repair was proved", err=True)
        return False
    file = path if found.path.resolve() == path.resolve() else found.path
    if not found.any_size:
        click.echo(f"{file} is as it was: the repair is right at these sizes only", err=True)
        return False
    if not request.yes:
        click.echo(found.diff, err=True)
        if not click.confirm(f"write this into {file}?", err=True):
            click.echo(f"{file} is as it was", err=True)
            return False
    _write_over(file.resolve(), found)
    click.echo(f"wrote {file}: {found.description}", err=True)
    return True


def _write_over(file: Path, found: Repair) -> None:
    """Write a repair over a file that keeps its mode."""
    mode = file.stat().st_mode
    write_repair(file, found)
    file.chmod(mode)


def _check_rules(seed: int, *, as_json: bool) -> int:
    """Check handgrad's own rules, one line each."""
    reports = []
    for rule in RULES.values():
        if rule.constant:
            continue
        report = check(rule, seed=seed)
        reports.append(report)
        if not as_json:
            numbers = "  ".join(f"d{each.name} {each.relative_error:.0e}" for each in report.arguments)
            verdict = click.style(report.verdict, fg=COLOURS[report.verdict])
            click.echo(f"{verdict}  {rule.name:<{max(map(len, RULES))}}  {numbers}")
    if as_json:
        click.echo(_json(reports))
    else:
        wrong = sum(report.verdict != "right" for report in reports)
        seconds = sum(report.seconds for report in reports)
        click.echo(f"{len(reports)} rules, {f'{wrong} not' if wrong else 'all'} right, in {seconds:.1f} s")
    return _code(reports)


def _code(reports: list[Report]) -> int:
    """Return the exit code: a wrong gradient counts more than one that cannot be judged."""
    verdicts = {report.verdict for report in reports}
    return next(CODES[each] for each in ("wrong", "cannot tell", "right, but", "right") if each in verdicts)


def _json(reports: list[Report]) -> str:
    """Return one report as it is, and several as one object that holds them all."""
    if len(reports) == 1:
        return reports[0].to_json()
    return json.dumps({"reports": [json.loads(report.to_json()) for report in reports]})


def _coloured(line: str) -> str:
    before, marked, after, colour = coloured_parts(line)
    return before + click.style(marked, fg=colour) + after if marked else line
