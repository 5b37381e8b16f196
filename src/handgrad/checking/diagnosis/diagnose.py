"""From evidence to findings: every explanation is collected, and the simplest that explains the most is named."""

from __future__ import annotations

from collections.abc import Iterable

from handgrad.checking.diagnosis.candidate import Diagnosis
from handgrad.checking.diagnosis.gradient_patterns import affine, by_numbers
from handgrad.checking.diagnosis.mutations import by_mutation
from handgrad.checking.repair import Repair
from handgrad.checking.verdict.comparison import Evidence
from handgrad.checking.verdict.contract import UPSTREAM, Violation

PLAIN = 1.1  # the cost of an explanation that no mutation would beat
REPAIRED = (
    1.0  # the cost of a mistake that an edit of a proved repair undoes: what the numbers alone show is nearer
)
SAYS_LITTLE = (
    0.45  # more, where a number or a function was another one, or the edit did not mend all: it may be chance
)
UNEXPLAINED = 0.4  # what a wrong argument costs that an explanation leaves to another

VIOLATIONS = {
    "mutated": ("stale-or-mutated-state", 0.01),
    "random": ("nondeterministic", 0.0),
    "stale": ("stale-or-mutated-state", 0.02),
    "affine": ("ignores-upstream", 0.15),
    "uneven": ("not-proportional", 2.7),
}


def diagnose(evidence: Evidence, violations: Iterable[Violation], repair: Repair | None) -> list[Diagnosis]:
    """Return the explanations to report, the most telling first; together they cover every wrong argument."""
    found = list(_broken(evidence, violations))
    if not any(diagnosis.code == "nondeterministic" for diagnosis in found):
        found += by_numbers(evidence)
        found += by_repair(repair)
        if not any(
            diagnosis.cost < PLAIN and set(diagnosis.arguments) >= set(evidence.wrong) for diagnosis in found
        ):
            found += by_mutation(evidence)
    return _cover(found, evidence.wrong)


def by_repair(repair: Repair | None) -> list[Diagnosis]:
    """Return the mistakes that the small edits of a repair undo."""
    if repair is None:
        return []
    unsure = {one: one.code == "wrong-local-derivative" or repair.kind != "edit" for one in repair.undone}
    return [
        Diagnosis(one.code, one.arguments, one.evidence, REPAIRED + SAYS_LITTLE * unsure[one], one.place)
        for one in repair.undone
    ]


def _broken(evidence: Evidence, violations: Iterable[Violation]) -> Iterable[Diagnosis]:
    """Turn what broke the contract into explanations, placed by the gradients that are wrong."""
    for violation in violations:
        code, cost = VIOLATIONS[violation.kind]
        if violation.kind == "mutated":
            first = evidence.comparisons[0].arguments
            own = (violation.argument,) if violation.argument in first else first[:1]
            arguments = evidence.wrong or own
        else:
            arguments = (violation.argument,)
        if violation.kind in ("affine", "uneven") and violation.argument not in evidence.wrong:
            code = "not-proportional"  # right at upstream gradients of one size
        elif violation.kind == "affine":
            code, cost = affine(evidence, violation.argument)
        note = " (work on a copy)" if violation.argument == UPSTREAM else ""
        yield Diagnosis(code, arguments, violation.evidence + note, cost)


def _cover(diagnoses: list[Diagnosis], wrong: tuple[str, ...]) -> list[Diagnosis]:
    """Choose explanations until every wrong argument has one: simple ones first, and those that explain more."""
    ranked = [*diagnoses, *_joined(diagnoses)]
    chosen: list[Diagnosis] = []
    left = set(wrong)
    while ranked and (left or not chosen):
        best = min(
            ranked, key=lambda diagnosis: diagnosis.cost + UNEXPLAINED * len(left - set(diagnosis.arguments))
        )
        if left and not left & set(best.arguments):
            break
        chosen.append(best)
        left -= set(best.arguments)
        ranked = [diagnosis for diagnosis in ranked if left & set(diagnosis.arguments)]
    return chosen


def _joined(diagnoses: list[Diagnosis]) -> Iterable[Diagnosis]:
    """Join explanations of one kind for several arguments into one."""
    for code in dict.fromkeys(diagnosis.code for diagnosis in diagnoses):
        alike = sorted(
            (diagnosis for diagnosis in diagnoses if diagnosis.code == code),
            key=lambda diagnosis: diagnosis.cost,
        )
        arguments = tuple(dict.fromkeys(name for diagnosis in alike for name in diagnosis.arguments))
        if len(arguments) > len(alike[0].arguments):
            needed = max(min(g.cost for g in alike if name in g.arguments) for name in arguments)
            words = "; ".join(dict.fromkeys(diagnosis.evidence for diagnosis in alike[:3]))
            yield Diagnosis(code, arguments, words, needed + 0.02 * len(arguments), alike[0].place)
