"""From evidence to findings: every explanation is collected, and the simplest that explains the most is named."""

from __future__ import annotations

from collections.abc import Iterable

from handgrad.checking.diagnosis.edges import at_edges
from handgrad.checking.diagnosis.edited import code_of_edit
from handgrad.checking.diagnosis.guess import Guess
from handgrad.checking.diagnosis.numbers import affine, by_numbers
from handgrad.checking.diagnosis.paths import accumulations, additions, factors, several_left_out, shifted
from handgrad.checking.diagnosis.planted import plant
from handgrad.checking.diagnosis.replayed import replay
from handgrad.checking.diagnosis.slopes import in_layers, in_regions
from handgrad.checking.diagnosis.values import at_values
from handgrad.checking.forward_trace import UntraceableError
from handgrad.checking.numerical.comparison import Evidence
from handgrad.checking.numerical.contract import UPSTREAM, Violation
from handgrad.checking.repair import Repair

PLAIN = 1.1  # the cost of an explanation that none still to come would beat
UNEXPLAINED = 0.4  # what a wrong argument costs that an explanation leaves to another

VIOLATIONS = {
    "mutated": ("stale-or-mutated-state", 0.01),
    "random": ("nondeterministic", 0.0),
    "stale": ("stale-or-mutated-state", 0.02),
    "affine": ("ignores-upstream", 0.15),
    "uneven": ("not-proportional", 2.7),
}


def diagnose(evidence: Evidence, violations: Iterable[Violation], repair: Repair | None) -> list[Guess]:
    """Return the explanations to report, the most telling first; together they cover every wrong argument."""
    guesses = list(_broken(evidence, violations))
    if not any(guess.code == "nondeterministic" for guess in guesses):
        guesses += by_numbers(evidence)
        guesses += _by_planting(evidence)
        guesses += _by_repair(evidence, repair)
    return _cover(guesses, evidence.wrong)


def _by_planting(evidence: Evidence) -> list[Guess]:
    """Plant known mistakes in the trace of forward, where it can be traced."""
    try:
        replays = replay(evidence)
    except UntraceableError:
        return []
    found: list[Guess] = []
    for mistakes, seconds in (
        (at_values(replays), 0.3),
        (accumulations(replays), 0.3),
        (at_edges(replays, loops=True), 0.5),
        (shifted(replays), 0.2),
        (several_left_out(replays), 0.3),
        (at_edges(replays), 0.5),
        (in_regions(replays), 0.8),
        (in_layers(replays), 0.3),
        (additions(replays), 0.2),
        (factors(replays), 0.1),
    ):  # each has its time: a long forward must not leave a kind of mistake untried
        found += plant(replays, mistakes, seconds=seconds) if replays.wrong else []
        if any(guess.cost < PLAIN and set(guess.arguments) >= set(evidence.wrong) for guess in found):
            break
    return found


def _by_repair(evidence: Evidence, repair: Repair | None) -> list[Guess]:
    """Name the mistake that a small repair of the source mends."""
    if repair is None or repair.kind != "edit" or not evidence.wrong:
        return []
    before = repair.path.read_text(encoding=repair.encoding)
    named = code_of_edit(before, repair.text)
    if named is None:
        return []
    code, words, cost = named
    return [Guess(code, evidence.wrong, words, cost)]


def _broken(evidence: Evidence, violations: Iterable[Violation]) -> Iterable[Guess]:
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
        yield Guess(code, arguments, violation.evidence + note, cost)


def _cover(guesses: list[Guess], wrong: tuple[str, ...]) -> list[Guess]:
    """Choose explanations until every wrong argument has one: simple ones first, and those that explain more."""
    ranked = [*guesses, *_joined(guesses)]
    chosen: list[Guess] = []
    left = set(wrong)
    while ranked and (left or not chosen):
        best = min(ranked, key=lambda guess: guess.cost + UNEXPLAINED * len(left - set(guess.arguments)))
        if left and not left & set(best.arguments):
            break
        chosen.append(best)
        left -= set(best.arguments)
        ranked = [guess for guess in ranked if left & set(guess.arguments)]
    return chosen


def _joined(guesses: list[Guess]) -> Iterable[Guess]:
    """Join explanations of one kind for several arguments into one."""
    for code in dict.fromkeys(guess.code for guess in guesses):
        alike = sorted((guess for guess in guesses if guess.code == code), key=lambda guess: guess.cost)
        arguments = tuple(dict.fromkeys(name for guess in alike for name in guess.arguments))
        if len(arguments) > len(alike[0].arguments):
            needed = max(min(g.cost for g in alike if name in g.arguments) for name in arguments)
            words = "; ".join(dict.fromkeys(guess.evidence for guess in alike[:3]))
            yield Guess(code, arguments, words, needed + 0.02 * len(arguments), alike[0].place)
