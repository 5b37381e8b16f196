"""The first line of a backward whose value is wrong: proved, for with the right value there, a wrong gradient becomes right.

Forward is traced, so that the gradient of each of its values is known. Then backward runs with numbers. A value that
is no gradient of anything is judged by exchanging it: for the gradient that its name promises, for the others that fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import numpy as np

from handgrad.checking.interfaces.names import LEARNING_RATES
from handgrad.checking.intermediates.probed_runs import ProbedRuns
from handgrad.checking.intermediates.probes import Event, Recorder, probed
from handgrad.checking.intermediates.right_values import factor_between, last_name, says_something, stems
from handgrad.checking.intermediates.suggestions import NOTHING, Suggestion, Suggestions
from handgrad.checking.live_code import functions_of, running
from handgrad.checking.subject import Array
from handgrad.checking.verdict.comparison import Evidence, GradientSample
from handgrad.tolerance import close

FEW = 3  # suggestions for a value, before it is asked whether anything wrong depends on it
REPEATED = 64  # a line that runs more often works on single numbers


class RightNumbers(NamedTuple):
    """The right value of a line, and when: for an upstream gradient, after the line has run so many times."""

    value: Array
    got: Array  # instead
    upstream: list[Array]
    times: int
    is_given: bool  # to a function, which is right


@dataclass(frozen=True)
class FirstWrong:
    """The first line that is wrong.

    Attributes
    ----------
    path, line, source
        Its file, its number and its text.
    name
        What its author calls the value that is wrong: ``dZ1``, ``return['x']``; "" for all that is returned.
    what
        What the value is to be: ``"the gradient of Z1"``.
    entry, got, expected
        Its worst entry.
    factor
        What all of it is the right value's multiple by; 0 where it is none.
    mends
        The gradients that are right with the right value.
    later
        Lines that are wrong only because of it: ``"43: dW1"``.
    right
        Lines before and after it whose values are right.
    is_early
        Whether it updates a parameter before the error has passed through it.
    """

    path: str
    line: int
    source: str
    name: str
    what: str
    entry: tuple[int, ...] = ()
    got: float = 0.0
    expected: float = 0.0
    factor: float = 0.0
    mends: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    is_early: bool = False
    numbers: RightNumbers | None = field(default=None, compare=False, repr=False)  # not part of the JSON

    @property
    def where(self) -> str:
        """The place, as ``net.py:20: dz1 = da1 * (1 - z1**2)``."""
        return f"{Path(self.path).name}:{self.line}: {self.source}"


class _Found(NamedTuple):
    event: int
    suggestion: Suggestion
    mended: frozenset[str]


def _own_name(event: Event) -> str:
    """Return what the author calls a value: ``return["x"]`` where it is returned under a key, "" where it is all."""
    returned = event.site.kind == "returned" and event.name
    return f"return{event.name}" if returned else event.name


def _before(groups: list[list[int]], found: _Found | None) -> list[list[int]]:
    return [events for events in groups if found is None or events[0] < found.event]


def first_wrong(evidence: Evidence) -> FirstWrong | None:
    """Return the first wrong line of the author's backward, or None where none is proved, or there is no source."""
    for sample in evidence.comparisons[0].samples:
        if any(sample.is_wrong(name) for name in evidence.wrong):
            return _in(evidence, sample)
    return None


def _in(evidence: Evidence, sample: GradientSample) -> FirstWrong | None:
    subject, inputs = evidence.subject, sample.inputs
    functions = functions_of(lambda: subject.run_backward(sample.upstream, inputs))
    recorder = Recorder()
    codes = probed(functions, recorder)
    if not codes:
        return None
    right = {name: np.asarray(sample.expected(name), np.float64) for name in sample.got}
    chosen = [(sample.upstream, right)]
    if [part.ndim for part in sample.upstream] == [0]:  # a loss: its own gradients are those for 1
        ours = {name: value / sample.upstream[0] for name, value in right.items()}
        chosen = [([np.ones(())], ours), *chosen]  # unless they are wrong at others only
    with (
        running(codes, recorder.names),
        redirect_stdout(StringIO()),
    ):  # what the author prints is seen already
        for upstream, wanted in chosen:
            runs = ProbedRuns(subject, inputs, upstream, wanted, recorder, list(codes))
            if runs.wrong:
                return _Search(runs).run()
    return None


class _Search:
    def __init__(self, runs: ProbedRuns) -> None:
        self.runs, self.events = runs, runs.events
        self.suggestions = Suggestions(
            runs.events, runs.inputs, runs.gradients, runs.right, runs.wrong, runs.values
        )
        self.last = {
            (each.site.path, each.name): each
            for each in self.events
            if each.name and each.site.kind != "returned"
        }
        self.sites = self._sites()
        self.known = {k: self._is_known(self.events[k]) for events in self.sites.values() for k in events}

    def _sites(self, *, arguments: bool = False) -> dict[int, list[int]]:
        """Return the events of each site that may be wrong, or of each parameter, in the order of the first."""
        found: dict[int, list[int]] = {}
        early, late = self.events[: self.runs.start], self.events[self.runs.start :]
        shared = {e.site.number for e in early} & {e.site.number for e in late}  # what forward runs is right
        paths = {event.site.path for event in self.events}
        for k, event in enumerate(self.events):
            if arguments and (event.caller is None or event.caller[0] not in paths):
                continue
            judged = k not in self.runs.forwards and event.site.number not in shared
            judged = judged and last_name(event.name) not in LEARNING_RATES
            if judged and event.value is not None and (event.site.kind == "argument") == arguments:
                found.setdefault(event.site.number, []).append(k)
        return {site: events for site, events in found.items() if len(events) <= REPEATED}

    def _is_known(self, event: Event) -> str:
        """Return what a value is if it is right: a gradient, a value of forward's, a local derivative; else ""."""
        value = np.asarray(event.value, np.float64)
        values = self.runs.values
        if values is None or not says_something(event.value):
            return ""
        if values.is_gradient(
            value, stems(event.name), is_whole=self.last.get((event.site.path, event.name)) is event
        ):
            return "gradient"
        if values.is_value(value):
            return "value"
        return "derivative" if values.is_local_derivative(value) else ""

    def run(self) -> FirstWrong | None:
        """Try what names and numbers suggest, value by value in the order of time; then what else fits, before it."""
        known, suggestions, wrong = self.known, self.suggestions, self.runs.wrong
        unknown = [[k for k in events if not known[k]] for events in self.sites.values()]
        unknown = sorted((events for events in unknown if events), key=lambda events: events[0])
        found = self._first(unknown, suggestions.suggested)
        found = self._first(_before(unknown, found), suggestions.blind) or found
        last = [events[-1:] for events in self.sites.values()]
        found = found or self._first(last, suggestions.returned) or self._first(last, suggestions.updated)
        whole = sorted((list(g) for g in self.sites.values() if len(g) > 1), key=lambda events: events[0])
        if found is not None:  # what is right at first, in a loop, may be where it lacks what is carried
            found = self._first(_before(whole, found), suggestions.entirely, found.mended, found) or found
        if found is not None:  # what a line of it is given may be wrong
            given = [events for events in self._sites(arguments=True).values() if len(events) > 1]
            found = self._first(_before(given, found), suggestions.entirely, found.mended, found) or found
        if found is not None and found.mended < wrong:  # one value may be to blame for all that is wrong
            each = sorted(
                [*([k] for k in known if known[k]), *whole], key=lambda events: (events[0], len(events))
            )
            found = self._first(_before(each, found), suggestions.blind, wrong) or found
        return self._record(found) if found else None

    def _first(
        self,
        groups: list[list[int]],
        propose: Callable[[list[int]], Iterator[Suggestion]],
        least: Set[str] = NOTHING,
        known: _Found | None = None,
    ) -> _Found | None:
        """Return the first events that suggestions prove wrong, for they mend ``least`` at the least, before those known."""
        for events in groups:
            for number, suggestion in enumerate(propose(events)):
                if number == FEW and len(events) == 1 and not self.runs.may_mend(events[0]):
                    break
                if self.runs.left <= 0:
                    return None
                if known is not None and self._first_of(suggestion) >= known.event:
                    continue
                tried = suggestion
                mended = self.runs.mended(tried)
                if (
                    not mended
                    and suggestion.scaled
                    and (scaled := self.runs.rescaled(suggestion)) is not None
                ):
                    tried = scaled
                    mended = self.runs.mended(tried)
                if mended and mended >= least:
                    return _Found(self._first_of(tried), tried, mended)
        return None

    def _first_of(self, suggestion: Suggestion) -> int:
        """Return the first event whose value is another than the right one: a loop begins with what is right."""
        off = (
            k for k, right in suggestion.values.items() if not close(np.asarray(self.events[k].value), right)
        )
        return min(off, default=min(suggestion.values))

    def _record(self, found: _Found) -> FirstWrong:
        worst, suggestion, _ = found
        site = self.events[worst].site
        event, expected = self.events[worst], suggestion.values[worst]
        got = np.asarray(event.value, np.float64)
        entry: tuple[int, ...] = ()
        numbers, factor = (0.0, 0.0), 0.0
        if got.shape == expected.shape:
            off = np.where(np.isfinite(got), np.abs(got - expected), np.inf)
            entry = tuple(int(k) for k in np.unravel_index(int(np.argmax(off)), off.shape))
            numbers = float(got[entry]), float(expected[entry])
            times = factor_between(got, expected)
            if got.size > 1 and close(got, times * expected):  # no multiple of the transpose
                factor = times
        mended = self.runs.run(suggestion.values)
        assert mended is not None
        after = self.runs.recorder.events
        later: dict[str, None] = {}
        right: dict[str, None] = {}
        for k, known in sorted(self.known.items()):
            each = self.events[k]
            shown = f"{each.site.line}: {_own_name(each) or 'return'}"
            if known == "gradient":
                right.setdefault(shown)
            elif (
                k > worst
                and not known
                and len(after) == len(self.events)
                and self._is_known(after[k]) == "gradient"
            ):
                later.setdefault(shown)
        here = f"{site.line}: {_own_name(event) or 'return'}"  # which may be right at another time of a loop
        listed = [each for each in right if each != here]
        right_with_it = (
            name for name in self.runs.right if name in self.runs.wrong and self.runs.is_right(name, mended)
        )
        begin = self.runs.start if worst >= self.runs.start else 0  # a loss may have its gradients in forward
        if event.caller:
            site = replace(site, path=event.caller[0], line=event.caller[1])
        return FirstWrong(
            path=site.path,
            line=site.line,
            source=site.source,
            name=_own_name(event),
            what=suggestion.what,
            mends=tuple(right_with_it),
            later=tuple(each for each in later if each != here and each not in right),
            right=tuple(listed),
            is_early=bool(suggestion.breaks),
            entry=entry,
            got=numbers[0],
            expected=numbers[1],
            factor=factor,
            numbers=RightNumbers(
                expected,
                got,
                self.runs.upstream,
                sum(each.site.number == site.number for each in self.events[begin:worst]),
                event.caller is not None,
            ),
        )
