"""`handgrad check`: the user's file, what is found in it, what is printed, written and returned."""

from __future__ import annotations

import builtins
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click import UsageError
from click.testing import CliRunner

from handgrad.checking import Report
from handgrad.cli import group
from handgrad.rules import RULES

from ..conftest import Command

HEAD = """
import numpy as np

def inputs(rng):
    return {"x": rng.normal(size=(4, 3)), "W": rng.normal(size=(3, 3))}
"""

FORWARD = """
def forward(x, W):
    return np.tanh(x @ W)
"""

RIGHT = """
def backward(grad_output, x, W):
    dz = grad_output * (1 - np.tanh(x @ W) ** 2)
    return {"x": dz @ W.T, "W": x.T @ dz}
"""

WRONG = RIGHT.replace("W.T", "W")

PRINTING = 'print("hello")\n' + HEAD + FORWARD.replace("return", 'print("once more")\n    return')

POWERS = """
import numpy as np
from handgrad.rules import rule

def inputs(rng):
    return {"x": rng.normal(size=(4, 3))}

def square(x):
    return x * x

def square_backward(grad_output, x):
    return {"x": grad_output * x}

def cube(x):
    return x**3

def cube_backward(grad_output, x):
    return {"x": 3 * grad_output * x**2}

def quart(x):
    return x**4

def quart_backward(grad_output, x):
    return {"x": 3 * grad_output * x**3}

def inverse(x):
    return 1 / x

def inverse_backward(grad_output, x):
    return {"y": -grad_output / x**2}

def inverse_inputs():
    return {"x": np.array([1.0, 2.0])}

@rule("... -> ...")
def sixth(x):
    y = x**6
    return y

@sixth.backward
def sixth_backward(dy, x):
    dx = 6 * dy * x**5
    return dx
"""

ONCE = """import builtins

if hasattr(builtins, "imported"):
    raise ImportError("imported again")
builtins.imported = True
"""

IMPORTS_ONCE = """import sys

sys.path.append("site-packages")
import once
sys.path.remove("site-packages")
"""

Check = Callable[..., tuple[int, str, str]]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Check]:
    """Run the command in the test's folder; return its exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)
    modules, path = set(sys.modules), list(sys.path)

    def run(*arguments: str, columns: int = 100) -> tuple[int, str, str]:
        runner = CliRunner(env={"COLUMNS": str(columns)})
        done = runner.invoke(group, ["check", *arguments], standalone_mode=False)
        if done.exception is not None:
            raise done.exception
        return done.return_value, done.stdout, done.stderr

    yield run
    assert sys.path == path
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def write(name: str, *parts: str) -> None:
    Path(name).write_text("".join(parts), encoding="utf-8")


def test_a_file_is_run_as_python_runs_it(check: Check) -> None:
    """Without the options of handgrad's own modules: its annotations are evaluated."""
    write("layer.py", HEAD, FORWARD, RIGHT, "\ndef other(a: Undefined):\n    return a\n")
    code, _, err = check("layer.py")
    assert code == 2
    assert "NameError: name 'Undefined' is not defined" in err


def test_a_right_file_returns_0(check: Check) -> None:
    """With what was tried."""
    write("layer.py", HEAD, FORWARD, RIGHT)
    code, out, err = check("layer.py")
    assert (code, err) == (0, "")
    assert out.startswith("layer.py: right\n  right        dx (4, 3)")
    assert "3 upstream gradients" in out


def test_a_wrong_file_returns_1_and_the_repair(check: Check) -> None:
    """Which is shown, and not written."""
    write("layer.py", HEAD, FORWARD, WRONG)
    before = Path("layer.py").read_bytes()
    code, out, err = check("layer.py")
    assert (code, err) == (1, "")
    assert out.startswith("layer.py: wrong\n")
    assert "  transposed in dx\n" in out
    assert '      -    return {"x": dz @ W, "W": x.T @ dz}\n' in out
    assert '      +    return {"x": dz @ W.T, "W": x.T @ dz}\n' in out
    assert Path("layer.py").read_bytes() == before
    assert not Path("__pycache__").exists()


def test_fix_writes_the_repair(check: Check) -> None:
    """The file becomes the right one, keeps its mode, and is checked again; a link stays one."""
    write("layer.py", HEAD, FORWARD, WRONG)
    Path("layer.py").chmod(0o755)
    Path("link.py").symlink_to("layer.py")
    code, out, err = check("link.py", "--fix", "--yes")
    assert code == 0
    assert "+    return" in out
    assert err == "wrote link.py: line 12: `W` becomes `W.T`\nchecked again: right\n"
    assert Path("layer.py").read_text() == HEAD + FORWARD + RIGHT
    assert stat.S_IMODE(Path("layer.py").stat().st_mode) == 0o755
    assert Path("link.py").is_symlink()
    assert sorted(path.name for path in Path().iterdir()) == ["layer.py", "link.py"]
    assert check("link.py", "--fix", "--yes")[0] == 0


def test_fix_imports_nothing_installed_again(check: Check) -> None:
    """PyTorch and JAX end Python when they are."""
    Path("site-packages").mkdir()
    write("site-packages/once.py", ONCE)
    write("layer.py", IMPORTS_ONCE, HEAD, FORWARD, WRONG)
    try:
        code, _, err = check("layer.py", "--fix", "--yes")
    finally:
        sys.modules.pop("once", None)
        vars(builtins).pop("imported", None)
    assert (code, err.splitlines()[-1]) == (0, "checked again: right")


def test_fix_asks_and_writes_nothing_where_nobody_can_answer(check: Check) -> None:
    write("layer.py", HEAD, FORWARD, WRONG)
    with pytest.raises(UsageError, match="--fix asks before it writes, and there is no terminal to ask at"):
        check("layer.py", "--fix")
    assert Path("layer.py").read_text() == HEAD + FORWARD + WRONG


def test_fix_keeps_the_ends_of_lines_and_the_encoding(check: Check) -> None:
    """As the file had them."""
    text = ("# coding: latin-1\n# für\n" + HEAD + FORWARD + WRONG).replace("\n", "\r\n")
    Path("layer.py").write_bytes(text.encode("latin-1"))
    assert check("layer.py", "--fix", "--yes")[0] == 0
    assert Path("layer.py").read_bytes() == text.replace("dz @ W,", "dz @ W.T,").encode("latin-1")


def test_fix_without_a_proved_repair_writes_nothing(check: Check) -> None:
    """And says so: without the source of a backward there is none."""
    made = f"text = {WRONG!r}\nexec(text)\n"
    write("layer.py", HEAD, FORWARD, made)
    code, _, err = check("layer.py", "--fix", "--yes")
    assert code == 1
    assert err == "layer.py is as it was: no repair was proved\n"
    assert Path("layer.py").read_text() == HEAD + FORWARD + made


def test_fix_writes_into_the_file_where_the_mistake_is(check: Check) -> None:
    """Also where that is imported."""
    write("other.py", "import numpy as np\n", FORWARD, WRONG)
    write("layer.py", HEAD, "from other import forward, backward\n")
    before = Path("layer.py").read_bytes()
    code, out, err = check("layer.py", "--fix", "--yes")
    assert code == 0
    assert "      other.py:" in out
    assert re.fullmatch(r"wrote .*other\.py: .*\nchecked again: right\n", err)
    assert Path("other.py").read_text() == "import numpy as np\n" + FORWARD + RIGHT
    assert Path("layer.py").read_bytes() == before


def test_every_pair_of_a_file_is_checked(check: Check) -> None:
    """Functions and rules; one that cannot be checked does not keep the others from it."""
    write("powers.py", POWERS)
    code, out, _ = check("powers.py")
    assert code == 1
    heads = re.findall(r"^powers\.py:(\w+): (.+)$", out, re.MULTILINE)
    assert heads == [
        ("square", "wrong"), ("cube", "right"), ("quart", "wrong"), ("inverse", "cannot tell"), ("sixth", "right")
    ]  # fmt: skip
    assert "backward returns a gradient for 'y', which is no input" in out


def test_every_pair_of_a_file_is_mended(check: Check) -> None:
    """One after another: a later repair keeps the earlier ones."""
    write("powers.py", POWERS)
    code, _, err = check("powers.py", "--fix", "--yes")
    assert code == 2  # of what is left, one cannot be checked
    assert err.count("wrote powers.py") == err.count("checked again: right") == 2
    assert check("powers.py:square")[0] == check("powers.py:quart")[0] == 0


def test_one_of_several_is_chosen_by_name(check: Check) -> None:
    """With inputs of its own, or those of the file."""
    write("powers.py", POWERS)
    code, out, _ = check("powers.py:cube")
    assert code == 0
    assert out.startswith("powers.py:cube: right")
    assert check("powers.py:sixth")[0] == 0
    code, out, err = check("powers.py:inverse")
    assert (code, out) == (2, "")
    assert err.startswith(
        "Error: backward returns a gradient for 'y', which is no input\n  given  the inputs are x\n"
    )


def test_json_is_one_object(check: Check) -> None:
    """A report, or several in one; what the user's code prints goes elsewhere."""
    write("layer.py", PRINTING, WRONG)
    code, out, err = check("layer.py", "--json")
    assert (code, err) == (1, "hello\n")
    report = Report.from_json(out)
    assert (report.subject, report.verdict, report.findings[0].code) == ("layer.py", "wrong", "transposed")
    write("powers.py", POWERS)
    reports = json.loads(check("powers.py", "--json")[1])["reports"]
    assert [each["verdict"] for each in reports] == ["wrong", "right", "wrong", "cannot tell", "right"]
    code, out, err = check("nowhere.py", "--json")
    assert code == 2
    assert Report.from_json(out).verdict == "cannot tell"
    assert "there is no such file" in out
    assert "there is no such file" in err


def test_what_functions_print_is_not_shown(check: Check) -> None:
    """A forward is called hundreds of times; what the file prints when it is imported is."""
    write("layer.py", PRINTING, RIGHT)
    out = check("layer.py")[1]
    assert out.startswith("hello\nlayer.py: right")
    assert "once more" not in out


def test_inputs_may_be_arrays_or_take_no_generator(check: Check) -> None:
    """As `handgrad.check` takes them."""
    plain = (
        "import numpy as np\ndef forward(x):\n    return x * x\ndef backward(g, x):\n    return 2 * x * g\n"
    )
    write("one.py", plain, "inputs = {'x': np.array([1.0, 2.0])}\n")
    write("two.py", plain, "def inputs():\n    return (np.array([1.0, 2.0]),)\n")
    assert check("one.py")[0] == check("two.py")[0] == 0


def test_a_seed_draws_other_inputs(check: Check) -> None:
    """The same seed, the same report."""
    write("layer.py", HEAD, FORWARD, WRONG)
    worst = {
        seed: re.findall(r"worst .*", check("layer.py", "--verbose", "--seed", seed)[1])
        for seed in ("0", "1")
    }
    assert worst["0"] != worst["1"]
    assert worst["1"] == re.findall(r"worst .*", check("layer.py", "--verbose", "--seed", "1")[1])


def test_a_file_may_import_its_neighbours(check: Check, tmp_path: Path) -> None:
    """And is found from another folder; a name that Python has already is no trouble."""
    (tmp_path / "work").mkdir()
    write("work/neighbour.py", "import numpy as np\ndef f(x):\n    return np.tanh(x)\n")
    write(
        "work/json.py",
        "from neighbour import f\ndef inputs(rng):\n    return {'x': rng.normal(size=3)}\n",
        "def forward(x):\n    return f(x)\ndef backward(g, x):\n    return g * (1 - f(x) ** 2)\n",
    )
    assert check("work/json.py")[0] == 0
    assert sys.modules["json"] is json


def test_networks_and_layers_have_names_too(check: Check) -> None:
    """They need no inputs."""
    write(
        "net.py",
        "from handgrad import Linear, Network, ReLU, SoftmaxCrossEntropy\n",
        "net = Network(Linear(6, 5), ReLU(), Linear(5, 3), loss=SoftmaxCrossEntropy())\nlayer = Linear(4, 3)\n",
    )
    code, out, _ = check("net.py:net")
    assert code == 0
    assert re.findall(r"  right +d(\w+)", out) == ["W1", "b1", "W2", "b2"]
    assert check("net.py:layer")[0] == 0
    assert "there is nothing to check" in check("net.py")[2]


def test_what_a_file_imports_from_its_folder_is_named(check: Check) -> None:
    """Its own classes are in the file that is named."""
    write("parts.py", "class Dense:\n    def forward(self, x):\n        return 2 * x\n")
    write("whole.py", "import numpy as np\nfrom parts import Dense\n\nlayer = Dense().forward(np.ones(3))\n")
    err = check("whole.py")[2]
    assert "given  Dense is defined in parts.py" in err
    assert "fix    handgrad check parts.py" in err


def test_rules_are_checked_one_a_line(check: Check) -> None:
    """All of handgrad's own, and a summary."""
    code, out, _ = check("--rules")
    assert code == 0
    *lines, last = out.splitlines()
    own = [rule.name for rule in RULES.values() if not rule.constant]
    assert [line.split()[:2] for line in lines] == [["right", name] for name in own]
    assert re.fullmatch(rf"{len(own)} rules, all right, in \d+\.\d s", last)
    reports = json.loads(check("--rules", "--json")[1])["reports"]
    assert [each["subject"].partition("(")[0] for each in reports] == own


ERRORS: dict[str, tuple[str, str]] = {
    "def f(:\n": ("layer.py", "layer.py:1: SyntaxError: invalid syntax"),
    "\nimport nowhere_at_all\n": ("layer.py", "layer.py:2: ModuleNotFoundError: No module named 'nowhere_at_all'"),
    "import sys\nsys.exit(3)\n": ("layer.py", "layer.py:2: SystemExit: 3"),
    "x = 1\n": ("layer.py", "layer.py: there is nothing to check in it"),
    "def forward(x):\n    return x\n": ("layer.py", "layer.py: 'backward' is missing"),
    "forward = 3\ndef backward(g, x):\n    return g\n": ("layer.py", "layer.py: 'forward' is no function"),
    "def swish(x):\n    return x\n": ("layer.py:swich", "layer.py: there is no 'swich' in it"),
    "def swish(x): \n    return x\n": ("layer.py:swish", "layer.py: 'swish_backward' is missing"),
    "import sys\ninputs = {'x': [1.0]}\ndef forward(x):\n    sys.exit()\ndef backward(g, x):\n    return g\n": (
        "layer.py", "the file ends Python when it is imported or called"
    ),
    "inputs = {'x': [1.0]}\ndef forward(x):\n    return x * y\ndef backward(g, x):\n    return g\n": (
        "layer.py", "forward raised NameError: name 'y' is not defined"
    ),
    "": ("nowhere.py", "nowhere.py: there is no such file"),
    " ": ("layer.txt", "layer.txt: is no Python file"),
}  # fmt: skip


@pytest.mark.parametrize("text", ERRORS)
def test_an_error_is_one_message_and_returns_2(check: Check, text: str) -> None:
    """With the place; nothing on standard output."""
    source, message = ERRORS[text]
    write("layer.py", text)
    write("layer.txt", text)
    code, out, err = check(source)
    assert (code, out) == (2, "")
    assert err.splitlines()[0] == f"Error: {message}"
    assert all(line.startswith(("  given  ", "  fix    ")) for line in err.splitlines()[1:])


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["layer.py", "--rules"],
        ["--rules", "--fix"],
        ["layer.py", "--seed", "-1"],
        ["layer.py", "--fix"],
        ["layer.py", "--gradient", "dW"],
    ],
)
def test_what_does_not_go_together_returns_2(handgrad: Command, arguments: list[str]) -> None:
    """As every usage error."""
    assert "Usage: handgrad check" in handgrad("check", *arguments, code=2).stderr


@pytest.mark.parametrize("columns", [40, 80, 100])
def test_reports_fit_the_terminal(check: Check, columns: int) -> None:
    """From 80 columns on; code keeps its length."""
    write("layer.py", HEAD, FORWARD, WRONG)
    lines = check("layer.py", columns=columns)[1].splitlines()
    assert max(len(line) for line in lines if not line.startswith("      ")) <= max(80, columns)


def test_colour_is_for_terminals(handgrad: Command, tmp_path: Path) -> None:
    """A file or a pipe gets plain text."""
    (tmp_path / "layer.py").write_text(HEAD + FORWARD + WRONG)
    assert "\x1b" not in handgrad("check", "layer.py", code=1).stdout


@pytest.mark.parametrize(("plain", "coloured"), [("", True), ("1", False)])
def test_a_terminal_sees_colour_unless_it_asks_for_none(tmp_path: Path, plain: str, coloured: bool) -> None:
    """NO_COLOR is kept to."""
    import pty

    (tmp_path / "layer.py").write_text(HEAD + FORWARD + WRONG)
    code = "import sys; sys.argv = ['handgrad', 'check', sys.argv[1]]; from handgrad.cli import main; main()"
    seen = bytearray()

    def read(number: int) -> bytes:
        data = os.read(number, 1024)
        seen.extend(data)
        return b" "

    command = ["env", f"NO_COLOR={plain}", sys.executable, "-c", code, str(tmp_path / "layer.py")]
    status = pty.spawn(command, read, lambda number: b"")
    assert os.waitstatus_to_exitcode(status) == 1
    assert (b"\x1b[31mwrong" in seen) == coloured


def test_a_terminal_sees_what_follows_the_verdict(tmp_path: Path) -> None:
    """The verdict at once, then each stage in one line, erased before the report; a pipe sees nothing of it."""
    import pty

    (tmp_path / "layer.py").write_text(HEAD + FORWARD + WRONG)
    code = (
        "import sys, handgrad.cli.check as c; c.SHOWN_EVERY = 0;"
        "from handgrad.cli import main; sys.argv = ['handgrad', 'check', sys.argv[1]]; main()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "layer.py")]
    seen = bytearray()

    def read(number: int) -> bytes:
        data = os.read(number, 1024)
        seen.extend(data)
        return b" "

    pty.spawn(command, read, lambda number: b"")
    said = seen.decode()
    stages = [
        "layer.py: wrong; Ctrl-C",
        "looking for the first wrong line",
        "naming the mistake",
        "repairing layer.py: edit 1, ",
    ]
    wiped = re.search(r"\r +\r", said)
    assert wiped is not None, said
    places = [said.index(stage) for stage in (*stages, wiped[0], "dx")]
    assert places == sorted(places)
    piped = subprocess.run(command, capture_output=True, text=True)
    assert (piped.returncode, piped.stderr) == (1, "")


PROGRAMS = Path(__file__).parent / "programs"
OBJECT = """
rng = np.random.default_rng(0)
layer = Affine(rng.normal(size=(3, 4)), rng.normal(size=4))
inputs = {"x": rng.normal(size=(5, 3))}
"""


def test_a_script_is_checked_up_to_its_first_update(check: Check) -> None:
    """It is run once more for each entry, and never trains."""
    code, out, _ = check(str(PROGRAMS / "script_line_fit.py"))
    assert code == 1
    assert "wrong        db ()" in out
    assert "constant-factor in db" in out
    assert check(str(PROGRAMS / "script_relu_regression.py"))[0] == 0


INDICES = """
import numpy as np

table = np.random.default_rng(0).normal(size=(5, 3))
inputs, targets = [0, 4, 1, 4], np.ones((4, 3))

def loss_and_grad(inputs, targets):
    rows = table[inputs]
    dtable = np.zeros_like(table)
    np.add.at(dtable, inputs, rows - targets)
    return 0.5 * np.sum((rows - targets) ** 2), dtable, rows[-1]

loss_and_grad(inputs, targets)
"""


def test_a_list_that_is_called_inputs_is_data_of_the_file(check: Check) -> None:
    write("rows.py", INDICES)
    assert check("rows.py")[0] == 0
    write(
        "rows.py",
        INDICES.replace("np.add.at(dtable, inputs, rows - targets)", "dtable[inputs] = rows - targets"),
    )
    code, out, _ = check("rows.py")
    assert code == 1
    assert "overwritten-not-accumulated in dtable" in out


def test_an_object_of_the_file_is_checked_by_its_name(check: Check) -> None:
    """With the inputs of the file."""
    write("net.py", (PROGRAMS / "layer_dense_bias_mean.py").read_text(), OBJECT)
    code, out, _ = check("net.py:layer")
    assert code == 1
    assert "batch-mean-vs-sum in db" in out


PARTS = """
import numpy as np

def linear_forward(A, W):
    return W @ A, (A, W)

def linear_backward(dZ, cache):
    A, W = cache
    return W.T @ dZ, dZ @ A.T / A.shape[1]

def model_forward(X, W):
    Z, cache = linear_forward(X, W)
    return np.sum(Z**2) / X.shape[1] / 2, (Z, cache)

def model_backward(dcost, cache):
    Z, inner = cache
    dX, dW = linear_backward(dcost * Z, inner)
    return dX / Z.shape[1], dW
"""


def test_a_factor_that_the_caller_leaves_to_a_part_is_no_mistake(check: Check) -> None:
    """As in courses, where 1/m is in the linear layer's backward; without the whole it is one."""
    write("parts.py", PARTS)
    code, out, _ = check("parts.py")
    assert code == 0
    assert "it is right as a part of model_backward" in out
    write("parts.py", PARTS[: PARTS.index("def model_forward")])
    assert check("parts.py")[0] == 1


def test_a_contract_that_is_broken_returns_3_and_a_report_that_fits_a_screen(check: Check) -> None:
    """The verdict has its reason."""
    write(
        "net.py",
        (PROGRAMS / "layer_relu_class.py").read_text(),
        "\nlayer = Relu()\ninputs = {'x': np.ones((2, 3)) - [0.5, 1.5, 3]}\n",
    )
    code, out, _ = check("net.py:layer")
    assert code == 3
    assert out.startswith("net.py:layer: right, but\n  after backward, the upstream gradient")
    assert len(out.splitlines()) <= 24, out


def test_a_check_that_fails_itself_is_an_error_and_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 1 says that a gradient is wrong; what handgrad cannot do is 2, without a traceback."""
    (tmp_path / "pair.py").write_text("def f(x):\n    return x * x\n\n\ndef f_prime(x):\n    return 2 * x\n")

    def fail(*_: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr("handgrad.cli.check.check_in_stages", fail)
    result = CliRunner().invoke(group, ["check", str(tmp_path / "pair.py")], standalone_mode=False)
    assert (result.exception, result.return_value) == (None, 2), result.output
    assert "handgrad failed: RuntimeError: no such thing" in result.output


SCALE = """
import numpy as np


class Scale:
    def forward(self, x):
        self.x = x
        return 2 * x

    def backward(self, grad):
        return grad * len(self.x.sum())


Scale().forward(np.ones((2, 3)))
"""


def test_what_fails_in_the_users_file_is_not_to_be_reported(tmp_path: Path) -> None:
    (tmp_path / "scale.py").write_text(SCALE)
    result = CliRunner().invoke(group, ["check", str(tmp_path / "scale.py")], standalone_mode=False)
    assert (result.exception, result.return_value) == (None, 2), result.output
    assert "scale.py:Scale: TypeError: object of type 'numpy.float64' has no len()" in result.output
    assert "in scale.py, line 11" in result.output
    assert "mend that line, or call it in the file with arguments that it takes" in result.output


def test_lists_of_arrays_of_several_lengths_are_no_sizes(handgrad: Command, tmp_path: Path) -> None:
    """What a file has beside its functions is looked at for sizes; not everything has one."""
    source = (
        "import numpy as np\n\n\ndef scaled(x, w):\n    return x * w, (x, w)\n\n\n"
        "def scaled_backward(dy, cache):\n    x, w = cache\n    return dy * w, (dy * x).sum(axis=0)\n\n\n"
        "layers = [np.ones(3), np.ones((2, 4)), 5, [1, 2]]\nx = np.ones((6, 3))\n"
    )
    (tmp_path / "lists.py").write_text(source)
    assert "right" in handgrad("check", tmp_path / "lists.py").stdout


BY_OPTION = """
import numpy as np

def layer_inputs(rng):
    return {"x": rng.normal(size=(6, 3)), "kind": np.arange(KINDS)}

def act(z):
    return np.tanh(z)

def act_backward(dout, z):
    return dout * (1 - np.tanh(z) ** 2) / 2

def layer(x, kind):
    return np.maximum(x, 0) if len(kind) == 2 else act(x) / 2

def layer_backward(dout, x, kind):
    return {"x": dout * (x > 0) if len(kind) == 2 else act_backward(dout, x)}
"""


@pytest.mark.parametrize(("kinds", "verdict"), [(2, "wrong"), (3, "right")])
def test_a_part_is_right_only_where_it_runs_in_what_is_right(handgrad, tmp_path, kinds, verdict):
    (tmp_path / "parts.py").write_text(BY_OPTION.replace("KINDS", str(kinds)))
    done = handgrad("check", "parts.py", code=int(verdict == "wrong"))
    assert f"parts.py:act: {verdict}\n" in done.stdout
