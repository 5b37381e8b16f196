"""The last resort: lines that compute the right gradient, put into the user's backward in place of the wrong one.

What the user's own lines have computed already is used again, so that often a single line is left; and what
nobody needs any more is taken out.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from handgrad.checking.gradient_code import GradientCode
from handgrad.checking.repair.expressions import Observed, fill
from handgrad.checking.repair.guard import LONGEST_RUN, OutOfTimeError
from handgrad.checking.repair.module_source import Change, Edit
from handgrad.checking.repair.reuse import changed_by, in_scope, needed, newly_unread
from handgrad.checking.repair.sandbox import Sandbox
from handgrad.checking.subject import Subject

COST = 5.0  # more than any small edit, and for each line more
OF_A_LINE = 3.0


def rewritings(sandbox: Sandbox, observed: Observed, code: GradientCode) -> Iterator[Change]:
    """Yield ways to put gradient code into backward, the shortest first; the last leaves nothing of its lines."""
    source = sandbox.source
    function = source.entry
    if function is None:
        return
    returns = (node for node in ast.walk(function) if isinstance(node, ast.Return) and node.value)
    own = (node for node in returns if source.enclosing(node, ast.FunctionDef) is function)
    ends = [node for node in own if id(node) in observed.scopes]
    if not ends:
        return
    site = _Site(sandbox, observed, function, ends[0])
    for change in site.changes(*site.written(code, shared=True)):
        yield from site.tidied(change)
        yield change
    if set(code.results) == set(sandbox.target.gradients):
        body, results = site.written(code, shared=False)
        old = function.body[int(_is_text(function.body[0])) :]
        new = (*body, ast.Return(site.anew(results)))
        edits = (Edit(old[0], new), *(Edit(node, ()) for node in old[1:]))
        yield Change(edits, COST, description=_in_words(results, body), is_new=True)


def slots(node: ast.Return, subject: Subject) -> dict[str, ast.expr]:
    """Return the expression of each argument's gradient, where they are written out one by one."""
    match node.value:
        case ast.Dict(keys, values):
            pairs = zip(keys, values, strict=True)
            return {str(key.value): item for key, item in pairs if isinstance(key, ast.Constant)}
        case ast.Call(ast.Name("dict"), _, keywords):
            return {keyword.arg: keyword.value for keyword in keywords if keyword.arg is not None}
        case ast.Tuple(items) | ast.List(items):
            names = subject.inputs if len(items) == len(subject.inputs) else subject.differentiable
            return dict(zip(names, items, strict=False))
    return {}


class _Site:
    """The place in backward where it returns."""

    def __init__(
        self, sandbox: Sandbox, observed: Observed, function: ast.FunctionDef, end: ast.Return
    ) -> None:
        self.sandbox, self.source, self.target = sandbox, sandbox.source, sandbox.target
        self.function, self.end = function, end
        self.scope = observed.scopes[id(end)]
        self.slots = slots(end, sandbox.subject)
        self.is_mapping = isinstance(observed.values.get(id(end.value)), Mapping)
        uses = Counter(node.id for node in ast.walk(function) if isinstance(node, ast.Name))
        self.used = set(uses)
        # Names that hold a gradient for the return and for nothing else.
        own = [slot.id for slot in self.slots.values() if isinstance(slot, ast.Name)]
        self.given_up = {name for name in own if uses[name] == 2}

    def written(self, code: GradientCode, *, shared: bool) -> tuple[list[ast.stmt], dict[str, ast.expr]]:
        """Return code as statements under free names; shared with what backward has computed, or in place of all."""
        parameters = self.source.parameters(self.function)
        given = ["grad_output", *self.target.inputs] if self.sandbox.subject.positional else ["grad_output"]
        names = {"np": self.source.numpy, **dict(zip(given, parameters, strict=False))}
        upstream = self.target.upstream
        values = {
            "grad_output": tuple(upstream) if self.sandbox.subject.several else upstream[0],
            **self.target.inputs,
        }
        scope = dict(self.scope) if shared else {}
        known = self.source.globals | scope
        known |= {names.get(name, name): value for name, value in values.items()}
        taken = {*parameters, *self.source.globals, *(self.used - self.given_up if shared else ())}
        body: list[ast.stmt] = []
        for statement in ast.parse("\n".join(code.lines)).body:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            own = target.id if isinstance(target, ast.Name) else ""
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and not (own and isinstance(node.ctx, ast.Store)):
                    node.id = names.get(node.id, node.id)
            if isinstance(statement, ast.Assign | ast.AugAssign):
                statement.value = in_scope(statement.value, scope, known)
                if own and isinstance(statement.value, ast.Name):
                    names[own] = statement.value.id
                    continue
            if isinstance(target, ast.Name):
                while target.id in taken:
                    target.id += "_"
                taken.add(target.id)
                names[own] = target.id
            body.append(statement)
            try:
                with self.sandbox.guard.limit(LONGEST_RUN):
                    exec(compile(ast.unparse(statement), "<lines>", "exec"), known)
            except (Exception, OutOfTimeError):
                scope = {}  # what comes after it cannot be compared
        results = {argument: names.get(name, name) for argument, name in code.results.items()}
        return needed(body, set(results.values())), {
            argument: ast.Name(name, ast.Load()) for argument, name in results.items()
        }

    def changes(self, body: list[ast.stmt], results: dict[str, ast.expr]) -> Iterator[Change]:
        """Yield the ways to return results: as expressions where the wrong ones are, or by statements before the return."""
        cost = COST + OF_A_LINE * len(body)
        names = [ast.unparse(result) for result in results.values()]
        values = {ast.unparse(node.targets[0]): node.value for node in body if isinstance(node, ast.Assign)}
        if len(values) == len(body) and set(values) <= set(names) and len(set(names)) == len(names):
            alone = {argument: values.get(ast.unparse(name), name) for argument, name in results.items()}
            yield Change(self._returned(alone), cost, is_new=True)
        if body:
            edits = Edit(self.end, (*body, self.end)), *self._returned(results)
            yield Change(edits, cost, description=_in_words(results, body), is_new=True)

    def _returned(self, new: Mapping[str, ast.expr]) -> tuple[Edit, ...]:
        """Return edits that return new results."""
        if self.slots.keys() >= new.keys():
            return tuple(Edit(self.slots[name], value) for name, value in new.items())
        value = self.end.value
        assert value is not None
        if set(new) == set(self.target.gradients):
            return (Edit(value, self.anew(new)),)
        if self.is_mapping:
            own = [ast.Constant(name) for name in new]
            return (Edit(value, ast.Dict([None, *own], [value, *new.values()])),)
        parts = [new.get(name) or fill("E[K]", E=value, K=k) for k, name in enumerate(self._order)]
        return (Edit(value, ast.Tuple(parts, ast.Load())),)

    def anew(self, new: Mapping[str, ast.expr]) -> ast.expr:
        """Return the expression of all results."""
        if self.is_mapping:
            return ast.Dict([ast.Constant(name) for name in new], list(new.values()))
        if len(new) == 1:
            return next(iter(new.values()))
        return ast.Tuple([new[name] for name in self._order], ast.Load())

    @property
    def _order(self) -> list[str]:
        """The arguments in the order of a returned tuple."""
        names, right = list(self.target.inputs), self.target.gradients
        return (
            names
            if set(names) == set(right)
            else [n for n in self.sandbox.subject.differentiable if n in right]
        )

    def tidied(self, change: Change) -> Iterator[Change]:
        """Yield a change with the assignments taken out that it leaves without a reader."""
        dead = newly_unread(self.source, self.function, change)
        new = (node for edit in change.edits if isinstance(edit.new, tuple) for node in edit.new)
        again = self.given_up & {name for node in new for name in changed_by(node)}
        dead += [
            node for node in self.function.body if isinstance(node, ast.Assign) and changed_by(node) <= again
        ]
        changed = {id(edit.old) for edit in change.edits}
        dead = [node for node in dead if not any(id(inner) in changed for inner in ast.walk(node))]
        if dead:
            edits = (*change.edits, *(Edit(node, ()) for node in dead))
            yield replace(change, edits=edits)


def _in_words(results: Mapping[str, Any], body: Sequence[ast.stmt]) -> str:
    *listed, last = (f"`{name}`" for name in results)
    first = f"the gradients of {', '.join(listed)} and {last} are" if listed else f"the gradient of {last} is"
    return f"{first} written anew, in {len(body)} line{'s' if len(body) != 1 else ''}"


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
