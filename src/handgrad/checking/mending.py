"""From a wrong gradient to a repair of the user's source that is shown to be right."""

from __future__ import annotations

import numpy as np

from handgrad.checking.contract import breaches
from handgrad.checking.diagnosis import Evidence
from handgrad.checking.repair import Goal, Hint, Repair, SourceError, repair
from handgrad.checking.subject import CheckError, Subject
from handgrad.checking.verdict import Sample, judge
from handgrad.checking.writing import write_gradient


def mend(evidence: Evidence, *, budget_s: float) -> Repair | None:
    """Return a proved repair of the backward's source, or None when none was found or there is no source.

    Proved means: right at the user's inputs and at fresh ones, for several upstream gradients, and under the
    whole contract.
    """
    expected = evidence.expectations[0]
    sample = _failing(evidence)
    goal = Goal(
        inputs=expected.exact,
        upstream=sample.upstream,
        right={name: sample.middle(name) for name in sample.got},
        slack={name: _slack(sample, name) for name in sample.got},
    )
    recording = evidence.recording
    hint = Hint(write=lambda names: write_gradient(recording, names) if recording is not None else None)
    try:
        return repair(
            evidence.subject, goal, lambda candidate: proves(candidate, evidence), hint, budget_s=budget_s
        )
    except SourceError:
        return None


def proves(candidate: Subject, evidence: Evidence) -> bool:
    """Whether another backward is right wherever the wrong one was judged, and keeps the contract."""
    try:
        for expected in evidence.expectations:
            judgement = judge(candidate, expected)
            if judgement.wrong:
                return False
        return not breaches(candidate, expected.exact, judgement.samples[0])
    except CheckError:
        return False


def _failing(evidence: Evidence) -> Sample:
    """Return the sample at the user's inputs that shows the mistake best."""
    samples = evidence.judgements[0].samples
    return max(samples, key=lambda sample: sum(int(sample.wrong(name).sum()) for name in evidence.wrong))


def _slack(sample: Sample, name: str) -> np.ndarray:
    gap = (sample.high[name] - sample.low[name]) / 2
    return np.asarray(sample.tolerance[name] + np.abs(gap), np.float64)
