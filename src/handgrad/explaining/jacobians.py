"""The Jacobian of any value with respect to an earlier one: computed, and described by its structure."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.errors import ConfigurationError, ProgramError, nearest
from handgrad.explaining.batch_gradient import (
    GradientByIndices,
    Rows,
    gradient_formula,
    indices,
    rows_of,
    telling_row,
)
from handgrad.explaining.execution import Execution
from handgrad.explaining.index_notation import Entry, forward_entry
from handgrad.explaining.jacobian_structure import (
    EXACT,
    Named,
    StoredForm,
    as_sparse,
    name_stored,
    proof,
    recognise,
)
from handgrad.explaining.record import AddedTooEarly, Jacobian
from handgrad.explaining.shape_ledger import AxisNames, sample
from handgrad.finite_differences import numerical_jacobian
from handgrad.layers import Node
from handgrad.program import ProgramLine
from handgrad.program.builder import write_rule
from handgrad.program.lines_in_python import Scope, evaluate, run_lines, run_source
from handgrad.rules.rule_source import backward_slice, blocks, source_of_block, substitute

Array = NDArray[Any]

MAX_ENTRIES = 6_000_000  # of a full Jacobian: 48 MB
MAX_NUMERICAL = 4_000  # entries of an input whose derivatives are found by finite differences, one by one
NUMERICAL = 1e-7  # of the largest entry: what is zero in a Jacobian found by finite differences
ADDED_SAMPLE = 24  # numbers of a gradient that a terminal shows


class NotFiniteError(ConfigurationError):
    """A Jacobian has entries that are not finite: a value has overflowed."""


@dataclass(frozen=True)
class Dependency:
    """One value as a function of another, in one row (``example``) or all, with everything else as it is.

    It is by every way between the two, or, ``direct``, by the lines of the output's own rule alone.
    """

    execution: Execution
    output: str
    input: str
    example: int | None = None
    direct: bool = False

    def __post_init__(self) -> None:
        execution, rows = self.execution, self.execution.rows
        gradients = {line.target for line in execution.backward} - execution.given.keys()
        gradients |= {value.name for value in execution.program.inputs if value.kind == "upstream"}
        connected = {value.name for node in execution.nodes for value in (node.output, *node.inputs)}
        known = [
            name
            for name, value in execution.values.items()
            if name not in gradients and (np.ndim(value) or name in connected)
        ]
        for name in (self.output, self.input):
            if name not in known:
                raise ProgramError(f"the forward has no value {name!r}", fix=nearest(name, known))
        if not self.lines:
            raise ProgramError(
                f"{self.output} does not depend on {self.input}",
                fix="name the later value first, as in z2:a1",
            )
        dtype = np.asarray(execution.values[self.input]).dtype
        if dtype.kind != "f":
            raise ProgramError(
                f"{self.input} holds {dtype}, and has no derivatives", fix="name a value of floating point"
            )
        if self.example is not None and not 0 <= self.example < rows:
            raise ConfigurationError(
                f"there is no row {self.example}: the batch has {rows}", fix=f"give 0 to {rows - 1}"
            )

    @cached_property
    def lines(self) -> list[ProgramLine]:
        """The forward lines from the input to the output."""
        moved, filled = {self.input}, set[str]()
        lines = [line for line in self.execution.program.lines if line.phase in ("sample", "forward", "loss")]
        node = self.execution.node_of(self.output) if self.direct else None
        if node is not None:
            lines = [self.execution.program.lines[number] for number in self.execution.lines_of(node)]
            lines = [line for line in lines if line.phase != "backward"]
        for block in blocks(lines):
            targets = {line.target for line in block}
            if any(line.reads & moved for line in block) and self.input not in targets:
                moved |= targets
                filled |= {line.target for line in block if line.index}
        # an array that a loop fills is made anew, though nothing in that line has moved
        found = [
            line
            for line in lines
            if line.target in moved - {self.input} and (line.target in filled or line.reads & moved)
        ]
        return backward_slice(found, {self.output})

    @cached_property
    def detours(self) -> tuple[str, ...]:
        """Through which other values the output depends on the input, besides its own rule."""
        every = replace(self, direct=False).nodes
        return tuple(node.output.name for node in every[:-1]) if self.direct else ()

    @cached_property
    def nodes(self) -> list[Node]:
        """The rules from the input to the output, by arguments that have a gradient."""
        made = {line.target for line in self.lines}
        return [node for node in self.execution.nodes if node.output.name in made and self._moved(node)]

    def _moved(self, node: Node) -> dict[str, str]:
        """Return, for each gradient of a rule, the value it is of, where that changes with the input."""
        moved = {self.input, *(line.target for line in self.lines)}
        values = {f"d{name}": node.arguments[name].name for name in node.rule.differentiable}
        return {gradient: name for gradient, name in values.items() if name in moved}

    @property
    def is_analytic(self) -> bool:
        """Whether backward lines lead from the one to the other: not where a value is local to a rule."""
        ends = {name for node in self.nodes for name in self._moved(node).values()}
        return self.input in ends and self.nodes[-1].output.name == self.output

    def index(self, name: str) -> tuple[int, ...]:
        """Return where in a value the chosen row is: () for all of it."""
        by_rows = self.execution.shapes[name][:1] == ("n",)
        return (self.example,) if self.example is not None and by_rows else ()

    def label(self, name: str) -> str:
        """Return a value's name with the chosen row, where there are several."""
        return f"{name}[{self.example}]" if self.index(name) and self.execution.rows > 1 else name

    @cached_property
    def pull(self) -> Callable[[Array], Array]:
        """The vector-Jacobian product with an upstream gradient, by the backward lines alone."""
        exact, steps = self.execution.exact, []
        for node in reversed(self.nodes):
            arguments = {name: exact[value.name] for name, value in node.arguments.items()}
            known = node.rule.forward.run({**node.options, **arguments})
            wanted = self._moved(node)
            lines = backward_slice(node.rule.backward_text.lines, wanted)
            sources = [source_of_block(block) for block in blocks(lines)]
            steps.append((node.output.name, f"d{node.rule.output}", known, sources, wanted))

        def pull(upstream: Array) -> Array:
            gradients: dict[str, Any] = {self.output: upstream}
            with np.errstate(all="ignore"):
                for output, own, known, sources, wanted in steps:
                    if output not in gradients:  # read only by what passes no gradient
                        continue
                    scope = {**known, own: gradients[output]}
                    for source in sources:
                        run_source(source, scope)
                    for local, name in wanted.items():
                        gradients[name] = gradients.get(name, 0) + scope[local]
            return np.asarray(gradients.get(self.input, np.zeros(np.shape(exact[self.input]))))

        return pull

    def full(self) -> Array:
        """Return the whole Jacobian, the output's axes before the input's; raise `ConfigurationError` if it is too large."""
        exact = self.execution.exact
        rows = np.asarray(exact[self.output])[self.index(self.output)].shape
        columns = np.asarray(exact[self.input])[self.index(self.input)].shape
        height, width = int(np.prod(rows)), int(np.prod(columns))
        few = self.is_analytic or width <= MAX_NUMERICAL
        if height * width > MAX_ENTRIES or not few:
            raise ConfigurationError(
                f"the Jacobian of {self.output} with respect to {self.input} has {height * width:,} entries, "
                f"and {MAX_ENTRIES if few else MAX_NUMERICAL:,} are the most"
                + ("" if few else " for a local value"),
                given=f"{self.output}{rows}, {self.input}{columns}",
                fix="take a smaller layer" if self.example is not None else "take one row: --example 0",
            )
        matrix = self._analytic(rows, (height, width)) if self.is_analytic else self._numerical()
        if not np.all(np.isfinite(matrix)):
            raise NotFiniteError(
                f"the Jacobian of {self.output} with respect to {self.input} is not finite here"
            )
        return matrix.reshape((*rows, *columns))

    def _analytic(self, rows: tuple[int, ...], shape: tuple[int, int]) -> Array:
        """Find the rows of the Jacobian by the backward lines, one unit upstream gradient each."""
        matrix = np.empty(shape)
        unit = np.zeros(np.shape(self.execution.exact[self.output]))
        for number, index in enumerate(np.ndindex(rows)):
            at = (*self.index(self.output), *index)
            unit[at] = 1.0
            matrix[number] = self.pull(unit)[self.index(self.input)].ravel()
            unit[at] = 0.0
        return matrix

    def _numerical(self) -> Array:
        """Find the derivatives by finite differences, over the forward lines."""
        exact, index = self.execution.exact, self.index(self.input)
        start = np.asarray(exact[self.input], float)
        point = np.asarray(start[index])

        def output(part: Array) -> Array:
            moved = start.copy()
            moved[index] = part.reshape(point.shape)
            made = run_lines(self.lines, {**exact, self.input: moved})[self.output]
            return np.asarray(made, float)[self.index(self.output)].ravel()

        found = numerical_jacobian(output, point.ravel())
        return np.asarray((found.low + found.high) / 2)


def jacobian_record(
    execution: Execution,
    axes: AxisNames,
    output: str,
    of: str,
    example: int | None = None,
    *,
    direct: bool = False,
) -> Jacobian:
    """Return the Jacobian of one value with respect to an earlier one, of one row or of the whole batch.

    It is the derivative by every way between the two, or, ``direct``, by the output's own rule alone.
    """
    dependency = Dependency(execution, output, of, example, direct)
    full = dependency.full()
    letters = tuple(axes.of(name)[len(dependency.index(name)) :] for name in (output, of))
    outputs = len(letters[0])
    tolerance, whole = EXACT if dependency.is_analytic else NUMERICAL, list(_candidates(dependency))
    named = list(_of_row(dependency, whole))
    stored, name = _recognised(full, outputs, named, tolerance)
    rows = rows_of(dependency) if dependency.is_analytic else "none"
    everywhere = (axes.of(output), axes.of(of))
    found = gradient_formula(dependency, indices(dependency, stored, rows, everywhere), whole, axes.of)
    formula = str(found or "")
    why = _why(dependency, stored, letters[0], name, full.size)
    of_row = "" if rows == "none" or example is not None else _of_one_row(dependency, whole, outputs)
    return Jacobian(
        output=output,
        input=of,
        example=example,
        output_sizes=full.shape[:outputs],
        input_sizes=full.shape[outputs:],
        structure=stored.kind,
        stored=name,
        explanation=_explain(dependency, rows, formula, why, of_row),
        gradient=_gradient_line(dependency),
        formula=formula,
        steps=tuple(found.steps(_forward_entry(dependency, found, axes))) if found else (),
        stored_numbers=stored.numbers,
        full_numbers=full.size,
        stored_operations=stored.operations,
        full_operations=full.size,
        proof=proof(stored, full, np.random.default_rng(0)),
        sample=sample(full, square=True),
        output_axes=letters[0],
        input_axes=letters[1],
        added=_added(dependency),
    )


def _forward_entry(dependency: Dependency, found: GradientByIndices, axes: AxisNames) -> str:
    """Return the forward line between the two values by the gradient's indices; "" where there are several."""
    if len(dependency.lines) != 1:
        return ""
    (line,) = dependency.lines
    entry = Entry(dependency.execution.values, axes.of)
    return forward_entry(line.target, line.tree, found.place.output, entry)


def _gradient_line(dependency: Dependency) -> str:
    """Return which gradient of the program is the output's times this Jacobian; "" for none."""
    execution, of = dependency.execution, dependency.input
    if len(dependency.nodes) > 1:
        return f"d{of}"  # by every way
    made = [target for target, value in execution.gradient_of.items() if value == of]
    own = [
        line.target for line in execution.backward if line.undoes == dependency.output and line.target in made
    ]
    return own[0] if len(own) == 1 else ""


def _explain(dependency: Dependency, rows: Rows, formula: str, why: str, of_row: str) -> str:
    """Explain the batch's Jacobian, then one row's: each sentence states which rows it is of."""
    by = ""
    if dependency.detours:
        by = f"By the line of {dependency.output} alone, not through {' and '.join(dependency.detours)}: "
    if rows == "none":
        return by + why + (f" So {formula}." if formula else "")
    of_batch = by + _of_batch(dependency, rows) + (f", so {formula}." if formula else ".")
    if dependency.example is not None:
        return f"{of_batch} For row {dependency.example} alone: {why}"
    return f"{of_batch} For the whole batch: {why} {of_row}"


def _of_one_row(dependency: Dependency, named: Named, outputs: int) -> str:
    """Name the structure that the whole batch's Jacobian has for one row alone."""
    row = telling_row([dependency])
    alone = replace(dependency, example=row)
    found, name = _recognised(
        alone.full(), outputs - len(alone.index(dependency.output)), [*_of_row(alone, named)]
    )
    return f"For row {row} alone it is {found.kind}: {name}."


def _recognised(full: Array, outputs: int, named: Named, tolerance: float = EXACT) -> tuple[StoredForm, str]:
    """Return what of a Jacobian need be stored, and its name; as a sparse one where it is no value of the program."""
    stored = recognise(full, outputs, tolerance)
    if "numbers" in name_stored(stored, named):
        stored = as_sparse(stored, tolerance)
    return stored, name_stored(stored, named)


def _of_batch(dependency: Dependency, rows: Rows) -> str:
    """Return how the rows of the batch depend on each other, without the full stop."""
    count, output, of = dependency.execution.rows, dependency.output, dependency.input
    match rows:
        case "shared":
            return f"All {count} rows share {of}, each with a Jacobian of its own, and what they send back adds up"
        case "summed":
            return f"{output} depends on all {count} rows of {of}, and sends back to each of them its own row's part"
        case "joined":
            return (
                f"Rows meet here: a row of {output} depends on other rows of {of} too. What reaches a row of d{of} comes "
                f"from other rows of d{output} as well, and no single row's Jacobian gives it"
            )
    return (
        f"Each of the {count} rows of {output} depends on its own row of {of} and on no other: the batch's Jacobian is "
        f"{count} blocks, one for each row, and 0 outside of them"
    )


def _why(dependency: Dependency, stored: StoredForm, letters: tuple[str, ...], name: str, full: int) -> str:
    """Explain why the stored form is enough, of the row it is of or of the batch."""
    output, of = (dependency.label(each) for each in (dependency.output, dependency.input))
    saved = f"{stored.numbers:,} number{'s' * (stored.numbers != 1)} in place of {full:,}"
    along = ", ".join(letters[stored.outputs.index(axis)] for axis in stored.shared if stored.sizes[axis] > 1)
    places = int(np.prod([stored.sizes[axis] for axis in stored.shared]))
    own_place = f"Along {along}, an entry of {output} meets only the entries of {of} at its own place"
    match stored.kind:
        case "zero":
            return f"Nothing in {output} moves with {of} here: every entry is 0."
        case "diagonal":
            product = "unchanged" if name == "I" else f"times {name[5:-1]}, entry by entry"
            return (
                f"Each entry of {output} depends on the entry of {of} at its own place and on no other of {of}: off "
                f"the diagonal all is 0. A diagonal matrix times a vector is an elementwise product, so what "
                f"{output} sends back to {of} is d{output} {product}. {saved}."
            )
        case "kronecker":
            block = name.removesuffix(" ⊗ I")
            return (
                f"{own_place}, and in the same way at all {places:,} places: one block, {block}, is repeated, and "
                f"the rest is 0 (⊗ I). {saved}."
            )
        case "block diagonal":
            return (
                f"{own_place}: {places:,} blocks, each its own, and 0 outside of them. Together they are {name}. "
                f"{saved}."
            )
        case "sparse":
            where = f"{own_place}, and in each of {places:,} blocks" if along else "Of the whole matrix"
            return f"{where} most entries are 0: {name} are not. {saved}."
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
    if not stored.outputs:
        same = f", d{dependency.input}" if dependency.output == "loss" else ""
        return (
            f"{output} is one number, so that its Jacobian has the shape of {of}: it is the gradient{same}."
        )
    return f"Every entry of {output} may depend on every entry of {of}: {full:,} numbers."


def _added(dependency: Dependency) -> AddedTooEarly | None:
    """Sum over the rows before the chain rule, and after, where the rows share the input."""
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
    off = f"off by {difference:.3g} times the right one"
    if f"d{of}" in execution.rounding:
        off = f"beside a right one that is 0 but for rounding: {of} does not change the loss here"
    return AddedTooEarly(
        sample(right, ADDED_SAMPLE),
        sample(wrong, ADDED_SAMPLE),
        difference,
        f"All {execution.rows} rows share {of}, so what each sends back adds up: row n's Jacobian J_n times row n's "
        f"gradient, Σ_n J_nᵀ d{output}_n, of norm {sizes[0]:.4g}. Adding first, (Σ_n J_n)ᵀ (Σ_n d{output}_n), pairs "
        f"the Jacobian of every row with the gradient of every other: norm {sizes[1]:.4g}, {off}. Multiply, then add.",
    )


def _candidates(dependency: Dependency) -> Iterator[tuple[str, Array]]:
    """Yield the values that the backward of the one rule between the two reads, and its gradient for an upstream of 1."""
    if len(dependency.nodes) != 1:
        return
    (node,) = dependency.nodes
    exact = dependency.execution.exact
    for argument, value in node.arguments.items():
        if node.rule.forward.kinds[argument] != "index":
            continue
        indices, entries = exact[value.name], len(exact[dependency.input])
        if np.all(indices < entries):  # else they index something else
            yield f"I[{value.name}]", np.eye(entries)[indices]
    scope, expressions = _rule_scope(node, f"d{dependency.input}", exact)
    for text in dict.fromkeys(expressions):
        try:
            with np.errstate(all="ignore"):
                yield text, np.asarray(evaluate(text, scope), np.float64)
        except (TypeError, ValueError, IndexError, NameError, AttributeError):
            continue  # what an upstream of ones does not go through


def _of_row(dependency: Dependency, named: Named) -> Iterator[tuple[str, Array]]:
    """Yield the chosen row of each value, and matrices transposed too."""
    row = dependency.example
    for text, found in named:
        indexed = text.startswith("I[")
        own = text if text.isidentifier() or indexed else f"({text})"
        if row is not None and found.ndim and found.shape[0] == dependency.execution.rows:
            own = text = f"{text[:-1]}[{row}]]" if indexed else f"{own}[{row}]"
            found = found[row]
        yield text, found
        if found.ndim == 2:
            yield f"{own}.T", found.T


def _rule_scope(node: Node, gradient: str, exact: Scope) -> tuple[Scope, list[str]]:
    """Return the values a rule's backward lines know, and the expressions of them to compare with."""
    program = write_rule(node)
    upstream = f"d{node.output.name}"
    given = {value.name: exact[value.name] for value in node.inputs}
    scope = run_lines(program.phase("forward", "loss"), given)
    filled = {line.target for line in program.phase("backward") if line.index}
    whole, carried = [], {upstream, *filled}
    read = {node.names.get(name, name) for name in node.rule.cached}
    for line in program.phase("backward"):
        if line.target in filled or line.reads & carried:
            carried.add(line.target)
        else:
            scope[line.target] = evaluate(line.expression, scope)
            read.add(line.target)
        if line.target == gradient:
            whole.append(ast.unparse(_WithoutUpstream(upstream).visit(substitute(line.tree, {}))))
    names = [name for name in scope if name in read]
    return scope, [*names, *whole, *(f"{one} * {other}" for one, other in combinations(names, 2))]


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
        left, right = (getattr(side, "value", None) == 1 for side in (node.left, node.right))
        if isinstance(node.op, ast.Mult) and left:
            return node.right
        return node.left if isinstance(node.op, ast.Mult | ast.Div) and right else node
