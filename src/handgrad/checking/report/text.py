"""A report as lines of text: all of it, or as much as fits a screen."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from handgrad.checking.intermediates import FirstWrong
from handgrad.checking.mistakes import MISTAKES

if TYPE_CHECKING:
    from handgrad.checking.report.report import ArgumentResult, Finding, Report, Verdict

SCREEN = 23  # lines, and one for the prompt
LEVELS = 5  # of leaving something out, from little on
EVERYTHING = -1  # as a level
MANY = 3  # gradients that have a line each where there is little room
MORE = "  there is more: handgrad check --verbose, or report.text(full=True)"

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


def lines_of(report: Report, width: int, *, full: bool) -> list[str]:
    """Return a report as lines of text: all of it, or as much as fits a screen."""
    if full:
        return _at_level(report, width, EVERYTHING)
    lines = _at_level(report, width, 0)
    for level in range(1, LEVELS):
        if len(lines) <= SCREEN:
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
        lines += ["", *_first_wrong_lines(report.first_wrong, width, is_short=level >= LEVELS - 1)]
    for number, finding in enumerate(report.findings):
        found = _finding_lines(finding, width, level)
        lines += ["", *found] if number == 0 or level < 2 else found[:1]
    if report.cause:
        words = (
            f"the backward of {report.cause}, which it calls, is wrong: with the derivative of the forward in its place, "
            "every gradient here is right. Check it by itself"
        )
        lines += ["", *textwrap.wrap(words, width, initial_indent="  ", subsequent_indent="  ")]
    elif report.stopped:
        words = f"{report.stopped}: {_unfinished(report)}"
        lines += ["", *textwrap.wrap(words, width, initial_indent="  ", subsequent_indent="  ")]
    elif report.verdict == "wrong" and not report.findings:
        lines += ["", "  no known mistake explains it; look at the worst entries above"]
    if report.verdict == "wrong" and level > EVERYTHING:  # all depends on a loss that is only assumed
        lines += _notes(
            "tried",
            tuple(
                each for each in report.tried if each.startswith(("no loss was found", "the loss is taken"))
            ),
            width,
        )
    else:
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


def _unfinished(report: Report) -> str:
    """Return what was known when a search ended early, and what it was still looking for."""
    if report.mended is not None:
        return "the mistake has a proved repair; what it is called is as the numbers tell"
    if report.findings:
        return "the mistake has its name from the numbers; a repair was still looked for"
    if report.first_wrong is not None:
        return "the first wrong line is known; a name for the mistake was still looked for, and then a repair"
    return "the first wrong line was still looked for, and then a name for the mistake, and a repair"


def _first_wrong_lines(first: FirstWrong, width: int, *, is_short: bool) -> list[str]:
    """Return the first wrong line with the author's source, what is wrong in it, and what follows from it."""
    lines = [f"  first wrong line: {first.where}"]
    index = f"[{', '.join(map(str, first.entry))}]" if first.entry else ""
    numbers = f"; {first.name or 'its entry '}{index} is {first.got:.7g}, expected {first.expected:.7g}"
    is_off = first.got != first.expected and not is_short
    times = f", but {first.factor:.6g} times it" if first.factor else ""
    said = [("wrong", f"{first.name or 'what it returns'} is not {first.what}{times}{numbers * is_off}")]
    if not is_short:
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
    if result.verdict == "right, but":  # far from the user's own inputs, where a guard is all that is left
        return f"relative error up to {error}, far from these inputs"
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
        diff = finding.repair.rstrip().splitlines()
        lines += [f"      {line}" for line in (diff if level < 3 else _changed(diff))]
    return lines


def _changed(diff: list[str]) -> list[str]:
    """Return the lines of a diff that change, those of one place under its file and line."""
    path, number, lines, is_between = diff[0].removeprefix("--- "), 0, [], True
    for line in diff[2:]:
        if line.startswith("@@"):
            number, is_between = int(line.split()[1].split(",")[0][1:]), True
        elif line[:1] in "+-":
            lines += [f"{path}:{number}"] * is_between + [line]
            is_between = False
        else:
            is_between = True
        number += line[:1] in "- "
    return lines
