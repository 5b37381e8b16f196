"""A user's file, as it stands: run, searched for what can be checked, with the arguments of its own calls or drawn ones."""

from handgrad.checking.user_files.accumulation import never_set_to_zero
from handgrad.checking.user_files.argument_search import Example
from handgrad.checking.user_files.candidates import (
    Candidate,
    callers_first,
    calling_backward,
    candidates_in,
    not_taken,
    pairs_in,
    parts_of,
    run_by,
)
from handgrad.checking.user_files.examples import example_of
from handgrad.checking.user_files.running import UserFile, run_file

__all__ = [
    "Candidate", "Example", "UserFile", "callers_first", "calling_backward", "candidates_in", "example_of",
    "never_set_to_zero", "not_taken", "pairs_in", "parts_of", "run_by", "run_file",
]  # fmt: skip
