"""Checking: whether a hand-written gradient is right, and what is wrong with it when it is not."""

from handgrad.checking.check import check
from handgrad.checking.mistakes import MISTAKES, Mistake
from handgrad.checking.report import ArgumentResult, Finding, Report
from handgrad.checking.subject import CheckError

__all__ = ["MISTAKES", "ArgumentResult", "CheckError", "Finding", "Mistake", "Report", "check"]
