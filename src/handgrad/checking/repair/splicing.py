"""A change of the tree written back into the text of the user's file.

Only the text of the nodes that change is replaced: comments, spacing and the spelling of numbers stay.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Any

from handgrad.checking.repair.module_source import Change, Edit, ModuleSource, Node

Splice = tuple[int, int, str]  # from where to where, and what comes there


def text_with(source: ModuleSource, change: Change) -> str | None:
    """Return the file's text with a change made, or None when it cannot be written."""
    found = splices(source, change)
    return _spliced(source.text, found) if found is not None else None


def splices(source: ModuleSource, change: Change) -> list[Splice] | None:
    """Return what a change does to the text, edit by edit."""
    found = []
    for edit in change.edits:
        take_back = source.put_one(edit)
        wanted = _normal(source.tree)
        take_back()
        fitting = (
            splice for splice in _written(source, edit) if _normal(_spliced(source.text, [splice])) == wanted
        )
        found.append(next(fitting, None))
    return None if None in found else [splice for splice in found if splice is not None]


def _written(source: ModuleSource, edit: Edit) -> Iterator[Splice]:
    """Yield ways to write one edit, the plainest first."""
    start, end = source.span(edit.old)
    if isinstance(edit.new, tuple):
        yield from _statements(source, edit, start, end)
        return
    in_brackets = source.text[start - 1 : start] == "(" and source.text[end : end + 1] == ")"
    for new in _spellings(source, edit.new):
        if in_brackets and _is_atom(edit.new):
            yield start - 1, end + 1, new
        yield start, end, new
        yield start, end, f"({new})"


def _statements(source: ModuleSource, edit: Edit, start: int, end: int) -> Iterator[Splice]:
    """Yield ways to write statements in a statement's place; one that is removed takes its line along."""
    line_start, line = source.lines[edit.old.lineno - 1]
    indent = source.text[line_start:start]
    alone = indent.strip() == ""
    assert isinstance(edit.new, tuple)
    if not edit.new:
        stop = source.text.find("\n", end) + 1 or len(source.text)
        rest = source.text[end:stop].strip()
        if alone and (not rest or rest.startswith("#")):
            yield line_start, stop, ""
        yield start, end, "pass"
        return
    newline = ("\r\n" if line.endswith("\r\n") else "\n") + indent if alone else "; "
    stop = source.text.find("\n", end)
    stop = stop if stop >= 0 else len(source.text)
    if edit.new[-1] is edit.old:
        for written in product(*(_spellings(source, node) for node in edit.new[:-1])):
            yield start, start, newline.join(written) + newline
    elif edit.new[0] is edit.old and alone and source.text[end:stop].lstrip()[:1] in ("", "#"):
        for written in product(*(_spellings(source, node) for node in edit.new[1:])):
            yield stop, stop, newline + newline.join(written)
    else:
        spelt = [
            [source.text[start:end]] if node is edit.old else _spellings(source, node) for node in edit.new
        ]
        for written in product(*spelt):
            yield start, end, newline.join(written)


def _spellings(source: ModuleSource, new: Node) -> Iterator[str]:
    """Yield ways to write a node, the fewest brackets first; the nodes of the tree in it keep their text."""
    kept: list[Node] = []
    written = ast.unparse(ast.fix_missing_locations(_with_gaps(source, new, kept)))
    choices = [(False,) if _is_atom(node) else (False, True) for node in kept]
    for brackets in sorted(islice(product(*choices), 256), key=sum):
        text = written
        for k, (node, bracket) in enumerate(zip(kept, brackets, strict=True)):
            own = source.segment(node)
            text = text.replace(f"__gap{k}__", f"({own})" if bracket else own)
        yield text


def _with_gaps(source: ModuleSource, node: Any, kept: list[Node]) -> Any:
    if isinstance(node, list):
        return [_with_gaps(source, item, kept) for item in node]
    if not isinstance(node, ast.AST):
        return node
    if isinstance(node, ast.expr | ast.stmt) and id(node) in source.parents:
        kept.append(node)
        gap = ast.Name(f"__gap{len(kept) - 1}__", ast.Load())
        return ast.Expr(gap) if isinstance(node, ast.stmt) else gap
    return type(node)(**{field: _with_gaps(source, value, kept) for field, value in ast.iter_fields(node)})


def _is_atom(node: ast.AST) -> bool:
    return isinstance(
        node, ast.Name | ast.Constant | ast.Call | ast.Attribute | ast.Subscript | ast.List | ast.Dict
    )


def _spliced(text: str, splices: Sequence[Splice]) -> str:
    for start, end, new in sorted(splices, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _normal(tree: ast.Module | str) -> str:
    """Return what two texts of the same meaning have in common."""
    try:
        parsed = ast.parse(tree) if isinstance(tree, str) else tree
        return ast.dump(ast.parse(ast.unparse(parsed)))
    except SyntaxError:
        return ""
