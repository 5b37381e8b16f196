"""What a check found, as plain data: for machines, and for the text that people read."""

from __future__ import annotations

import html
import json
import math
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from handgrad.checking.intermediates import FirstWrong
from handgrad.checking.mistakes import MISTAKES
from handgrad.checking.report.text import coloured_parts, lines_of
from handgrad.errors import DataError
from handgrad.notebook_html import HTMLReprMixin

if TYPE_CHECKING:
    from handgrad.checking.repair import Repair

Verdict = Literal["right", "right, but", "wrong", "cannot tell"]

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
    cause
        The functions that forward calls whose backward is wrong, where all else is right; or "". Check them by themselves.
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
    cause: str = ""
    mended: Repair | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int = 100, *, full: bool = False) -> str:
        """Return the report for people, in lines of at most ``width`` columns; code and diffs keep theirs.

        It fits a screen of 24 lines, unless it is to be ``full``.
        """
        return "\n".join(lines_of(self, width, full=full))

    def _repr_html_(self) -> str:
        shades = {"green": "#1c8739", "red": "#d9342b", "yellow": "#987000"}  # legible on white and on black
        lines = []
        for line in lines_of(self, 100, full=True):
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


def _read(table: dict[str, Any], tuples: tuple[str, ...]) -> dict[str, Any]:
    """Return a part of a report's JSON with its tuples, and with its numbers that are no JSON."""
    numbers = {name: float(table[name]) for name in NUMBERS if name in table}
    return {**table, **numbers, **{name: tuple(table[name]) for name in tuples}}
