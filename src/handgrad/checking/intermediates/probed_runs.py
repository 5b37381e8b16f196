"""Runs of forward and backward with probes: what passes them, and the gradients with a value exchanged."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from types import FunctionType
from typing import Any

import numpy as np

from handgrad.checking.forward_trace import ForwardTrace, UntraceableError, trace_forward
from handgrad.checking.forward_trace.traced_array import TracedArray
from handgrad.checking.interfaces.tensors import fill, to_numpy
from handgrad.checking.intermediates.probes import Recorder, Site
from handgrad.checking.intermediates.right_values import RightValues, factor_between
from handgrad.checking.intermediates.suggestions import SAME, Suggestion
from handgrad.checking.subject import Array, CheckError, Gradients, Inputs, Subject
from handgrad.tolerance import close

RUNS = 240  # with a value exchanged
MOVED = 1e-3  # relative: how far a value is moved to see what depends on it
EVENTS = 80_000  # that these runs may have together: what loops over numbers is run less often
ENTRIES = 100_000_000  # of the values that they may copy together
FEWEST = 4  # runs
SOME = 0.05  # of the wrong entries of a gradient are right with another's value


class ProbedRuns:
    """One forward and backward at some inputs and upstream gradients, run again and again."""

    def __init__(
        self,
        subject: Subject,
        inputs: Inputs,
        upstream: list[Array],
        right: Gradients,
        recorder: Recorder,
        functions: list[FunctionType],
    ) -> None:
        self.subject, self.inputs, self.upstream, self.right = subject, inputs, upstream, right
        self.recorder, self.left = recorder, RUNS
        self._generator = np.random.default_rng(0)
        trace, seen = self._traced(functions)
        self.recorder.start()
        subject.run_forward(inputs)
        self.start = len(recorder.events)  # of backward's events
        self._observe()
        gradients = self.run({})
        assert gradients is not None
        self.gradients, self.events = gradients, list(recorder.events)
        self.wrong = frozenset(name for name in right if not self.is_right(name, gradients))
        nodes = self._aligned(seen)
        self.values = self._right_values(trace, nodes) if trace is not None else None
        known = set(self.values.of_node) if self.values else set()
        self.forwards = {k for k, node in nodes.items() if node in known}
        entries = sum(event.value.size for event in self.events if isinstance(event.value, np.ndarray))
        each = max(EVENTS // max(1, len(self.events)), FEWEST), max(ENTRIES // max(1, entries), FEWEST)
        self.left = min(RUNS, *each)

    def _aligned(self, seen: list[tuple[Site, Any]]) -> dict[int, Any]:
        """Return the traced values of forward's events; what another library calls besides has none."""
        found: dict[int, Any] = {}
        left = iter(seen)
        site, value = next(left, (None, None))
        for k, event in enumerate(self.events[: self.start]):
            if event.site == site:
                found[k] = value
                site, value = next(left, (None, None))
        return found

    def _right_values(self, trace: ForwardTrace, nodes: dict[int, Any]) -> RightValues | None:
        """Return forward's values and their gradients, where the trace is what forward does, and agrees with the slopes."""
        values = RightValues(trace, self.upstream, [self.events[k] for k in nodes], [*nodes.values()])
        found = {name: values.gradients.get(node) for name, node in trace.inputs.items()}
        return values if all(_agree(found.get(name), self.right[name]) for name in self.wrong) else None

    # ------------------------------------------------------------------------------------------ running

    def _traced(self, functions: list[Any]) -> tuple[ForwardTrace | None, list[tuple[Site, Any]]]:
        """Trace forward; return the trace, and the traced value of each event."""
        recorder, forward = self.recorder, self.subject.forward
        forward = getattr(forward, "on_numpy", None) or forward  # of another library's
        recorder.start()
        recorder.seen, plain = _number, recorder.seen

        def run(given: dict[str, Any]) -> Any:
            return forward(*given.values()) if self.subject.positional else forward(**given)

        trace = None
        with suppress(UntraceableError):
            trace = trace_forward(run, self.inputs, functions)
        recorder.seen = plain
        return trace, [(event.site, event.value) for event in recorder.events] if trace else []

    def _observe(self) -> None:
        """Find out which changes in place are the last of their array."""
        self.recorder.final = set()
        self.run({})
        last = {
            (event.site.number, event.base or event.holder): k
            for k, event in enumerate(self.recorder.events)
            if event.site.kind == "changed"
        }
        self.recorder.final = set(last.values())

    def run(self, exchanged: Mapping[int, Array]) -> Gradients | None:
        """Run forward and backward with values exchanged, and return the gradients."""
        self.left -= 1
        self.recorder.start(exchanged)
        try:
            return self.subject.run_backward(self.upstream, self.inputs)
        except (CheckError, ValueError):
            return None

    def is_right(self, name: str, gradients: Gradients) -> bool:
        """Whether a gradient is right."""
        got, right = gradients[name], self.right[name]
        return got.shape == right.shape and close(got, right, SAME)

    def _wrong_entries(self, name: str, gradients: Gradients) -> Array:
        """Return which entries of a gradient are wrong; all where its shape is another."""
        got, right = gradients[name], self.right[name]
        if got.shape != right.shape:
            return np.ones(right.shape, bool)
        return np.asarray(~(np.abs(got - right) <= SAME * np.abs(right).max(initial=0)))

    def mended(self, suggestion: Suggestion) -> frozenset[str]:
        """Return the gradients that are nearer to right with values exchanged; none where an entry becomes wrong."""
        gradients = self.run(suggestion.values)
        if gradients is None or gradients.keys() != self.gradients.keys():
            return frozenset()
        mended = set()
        for name in self.right.keys() - suggestion.breaks:
            before, after = (self._wrong_entries(name, each) for each in (self.gradients, gradients))
            if np.any(after & ~before) or (suggestion.whole and np.any(after) and np.any(after != before)):
                return frozenset()
            if np.sum(before) - np.sum(after) >= SOME * np.sum(before) > 0:
                mended.add(name)
        return frozenset(mended)

    def may_mend(self, event: int) -> bool:
        """Whether a wrong gradient depends on a value."""
        value = np.asarray(self.events[event].value, np.float64)
        size = MOVED * (np.abs(value).max(initial=0) or 1.0)
        moved = self.run({event: value + size * self._generator.uniform(0.5, 1.0, value.shape)})
        return moved is None or any(
            not np.array_equal(moved[name], self.gradients[name]) for name in self.wrong & moved.keys()
        )

    def rescaled(self, suggestion: Suggestion) -> Suggestion | None:
        """Return the values times the constant with which a wrong gradient is nearest to what is right."""
        once = self.run(suggestion.values)
        twice = self.run({k: 2 * value for k, value in suggestion.values.items()})
        for name in self.wrong if once and twice else ():
            assert once is not None
            assert twice is not None
            if not once[name].shape == twice[name].shape == self.right[name].shape or once[name].size == 1:
                continue  # one number is a constant times any other
            step, missing = twice[name] - once[name], self.right[name] - once[name]
            factor = factor_between(missing, step)
            if factor:
                values = {k: (1 + factor) * value for k, value in suggestion.values.items()}
                return suggestion._replace(values=values)
        return None


def _agree(found: Array | None, right: Array) -> bool:
    return found is not None and close(found, right)


def _number(value: Any) -> int | None:
    """Return the number of a traced value."""
    array = to_numpy(value)
    if type(array) is not TracedArray:
        return None
    if type(value) is list:  # what is computed from it has the array behind it
        fill(value, array)
    return array.index()
