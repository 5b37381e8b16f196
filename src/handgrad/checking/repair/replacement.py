"""The last resort: lines that compute the right gradient, put into the user's backward in place of the wrong one.

What the user's own lines have computed already is used again, so that often a single line is left; and what
nobody needs any more is taken out.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from handgrad.checking.repair.expressions import fill
from handgrad.checking.repair.instrumentation import Observed
from handgrad.checking.repair.module_source import Change, Edit
from handgrad.checking.repair.run_limits import OutOfTimeError
from handgrad.checking.repair.sandbox import LONGEST_RUN, Sandbox
from handgrad.checking.subject import Subject
from handgrad.tolerance import reordered

COST = 5.0


def rewritings(
    sandbox: Sandbox, observed: Observed, lines: Sequence[str], results: Mapping[str, str]
) -> Iterator[Change]:
    """Yield ways to put lines for some arguments into backward, the shortest first.

    Parameters
    ----------
    sandbox, observed
        The user's backward, and what its run has shown.
    lines
        Source that computes gradients from ``grad_output`` and the inputs by name.
    results
        The name in the lines of each argument's gradient.
    """
    function = sandbox.source.units[sandbox.source.backward]
    ends = [
        node for node in ast.walk(function) if isinstance(node, ast.Return) and id(node) in observed.scopes
    ]
    ends = [node for node in ends if sandbox.source.function_of(node) is function and node.value is not None]
    if not ends or not isinstance(function, ast.FunctionDef):
        return
    site = _Site(sandbox, function, ends[0], observed)
    for shared in (True, False):
        body, names = _written(site, lines, results, shared=shared)
        for change in site.changes(body, names):
            yield from _tidied(site, change)
            yield change
    if set(results) == set(sandbox.target.gradients):
        site.taken -= site.uses.keys() - {
            *site.renamed.values(),
            *sandbox.target.inputs,
            *sandbox.source.globals,
        }
        yield site.whole(*_written(site, lines, results, shared=False))


def slots(node: ast.Return, subject: Subject) -> dict[str, ast.expr]:
    """Return the expression of each argument's gradient, where they are written out one by one."""
    value = node.value
    if isinstance(value, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in value.keys]
        return {key: item for key, item in zip(keys, value.values, strict=True) if isinstance(key, str)}
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict":
        return {keyword.arg: keyword.value for keyword in value.keywords if keyword.arg is not None}
    if isinstance(value, ast.Tuple | ast.List):
        names = subject.inputs if len(value.elts) == len(subject.inputs) else subject.differentiable
        return dict(zip(names, value.elts, strict=False))
    return {}


class _Site:
    """The place in backward where it returns."""

    def __init__(
        self, sandbox: Sandbox, function: ast.FunctionDef, end: ast.Return, observed: Observed
    ) -> None:
        self.sandbox, self.function, self.end = sandbox, function, end
        self.observed = observed
        self.scope = observed.scopes[id(end)]
        self.is_mapping = isinstance(observed.values.get(id(end.value)), Mapping)
        parameters = sandbox.source.parameters(function.name)
        given = ["grad_output", *sandbox.target.inputs] if sandbox.subject.positional else ["grad_output"]
        self.renamed = {"np": sandbox.source.numpy, **dict(zip(given, parameters, strict=False))}
        self.uses = Counter(node.id for node in ast.walk(function) if isinstance(node, ast.Name))
        self.taken = {*self.uses, *parameters, *sandbox.source.globals}

    @property
    def given_up(self) -> set[str]:
        """The names that hold a gradient for the return and for nothing else."""
        given = slots(self.end, self.sandbox.subject).values()
        return {slot.id for slot in given if isinstance(slot, ast.Name) and self.uses[slot.id] == 2}

    @property
    def order(self) -> list[str]:
        """The arguments in the order of a returned tuple."""
        names, judged = list(self.sandbox.target.inputs), self.sandbox.target.gradients
        return (
            names
            if set(names) == set(judged)
            else [n for n in self.sandbox.subject.differentiable if n in judged]
        )

    def changes(self, body: list[ast.stmt], names: dict[str, str]) -> Iterator[Change]:
        """Yield the ways to put statements in front of the return, or at the top, and to return their results."""
        cost = COST + 3 * len(body)
        results = {argument: ast.Name(name, ast.Load()) for argument, name in names.items()}
        values = {
            node.targets[0].id: node.value
            for node in body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        if (
            len(values) == len(body)
            and set(values) <= set(names.values())
            and len(set(names.values())) == len(names)
        ):
            # Each gradient is one expression: it stands where the wrong one stood.
            alone = {argument: values.get(name, results[argument]) for argument, name in names.items()}
            for places in (self._computed(), {}):
                returned = self._returned(alone, places)
                if returned is not None:
                    yield Change(returned, cost)
        returned = self._returned(results, {})
        if returned is None or not body:
            return
        said = _said(names, body)
        yield Change((Edit(self.end, (*body, self.end)), *returned), cost, description=said)
        first = self.function.body[int(_is_text(self.function.body[0]) and len(self.function.body) > 1)]
        if first is not self.end:
            yield Change((Edit(first, (*body, first)), *returned), cost + 1, description=said)

    def whole(self, body: list[ast.stmt], names: dict[str, str]) -> Change:
        """Return the change that leaves nothing of the function's body but its text."""
        old = self.function.body[int(_is_text(self.function.body[0])) :]
        value = self._anew({argument: ast.Name(name, ast.Load()) for argument, name in names.items()})
        new = (*body, ast.Return(value))
        return Change(
            (Edit(old[0], new), *(Edit(node, ()) for node in old[1:])),
            COST + 10,
            description=_said(names, body),
        )

    def _computed(self) -> dict[str, ast.expr]:
        """Return where the gradient of an argument is computed that is returned by a name of its own."""
        places = {}
        for argument, slot in slots(self.end, self.sandbox.subject).items():
            if isinstance(slot, ast.Name) and self.uses[slot.id] == 2:
                for node in self.function.body:
                    target = node.targets[0] if isinstance(node, ast.Assign) else None
                    if isinstance(target, ast.Name) and target.id == slot.id:
                        places[argument] = node.value  # type: ignore[attr-defined]
        return places

    def _returned(
        self, new: Mapping[str, ast.expr], places: Mapping[str, ast.expr]
    ) -> tuple[Edit, ...] | None:
        """Return edits that hand out new results; ``places`` may say where instead of in the return."""
        where = {**slots(self.end, self.sandbox.subject), **places}
        if where.keys() >= new.keys():
            if not all(self._defined_at(where[name], new[name]) for name in new):
                return None
            return tuple(Edit(where[name], value) for name, value in new.items())
        value = self.end.value
        assert value is not None
        if set(new) == set(self.sandbox.target.gradients):
            return (Edit(value, self._anew(new)),)
        if self.is_mapping:
            own = [ast.Constant(name) for name in new]
            return (Edit(value, ast.Dict([None, *own], [value, *new.values()])),)
        parts = [new.get(name) or fill("E[K]", E=value, K=k) for k, name in enumerate(self.order)]
        return (Edit(value, ast.Tuple(parts, ast.Load())),)

    def _defined_at(self, place: ast.expr, value: ast.expr) -> bool:
        """Whether every local name of an expression is known where it is to stand."""
        scope = self.observed.scopes.get(id(self.sandbox.source.statement_of(place)), {})
        names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
        return all(scope.get(name) is self.scope.get(name) or _equal(scope.get(name), self.scope[name])
                   for name in names & self.scope.keys())  # fmt: skip

    def _anew(self, new: Mapping[str, ast.expr]) -> ast.expr:
        if self.is_mapping:
            return ast.Dict([ast.Constant(name) for name in new], list(new.values()))
        if len(new) == 1:
            return next(iter(new.values()))
        return ast.Tuple([new[name] for name in self.order], ast.Load())


def _written(
    site: _Site, lines: Sequence[str], results: Mapping[str, str], *, shared: bool
) -> tuple[list[ast.stmt], dict[str, str]]:
    """Return lines as statements under free names, and the name of each argument's gradient.

    ``shared`` says whether names in scope at the return are used for what has their value.
    """
    wanted = site.sandbox.target
    taken = site.taken - site.given_up if shared else set(site.taken)
    upstream = tuple(wanted.upstream) if site.sandbox.subject.several else wanted.upstream[0]
    given = {"grad_output": upstream, **wanted.inputs}
    known = {**site.sandbox.names(), **{site.renamed.get(name, name): v for name, v in given.items()}}
    names = dict(site.renamed)
    scope = dict(site.scope) if shared else {}
    reader = _KnownValues({**scope, **known}, scope)
    body: list[ast.stmt] = []
    for statement in ast.parse("\n".join(lines)).body:
        new = _Renaming(names).visit(_bare(statement))
        target = new.targets[0] if isinstance(new, ast.Assign) else None
        if not isinstance(target, ast.Name):
            if isinstance(new, ast.AugAssign) and isinstance(new.target, ast.Name):
                new.target.id = names.get(new.target.id, new.target.id)
                new.value = reader.shortened(new.value)
            body.append(new)
            reader.run(new, site.sandbox)
            continue
        new.value = reader.shortened(new.value)
        if isinstance(new.value, ast.Name):
            names[target.id] = new.value.id
            continue
        name = target.id
        while name in taken:
            name += "_"
        taken.add(name)
        names[target.id], target.id = name, name
        body.append(new)
        reader.run(new, site.sandbox)
    found = {argument: names.get(name, name) for argument, name in results.items()}
    return _needed(body, set(found.values())), found


class _KnownValues:
    """Runs lines one by one, and knows which name in scope has a value already."""

    def __init__(self, known: dict[str, Any], scope: Mapping[str, Any]) -> None:
        self.known, self.scope = known, scope

    def run(self, statement: ast.stmt, sandbox: Sandbox) -> None:
        """Run a line."""
        try:
            with sandbox.guard.limit(LONGEST_RUN):
                exec(
                    compile(ast.unparse(ast.fix_missing_locations(statement)), "<lines>", "exec"), self.known
                )
        except (Exception, OutOfTimeError):
            self.scope = {}  # what comes after it cannot be compared

    def shortened(self, node: Any) -> Any:
        """Return an expression with names for the parts whose value a name in scope has."""
        if isinstance(node, list):
            return [self.shortened(item) for item in node]
        if not isinstance(node, ast.expr | ast.keyword) or not self.scope:
            return node
        if isinstance(node, ast.BinOp | ast.Call | ast.Compare | ast.Subscript | ast.Attribute | ast.UnaryOp):
            try:
                value = eval(ast.unparse(node), self.known)
            except Exception:  # what the user's code raises: it cannot be compared
                return node
            for name, other in self.scope.items():
                if _equal(other, value):
                    return ast.Name(name, ast.Load())
        return type(node)(*(self.shortened(getattr(node, field)) for field in node._fields))


def _tidied(site: _Site, change: Change) -> Iterator[Change]:
    """Yield a change with the assignments taken out that it leaves without a reader."""
    source, function = site.sandbox.source, site.function
    changed = {id(edit.old) for edit in change.edits}
    written = {
        name
        for edit in change.edits
        if isinstance(edit.new, tuple)
        for node in edit.new
        for name in _changed(node)
    }
    again = site.given_up & written
    before = _dead(function)
    take_back = source.put(change)
    dead = [node for node in _dead(function) if node not in before]
    take_back()
    dead += [
        node
        for node in function.body
        if isinstance(node, ast.Assign) and _targets(node) and _targets(node) <= again
    ]
    held = [
        node
        for node in dead
        if not any(id(inner) in changed for inner in ast.walk(node)) and id(node) in source.parents
    ]
    if held:
        yield Change(
            (*change.edits, *(Edit(node, ()) for node in held)), change.cost, description=change.description
        )


def _dead(function: ast.FunctionDef) -> list[ast.stmt]:
    """Return the assignments at the function's own level whose names nobody reads."""
    dead: list[ast.stmt] = []
    while True:
        rest = [node for node in function.body if node not in dead]
        read = {
            node.id
            for statement in rest
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        }
        more = [
            node
            for node in rest
            if isinstance(node, ast.Assign) and _targets(node) and not _targets(node) & read
        ]
        if not more:
            return dead
        dead += more


def _targets(node: ast.Assign) -> set[str]:
    """Return the names assigned to, or none when something else is assigned to as well."""
    items = [item for t in node.targets for item in (t.elts if isinstance(t, ast.Tuple) else [t])]
    names = {item.id for item in items if isinstance(item, ast.Name)}
    return names if len(names) == len(items) else set()


def _needed(statements: list[ast.stmt], wanted: set[str]) -> list[ast.stmt]:
    """Drop the lines that no result needs."""
    kept = []
    for statement in reversed(statements):
        if _changed(statement) & wanted:
            kept.append(statement)
            wanted = wanted | {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return kept[::-1]


def _changed(statement: ast.stmt) -> set[str]:
    """Return the names that a line assigns to, or whose array it changes."""
    targets: list[ast.AST | None] = [getattr(statement, "target", None), *getattr(statement, "targets", [])]
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        targets += statement.value.args[:1]
    found = set()
    for target in targets:
        while isinstance(target, ast.Subscript | ast.Attribute):
            target = target.value
        if target is not None:
            found |= {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
    return found


class _Renaming(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if isinstance(node.ctx, ast.Load):
            node.id = self.names.get(node.id, node.id)
        return node


def _bare(statement: ast.stmt) -> ast.stmt:
    """Take the places in the text away, which are of another text."""
    for node in ast.walk(statement):
        for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
            vars(node).pop(name, None)
    return statement


def _said(names: Mapping[str, str], body: Sequence[ast.stmt]) -> str:
    listed = [f"`{name}`" for name in names]
    first = f"the gradients of {', '.join(listed[:-1])} and " if listed[1:] else "the gradient of "
    lines = "1 line" if len(body) == 1 else f"{len(body)} lines"
    return f"{first}{listed[-1]} {'are' if listed[1:] else 'is'} written anew, in {lines}"


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _equal(value: Any, other: Any) -> bool:
    """Whether two arrays are the same but for rounding; numbers by themselves say too little."""
    if not isinstance(value, np.ndarray) or not isinstance(other, np.ndarray):
        return False
    same = value.shape == other.shape and value.dtype == other.dtype and value.size > 1
    if not same or value.dtype.kind != "f":
        return same and np.array_equal(value, other)
    return reordered(value, other)
