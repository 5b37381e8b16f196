"""``handgrad generate``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import click

from handgrad.cli.console import printable
from handgrad.cli.options import FOLDER, NumberRange, json_option
from handgrad.data.text import encode_text
from handgrad.errors import RunError
from handgrad.files import parse_json, read_file
from handgrad.generation import generate
from handgrad.network import Network
from handgrad.runs import holds_run, load_run

PUBLISHED = "model.safetensors"
MOST_BYTES = 2**20  # of config.json
OF_ONE = "give the files of one model"
OWN = {"activation_function": "gelu_new", "layer_norm_epsilon": 1e-5}
"""What config.json states of every GPT-2, and another network may have otherwise."""


@click.command(name="generate")
@click.argument("run", type=FOLDER)
@click.option("--prompt", default="", help="What to begin with [a new line].")
@click.option(
    "--tokens",
    type=click.IntRange(1, 10**6),
    default=500,
    show_default=True,
    help="How many characters; of GPT-2, tokens.",
)
@click.option(
    "--temperature",
    type=NumberRange(min=0, max=100),
    default=0.8,
    show_default=True,
    help="Below 1 likelier characters come more often; at 0 always the likeliest.",
)
@click.option("--top-k", type=click.IntRange(min=1), help="Draw from so many of the likeliest [all].")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Of the draws.")
@json_option("Print the prompt and what follows as one JSON object.")
def generate_command(
    run: Path, prompt: str, tokens: int, temperature: float, top_k: int | None, seed: int, as_json: bool
) -> None:
    """Let a network that was trained on a text write more of it.

    RUN is a folder that `handgrad train` wrote for a text, or the published files of a GPT-2: model.safetensors,
    vocab.json, merges.txt, and config.json where its heads have not 64 features each. The characters appear as they
    are drawn.

    \b
    handgrad train alice --out runs/alice
    handgrad generate runs/alice --prompt "Alice was " --tokens 300
    handgrad generate runs/alice --temperature 0.5 --top-k 10 --seed 7
    handgrad generate gpt2 --prompt "The rabbit" --tokens 30 --top-k 40
    """
    published = not holds_run(run) and (run / PUBLISHED).exists()
    network, numbers, decode = (_of_gpt2 if published else _of_run)(run, prompt)
    drawn = generate(network, numbers, temperature=temperature, top_k=top_k, seed=seed)
    pieces = decode(islice(drawn, tokens))
    if as_json:
        click.echo(json.dumps({"prompt": prompt, "text": "".join(pieces)}))
        return
    click.echo(printable(prompt), nl=False)
    for piece in pieces:
        click.echo(printable(piece), nl=False)
    click.echo()


Reading = tuple[Network, list[int], Callable[[Iterable[int]], Iterator[str]]]
"""A network, the prompt's numbers, and how numbers are read as text."""


def _of_run(run: Path, prompt: str) -> Reading:
    trained = load_run(run)
    if not trained.entries:
        raise RunError(f"{run}: was not trained on a text", fix="train on one: handgrad train text.txt")
    known = trained.entries
    begin = prompt or ("\n" if "\n" in known else known[0])
    numbers = encode_text(begin, known, "--prompt").tolist()
    return trained.network, numbers, lambda drawn: (known[number] for number in drawn)


def _of_gpt2(folder: Path, prompt: str) -> Reading:
    from handgrad.interop import BytePairs, load_gpt2

    tokens = BytePairs.read(folder)
    network = load_gpt2(folder / PUBLISHED, heads=_heads(folder / "config.json"))
    entries = network.entries or 0
    if (unnamed := next((k for k in range(entries) if k not in tokens.texts), None)) is not None:
        raise RunError(
            f"{folder}: {PUBLISHED} has {entries:,} tokens, and vocab.json has no token {unnamed}", fix=OF_ONE
        )
    if (most := max(tokens.texts)) >= entries:
        raise RunError(
            f"{folder}: vocab.json has a token {most}, and {PUBLISHED} has {entries:,} tokens", fix=OF_ONE
        )
    return network, tokens.encode(prompt or "\n"), tokens.pieces


def _heads(path: Path) -> int | None:
    """Return the heads that a model's config.json states, None where there is no such file."""
    if not path.exists():
        return None
    settings = parse_json(read_file(path, MOST_BYTES), dict[str, Any], str(path))
    for name, own in OWN.items():
        if (value := settings.get(name, own)) != own:
            raise RunError(
                f"{path}: {name} is {value!r:.40}, and GPT-2's is {own!r}", fix="give the files of a GPT-2"
            )
    heads = settings.get("n_head")
    if type(heads) is not int or not 1 <= heads <= 10**6:
        raise RunError(
            f"{path}: n_head is {heads!r:.40}, and a whole number of heads is needed",
            fix="give the files of a GPT-2",
        )
    return heads
