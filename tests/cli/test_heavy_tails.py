"""Targets with a few values far from all others: noticed, and learned with `Huber`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from handgrad import Huber, MeanSquaredError
from handgrad.training.metrics import HEAVY, tail_share

from ..conftest import Command


@pytest.mark.parametrize("kind", ["normal", "uniform", "exponential", "lognormal", "poisson"])
def test_ordinary_targets_are_none_of_it(kind: str) -> None:
    draw = getattr(np.random.default_rng(0), kind)
    shares = [tail_share(draw(size=(rows, 2))) for rows in (50, 200, 2000) for _ in range(40)]
    assert max(shares) < HEAVY


@pytest.mark.parametrize("scale", [1.0, 1e5])
def test_outliers_are_noticed_and_huber_learns_the_others(
    handgrad: Command, tmp_path: Path, scale: float
) -> None:
    """Five rows of a thousand; r2 on rows without them, whatever the unit."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 3)).round(3)
    t = scale * (x @ [1, 2, -1] + 0.1 * rng.normal(size=1000) + 5)
    far = np.where(np.arange(1000) < 5, 1e3 * scale, t)
    for name, values in (("far", far), ("good", t)):
        table = np.column_stack([x, values])
        np.savetxt(tmp_path / f"{name}.csv", table, delimiter=",", header="a,b,c,t", comments="", fmt="%.6g")
    r2, small = {}, ["--target", "t", "--hidden", "32", "--test", "0"]
    for loss in (MeanSquaredError, Huber):
        said = handgrad("train", "far.csv", *small, "--loss", loss.__name__, "--out", loss.__name__).stderr
        assert ("--loss Huber counts them less" in said) == (loss is MeanSquaredError)
        r2[loss] = json.loads(handgrad("evaluate", loss.__name__, "good.csv", "--json").stdout)["r2"]
    assert r2[MeanSquaredError] < 0
    assert r2[Huber] > 0.97
    assert "Notice" not in handgrad("train", "good.csv", *small, "--out", "good").stderr
