"""Mistakes in an activation's derivative: left out, multiplied twice, or taken at another value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from handgrad.checking.adjoint.chain_rule import vector_jacobian_product
from handgrad.checking.diagnosis.mutated_chain_rule import (
    LocalRule,
    MutatedChainRule,
    named_value,
    quoted_line,
)
from handgrad.checking.forward_trace import ForwardTrace, Operation
from handgrad.checking.mistakes import Diagnosis
from handgrad.checking.subject import Array
from handgrad.tolerance import close

DEEPEST = 10  # operations that make up an activation
MOST_VALUES = 12  # at which a derivative may be taken by mistake

# Costs, as in `local_mutations`.
LEFT_OUT, ELSEWHERE, POWER = 0.6, 0.7, 0.8
PART = 0.15  # more where it is a part of a longer activation in the same line
ONE_OF_MANY = 0.03  # more for one of several in a loop

Formula = Callable[[Array], Array]
IN_THE_OUTPUT: tuple[tuple[str, Formula], ...] = (
    ("y * (1 - y)", lambda y: y * (1 - y)),
    ("1 - y**2", lambda y: 1 - y**2),
    ("y", lambda y: y),
    ("1 - np.exp(-y)", lambda y: 1 - np.exp(-y)),
    ("0.5 / y", lambda y: 0.5 / y),
)
"""Derivatives as formulas in a function's own output: of sigmoid, tanh, exp, softplus and the square root."""

Slope = Callable[["Activation", Sequence[Any]], Any]


class Activation(NamedTuple):
    """Operations that compute a value entry by entry from one other."""

    operations: tuple[Operation, ...]
    start: int
    end: Operation
    is_part: bool = False  # of a longer one in the same line: nobody differentiates that by itself

    @property
    def is_formula(self) -> bool:
        """Whether it is written in one line, in which its start is used more than once."""
        uses = sum(self.start in operation.inputs for operation in self.operations)
        return uses > 1 and len({operation.place for operation in self.operations}) == 1

    def at(self, values: Sequence[Any], start: Any) -> list[Any]:
        """Return all values with another one for its start, as far as it is computed from that."""
        moved = list(values)
        moved[self.start] = start
        for operation in self.operations:
            moved[operation.output] = operation.run(moved)
        return moved

    def slope(self, values: Sequence[Any], start: Any = None) -> Array:
        """Return its derivative, at another value of its start where one is given."""
        moved = values if start is None else self.at(values, start)
        own = {self.start, *(operation.output for operation in self.operations)}
        gradients: dict[int, Any] = {self.end.output: np.ones(np.shape(moved[self.end.output]))}
        for operation in reversed(self.operations):
            for k, index in enumerate(operation.inputs):
                if index in own:
                    product = vector_jacobian_product(operation, k, moved, gradients[operation.output])
                    gradients[index] = gradients[index] + product if index in gradients else product
        return np.asarray(gradients[self.start])


def slopes(chain: MutatedChainRule) -> Iterator[Diagnosis]:
    """Take another derivative of an activation: at every place of it, or at all but the first or the last."""
    for several in _alike(activations(chain.trace)):
        yield from _with_other_slopes(chain, several)
        for fewer in (several[1:], several[:-1]) if len(several) > 2 else ():
            yield from _with_other_slopes(chain, fewer, ONE_OF_MANY)


def activations(trace: ForwardTrace) -> list[Activation]:
    """Return what may be an activation: the longest first of those with the same end."""
    every = [each for end in trace.operations for each in _ending(trace, end)]
    lines = [set(each.operations) for each in every if len({o.place for o in each.operations}) == 1]
    return [each._replace(is_part=any(set(each.operations) < line for line in lines)) for each in every]


def _ending(trace: ForwardTrace, end: Operation) -> list[Activation]:
    found: list[Activation] = []
    operations: list[Operation] = []
    front = {end.output}
    while len(operations) < DEEPEST and (operation := trace.producer.get(max(front))) is not None:
        front.remove(operation.output)
        active = {i for i in operation.inputs if i in trace.active}
        shapes = {np.shape(trace.values[i]) for i in (*active, operation.output, end.output)}
        if not operation.is_elementwise or len(shapes) > 1 or end.output not in trace.active:
            break
        operations.append(operation)
        front |= active
        if len(front) == 1:
            found.append(Activation(tuple(operations[::-1]), max(front), end))
        if not front:
            break
    return found[::-1]


def _alike(several: Iterable[Activation]) -> Iterator[list[Activation]]:
    """Yield activations of the same lines together: a loop's, or those of a function that is called several times."""
    groups: dict[Any, list[Activation]] = {}
    for each in several:
        groups.setdefault(tuple((o.place, o.name) for o in each.operations), []).append(each)
    yield from groups.values()


def _with_other_slopes(
    chain: MutatedChainRule, several: list[Activation], more: float = 0.0
) -> Iterator[Diagnosis]:
    if any(chain.may_spoil(each.start) for each in several) or _is_linear(chain, several[0]):
        return
    cut: dict[int, LocalRule] = (
        {} if several[0].is_part else {each.end.number: lambda *_: [] for each in several}
    )
    if cut and (names := chain.explained(cut)):
        words = f"d{names[0]} lacks the path through {quoted_line(chain.trace, several[0].end)}"
        yield Diagnosis("missing-term", names, words, LEFT_OUT + more)
        return
    for code, words, cost, slope in _other_slopes(chain, several):
        if chain.is_spent:
            return
        if names := chain.explained({each.end.number: _with_slope(each, slope) for each in several}):
            yield Diagnosis(code, names, words, cost + more + PART * several[0].is_part)


def _is_linear(chain: MutatedChainRule, activation: Activation) -> bool:
    """Whether a derivative is the same number everywhere: a factor, and nothing to be taken at another value."""
    known = np.concatenate([np.ravel(activation.slope(point.values)) for point in chain.points])
    return bool(np.all(known == known[:1]))  # none, where an array is empty


def _with_slope(activation: Activation, slope: Slope) -> LocalRule:
    return lambda gradient, _, values: [(activation.start, gradient * slope(activation, values))]


def passed_on(chain: MutatedChainRule) -> Iterator[Diagnosis]:
    """Pass the error on to the layer before from an activation's result, though its parameters get the right one."""
    trace = chain.trace
    for several in _alike(activations(trace)):
        rules: dict[int, LocalRule] = {}
        for each in several if not _is_linear(chain, several[0]) else ():
            product = trace.producer.get(each.start)
            while product is not None and product.is_elementwise:  # the bias is added
                product = next((trace.producer[i] for i in product.inputs if i in trace.producer), None)
            if product is not None:
                rules |= _passing_on(each, product, trace)
        if rules and (names := chain.explained(rules)):
            words = f"the derivative of {quoted_line(trace, several[0].end)} is left out of the error that is passed on"
            yield Diagnosis("missing-local-derivative", names, words, LEFT_OUT)


def _passing_on(activation: Activation, product: Operation, trace: ForwardTrace) -> dict[int, LocalRule]:
    """Return the rules by which a product's intermediate operand gets the gradient of an activation's result."""
    known: list[Any] = []

    def result(gradient: Any, products: dict[int, Any], _: Sequence[Any]) -> Iterable[tuple[int, Any]]:
        known[:] = [gradient]
        return [(activation.end.inputs[k], part) for k, part in products.items()]

    def passed(_: Any, products: dict[int, Any], values: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        fits = known and np.shape(known[0]) == np.shape(values[product.output])
        for k, part in products.items():
            index = product.inputs[k]
            other = fits and index not in trace.inputs.values()
            yield index, vector_jacobian_product(product, k, values, known[0]) if other else part

    return {activation.end.number: result, product.number: passed}


def _other_slopes(
    chain: MutatedChainRule, several: list[Activation]
) -> Iterator[tuple[str, str, float, Slope]]:
    """Yield other derivatives than the right one, with the mistake that each is."""
    trace, first = chain.trace, several[0]
    values, of = chain.points[0].values, f"the derivative of {quoted_line(trace, first.end)}"
    start, result = named_value(trace, first.start), named_value(trace, first.end.output)
    yield ("missing-local-derivative", f"{of} is left out", LEFT_OUT, partial(_raised, power=0))
    yield "extra-term", f"{of} is multiplied twice", POWER, partial(_raised, power=2)
    elsewhere = "wrong-evaluation-point"
    places = (
        f"{result}, what it returns, not at {start}"
        if result != start
        else "what it returns, not at what it takes"
    )
    yield elsewhere, f"{of} is taken at {places}", ELSEWHERE, _at_result
    right = first.slope(values)
    for text, formula in IN_THE_OUTPUT:
        if close(formula(values[first.end.output]), right):
            words = f"{of} is {text} of what it returns, y, and {start} was taken for y"
            yield elsewhere, words, ELSEWHERE, partial(_by_formula, formula=formula)
    if not close(_at_opposite(first, values), -right):
        yield elsewhere, f"{of} is taken at {start} with the opposite sign", ELSEWHERE, _at_opposite
    starts = [each.start for each in several]
    if len({np.shape(values[i]) for i in starts}) == 1 < len(starts):
        for shift, which in ((1, "next"), (-1, "previous")):
            others = dict(zip(starts, starts[shift:] + starts[:shift], strict=True))
            words = f"{of} is taken at the {which} layer's or step's {start}"
            yield elsewhere, words, ELSEWHERE, partial(_at_other, others=others)
    shape = np.shape(values[first.start])
    alike = [i for i in trace.names if i in trace.active and np.shape(values[i]) == shape]
    for other in [i for i in alike if i not in (first.start, first.end.output)][:MOST_VALUES]:
        if len(several) == 1:
            words = f"{of} is taken at {named_value(trace, other)}, not at {start}"
            yield elsewhere, words, ELSEWHERE, partial(_at_other, others={first.start: other})


def _raised(activation: Activation, values: Sequence[Any], power: int) -> Array:
    return np.asarray(activation.slope(values) ** power)


def _at_result(activation: Activation, values: Sequence[Any]) -> Array:
    return activation.slope(values, values[activation.end.output])


def _at_opposite(activation: Activation, values: Sequence[Any]) -> Array:
    return activation.slope(values, -values[activation.start])


def _at_other(activation: Activation, values: Sequence[Any], others: dict[int, int]) -> Array:
    return activation.slope(values, values[others[activation.start]])


def _by_formula(activation: Activation, values: Sequence[Any], formula: Formula) -> Array:
    return formula(values[activation.start])
