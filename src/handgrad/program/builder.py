"""Writing a network out: every rule's lines, renamed, in the order they run."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, cast

from handgrad.errors import ConfigurationError
from handgrad.layers import Graph, Node, Optimiser, Value
from handgrad.program.lines_in_python import measure
from handgrad.program.program import AGAIN, DRAW, Phase, Program, ProgramLine
from handgrad.rules import (
    ForLoop,
    Rule,
    Text,
    clip_scale,
    clipped_gradient,
    decayed_gradient,
    show_shape,
    squared_norm,
)
from handgrad.rules.rule_source import show_index, substitute


def write_training(
    graph: Graph,
    inputs: tuple[Value, ...],
    loss: Value,
    optimiser: Optimiser,
    *,
    title: str,
    dtype: str,
    micro_batch: int = 0,
) -> Program:
    """Write out one step: sample, forward, loss, backward, update; outputs are ``total``, ``count`` and gradients."""
    lines = [line for node in graph.nodes for line in _sample(node)]
    lines += [line for node in graph.nodes for line in _forward(node)]
    backward, reached = _all_backward(graph, loss)
    gradients = {name: f"d{name}" for name in graph.parameters if name in reached}
    updates, slots = _update(graph, optimiser, gradients)
    states = [line for node in graph.nodes for line in _state(node)]
    if micro_batch:
        backward, updates, slots = _in_micro_batches(graph, gradients, backward, updates, slots)
        states = [replace(line, phase="accumulate") for line in states]
        # each micro-batch draws masks of its own
        each = (line.expression.replace("(seed, step, ", f"(seed, {DRAW}, ") for line in lines + backward)
        lines = [replace(line, expression=code) for line, code in zip(lines + backward, each, strict=True)]
        lines += states + updates
    else:
        lines += backward + updates + states
    program = Program(
        title, tuple(lines), inputs, graph.parameters, graph.states, slots, (), dtype, micro_batch
    )
    return measure(program.keeping("total", "count", loss.name, *gradients.values()))


def _in_micro_batches(
    graph: Graph,
    gradients: Mapping[str, str],
    backward: list[ProgramLine],
    updates: list[ProgramLine],
    slots: dict[str, tuple[int, ...]],
) -> tuple[list[ProgramLine], list[ProgramLine], dict[str, tuple[int, ...]]]:
    """Sum totals, counts and gradients over the micro-batches, and make those of the batch of them before its update."""
    node = graph.nodes[-1]
    if any(node.arguments[name].shape == () for name in node.rule.differentiable):
        raise ConfigurationError(
            f"{node.layer}: the penalty of l2 counts once for each batch, and micro-batches do not know of one another",
            fix="give the optimiser weight_decay instead, or train without micro-batches",
        )
    (made,) = (line for line in _forward(node) if line.target == node.output.name)
    is_mean = "count" in made.reads
    if is_mean:
        reason = "of the total, which the count of all rows divides when it is known"
        backward = [replace(backward[0], expression="count", reason=reason), *backward[1:]]
    parts = {
        "total": (),
        "count": (),
        **{gradients[name]: graph.parameters[name].shape for name in gradients},
    }
    sums, whole, again = [], [], []
    for name, shape in parts.items():
        total = f"sum_{name}"
        slots[total] = shape
        called = f"accumulate({name})"
        sums.append(
            ProgramLine(total, "+=", name, "accumulate", call=called, reason="the micro-batches add up")
        )
        divided = is_mean and name not in ("total", "count")
        value = f"{total} / count" if divided else f"1.0 * {total}"
        whole.append(ProgramLine(name, "=", value, "update", call=called, reason="of the whole batch"))
        again.append(
            ProgramLine(total, "*=", "0.0", "update", call=f"reset({total})", reason="for the next batch")
        )
    loss = replace(made, phase="update", layer="", rule="", call="loss")
    return backward + sums, [*whole, loss, *updates, *again], slots


def write_evaluation(
    graph: Graph, inputs: tuple[Value, ...], output: Value, prediction: Rule | None, *, title: str, dtype: str
) -> Program:
    """Write out the forward pass outside training, with the rule ``prediction`` applied at the end."""
    lines = [line for node in graph.nodes if node.part == "forward" for line in _evaluation(node)]
    lines, result = _predicted(lines, output, prediction)
    program = Program(title, tuple(lines), inputs, graph.parameters, graph.states, {}, (), dtype)
    return measure(program.keeping(result))


def write_loss(
    graph: Graph, inputs: tuple[Value, ...], output: Value, prediction: Rule | None, *, title: str, dtype: str
) -> Program:
    """Write out the same with the loss: outputs ``total``, ``count`` and what is predicted."""
    parts = {"forward": _evaluation, "loss": _forward}
    lines = [line for node in graph.nodes for line in parts[node.part](node)]
    lines, result = _predicted(lines, output, prediction)
    program = Program(title, tuple(lines), inputs, graph.parameters, graph.states, {}, (), dtype)
    return measure(program.keeping("total", "count", result))


def _predicted(
    lines: list[ProgramLine], output: Value, prediction: Rule | None
) -> tuple[list[ProgramLine], str]:
    """Return the lines with those that make a prediction of the output, and the name of that."""
    if prediction is None:
        return lines, output.name
    names = {name: name for name in prediction.forward.locals}
    names |= {prediction.forward.arguments[0]: output.name, prediction.output: "prediction"}
    written = _write(prediction.forward, names, {}, "forward", prediction.name)
    return [*lines, *(replace(line, layer="prediction") for line in written)], "prediction"


def write_rule(node: Node, *, title: str = "") -> Program:
    """Write a single rule out in float64, forward and backward; its upstream gradient comes with its arguments."""
    lines = list(_forward(node))
    kinds, outputs = node.rule.forward.kinds, [node.output.name]
    inputs = [replace(v, kind="index") if kinds[a] == "index" else v for a, v in node.arguments.items()]
    if not node.rule.constant:
        upstream = f"d{node.output.name}"
        inputs.append(Value(upstream, node.output.shape, "upstream", node.layer, node.layer))
        gradients = {f"d{name}": f"d{value.name}" for name, value in node.arguments.items()}
        lines += _backward(node, gradients | {f"d{node.rule.output}": upstream})
        outputs += [gradients[f"d{argument}"] for argument in node.rule.differentiable]
    return measure(Program(title, tuple(lines), tuple(inputs), {}, {}, {}, tuple(outputs), "float64"))


def _sample(node: Node) -> Iterator[ProgramLine]:
    if node.rule.sample is not None:
        mask = next(value for value in node.inputs if value.kind == "mask")
        names = {argument: value.name for argument, value in node.arguments.items()}
        names |= {"shape": show_shape(mask.shape), "key": f"(seed, step, {node.stream})"}
        yield from _of_node(node, node.rule.sample, names, "sample")


def _forward(node: Node) -> Iterator[ProgramLine]:
    return _of_node(node, node.rule.forward, node.names, "loss" if node.part == "loss" else "forward")


def _evaluation(node: Node) -> Iterator[ProgramLine]:
    rule = node.rule.evaluation
    names = node.names | _own(node, rule.forward) | {rule.output: node.output.name}
    return _of_node(node, rule.forward, names, "forward", rule.name)


def _backward(node: Node, gradients: dict[str, str]) -> Iterator[ProgramLine]:
    names = node.names | _own(node, node.rule.backward_text) | gradients
    return _of_node(node, node.rule.backward_text, names, "backward")


def _again(graph: Graph, block: str) -> Iterator[ProgramLine]:
    """Write the forward lines of a block a second time, its random masks too."""
    for node in graph.nodes:
        if node.recomputed == block != "":
            for line in (*_sample(node), *_forward(node)):
                yield replace(line, phase="backward", again=block, reason=AGAIN)


def _state(node: Node) -> Iterator[ProgramLine]:
    if node.rule.state is not None:
        yield from _of_node(node, node.rule.state, _own(node, node.rule.state) | node.names, "update")


def _own(node: Node, text: Text) -> dict[str, str]:
    return {name: f"{name}{node.suffix}" for name in text.named}


def _of_node(
    node: Node, text: Text, names: Mapping[str, str], phase: Phase, rule: str = ""
) -> Iterator[ProgramLine]:
    # where the rows of a node are one axis, `rows(v)` is `v` itself
    matrix = all(len(value.shape) <= 2 for value in (*node.inputs, node.output))
    undoes = node.output.name if phase == "backward" else ""
    called = f"{node.rule.name}({', '.join(value.name for value in node.inputs)})"
    for line in _write(text, names, node.options, phase, rule or node.rule.name, matrix=matrix):
        yield replace(line, layer=node.layer, undoes=undoes, call=called)


def _all_backward(graph: Graph, loss: Value) -> tuple[list[ProgramLine], set[str]]:
    """Write the backward lines, last node first; return them, and the values that have a gradient."""
    reason = "the gradient of the loss in itself"
    lines = [ProgramLine("dloss", "=", "1.0", "backward", "loss", "", reason, undoes=loss.name)]
    nodes, uses = _undone(graph, loss)
    parts: dict[str, list[str]] = {}
    block = ""
    for node in nodes:
        if node.recomputed != block:
            block = node.recomputed
            lines += _again(graph, block)
        names = {f"d{node.rule.output}": f"d{node.output.name}"}
        received = {argument: node.arguments[argument].name for argument in node.rule.differentiable}
        for argument, name in received.items():
            if uses[name]:
                part = f"d{name}" if uses[name] == 1 else f"d{name}_{node.output.name}"
                part += f"_{argument}" if part in parts.setdefault(name, []) else ""
                parts[name].append(part)
                names[f"d{argument}"] = part
        lines += _backward(node, names)
        for name in dict.fromkeys(received.values()):
            if 1 < len(parts.get(name, [])) == uses[name]:  # all are there
                times = "twice" if uses[name] == 2 else f"{uses[name]} times"
                reason = f"{name} is used {times}: what reaches the loss on each way adds up"
                added = " + ".join(parts[name])
                lines.append(ProgramLine(f"d{name}", "=", added, "backward", node.layer, "", reason, name))
    return lines, parts.keys() & graph.parameters.keys()


def _undone(graph: Graph, loss: Value) -> tuple[list[Node], Counter[str]]:
    """Return the nodes between a parameter and the loss, last first, and how many gradients each value receives."""
    trained = set(graph.parameters)
    for node in graph.nodes:
        if any(node.arguments[argument].name in trained for argument in node.rule.differentiable):
            trained.add(node.output.name)
    nodes, uses = [], Counter({loss.name: 1})
    for node in reversed(graph.nodes):
        if node.output.name in trained and uses[node.output.name]:
            nodes.append(node)
            names = (node.arguments[argument].name for argument in node.rule.differentiable)
            uses.update(name for name in names if name in trained)
    return nodes, uses


def _update(
    graph: Graph, optimiser: Optimiser, gradients: Mapping[str, str]
) -> tuple[list[ProgramLine], dict[str, tuple[int, ...]]]:
    """Write clipping, weight decay and the optimiser's own lines for each parameter."""
    lines: list[ProgramLine] = []
    slots: dict[str, tuple[int, ...]] = {}
    current = dict(gradients)
    if optimiser.clip_norm is not None:
        lines += _clip(current, optimiser.clip_norm)
    for name, gradient in current.items():
        if optimiser.decays_gradient:
            decayed = f"{gradients[name]}_decayed"
            names = {"g": gradient, "W": name, "decayed": decayed}
            lines += _write_update(decayed_gradient, names, weight_decay=optimiser.weight_decay)
            gradient = decayed
        rule = optimiser.rule
        parameter, received = rule.text.arguments[:2]
        names = {slot: f"{slot}_{name}" for slot in (*rule.slots, *rule.text.locals)}
        slots |= {names[slot]: graph.parameters[name].shape for slot in rule.slots}
        names |= {parameter: name, received: gradient}
        options = {option: getattr(optimiser, option) for option in rule.text.options}
        written = _write(rule.text, names, options, "update", rule.name)
        lines += (replace(line, call=f"{rule.name}({name}, {gradient})") for line in written)
    return lines, slots


def _clip(current: dict[str, str], max_norm: float) -> Iterator[ProgramLine]:
    """Write the lines that bring the norm of all gradients down, and put the new names in ``current``."""
    squares = {name: f"squares_{name}" for name in current}
    for name, gradient in current.items():
        yield from _write_update(squared_norm, {"g": gradient, "squares": squares[name]})
    reason = "the norm is over all gradients together"
    yield ProgramLine("squares", "=", " + ".join(squares.values()), "update", reason=reason)
    yield from _write_update(clip_scale, {"squares": "squares"}, max_norm=max_norm)
    for name, gradient in current.items():
        clipped = f"d{name}_clipped"
        yield from _write_update(clipped_gradient, {"g": gradient, "scale": "scale", "clipped": clipped})
        current[name] = clipped


def _write_update(rule: Rule, names: Mapping[str, str], **options: Any) -> Iterator[ProgramLine]:
    called = f"{rule.name}({', '.join(names[argument] for argument in rule.forward.arguments)})"
    written = _write(rule.forward, names, options, "update", rule.name)
    return (replace(line, call=called) for line in written)


def _write(
    text: Text,
    names: Mapping[str, str],
    options: Mapping[str, Any],
    phase: Phase,
    rule: str,
    *,
    matrix: bool = False,
) -> Iterator[ProgramLine]:
    """Write lines of a rule with the program's names, its options as numbers."""
    written = {option: repr(value) for option, value in options.items()} | dict(names)
    trees = {name: _parsed(code) for name, code in written.items()}

    def write(expression: ast.expr) -> ast.expr:
        tree = _WithoutEffect().visit(_OptionsInPlace().visit(substitute(expression, trees)))
        return cast("ast.expr", _WithoutRows().visit(tree) if matrix else tree)

    for line in text.lines:
        expression, loop = ast.unparse(write(line.expression)), line.loop
        yield ProgramLine(
            names.get(line.target, line.target), line.operator, expression, phase, rule=rule,
            reason=_rename_reason(line.reason, names),
            index=show_index(write(line.index)) if line.index else "",
            loop=str(ForLoop(names[loop.variable], write(loop.steps))) if loop else "",
        )  # fmt: skip


@cache
def _parsed(code: str) -> ast.expr:
    return ast.parse(code, mode="eval").body


def _rename_reason(reason: str, names: Mapping[str, str]) -> str:
    """Put the program's names into a reason: names as mathematics writes them, not words (a, mean, rows)."""

    def rename(match: re.Match[str]) -> str:
        word = match[0]
        is_name = word in names and (len(word.removeprefix("d")) == 1 or word.strip("d") in ("gamma", "beta"))
        return names[word] if is_name and word != "a" else word

    return re.sub(r"(?<!')\b[A-Za-z]\w*?(?=ᵀ|\b)", rename, reason)


class _WithoutEffect(ast.NodeTransformer):
    """Writes the argument of a primitive that changes nothing: blocks of one group, a truncation after no time."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Name("block_diagonal" | "diagonal_blocks"), [v, ast.Constant(1), *_]):
                return v
            case ast.Call(ast.Name("truncated"), [v, _, ast.Constant(None)]):
                return v
        return node


class _WithoutRows(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return node.args[0] if isinstance(node.func, ast.Name) and node.func.id == "rows" else node


class _OptionsInPlace(ast.NodeTransformer):
    """Writes the numbers of an option that is a tuple where a line uses them: 2 for ``(2, 3)[0]``; of ``*``, all."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        spread = (
            a.value.elts if isinstance(a, ast.Starred) and isinstance(a.value, ast.Tuple) else [a]
            for a in node.args
        )
        return ast.Call(node.func, [part for parts in spread for part in parts], node.keywords)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Subscript(value=ast.Tuple(elts=elements), slice=ast.Constant(value=int(place))):
                return elements[place]
        return node
