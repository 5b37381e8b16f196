"""Signatures in axis letters: what they accept, what they give, and what they say when sizes disagree."""

from __future__ import annotations

import pytest

from handgrad.errors import RuleError, ShapeError
from handgrad.rules import Shape, Signature, show_shape

LINEAR = Signature.parse("N... I, I O, O -> N... O")


@pytest.mark.parametrize(
    "text", ["N... I, I O, O -> N... O", "... -> ...", "N... ->", "->", "A..., A... -> A..."]
)
def test_a_signature_is_shown_as_it_is_written(text: str) -> None:
    """Reading and showing are each other's inverse."""
    assert str(Signature.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("N I", "write 'axes, axes -> axes'"),
        ("N -> I -> N", "write 'axes, axes -> axes'"),
        ("N.. I -> N", "'N..' is not an axis name"),
        ("N 3 -> N", "'3' is not an axis name"),
        ("N... T... I -> I", "only one '...' per argument"),
        ("I -> ... I ...", "only one '...' per argument"),
        ("N I -> N O", "the output's axis O is in no argument"),
        ("N -> N...", "the output's axis N... is in no argument"),
    ],
)
def test_a_signature_that_cannot_be_read_is_named(text: str, problem: str) -> None:
    """The error shows the signature and what is wrong with it."""
    with pytest.raises(RuleError) as caught:
        Signature.parse(text)
    assert caught.value.problem == f"signature {text!r}: {problem}"


@pytest.mark.parametrize(
    ("x", "output"),
    [(("n", 7), ("n", 5)), (("n", 3, 7), ("n", 3, 5)), ((2, 3, 4, 7), (2, 3, 4, 5)), ((7,), (5,))],
    ids=["rows", "rows-of-rows", "rank-4", "one-row"],
)
def test_dots_stand_for_any_number_of_axes(x: Shape, output: Shape) -> None:
    """``N...`` is one axis, several or none, and the output has the same."""
    sizes = LINEAR.bind("linear", {"x": x, "W": (7, 5), "b": (5,)})
    assert LINEAR.output_shape(sizes) == output


@pytest.mark.parametrize(
    ("shapes", "problem"),
    [
        ({"x": ("n", 6), "W": (7, 5), "b": (5,)}, "linear: axis I is 6 in x(n, 6)[1] but 7 in W(7, 5)[0]"),
        ({"x": ("n", 3, 7), "W": (7, 5), "b": (4,)}, "linear: axis O is 5 in W(7, 5)[1] but 4 in b(4,)[0]"),
        ({"x": (), "W": (7, 5), "b": (5,)}, "linear: x has 0 axes () where the signature has N... I"),
        (
            {"x": ("n", 7), "W": (7, 5, 2), "b": (5,)},
            "linear: W has 3 axes (7, 5, 2) where the signature has I O",
        ),
    ],
    ids=["one-letter-two-sizes", "second-letter", "too-few-axes", "too-many-axes"],
)
def test_sizes_that_disagree_are_named(shapes: dict[str, Shape], problem: str) -> None:
    """The error has the axis letter, both sizes, both arguments and the positions, and the signature."""
    with pytest.raises(ShapeError) as caught:
        LINEAR.bind("linear", shapes)
    assert caught.value.problem == problem
    given = ", ".join(f"{name}{show_shape(shape)}" for name, shape in shapes.items())
    assert caught.value.given == f"{given}; signature {LINEAR}"


def test_dots_that_disagree_are_named_with_all_their_axes() -> None:
    """``A...`` is compared as a whole."""
    with pytest.raises(
        ShapeError, match=r"axis A\.\.\. is \(n, 3\) in x\(n, 3\)\[0:2\] but n in y\(n,\)\[0\]"
    ):
        Signature.parse("A..., A... -> A...").bind("add", {"x": ("n", 3), "y": ("n",)})


def test_a_single_number_has_no_axes() -> None:
    """An argument without axes is a number, and an array is none."""
    with pytest.raises(ShapeError, match=r"scale has 1 axes \(2,\) where the signature has a single number"):
        Signature.parse("A..., -> A...").bind("scaled", {"g": (3,), "scale": (2,)})


WINDOWED = Signature.parse("N... L C -> N... P C", P="(L - size) // stride + 1")


def test_an_axis_that_no_argument_has_is_computed_from_the_others_and_options() -> None:
    """Also of several axes at once, and of an option that is a tuple; the signature is shown with its formula."""
    sizes = WINDOWED.bind("windowed", {"x": ("n", 9, 4)})
    assert WINDOWED.output_shape(sizes, {"size": 3, "stride": 2}) == ("n", 4, 4)
    assert str(WINDOWED) == "N... L C -> N... P C; P = (L - size) // stride + 1"
    shaped = Signature.parse("N A... -> N B...", B="[2 * size for size in A]")
    assert shaped.output_shape(shaped.bind("doubled", {"x": ("n", 3, 5)})) == ("n", 6, 10)


@pytest.mark.parametrize(
    ("x", "options", "problem", "given"),
    [
        (
            ("n", 2, 4), {"size": 5, "stride": 3},
            "windowed: P = (L - size) // stride + 1 is 0, and an axis is 1 or longer",
            "L = 2, size = 5, stride = 3",
        ),
        (
            (3, "n", 4), {"size": 1, "stride": 1},
            "windowed: P = (L - size) // stride + 1 depends on the number of rows",
            "L = n, size = 1, stride = 1",
        ),
    ],
)  # fmt: skip
def test_an_axis_that_cannot_be_computed_is_named(
    x: Shape, options: dict[str, int], problem: str, given: str
) -> None:
    """With its formula and what is in it."""
    with pytest.raises(ShapeError) as caught:
        WINDOWED.output_shape(WINDOWED.bind("windowed", {"x": x}), options, "windowed")
    assert (caught.value.problem, caught.value.given) == (problem, given)


def test_a_formula_is_of_an_axis() -> None:
    """Of an axis that an argument has, it is checked."""
    with pytest.raises(RuleError, match="Q is computed, and is no axis of it"):
        Signature.parse("N I -> N P", P="I + 1", Q="3")
    gated = Signature.parse("N D, D G -> N G", G="4 * D")
    assert gated.output_shape(gated.bind("gated", {"x": ("n", 3), "W": (3, 12)})) == ("n", 12)
    with pytest.raises(ShapeError) as caught:
        gated.bind("gated", {"x": ("n", 3), "W": (3, 13)})
    assert caught.value.problem == "gated: axis G = 4 * D is 12, but 13 in W(3, 13)[1]"
    assert caught.value.given == "x(n, 3), W(3, 13); signature N D, D G -> N G; G = 4 * D"
    with pytest.raises(RuleError) as caught:
        Signature.parse("N I -> N P")
    assert caught.value.fix == 'say how long it is: rule("…", P="…"), from axes and options'
