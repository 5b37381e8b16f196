"""The explanation as one self-contained page, which opens from the disk: made of the template, style and modules here."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any
from xml.etree import ElementTree

import jinja2
import math_core
import msgspec
import numpy as np
from markupsafe import Markup, escape

from handgrad.explaining.page.product_picture import product_picture
from handgrad.explaining.page.questions import questions
from handgrad.explaining.record import ArraySample, ExplainedLine, Explanation, Jacobian, Step
from handgrad.explaining.shape_ledger import MAX_SAMPLE, sample
from handgrad.rules import RULES, show_shape
from handgrad.rules.rule_source import backward_slice

FOLDER = files(__name__)
MODULES = (
    "dom",
    "heatmap",
    "drawing",
    "live",
    "data_sets",
    "predictions",
    "arithmetic",
    "nudge",
    "entries",
    "units",
    "setup",
    "mistakes",
    "mistake_panel",
    "lab",
    "program",
    "training",
    "views",
    "main",
)
"""The page's own modules, each before those that import it."""

WORDS = {
    "dW1": "the gradient of the loss with respect to W1: how much the loss changes for each entry, ∂L/∂W1",
    "Jacobian": "of z by x: the derivative of each entry of z with respect to each entry of x, ∂z/∂x",
    "upstream gradient": "the gradient of a line's output, which its backward line multiplies by the Jacobian",
    "diagonal": "off the diagonal all is 0: the product is entry by entry",
    "kronecker": "A ⊗ I: one block A, repeated along a diagonal, and 0 between the blocks",
    "block diagonal": "blocks along a diagonal, each its own, and 0 between them",
    "diagonal plus low rank": "a diagonal and a few columns times a few rows: everything meets, through a few numbers",
    "sparse": "most entries are 0",
    "Σ_n": "the sum over the rows n of the batch",
    "⊙": "the product entry by entry, * in the program; a product of matrices has no sign, and is @ in the program",
    "𝟏": "an array of ones; 𝟏[z > 0] is 1 where the condition holds and 0 elsewhere",
    "δ": "δ[o′, o] is 1 where its two indices are equal, else 0",
    "dL": "the gradient of the loss with respect to itself, which is 1: dloss in the program",
    "count": "the number of losses that the mean is over: of rows, or of the entries of all rows",
    "whole": "the sum of the exponentials that softmax divides by",
    "update to weight": "in Health: the size of one step's change of a layer's weights, relative to the weights",
    "saturated": "in Health: the share of entries at which an activation is so flat that its derivative is almost 0",
    "dead": "in Health: the share of units that pass no gradient for any row",
    "proof": "the stored form and the whole Jacobian, each multiplied by the same random upstream gradient",
}
"""What the page's own terms mean."""

BREAKS = {"=", "+", "−", "-", "⊙", "·", "⋅", "/", "←"}
"""The operators that a formula is broken before."""

MAX_NUMBERS, LEAST_SAMPLE = 50_000, 32
"""The numbers of all arrays that a page has, half a megabyte, and those that it has of each however many there are."""

MOST_SIGNS = 26  # of a formula that is broken outside its brackets only: what a phone has room for

PHASES = {"sample": "Draw", "forward": "Forward", "loss": "Loss", "backward": "Backward", "update": "Update"}


def render_page(explanation: Explanation, structures: str = "", *, over_points: bool = False) -> str:
    """Return an explanation as one HTML page with everything it needs inside: its policy forbids it to load anything.

    ``structures``, of `pack_pages`, has the pages of other networks that it can be exchanged for; with
    ``over_points`` the inputs may be made of points of a line or a plane, over which predictions are drawn.
    """
    explanation = _bounded(explanation)
    links, script, style = Links(explanation), _script(), _text("style.css")
    groups = {
        title: [line for line in explanation.lines if line.phase == phase] for phase, title in PHASES.items()
    }
    derivations = explanation.derivations.values()
    return _template().render(
        record=explanation,
        phases={title: lines for title, lines in groups.items() if lines},
        links=links,
        # each factor once: it is the same in every derivation
        factors={factor.line: factor for derivation in derivations for factor in derivation.factors},
        questions=questions(explanation),
        rules=RULES,
        words=WORDS,
        structures=structures,
        over_points=over_points,
        data=_as_json(_page_data(explanation, links)),
        script=Markup(script),  # these two are the package's own files
        style=Markup(style),
        policy=_policy(script, style),
        columns=dict.fromkeys(name for layer in explanation.health.layers for name in layer.measures),
    )


def _bounded(explanation: Explanation) -> Explanation:
    """Return an explanation with so few numbers of each array that the page has at most `MAX_NUMBERS` in all."""
    ledger, jacobians = explanation.ledger, explanation.jacobians
    samples = [entry.sample for entry in ledger.values() if entry.sample] + [
        each.sample for each in jacobians
    ]
    most = MAX_SAMPLE
    while most > LEAST_SAMPLE and sum(min(len(each.numbers), most) for each in samples) > MAX_NUMBERS:
        most //= 2
    if most == MAX_SAMPLE:
        return explanation
    cut = {
        name: replace(entry, sample=entry.sample and _cut(entry.sample, most))
        for name, entry in ledger.items()
    }
    pictures = (replace(each, sample=_cut(each.sample, most, square=True)) for each in jacobians)
    return replace(explanation, ledger=cut, jacobians=tuple(pictures))


def _cut(given: ArraySample, most: int, *, square: bool = False) -> ArraySample:
    numbers = np.array([np.nan if number is None else number for number in given.numbers])
    return sample(numbers.reshape(given.shape), most, square=square)


def pack_pages(explanations: Iterable[tuple[str, Explanation]], **facts: Any) -> str:
    """Return pages, by name, as one compressed text in base64, with facts that `setup.js` needs of them.

    They have most of their lines in common: each line is there once, in an order in which neighbours are alike. Script and
    style are those of the page that the text is in.
    """
    pages = {}
    for name, explanation in explanations:
        page = render_page(explanation, over_points=True).replace(_script(), "/*script*/")
        page = page.replace(_text("style.css"), "/*style*/")
        page = page.replace('},"', '},\n"').replace("},{", "},\n{")  # the record is one line
        pages[name] = page.split("\n")
    lines = sorted({line for page in pages.values() for line in page})
    numbers = {line: k for k, line in enumerate(lines)}
    text = msgspec.json.encode(
        facts
        | {"lines": lines, "pages": {name: [numbers[line] for line in page] for name, page in pages.items()}}
    )
    return base64.b64encode(zlib.compress(text, 9)).decode()


class Links:
    """Which lines, derivations and Jacobians belong to a line."""

    def __init__(self, explanation: Explanation) -> None:
        self.record = explanation
        self.made = {line.target: line.number for line in reversed(explanation.lines) if line.operator == "="}

    def first_gradient(self) -> int:
        """Return the number of the line that makes the first gradient of a value of the forward, or 0."""
        forward = {line.target for line in self.record.lines if line.phase == "forward"}
        return next(
            (line.number for line in self.record.lines if self.record.gradient_of(line) in forward), 0
        )

    def undone_by(self, line: ExplainedLine) -> list[ExplainedLine]:
        """Return the backward lines that undo a line."""
        if line.phase == "backward" or line.operator != "=":
            return []
        return [other for other in self.record.lines if other.undoes == line.target]

    def picture(self, line: ExplainedLine) -> Markup:
        """Return the outlines of a line's product of two matrices."""
        return product_picture(line, self.record.ledger)

    def product(self, line: ExplainedLine) -> str:
        """Return, for the gradient of a parameter, all lines substituted into one another, in TeX."""
        derivation = self.record.derivations.get(self.record.gradient_of(line))
        return derivation.product if derivation and derivation.factors[-1].line == line.number else ""

    def factors(self, line: ExplainedLine) -> list[int]:
        """Return the numbers of the lines that a gradient passes through, from the loss to it."""
        for derivation in self.record.derivations.values():
            numbers = [factor.line for factor in derivation.factors]
            if line.number in numbers:
                before = [self.record.lines[number] for number in numbers[: numbers.index(line.number) + 1]]
                return [each.number for each in backward_slice(before, {line.target})]
        return []

    def steps(self, line: ExplainedLine) -> tuple[Step, ...]:
        """Return how a gradient follows, by indices, from the forward line that it differentiates."""
        return next((j.steps for _, j in self.jacobians(line)), ())

    def jacobians(self, line: ExplainedLine) -> list[tuple[int, Jacobian]]:
        """Return the numbered Jacobians between the value a backward line undoes and what its gradient is of."""
        of = self.record.between(line)
        return [(k, j) for k, j in enumerate(self.record.jacobians) if (j.output, j.input) == of]


def _page_data(explanation: Explanation, links: Links) -> dict[str, Any]:
    """Return what the page's modules draw; formulas and sentences are in the page already."""
    return {
        "opening": links.first_gradient() if explanation.introduction else 0,
        "drawing": explanation.drawing,
        "lines": [
            {"target": line.target, "phase": line.phase, "reads": line.reads, "undoes": line.undoes}
            | {"factors": links.factors(line), "activation": explanation.is_activation(line)}
            for line in explanation.lines
        ],
        "ledger": explanation.ledger,
        "jacobians": [
            {
                "output": jacobian.output,
                "input": jacobian.input,
                "gradient": jacobian.gradient,
                "example": jacobian.example,
                "sample": jacobian.sample,
                "outputAxes": jacobian.output_axes,
                "inputAxes": jacobian.input_axes,
                "outputSizes": jacobian.output_sizes,
                "inputSizes": jacobian.input_sizes,
            }
            for jacobian in explanation.jacobians
        ],
        "snapshots": explanation.snapshots,
        "live": explanation.live,
    }


def _as_json(value: Any) -> Markup:
    """Return JSON for a script element: no name in it can end the element."""
    return Markup(msgspec.json.encode(value).decode().replace("<", "\\u003c"))


def mathml(tex: str) -> Markup:
    """Return a formula as MathML; the TeX itself where it is none.

    Examples
    --------
    >>> mathml(r"x^2")
    Markup('<math display="block"><msup><mi>x</mi><mn>2</mn></msup></math>')
    >>> mathml(r"\\<b>")
    Markup('<code>\\\\&lt;b&gt;</code>')
    """
    try:
        formula = math_core.LatexToMathML().convert_with_local_state(tex, displaystyle=True)
    except math_core.LatexError:
        return Markup("<code>{}</code>").format(tex)
    # The page's policy allows no style but the sheet's, so the alignment of columns becomes a class.
    formula = re.sub(r' style="text-align: (left|right|center);[^"]*"', r' class="\1"', formula)
    formula = re.sub(r' style="[^"]*"', "", formula)
    return Markup(formula)  # math-core escapes what it is given


def _in_pieces(tex: str) -> Markup:
    """Return a formula as MathML, broken before its operators, a long one within its brackets too, where a line can end."""
    formula = mathml(tex)
    if not formula.startswith("<math"):
        return formula
    named = re.sub(r"&(?!lt;|gt;|amp;|quot;)\w+;", lambda entity: html.unescape(entity[0]), str(formula))
    root = ElementTree.fromstring(named)
    pieces: list[list[ElementTree.Element]] = [[]]
    for node in _flat(root, len("".join(root.itertext()))):
        before = pieces[-1][-1] if pieces[-1] else None
        signed = before is None or (
            before.tag == "mo" and before.text not in {")", "]", "|"}
        )  # a sign, no operator
        if node.tag == "mo" and node.text in BREAKS and not signed:
            node.set("form", "infix")  # as it would be within the whole
            pieces.append([])
        if node.tag != "mspace":
            pieces[-1].append(node)
        elif not signed:
            pieces.append([])
    pieces = [piece for piece in pieces if piece]
    if len(pieces) == 1:
        return formula
    written = ("".join(ElementTree.tostring(node, "unicode") for node in piece) for piece in pieces)
    return Markup(" ".join(f'<math displaystyle="true">{piece}</math>' for piece in written))


def _flat(node: ElementTree.Element, length: int) -> Iterator[ElementTree.Element]:
    """Yield the parts of a row, and those of the rows in it where the whole is too long for a line."""
    for part in node:
        if (
            part.tag == "mrow"
            and length > MOST_SIGNS
            and len(part) > 3
            and "mtable" not in {each.tag for each in part}
        ):
            yield from _flat(part, length)
        else:
            yield part


def _of_row(text: str, row: int | None) -> Markup:
    """Mark the number of a row in a sentence about it, so that the page can write another row's there."""
    if row is None:
        return escape(text)
    return Markup(
        re.sub(rf"(?<=\brow ){row}\b|(?<=\[){row}(?=\])", f"<span data-row>{row}</span>", escape(text))
    )


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _bytes(count: int) -> str:
    for unit, size in (("MB", 2**20), ("kB", 1024)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "mathml": mathml,
        "formula": _in_pieces,
        "shape": show_shape,
        "number": _number,
        "bytes": _bytes,
        "of_row": _of_row,
    }
    return environment.get_template("page.html")


@cache
def _text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    """Return the page's modules as one: a page opened from the disk can import nothing."""
    modules = "\n".join(_text(f"{name}.js") for name in MODULES)
    modules = re.sub(r"^import [^;]*;\n", "", modules, flags=re.MULTILINE)
    return re.sub(r"^export ", "", modules, flags=re.MULTILINE)


def _policy(script: str, style: str) -> str:
    """Return a policy that lets these texts run and nothing else, and loads nothing."""
    hashed = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style))
    sources = [f"{kind}-src 'sha256-{each}'" for kind, each in zip(("script", "style"), hashed, strict=True)]
    return "; ".join(["default-src 'none'", *sources, "base-uri 'none'", "form-action 'none'"])
