"""``handgrad adopt``."""

from __future__ import annotations

import json
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click

from handgrad.adopting.adoption import Adoption, LossAloneError, Recognition, adopt, recognise
from handgrad.adopting.author import AdoptError, Program
from handgrad.adopting.written import write_adoption
from handgrad.checking.user_files import run_file
from handgrad.cli.options import FOLDER, json_option
from handgrad.cli.user_file import find_all, importing_from, named_failures
from handgrad.errors import HandgradError

ADOPTED = Path("adopted")


@click.command(name="adopt")
@click.argument("source", metavar="FILE.py[:NAME]")
@click.option("--out", type=FOLDER, help="The new folder [adopted/FILE].")
@click.option("--overwrite", is_flag=True, help="Write into a folder that is there.")
@click.option("--steps", type=click.IntRange(1, 1000), default=5, show_default=True, help="Steps to compare.")
@json_option()
def adopt_command(source: str, out: Path | None, overwrite: bool, steps: int, as_json: bool) -> None:
    """Turn a from-scratch network into one of handgrad's, and compare the two.

    FILE.py is as for `handgrad check`: a network or a layer with a forward and a backward of its own, or a script. It is
    run. Its layers and its loss are recognised by the values that they compute, and claimed only where all gradients are
    the same too. A folder is written with the network as a Python file, its weights and its rows; the table shows the
    losses of both while they train on the same rows, and how long a step takes on this machine.

    \b
    handgrad adopt net.py
    handgrad adopt layers.py:mlp --out mlp
    """
    file, _, name = source.rpartition(":")
    named = name.isidentifier() and bool(file) and not Path(source).exists()
    path, name = (Path(file), name) if named else (Path(source), "")
    target = out or ADOPTED / path.stem
    if target.exists() and not overwrite:  # before the work rather than after it
        raise AdoptError(f"{target}: is there already", fix="give --overwrite, or another folder with --out")
    with importing_from(path):
        adoption, loss_apart = _adopted(path, name, steps)
    files = write_adoption(adoption, target, overwrite=overwrite)
    if as_json:
        click.echo(json.dumps(_facts(adoption, files)))
        return
    click.echo("\n".join(_lines(adoption, source, loss_apart)))
    click.echo(f"\nwrote {files[0]}, with its weights and rows; train it: python {files[0]}")


def _adopted(path: Path, name: str, steps: int) -> tuple[Adoption, str]:
    """Adopt what a file holds; of several things the one that is most of a network. What they print is not shown.

    The second is what to do with a loss of the file that the network does not call, "" where there is none.
    """
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        redirect_stdout(nowhere),
        named_failures(path, path),
    ):
        _say("running the file")
        found: list[Recognition] = []
        errors: list[HandgradError] = []
        losses: list[str] = []
        for each in find_all(run_file(path), name):
            _say(f"recognising {each.name or path.name}")
            try:
                if each.problem is not None:
                    raise each.problem
                script = path if each.is_script else None
                with named_failures(f"{path}:{each.name}" if each.name else path, path):
                    found.append(recognise(Program(each.forward, each.backward, each.inputs, script)))
            except LossAloneError as error:
                errors.append(error)
                losses.append(
                    f"{each.name} is the loss {error.loss!r}: put it into network.py, with its targets"
                )
            except HandgradError as error:
                errors.append(error)
        if not found:
            raise errors[0]
        largest = max(found, key=lambda each: each.size)
        return adopt(largest, name=path.name, steps=steps, say=_say), next(iter(losses), "")


def _say(text: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"{text} …", err=True)


def _facts(adoption: Adoption, files: list[Path]) -> dict[str, Any]:
    steps = adoption.steps
    return {
        "name": adoption.name,
        "gradients": adoption.report.verdict,
        "mistakes": [finding.code for finding in adoption.report.findings],
        "network": repr(adoption.network),
        "parameters": adoption.sources,
        "loss_factor": adoption.factor,
        "equal_up_to": "rounding" if adoption.exact else "a tiny number in the author's code",
        "optimiser": repr(steps.optimiser),
        "learning_rate": steps.rate,
        "batch_size": steps.batch_size,
        "losses": {"author": steps.author, "handgrad": steps.handgrad, "equal": steps.equal},
        "step": steps.words,
        "step_seconds": {"author": steps.author_seconds, "handgrad": steps.handgrad_seconds},
        "times_faster": steps.ratio,
        "engine": steps.engine,
        "files": [str(file) for file in files],
    }


def _lines(adoption: Adoption, source: str, loss_apart: str) -> list[str]:
    """Return the report for people."""
    steps, loss = adoption.steps, repr(adoption.network.loss)
    lines = [f"{source}: {_verdict(adoption, source)}"]
    lines += [f"  {label:<9}{text}" for label, text in (
        ("network", ", ".join(map(repr, adoption.network.body.layers))),
        ("loss", loss if adoption.own_loss else f"{loss} to drawn targets: what is adopted has none"),
        ("apart", "" if adoption.own_loss else loss_apart),
        ("yours", f"{adoption.factor:g} times this loss" if adoption.factor != 1 else ""),
        ("equal", _equal(adoption)),
    ) if text]  # fmt: skip
    micros = [f"{seconds * 1e6:,.1f} µs" for seconds in (steps.author_seconds, steps.handgrad_seconds)]
    table = [("loss after", "yours", "handgrad")]
    for k, ours in enumerate(steps.handgrad):
        theirs = f"{steps.author[k]:.9g}" if k < len(steps.author) else "-"
        table.append((f"{k} steps" if k != 1 else "1 step", theirs, f"{ours:.9g}"))
    *losses, step = _columns([*table, ("a step", micros[0], micros[1])])
    if not adoption.sources:
        lines.append("  it has no parameters, so there is nothing to train")
    else:
        lines += ["", *losses, f"  {_losses(adoption)}"]
    rows = f"{steps.batch_size} row{'s' * (steps.batch_size != 1)} at a time"
    lines += ["", f"{step}   {_ratio(steps.ratio)}"]
    rate = f"learning rate {steps.optimiser.learning_rate:g}"
    momentum = f", momentum {steps.optimiser.momentum:g}" if steps.optimiser.momentum else ""
    lines.append(
        f"  yours: {steps.words}; handgrad: SGD, {rate}{momentum}, {rows}, the {steps.engine} engine"
    )
    return lines


def _columns(rows: list[tuple[str, str, str]]) -> list[str]:
    """Return rows as lines; a number may be longer than a column usually is wide."""
    width = max(14, *(len(cell) + 2 for _, *cells in rows for cell in cells))
    return [f"  {label:<12}{theirs:>{width}}{ours:>{width}}" for label, theirs, ours in rows]


def _equal(adoption: Adoption) -> str:
    """State what is the same in both: the gradients are compared with the numerical ones of the author's forward."""
    small = "rounding" if adoption.exact else "the tiny number that you add in a logarithm or a quotient"
    if adoption.report.verdict == "wrong":
        return f"output and loss, up to {small}; handgrad's gradients are those of your forward"
    return f"output, loss and every gradient, up to {small}"


def _verdict(adoption: Adoption, source: str) -> str:
    report = adoption.report
    if report.verdict == "right":
        return "adopted; its gradients are right"
    if report.verdict == "cannot tell":
        return "adopted; its gradients cannot be judged"
    named = ", ".join(f"{each.code} in d{each.argument}" for each in report.findings)
    more = f"handgrad check {source} explains it; handgrad trains with the right ones"
    return f"adopted, and its gradients are wrong: {named}\n  {more}"


def _losses(adoption: Adoption) -> str:
    steps = adoption.steps
    if steps.equal:
        return "equal up to rounding"
    if adoption.report.verdict == "wrong":
        return "they part after step 0: yours follows a wrong gradient"
    return (
        "they part: your update is another than SGD's" if not steps.trained else "they part by rounding alone"
    )


def _ratio(ratio: float) -> str:
    return f"{ratio:,.1f} times faster" if ratio >= 1 else f"{1 / ratio:,.1f} times slower"
