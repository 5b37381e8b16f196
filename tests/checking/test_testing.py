"""`handgrad.testing` and the checker at the top of the package."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad
from handgrad.testing import assert_right


def square(x: Any) -> Any:
    return x * x


def right(grad_output: Any, x: Any) -> Any:
    return {"x": 2 * x * grad_output}


def half(grad_output: Any, x: Any) -> Any:
    return {"x": x * grad_output}


INPUTS = {"x": np.array([0.5, -1.0])}


def test_a_right_gradient_passes_with_its_report() -> None:
    """For those who want to look at it."""
    assert assert_right(square, right, INPUTS).verdict == "right"
    assert assert_right(handgrad.rules.tanh, seed=3).subject == "tanh"


def test_a_wrong_gradient_fails_with_the_report_for_a_message() -> None:
    """The same text that the check prints."""
    with pytest.raises(AssertionError) as caught:
        assert_right(square, half, INPUTS)
    assert str(caught.value) == str(handgrad.check(square, half, INPUTS))
    assert "constant-factor in dx" in str(caught.value)


def test_what_cannot_be_told_fails_too() -> None:
    """An assertion that proves nothing must not pass."""
    with pytest.raises(AssertionError, match="cannot tell"):
        assert_right(lambda x: np.round(np.sin(x), 3), lambda g, x: {"x": g * np.cos(x)}, INPUTS)
    with pytest.raises(handgrad.CheckError, match="backward is missing"):
        assert_right(square)


def test_a_failing_test_shows_its_own_line_and_the_report(tmp_path: Path) -> None:
    """And none of the checker's."""
    test = tmp_path / "test_square.py"
    test.write_text(
        textwrap.dedent("""
            import numpy as np
            from handgrad.testing import assert_right

            def square(x):
                return x * x

            def square_backward(grad_output, x):
                return {"x": x * grad_output}

            def test_square():
                assert_right(square, square_backward, {"x": np.array([0.5, -1.0])})
        """)
    )
    command = [sys.executable, "-W", "error", "-m", "pytest", "-p", "no:cacheprovider", str(test)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed" in done.stdout, done.stdout + done.stderr
    assert ">       assert_right(square" in done.stdout
    assert "constant-factor in dx" in done.stdout
    assert "raise AssertionError" not in done.stdout


def test_the_checker_is_imported_when_it_is_asked_for() -> None:
    """`import handgrad` stays quick; names that are not there are errors as ever."""
    code = (
        "import sys, handgrad; print('handgrad.checking' in sys.modules); handgrad.check; handgrad.CheckError"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    with pytest.raises(AttributeError, match="has no attribute 'chek'"):
        handgrad.chek  # noqa: B018 - the access is the test
