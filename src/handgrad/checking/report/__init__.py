"""What a check found: as plain data, as text for people, and what its verdict does not prove."""

from handgrad.checking.report.coverage import not_proved, tried
from handgrad.checking.report.report import ArgumentResult, Finding, Report, Verdict
from handgrad.checking.report.text import COLOURS, coloured_parts

__all__ = [
    "COLOURS", "ArgumentResult", "Finding", "Report", "Verdict", "coloured_parts", "not_proved", "tried",
]  # fmt: skip
