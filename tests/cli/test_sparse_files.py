"""Sparse rows in a file, from the command line: trained on, scored, predicted, as the same dense rows are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad.runs import load_run

from ..conftest import Command, Server

pytestmark = pytest.mark.peers

SMALL = ["--hidden", "8", "--epochs", "4", "--dtype", "float64", "--standardise", "none"]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write 300 sparse rows, the same dense, and targets: names of classes, and values."""
    from scipy.sparse import random, save_npz

    folder, rng = tmp_path_factory.mktemp("sparse"), np.random.default_rng(0)
    x: Any = random(300, 60, 0.1, format="csr", rng=rng)
    score = x @ rng.normal(size=60)
    save_npz(folder / "rows.npz", x)
    np.save(folder / "rows.npy", x.toarray())
    np.save(folder / "names.npy", np.where(score > 0, "yes", "no"))
    np.save(folder / "values.npy", 5e4 + 1e4 * score)
    return folder


@pytest.mark.parametrize("target", ["names.npy", "values.npy"])
def test_a_training_is_that_of_the_dense_rows(server: Server, rows: Path, target: str) -> None:
    """The weights, the scores and the predictions; the run has the paths of both files."""
    at = server.command_in(rows)
    results = {}
    for kind in ("npz", "npy"):
        done = at("train", f"rows.{kind}", "--target", target, *SMALL, "--out", kind, "--overwrite", "--json")
        scored = json.loads(at("evaluate", kind, f"rows.{kind}", "--target", target, "--json").stdout)
        own = json.loads(at("evaluate", kind, "--json").stdout)
        assert (own["rows"], scored["rows"]) == (60, 300)
        results[kind] = {**scored, "loss": json.loads(done.stdout)["training_loss"]}
    assert results["npz"]["loss"] == pytest.approx(results["npy"]["loss"], rel=1e-9)
    score = "accuracy" if target == "names.npy" else "r2"
    assert results["npz"][score] == pytest.approx(results["npy"][score], rel=1e-9)
    sparse, dense = (load_run(rows / kind).network.parameters["W1"] for kind in ("npz", "npy"))
    np.testing.assert_allclose(sparse, dense, rtol=1e-9, atol=1e-12)
    lines = [at("predict", kind, f"rows.{kind}").stdout.splitlines() for kind in ("npz", "npy")]
    assert len(lines[0]) == 301
    assert lines[0][1].split(",")[0][:8] == lines[1][1].split(",")[0][:8]
    assert at("train", "--resume", "npz", "--epochs", "6").stdout.split()[1] == "6"


def test_rows_are_not_standardised_unless_asked(handgrad: Command, server: Server, rows: Path) -> None:
    at = server.command_in(rows)
    at("train", "rows.npz", "--target", "names.npy", "--epochs", "1", "--out", "plain", "--overwrite")
    assert not load_run(rows / "plain").network.states
    asked = at("train", "rows.npz", "--target", "names.npy", "--standardise", "feature", code=1)
    assert "x is sparse, and `h1 = (x - mean1) / deviation1`" in asked.stderr


def test_a_script_for_numpy_alone_has_no_sparse_rows(server: Server, rows: Path) -> None:
    done = server.command_in(rows)("write", "rows.npz", "--target", "names.npy", code=1)
    assert done.stderr.startswith("Error: rows.npz: the rows are sparse, and a script")
