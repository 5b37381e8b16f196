"""A program in short print: blocks that repeat once, long rules as calls, and what those rules are at the end.

Repetition is found in the lines, up to their names: of a `Repeat`, and of layers or rules that Python code applies again
and again, at any depth.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, groupby, zip_longest

from handgrad.program.printing import WIDEST_CODE, in_micro_batch
from handgrad.program.program import AGAIN, Program, ProgramLine
from handgrad.rules import RULES, Rule
from handgrad.rules.rule_source import blocks

NAME = re.compile(r"(?<![.\w])[A-Za-z_]\w*")
LONG = 4  # lines of a forward that are written as a call, or 2 where the rule comes again
WORTH = 6  # rows, at least, that a fold saves
LONGEST = 40  # layers, or rules, that repeat together
SCREEN = 50  # lines
PARAMETERS = {"dgamma", "dbeta"}


@dataclass(frozen=True)
class PrintedRow:
    """A row in print: code, shape and reason, how far it is indented, and the layer and the call that it belongs to.

    ``note`` is the layer whose first row it is.
    """

    code: str
    shape: str = ""
    reason: str = ""
    indent: int = 0
    layer: str = ""
    call: str = ""
    note: str = ""

    @property
    def made(self) -> str:
        """The first name that it makes."""
        return re.split(r",| [-+*/]?= ", self.code)[0]

    @property
    def path(self) -> list[str]:
        """The layer, the layer in that, and so on; at the end the call."""
        return [*self.layer.split(" → "), self.call]

    @cached_property
    def form(self) -> tuple[str, str]:
        """What rows that differ in names alone have in common."""
        return NAME.sub("#", self.code), self.shape


def fold(program: Program) -> list[tuple[str, list[PrintedRow]]]:
    """Return the phases of a program with their rows, then the rules that are called in them.

    Examples
    --------
    >>> from handgrad import Linear, MeanSquaredError, Network, Repeat, Tanh
    >>> network = Network(Repeat(Linear(4, 4), Tanh(), times=9), loss=MeanSquaredError())
    >>> for row in dict(fold(network.program()))["forward"]:
    ...     print("  " * row.indent + row.code)
    9 × block, from z1 … a1 to z9 … a9; a1 is the next one's x
      z1 = x @ W1 + b1
      a1 = np.tanh(z1)
    """
    lines = _without_aliases(program)
    called = _called(lines)
    reading = Counter(name for line in lines for name in line.reads | {*program.outputs})
    phases = []
    for phase, group in groupby(lines, key=lambda line: line.phase):
        nodes = ([*node] for _, node in groupby(group, key=lambda line: (line.layer, line.call)))
        rows = [row for node in nodes for row in _rows(node, program, called, reading)]
        phases.append((phase, _folded(_with_layers(rows) if phase == "forward" else rows, phase)))
    return [*phases, *([("rules", [*_texts(called)])] if called else [])]


def render_folded(program: Program, width: int = 110, *, rules: bool | None = True) -> str:
    """Return the folded program as text of so many columns; a reason that comes again, or has no place, is left out.

    With None for ``rules``, the lines of the rules that are called are printed where they need no further screen, and else
    their names.
    """
    phases, known = fold(program), set[str]()
    called = dict(phases).get("rules", [])
    phases = [(phase, rows) for phase, rows in phases if phase != "rules"]
    shown = [("  " * (row.indent + 1) + row.code, row) for _, rows in phases for row in rows]
    code = max((len(text) for text, row in shown if row.shape and len(text) <= WIDEST_CODE + 4), default=0)
    single = [row.shape for text, row in shown if len(text) <= code and "), (" not in row.shape]
    column = max(map(len, single), default=0)
    page = [f"{program.title} · n rows"]
    page += [f"{program.micro_loop}:"] if program.micro_batch else []
    for phase, rows in phases:
        inside = "  " * (in_micro_batch(program, phase) and phase != "rules")
        alone = phase == "update" and [row.indent for row in rows].count(0) == 1 < len(rows)
        page += [f"{inside}{phase}, {rows[0].code}" if alone else inside + phase]
        for row in rows[alone:]:
            line = inside + "  " * (row.indent + 1) + row.code
            line = f"{line:<{code}}  {row.shape:<{column}}"
            plain = re.sub(r"\d+", "", row.reason)
            reason = "" if plain in known else row.reason
            said = (": ".join(filter(None, (row.note, reason))), row.note, row.note.partition("(")[0])
            fitting = next((each for each in said if len(line) + 3 + len(each) <= width), "")
            page.append(f"{line}   {fitting}".rstrip())
            known |= {plain} if reason and fitting.endswith(reason) else set()
    if not called:
        return "\n".join(page)
    texts = ["rules", *_in_columns(called, width)]
    if rules is None:
        rules = len(page) % SCREEN + len(texts) <= SCREEN
    names = ", ".join(
        row.code.partition("(")[0] for row in called if row.indent == 0 and ".backward(" not in row.code
    )
    return "\n".join([*page, *(texts if rules else [f"rules: {names}; --rules prints their lines"])])


def _in_columns(rows: Sequence[PrintedRow], width: int) -> Iterator[str]:
    """Yield the lines of rules, forward and backward side by side where there is room, with a reason that fits."""
    heads = [number for number, row in enumerate(rows) if row.indent == 0]
    texts = [rows[start:end] for start, end in zip(heads, [*heads[1:], len(rows)], strict=True)]
    for forward, backward in zip(texts[::2], texts[1::2], strict=True):
        left, right = (["  " * row.indent + row.code for row in text] for text in (forward, backward))
        column = max(map(len, left)) + 2
        if 2 + column + max(map(len, right)) <= width:
            right = [*_with_reasons(right, backward, width - 2 - column)]
            yield from (f"  {a:<{column}}{b}".rstrip() for a, b in zip_longest(left, right, fillvalue=""))
        else:
            for codes, text in ((left, forward), (right, backward)):
                yield from (f"  {each}" for each in _with_reasons(codes, text, width - 2))


def _with_reasons(codes: Sequence[str], rows: Sequence[PrintedRow], width: int) -> Iterator[str]:
    column = max(map(len, codes))
    for code, row in zip(codes, rows, strict=True):
        line = f"{code:<{column}}   {row.reason}"
        yield line.rstrip() if len(line) <= width else code


def _without_aliases(program: Program) -> list[ProgramLine]:
    """Leave out the backward lines that only give a value or a number another name."""
    names: dict[str, str] = {}
    lines = []
    for line in program.lines:
        expression, loop = (
            NAME.sub(lambda match: names.get(match[0], match[0]), text)
            for text in (line.expression, line.loop)
        )
        is_name = expression.isidentifier() or expression == "1.0"
        if line.phase == "backward" and is_name and line.makes and line.target not in program.outputs:
            names[line.target] = expression
        else:
            lines.append(replace(line, expression=expression, loop=loop))
    return lines


def _called(lines: Sequence[ProgramLine]) -> dict[str, Rule]:
    """Return the long rules of one value, as norms, activations, windows and losses; attention is written out."""
    rules = {line.rule: RULES[line.rule] for line in lines if line.rule in RULES}
    layers = {(line.rule, line.layer, line.call) for line in lines if line.phase == "forward"}
    times = Counter(rule for rule, *_ in layers)

    def is_long(rule: Rule) -> bool:
        values = [name for name in rule.differentiable if len(name) == 1 and name.islower() and name != "b"]
        lines, plain = rule.forward.lines, rule.sample is None
        is_one = len(values) == 1 and plain and not any(line.loop for line in lines)
        return is_one and len(lines) >= (2 if times[rule.name] > 1 else LONG)

    return {name: rule for name, rule in rules.items() if is_long(rule)}


def _rows(
    node: Sequence[ProgramLine], program: Program, called: Mapping[str, Rule], reading: Mapping[str, int]
) -> Iterator[PrintedRow]:
    """Yield a row for each line of a rule, one for a long rule; the gradients of its parameters share a row."""
    first = node[0]
    is_backward = first.phase == "backward" and not first.again
    if first.again and first.rule in called:
        output = called[first.rule].output
        if re.sub(r"\d*$", "", node[-1].target) != output:  # of which only a part is needed again
            yield from _each(node)
            return
    if first.rule in called and first.phase in ("forward", "loss", "backward"):
        inside = Counter(name for line in node for name in line.reads)
        kept = [line for line in node if reading[line.target] > inside[line.target]]
        call = f"{first.rule}.backward(d{first.undoes})" if is_backward else first.call
        row = _joined(kept if is_backward else node[-1:], call)  # what its backward reads, it has
        yield row if first.again else replace(row, reason="")  # that of each line stands below
        return
    shared = [line for line in node if _shares(line, program)]
    if len(shared) > 1:
        joined = _joined(shared, ", ".join(line.expression for line in shared))
        others = [*_each([line for line in node if line not in shared])]
        yield from (joined, *others) if first.phase == "loss" else (*others, joined)
    else:
        yield from _each(node)


def _with_layers(rows: Sequence[PrintedRow]) -> list[PrintedRow]:
    """Name each layer where its rows begin."""
    named = []
    for layer, group in groupby(rows, key=lambda row: row.layer):
        first, *others = group
        named += [replace(first, note=layer.rpartition(" → ")[2].partition(", ")[2]), *others]
    return named


def _each(lines: Sequence[ProgramLine]) -> Iterator[PrintedRow]:
    """Yield a row for each line, and before those of a loop the loop."""
    for block in blocks(lines):
        row = _row(block[0])
        if block[0].loop:
            yield replace(row, code=f"{block[0].loop}:", shape="", reason="")
        yield from (replace(_row(line), indent=int(bool(line.loop))) for line in block)


def _shares(line: ProgramLine, program: Program) -> bool:
    """Whether a line shares its row with others of its rule: gradients of parameters, and what a loss is made of."""
    if line.loop:
        return False
    if line.phase == "loss":
        return line.target in ("total", "count")
    is_gradient = line.target.partition("_")[0][1:] in program.parameters
    return line.phase == "backward" and is_gradient and not line.again


def _row(line: ProgramLine) -> PrintedRow:
    shape = "" if line.phase in ("accumulate", "update") else line.shown_shape
    return PrintedRow(str(line), shape, line.reason, layer=line.layer, call=line.call)


def _joined(lines: Sequence[ProgramLine], code: str) -> PrintedRow:
    """Return a row that makes several values at once."""
    names, shapes = ", ".join(line.target for line in lines), ", ".join(line.shown_shape for line in lines)
    return PrintedRow(
        f"{names} = {code}",
        shapes,
        lines[0].reason if len(lines) > 1 or lines[0].again else "",
        layer=lines[0].layer,
        call=lines[0].call,
    )


def _folded(rows: Sequence[PrintedRow], phase: str, depth: int = 1) -> list[PrintedRow]:
    """Put one of blocks that are alike in place of them all: forward the first, which backward comes last.

    Blocks are looked for among the layers, then within each, and at last among the rules that a layer applies.
    """
    units = [[*group] for _, group in groupby(rows, key=lambda row: row.path[:depth])]
    folded: list[PrintedRow] = []
    place = 0
    while place < len(units):
        saved, negative, times = max(_runs(units, place, phase))
        if saved < WORTH:
            unit = units[place]
            has_parts = any(len(row.path) > depth for row in unit)
            folded += _folded(unit, phase, depth + 1) if has_parts else unit
            place += 1
            continue
        end = place - negative * times
        alike = [[*chain(*units[start : start - negative])] for start in range(place, end, -negative)]
        folded.append(PrintedRow(_heading(alike, phase)))
        inner = _folded(alike[-1 if phase == "backward" else 0], phase, depth + 1)
        folded += [replace(row, indent=row.indent + 1) for row in inner]
        place = end
    return folded


def _runs(units: Sequence[Sequence[PrintedRow]], place: int, phase: str) -> Iterator[tuple[int, int, int]]:
    """Yield `_repeated` of each period, up to one whose blocks are all that is left: no longer one saves more."""
    for period in range(1, LONGEST + 1):
        yield (run := _repeated(units, place, period, phase))
        if place + run[2] * period == len(units):
            break


def _repeated(
    units: Sequence[Sequence[PrintedRow]], place: int, period: int, phase: str
) -> tuple[int, int, int]:
    """Return how many rows it saves to fold so many units from a place on, with the period and how often they come.

    In forward and backward each block reads what the one before it makes, and nothing that an earlier one makes.
    """

    def at(start: int) -> list[PrintedRow]:
        return [*chain(*units[start : start + period])]

    first = previous = at(place)
    earlier = set[str]()  # made by the blocks before the previous one
    times = 1
    while place + (times + 1) * period <= len(units):
        following = at(place + times * period)
        if [row.form for row in following] != [row.form for row in first]:
            break
        if _canonical(following) != _canonical(first):
            break
        read = {after for before, after in _inputs(previous, following) if before != after}
        if phase not in ("accumulate", "update") and (read & earlier or not read & _made(previous)):
            break
        earlier |= _made(previous)
        previous, times = following, times + 1
    return (times - 1) * len(first), -period, times


def _made(block: Sequence[PrintedRow]) -> set[str]:
    """Return the names that a block's rows make."""
    return {name for row in block for name in NAME.findall(re.split(r" [-+*/]?= | in ", row.code)[0])}


def _inputs(one: Sequence[PrintedRow], other: Sequence[PrintedRow]) -> list[tuple[str, str]]:
    """Return the names that a block reads and does not make, each with that in its place in another block."""
    names = [
        [*dict.fromkeys(name for row in block for name in NAME.findall(row.code))] for block in (one, other)
    ]
    made = _made(one)
    return [(name, another) for name, another in zip(*names, strict=True) if name not in made]


def _canonical(rows: Sequence[PrintedRow]) -> tuple[tuple[str, str], ...]:
    """Return rows with their names numbered as they come, so that blocks that differ in names alone are equal."""
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return numbers.setdefault(match[0], f"#{len(numbers)}")

    return tuple((NAME.sub(number, row.code), row.shape) for row in rows)


def _heading(blocks: Sequence[Sequence[PrintedRow]], phase: str) -> str:
    first, second, *_, last = (*blocks, blocks[-1])
    if phase in ("accumulate", "update"):
        return f"{len(blocks)} ×, for each from {first[-1].made} to {last[-1].made}"
    ends = " to ".join(f"{block[0].made} … {block[-1].made}" for block in (first, last))
    if phase == "backward":
        taken = [after for _, after in _taken(blocks[-2], last)]
        order = "each computed again first, " * (last[0].reason == AGAIN) + "the last one first"
        come = "comes" if len(taken) == 1 else "come"
        order += f"; {' and '.join(taken)} {come} from what follows the block" if taken else ""
        return f"{len(blocks)} × block, from {ends}, {order}"
    links = (f"; {made} is the next one's {name}" for name, made in _taken(first, second) if name != made)
    return f"{len(blocks)} × block, from {ends}{''.join(links)}"


def _taken(one: Sequence[PrintedRow], other: Sequence[PrintedRow]) -> list[tuple[str, str]]:
    """Return which value that a block makes the next one reads, after what the block itself reads in its place."""
    made = _made(one)
    return [(name, taken) for name, taken in _inputs(one, other) if taken in made]


def _texts(called: Mapping[str, Rule]) -> Iterator[PrintedRow]:
    """Yield the lines of rules, forward and backward, in their own letters."""
    for name, rule in called.items():
        heads = {
            f"{name}({', '.join(rule.forward.arguments)})": rule.forward,
            f"{name}.backward(d{rule.output})": rule.backward_text,
        }
        for head, text in heads.items():
            yield PrintedRow(head)
            rows = [
                PrintedRow(f"{line.target} = {ast.unparse(line.expression)}", "", line.reason, 1)
                for line in text.lines
            ]
            while rows:  # gradients of parameters share a row
                first, *rows = rows
                if rows and {first.made, rows[0].made} <= PARAMETERS:
                    codes = [row.code.partition(" = ") for row in (first, rows.pop(0))]
                    (a, _, of_a), (b, _, of_b) = codes
                    first = replace(first, code=f"{a}, {b} = {of_a}, {of_b}")
                yield first
