"""The report: as data, as text of any width, as HTML; and what it says a pass does not prove."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

from handgrad import DataError, check
from handgrad.checking import MISTAKES, ArgumentResult, Finding, Report

DIFF = "--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n def f(g):\n-    return <g>\n+    return g * 2\n"

WRONG = Report(
    subject="a.py:f",
    verdict="wrong",
    findings=(
        Finding(
            code="wrong-sign", argument="W", evidence="every entry of dW is the right one with the opposite sign, " * 3,
            repair=DIFF, proved=True, also=("b",), place="line 3: z = x @ W", entry=(1, 2), got=float("nan"),
            expected=1.5, relative_error=float("inf"), error_bound=1e-12,
        ),
    ),
    arguments=(
        ArgumentResult("W", (3, 4), "wrong", float("inf"), 1e-12),
        ArgumentResult("b", (4,), "wrong", float("nan"), float("nan")),
        ArgumentResult("x", (), "right", 0.0, 1e-13),
    ),
    seconds=1.0,
)  # fmt: skip

UNKNOWN = Report(
    subject="backward",
    verdict="cannot tell",
    arguments=(ArgumentResult("x", (2,), "cannot tell", 0.1, 3.0),),
    tried=("slopes",),
    not_proved=("forward raised\n  given  x(2,)\n  fix    mend it",),
)


@pytest.mark.parametrize("report", [WRONG, UNKNOWN], ids=lambda report: report.verdict)
def test_json_keeps_everything(report: Report) -> None:
    """There and back, in standard JSON, numbers that are not finite included."""
    text = report.to_json()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    again = Report.from_json(text)
    assert repr(again) == repr(report)  # NaN is not equal to itself
    assert str(again) == str(report)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"verdict": "right"}', UNKNOWN.to_json().replace("shape", "form")]
)
def test_what_is_no_report_is_an_error(text: str) -> None:
    """With what is wrong about it."""
    with pytest.raises(DataError, match="not a report"):
        Report.from_json(text)


@pytest.mark.parametrize("width", [80, 100, 200])
def test_text_fits_its_width(width: int) -> None:
    """Long words are wrapped under their title; code is left as it is."""
    for report in (WRONG, UNKNOWN):
        lines = report.text(width).splitlines()
        assert max(map(len, lines)) <= width
    assert "\n    evidence  every entry" in WRONG.text(width)
    assert "\n      +    return g * 2" in WRONG.text(width)


def test_text_has_what_a_reader_needs() -> None:
    """The verdict, each gradient, the mistake with its place, worst entry, symptom, reason and repair."""
    text = str(WRONG)
    assert text.startswith(
        "a.py:f: wrong\n  wrong        dW (3, 4)  not finite\n  wrong        db (4,)    of another shape\n"
    )
    assert "  right        dx ()      relative error 0, error bound 1e-13" in text
    assert "  wrong-sign in dW, and db with it" in text
    assert "worst     dW[1, 2]: got nan, expected 1.5" in text
    assert "place     line 3: z = x @ W" in text
    assert f"shows     {MISTAKES['wrong-sign'].shows}" in text
    assert MISTAKES["wrong-sign"].why in text
    assert "repair    proved on fresh inputs" in text
    assert text.endswith("\n      +    return g * 2")
    assert "what is not known\n    - forward raised\n      given  x(2,)\n      fix    mend it" in str(UNKNOWN)


def test_a_wrong_gradient_without_a_name_says_so() -> None:
    """Never only a mismatch."""
    assert "no known mistake explains it" in str(Report("f", "wrong", arguments=WRONG.arguments))


def test_the_worst_entry_is_the_one_most_off_for_its_size() -> None:
    """However small it is beside the others."""
    x = np.array([1.0, -3e3, 1e-2])
    off = np.array([1.0, 1 + 1e-6, 1 + 1e-3])
    report = check(lambda x: x**2, lambda g, x: {"x": 2 * g * x * off}, {"x": x})
    (result,) = report.arguments
    assert result.relative_error == pytest.approx(1e-3, rel=1e-3)
    assert all(finding.entry == (2,) for finding in report.findings)


def test_html_is_the_text_in_colour() -> None:
    """With everything escaped."""
    page = WRONG._repr_html_()
    assert page.startswith("<pre") and page.endswith("</pre>")  # noqa: PT018 - one thing
    assert '<span style="color:#d9342b">wrong</span>' in page
    assert "return &lt;g&gt;" in page
    assert "<g>" not in page


@pytest.mark.parametrize("code", MISTAKES)
def test_every_mistake_has_words(code: str) -> None:
    """A title, what is noticed and a reason that fit a line or two."""
    mistake = MISTAKES[code]
    assert mistake.code == code
    assert 10 < len(mistake.title) < 100
    assert 10 < len(mistake.shows) < 100
    assert 10 < len(mistake.why) < 130
    with pytest.raises(FrozenInstanceError):
        mistake.title = "another"  # type: ignore[misc]


# ------------------------------------------------------------------------------------- what a pass does not prove


def product(x: Any, W: Any) -> Any:
    return x @ W


def product_backward(g: Any, x: Any, W: Any) -> Any:
    return {"x": g @ W.T, "W": x.T @ g}


def relu_product(x: Any, W: Any) -> Any:
    return np.maximum(x, 0) @ W


def relu_product_backward(g: Any, x: Any, W: Any) -> Any:
    return {"x": (g @ W.T) * (x > 0), "W": np.maximum(x, 0).T @ g}


def only_x(g: Any, x: Any, W: Any) -> Any:
    return {"x": g @ W.T}


def masked(x: Any, kept: Any) -> Any:
    return x * kept


def mask_forgotten(g: Any, x: Any, kept: Any) -> Any:
    return {"x": g}


RNG = np.random.default_rng(0)
PLAIN, SQUARE = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 3))

UNITS = np.array([1.0, 1.0, 1e-4]) * RNG.uniform(0.5, 1.5, size=(20, 3))


def loss_in_float32(w: Any) -> Any:
    error = UNITS.astype(np.float32) @ np.asarray(w, np.float32) - 10
    return float((error**2).sum())


def another_sign(g: Any, w: Any) -> Any:
    return {"w": 2 * g * (UNITS.T @ (UNITS @ w - 10)) * [1, 1, -1]}


def narrow(x: Any, W: Any) -> Any:
    return (x @ W).astype(np.float32)


NOTES: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "symmetric": (product, product_backward, {"x": PLAIN, "W": SQUARE + SQUARE.T}, "W is symmetric"),
    "zero": (product, product_backward, {"x": PLAIN, "W": 0 * SQUARE}, "dx is zero everywhere"),
    "one number": (product, product_backward, {"x": PLAIN, "W": np.full((3, 2), 2.0)}, "W is 2 everywhere"),
    "nothing dropped": (
        masked,
        mask_forgotten,
        {"x": PLAIN, "kept": np.ones_like(PLAIN, bool)},
        "kept is True everywhere",
    ),
    "one row": (product, product_backward, {"x": PLAIN[:1], "W": SQUARE}, "x has one row"),
    "float32": (
        product,
        product_backward,
        {"x": np.float32(PLAIN), "W": np.float32(SQUARE)},
        "errors below 7e-05",
    ),
    "coarse": (
        loss_in_float32,
        another_sign,
        {"w": SQUARE[0]},
        "1 entry of dw cannot be told to a hundredth",
    ),
    "narrow": (narrow, product_backward, {"x": PLAIN, "W": SQUARE}, "forward's output has few digits"),
    "kinks": (relu_product, relu_product_backward, {"x": np.round(PLAIN), "W": SQUARE}, "are at a kink in x"),
    "ignored": (product, only_x, {"x": PLAIN, "W": SQUARE}, "backward returns no dW"),
    "empty": (product, product_backward, {"x": PLAIN[:0], "W": SQUARE}, "x is empty, and so is dx"),
}


@pytest.mark.parametrize("name", NOTES)
def test_a_pass_says_what_it_does_not_prove(name: str) -> None:
    """Each in a note of its own; the verdict is right all the same."""
    forward, backward, inputs, note = NOTES[name]
    report = check(forward, backward, inputs)
    assert report.verdict == "right", str(report)
    assert any(note in each for each in report.not_proved), report.not_proved
    assert all(0 <= each.relative_error < 1e-3 or name == "coarse" for each in report.arguments)


def test_a_pass_at_plain_inputs_leaves_nothing_open() -> None:
    """And says what was tried."""
    report = check(product, product_backward, {"x": PLAIN, "W": SQUARE})
    assert report.not_proved == ()
    assert report.tried[0].startswith(
        "the numerical gradient of forward, from both sides, at 21 entries of x and W"
    )
    assert "3 upstream gradients of both signs" in report.tried
    assert report.seconds > 0


def test_what_cannot_be_told_says_why() -> None:
    """A forward that rounds has no slopes to judge by."""

    def rough(x: Any) -> Any:
        return np.round(np.sin(x), 3)

    report = check(rough, lambda g, x: {"x": g * np.cos(x)}, {"x": np.array([1.0, 2.0])})
    assert report.verdict == "cannot tell"
    assert "forward is too rough there" in report.not_proved[0]


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"findings": ()}, "the first wrong line was still looked for"),
        ({}, "the mistake has its name from the numbers; a repair was still looked for"),
    ],
    ids=["nothing", "a name"],
)
def test_a_search_that_ended_early_says_what_it_was_looking_for(known: dict[str, Any], words: str) -> None:
    report = replace(WRONG, stopped="stopped after 20 s", **known)
    assert f"  stopped after 20 s: {words}" in report.text(200)


def test_a_report_fits_a_screen_unless_all_of_it_is_wanted() -> None:
    """The verdict, the mistake, why and the change stay; the rest is a word away."""
    changed = "".join(f" line {k}\n" for k in range(9)) + "-    a\n+    b\n" + " more\n" * 9
    finding = replace(WRONG.findings[0], repair="--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n" + changed)
    many = tuple(ArgumentResult(f"w{k}", (2,), "wrong" if k < 6 else "right", 1.0, 0.1) for k in range(20))
    report = replace(WRONG, arguments=many, findings=(finding, replace(finding, argument="w1"), finding))
    text = report.text()
    assert len(text.splitlines()) <= 23
    for part in (
        "a.py:f: wrong",
        "wrong-sign in dW",
        MISTAKES["wrong-sign"].why,
        "      a.py:10\n      -    a\n      +    b\n",
        "--verbose",
    ):
        assert part in text
    full = report.text(full=True)
    assert len(full.splitlines()) > 60
    assert "--verbose" not in full
