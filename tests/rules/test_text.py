"""What a rule may say: every line it may not hold is named, with file, line and what to do."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from handgrad import rules
from handgrad.errors import RuleError
from handgrad.rules import adam, rule, update
from handgrad.rules.rule_source import backward_slice, blocks, read_text

Load = Callable[[str], ModuleType]

HEAD = "import numpy as np\nfrom handgrad.rules import Mask, State, rule, update\n\n\n"


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Write a file as a user would, and import it."""

    def load(source: str) -> ModuleType:
        file = tmp_path / "own_rules.py"
        file.write_text(HEAD + source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("own_rules", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


OWN = '@rule("... -> ...")\ndef own(z, *, slope=2.0):\n    '

NOT_MATHEMATICS = {
    "loop-over-an-array": (
        "for k in z:\n        a = z",
        "a loop is `for t in range(T):` or `for t in reversed(range(T)):`",
    ),
    "loop-from-1": (
        "for k in range(1, 3):\n        a = z",
        "a loop is `for t in range(T):` or `for t in reversed(range(T)):`",
    ),
    "loop-with-the-name-of-another": (
        "for z in range(3):\n        a = z",
        "z is given a second meaning: use a new name",
    ),
    "loop-of-so-many": ("for k in range(zz):\n        a = z", "zz is not defined here"),
    "while": ("while True:\n        a = z", "a line is `name = expression`: no loop, branch or subscript"),
    "branch": ("if slope:\n        a = z", "a line is `name = expression`: no loop, branch or subscript"),
    "subscript": ("z[0] = 1", "a line is `name = expression`: no loop, branch or subscript"),
    "attribute": ("z.flags = 1", "a line is `name = expression`: no loop, branch or subscript"),
    "two-names": ("a, b = z, z", "a line is `name = expression`: no loop, branch or subscript"),
    "bare-call": ("z.sort()", "a line is `name = expression`: no loop, branch or subscript"),
    "matrix-in-place": ("z @= z", "a line is `name = expression`: no loop, branch or subscript"),
    "in-place": ("z += 1", "z += changes a value in place"),
    "second-meaning": ("z = z + 1", "z is given a second meaning: use a new name"),
    "conditional": ("a = z if slope else -z", "a rule has no IfExp: use np.where or a primitive"),
    "and": ("a = z and slope", "a rule has no BoolOp: use np.where or a primitive"),
    "comprehension": ("a = [v for v in z]", "a rule has no ListComp: use np.where or a primitive"),
    "lambda": ("a = (lambda v: v)(z)", "a rule has no Lambda: use np.where or a primitive"),
    "walrus": ("a = (b := z)", "a rule has no NamedExpr: use np.where or a primitive"),
    "builtin": ("a = abs(z)", "abs is not defined here (built-ins are not mathematics)"),
    "returns-expression": ("return 2 * z", "return names only: give the expression a line of its own"),
    "returns-nothing": ("return", "return names only: give the expression a line of its own"),
}
"""First lines of a forward that no rule may have, and what is said about them."""


@pytest.mark.parametrize("kind", NOT_MATHEMATICS)
def test_a_line_that_is_not_mathematics_is_named(kind: str, load: Load, tmp_path: Path) -> None:
    """The error gives rule, file and line, what is not allowed, and the line itself."""
    body, problem = NOT_MATHEMATICS[kind]
    with pytest.raises(RuleError) as caught:
        load(f"{OWN}{body}\n    return a\n")
    assert caught.value.problem == f"own ({tmp_path / 'own_rules.py'}:6), line 7: {problem}"
    assert caught.value.given == body.splitlines()[0]


LOOP = "h = np.zeros_like(z)\n    for t in range(3):\n        "

NOT_IN_A_LOOP = {
    "name": ("a = z", "a line of a loop is `name[:, t] = expression`, or with +="),
    "argument": ("z[t] = 1", "z is not made here: a loop fills arrays that a line before it has made"),
    "product": ("h[t] *= 2", "a part of an array is set, or added to: `h[:, t] += …`"),
    "loop": ("for s in range(3):\n            h[s] = z", "a line of a loop is `name[:, t] = expression`, or with +="),
    "return": ("return h", "a line of a loop is `name[:, t] = expression`, or with +="),
    "unknown": ("h[t] = zz", "zz is not defined here"),
    "unknown-place": ("h[s] = z", "s is not defined here"),
}  # fmt: skip


VIEWS = (
    "z", "z[:, :]", "z.reshape(3, -1)", "z.swapaxes(0, 1)", "z.T", "rows(z)", "np.asarray(z)", "np.array(z, copy=False)",
    "np.tanh(z, out=z)",
)  # fmt: skip
NEW = (
    "z * 2", "-z", "z > 0", "np.tanh(z)", "np.zeros(z.shape)", "np.empty_like(z)", "np.where(z > 0, z, 0)", "np.array(z)",
)  # fmt: skip


@pytest.mark.parametrize("made", VIEWS)
def test_a_loop_fills_no_array_that_may_be_the_users(made: str, load: Load) -> None:
    """A view of an argument would change what the user passed."""
    with pytest.raises(RuleError) as caught:
        load(
            f"from handgrad.rules.primitives import rows\n{OWN}h = {made}\n"
            "    for t in range(3):\n        h[t] = h[t - 1]\n    return h\n"
        )
    assert caught.value.problem.endswith(
        f"line 10: h = {made} may share memory with another array, which the loop would change"
    )
    assert caught.value.fix == "make h by arithmetic or by np.zeros_like(…)"


@pytest.mark.parametrize("made", NEW)
def test_a_loop_fills_what_lines_compute(made: str, load: Load) -> None:
    rule = load(f"{OWN}h = {made}\n    for t in range(2):\n        h[t] = h[t + 1]\n    return h\n").own
    z = np.arange(6.0).reshape(3, 2)
    rule(z)
    np.testing.assert_array_equal(z, np.arange(6.0).reshape(3, 2))


@pytest.mark.parametrize("kind", NOT_IN_A_LOOP)
def test_a_line_that_no_loop_may_have_is_named(kind: str, load: Load, tmp_path: Path) -> None:
    """With the line in the loop, not that of the loop."""
    body, problem = NOT_IN_A_LOOP[kind]
    with pytest.raises(RuleError) as caught:
        load(f"{OWN}{LOOP}{body}\n    return h\n")
    assert caught.value.problem == f"own ({tmp_path / 'own_rules.py'}:6), line 9: {problem}"
    assert caught.value.given == body.splitlines()[0]


def test_the_variable_of_a_loop_is_no_name_after_it(load: Load) -> None:
    """Neither to be read nor to be made: what it holds then is an accident."""
    with pytest.raises(RuleError, match="line 10: t is not defined here"):
        load(f"{OWN}{LOOP}h[t] = z[t]\n    a = h * t\n    return a\n")
    with pytest.raises(RuleError, match="line 10: t is given a second meaning"):
        load(f"{OWN}{LOOP}h[t] = z[t]\n    t = 2 * h\n    return t\n")


def test_a_loop_is_read_as_lines_that_run_together(load: Load) -> None:
    """Its lines have their reasons; what a loop needs is all that one of its lines does."""
    text = load(
        f"{OWN}{LOOP}h[t] = z[t] * slope  # by itself\n        h[t] += h[t - 1]\n    a = h * 2\n    return a\n"
    ).own.forward
    made, first, second, last = text.lines
    assert [line.makes for line in text.lines] == [True, False, False, True]
    assert (str(first), first.reason) == ("h[t] = z[t] * slope", "by itself")
    assert str(second) == "h[t] += h[t - 1]"
    assert first.loop is second.loop
    assert str(first.loop) == "for t in range(3)"
    assert first.reads == {"h", "z", "slope"}
    assert text.locals == ("h", "a")
    assert text.named == ("h", "a", "t")
    assert blocks(text.lines) == [[made], [first, second], [last]]
    assert backward_slice(text.lines, {"h"}) == [made, first, second]
    assert backward_slice(text.lines, {"z"}) == []
    z = np.array([1.0, 10.0, 100.0])
    np.testing.assert_array_equal(text.run({"z": z, "slope": 3.0})["a"], [6.0, 66.0, 666.0])


@pytest.mark.parametrize(
    ("body", "problem", "fix"),
    [
        ("a = zz * 2\n    return a", "line 7: zz is not defined here", "did you mean 'z'?"),
        ("a = nnp.exp(z)\n    return a", "line 7: nnp is not defined here", "did you mean 'np'?"),
        ("a = row(z)\n    return a", "line 7: row is not defined here", "did you mean 'rows'?"),
        ("alpha = 2 * z\n    return alfa", "line 8: alfa is not defined here", "did you mean 'alpha'?"),
        ("return z\n    a = z", "line 8: nothing follows the return", ""),
        ("a = z", ": a rule ends by returning the names it computed", ""),
        ("a = z\n    return a, z", ": a forward returns one value, this one returns a tuple", ""),
    ],
    ids=["name", "module", "primitive", "returned", "after-return", "no-return", "two-returned"],
)
def test_a_name_or_a_return_that_is_wrong_is_named(body: str, problem: str, fix: str, load: Load) -> None:
    """An undefined name comes with the nearest one that is defined."""
    with pytest.raises(RuleError) as caught:
        load(f"{OWN}{body}\n")
    assert caught.value.problem.endswith(problem)
    assert caught.value.fix == fix


@pytest.mark.parametrize(
    "arguments", ["z=1", "*z", "z, **more"], ids=["positional-default", "any-number", "any-name"]
)
def test_arguments_are_names(arguments: str, load: Load) -> None:
    """Only options have defaults, and they are given by name."""
    with pytest.raises(RuleError, match=r"arguments are names, and options are keyword-only \(after \*\)"):
        load(f'@rule("... -> ...")\ndef own({arguments}):\n    a = 2 * z\n    return a\n')


FORWARD = """\
@rule("..., ... -> ...")
def own(z, kept: Mask, *, slope=2.0):
    inner = slope * z
    a = inner * kept
    return a


@own.{part}
def half({arguments}):
    {body}
"""

EVALUATIONS = """\
@rule("... -> ...", constant=True)
def half(x):
    y = x
    return y


@rule("..., ... -> ..."{evaluation})
def own(z, kept: Mask):
    a = z * kept
    return a


@own.draws
def own_draws(shape):
    kept = np.ones(shape)
    return kept
"""

WRONG_PARTS = {
    "backward-unknown-name": (
        "backward", "da, iner", "dz = da\n    return dz",
        "takes iner, which own does not define", "did you mean 'inner'?",
    ),
    "backward-other-upstream": (
        "backward", "dy", "dz = dy\n    return dz",
        "takes dy, which own does not define", "choose from a, da, inner, kept, z",
    ),
    "backward-unknown-option": (
        "backward", "da, *, slop", "dz = slop * da\n    return dz",
        "takes the option slop, which own does not have", "did you mean 'slope'?",
    ),
    "backward-without-a-gradient": (
        "backward", "da", "dkept = da\n    return dkept",
        "returns dkept where the gradients are dz",
        "return one gradient for each argument that has one, in the forward's order",
    ),
    "backward-gradient-too-many": (
        "backward", "da", "dz = da\n    dkept = da\n    return dz, dkept",
        "returns dz, dkept where the gradients are dz",
        "return one gradient for each argument that has one, in the forward's order",
    ),
    "backward-second-meaning": (
        "backward", "da", "inner = da\n    dz = inner\n    return dz",
        "inner is already a name of own's forward", "",
    ),
    "draws-unknown-name": (
        "draws", "shape, seed", "kept = np.ones(shape)\n    return kept",
        "takes seed, which own does not define", "choose from key, shape",
    ),
    "draws-no-mask": (
        "draws", "shape", "mask = np.ones(shape)\n    return mask", "returns mask where the masks are kept", "",
    ),
    "draws-another-name": (
        "draws", "shape", "drawn = np.ones(shape)\n    return drawn", "returns drawn where the masks are kept", "",
    ),
    "updates-unknown-name": (
        "updates", "inner, total", "total += inner\n    return total",
        "takes total, which own does not define", "choose from a, inner, kept, z",
    ),
}  # fmt: skip
"""Parts of a rule that do not fit its forward: which, its text, what is said, and the repair."""


@pytest.mark.parametrize("kind", WRONG_PARTS)
def test_a_part_that_does_not_fit_its_forward_is_named(kind: str, load: Load) -> None:
    """A backward, a draw or an update is read against its forward when it is defined."""
    part, arguments, body, problem, fix = WRONG_PARTS[kind]
    with pytest.raises(RuleError) as caught:
        load(FORWARD.format(part=part, arguments=arguments, body=body))
    assert re.fullmatch(rf"half \(.*own_rules\.py:13\): {re.escape(problem)}", caught.value.problem)
    assert caught.value.fix == fix


def test_an_evaluation_takes_what_its_rule_takes(load: Load) -> None:
    """Its names are read as the rule's own, so a name that the rule does not have is refused."""
    with pytest.raises(RuleError, match="takes x, which own does not define") as caught:
        load(EVALUATIONS.format(evaluation=", evaluation=half"))
    assert caught.value.fix == "choose from kept, z"


def test_a_rule_that_draws_says_what_it_is_outside_training(load: Load) -> None:
    """No mask is drawn there, so there must be another rule."""
    with pytest.raises(RuleError, match="what own is outside training is not said"):
        load(EVALUATIONS.format(evaluation=""))


def test_a_gradient_without_a_backward_is_named(load: Load) -> None:
    """A rule whose backward is not written says so when its gradient is asked for, and how to write it."""
    own = load(f"{OWN}a = slope * z\n    return a\n").own
    with pytest.raises(RuleError, match="no backward is written for own") as caught:
        own.gradients(np.ones(2), np.ones(2))
    assert caught.value.fix.startswith("write one under it with @own.backward, or declare")


def test_a_constant_rule_has_no_gradients(load: Load) -> None:
    """What is declared constant needs no backward."""
    own = load('@rule("... -> ...", constant=True)\ndef own(z):\n    a = 2 * z\n    return a\n').own
    assert own.differentiable == ()


def test_the_signature_has_as_many_arguments_as_the_function(load: Load) -> None:
    """The two must agree, and both numbers are named."""
    with pytest.raises(RuleError, match=r"the signature N, N -> N has 2 arguments and the function 1"):
        load('@rule("N, N -> N")\ndef own(z):\n    a = 2 * z\n    return a\n')


def test_a_function_without_source_is_no_rule() -> None:
    """A rule is its text: a lambda, a function made by exec and one written in C have none."""
    scope: dict[str, object] = {}
    exec("def made(z):\n    a = 2 * z\n    return a", scope)
    with pytest.raises(RuleError, match="<lambda>: its source is not at hand, and a rule is its text"):
        rule("... -> ...")(lambda z: z)
    with pytest.raises(RuleError, match="made: its source is not at hand"):
        rule("... -> ...")(scope["made"])
    with pytest.raises(RuleError, match="<ufunc 'tanh'> is not written in Python"):
        rule("... -> ...")(np.tanh)


def test_an_unknown_option_is_named(load: Load) -> None:
    """A misspelt option is not left unread."""
    own = load(f"{OWN}a = slope * z\n    return a\n").own
    with pytest.raises(RuleError, match="own has no option slop") as caught:
        own.values(np.ones(2), slop=3.0)
    assert caught.value.fix == "did you mean 'slope'?"


@pytest.mark.parametrize(
    ("arguments", "body", "problem"),
    [
        ("dW, W", "W -= dW", r"takes a parameter and its gradient first, as in \(W, dW\)"),
        ("W", "W -= 1", r"takes a parameter and its gradient first, as in \(W, dW\)"),
        ("W, dW", "W **= dW", r"a line is `name = expression`"),
        ("W, dW", "v = dW\n    v += dW\n    W -= v", r"v \+=: an update changes its arguments only"),
    ],
    ids=["order", "no-gradient", "power", "changes-a-local"],
)
def test_an_update_that_is_wrong_is_named(arguments: str, body: str, problem: str, load: Load) -> None:
    """An update takes (W, dW, …) and changes its arguments by +=, -=, *= or /= only."""
    with pytest.raises(RuleError, match=problem):
        load(f"@update\ndef own({arguments}):\n    {body}\n    return W\n")


def test_reasons_are_the_comments_behind_the_lines(load: Load) -> None:
    """Behind the last line of a statement, whatever letters stand before; none where there is none."""
    body = "éäöü = np.exp(  # not this one\n        -z\n    )\n    a = éäöü * éäöü  # with ∂ and # 2\n"
    text = load(f"{OWN}{body}    return a\n").own.forward
    assert [line.reason for line in text.lines] == ["", "with ∂ and # 2"]
    assert [str(line) for line in text.lines] == ["éäöü = np.exp(-z)", "a = éäöü * éäöü"]
    assert text.locals == ("éäöü", "a")


def test_the_last_of_two_functions_of_one_name_is_read(load: Load) -> None:
    """A name may be defined again further down, as happens at a prompt."""
    own = load(f"{OWN}a = 2 * z\n    return a\n\n\n{OWN}a = 3 * z\n    return a\n").own
    assert str(own.forward.lines[0]) == "a = 3 * z"


def test_an_edited_file_is_read_as_it_now_stands(load: Load) -> None:
    """Loaded again after an edit, a rule has the new text, not the one that was read before."""
    assert str(load(f"{OWN}a = slope * z\n    return a\n").own.forward.lines[0]) == "a = slope * z"
    again = load(f"{OWN}a = slope * z * z * z  # longer\n    return a\n").own
    assert str(again.forward.lines[0]) == "a = slope * z * z * z"
    assert again.values(np.array([2.0]))["a"] == again(np.array([2.0])) == 16


@pytest.mark.parametrize(
    ("numbers", "problem"),
    [
        ({"learning_rate": 0.1, "stp": 1}, "adam takes no stp"),
        ({"learning_rate": 0.1}, "adam: step is not given"),
    ],
    ids=["unknown", "missing"],
)
def test_a_number_an_update_does_not_take_is_named(numbers: dict[str, float], problem: str) -> None:
    """None is left unread, and none is made up."""
    with pytest.raises(RuleError, match=problem):
        adam(*np.ones((4, 2)), **numbers)


def test_an_update_rule_is_read_with_its_slots(load: Load) -> None:
    """The arguments declared `State` are what an optimiser keeps for each parameter."""
    own = load("@update\ndef own(W, dW, v: State, learning_rate, *, m=0.5):\n    v *= m\n    v += dW\n"
               "    W -= learning_rate * v\n    return W, v\n").own  # fmt: skip
    W, v = np.array([1.0]), np.array([2.0])
    own(W, np.array([3.0]), v, learning_rate=0.5)
    assert (own.slots, W.item(), v.item()) == (("v",), -1.0, 4.0)
    assert isinstance(own, type(update(own_update)))
    assert read_text(own_update, updates=True).returns == ("W",)


def own_update(W, dW, learning_rate):
    W -= learning_rate * dW
    return W


def test_a_formula_stands_for_its_expression() -> None:
    """Rules that have an expression in common write it once; their lines, and so every program, have it in full."""
    forward, backward = rules.silu.forward, rules.silu.backward_text
    assert [str(line) for line in forward.lines] == [
        "e = np.exp(-np.abs(z))",
        "s = np.where(z >= 0, 1, e) / (1 + e)",
        "a = z * s",
    ]
    assert str(backward.lines[0]) == "dz = da * (s + z * e / (1 + e) ** 2)"
    z = np.array([-3.0, 0.5])
    assert rules.silu(z).tobytes() == rules.silu.values(z)["a"].tobytes()
