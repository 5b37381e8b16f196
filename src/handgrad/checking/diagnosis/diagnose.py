"""From evidence to findings: every explanation is collected, and the simplest that explains the most is named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from handgrad.checking.diagnosis.gradient_patterns import affine, by_numbers
from handgrad.checking.diagnosis.local_mutations import by_local_mutation
from handgrad.checking.diagnosis.mutations import by_mutation
from handgrad.checking.intermediates import FirstWrong
from handgrad.checking.mistakes import Diagnosis
from handgrad.checking.repair import Repair
from handgrad.checking.verdict.comparison import Evidence
from handgrad.checking.verdict.contract import UPSTREAM, Violation

NUMBERS = 0.6  # the cost of a relation of whole gradients that no mistake at one place would beat
PLAIN = 1.1  # the cost of an explanation that no mutation would beat
REPAIRED = 1.0  # the cost of what an edit of a proved repair undoes: what the numbers alone show is nearer
EXCHANGED = 0.4  # less, where it exchanges all that is wrong: a name for one gradient of two is further off
BY_CHANCE = 0.45  # more, where a number or a function was another one, or the edit did not mend all
UNEXPLAINED = 0.4  # what a wrong argument costs that an explanation leaves to another
ALSO = 0.02  # for each argument of an explanation that is joined from several

OF_A_FORMULA = ("extra-term", "wrong-local-derivative")  # what an edit of more than a name undoes
UNEVEN = "not-proportional"
SIGNS = {
    "overwritten-not-accumulated": ("zero-gradient",),
    "swapped-gradients": ("zero-gradient",),
    "dtype-or-overflow": ("zero-gradient", "missing-term"),
}
"""What the numbers alone may call a mistake that a repair shows to be another."""

VIOLATIONS = {
    "mutated": ("stale-or-mutated-state", 0.01),
    "random": ("nondeterministic", 0.0),
    "stale": ("stale-or-mutated-state", 0.02),
    "affine": ("ignores-upstream", 0.15),
    "uneven": (UNEVEN, 2.7),
    "squared": ("extra-term", 1.3),
    "tied": ("extra-term", 0.5),
}


def by_evidence(evidence: Evidence, violations: Iterable[Violation]) -> list[Diagnosis]:
    """Return the explanations that need no look at backward's source."""
    found = list(_broken(evidence, violations))
    if not _is_random(found):
        found += by_numbers(evidence)
        if not _is_explained(found, evidence, NUMBERS):
            found += by_local_mutation(evidence)
    return found


def by_first_wrong(first: FirstWrong | None) -> list[Diagnosis]:
    """Return what the first wrong value shows: an update before the error has passed it."""
    if first is None or not first.is_early:
        return []
    words = f"{first.name} is not {first.what}"
    return [Diagnosis("stale-or-mutated-state", first.mends, words, place="backward")]


def diagnose(evidence: Evidence, known: list[Diagnosis], repair: Repair | None) -> list[Diagnosis]:
    """Return the explanations to report, the most telling first: those known, and what a repair and mutations tell."""
    undone = {one.code for one in repair.undone} if repair else set()
    signs = {sign for code in undone for sign in SIGNS.get(code, ())}
    known = [each for each in known if each.code not in signs]
    found = [*known, *(by_repair(repair, evidence, known) if repair and not _is_random(known) else ())]
    if not _is_random(known) and not _is_explained(found, evidence, PLAIN):
        found += by_mutation(evidence)
    return [_as_repaired(each, undone) for each in cover(found, evidence.wrong)]


def _as_repaired(diagnosis: Diagnosis, undone: set[str]) -> Diagnosis:
    """Return a diagnosis under the name, of two that are fair, that the repair has."""
    if diagnosis.alternative not in undone or diagnosis.code in undone:
        return diagnosis
    return replace(diagnosis, code=diagnosis.alternative, alternative=diagnosis.code)


def _is_random(found: list[Diagnosis]) -> bool:
    """Whether backward draws random numbers: what it returns once says nothing more."""
    return any(diagnosis.code == "nondeterministic" for diagnosis in found)


def _is_explained(found: list[Diagnosis], evidence: Evidence, cost: float) -> bool:
    """Whether an explanation of less than some cost covers all that is wrong."""
    plain = (each for each in (*found, *_joined(found)) if each.cost < cost)
    return any(set(each.arguments) >= set(evidence.wrong) for each in plain)


def by_repair(repair: Repair, evidence: Evidence, known: Sequence[Diagnosis] = ()) -> Iterator[Diagnosis]:
    """Yield the mistakes that the small edits of a repair undo.

    In a gradient of another shape, the shape says most. What one edit leaves out, and with it all that made the gradient
    not proportional to the upstream gradient, was a function of that: it clipped, rounded or normalised.
    """
    uneven = [each for each in known if each.code == UNEVEN] if len(repair.undone) == 1 else []
    for one in repair.undone:
        pairs = (pair for name in one.arguments for pair in evidence.pairs(name))
        fits = all(got.shape == right.shape for got, right in pairs)
        if one.code == "wrong-local-derivative" and not fits:
            one = replace(one, code="wrong-shape")
        elif (
            one.code == "broadcast-not-summed" and fits
        ):  # within a formula, the sum's other terms are missing
            one = replace(one, alternative="missing-term")
        elif one.code in OF_A_FORMULA and uneven:
            one = replace(one, code=UNEVEN, evidence=f"{uneven[0].evidence}: {one.evidence}")
        unsure = one.code == "wrong-local-derivative" or repair.kind != "edit"
        exchanged = one.code == "swapped-gradients" and set(one.arguments) >= set(evidence.wrong)
        yield replace(one, cost=REPAIRED + BY_CHANCE * unsure - EXCHANGED * exchanged)


def _broken(evidence: Evidence, violations: Iterable[Violation]) -> Iterator[Diagnosis]:
    """Turn what broke the contract into explanations, placed by the gradients that are wrong."""
    for violation in violations:
        code, cost = VIOLATIONS[violation.kind]
        arguments: tuple[str, ...] = (violation.argument,)
        if violation.kind == "mutated":
            first = evidence.comparisons[0].arguments
            arguments = evidence.wrong or (arguments if violation.argument in first else first[:1])
        elif violation.kind in ("affine", "uneven") and violation.argument not in evidence.wrong:
            code = UNEVEN  # right at upstream gradients of one size
        elif violation.kind == "affine":
            code, cost = affine(evidence, violation.argument)
        note = " (work on a copy)" if violation.argument == UPSTREAM else ""
        yield Diagnosis(code, arguments, violation.evidence + note, cost)


def cover(diagnoses: list[Diagnosis], wrong: tuple[str, ...]) -> list[Diagnosis]:
    """Choose explanations until every wrong argument has one: simple ones first, and those that explain more."""
    ranked = [*diagnoses, *_joined(diagnoses)]
    chosen: list[Diagnosis] = []
    left = set(wrong)
    while ranked and (left or not chosen):
        best = min(ranked, key=lambda each: each.cost + UNEXPLAINED * len(left - set(each.arguments)))
        if left and not left & set(best.arguments):
            break
        chosen.append(best)
        left -= set(best.arguments)
        ranked = [diagnosis for diagnosis in ranked if left & set(diagnosis.arguments)]
    return chosen


def _joined(diagnoses: list[Diagnosis]) -> Iterator[Diagnosis]:
    """Join explanations of one kind for several arguments into one."""
    for code in dict.fromkeys(diagnosis.code for diagnosis in diagnoses):
        alike = sorted((each for each in diagnoses if each.code == code), key=lambda each: each.cost)
        arguments = tuple(dict.fromkeys(name for each in alike for name in each.arguments))
        if len(arguments) > len(alike[0].arguments):
            needed = max(min(each.cost for each in alike if name in each.arguments) for name in arguments)
            words = "; ".join(dict.fromkeys(each.evidence for each in alike[:3]))
            yield Diagnosis(code, arguments, words, needed + ALSO * len(arguments), alike[0].place)
