"""``handgrad lab``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from handgrad.cli.options import HTML
from handgrad.data import moons
from handgrad.explaining import Explanation, explain
from handgrad.explaining.page import pack_pages, render_page
from handgrad.explaining.structures import SIZES, WEIGHT_DECAY, structures
from handgrad.files import write_output
from handgrad.layers import SGD, Linear, ReLU, SoftmaxCrossEntropy, Tanh
from handgrad.network import Network

ROWS = 64
INTRODUCTION = (
    "This network has learned nothing yet: it is to tell two moons of points apart. Below is one step of its training; the "
    "first gradient is dz3: how the loss changes with each output."
)
"""What the page adds, and what the terminal does, is what to do next."""


@click.command(name="lab")
@click.argument("file", type=HTML, default=Path("lab.html"))
def lab_command(file: Path) -> None:
    """Write a page with a small untrained network, to change its numbers, make mistakes in its gradients, and train it.

    The network 2 → 8 → 8 → 2 is to tell two moons apart; in the page, other data, layers, units, activations, inputs, batches
    and weight decay are chosen. FILE is lab.html if none is given: open it in a browser. For such a page of your own
    network, of data or of a run: `handgrad explain … --html FILE`.

    \b
    handgrad lab
    handgrad lab moons.html
    """
    write_output(file, lab_page())
    click.echo(f"wrote {file}: open it in a browser, {file.resolve().as_uri()}")


def lab_page() -> str:
    """Return the page, with all networks that can be chosen in it."""
    if sys.stderr.isatty():
        click.echo("explaining the 60 networks that can be chosen in the page …", err=True)
    return render_page(small_network(), pack_pages(structures(), sizes=SIZES, decay=WEIGHT_DECAY))


def small_network(rows: int = ROWS, jacobians: Sequence[str] = (), example: int | None = None) -> Explanation:
    """Explain the network that the page opens with; two activations, since their derivatives differ in kind."""
    data = moons(rows=rows)
    layers = Linear(2, 8), Tanh(), Linear(8, 8), ReLU(), Linear(8, 2)
    network = Network(*layers, loss=SoftmaxCrossEntropy(), dtype="float64")
    found = explain(network, data.x, data.t, jacobians=jacobians, example=example, optimiser=SGD(0.5))
    return replace(found, origin=f"initial weights, {rows} rows of two moons", introduction=INTRODUCTION)
