"""Writing a network out as one straight-line program."""

from handgrad.program.program import Phase, Program, ProgramLine
from handgrad.program.script import Loop

__all__ = ["Loop", "Phase", "Program", "ProgramLine"]
