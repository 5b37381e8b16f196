"""``handgrad export``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from handgrad.cli.options import FILE, FOLDER
from handgrad.interop import save_torch_weights, to_onnx
from handgrad.runs import load_run


@click.command(name="export")
@click.argument("run", type=FOLDER)
@click.option("--onnx", type=FILE, help="Write the network as an ONNX file.")
@click.option("--torch", type=FILE, help="Write the weights as safetensors, named as PyTorch names them.")
@click.option(
    "--with-standardisation/--without-standardisation",
    "standardise",
    default=True,
    help="Whether the ONNX file takes rows as they come, or standardised ones [with].",
)
@click.option(
    "--prediction", is_flag=True, help="Let the ONNX file answer as `handgrad predict`, not in logits."
)
def command(run: Path, onnx: Path | None, torch: Path | None, standardise: bool, prediction: bool) -> None:
    """Write a trained network for other libraries.

    RUN is a folder that `handgrad train` wrote. The ONNX file holds the names of classes and columns too, as JSON in
    its metadata.

    \b
    handgrad export runs/digits --onnx digits.onnx --prediction
    handgrad export runs/digits --torch digits.safetensors
    """
    if onnx is None and torch is None:
        raise click.UsageError("Nothing to write: give --onnx FILE or --torch FILE.")
    if onnx is None and (prediction or not standardise):
        raise click.UsageError("--prediction and --without-standardisation are for --onnx FILE.")
    trained = load_run(run)
    if onnx is not None:
        names = {"classes": trained.classes, "feature_names": trained.feature_names}
        metadata = {key: json.dumps(value) for key, value in names.items() if value}
        to_onnx(trained.network, onnx, prediction=prediction, standardise=standardise, metadata=metadata)
        click.echo(f"wrote {onnx}")
    if torch is not None:
        save_torch_weights(trained.network, torch)
        click.echo(f"wrote {torch}")
