"""The README's first screen is what the code prints."""

import contextlib
import io
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_first_example_prints_what_stands_below_it():
    """The first ``python`` block prints the first ``text`` block, to the letter."""
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    text = re.search(r"```text\n(.*?)```", README, re.DOTALL)
    assert code is not None
    assert text is not None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code[1], {})
    assert printed.getvalue() == text[1]


def test_every_file_it_links_to_exists():
    """Links into the repository lead somewhere."""
    links = re.findall(r"\]\(((?!http)[^)#]+)\)", README)
    missing = [link for link in links if not (Path(__file__).parent.parent / link).exists()]
    assert links
    assert missing == []


def test_what_it_links_to_is_complete_as_it_is():
    """A page with parts that only the build of the documentation writes would have holes."""
    links = set(re.findall(r"\]\((docs/[^)#]+\.md)\)", README))
    holes = {
        link: found
        for link in links
        if (found := re.findall(r"\{(?:generated|eval-rst)\}|\[\]\(", (ROOT / link).read_text("utf-8")))
    }
    assert len(links) > 5
    assert holes == {}


def test_its_figures_are_those_of_the_page_of_benchmarks():
    """The one comparison in the README stands in the first table there."""
    benchmarks = (Path(__file__).parent.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    table = benchmarks.split("\n| network, batch")[1].split("\n\n")[0].splitlines()
    told = re.search(
        r"a step of (\S+) with (\d+) rows takes (\S+) µs; JAX, a whole epoch compiled, takes (\S+) times as long, "
        r"and PyTorch (\S+) times",
        " ".join(README.split()),
    )
    assert told is not None
    sizes, rows, ours, jax, torch = told.groups()
    (row,) = [line for line in table if line.startswith(f"| {sizes}, {rows} |")]
    figures = dict(zip(table[0].split(" | "), row.split(" | "), strict=True))
    assert figures["handgrad"] == ours
    assert figures["JAX, epoch in `lax.scan`"] == jax
    assert figures["PyTorch, eager"] == torch
