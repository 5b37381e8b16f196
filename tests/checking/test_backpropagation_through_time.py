"""Mistakes in backpropagation through time, in code as people write it: named, placed and mended in the author's line.

The names and the lines were put down before the first run.
"""

# ruff: noqa: E501 - the lines of programs as they stand

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import NamedTuple

import pytest

from handgrad.checking import check
from handgrad.checking.user_files import run_file
from handgrad.cli.user_file import find_all

PROGRAMS = Path(__file__).parent / "recurrence"


class Planted(NamedTuple):
    """A line of a program, what somebody writes for it, the fair names, and what else mends it."""

    program: str
    line: str
    written: str
    codes: tuple[str, ...]
    mended: str = ""  # where another text than the author's is as right


ANOTHER = ("wrong-evaluation-point", "wrong-local-derivative")

PLANTED = [
    Planted("characters", "dhnext = np.dot(Whh.T, dhraw)", "dhnext = np.zeros_like(dhraw)", ("missing-term", "zero-gradient"), "dhnext = Whh.T @ dhraw"),
    Planted("course_lstm", "step_backward(dh[:, t, :] + dprev_h,", "step_backward(dh[:, t, :],", ("missing-term",)),
    Planted("four_weights", "dc_next + dh * o * (1 - tanh_c ** 2)", "dc_next + dh * o", ("missing-local-derivative",)),
    Planted("four_weights", "dc_next = dc * f", "dc_next = dc * i", ANOTHER),
    Planted("blog_gru", "(r * h_prev).T @ da_h", "h_prev.T @ da_h", ("missing-local-derivative", "wrong-evaluation-point"), "(h_prev * r).T @ da_h"),
    Planted("sentiment_rnn", "temp @ self.last_inputs[t].T", "temp @ self.last_inputs[t - 1].T", ("wrong-evaluation-point",)),
]  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: f"{planted.program}: {planted.written}")
def test_it_is_named_and_mended_in_its_line(planted: Planted, tmp_path: Path) -> None:
    text = (PROGRAMS / f"{planted.program}.py").read_text(encoding="utf-8")
    assert text.count(planted.line) == 1
    file = tmp_path / f"{planted.program}.py"
    file.write_text(text.replace(planted.line, planted.written), encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()):
        found = next(iter(find_all(run_file(file), "", "", {})))
        report = check(found.forward, found.backward, found.inputs)
    assert report.verdict == "wrong"
    assert {report.findings[0].code, report.findings[0].alternative} & set(planted.codes)
    assert report.mended is not None
    assert report.mended.text == text.replace(planted.line, planted.mended or planted.line)
