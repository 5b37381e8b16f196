"""What examples/in_the_wild says about published packages is what is found there, and only that."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

WILD = Path(__file__).parents[2] / "examples" / "in_the_wild"
NAMES = sorted(path.stem for path in WILD.glob("*.py"))


@cache
def run(name: str) -> str:
    """Run a script in a process of its own and return what it printed."""
    done = subprocess.run(
        [sys.executable, str(WILD / f"{name}.py")],
        capture_output=True, encoding="utf-8", timeout=600, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def verdicts(name: str) -> dict[str, str]:
    """Return the verdict of every line of a script's table: right, wrong, cannot tell or raises."""
    table = run(name).split("\n--- ")[0]
    found = re.findall(
        r"^(\S.*?) {2,}((?:NumpyOps|Ops)? *)(right|wrong|cannot tell|raises)\b", table, re.MULTILINE
    )
    return {", ".join(filter(None, (what, backend.strip()))): verdict for what, backend, verdict in found}


def those(name: str, verdict: str) -> set[str]:
    return {what for what, said in verdicts(name).items() if said == verdict}


def report(name: str, what: str) -> str:
    """Return one of the reports that a script prints after its table, as one line."""
    found = re.search(rf"^--- {re.escape(what)}\n(.*?)(?=^--- |\Z)", run(name), re.MULTILINE | re.DOTALL)
    assert found, run(name)
    return " ".join(found[1].split())


@pytest.mark.peers
def test_the_regressors_gradient_is_off_by_the_number_of_outputs() -> None:
    text = run("mlp_regressor")
    assert re.match(r"scikit-learn \d+\.\d+", text)
    assert re.search(r"^MLPRegressor, 3 outputs +wrong +3\.000000 ", text, re.MULTILINE)
    assert re.search(r"^MLPRegressor, 2 outputs +wrong +2\.000000 ", text, re.MULTILINE)
    assert those("mlp_regressor", "right") == {
        "MLPRegressor, 1 output", "MLPRegressor, 3 outputs, Poisson", "MLPClassifier, 3 classes",
        "MLPClassifier, 2 classes", "MLPClassifier, 3 labels", "MLPClassifier, 3 classes, alpha = 1",
    }  # fmt: skip
    said = report("mlp_regressor", "MLPRegressor, 3 outputs")
    assert re.search(r"(constant-factor|batch-mean-vs-sum) in dW1", said)
    assert "3 times the right one" in said


@pytest.mark.peers
def test_the_other_gradients_of_scikit_learn() -> None:
    assert those("scikit_learn_gradients", "wrong") == {
        "kernel Matern, nu 0.8", "kernel PairwiseKernel, laplacian", "kernel PairwiseKernel, rbf"
    }  # fmt: skip
    assert len(those("scikit_learn_gradients", "right")) == 29
    assert "dtype-or-overflow in dtheta" in report("scikit_learn_gradients", "kernel Matern, nu 0.8")


@pytest.mark.peers
def test_the_layers_of_thinc() -> None:
    lstm = {"LSTM", "LSTM, bi", "LSTM, depth 2", "bidirectional", "with_padded"}
    others = {"Gelu", "Dish, square", "Softmax", "Softmax_v2", "with_flatten"}
    both = {f"{layer}, {backend}" for layer in lstm | others for backend in ("NumpyOps", "Ops")}
    assert those("thinc_layers", "wrong") == both | {"CategoricalCrossentropy", "L2Distance"}
    raises = {"Dish", "with_reshape", "with_reshape, square"}
    assert those("thinc_layers", "raises") == {
        f"{layer}, {backend}" for layer in raises for backend in ("NumpyOps", "Ops")
    }
    assert all(what.endswith(", Ops") or "siamese" in what for what in those("thinc_layers", "cannot tell"))
    assert len(those("thinc_layers", "right")) >= 95
    parts = re.findall(r"a row add up to (\S+) and (\S+), not to 1", run("thinc_layers"))
    assert all(abs(float(part) - 1) > 0.1 for part in parts[0])


@pytest.mark.peers
def test_what_is_wrong_in_thincs_lstm() -> None:
    compiled, plain = (report("thinc_layers", f"LSTM, {backend}") for backend in ("NumpyOps", "Ops"))
    assert "zero upstream gives a dLSTM that is not zero" in compiled
    assert re.search(r"wrong dX \(3, 3, 2\) .* wrong dLSTM \(48,\)", compiled)
    assert "zero-gradient in dX, and dLSTM with it" in plain
    assert re.search(r"wrong-shape in dX0", report("thinc_layers", "with_flatten, NumpyOps"))
    assert "every entry of dguesses is 2 times the right one" in report("thinc_layers", "L2Distance")


@pytest.mark.peers
def test_numpy_ml() -> None:
    assert those("numpy_ml_layers", "wrong") == {
        "losses.WGAN_GPLoss, critic", "Embedding, sum, an id twice", "Embedding, mean, an id twice"
    }  # fmt: skip
    assert those("numpy_ml_layers", "raises") == {"SparseEvolution", "RNN", "LSTM"}
    assert len(those("numpy_ml_layers", "right")) == 37
    assert "wrong-sign in dfake, and dreal with it" in report("numpy_ml_layers", "losses.WGAN_GPLoss, critic")


@pytest.mark.peers
def test_autograd() -> None:
    assert those("autograd_functions", "wrong") == {"cholesky, lower triangle", "solve_banded, a matrix"}
    assert re.search(r"^136 functions are right$", run("autograd_functions"), re.MULTILINE)
    assert those("autograd_functions", "cannot tell") == {"sign"}  # a gradient of zeros proves nothing
    assert "dx0 has shape (3, 8), and x0 has (3, 4)" in report("autograd_functions", "solve_banded, a matrix")


def test_the_readme_names_every_script() -> None:
    text = (WILD / "README.md").read_text("utf-8")
    assert sorted(re.findall(r"\| `python examples/in_the_wild/(\w+)\.py` \|", text)) == NAMES
