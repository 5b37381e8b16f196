"""scikit-learn's own tests of its perceptrons, `sklearn/neural_network/tests/test_mlp.py`, with handgrad's in their place."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.peers

DIFFERENCES = {
    "test_fit": r"NotFittedError: .*coefs_ are the arrays of its network",
    "test_gradient": r"no attribute '_loss_grad_lbfgs'",
    "test_learning_rate_warmstart": r"no attribute '_optimizer'",
    "test_adaptive_learning_rate": r"no attribute '_optimizer'",
    "test_n_iter_no_change": r"no attribute '_no_improvement_count'",
    "test_n_iter_no_change_inf": r"no attribute '_no_improvement_count'",
    "test_early_stopping_stratified": r"Classes with too few members are: \[1\]",
}
"""The tests that fail, each with the reason, which `docs/sklearn.md` documents."""


def test_what_fails_is_documented_and_nothing_else_fails(tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    own = [
        "-p",
        "replaced_estimators",
        "--pyargs",
        "sklearn.neural_network.tests.test_mlp",
        "-p",
        "no:cacheprovider",
    ]
    elsewhere = ["-c", os.devnull, "--rootdir", str(tmp_path), f"--junitxml={tmp_path / 'results.xml'}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *own, *elsewhere],
        env={**os.environ, "PYTHONPATH": path}, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    cases = list(ElementTree.parse(tmp_path / "results.xml").iter("testcase"))
    failed = {case.get("name", ""): case.find("failure") for case in cases if len(case)}
    assert len(cases) > 50, done.stdout
    assert sorted(failed) == sorted(DIFFERENCES), done.stdout
    for name, reason in DIFFERENCES.items():
        failure = failed[name]
        assert failure is not None
        assert re.search(reason, f"{failure.get('message')}", re.DOTALL), (name, failure.get("message"))


def test_each_difference_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sklearn.md").read_text(encoding="utf-8")
    section = page.partition("## Differences in names")[2].partition("\n## ")[0]
    for name in ("coefs_", "_loss_grad_lbfgs", "_optimizer", "_no_improvement_count", "early_stopping"):
        assert f"`{name}`" in section, name
    assert set(re.findall(r"`(test_\w+)`", section)) == set(DIFFERENCES)
