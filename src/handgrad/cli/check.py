"""``handgrad check``."""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TextIO

import click

from handgrad.checking import Report, check
from handgrad.checking.repair import write_repair
from handgrad.checking.report import COLOURS, Verdict, coloured_parts
from handgrad.cli.console import echo_coloured
from handgrad.cli.options import json_option
from handgrad.cli.user_file import find, import_file, importing_from, is_script
from handgrad.errors import HandgradError
from handgrad.rules import RULES

CODES: dict[Verdict, int] = {"right": 0, "wrong": 1, "cannot tell": 2}


@click.command(name="check")
@click.argument("source", required=False, metavar="[FILE.py[:NAME]]")
@click.option("--rules", is_flag=True, help="Check every rule of handgrad's own instead of a file.")
@click.option("--fix", is_flag=True, help="Show a repair that was proved, and write it into FILE.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of everything drawn.")
@json_option()
def check_command(source: str | None, rules: bool, fix: bool, seed: int, as_json: bool) -> int:
    """Check a hand-written gradient, and name the mistake when it is wrong.

    FILE.py holds `forward`, `backward` and `inputs`, or, for a NAME, NAME, NAME_backward and NAME_inputs (or
    `inputs`). forward(**inputs) returns an array; backward(grad_output, **inputs) returns a gradient for each
    name; inputs(rng) draws the arrays from a NumPy generator. NAME may also be an object with forward and backward
    methods, a function that returns a loss with its gradients, a rule, a layer, a network, a torch.autograd.Function
    or a JAX function with a custom VJP. A script without functions is checked up to its first update. The file is
    run; what it prints meanwhile is not shown.

    \b
    handgrad check layer.py
    handgrad check activations.py:swish --fix
    handgrad check --rules

    \b
    Exit codes:
      0  every gradient is right
      1  one is wrong
      2  one cannot be judged, or there is an error
    """
    if rules == (source is not None) or (rules and fix):
        raise click.UsageError("Give a file, or --rules alone.")
    if source is None:
        return _check_rules(seed, as_json=as_json)
    file, _, name = source.rpartition(":")
    named = name.isidentifier() and bool(file) and not Path(source).exists()
    path, name = (Path(file), name) if named else (Path(source), "")
    try:
        with importing_from(path.parent):
            return _check_file(path, name, seed, fix=fix, as_json=as_json)
    except HandgradError as error:
        if as_json:
            click.echo(Report(source, "cannot tell", not_proved=(str(error),)).to_json())
        click.echo(f"Error: {error}", err=True)
        return CODES["cannot tell"]


def _check_file(path: Path, name: str, seed: int, *, fix: bool, as_json: bool) -> int:
    """Check what a file holds, one after another; a repair that is written changes the file for the next."""
    output = sys.stderr if as_json else sys.stdout
    module = _import(path, output)
    names = [found.name for found in find(module, path, name)]
    first, last = [], []
    for each in names:
        report = _report(module, path, each, seed, alone=len(names) == 1)
        first.append(report)
        if not as_json:
            width = max(80, min(120, shutil.get_terminal_size((100, 24)).columns))
            echo_coloured("\n" * (len(first) > 1) + report.text(width=width), _coloured)
        if fix and report.verdict == "wrong" and _write(path, report):
            module = _import(path, output)
            report = _report(module, path, each, seed, alone=True)
            click.echo(f"checked again: {report.verdict}", err=True)
        last.append(report)
    if as_json:
        click.echo(_json(first))
    return _code(last)


def _import(path: Path, output: TextIO) -> ModuleType | None:
    if is_script(path):
        return None
    with redirect_stdout(output):
        return import_file(path)


def _report(module: ModuleType | None, path: Path, name: str, seed: int, *, alone: bool) -> Report:
    """Check one of a file's functions; what they print meanwhile, hundreds of times, is not shown.

    After an error in one of several, the others are still checked.
    """
    label = f"{path}:{name}" if name else str(path)
    try:
        with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
            (found,) = find(module, path, name)
            report = check(found.forward, found.backward, found.inputs, seed=seed)
    except HandgradError as error:
        if alone:
            raise
        return Report(label, "cannot tell", not_proved=(str(error),))
    return replace(report, subject=label)


def _write(path: Path, report: Report) -> bool:
    """Write the proved repair into the file, if there is one, and report it."""
    if report.mended is None:
        click.echo(f"{path} is as it was: no repair was proved", err=True)
        return False
    file = path.resolve()
    if report.mended.path.resolve() != file:
        click.echo(f"{path} is as it was: the repair belongs into {report.mended.path}", err=True)
        return False
    mode = file.stat().st_mode
    write_repair(file, report.mended)
    file.chmod(mode)
    click.echo(f"wrote {path}: {report.mended.description}", err=True)
    return True


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
    return next(CODES[each] for each in ("wrong", "cannot tell", "right") if each in verdicts)


def _json(reports: list[Report]) -> str:
    """Return one report as it is, and several as one object that holds them all."""
    if len(reports) == 1:
        return reports[0].to_json()
    return json.dumps({"reports": [json.loads(report.to_json()) for report in reports]})


def _coloured(line: str) -> str:
    before, marked, after, colour = coloured_parts(line)
    return before + click.style(marked, fg=colour) + after if marked else line
