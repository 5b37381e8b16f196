"""``handgrad explain``: what it prints of runs, configurations, data and files of one's own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from handgrad import Explanation

from ..conftest import ENVIRONMENT, Command

OWN = '''
import numpy as np
from handgrad import Linear, Network, ReLU, SoftmaxCrossEntropy, rule

@rule("N... F, F -> N... F")
def scale(x, g):
    """Multiply each feature by its own factor."""
    y = x * g
    return y

@scale.backward
def scale_backward(dy, x, g):
    dx = dy * g  # each feature has its factor
    dg = (dy * x).sum(axis=0)  # every row uses the same factors
    return dx, dg

@rule("... -> ...")
def square(x):
    y = x * x
    return y

@square.backward
def square_backward(dy, x):
    dx = dy * x  # the 2 is missing
    return dx

network = Network(Linear(4, 5), ReLU(), Linear(5, 3), loss=SoftmaxCrossEntropy())

small = Network(Linear(2, 3), loss=SoftmaxCrossEntropy())
small_inputs = {"x": np.ones((6, 4)), "t": np.zeros(6, int)}

def plain(x):
    return x

def plain_backward(dy, x):
    return dy

plain_inputs = {"x": np.ones(3)}
'''


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(OWN, encoding="utf-8")
    two = "from handgrad import *\nfirst = Network(Linear(2, 3))\nsecond = Network(Linear(3, 2))\n"
    (tmp_path / "two.py").write_text(two, encoding="utf-8")
    return path


def test_without_a_word_the_small_network_is_explained(handgrad: Command, tmp_path: Path) -> None:
    """In the terminal and as a page, as of `handgrad lab`, with two sentences before it and one after it."""
    said = handgrad("explain").stdout
    heading, introduction, *_, next_step = said.split("\n\n")
    assert heading.startswith("network 2 → 8 → 8 → 2 · 114 parameters · 64 rows · loss ")
    assert introduction.startswith("This network has learned nothing yet: ")
    assert len(re.findall(r"\.(?= |\n|$)", introduction)) == 2
    assert next_step.startswith("`handgrad explain --line dW1` explains one line;")
    assert all(len(line) <= 80 for line in said.splitlines())
    handgrad("explain", "--html", "page.html")
    handgrad("lab", "lab.html")
    assert (tmp_path / "page.html").read_bytes() == (tmp_path / "lab.html").read_bytes()
    assert "· 5 rows ·" in handgrad("explain", "--rows", "5").stdout
    assert "dW1" in handgrad("explain", "--line", "dW1").stdout.splitlines()[0]


def test_the_digits_network_is_explained(handgrad: Command) -> None:
    """Every value with its letters, every line with its reason; no line too long, no colour in a pipe."""
    said = handgrad("explain", "digits").stdout
    assert said.startswith("network 64 → 256 → 10 · 19,210 parameters · 32 rows · loss ")
    assert "  dW1         F O1   64×256  65,536  gradient of W1\n" in said
    assert (
        "  ✓ dz1 = da1 * (z1 > 0)\n        a diagonal Jacobian: only active units pass their gradient\n"
        in said
    )
    assert all(len(line) <= 80 for line in said.splitlines())
    assert "\x1b" not in said


def test_a_line_has_its_shape_reason_chain_and_jacobian(handgrad: Command) -> None:
    """All there is to say of one gradient."""
    said = handgrad("explain", "moons", "--hidden", "8", "--standardise", "none", "--line", "dW1").stdout
    assert "  shape           2×8: I = 2, O1 = 8\n" in said
    assert "  same shape as   W1, whose gradient it is\n" in said
    assert "  because         the same W1 serves every row: the rows add up\n" in said
    assert "  differentiates  z1 = x @ W1 + b1\n" in said
    assert "  check           right: 16 entries" in said
    assert "  dW1 = x.T @ dz1\n        2×32  32×8\n" in said
    assert "Jacobian z1:W1" in said
    assert "stored     x[0] ⊗ I" in said
    assert "rows added too early" in said
    assert all(len(line) <= 80 for line in said.splitlines())


def test_a_jacobian_is_of_the_row_that_is_asked_for(handgrad: Command) -> None:
    """With its numbers when they are wanted."""
    said = handgrad(
        "explain", "moons", "--hidden", "8", "--jacobian", "a1:z1", "--example", "0", "--numbers"
    ).stdout
    assert "of         a1 (O1 = 8) with respect to z1 (O1 = 8), for row 0\n" in said
    assert "structure  diagonal\n" in said
    assert "stored     diag((z1 > 0)[0])\n" in said
    assert "\nfull: O1 of a1 down, O1 of z1 across\n" in said


def test_a_convolution_s_jacobian_is_sparse_for_the_batch_and_for_a_row(
    handgrad: Command, tmp_path: Path
) -> None:
    """Each of 4 × 3 places and 2 channels sees its own window: 2 × 3 of 5 × 5 pixels."""
    (tmp_path / "images.py").write_text(
        "from handgrad import Conv2d, Flatten, Linear, MeanSquaredError, Network, Tanh\n"
        "layers = Conv2d(1, 2, (2, 3)), Tanh(), Flatten(), Linear(24, 4)\n"
        "network = Network(*layers, loss=MeanSquaredError(), inputs=(5, 5, 1))\n"
    )
    entries = f"{4 * 3 * 2 * 2 * 3} of {4 * 3 * 2 * 5 * 5} entries"
    said = handgrad("explain", "images.py:network", "--jacobian", "z1:x", "--rows", "7").stdout
    assert "of         z1 (N = 7, P = 4, Q = 3, O1 = 2) with respect to x (N = 7, H = 5, V\n" in said
    assert f"structure  sparse\n  stored     {entries}\n" in said
    text = " ".join(said.split())
    assert "Each of the 7 rows of z1 depends on its own row of x and on no other" in text
    assert f"For row 0 alone it is sparse: {entries}." in text
    assert float(text.partition("upstream differ by ")[2].partition(".  ")[0].split()[0].rstrip(".")) < 1e-12
    assert all(len(line) <= 80 for line in said.splitlines())
    alone = handgrad("explain", "images.py:network", "--jacobian", "z1:x", "--example", "2").stdout
    assert f"structure  sparse\n  stored     {entries}\n" in alone


def test_a_run_is_explained_at_its_own_weights(at: Command, runs: Path) -> None:
    """Its loss is that of its rows; --rows says how many."""
    said = at("explain", "runs/pets", "--rows", "7", "--json").stdout
    explanation = Explanation.from_json(said)
    assert explanation.rows == 7
    assert explanation.ledger["x"].sizes == (7, 3)
    assert at("explain", "runs/pets", "--health").stdout.strip()


def test_a_configuration_is_explained(handgrad: Command, tmp_path: Path) -> None:
    """As `handgrad train --config` would build it."""
    (tmp_path / "small.toml").write_text('[data]\nsource = "moons"\n\n[network]\nhidden = [6, 5]\n')
    assert "network 2 → 6 → 5 → 2" in handgrad("explain", "small.toml").stdout


def test_the_page_is_written(handgrad: Command, tmp_path: Path) -> None:
    """One file that asks nothing of the network."""
    done = handgrad("explain", "moons", "--hidden", "5", "--html", "page.html")
    assert (done.stdout, done.stderr) == ("", "wrote page.html\n")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "initial weights, the first 32 test rows, which training does not see" in page
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert "dW1" in page


def test_the_lab_is_one_small_page_that_says_what_it_is(handgrad: Command, tmp_path: Path) -> None:
    """Untrained weights, two moons, three sentences; in lab.html where no file is named."""
    said = handgrad("lab").stdout
    assert said == f"wrote lab.html: open it in a browser, {(tmp_path / 'lab.html').as_uri()}\n"
    page = (tmp_path / "lab.html").read_text(encoding="utf-8")
    assert "initial weights, 64 rows of two moons" in page
    introduction = page.split('<p class="introduction">')[1].split("</p>")[0]
    assert introduction.count(". ") == 2
    assert len(page.encode()) < 600_000
    handgrad("lab", "other/moons.html")
    assert (tmp_path / "other" / "moons.html").read_text(encoding="utf-8") == page


def test_a_rule_of_one_s_own_is_explained_in_a_fresh_process(own: Path) -> None:
    """Ledger, chain rule and structure, with no word of handgrad's about the rule."""
    arguments = [sys.executable, "-c", "from handgrad.cli import main; main()", "explain"]
    done = subprocess.run(
        [*arguments, f"{own.name}:scale", "--json"],
        cwd=own.parent, env=ENVIRONMENT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    explanation = Explanation.from_json(done.stdout)
    found = {each.input: (each.structure, each.stored) for each in explanation.jacobians}
    assert found == {"x": ("diagonal", "diag(g)"), "g": ("block diagonal", "x")}
    assert explanation.ledger["dg"].axes == ("F",)
    assert explanation.derivations["g"].text == "dg = (dy * x).sum(axis=0)"
    lines = {line.target: line for line in explanation.lines}
    assert lines["dg"].reason == "every row uses the same factors"
    assert lines["dg"].tex.endswith(r"\sum_{n} \left(\frac{\partial L}{\partial y} \odot x\right)")


def test_a_wrong_line_of_one_s_own_is_marked(handgrad: Command, own: Path) -> None:
    """In the overview, and beside its Jacobian."""
    assert "  ✗ dx = dy * x\n        the 2 is missing\n" in handgrad("explain", "own.py:square").stdout
    assert "check      wrong: " in handgrad("explain", "own.py:square", "--jacobian", "y:x").stdout


def test_a_wrong_backward_ends_with_the_command_that_names_the_mistake(handgrad: Command, own: Path) -> None:
    *_, last = handgrad("explain", "own.py:square").stdout.splitlines()
    assert last == "dx: wrong, against numerical gradients; `handgrad check own.py:square` names the mistake"
    assert "first wrong line: own.py" in handgrad("check", "own.py:square", code=1).stdout
    assert "names the mistake" not in handgrad("explain", "own.py:scale").stdout


def test_a_network_of_one_s_own_is_explained(handgrad: Command, own: Path) -> None:
    """On random rows where the file gives none."""
    said = handgrad("explain", "own.py:network", "--rows", "9").stdout
    assert "network 4 → 5 → 3 · 43 parameters · 9 rows" in said


def test_a_rule_is_explained_by_its_name(handgrad: Command) -> None:
    """By its docstring, at random inputs, and its Jacobian; a name that data has too is that of the data."""
    said = handgrad("explain", "softmax", "--jacobian", "y:z", "--rows", "3").stdout
    assert "Jacobian y:z" in said
    heading, opening, notes = handgrad("explain", "sigmoid").stdout.split("\n\n")[:3]
    assert heading.startswith("rule sigmoid")
    assert opening == "Squash to (0, 1): a = 1 / (1 + e⁻ᶻ)."
    assert notes.startswith("Gradient\n    dz = da · a (1 - a)\n")


def test_the_only_network_of_a_file_needs_no_name(handgrad: Command, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "from handgrad import *\nnet = Network(Linear(2, 3), ReLU(), Linear(3, 1), loss=HalfSquaredError())\n"
    )
    assert "network 2 → 3 → 1" in handgrad("explain", "net.py").stdout


def test_colour_is_for_terminals(own: Path) -> None:
    """And headings are bold there."""
    import pty

    leader, follower = pty.openpty()
    arguments = [sys.executable, "-c", "from handgrad.cli import main; main()", "explain", "own.py:square"]
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "NO_COLOR"}
    subprocess.run(arguments, cwd=own.parent, env=environment, stdout=follower, check=True)
    os.close(follower)
    said = os.read(leader, 100_000).decode()
    os.close(leader)
    assert "\x1b[1mbackward\x1b[0m" in said
    assert "\x1b[31m✗\x1b[0m" in said


WRONG = {
    "own.py:small": "the data has rows of (4,), the network takes (2,)",
    "own.py:plain": "own.py:plain: there is no network and no rule",
    "own.py:scal": "own.py: there is no 'scal' in it",
    "own.py:network --epochs 3": "own.py:network is a file of your own, which has its own settings",
    "none.py:rule": "none.py: there is no such file",
    "--line dW9": "no line makes 'dW9'",
    "--line W1": "W1 is a parameter, which the update alone changes",
    "--line dx": "no line makes dx: x is data, so that no update needs its gradient",
    "softmax --epochs 3": "softmax is a rule, which has its own settings",
    "two.py": "two.py: there are 2 networks and rules: first, second",
    "--jacobian z1": "'z1' names no two values",
    "--jacobian z1:z2": "z1 does not depend on z2",
    "digits --jacobian a1:z1": "the Jacobian of a1 with respect to z1 has 67,108,864 entries, and 6,000,000 are the most",
    "--jacobian z1:W1 --example 64": "there is no row 64: the batch has 64",
}


@pytest.mark.parametrize("arguments", WRONG)
def test_a_mistake_is_one_message(handgrad: Command, own: Path, arguments: str) -> None:
    """With what was given, or what to do."""
    done = handgrad("explain", *arguments.split(), code=1)
    first, *rest = done.stderr.splitlines()
    assert first == f"Error: {WRONG[arguments]}"
    assert done.stdout == ""
    assert all(line.startswith(("  given  ", "  fix    ")) for line in rest)


def test_json_is_the_whole_record(handgrad: Command) -> None:
    """As the page has it."""
    said = json.loads(handgrad("explain", "moons", "--hidden", "4", "--json").stdout)
    assert {"title", "lines", "ledger", "derivations", "jacobians", "health", "drawing"} <= said.keys()
