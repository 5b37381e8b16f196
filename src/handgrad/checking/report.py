"""What a check found, did, and does not prove, as plain data: for a terminal, a notebook, and machines."""

from __future__ import annotations

import html
import inspect
import json
import math
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from handgrad.checking.intermediates import FirstWrong
from handgrad.checking.mistakes import MISTAKES
from handgrad.checking.subject import Array, Inputs, Subject
from handgrad.checking.verdict.comparison import Comparison, NumericalGradient
from handgrad.checking.verdict.directional import DirectionalCheck
from handgrad.errors import DataError
from handgrad.finite_differences import NumericalJacobian
from handgrad.notebook_html import HTMLReprMixin
from handgrad.tolerance import DIGITS, EPS, rounding_error

if TYPE_CHECKING:
    from handgrad.checking.repair import Repair

Verdict = Literal["right", "right, but", "wrong", "cannot tell"]

SCREEN = 23  # lines, and one for the prompt
LEVELS = 5  # of leaving something out, from nothing on
MANY = 3  # gradients that have a line each where there is little room
MORE = "  there is more: handgrad check --verbose, or report.text(full=True)"
NUMBERS = ("got", "expected", "relative_error", "error_bound")


@dataclass(frozen=True)
class Finding:
    """One mistake.

    Attributes
    ----------
    code
        Its name in the vocabulary, `handgrad.checking.MISTAKES`.
    argument
        The input whose gradient is wrong.
    evidence
        What the numbers show.
    repair
        What to do: a diff that was proved, or a suggestion.
    proved
        Whether the repaired function was checked and is right.
    also
        Other inputs whose gradients are wrong for the same reason.
    place
        Where in the user's forward or backward, ``"case.py:12: a = sig(x @ W)"``, or "".
    entry, got, expected
        The worst entry: its index, backward's number and the right one.
    relative_error, error_bound
        How far it is off, and what of that could be rounding; both relative to what adds up to the entry.
    alternative
        The code of another name that is as fair, or "".
    any_size
        Whether the repair is right at inputs of other sizes too, as far as forward takes them.
    is_fresh
        Whether the repair was proved at other inputs than those that were given.
    """

    code: str
    argument: str
    evidence: str
    repair: str = ""
    proved: bool = False
    also: tuple[str, ...] = ()
    place: str = ""
    entry: tuple[int, ...] = ()
    got: float = 0.0
    expected: float = 0.0
    relative_error: float = 0.0
    error_bound: float = 0.0
    any_size: bool = True
    is_fresh: bool = True
    alternative: str = ""

    @property
    def title(self) -> str:
        """What kind of mistake it is, in a few words."""
        return MISTAKES[self.code].title


@dataclass(frozen=True)
class ArgumentResult:
    """What was found about one gradient.

    Attributes
    ----------
    name, shape
        Of the input.
    verdict
        Its own.
    relative_error, error_bound
        Of its worst entry; infinite where that is, and not a number where the shape is another.
    """

    name: str
    shape: tuple[int, ...]
    verdict: Verdict
    relative_error: float
    error_bound: float


@dataclass(frozen=True)
class Report(HTMLReprMixin):
    """Whether a hand-written gradient is right; what is wrong with it, where, and how to mend it.

    Attributes
    ----------
    subject
        What was checked.
    verdict
        "right", "wrong" or "cannot tell"; or "right, but", where the mathematics is right and something else is not,
        which ``reason`` states: a contract is broken, a constant rounded, the gradient clipped, or right for float32 only.
    findings
        The most telling first.
    arguments
        One result for each gradient.
    tried
        What was done to find out.
    not_proved
        What a pass does not prove, and what would let the checker tell.
    reason
        What the verdict does not say by itself, or "".
    stopped
        Why the search for the mistake and a repair ended early: it was interrupted, or took too long; or "".
    first_wrong
        The first line of a wrong backward that is wrong, where one is proved.
    seconds, verdict_seconds
        How long it took, and how long until the verdict.
    mended
        The proved repair as a new text of the user's file, when there is one; it is not part of the JSON.
    """

    subject: str
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    arguments: tuple[ArgumentResult, ...] = ()
    tried: tuple[str, ...] = ()
    not_proved: tuple[str, ...] = ()
    reason: str = ""
    stopped: str = ""
    seconds: float = field(default=0.0, compare=False)
    verdict_seconds: float = field(default=0.0, compare=False)
    first_wrong: FirstWrong | None = None
    mended: Repair | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int = 100, *, full: bool = False) -> str:
        """Return the report for people, in lines of at most ``width`` columns; code and diffs keep theirs.

        It fits a screen of 24 lines, unless it is to be ``full``.
        """
        return "\n".join(_lines(self, width, full=full))

    def _repr_html_(self) -> str:
        shades = {"green": "#1c8739", "red": "#d9342b", "yellow": "#987000"}  # legible on white and on black
        lines = []
        for line in _lines(self, 100, full=True):
            before, marked, after, colour = coloured_parts(line)
            middle = f'<span style="color:{shades[colour]}">{html.escape(marked)}</span>' if marked else ""
            lines.append(html.escape(before) + middle + html.escape(after))
        text = "\n".join(lines)
        return f'<pre style="white-space:pre-wrap">{text}</pre>'

    def to_json(self) -> str:
        """Return the report as one JSON object; numbers that JSON does not have are "nan", "inf" and "-inf"."""
        table = asdict(replace(self, mended=None))
        del table["mended"]
        first = [table["first_wrong"]] if self.first_wrong else []
        for part in first:
            del part["numbers"]
        for part in (*table["findings"], *table["arguments"], *first):
            for name, value in part.items():
                if isinstance(value, float) and not math.isfinite(value):
                    part[name] = str(value)
        return json.dumps(table, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Read what `to_json` wrote; raises `DataError` when it is something else."""
        try:
            table: dict[str, Any] = json.loads(text)
            findings = tuple(Finding(**_read(one, ("also", "entry"))) for one in table.pop("findings"))
            arguments = tuple(ArgumentResult(**_read(one, ("shape",))) for one in table.pop("arguments"))
            first = table.pop("first_wrong", None)
            lists = ("entry", "mends", "later", "right")
            first_wrong = FirstWrong(**_read(first, lists)) if first is not None else None
            table |= {name: tuple(table[name]) for name in ("tried", "not_proved")}
            return cls(findings=findings, arguments=arguments, first_wrong=first_wrong, **table)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError(f"not a report: {error}") from None


COLOURS: dict[Verdict, str] = {
    "right": "green",
    "right, but": "yellow",
    "wrong": "red",
    "cannot tell": "yellow",
}


def coloured_parts(line: str) -> tuple[str, str, str, str]:
    """Split a line of a report into what comes before its coloured part, that, what comes after, and the colour.

    Examples
    --------
    >>> coloured_parts("backward: right")
    ('backward: ', 'right', '', 'green')
    """
    for verdict, colour in COLOURS.items():
        if line.startswith(f"  {verdict}  "):
            return "  ", verdict, line[2 + len(verdict) :], colour
        if line.endswith(f": {verdict}"):
            return line.removesuffix(verdict), verdict, "", colour
    changed = {"      +": "green", "      -": "red"}.get(line[:7], "")
    return ("", line, "", changed) if changed else (line, "", "", "")


def _read(table: dict[str, Any], tuples: tuple[str, ...]) -> dict[str, Any]:
    """Return a part of a report's JSON with its tuples, and with its numbers that are no JSON."""
    numbers = {name: float(table[name]) for name in NUMBERS if name in table}
    return {**table, **numbers, **{name: tuple(table[name]) for name in tuples}}


def _lines(report: Report, width: int, *, full: bool) -> list[str]:
    """Return a report as lines of text: all of it, or as much as fits a screen."""
    lines = _at_level(report, width, 0)
    for level in range(1, LEVELS):
        if full or len(lines) <= SCREEN:
            return lines
        lines = [*_at_level(report, width, level), "", MORE]
    return lines if len(lines) <= SCREEN else [*lines[: SCREEN - 1], MORE]


def _at_level(report: Report, width: int, level: int) -> list[str]:
    """Return a report as lines of text, of which a higher level leaves out more."""
    verdict = f"{report.subject}: {report.verdict}"
    lines = textwrap.wrap(verdict, max(width, len(verdict)))
    lines += textwrap.wrap(report.reason, width, initial_indent="  ", subsequent_indent="  ")
    lines += _argument_lines(report, width, level)
    if report.first_wrong is not None:
        lines += ["", *_first_wrong_lines(report.first_wrong, width)[: 2 if level >= LEVELS - 1 else None]]
    for number, finding in enumerate(report.findings):
        found = _finding_lines(finding, width, level)
        lines += ["", *found] if number == 0 or level < 2 else found[:1]
    if report.stopped:
        lines += ["", f"  {report.stopped}: the search for the mistake and its repair is not complete"]
    elif report.verdict == "wrong" and not report.findings:
        lines += ["", "  no known mistake explains it; look at the worst entries above"]
    if report.verdict != "wrong":
        unknown = "what is not known" if report.verdict == "cannot tell" else "what this does not prove"
        lines += _notes("tried", report.tried if level < 1 else (), width)
        lines += _notes(unknown, report.not_proved if level < 2 else report.not_proved[:3], width)
    return lines


def _argument_lines(report: Report, width: int, level: int) -> list[str]:
    """Return a line for each gradient; at higher levels those that are right share one."""
    shown = [each for each in report.arguments if level < 2 or each.verdict != "right"]
    names = [f"d{result.name} {result.shape}" for result in shown]
    longest = max(map(len, names), default=0)
    lines = [
        f"  {result.verdict:<11}  {name:<{longest}}  {_numbers(result)}"
        for name, result in zip(names, shown, strict=True)
    ]
    if level >= 2 and len(lines) > MANY:
        rest = ", ".join(f"d{result.name}" for result in shown[MANY:])
        lines[MANY:] = textwrap.wrap(f"{shown[0].verdict:<11}  {rest}", width, initial_indent="  ")[:1]
    if right := [f"d{each.name}" for each in report.arguments if each not in shown]:
        lines += textwrap.wrap(f"right        {', '.join(right)}", width, initial_indent="  ")[:1]
    return lines


def _first_wrong_lines(first: FirstWrong, width: int) -> list[str]:
    """Return the first wrong line with the author's source, what is wrong in it, and what follows from it."""
    lines = [f"  first wrong line: {first.where}"]
    index = f"[{', '.join(map(str, first.entry))}]" if first.entry else ""
    numbers = f"; {first.name or 'its entry '}{index} is {first.got:.7g}, expected {first.expected:.7g}"
    said = [
        (
            "wrong",
            f"{first.name or 'what it returns'} is not {first.what}{numbers * (first.got != first.expected)}",
        )
    ]
    said += [("follows", f"only because of it: {', '.join(first.later)}")] if first.later else []
    said += [("right", f"{', '.join(first.right)}")] if first.right else []
    for title, words in said:
        lines += textwrap.wrap(words, width, initial_indent=f"    {title:<10}", subsequent_indent=" " * 14)
    return lines


def _notes(title: str, notes: tuple[str, ...], width: int) -> list[str]:
    lines = ["", f"  {title}"] if notes else []
    for note in notes:
        first, *more = note.splitlines()  # an error's has several
        lines += textwrap.wrap(first, width, initial_indent="    - ", subsequent_indent=" " * 6)
        for line in map(str.strip, more):
            lines += textwrap.wrap(line, width, initial_indent=" " * 6, subsequent_indent=" " * 13)
    return lines


def _numbers(result: ArgumentResult) -> str:
    if not math.isfinite(result.relative_error):
        return "of another shape" if math.isnan(result.relative_error) else "not finite"
    error = f"{result.relative_error:.0e}" if result.relative_error else "0"
    return f"relative error {error}, error bound {result.error_bound:.0e}"


def _finding_lines(finding: Finding, width: int, level: int) -> list[str]:
    also = f", and {', '.join('d' + name for name in finding.also)} with it" if finding.also else ""
    either = f", or {finding.alternative}," if finding.alternative else ""
    lines = [f"  {finding.code}{either} in d{finding.argument}{also}"]
    said = [("what", finding.title)] * (level < 1) + [("evidence", finding.evidence)]
    if level < 3 and finding.got != finding.expected and not finding.relative_error <= finding.error_bound:
        index = f"[{', '.join(map(str, finding.entry))}]" if finding.entry else ""
        digits = 7 if f"{finding.got:.7g}" != f"{finding.expected:.7g}" else 17
        numbers = f"got {finding.got:.{digits}g}, expected {finding.expected:.{digits}g}"
        said.append(("worst", f"d{finding.argument}{index}: {numbers}"))
    said += [("place", finding.place)] if finding.place and level < 3 else []
    said += [("shows", MISTAKES[finding.code].shows)] * (level < 1) + [("why", MISTAKES[finding.code].why)]
    for title, words in said:
        lines += textwrap.wrap(words, width, initial_indent=f"    {title:<10}", subsequent_indent=" " * 14)
    if finding.repair:
        sizes = "" if finding.any_size else "; at these sizes only, it is wrong at others"
        where = "on fresh inputs" if finding.is_fresh else "at the inputs that were given only"
        proof = f"proved {where}{sizes}" if finding.proved else "a suggestion, not proved"
        lines.append(f"    repair    {proof}")
        diff = finding.repair.splitlines()
        changed = [line for line in diff[2:] if line[:1] in "+-@"]
        lines += [f"      {line}" for line in (diff if level < 3 else [diff[1], *changed])]
    return lines


# ------------------------------------------------------------------ what was done, and what it does not prove


def tried(numerical: NumericalGradient) -> Iterator[str]:
    """Yield what was done to find out."""
    ways: dict[str, list[str]] = {"": []}
    for name, jacobian in numerical.jacobians.items():
        way = jacobian.description if isinstance(jacobian, DirectionalCheck) else ""
        ways.setdefault(way, []).append(name)
    if every := ways.pop(""):
        digits = np.finfo(numerical.outputs[0].dtype).precision
        yield f"the numerical gradient of forward, from both sides, at {_entries(every, numerical)}, in {digits} digits"
    for way, names in ways.items():
        yield f"{_entries(names, numerical)}, {way}"
    yield f"{len(numerical.upstreams)} upstream gradients of both signs"
    yield "the contract: no argument is changed, the same gradient when called again, linear in the upstream gradient"


def not_proved(subject: Subject, comparison: Comparison) -> Iterator[str]:
    """Yield what a pass does not prove."""
    numerical = comparison.numerical
    for name, why in comparison.doubtful.items():
        yield f"d{name}: {why}"
    for name, confirmed in comparison.mistrusted.items():
        if confirmed:
            yield (
                f"the slopes of forward cannot be trusted in {name}: it swings within a step; d{name} was compared with "
                "the chain rule over a trace of forward, which slopes at far shorter steps confirm"
            )
    ignored = [name for name in subject.differentiable if name not in comparison.arguments]
    if ignored:
        yield f"backward returns no {_listed([f'd{name}' for name in ignored])}, and none was checked"
    if whole := subject.whole_numbers(numerical.upstreams[0]):
        gradients = _listed([f"d{name}" for name in whole])
        yield f"{_listed(whole)} came as whole numbers, and no {gradients} was checked; give {whole[0]}.astype(float)"
    for name in comparison.arguments:
        if name not in comparison.doubtful and name not in comparison.wrong:
            yield from _about_gradient(name, comparison)
    for name, value in numerical.inputs.items():
        yield from _about_input(name, value)
    yield from _about_pairs(numerical.inputs)
    yield from _about_defaults(subject)
    if any(np.any(numerical.inputs[name] != subject.inputs[name]) for name in subject.differentiable):
        yield (
            "the gradient was compared with the inputs perturbed by a thousandth, where no kinks meet; at the inputs "
            "themselves, only that it is finite"
        )
    given, made = rounding_error(*subject.inputs.values()), rounding_error(*numerical.outputs)
    if max(given, made) > EPS:
        what, eps = ("the inputs have", given) if given > EPS else ("forward's output has", made)
        yield f"{what} few digits: relative errors below {eps**DIGITS:.0e} are not seen; float64 shows them"


def _about_gradient(name: str, comparison: Comparison) -> Iterator[str]:
    samples, jacobian = comparison.samples, comparison.numerical.jacobians[name]
    if comparison.samples[0].inputs[name].size == 0:
        yield f"{name} is empty, and so is d{name}"
    elif all(np.all(np.abs(sample.got[name]) <= sample.bounds[name].tolerance) for sample in samples):
        yield f"d{name} is zero everywhere: a backward that cuts its path would pass too; give inputs at which {name} matters"
    if hidden := _hidden(name, comparison):
        entries = "1 entry" if hidden == 1 else f"{hidden} entries"
        yield f"{entries} of d{name} cannot be told to a hundredth: forward is too coarse there, or others are too large"
    if isinstance(jacobian, NumericalJacobian) and (kinks := int(jacobian.kinks.sum())):
        stand = "entry is" if kinks == 1 else "entries are"
        yield f"{kinks} {stand} at a kink in {name}: every value between the derivatives of the two sides is right there"


def _hidden(name: str, comparison: Comparison) -> int:
    """Count the entries whose error bound is above a hundredth of themselves, for every upstream gradient.

    What is a billion times smaller than the largest is rounding, and is not counted.
    """
    hidden = []
    for sample in comparison.samples:
        size = np.abs(sample.expected(name))
        hidden.append((sample.bounds[name].tolerance > 0.01 * size) & (size > 1e-9 * size.max(initial=0)))
    return int(np.sum(np.all(hidden, axis=0)))


def _about_input(name: str, value: Array) -> Iterator[str]:
    real = value.dtype.kind == "f"
    square = real and value.ndim >= 2 and value.shape[-1] == value.shape[-2] > 1
    if square and np.array_equal(value, np.swapaxes(value, -1, -2)):
        yield f"{name} is symmetric: a missing transpose of it would not show; give another {name}"
    elif value.size > 1 and np.all(value == value.flat[0]):  # a mask too, that drops nothing
        first = f"{value.flat[0]:g}" if real else value.flat[0]
        yield f"{name} is {first} everywhere: a mistake in what is taken from it may not show"
    elif real and value.size == 1 and value.item() in (0, 1):
        yield f"{name} is {value.item():g}: a factor or a term of it left out would not show; give another {name}"
    if real and value.ndim >= 1 and value.shape[0] == 1 and value.size > 1:
        yield f"{name} has one row: a sum or a mean over the rows would not show; give several"


def _about_pairs(inputs: Inputs) -> Iterator[str]:
    for (one, value), (other, second) in combinations(inputs.items(), 2):
        if value.size > 1 and np.array_equal(value, second):
            yield f"{one} and {other} are the same numbers: one taken for the other would not show"


def _about_defaults(subject: Subject) -> Iterator[str]:
    try:
        parameters = inspect.signature(subject.forward, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):
        return
    for each in parameters:
        if type(each.default) is float and each.default in (0.0, 1.0) and each.name not in subject.inputs:
            yield (
                f"{each.name} is {each.default:g}, its default: a factor or a term of it left out would not show; "
                f"give another {each.name} in the inputs"
            )


def _entries(names: list[str], numerical: NumericalGradient) -> str:
    number = sum(numerical.inputs[name].size for name in names)
    return f"{number:,} {'entry' if number == 1 else 'entries'} of {_listed(names)}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
