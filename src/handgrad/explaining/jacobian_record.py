"""A Jacobian as a record: its structure, what is stored of it, in the program's names, and why that is enough."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.explaining.execution import Execution
from handgrad.explaining.full_jacobian import Dependency
from handgrad.explaining.jacobian_structure import EXACT, StoredForm, proof, recognise
from handgrad.explaining.record import AddedTooEarly, Jacobian
from handgrad.explaining.shape_ledger import AxisNames, sample
from handgrad.layers import Node
from handgrad.program.builder import write_rule
from handgrad.program.lines_in_python import Scope, evaluate, run_lines
from handgrad.rules.rule_source import substitute
from handgrad.tolerance import close

Array = NDArray[Any]
Named = list[tuple[str, Array]]

NUMERICAL = 1e-7  # of the largest entry: what is zero in a Jacobian found by finite differences
ADDED_SAMPLE = 24  # numbers of a gradient that a terminal shows


def jacobian_record(
    execution: Execution, axes: AxisNames, output: str, of: str, example: int | None = None
) -> Jacobian:
    """Return the Jacobian of one value with respect to an earlier one, of one row or of the whole batch."""
    dependency = Dependency(execution, output, of, example)
    full = dependency.full()
    letters = tuple(axes.of(name)[len(dependency.index(name)) :] for name in (output, of))
    outputs = len(letters[0])
    stored = recognise(full, outputs, EXACT if dependency.is_analytic else NUMERICAL)
    name = name_stored(dependency, stored)
    return Jacobian(
        output=output,
        input=of,
        example=example,
        output_sizes=full.shape[:outputs],
        input_sizes=full.shape[outputs:],
        structure=stored.kind,
        stored=name,
        explanation=_why(dependency, stored, letters[0], name, full.size),
        stored_numbers=stored.numbers,
        full_numbers=full.size,
        stored_operations=stored.operations,
        full_operations=full.size,
        proof=proof(stored, full, np.random.default_rng(0)),
        sample=sample(full.reshape(int(np.prod(full.shape[:outputs])), -1)),
        output_axes=letters[0],
        input_axes=letters[1],
        added=_added(dependency),
    )


def _why(dependency: Dependency, stored: StoredForm, letters: tuple[str, ...], name: str, full: int) -> str:
    """Explain why the stored form is enough."""
    output, of = (_with_row(dependency, each) for each in (dependency.output, dependency.input))
    saved = f"{stored.numbers:,} number{'s' * (stored.numbers != 1)} in place of {full:,}"
    along = ", ".join(letters[stored.outputs.index(axis)] for axis in stored.shared if stored.sizes[axis] > 1)
    places = int(np.prod([stored.sizes[axis] for axis in stored.shared]))
    match stored.kind:
        case "zero":
            return f"Nothing in {output} moves with {of} here: every entry is 0."
        case "diagonal":
            product = "unchanged" if name == "I" else f"times {name[5:-1]}, entry by entry"
            if output == dependency.output and of == dependency.input:
                gradient = f"d{of} is d{output} {product}"
            else:  # other rows may reach the input too: a shared weight, the rows of a batch norm
                summed = "" if of != dependency.input else ", and the parts of all rows add up"
                gradient = f"row {dependency.example}'s part of d{of} is d{output} {product}{summed}"
            return (
                f"Each entry of {output} depends on the entry of {of} at its own place and on no other of {of}: off "
                f"the diagonal all is 0. A diagonal matrix times a vector is an elementwise product, so {gradient}. "
                f"{saved}."
            )
        case "kronecker":
            block = name.removesuffix(" ⊗ I")
            return (
                f"Along {along}, an entry of {output} meets only the entries of {of} at its own place, and in the "
                f"same way at all {places:,} places: one block, {block}, is repeated, and the rest is 0. {saved}."
            )
        case "block diagonal":
            return (
                f"Along {along}, an entry of {output} meets only the entries of {of} at its own place: {places:,} "
                f"blocks, each its own, and 0 outside of them. Together they are {name}. {saved}."
            )
        case "diagonal plus low rank":
            rank = stored.low_rank[0].shape[-1] if stored.low_rank else 0
            where = f"Along {along}, each of {places:,} blocks" if along else "The matrix"
            return (
                f"Every entry of {output} depends on every entry of {of}{' of its block' * bool(along)}, but apart "
                f"from its own only through {rank} number{'s' * (rank != 1)} that all share. {where} is a diagonal and a "
                f"matrix of rank {rank}: {name}. {saved}."
            )
    if full == 1:
        return f"{output} and {of} are one number each here, and so is the Jacobian: {name}."
    return f"Every entry of {output} depends on every entry of {of}, each in its own way: {full:,} numbers."


def _with_row(dependency: Dependency, name: str) -> str:
    """Return a value's name with the row that the Jacobian is of, where there are several."""
    by_row = dependency.index(name) and dependency.execution.rows > 1
    return f"{name}[{dependency.example}]" if by_row else name


def _added(dependency: Dependency) -> AddedTooEarly | None:
    """Add the rows up before the chain rule, and after, where the rows share the input."""
    execution, output, of = dependency.execution, dependency.output, dependency.input
    upstream = execution.exact.get(f"d{output}")
    shared = execution.shapes[output][:1] == ("n",) and execution.shapes[of][:1] != ("n",)
    if upstream is None or not shared or execution.rows < 2 or not dependency.is_analytic:
        return None
    right = dependency.pull(upstream)
    wrong = dependency.pull(np.broadcast_to(upstream.sum(axis=0), upstream.shape))
    sizes = float(np.linalg.norm(right)), float(np.linalg.norm(wrong))
    if not np.all(np.isfinite(sizes)):
        return None
    difference = float(np.linalg.norm(wrong - right)) / (sizes[0] or 1.0)
    return AddedTooEarly(
        sample(right, ADDED_SAMPLE),
        sample(wrong, ADDED_SAMPLE),
        difference,
        f"All {execution.rows} rows share {of}, so what each sends back adds up: row n's Jacobian J_n times row n's "
        f"gradient, Σ_n J_nᵀ d{output}_n, of norm {sizes[0]:.4g}. Adding first, (Σ_n J_n)ᵀ (Σ_n d{output}_n), pairs "
        f"the Jacobian of every row with the gradient of every other: norm {sizes[1]:.4g}, off by {difference:.3g} times "
        "the right one. Multiply, then add.",
    )


def name_stored(dependency: Dependency, stored: StoredForm) -> str:
    """Say in the program's words what is stored; the shape alone where no value has these numbers.

    Parameters
    ----------
    between
        The two values.
    stored
        What was recognised of their Jacobian.
    """
    if stored.kind == "zero":
        return "0"
    named = list(_candidates(dependency))
    axes = [axis for axis in stored.axes if stored.low_rank is None or axis in stored.outputs]
    in_order = np.transpose(stored.core.reshape([stored.sizes[axis] for axis in axes]), np.argsort(axes))
    core = name_of(in_order, named) or f"{'×'.join(map(str, in_order.shape)) or '1'} numbers"
    if stored.kind == "diagonal":
        return "I" if core == "1" else f"diag({core})"
    if stored.kind == "kronecker":
        return f"{core} ⊗ I"
    if stored.kind != "diagonal plus low rank" or stored.low_rank is None:
        return core
    return f"diag({core}) {_name_product(stored.low_rank, named)}"


def name_of(array: Array, named: Named) -> str:
    """Return the name of an array, or "" when none has its numbers.

    Examples
    --------
    >>> name_of(np.array([[1.0, 2.0]]), [("x", np.array([1.0, 2.0]))])
    'x'
    """
    wanted = np.squeeze(array)
    size = float(np.abs(wanted).max(initial=0)) or 1.0
    for name, value in named:
        found = np.squeeze(value)
        same = found.ndim and found.shape == wanted.shape[wanted.ndim - found.ndim :]
        if same and close(np.broadcast_to(found, wanted.shape), wanted, least=size):
            return name
    number = float(wanted.flat[0])
    if not close(wanted, np.full(wanted.shape, number), least=size):
        return ""
    single = (name for name, value in named if value.size == 1 and close(value.flat[0], number, least=size))
    return "1" if close(number, 1.0) else next(single, f"{number:.4g}")


def _name_product(factors: tuple[Array, Array], named: Named) -> str:
    """Name a product of low rank: ``- y yᵀ``, or its rank."""
    left, right = factors
    rank = left.shape[-1]
    whole = left @ right.swapaxes(-1, -2)
    size = float(np.abs(whole).max())
    for name, value in named:
        if rank == 1 and np.squeeze(value).shape == np.squeeze(left).shape:
            vector = value.reshape(left.shape)
            for sign, word in ((-1, "-"), (1, "+")):
                if close(sign * vector @ vector.swapaxes(-1, -2), whole, least=size):
                    return f"{word} {name} {name}ᵀ"
    return f"+ U Vᵀ, of rank {rank}"


def _candidates(dependency: Dependency) -> Iterator[tuple[str, Array]]:
    """Yield the values, and the parts of backward lines, of the one rule between the two, with their names."""
    if len(dependency.nodes) != 1:
        return
    (node,) = dependency.nodes
    scope, expressions = _rule_scope(dependency, node)
    row = dependency.example
    for argument, value in node.arguments.items():
        if node.rule.forward.kinds[argument] == "index":
            indices = dependency.execution.exact[value.name]
            name = value.name if row is None else f"{value.name}[{row}]"
            rows = indices if row is None else indices[row]
            yield f"I[{name}]", np.eye(len(dependency.execution.exact[dependency.input]))[rows]
    for text in dict.fromkeys(expressions):
        try:
            with np.errstate(all="ignore"):
                found = np.asarray(evaluate(text, scope), np.float64)
        except (TypeError, ValueError, IndexError, NameError, AttributeError):
            continue  # what an upstream of ones does not go through
        own = text if text.isidentifier() else f"({text})"
        if row is not None and found.ndim and found.shape[0] == dependency.execution.rows:
            found, text, own = found[row], f"{own}[{row}]", f"{own}[{row}]"
        yield text, found
        if found.ndim == 2:
            yield f"{own}.T", found.T


def _rule_scope(dependency: Dependency, node: Node) -> tuple[Scope, list[str]]:
    """Return the values a rule's backward lines know, and what to look at: names first, then parts of lines."""
    program = write_rule(node)
    upstream = f"d{node.output.name}"
    exact = dependency.execution.exact
    scope = run_lines(
        program.phase("forward", "loss"), {value.name: exact[value.name] for value in node.inputs}
    )
    whole, parts, helpers = [], [], set()
    carried = {upstream}
    for line in program.phase("backward"):
        if line.reads & carried:
            carried.add(line.target)
        else:
            scope[line.target] = evaluate(line.expression, scope)
            helpers.add(line.target)
        if line.target == f"d{dependency.input}":
            whole.append(ast.unparse(_WithoutUpstream(upstream).visit(substitute(line.tree, {}))))
        parts += [ast.unparse(part) for part in ast.walk(line.tree) if _is_free(part, carried)]
    read = {node.names.get(name, name) for name in node.rule.cached}
    names = [name for name in scope if name in read or name in helpers]
    products = [f"{one} * {other}" for one, other in combinations(names, 2)]
    return scope, [*names, *whole, *parts, *products]


def _is_free(part: ast.AST, carried: set[str]) -> bool:
    """Whether a part of a line is an expression without the upstream gradient."""
    if not isinstance(part, ast.BinOp | ast.Compare | ast.Call | ast.Name):
        return False
    names = {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}
    return not names & carried and names != {"np"}


class _WithoutUpstream(ast.NodeTransformer):
    """Leaves the upstream gradient out of a product."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(1) if node.id == self.upstream else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        is_upstream = isinstance(node.value, ast.Name) and node.value.id == self.upstream
        return ast.Constant(1) if is_upstream else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return node.args[1] if ast.unparse(node.func) == "np.full_like" else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mult) and _is_one(node.left):
            return node.right
        return node.left if isinstance(node.op, ast.Mult | ast.Div) and _is_one(node.right) else node


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1
