"""What every backward keeps to, and what the checker says to those who give it something else than a gradient."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from handgrad import CheckError, ConfigurationError, check
from handgrad.checking.subject import Subject
from handgrad.checking.verdict.comparison import compare, numerical_gradient
from handgrad.checking.verdict.contract import Violation, violations

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])


def cube(x: Any) -> Any:
    return x**3


def right(g: Any, x: Any) -> dict[str, Any]:
    return {"x": 3 * x**2 * g}


def cube_prime(x: Any) -> Any:
    return 3 * x**2


def changes_its_input(g: Any, x: Any) -> dict[str, Any]:
    x *= x
    return {"x": 3 * x * g}


def changes_the_upstream(g: Any, x: Any) -> dict[str, Any]:
    g *= 3 * x**2
    return {"x": g}


def changes_one_bit(g: Any, x: Any) -> dict[str, Any]:
    found = 3 * x**2 * g
    x[0, 0] = np.nextafter(x[0, 0], 1)
    return {"x": found}


def draws(g: Any, x: Any) -> dict[str, Any]:
    return {"x": 3 * x**2 * g * (np.random.default_rng().random(x.shape) < 0.5)}


def draws_globally(g: Any, x: Any) -> dict[str, Any]:
    return {"x": 3 * x**2 * g * (np.random.random(x.shape) < 0.5)}  # noqa: NPY002 - what users do


class Counting:
    """A backward that counts its calls into its answer."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, g: Any, x: Any) -> dict[str, Any]:
        """Return a gradient that grows."""
        self.calls += 1
        return {"x": 3 * x**2 * g * (1 + 0.01 * self.calls)}


def with_decay(g: Any, x: Any) -> dict[str, Any]:
    return {"x": 3 * x**2 * g + 0.1 * x}


def without_upstream(g: Any, x: Any) -> dict[str, Any]:
    return {"x": 3 * x**2}


def squares_the_upstream(g: Any, x: Any) -> dict[str, Any]:
    return {"x": 3 * x**2 * g * np.abs(g)}


def clips_the_upstream(g: Any, x: Any) -> dict[str, Any]:
    return {"x": 3 * x**2 * np.clip(g, -100, 100)}


def drops_what_is_small(g: Any, x: Any) -> dict[str, Any]:
    return {"x": 3 * x**2 * np.where(np.abs(g) < 1e-4, 0, g)}


def divides_by_the_norm(g: Any, x: Any) -> dict[str, Any]:
    norm = np.sqrt((g**2).sum())
    return {"x": 3 * x**2 * (g / norm) * norm}


def sums_in_any_order(g: Any, x: Any) -> dict[str, Any]:
    parts = np.float32(1) / (1 + np.random.default_rng().permutation(1000).astype(np.float32))
    one = np.cumsum(parts)[-1] / 7.485470860550345
    return {"x": (3 * x**2 * g * one).astype(np.float32)}


def test_sums_in_any_order_differ() -> None:
    """So that what follows looks at something."""
    found = {float(sums_in_any_order(X, X)["x"][0, 0]) for _ in range(20)}
    assert len(found) > 5


VIOLATIONS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "input": (changes_its_input, "mutated", "x"),
    "upstream": (changes_the_upstream, "mutated", "grad_output"),
    "bit": (changes_one_bit, "mutated", "x"),
    "generator": (draws, "random", "x"),
    "global generator": (draws_globally, "random", "x"),
    "state": (Counting(), "stale", "x"),
    "decay": (with_decay, "affine", "x"),
    "ones": (without_upstream, "affine", "x"),
    "square": (squares_the_upstream, "squared", "x"),
    "clipped": (clips_the_upstream, "uneven", "x"),
    "dropped": (drops_what_is_small, "uneven", "x"),
    "normalised": (divides_by_the_norm, "affine", "x"),
}


def broken(backward: Callable[..., Any], x: Any) -> list[Violation]:
    subject = Subject.of(cube, backward, {"x": x})
    expected = numerical_gradient(subject, subject.inputs, ("x",), 0)
    return violations(subject, compare(subject, expected).samples[0])


@pytest.mark.parametrize("name", VIOLATIONS)
def test_what_breaks_the_contract_is_known(name: str) -> None:
    """Its kind, its argument, and words for it; and the report is wrong."""
    backward, kind, argument = VIOLATIONS[name]
    found, *_ = broken(backward, X)
    assert (found.kind, found.argument) == (kind, argument)
    assert found.evidence
    report = check(cube, backward, {"x": X})
    in_between = kind == "mutated" or name == "clipped"  # the mathematics is right
    assert report.verdict == ("right, but" if in_between else "wrong")
    assert bool(report.reason) == in_between


@pytest.mark.parametrize(
    ("backward", "repaired"), [(drops_what_is_small, True), (divides_by_the_norm, False)]
)
def test_a_gradient_that_is_right_at_some_upstreams_only_is_not_proportional(
    backward: Any, repaired: bool
) -> None:
    """It has that name; where it is wrong at zero only, almost anything would seem to be a repair, and none is looked for."""
    report = check(cube, backward, {"x": X})
    assert [(finding.code, bool(finding.repair)) for finding in report.findings] == [
        ("not-proportional", repaired)
    ]
    assert [each.verdict for each in report.arguments] == ["wrong"]
    assert "worst" not in str(report)


def test_few_digits_are_no_mistake() -> None:
    """A millionth of an upstream gradient may be below what float16 has."""

    def backward(g: Any, x: Any) -> dict[str, Any]:
        return {"x": (3 * x**2 * g).astype(x.dtype)}

    assert not broken(backward, X.astype(np.float16))
    assert not broken(backward, X.astype(np.float32))


def test_a_function_that_names_what_is_not_yet_there_is_checked() -> None:
    """Its closure has an empty cell."""

    def forward(x: Any) -> Any:
        return x**3 if later is not None else x

    def backward(g: Any, x: Any) -> dict[str, Any]:
        return {"x": 3 * x**2 * g} if x is not None else later

    with pytest.raises(CheckError, match="forward raised NameError"):
        check(forward, backward, {"x": X})
    assert check(cube, backward, {"x": X}).verdict == "right"
    later = X
    assert check(forward, backward, {"x": X}).verdict == "right"
    assert later is X


def keeps_a_mean(x: Any, running_mean: Any) -> Any:
    running_mean *= 0.9
    running_mean += 0.1 * x.mean(axis=0)
    return x - x.mean(axis=0)


EMPTY = {"x": np.zeros((0, 3)), "W": np.full((3, 2), 0.3)}


@pytest.mark.parametrize(
    ("gradients", "wrong"),
    [
        (lambda g, x, W: {"x": g @ W.T, "W": x.T @ g}, []),
        (lambda g, x, W: {"x": g @ W.T, "W": x.T @ g + 1}, ["W"]),
        (lambda g, x, W: {"x": g, "W": x.T @ g}, ["x"]),
        (lambda g, x, W: {"x": g.T, "W": W[:0]}, ["x", "W"]),
    ],
    ids=["right", "a term too many", "another shape", "two other shapes"],
)
def test_an_empty_batch_has_a_verdict(gradients: Any, wrong: list[str]) -> None:
    """No mean of nothing gets in the way; a shape is wrong without any entry too."""
    report = check(lambda x, W: x @ W, gradients, EMPTY)
    assert [each.name for each in report.arguments if each.verdict == "wrong"] == wrong


def test_the_derivative_of_nothing_is_right() -> None:
    assert check(cube, cube_prime, {"x": np.zeros((0, 3))}).verdict == "right"


def in_half(g: Any, x: Any) -> dict[str, Any]:
    return {"x": g.astype(np.float16) * (1 - np.tanh(x) ** 2)}


ODD: dict[str, tuple[Any, Any, Any]] = {
    "running mean": (
        keeps_a_mean,
        lambda g, x, running_mean: {"x": g - g.mean(axis=0)},
        {"x": X, "running_mean": np.zeros(3)},
    ),
    "near overflow": (np.exp, lambda g, x: {"x": g * np.exp(x)}, {"x": np.array([705.0, 704.3])}),
    "nothing to do": (cube, lambda g, x: {"x": 3 * x**2 * g if np.any(g) else 0.0}, {"x": X}),
    "nothing to say": (
        lambda x, w: x * w,
        lambda g, x, w: {"x": g * w, "w": g * x} if np.any(g) else {"x": g * w},
        {"x": X, "w": X + 1},
    ),
    "no sign of zero": (
        lambda x: np.add(x, 0.0, out=x) ** 2,
        lambda g, x: {"x": 2 * x * g},
        {"x": np.array([-0.0, 1.3, 2.2])},
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_but_right_gradients_are_right(name: str) -> None:
    """What forward keeps up to date, overflow, shortcuts at a zero upstream, and the sign of zero are no mistakes."""
    report = check(*ODD[name])
    assert report.verdict == "right", str(report)


def test_a_gradient_of_few_digits_scales_as_it_can() -> None:
    """A millionth of it is less than float16 has, and that is no mistake."""
    assert check(lambda x: np.tanh(x).astype(np.float16), in_half, {"x": X}).verdict == "cannot tell"


def test_what_is_kept_anew_each_time_is_right() -> None:
    """A layer that remembers its input is how most are written."""

    class Remembers:
        def forward(self, x: Any) -> Any:
            self.mask = x > 0
            return x * self.mask

        def backward(self, g: Any, x: Any) -> dict[str, Any]:
            return {"x": g * self.mask}

    layer = Remembers()
    assert check(layer.forward, layer.backward, {"x": X}).verdict == "right"


def test_a_forward_that_changes_its_input_is_wrong() -> None:
    """Whoever calls it finds another x, and so does backward."""

    def halves(x: Any) -> Any:
        x *= 0.5
        return x**3

    report = check(halves, lambda g, x: {"x": 3 * (x / 2) ** 2 * g / 2}, {"x": X})
    assert report.findings[0].code == "stale-or-mutated-state"
    assert report.findings[0].evidence == "after forward, 6 of 6 entries of x have changed"


def test_a_right_gradient_breaks_nothing() -> None:
    """Nor does a sum in float32 whose order differs from call to call."""
    for backward, x in ((right, X), (sums_in_any_order, X.astype(np.float32))):
        assert not broken(backward, x)
        assert check(cube, backward, {"x": x}).verdict == "right"


@pytest.mark.parametrize("shape", [(2, 3), (6,)])
def test_the_same_nan_again_is_the_same_answer(shape: tuple[int, ...]) -> None:
    """Whatever its shape: neither random nor stale."""
    report = check(cube, lambda g, x: {"x": np.full(shape, np.nan)}, {"x": X})
    assert {finding.code for finding in report.findings} <= {"dtype-or-overflow", "wrong-shape"}


def test_the_callers_arrays_are_left_alone() -> None:
    """Even by a backward that changes what it is given, and when they cannot be written."""
    x = X.copy()
    x.flags.writeable = False
    check(cube, changes_its_input, {"x": x})
    np.testing.assert_array_equal(x, X)


def raises(g: Any, x: Any) -> Any:
    return g @ np.ones((7, 7))


def nothing(x: Any) -> Any:
    return None


def drawn(x: Any) -> Any:
    return x * np.random.default_rng().random(x.shape)


def ends(rng: Any) -> Any:
    return {"x": 1 / 0}


MESSAGES: dict[str, tuple[Any, Any, Any, str]] = {
    "no inputs": (cube, right, {}, "there are no inputs"),
    "inputs missing": (cube, right, None, "the inputs are missing"),
    "backward missing": (cube, None, {"x": X}, "backward is missing"),
    "no function": (3, right, {"x": X}, "forward is 3, which is no function"),
    "an array for inputs": (cube, right, X, "the inputs are ndarray"),
    "text": (cube, right, {"x": "abc"}, "the input 'x' is <U3, not an array of real numbers"),
    "object": (cube, right, {"x": object()}, "the input 'x' is object"),
    "ragged": (cube, right, {"x": [[1.0], [2.0, 3.0]]}, "the input 'x' is no array"),
    "complex": (cube, right, {"x": X + 0j}, "the input 'x' is complex128"),
    "whole numbers": (cube, right, {"x": np.arange(3)}, "no input is of floating point"),
    "not finite": (cube, right, {"x": np.array([1.0, np.nan])}, "the input 'x' is not finite"),
    "a number for a name": (cube, right, {1: X}, "an input is called 1"),
    "too many inputs": (cube, right, {"x": X, "y": X}, "forward does not take the inputs"),
    "no array of f and f_prime": (cube, cube_prime, {"x": [1.0, 2.0]}, "cube raised TypeError"),
    "a whole number of f and f_prime": (cube, cube_prime, {"x": 3}, "no input is an array of floating point"),
    "too many in a row": (cube, right, (X, X), "forward does not take 2 inputs"),
    "huge": (cube, right, {"x": np.broadcast_to(1.0, (10_000, 10_000))}, "100,000,000 entries"),
    "inputs that raise": (cube, right, ends, "the function of the inputs raised ZeroDivisionError"),
    "inputs of nothing": (cube, right, lambda rng: None, "the inputs are NoneType"),
    "forward raises": (lambda x: x @ x, right, {"x": X}, "forward raised ValueError"),
    "forward of nothing": (nothing, right, {"x": X}, "forward returns NoneType"),
    "forward of a dict": (lambda x: {"y": x}, right, {"x": X}, "forward returns dict"),
    "forward of text": (lambda x: "y", right, {"x": X}, "forward returns <U1"),
    "forward of whole numbers": (lambda x: (x > 0).sum(), right, {"x": X}, "forward returns int64"),
    "forward of complex": (lambda x: x + 0j, right, {"x": X}, "forward returns complex128"),
    "forward not finite": (np.log, right, {"x": X}, "forward is not finite"),
    "forward draws": (drawn, right, {"x": X}, "forward returns something else when it is called again"),
    "backward raises": (cube, raises, {"x": X}, "backward raised ValueError"),
    "backward of too few": (cube, lambda g: g, {"x": X}, "backward does not take the inputs"),
    "backward of nothing": (cube, lambda g, x: None, {"x": X}, "backward returns no gradient"),
    "backward of no value": (cube, lambda g, x: {"x": None}, {"x": X}, "backward returns no gradient"),
    "another name": (cube, lambda g, x: {"dx": g}, {"x": X}, "a gradient for 'dx', which is no input"),
    "too many gradients": (cube, lambda g, x: (g, g, g), {"x": X}, "backward returns 3 gradients"),
    "a text gradient": (cube, lambda g, x: {"x": "g"}, {"x": X}, "backward's dx is <U1"),
    "a complex gradient": (cube, lambda g, x: {"x": g + 0j}, {"x": X}, "backward's dx is complex128"),
    "a ragged gradient": (cube, lambda g, x: {"x": [[1], [2, 3]]}, {"x": X}, "backward's dx is no array"),
    "a generator": (cube, lambda g, x: (part for part in [g]), {"x": X}, "backward's dx is generator"),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_what_cannot_be_checked_is_one_message(name: str) -> None:
    """What is wrong, with what was given where that helps."""
    forward, backward, inputs, message = MESSAGES[name]
    with pytest.raises(CheckError) as caught:
        check(forward, backward, inputs)
    assert message in str(caught.value).splitlines()[0]


def test_a_message_has_the_place_in_the_users_file() -> None:
    """Not the line of NumPy that raised."""
    with pytest.raises(CheckError) as caught:
        check(cube, raises, {"x": X})
    assert f"at {__file__}:" in str(caught.value)
    assert "return g @ np.ones((7, 7))" in str(caught.value)


def test_a_seed_below_zero_is_an_error() -> None:
    """As everywhere in handgrad."""
    with pytest.raises(ConfigurationError, match=r"^check: seed is -1"):
        check(cube, right, {"x": X}, seed=-1)


@pytest.mark.parametrize(
    ("inputs", "backward"),
    [
        ((X,), right),
        ({"x": X.tolist()}, right),
        ({"x": 0.5}, right),
        (lambda: {"x": X}, right),
        (lambda rng: (rng.normal(size=3),), right),
        ({"x": X}, lambda g, x: (3 * x**2 * g,)),
        ({"x": X}, lambda g, x: [3 * x**2 * g]),
        ({"x": X}, lambda g, x: 3 * x**2 * g),
        ({"x": X}, lambda g, x: {"x": (3 * x**2 * g).tolist()}),
        ({"any": X}, lambda g, y: {"any": 3 * y**2 * g}),
    ],
)
def test_inputs_and_gradients_come_in_several_forms(inputs: Any, backward: Any) -> None:
    """Dicts, rows, lists, single numbers and functions."""
    assert check(cube, backward, inputs).verdict == "right"


def test_several_outputs_have_several_upstream_gradients() -> None:
    """As a tuple, also when forward returns a list."""

    def forward(x: Any) -> Any:
        return [np.sin(x), x.sum()]

    def backward(upstream: Any, x: Any) -> Any:
        first, second = upstream
        return {"x": first * np.cos(x) + second}

    assert check(forward, backward, {"x": X}).verdict == "right"
    assert check(forward, lambda u, x: {"x": u[0] * np.cos(x)}, {"x": X}).verdict == "wrong"


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def gelu_with_a_rounded_constant(g: Any, x: Any) -> Any:
    t = np.tanh(0.7979 * (x + 0.044715 * x**3))
    return {"x": g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7979 * (1 + 3 * 0.044715 * x**2))}


def guarded_log(p: Any) -> Any:
    return np.log(p + 1e-8)


def unguarded(g: Any, p: Any) -> Any:
    return {"p": g / p}


def clipped_in_the_end(g: Any, x: Any) -> Any:
    dx = 3 * x**2 * g
    np.clip(dx, -1, 1, out=dx)
    return {"x": dx}


def in_float32(g: Any, x: Any) -> Any:
    return {"x": (3 * x**2 * g).astype(np.float32)}


BETWEEN: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "a constant": (gelu, gelu_with_a_rounded_constant, {"x": X}, "0.7979 is 0.7978845608, rounded"),
    "a guard": (guarded_log, unguarded, {"p": np.abs(X) + 0.1}, "right but for 1e-08"),
    "a clip": (cube, clipped_in_the_end, {"x": X}, "the gradient is clipped in line"),
    "float32": (cube, in_float32, {"x": X}, "right for float32"),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_what_lies_between_right_and_wrong_states_its_reason(name: str) -> None:
    """And is given no name of a mistake."""
    forward, backward, inputs, reason = BETWEEN[name]
    report = check(forward, backward, inputs)
    assert report.verdict == "right, but", str(report)
    assert reason in report.reason
    assert report.findings == ()


@pytest.mark.parametrize(
    "backward",
    [
        lambda g, x: {"x": 3.001 * x**2 * g},
        lambda g, x: {"x": 2 * x**2 * np.clip(g, -0.5, 0.5)},
        lambda g, x: {"x": (3.003 * x**2 * g).astype(np.float32)},
    ],
    ids=["a constant that rounds nothing", "a clip and a mistake", "float32 and a mistake"],
)
def test_what_excuses_nothing_is_wrong(backward: Any) -> None:
    """Only what is right without it is excused."""
    assert check(cube, backward, {"x": X}).verdict == "wrong"


def test_an_interrupt_after_the_verdict_ends_with_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """So does the end of the time for it."""
    module = sys.modules["handgrad.checking.check"]

    def interrupted(*_args: Any, **_options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, "mend", interrupted)
        report = check(cube, with_decay, {"x": X})
    assert (report.verdict, report.stopped, report.mended) == ("wrong", "interrupted", None)
    assert [finding.code for finding in report.findings] == ["extra-term"]  # as the numbers name it
    monkeypatch.setattr(module, "NAMING_SECONDS", 0)
    report = check(cube, with_decay, {"x": X})
    assert (report.verdict, report.stopped) == ("wrong", "stopped after 0 s")


class MaskOnce:
    """A ReLU that computes its mask at the first call, and one that computes it at every call."""

    def __init__(self, *, once: bool) -> None:
        self.once, self.mask = once, None

    def forward(self, x: Any) -> Any:
        """Return the positive part."""
        if self.mask is None or not self.once:
            self.mask = x > 0
        return np.maximum(x, 0)

    def backward(self, grad: Any) -> Any:
        """Return the gradient by the saved mask."""
        return grad * self.mask


class Steps:
    """A recurrent cell that saves every step for backward, which takes the last first."""

    def __init__(self) -> None:
        self.saved: list[Any] = []

    def forward(self, x: Any) -> Any:
        """Return the sine, and save where it is taken."""
        self.saved.append(x)
        return np.sin(x)

    def backward(self, grad: Any) -> Any:
        """Return the gradient of the last step."""
        return grad * np.cos(self.saved.pop())


@pytest.mark.parametrize(
    ("layer", "verdict"),
    [(MaskOnce(once=True), "wrong"), (MaskOnce(once=False), "right"), (Steps(), "right")],
    ids=["once", "always", "steps"],
)
def test_what_an_object_saved_at_another_call_is_stale(layer: Any, verdict: str) -> None:
    report = check(layer, inputs={"x": X})
    assert report.verdict == verdict
    assert [each.code for each in report.findings] == ["stale-or-mutated-state"] * (verdict == "wrong")
