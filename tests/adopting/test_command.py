"""`handgrad adopt`: the folder it writes, and what it prints, for people and machines."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from handgrad.checking import CheckError
from handgrad.cli import group

from ..checking.test_autograd_classes import SCALAR
from ..checking.test_programs import PROGRAMS
from ..conftest import ENVIRONMENT, Command


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Copy the network of eleven lines that everyone copies."""
    path = tmp_path / "eleven.py"
    path.write_text((PROGRAMS / "script_xor_loop.py").read_text())
    return path


def test_the_folder_trains_as_it_is_written(handgrad: Command, script: Path, tmp_path: Path) -> None:
    """The network has the script's weights and its first loss; it runs in any folder."""
    done = handgrad("adopt", script)
    folder = tmp_path / "adopted" / "eleven"
    assert sorted(path.name for path in folder.iterdir()) == ["data.npz", "network.py", "weights.npz"]
    assert [path.name for path in folder.parent.iterdir()] == ["eleven"]
    assert done.stdout.splitlines()[:2] == [
        f"{script}: adopted; its gradients are right",
        "  network  Linear(3, 4, bias=False), Sigmoid(), Linear(4, 1, bias=False), Sigmoid()",
    ]
    assert "equal up to rounding" in done.stdout
    assert done.stderr == ""
    ran = subprocess.run(
        [sys.executable, "-W", "error", folder / "network.py"],
        env=ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    names: dict[str, object] = {}
    exec((PROGRAMS / "script_xor_loop.py").read_text().partition("for j in")[0], names)
    with np.load(folder / "weights.npz") as weights:
        assert np.array_equal(weights["W1"], names["syn0"])
        assert np.array_equal(weights["W2"], names["syn1"])
    assert ran.stdout.startswith("loss per row 0.123797 after epoch 1, ")
    assert (folder / "trained.safetensors").exists()


def test_json_is_one_object(handgrad: Command, script: Path, tmp_path: Path) -> None:
    """With the losses of both, and how long a step takes."""
    facts = json.loads(handgrad("adopt", script, "--out", tmp_path / "own", "--steps", "3", "--json").stdout)
    assert facts["gradients"] == "right"
    assert facts["losses"]["equal"]
    assert len(facts["losses"]["author"]) == len(facts["losses"]["handgrad"]) == 4
    assert facts["parameters"] == {"W1": "syn0", "W2": "syn1"}
    seconds = facts["step_seconds"]
    assert facts["times_faster"] == pytest.approx(seconds["author"] / seconds["handgrad"])
    assert facts["files"] == [
        str(tmp_path / "own" / name) for name in ("network.py", "weights.npz", "data.npz")
    ]


def test_a_wrong_gradient_is_named_and_the_right_one_trained(handgrad: Command, tmp_path: Path) -> None:
    """The notes whose author asks why it is so slow, as they stand: their rows are drawn."""
    path = tmp_path / "notes.py"
    path.write_text((PROGRAMS / "notes_outer_product.py").read_text())
    done = handgrad("adopt", path)
    assert "its gradients are wrong: missing-local-derivative in dweights" in done.stdout
    assert "they part after step 0: yours follows a wrong gradient" in done.stdout
    assert "every gradient" not in done.stdout
    assert "yours: train(); handgrad: SGD, learning rate 0.1, 1 row at a time" in done.stdout
    assert "The gradients there are wrong" in (tmp_path / "adopted" / "notes" / "network.py").read_text()


def test_a_folder_is_not_overwritten_unasked(handgrad: Command, script: Path, tmp_path: Path) -> None:
    """Neither before the work nor after it; --overwrite leaves other files in it."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "network.py").write_text("mine")
    (folder / "other.txt").write_text("mine")
    refused = handgrad("adopt", script, "--out", folder, code=1)
    assert refused.stderr.startswith(f"Error: {folder}: is there already\n")
    assert (folder / "network.py").read_text() == "mine"
    handgrad("adopt", script, "--out", folder, "--overwrite")
    assert "Sigmoid()" in (folder / "network.py").read_text()
    assert (folder / "other.txt").read_text() == "mine"


def test_what_is_not_recognised_is_named_with_its_line(handgrad: Command, tmp_path: Path) -> None:
    """And nothing is written."""
    path = tmp_path / "gated.py"
    path.write_text(
        "import numpy as np\n\n\ndef inputs(rng):\n"
        "    return {'x': rng.normal(size=(5, 3)), 'W': rng.normal(size=(3, 4))}\n\n\n"
        "def forward(x, W):\n    z = x @ W\n    return np.cumsum(z, axis=0)\n\n\n"
        "def backward(grad_output, x, W):\n    dz = np.cumsum(grad_output[::-1], axis=0)[::-1]\n"
        "    return {'x': dz @ W.T, 'W': x.T @ dz}\n"
    )
    done = handgrad("adopt", path, code=1)
    assert "recognised: Linear(3, 4, bias=False); then" in done.stderr
    assert f"{path}:10: return np.cumsum(z, axis=0)" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "adopted").exists()


def test_a_training_that_diverges_is_one_message(handgrad: Command, script: Path, tmp_path: Path) -> None:
    """Its loss is not finite after a few steps at its own learning rate."""
    script.write_text("""
import numpy as np
np.seterr(all="ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(100, 8)); y = X[:, :1] * 3
W1 = rng.normal(size=(8, 32)); W2 = rng.normal(size=(32, 1))
for i in range(100):
    h = np.maximum(X @ W1, 0)
    out = h @ W2
    loss = ((out - y) ** 2).sum()
    dout = 2 * (out - y)
    dW2 = h.T @ dout
    dh = dout @ W2.T
    dh[h <= 0] = 0
    dW1 = X.T @ dh
    W1 -= 0.5 * dW1
    W2 -= 0.5 * dW2
""")
    said = handgrad("adopt", script, code=1).stderr
    assert "Error: the training diverges: its loss is not finite after " in said
    assert " steps at a learning rate of 0.5\n  fix    lower the learning rate in the file" in said
    assert not (tmp_path / "adopted").exists()


def test_values_that_differentiate_themselves_are_no_network(handgrad: Command, tmp_path: Path) -> None:
    """Each operation of such a class is checked by itself; none of them is the network."""
    path = tmp_path / "value.py"
    path.write_text(SCALAR)
    done = handgrad("adopt", path, code=1)
    assert done.stderr.startswith(
        "Error: Value: its values differentiate themselves, one operation at a time\n"
    )
    assert not (tmp_path / "adopted").exists()


@pytest.mark.parametrize("part", ["recognise", "adopt"])
def test_what_fails_in_an_adoption_is_one_message(
    script: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """With the place, and what to do about it."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(f"handgrad.cli.adopt.{part}", fail)
    result = CliRunner().invoke(group, ["adopt", str(script)], standalone_mode=False)
    assert isinstance(result.exception, CheckError)
    problem = f"{script}: handgrad failed: RuntimeError: no such thing"
    assert (result.exception.problem, result.exception.fix) == (problem, "please report it, with the file")


APART = """
import numpy as np

class Dense:
    def __init__(self, i, o): self.w = np.random.default_rng(0).normal(size=(i, o)) * 9
    def forward(self, x): self.x = x; return x @ self.w
    def backward(self, grad): self.dw = self.x.T @ grad; return grad @ self.w.T

class CrossEntropy:
    def forward(self, z, y):
        z = z - z.max(1, keepdims=True)
        self.p = np.exp(z) / np.exp(z).sum(1, keepdims=True); self.y = y
        return -np.log(self.p[np.arange(len(y)), y]).mean()
    def backward(self):
        g = self.p.copy(); g[np.arange(len(self.y)), self.y] -= 1
        return g / len(self.y)

X = np.random.default_rng(1).normal(size=(64, 5)) * 9
y = (X[:, 0] > 0).astype(int)
dense, loss = Dense(5, 2), CrossEntropy()
for epoch in range(5):
    loss.forward(dense.forward(X), y)
    dense.backward(loss.backward())
    dense.w -= 0.1 * dense.dw
"""


def test_a_loss_apart_from_the_network_is_named_and_columns_stay_apart(
    handgrad: Command, script: Path
) -> None:
    """The network is trained on another loss, which grows to more digits than a column usually has."""
    script.write_text(APART)
    lines = handgrad("adopt", script).stdout.splitlines()
    assert lines[2:4] == [
        "  loss     HalfSquaredError() to drawn targets: what is adopted has none",
        "  apart    CrossEntropy is the loss SoftmaxCrossEntropy(): put it into network.py, with its targets",
    ]
    rows = [line.split() for line in lines if re.match(r"  \d steps?  ", line)]
    assert [len(row) for row in rows] == [4] * 6
    assert max(len(row[-1]) for row in rows) > 13
