"""A change written into the file's text: only the nodes that change, in the fewest brackets; comments and spacing stay."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice, product
from typing import Any

from handgrad.checking.repair.module_source import Change, Edit, ModuleSource, Node

Splice = tuple[int, int, str]  # from where to where in the text, and what comes there

MOST_SPELLINGS = 256  # ways to set brackets around the user's own parts of new code
LONGEST_TEXT = 90  # characters of code in a description
ATOMS = (
    ast.Name,
    ast.Constant,
    ast.Call,
    ast.Attribute,
    ast.Subscript,
    ast.List,
    ast.Dict,
)  # need no brackets


def text_with(source: ModuleSource, change: Change) -> str | None:
    """Return the file's text with a change made, or None when it cannot be written."""
    found = splices(source, change)
    return _spliced(source.text, found) if found is not None else None


def exchanged(source: ModuleSource, change: Change) -> list[tuple[str, str]]:
    """Return what a change takes away and what it puts there, "" for nothing, edit by edit."""
    news = [_short(_unbracketed(new.strip())) for _, _, new in splices(source, change) or []]
    olds = [_short(source.segment(edit.old)) for edit in change.edits]
    return [(old, "" if new == "pass" else new) for old, new in zip(olds, news, strict=False)]


def _unbracketed(text: str) -> str:
    """Return an expression's text without brackets round the whole of it."""
    with suppress(SyntaxError):
        if text[:1] == "(" and ast.dump(ast.parse(text[1:-1].strip())) == ast.dump(ast.parse(text)):
            return text[1:-1]
    return text


def _short(text: str) -> str:
    one = " ".join(text.split())
    return one if len(one) <= LONGEST_TEXT else one[: LONGEST_TEXT - 3] + "…"


def splices(source: ModuleSource, change: Change) -> list[Splice] | None:
    """Return what a change does to the text, edit by edit: the first spelling that parses as the changed tree."""
    found = []
    for edit in change.edits:
        with source.edited([edit]):
            wanted = _normal(source.tree)
        spelt = _expressions(source, edit) if isinstance(edit.new, ast.expr) else _statements(source, edit)
        found.append(next((s for s in spelt if _normal(_spliced(source.text, [s])) == wanted), None))
    return None if None in found else [splice for splice in found if splice is not None]


def _expressions(source: ModuleSource, edit: Edit) -> Iterator[Splice]:
    """Yield ways to write an expression in another's place, the plainest first."""
    start, end = source.span(edit.old)
    in_brackets = source.text[start - 1 : start] == "(" and source.text[end : end + 1] == ")"
    for new in _spellings(source, edit.new):
        if in_brackets and isinstance(edit.new, ATOMS):
            yield start - 1, end + 1, new
        yield start, end, new
        yield start, end, f"({new})"


def _statements(source: ModuleSource, edit: Edit) -> Iterator[Splice]:
    """Yield ways to write statements in a statement's place; one that is removed takes its line along."""
    start, end = source.span(edit.old)
    line_start, stop = source.offset(edit.old.lineno, 0), source.text.find("\n", end) + 1 or len(source.text)
    indent, rest = source.text[line_start:start], source.text[end:stop]
    alone = not indent.strip()
    if not edit.parts:
        if alone and rest.lstrip()[:1] in ("", "#"):
            yield line_start, stop, ""
        yield start, end, "pass"
        return
    end_of_line = "\r\n" if "\r\n" in source.text else "\n"
    newline = end_of_line + indent if alone else "; "
    before, after = (
        edit.parts[k] is edit.old for k in (-1, 0)
    )  # the others are put in front of it, or behind
    on_own_line = alone and rest.lstrip()[:1] in ("", "#") and source.text[stop - 1] == "\n"
    for written in product(
        *(_spellings(source, node) for node in edit.parts[after : -1 if before else None])
    ):
        if before:
            yield start, start, newline.join([*written, ""])
        elif after and on_own_line:  # what ends there may go elsewhere
            yield stop, stop, "".join(f"{indent}{text}{end_of_line}" for text in written)
        elif after:
            yield end, end, newline.join(["", *written])
        else:
            yield start, end, newline.join(written)


def _spellings(source: ModuleSource, new: Any) -> Iterator[str]:
    """Yield ways to write a node, the fewest brackets first; the nodes of the tree in it keep their text."""
    own: list[Node] = []
    written = ast.unparse(ast.fix_missing_locations(_with_gaps(source, new, own)))
    choices = [(False,) if isinstance(node, ATOMS) else (False, True) for node in own]
    for brackets in sorted(islice(product(*choices), MOST_SPELLINGS), key=sum):
        text = written
        for k, (node, bracket) in enumerate(zip(own, brackets, strict=True)):
            segment = source.segment(node)
            text = text.replace(f"__gap{k}__", f"({segment})" if bracket else segment)
        yield text


def _with_gaps(source: ModuleSource, node: Any, own: list[Node]) -> Any:
    """Return a copy with a name in place of each of the user's own parts, which are collected."""
    if isinstance(node, list):
        return [_with_gaps(source, item, own) for item in node]
    if not isinstance(node, ast.AST):
        return node
    if isinstance(node, ast.expr | ast.stmt) and id(node) in source.parents:
        own.append(node)
        gap = ast.Name(f"__gap{len(own) - 1}__", ast.Load())
        return ast.Expr(gap) if isinstance(node, ast.stmt) else gap
    return type(node)(**{field: _with_gaps(source, value, own) for field, value in ast.iter_fields(node)})


def _spliced(text: str, splices: Sequence[Splice]) -> str:
    for start, end, new in sorted(splices, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _normal(tree: ast.Module | str) -> str:
    """Return what two texts of the same meaning have in common."""
    try:
        return ast.dump(ast.parse(ast.unparse(ast.parse(tree) if isinstance(tree, str) else tree)))
    except SyntaxError:
        return ""
