"""Mistakes seen in backward's whole matrix beside the right one: no look into forward, for when that cannot be had."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from handgrad.checking.diagnosis.candidate import Diagnosis, nearer
from handgrad.checking.subject import Array, CheckError
from handgrad.checking.verdict.comparison import Evidence, NumericalGradient
from handgrad.finite_differences import NumericalJacobian
from handgrad.tolerance import close

MOST_OUTPUTS = 128  # for each of which backward runs once
LARGEST = 65_536  # entries of the matrix
LAST = 3.1  # what the kind of the wrong entries costs: everything else is nearer
MIXED = 2.5  # where backward mixes what forward keeps apart, and the rest suffers from it

# which entries are wrong -> (code, words): there, lacking, not to be there, or some of each
KINDS = {
    (True, False, False): ("", "are of another size"),
    (False, True, False): ("missing-term", "are missing"),
    (True, True, False): ("missing-term", "are missing or of another size"),
    (False, False, True): ("wrong-axis", "should be zero: forward keeps apart what is mixed there"),
    (True, False, True): ("wrong-axis", "should be zero, or are of another size"),
    (False, True, True): ("wrong-axis", "are at the wrong places"),
    (True, True, True): ("wrong-axis", "are at the wrong places"),
}


def by_jacobian(argument: str, evidence: Evidence) -> Iterator[Diagnosis]:
    """Compare what backward hands on from each output to each entry of an argument with what it should."""
    numerical = evidence.comparisons[0].numerical
    right = _right(argument, numerical)
    given = _given(argument, evidence, numerical) if right is not None else None
    if right is None or given is None:
        return
    if right.shape[0] == right.shape[1] > 1:
        words = f"from the output to d{argument}"
        if close(given, right.T) and nearer(right.T, given, right):
            yield Diagnosis(
                "transposed", (argument,), f"the Jacobian is used {words}, not its transpose", 1.3
            )
        if close(given, diagonal := np.diag(np.diag(right))) and nearer(diagonal, given, right):
            yield Diagnosis(
                "missing-term", (argument,), f"of the Jacobian only the diagonal is used {words}", 1.15
            )
        if close(given, unit := np.eye(len(given))) and nearer(unit, given, right):
            words = f"the upstream gradient is handed on {words} as it is"
            yield Diagnosis("missing-local-derivative", (argument,), words, 1.25)  # a path left out says more
    yield _by_kind(argument, given, right)


def _by_kind(argument: str, given: Array, right: Array) -> Diagnosis:
    """Name the kind of mistake by which entries of the matrix are wrong."""
    tiny = 1e-7 * float(np.abs(right).max(initial=0))
    there, used = np.abs(right) > tiny, np.abs(given) > tiny
    wrong = np.abs(given - right) > tiny
    kind = bool(np.any(wrong & there & used)), bool(np.any(wrong & ~used)), bool(np.any(wrong & ~there))
    code, words = KINDS.get(kind, ("", "are of another size"))
    # entry by entry there is one slope to be wrong; elsewhere several paths meet, and one differs
    entrywise = min(right.shape) > 1 and (there | used).sum(axis=1).max() <= 1
    if entrywise and kind[2] and not kind[1]:
        code, words = (
            "missing-local-derivative",
            "should be zero: what stops them forward does not stop them backward",
        )
    code = code or ("wrong-local-derivative" if entrywise else "missing-term")
    words = f"{int(wrong.sum())} of {wrong.size} slopes from d{argument} to the output {words}"
    return Diagnosis(
        code, (argument,), words, MIXED if code == "wrong-axis" and kind == (True, False, True) else LAST
    )


def _right(argument: str, numerical: NumericalGradient) -> Array | None:
    """Return the right matrix, a row for each output; None where it is not known or has kinks."""
    jacobian = numerical.jacobians[argument]
    if (
        not isinstance(jacobian, NumericalJacobian)
        or jacobian.low.size > LARGEST
        or len(jacobian.low) > MOST_OUTPUTS
    ):
        return None
    return None if jacobian.kinks.any() else np.asarray((jacobian.low + jacobian.high) / 2, np.float64)


def _given(argument: str, evidence: Evidence, numerical: NumericalGradient) -> Array | None:
    """Return backward's matrix, or None where it is not linear in the upstream gradient."""
    sizes = np.cumsum([output.size for output in numerical.outputs])

    def rows(upstream: Array) -> Array:
        parts = np.split(upstream, sizes[:-1])
        shaped = [part.reshape(output.shape) for part, output in zip(parts, numerical.outputs, strict=True)]
        return evidence.subject.run_backward(shaped, numerical.exact)[argument].astype(float).ravel()

    try:
        matrix = np.array([rows(row) for row in np.eye(sizes[-1])])
    except (CheckError, KeyError, ValueError):
        return None
    sample = evidence.comparisons[0].samples[0]
    upstream = np.concatenate([part.ravel() for part in sample.upstream])
    got = np.asarray(sample.got[argument], float).ravel()
    return matrix if matrix.ndim == 2 and close(upstream @ matrix, got) else None
