"""From a wrong gradient to a repair of the user's source that is shown to be right."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from handgrad.checking.gradient_code import write_gradient
from handgrad.checking.numerical.comparison import Evidence, GradientSample, compare
from handgrad.checking.numerical.contract import violations
from handgrad.checking.repair.elsewhere import Elsewhere
from handgrad.checking.repair.search import Hint, Repair, repair
from handgrad.checking.repair.source import SourceError
from handgrad.checking.repair.trial import Goal
from handgrad.checking.subject import CheckError, Subject

DRAWS_TRIED = 2  # at which a repair is looked for, with half the effort at the second


def mend(evidence: Evidence, *, budget_s: float) -> Repair | None:
    """Return a proved repair of the backward's source, or None when none was found or there is no source.

    Proved means: right at the user's inputs and at fresh ones, for several upstream gradients, and under the
    whole contract.
    """
    recording, elsewhere = evidence.recording, Elsewhere(evidence)

    def prove(candidate: Subject) -> bool:
        return proves(candidate, evidence) and elsewhere.holds(candidate, elsewhere.draws)

    hint = Hint(
        write=lambda names: write_gradient(recording, names) if recording is not None else None,
        any_size=lambda candidate: elsewhere.holds(candidate, elsewhere.sizes),
    )
    for goal in islice(_goals(evidence), DRAWS_TRIED):
        try:
            found = repair(evidence.subject, goal, prove, hint, budget_s=budget_s)
        except SourceError:
            return None
        if found is not None:
            return found
        budget_s /= 2
    return None


def _goals(evidence: Evidence) -> Iterator[Goal]:
    """Yield the draws at which backward is wrong, the user's inputs first: one may hide what another shows."""
    for comparison in evidence.comparisons:
        sample = max(comparison.samples, key=lambda sample: _wrong_entries(sample, comparison.wrong))
        if comparison.wrong or comparison is evidence.comparisons[0]:
            yield Goal(
                inputs=sample.inputs,
                upstream=sample.upstream,
                right={name: sample.expected(name) for name in sample.got},
                slack={name: _slack(sample, name) for name in sample.got},
            )


def proves(candidate: Subject, evidence: Evidence) -> bool:
    """Whether another backward is right wherever the wrong one was judged, and keeps the contract."""
    try:
        for known in evidence.comparisons:
            comparison = compare(candidate, known.numerical)
            if comparison.wrong:
                return False
        return not violations(candidate, comparison.samples[0])
    except CheckError:
        return False


def _wrong_entries(sample: GradientSample, arguments: tuple[str, ...]) -> int:
    return sum(int(sample.wrong(name).sum()) for name in arguments)


def _slack(sample: GradientSample, name: str) -> np.ndarray:
    bounds = sample.bounds[name]
    return np.asarray(bounds.tolerance + np.abs(bounds.high - bounds.low) / 2, np.float64)
