"""`handgrad export`: a run for other libraries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from handgrad import Network
from handgrad.interop import load_torch_weights
from handgrad.runs import load_run

from ..conftest import Command
from .test_onnx import apart, run


@pytest.fixture
def folder(handgrad: Command, tmp_path: Path) -> Path:
    """Train on rows that are far from standardised."""
    x = np.random.default_rng(0).normal([50, -3], [4, 0.1], (90, 2))
    rows = [f"{a:.3f},{b:.3f},{'hot' if a > 50 else 'cold'}" for a, b in x]
    (tmp_path / "rows.csv").write_text("\n".join(["long,short,felt", *rows]))
    handgrad("train", "rows.csv", "--target", "felt", "--hidden", "5", "--epochs", "2", "--out", "run")
    return tmp_path


def test_weights_for_pytorch(handgrad: Command, folder: Path) -> None:
    """The file gives the run's answers when it is read into a network of the same layers."""
    done = handgrad("export", "run", "--torch", "deep/w.safetensors")
    assert done.stdout == "wrote deep/w.safetensors\n"
    path = folder / "deep" / "w.safetensors"
    names = ["0.deviation", "0.mean", "1.bias", "1.weight", "3.bias", "3.weight"]
    assert sorted(load_file(path)) == names
    trained = load_run(folder / "run").network
    other = Network(*trained.body.layers, loss=trained.loss, inputs=trained.row, seed=9)
    load_torch_weights(other, path)
    x = np.random.default_rng(1).normal(size=(7, 2))
    assert other.predict(x).tobytes() == trained.predict(x).tobytes()


@pytest.mark.peers
def test_onnx(handgrad: Command, folder: Path) -> None:
    """Rows as they come unless asked otherwise, logits unless asked otherwise, and the names in the metadata."""
    import onnx

    trained = load_run(folder / "run").network
    x = np.random.default_rng(1).normal([50, -3], [4, 0.1], (20, 2))
    done = handgrad("export", "run", "--onnx", "net.onnx", "--torch", "w.safetensors")
    assert done.stdout == "wrote net.onnx\nwrote w.safetensors\n"
    assert apart(trained, folder / "net.onnx", x) <= 1e-5
    handgrad("export", "run", "--onnx", "net.onnx", "--prediction", "--with-standardisation")
    assert apart(trained, folder / "net.onnx", x, prediction=True) <= 1e-5
    said = {entry.key: json.loads(entry.value) for entry in onnx.load(folder / "net.onnx").metadata_props}
    assert said == {"classes": ["cold", "hot"], "feature_names": ["long", "short"]}
    handgrad("export", "run", "--onnx", "net.onnx", "--without-standardisation")
    arrays: dict[str, Any] = trained.states
    rows = (x - arrays["mean1"]) / arrays["deviation1"]
    np.testing.assert_allclose(run(folder / "net.onnx", rows), trained.output(x), rtol=0, atol=1e-5)
