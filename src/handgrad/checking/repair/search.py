"""From a wrong gradient to a repair of the user's source: the smallest edits that make it right, proved; else rewritten."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np

from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.gradient_code import GradientCode, write_gradient
from handgrad.checking.intermediates import FirstWrong
from handgrad.checking.mistakes import Diagnosis
from handgrad.checking.progress import tell
from handgrad.checking.repair.at_line import fitting
from handgrad.checking.repair.changed_text import exchanged, text_with
from handgrad.checking.repair.edit_candidates import small_changes
from handgrad.checking.repair.expressions import Observed, observe
from handgrad.checking.repair.guard import LONGEST_RUN, Guard, OutOfTimeError
from handgrad.checking.repair.hiding import hides
from handgrad.checking.repair.in_place import in_place, missing_terms
from handgrad.checking.repair.module_source import Change, Edit, ModuleSource, SourceError, read_sources
from handgrad.checking.repair.other_inputs import OtherInputs, is_proportional
from handgrad.checking.repair.replacement import rewritings
from handgrad.checking.repair.reuse import newly_unread
from handgrad.checking.repair.sandbox import NOTHING, Met, Sandbox, Target
from handgrad.checking.subject import CheckError, Subject
from handgrad.checking.verdict.comparison import Evidence, compare
from handgrad.checking.verdict.contract import violations
from handgrad.files import write_file
from handgrad.tolerance import close

PROOF = 60  # runs of backward
ROUNDS = 5  # edits in a row, each of which makes something right
BROADER = 1.5  # of cost: a change that is right at all sizes may be that much larger
FULLER = 0.5  # of cost: an edit that mends all may be that much larger than one that mends some
NEAR = 2.5  # of cost: such edits of the first wrong line are tried before those of other lines are generated
AGAIN = 0.5  # of cost, less for the same mistake at another place
SMALLEST = 1.6  # of cost: such edits elsewhere are tried before the first wrong line is written anew
ELSEWHERE = 1.5  # of cost, for a change elsewhere than at the first wrong line
FOR_EDITS = 0.85  # of the budget; the rest is for rewriting

Prove = Callable[[Subject], bool]
Write = Callable[[Sequence[str]], GradientCode | None]


@dataclass(frozen=True)
class Repair:
    """A change of the user's file that was proved right."""

    path: Path
    text: str  # the whole of the file's new text
    diff: str
    description: str  # ``"line 23: `grad_output.mean(axis=0)` becomes `grad_output.sum(axis=0)`"``
    kind: str  # "edit", or "rewritten" where no small edit was found and the gradient was written anew
    encoding: str
    any_size: bool = True  # whether it is right at inputs of other sizes too, as far as forward takes them
    undone: tuple[Diagnosis, ...] = ()  # the mistakes that its small edits undo
    lines: frozenset[int] = frozenset()  # of the statements that it changes, as the author counts them


def mend(evidence: Evidence, first: FirstWrong | None = None, *, budget_s: float) -> Repair | None:
    """Return a proved repair of the backward's source, or None when none was found or there is no source.

    Proved means: right at the user's inputs and at fresh ones, for several upstream gradients, under the whole
    contract, at forty other inputs, and finite at zeros.
    """
    trace, others = evidence.trace, OtherInputs(evidence)

    def prove(candidate: Subject) -> bool:
        """Judge a candidate, while the author's functions run as it changes them."""
        for known in evidence.comparisons:
            comparison = compare(candidate, known.numerical)
            if comparison.wrong:
                return False
        left = {each.kind for each in violations(candidate, comparison.samples[0])}
        if left - {"uneven"} if candidate.scale != 1 else left:  # what clips larger gradients stays
            return False
        if not evidence.wrong and not is_proportional(candidate, comparison.samples[0]):
            return False
        return others.is_right(candidate, others.draws) and others.is_finite(candidate)

    def any_size(candidate: Subject) -> bool:
        return others.is_right(candidate, others.sizes)

    def write(names: Sequence[str]) -> GradientCode | None:
        return write_gradient(trace, names) if trace is not None else None

    wrong, samples = evidence.comparisons[0].wrong, evidence.comparisons[0].samples
    sample = max(samples, key=lambda sample: sum(int(sample.wrong(name).sum()) for name in wrong))
    right = {name: sample.expected(name) for name in sample.got}
    near = {  # how far is still right: the error bound, and half the gap at a kink
        name: bounds.tolerance + np.abs(bounds.high - bounds.low) / 2
        for name, bounds in sample.bounds.items()
    }
    target = Target(sample.inputs, sample.upstream, right, near)
    others.prepare()
    try:
        return repair(evidence.subject, target, prove, any_size, write, trace, first, budget_s=budget_s)
    except SourceError:
        return None


def repair(
    subject: Subject,
    target: Target,
    prove: Prove,
    any_size: Prove = lambda candidate: True,
    write: Write = lambda arguments: None,
    trace: ForwardTrace | None = None,
    first_wrong: FirstWrong | None = None,
    *,
    budget_s: float = 3.0,
) -> Repair | None:
    """Search for a change of backward's source, the smallest first, that is proved; SourceError if there is no file.

    The target has inputs at which backward is wrong, with the right gradients. ``write`` returns the right gradients of
    some arguments as lines of source. Of the budget, work is counted and not time: a slow machine finds the same.
    """
    with Guard().search():
        sources, quick = read_sources(subject), _on_numpy(subject, target)
    for source in sources:
        guard = Guard()
        with guard.search():
            found = _Search(
                source, subject, quick, target, prove, any_size, write, trace, first_wrong, guard, budget_s
            ).run()
        if found is not None:
            return found
    return None


def _on_numpy(subject: Subject, target: Target) -> Subject:
    """Return a subject on NumPy's arrays in place of JAX's, which compiles each edit, where the gradients are the same."""
    if (functions := getattr(subject.backward, "on_numpy", None)) is None:
        return subject
    forward, backward = functions
    other = replace(subject, forward=forward, backward=backward)
    try:
        expected = subject.run_backward(target.upstream, target.inputs)
        found = other.run_backward(target.upstream, target.inputs)
        is_same = all(close(found[name], gradient) for name, gradient in expected.items())
    except CheckError:
        return subject
    return other if is_same else subject


def write_repair(path: Path, found: Repair) -> None:
    """Write a repair's text to a file, whole or not at all."""
    write_file(path, found.text.encode(found.encoding))


@dataclass
class _Search:
    first: ModuleSource
    subject: Subject
    quick: Subject  # by which edits are tried
    target: Target
    prove: Prove
    any_size: Prove
    write: Write
    trace: ForwardTrace | None
    first_wrong: FirstWrong | None  # where to look first
    guard: Guard
    budget: float
    done: list[str] = field(default_factory=list)
    undone: list[Diagnosis] = field(default_factory=list)
    codes: set[str] = field(default_factory=set)  # of the mistakes that were mended
    texts: list[list[tuple[str, str]]] = field(default_factory=list)  # what the edits have exchanged
    before: list[tuple[str, Change]] = field(
        default_factory=list
    )  # the last edits, with the text in whose place
    _fitting: list[Change] = field(default_factory=list)  # edits of a wrong argument of a right function
    _lines: set[int] = field(default_factory=set)  # the nodes of the first wrong line
    _tried: int = 0

    def run(self) -> Repair | None:
        """Edit as long as each edit makes something right, then rewrite what is left, or else all."""
        source = self.first
        for _ in range(ROUNDS):
            sandbox = self._sandbox(source)
            found, better, met = self._round(sandbox)
            text = text_with(source, better) if better is not None else None
            if found is not None or better is None or text is None:
                break
            self.done.append(self._described(source, better))
            self.codes.add(better.undoes)
            self.undone += self._undone(sandbox, better, met)
            self.texts.append(exchanged(source, better))
            new = [edit for edit in better.edits if isinstance(edit.new, ast.expr)]
            self.before = [(ast.unparse(edit.old), replace(better, edits=(edit,))) for edit in new]
            source = source.with_text(text)
        found = found or self._rewritten(source)
        if source is self.first or (found and (found.kind == "edit" or found.undone)):
            return found
        self.done, self.undone = [], []  # edits that mended no gradient whole may not be needed
        alone = self._rewritten(self.first)
        return alone if found is None or (alone and len(alone.lines) <= len(found.lines)) else found

    def _sandbox(self, source: ModuleSource) -> Sandbox:
        return Sandbox(source, self.quick, self.target, self.guard)

    def _round(self, sandbox: Sandbox) -> tuple[Repair | None, Change | None, Met]:
        """Return a proved repair by one edit, or else the edit that mends most, and what it does."""
        best: tuple[Change | None, Met] = None, sandbox.base
        until = np.inf  # what costs so much more than the first that mends something is not tried
        bound: tuple[Repair, float] | None = None  # right at these sizes only, with its cost
        observed = self._observed(sandbox)
        for change in self._changes(sandbox, observed):
            cost = self._cost(sandbox.source, change)
            if change.is_new and best[0] is not None:
                continue
            too_broad = bound is not None and not change.is_new and change.cost > bound[1] + BROADER
            if self.guard.spent > FOR_EDITS * self.budget or too_broad or cost > until:
                break
            hidden = change not in self._fitting and hides(sandbox.source, observed, change)
            met = NOTHING if hidden else self._met(sandbox, change)
            if met == sandbox.everything:
                found = self._proved(sandbox, change)
                if found is not None and found.any_size:
                    return found, None, met
                if found is not None and bound is None and not change.is_new:
                    bound = found, change.cost
            elif met > sandbox.base and len(met) > len(best[1]) and not change.is_new:
                best = change, met
                until = min(until, cost + FULLER)
        return (bound[0] if bound else None), *best

    def _met(self, sandbox: Sandbox, change: Change) -> Met:
        """Return what holds with a change made, and report how far the search is."""
        self._tried += 1
        share = min(1.0, self.guard.spent / self.budget) if self.budget else 1.0
        tell(f"repairing {self.first.path.name}: edit {self._tried}, {share:.0%} of the search")
        return sandbox.met(change)

    def _first_wrong(self, source: ModuleSource) -> FirstWrong | None:
        """Return the first wrong line where it is in a source, as its author wrote it."""
        first = self.first_wrong
        return first if first and source is self.first and first.path == str(source.path) else None

    def _observed(self, sandbox: Sandbox) -> Observed:
        first = self._first_wrong(sandbox.source)
        line, times = (first.line, first.numbers.times) if first and first.numbers else (0, 0)
        return observe(sandbox, line, times)

    def _changes(self, sandbox: Sandbox, observed: Observed) -> Iterator[Change]:
        """Yield the edits that make the first wrong line right, its small ones, the smallest elsewhere, and all others.

        That line is written anew before the larger ones. After an edit that has mended something, the same one is made
        wherever that text stands: people repeat a mistake.
        """
        for text, change in self.before:
            same = (
                each for unit in sandbox.source.units for each in ast.walk(unit) if isinstance(each, ast.expr)
            )
            for node in (each for each in same if ast.unparse(each) == text):
                yield replace(change, edits=(Edit(node, deepcopy(change.edits[0].new)),))
        source, first = sandbox.source, self._first_wrong(sandbox.source)
        statements = source.statements_at(first.line) if first is not None else []
        at_line = [node for statement in statements for node in ast.walk(statement)]
        changes = small_changes(source, observed, at_line)
        if first is not None:
            adding = [change for change in changes if any(map(_adds_up, change.edits))]
            yield from adding  # before any other way to write the sum
            fits = [*fitting(sandbox, observed, first, changes)]
            if self.trace is not None:
                fits += missing_terms(sandbox, observed, self.trace, first)
            self._fitting = fits if first.numbers is not None and first.numbers.is_given else []
            yield from fits
            tried = set(map(id, [*adding, *fits]))
            changes = [change for change in changes if id(change) not in tried]
        yield from (change for change in changes if change.cost <= NEAR)
        seen = set(map(id, at_line))
        others = (node for unit in source.units for node in ast.walk(unit) if id(node) not in seen)
        every = [*small_changes(source, observed, others), *(each for each in changes if each.cost > NEAR)]
        every.sort(key=lambda change: self._cost(source, change))
        early = [change for change in every if self._cost(source, change) <= SMALLEST + ELSEWHERE]
        yield from early if first is not None else every
        if first is not None:
            new = in_place(sandbox, observed, self.trace, [], first) if self.trace is not None else ()
            yield from (change for change in new if not _bypasses(source, change))
            yield from every[len(early) :]

    def _cost(self, source: ModuleSource, change: Change) -> float:
        """Return a change's cost: more elsewhere than at the first wrong line, less for a mistake that was made before."""
        first, again = self._first_wrong(source), change.undoes in self.codes
        if first is not None and not self._lines:
            self._lines = {id(node) for each in source.statements_at(first.line) for node in ast.walk(each)}
        elsewhere = first is not None and id(change.edits[0].old) not in self._lines
        return change.cost + ELSEWHERE * elsewhere - AGAIN * again

    def _rewritten(self, source: ModuleSource) -> Repair | None:
        """Return a proved repair with the gradients written anew: of the wrong ones, or of all."""
        sandbox = self._sandbox(source)
        observed = self._observed(sandbox)
        wrong = [name for name in self.target.gradients if name not in sandbox.base]
        first = self._first_wrong(source)
        if self.trace is not None:
            found = self._first_proved(
                sandbox, observed, in_place(sandbox, observed, self.trace, wrong, first)
            )
            if found is not None:
                return found
        if self.subject.backward not in source.functions:
            return None  # its arguments are not those of the pair that is checked
        for arguments in (wrong, list(self.target.gradients)):
            code = self.write(arguments) if arguments else None
            found = (
                self._first_proved(sandbox, observed, rewritings(sandbox, observed, code))
                if code is not None
                else None
            )
            if found is not None:
                return found
        return None

    def _first_proved(self, sandbox: Sandbox, observed: Observed, changes: Iterator[Change]) -> Repair | None:
        """Return the first repair, of those that write something anew, that is proved."""
        for change in changes:
            hidden = hides(sandbox.source, observed, change)
            if not hidden and self._met(sandbox, change) == sandbox.everything:
                found = self._proved(sandbox, change)
                if found is not None:
                    return found
        return None

    def _proved(self, sandbox: Sandbox, change: Change) -> Repair | None:
        """Return the repair when the whole check passes."""
        self.guard.spend(PROOF * sandbox.running)
        try:
            with sandbox.changed(change), self.guard.limit(LONGEST_RUN):
                if not self.prove(self.subject):
                    return None
                any_size = self.any_size(self.subject)
        except (CheckError, OutOfTimeError, MemoryError):
            return None
        text = text_with(sandbox.source, change)
        if text is None:
            return None
        path, before = self.first.path, self.first.text.splitlines(keepends=True)
        diff = "".join(difflib.unified_diff(before, text.splitlines(keepends=True), path.name, path.name))
        description = "; ".join([*self.done, self._described(sandbox.source, change)])
        undone = (*self.undone, *self._undone(sandbox, change, sandbox.everything))
        kind = "rewritten" if change.is_new else "edit"
        lines, encoding = self._changed_lines(text), self.first.encoding
        return Repair(path, text, diff, description, kind, encoding, any_size, undone, lines)

    def _undone(self, sandbox: Sandbox, change: Change, met: Met) -> list[Diagnosis]:
        """Return the mistake that an edit undoes, with the arguments whose gradients it mends."""
        mended = tuple(name for name in self.target.gradients if name in met and name not in sandbox.base)
        if not mended or not change.undoes:
            return []
        texts = exchanged(sandbox.source, change)
        code, words = (
            change.undoes,
            "; ".join(
                f"`{old}` should be `{new}`" if new else f"`{old}` should not be there" for old, new in texts
            ),
        )
        if [(new, old) for old, new in texts] in self.texts:  # one name for another, and back
            code, words = "swapped-gradients", f"{words}, and the other way round"
        number = self._first_line(sandbox.source, change.edits[0].old.lineno)
        place = f"line {number}: {self.first.text.splitlines()[number - 1].strip()}"
        return [Diagnosis(code, mended, words, place=place)]

    def _described(self, source: ModuleSource, change: Change) -> str:
        """Return a change in a line for people, with the lines' numbers in the file as it was first."""
        lines = [self._first_line(source, edit.old.lineno) for edit in change.edits]
        if change.description:
            return f"line {max(lines)}: {change.description}"
        return "; ".join(
            f"line {line}: `{old}` {f'becomes `{new}`' if new else 'is left out'}"
            for line, (old, new) in zip(lines, exchanged(source, change), strict=True)
        )

    def _changed_lines(self, text: str) -> frozenset[int]:
        matcher = SequenceMatcher(None, self.first.text.splitlines(), text.splitlines(), autojunk=False)
        changed = {
            line + 1
            for tag, i1, i2, _, _ in matcher.get_opcodes()
            if tag != "equal"
            for line in range(i1, i2)
        }
        ranges = [
            range(node.lineno, (node.end_lineno or node.lineno) + 1)
            for node in ast.walk(self.first.tree)
            if isinstance(node, ast.stmt) and not hasattr(node, "body")
        ]
        return frozenset(line for lines in ranges if changed & {*lines} for line in lines)

    def _first_line(self, source: ModuleSource, line: int) -> int:
        """Return which line of the first text a line of a later one was."""
        before, after = self.first.text.splitlines(), source.text.splitlines()
        for _, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if j1 <= line - 1 < j2:
                return min(i1 + line - 1 - j1, max(i1, i2 - 1)) + 1
        return line


def _bypasses(source: ModuleSource, change: Change) -> bool:
    """Whether new code reads no more what a line before it computes, which may be the one that is wrong."""
    functions = (source.enclosing(edit.old, ast.FunctionDef) for edit in change.edits)
    return any(isinstance(each, ast.FunctionDef) and newly_unread(source, each, change) for each in functions)


def _adds_up(edit: Edit) -> bool:
    """Whether an edit makes ``a += b`` of ``a = b``."""
    return isinstance(edit.old, ast.Assign) and any(isinstance(each, ast.AugAssign) for each in edit.parts)
