"""Finding the smallest change of the user's source that makes its gradient right, and proving it."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from operator import attrgetter
from pathlib import Path

from handgrad.checking.effort import Effort
from handgrad.checking.gradient_code import GradientCode
from handgrad.checking.repair.edits import expression_changes
from handgrad.checking.repair.guard import Guard, OutOfTimeError
from handgrad.checking.repair.places import places
from handgrad.checking.repair.rewriting import rewritings
from handgrad.checking.repair.source import Change, Source, read_source
from handgrad.checking.repair.splicing import splices, text_with
from handgrad.checking.repair.statements import statement_changes
from handgrad.checking.repair.trace import trace
from handgrad.checking.repair.trial import LONGEST_RUN, Bench, Goal, Score
from handgrad.checking.subject import CheckError, Subject
from handgrad.files import write_file

PROOF = 60  # runs of backward
ROUNDS = 5  # repairs in a row, each of which makes something right
BROADER = 1.5  # of cost: a change that is right at all sizes may be that much larger
KEPT = 0.15  # of it all, for writing the gradient anew

Prove = Callable[[Subject], bool]


@dataclass(frozen=True)
class Hint:
    """What helps the search; all of it may be left out.

    Attributes
    ----------
    write
        Writes the right gradients of some arguments as lines of source, or returns None.
    any_size
        Whether a changed subject is right at inputs of other sizes too.
    """

    write: Callable[[Sequence[str]], GradientCode | None] = field(default=lambda arguments: None)
    any_size: Prove = field(default=lambda candidate: True)


@dataclass(frozen=True)
class Repair:
    """A change of the user's file that was proved right.

    Attributes
    ----------
    path, text
        The file, and the whole of its new text.
    diff
        The same as a unified diff.
    description
        One line for people: ``"line 23: `grad_output.mean(axis=0)` becomes `grad_output.sum(axis=0)`"``.
    kind
        "edit", or "rewritten" where no small edit was found and the gradient was written anew.
    any_size
        Whether it is right at inputs of other sizes too, as far as forward takes them.
    """

    path: Path
    text: str
    diff: str
    description: str
    kind: str
    encoding: str
    any_size: bool = True


def repair(
    subject: Subject, goal: Goal, prove: Prove, hint: Hint | None = None, *, budget_s: float = 3.0
) -> Repair | None:
    """Search for a change of backward's source, the smallest first, that is proved.

    Parameters
    ----------
    subject
        The user's two functions.
    goal
        A draw on which backward is wrong, with the right gradients.
    prove
        Whether a changed subject passes all checks. Its functions are the user's in a copy of the module's names.
    hint
        What helps.
    budget_s
        Seconds of a usual machine. Work is counted, not time: a slow machine takes longer and finds the same.

    Raises
    ------
    SourceError
        When there is no file to edit.
    """
    source = read_source(subject.forward, subject.backward)
    guard = Guard()
    with guard.search():
        return _Search(source, subject, goal, prove, hint or Hint(), guard, budget_s).run()


def write_repair(path: Path, found: Repair) -> None:
    """Write a repair's text to a file, whole or not at all."""
    write_file(path, found.text.encode(found.encoding))


class _Search:
    def __init__(
        self,
        source: Source,
        subject: Subject,
        goal: Goal,
        prove: Prove,
        hint: Hint,
        guard: Guard,
        budget_s: float,
    ) -> None:
        self.first, self.subject, self.goal, self.prove = source, subject, goal, prove
        self.hint, self.guard = hint, guard
        self.effort = Effort()
        self.budget = budget_s
        self.said: list[str] = []

    def run(self) -> Repair | None:
        source = self.first
        for _ in range(ROUNDS):
            found, better = self._round(source)
            if found is not None:
                return found
            text = text_with(source, better) if better is not None else None
            if better is None or text is None:
                break
            self.said.append(describe(source, better, self.first))
            source = source.changed(text)
        for start in (source, self.first) if source is not self.first else (source,):
            if start is self.first:
                self.said = []
            found = self._rewrite(start)
            if found is not None:
                return found
        return None

    def _round(self, source: Source) -> tuple[Repair | None, Change | None]:
        """Return a proved repair by one change, or else the change that mends most."""
        bench = Bench(source, self.subject, self.goal, self.guard, self.effort)
        facts = trace(bench)
        better = _Best(bench.base)

        bound: tuple[Repair, float] | None = None  # right at these sizes only, with its cost
        small = [*statement_changes(source, facts), *expression_changes(list(places(source, facts)))]
        for change in sorted(small, key=attrgetter("cost")):
            if self.effort.spent > (1 - KEPT) * self.budget:
                break
            if bound is not None and change.cost > bound[1] + BROADER:
                break
            score = bench.score(change)
            if score == bench.everything:
                found = self._proved(bench, change, "edit")
                if found is not None and found.any_size:
                    return found, None
                if found is not None and bound is None:
                    bound = found, change.cost
            else:
                better.take(change, score)
        return bound[0] if bound is not None else None, better.change

    def _rewrite(self, source: Source) -> Repair | None:
        bench = Bench(source, self.subject, self.goal, self.guard, self.effort)
        wrong = [name for name in self.goal.right if name not in bench.base.right]
        facts = trace(bench)
        for arguments in (wrong, list(self.goal.right)):
            written = self.hint.write(arguments) if arguments else None
            if written is None:
                continue
            for change in rewritings(bench, facts, written.lines, written.results):
                if bench.score(change) == bench.everything:
                    found = self._proved(bench, change, "rewritten")
                    if found is not None:
                        return found
        return None

    def _proved(self, bench: Bench, change: Change, kind: str) -> Repair | None:
        """Return the repair when the whole check passes."""
        bench.pay(PROOF)
        try:
            candidate = bench.subject_with(change)
            with self.guard.limit(LONGEST_RUN):
                if not self.prove(candidate):
                    return None
                any_size = self.hint.any_size(candidate)
        except (CheckError, OutOfTimeError, MemoryError):
            return None
        text = text_with(bench.source, change)
        if text is None:
            return None
        name = self.first.path.name
        before, after = self.first.text.splitlines(keepends=True), text.splitlines(keepends=True)
        diff = "".join(difflib.unified_diff(before, after, name, name))
        description = "; ".join([*self.said, describe(bench.source, change, self.first)])
        return Repair(self.first.path, text, diff, description, kind, self.first.encoding, any_size)


class _Best:
    """The change that mends most of what is wrong, and costs least."""

    def __init__(self, base: Score) -> None:
        self.base = base
        self.change: Change | None = None
        self._key = (0, 0.0)

    def take(self, change: Change, score: Score) -> None:
        """Keep a change if it is better than the one before."""
        key = (-len(score.right) - len(score.kept), change.cost)
        if score.beats(self.base) and (self.change is None or key < self._key):
            self.change, self._key = change, key


def describe(source: Source, change: Change, first: Source) -> str:
    """Return a change in a line for people, with the lines' numbers in the file as it was first."""
    if change.said:
        last = max(edit.old.lineno for edit in change.edits)
        return f"line {_first_line(last, source, first)}: {change.said}"
    said = []
    for edit, (_, _, new) in zip(change.edits, splices(source, change) or [], strict=False):
        line = _first_line(edit.old.lineno, source, first)
        old, new = _short(source.segment(edit.old)), _unbracketed(new)
        becomes = f"becomes `{_short(new)}`" if new.strip() else "is left out"
        said.append(f"line {line}: `{old}` {becomes}")
    return "; ".join(said)


def _first_line(line: int, source: Source, first: Source) -> int:
    """Return which line of the first text a line of a later one was."""
    before, after = first.text.splitlines(), source.text.splitlines()
    for _, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if j1 <= line - 1 < j2:
            return min(i1 + line - 1 - j1, max(i1, i2 - 1)) + 1
    return line


def _unbracketed(text: str) -> str:
    """Return an expression's text without brackets round the whole of it."""
    try:
        same = text[:1] == "(" and ast.dump(ast.parse(text[1:-1].strip())) == ast.dump(ast.parse(text))
    except SyntaxError:
        same = False
    return text[1:-1] if same else text


def _short(text: str) -> str:
    one = " ".join(text.split())
    return one if len(one) <= 90 else one[:87] + "…"
