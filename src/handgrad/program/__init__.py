"""Writing a network out as one straight-line program."""

from handgrad.program.program import Phase, Program, ProgramLine, render_text
from handgrad.program.script import Loop, write_script
from handgrad.program.source import compile_program, function_source
from handgrad.program.writing import write_evaluation, write_loss, write_rule, write_training

__all__ = [
    "Loop",
    "Phase",
    "Program",
    "ProgramLine",
    "compile_program",
    "function_source",
    "render_text",
    "write_evaluation",
    "write_loss",
    "write_rule",
    "write_script",
    "write_training",
]
