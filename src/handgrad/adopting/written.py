"""An adopted network as a folder: a Python file that builds and trains it, its weights, its rows."""

from __future__ import annotations

import io
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from handgrad.adopting.adoption import Adoption
from handgrad.adopting.author import AdoptError
from handgrad.adopting.own_rules import own_text
from handgrad.files import write_file
from handgrad.layers import KINDS, Layer, Sequential

EPOCHS = 100

TEXT = '''"""The network of {name}, made of handgrad's layers, with its weights.

    python network.py       trains it further, and saves it as trained.safetensors

{notes}
"""

{dataclass}from pathlib import Path

import numpy as np

from handgrad import {imports}
{rule}
FOLDER = Path(__file__).parent

{own}
def make_network() -> Network:
    """Return the network with the weights of {name}."""
    network = Network(
{layers}
        loss={loss},
        inputs={inputs},
        dtype="float64",
    )
    with np.load(FOLDER / "weights.npz") as weights:
        for name, array in network.parameters.items():
            array[...] = weights[name]
    return network


def main() -> None:
    """Train the network as {name} does."""
    network = make_network()
    with np.load(FOLDER / "data.npz") as data:
        x, t = data["x"], data["t"]
    history = train(
        network, x, t, epochs={epochs}, batch_size={batch_size}, optimiser={optimiser}, shuffle=False, progress=False
    )
    first, last = history.epochs[0], history.epochs[-1]
    print(f"loss per row {{first.loss:.6g}} after epoch 1, {{last.loss:.6g}} after epoch {{len(history.epochs)}}")
    network.save(FOLDER / "trained.safetensors")


if __name__ == "__main__":
    main()
'''


def write_adoption(adoption: Adoption, folder: Path, *, overwrite: bool = False) -> list[Path]:
    """Write the network, its weights and its rows into a new folder, all or nothing; return the files.

    Raises
    ------
    AdoptError
        When there is such a folder already, and it is not to be overwritten.
    """
    arrays = {"weights.npz": adoption.network.parameters, "data.npz": {"x": adoption.x, "t": adoption.t}}
    files: dict[str, str | bytes] = {"network.py": network_text(adoption)}
    files |= {name: _npz(each) for name, each in arrays.items()}
    if folder.exists() and not overwrite:
        raise AdoptError(f"{folder}: is there already", fix="give --overwrite, or another folder with --out")
    if folder.exists():
        for name, content in files.items():
            write_file(folder / name, content)
        return [folder / name for name in files]
    temporary = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
    try:
        for name, content in files.items():
            write_file(temporary / name, content)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return [folder / name for name in files]


def _npz(arrays: Mapping[str, Any]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def network_text(adoption: Adoption) -> str:
    """Return the Python file of an adopted network."""
    network, steps = adoption.network, adoption.steps
    layers = [f"        {layer!r},{_comment(adoption, layer)}" for layer in network.body.layers]
    parts = [*map(repr, network.body.layers), repr(network.loss), "SGD()"]
    own = list(
        dict.fromkeys(
            filter(None, (own_text(each) for layer in network.body.layers for each in _leaves(layer)))
        )
    )
    names = {name for part in parts for name in re.findall(r"\b[A-Z]\w*(?=\()", part) if name in KINDS}
    return TEXT.format(
        name=adoption.name,
        notes="\n".join(_notes(adoption)),
        imports=", ".join([*sorted(names | {"Network"} | ({"Layer"} if own else set())), "train"]),
        dataclass="from dataclasses import dataclass\n" if own else "",
        rule="from handgrad.rules import rule\n" if own else "",
        own="".join(f"\n{text}\n" for text in own),
        layers="\n".join(layers),
        loss=repr(network.loss),
        inputs=network.row[0] if len(network.row) == 1 else network.row,
        epochs=EPOCHS,
        batch_size=steps.batch_size,
        optimiser=repr(steps.optimiser),
    )


def _comment(adoption: Adoption, layer: Layer) -> str:
    """Return the author's names of a layer's parameters, as a comment."""
    graph = adoption.network.graph()
    names = (name for each in _leaves(layer) for name in graph.names_of(each).values())
    known = [adoption.sources[name] for name in names if adoption.sources.get(name)]
    return f"  # {', '.join(known)}" if known else ""


def _leaves(layer: Layer) -> Iterator[Layer]:
    for each in layer.layers if isinstance(layer, Sequential) else ():
        yield from _leaves(each)
    if not isinstance(layer, Sequential):
        yield layer


def _notes(adoption: Adoption) -> Iterator[str]:
    """Yield what a reader of the file has to know."""
    equal = (
        "rounding" if adoption.exact else "the tiny number that the author adds in a logarithm or a quotient"
    )
    yield f"Its output, its loss and its gradients are those of {adoption.name} up to {equal}."
    if not adoption.own_loss:
        yield "What is adopted has no loss: half the squared error to drawn targets is trained instead."
    if any(own_text(each) for layer in adoption.network.body.layers for each in _leaves(layer)):
        yield "What is no layer of handgrad's is a rule of its own: its forward as there, its backward by the chain rule."
    if adoption.factor != 1:
        yield f"The loss there is {adoption.factor:g} times this one, and so is the learning rate here."
    if adoption.report.verdict == "wrong":
        yield "The gradients there are wrong, and the right ones are trained with here."
