"""A product of matrices as outlines in true proportion: which sizes meet, and what the other order would be."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from handgrad.explaining.record import ExplainedLine, LedgerEntry

LONGEST, SHORTEST = 88, 5  # pixels of the longest side, and of a side too short to be seen
TOP, BOTTOM, SIDE, SIGN, LETTER = (
    20,
    18,
    52,
    26,
    7.4,
)  # room for an outline's labels, and for a sign between two


@dataclass(frozen=True)
class Outline:
    """One array of a product: its name, and the letter and size of its rows and columns."""

    name: str
    rows: tuple[str, int]
    columns: tuple[str, int]

    @property
    def transposed(self) -> Outline:
        """The array with rows and columns exchanged."""
        name = self.name.removesuffix(".T") if self.name.endswith(".T") else f"{self.name}.T"
        return Outline(name, self.columns, self.rows)


def product_picture(line: ExplainedLine, ledger: Mapping[str, LedgerEntry]) -> Markup:
    """Draw the first product of two matrices in a line; nothing where there is none."""
    found = factors(line, ledger)
    if found is None:
        return Markup("")
    left, right = found
    result = Outline(line.target, left.rows, right.columns)
    made = ledger.get(line.target)
    if made is None or made.sizes != (left.rows[1], right.columns[1]):
        result = Outline(f"{left.name} @ {right.name}", left.rows, right.columns)
    scale = LONGEST / max(size for each in (left, right) for _, size in (each.rows, each.columns))
    inner = left.columns[1]
    text = f"The {inner} columns of {left.name} meet the {inner} rows of {right.name}: the product sums over them."
    parts = [Markup("<figcaption>{}</figcaption>").format(text), _drawn((left, right, result), scale)]
    if line.phase == "backward" and made is not None and made.gradient_of:
        parts += _other_order(left, right, line.target, made.gradient_of, scale)
    return Markup('<figure class="product-picture">{}</figure>').format(Markup("").join(parts))


def factors(line: ExplainedLine, ledger: Mapping[str, LedgerEntry]) -> tuple[Outline, Outline] | None:
    """Return the two matrices of the first product in a line; None where there is none."""
    try:
        tree = ast.parse(line.expression)
    except SyntaxError:  # a record from elsewhere
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            left, right = (_outline(side, ledger) for side in (node.left, node.right))
            if left and right and left.columns[1] == right.rows[1]:
                return left, right
    return None


def _outline(node: ast.expr, ledger: Mapping[str, LedgerEntry]) -> Outline | None:
    if isinstance(node, ast.Attribute) and node.attr == "T":
        inner = _outline(node.value, ledger)
        return inner and inner.transposed
    entry = ledger.get(node.id) if isinstance(node, ast.Name) else None
    if entry is None or len(entry.sizes) != 2 or len(entry.axes) != 2:
        return None
    rows, columns = ((axis.lower(), size) for axis, size in zip(entry.axes, entry.sizes, strict=True))
    return Outline(entry.name, rows, columns)


def _other_order(left: Outline, right: Outline, target: str, of: str, scale: float) -> Iterator[Markup]:
    """Yield what a transpose left out, or the other order of the factors, would give."""
    text = Markup("<p>{}</p>")
    if not (left.name.endswith(".T") or right.name.endswith(".T")):
        return
    if left.name.endswith(".T"):
        a, b = right.transposed, left.transposed
        yield text.format(
            f"{a.name} @ {b.name} sums over the same {b.rows[1]}, and is {target} transposed: not the shape of {of}."
        )
        yield _drawn((a, b, Outline(f"{target}.T", a.rows, b.columns)), scale, "other")
    plain = (left.transposed, right) if left.name.endswith(".T") else (left, right.transposed)
    columns, rows = plain[0].columns[1], plain[1].rows[1]
    if columns != rows:
        text_of = f"Without the transpose {columns} columns of {plain[0].name} do not meet {rows} rows of {plain[1].name}."
    else:
        text_of = f"Without the transpose the sizes fit here too, because {rows} is both: the numbers would be others."
    yield text.format(text_of)


def _labelled(axis: tuple[str, int]) -> str:
    letter, size = axis
    return letter if letter == str(size) else f"{letter} = {size}"


def _drawn(outlines: tuple[Outline, Outline, Outline], scale: float, kind: str = "right") -> Markup:
    """Draw two factors and their product side by side, the sizes that meet marked."""
    parts: list[Markup] = []
    x, height = 0.0, TOP + BOTTOM + max(_length(each.rows, scale) for each in outlines)
    for number, (outline, sign) in enumerate(zip(outlines, ("@", "=", ""), strict=True)):
        parts.extend(_one(outline, x, scale, height, (number == 1, number == 0)))
        letters = max(len(outline.name), len(_labelled(outline.columns)))
        x += _side(outline) + max(_length(outline.columns, scale), LETTER * letters)
        if sign:
            text = Markup('<text class="sign" x="{:.0f}" y="{:.0f}">{}</text>')
            parts.append(text.format(x + SIGN / 2, height / 2, sign))
            x += SIGN
    label = f"{outlines[0].name} @ {outlines[1].name} = {outlines[2].name}"
    box = Markup(
        '<svg class="{0}" viewBox="0 0 {1:.0f} {2:.0f}" width="{1:.0f}" height="{2:.0f}" role="img" aria-label="{3}">'
    )
    return Markup("").join([box.format(kind, x + 8, height, label), *parts, Markup("</svg>")])


def _one(outline: Outline, x: float, scale: float, height: float, met: tuple[bool, bool]) -> Iterator[Markup]:
    wide, high = _length(outline.columns, scale), _length(outline.rows, scale)
    left, top = x + _side(outline), TOP + (height - TOP - BOTTOM - high) / 2
    yield Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(left, top, wide, high)
    text = Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>')
    yield text.format("rows met" if met[0] else "rows", left - 5, top + high / 2 + 4, _labelled(outline.rows))
    yield text.format("columns met" if met[1] else "columns", left, top - 6, _labelled(outline.columns))
    yield text.format("name", left, top + high + 14, outline.name)


def _side(outline: Outline) -> float:
    """Return the width of what is written beside an outline."""
    return max(SIDE, LETTER * len(_labelled(outline.rows)) + 12)


def _length(axis: tuple[str, int], scale: float) -> float:
    return max(axis[1] * scale, SHORTEST)
