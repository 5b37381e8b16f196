"""Batch norm as a layer: running statistics, and evaluation with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad import SGD, BatchNorm, Linear, MeanSquaredError, Network
from handgrad.engines import Epoch, ReferenceEngine

from ..rules.checks import relative_error

ROWS, TIMES, FEATURES, BATCH = 22, 3, 5, 6


@pytest.mark.peers
@pytest.mark.parametrize("rank", [2, 3], ids=["rank2", "rank3"])
def test_running_statistics_and_evaluation_are_those_of_torch(torch: Any, rank: int) -> None:
    """After some epochs with a short last batch, weights, running mean and variance, and outputs agree."""
    lead = (ROWS, TIMES)[: rank - 1]
    rng = np.random.default_rng(0)
    x, t = 3 + 2 * rng.normal(size=(*lead, FEATURES)), rng.normal(size=(*lead, 2))
    layers = BatchNorm(epsilon=0.01, momentum=0.3), Linear(FEATURES, 2)
    ours = Network(*layers, loss=MeanSquaredError(), inputs=(*lead[1:], FEATURES), dtype="float64")
    norm = torch.nn.BatchNorm1d(FEATURES, eps=0.01, momentum=0.3, dtype=torch.float64)
    W, b = (torch.tensor(ours.parameters[name], requires_grad=True) for name in ("W1", "b1"))
    stepper = torch.optim.SGD([*norm.parameters(), W, b], lr=0.1)
    order = np.concatenate([rng.permutation(ROWS)[: ROWS - 1] for _ in range(5)])[: BATCH * 17 + 2]

    def theirs(rows: Any) -> Any:
        return norm(rows.reshape(-1, FEATURES)).reshape(rows.shape) @ W + b

    epoch = Epoch({"x": x, "t": t}, order, BATCH, np.full(18, 0.1))
    ReferenceEngine().bind(ours.program(SGD(0.1)), ours.arrays).epoch(epoch)
    for start in range(0, len(order), BATCH):
        rows = torch.tensor(order[start : start + BATCH])
        stepper.zero_grad()
        torch.nn.MSELoss()(theirs(torch.tensor(x)[rows]), torch.tensor(t)[rows]).backward()
        stepper.step()
    norm.eval()

    expected = {
        "gamma1": norm.weight, "beta1": norm.bias, "W1": W, "b1": b,
        "running_mean1": norm.running_mean, "running_var1": norm.running_var,
    }  # fmt: skip
    assert ours.arrays.keys() == expected.keys()
    for name, v in expected.items():
        assert relative_error(ours.arrays[name], v.detach().numpy()) <= 1e-12, name
    output = theirs(torch.tensor(x)).detach().numpy()
    assert relative_error(ours.output(x), output) <= 1e-12


def test_the_running_variance_is_unbiased() -> None:
    """Of a batch of 3 rows, the running variance takes the sum of squares over 2, and of 1 row it takes 0."""
    network = Network(BatchNorm(momentum=0.5), Linear(1, 1), loss=MeanSquaredError(), dtype="float64")
    bound = ReferenceEngine().bind(network.program(SGD()), network.arrays)
    bound.run(x=np.array([[1.0], [2.0], [6.0]]), t=np.zeros((3, 1)), learning_rate=0.1, step=1)
    assert network.states["running_mean1"] == 1.5
    assert network.states["running_var1"] == 0.5 * 1 + 0.5 * 7
    bound.run(x=np.array([[1.5]]), t=np.zeros((1, 1)), learning_rate=0.1, step=2)
    assert network.states["running_mean1"] == 1.5
    assert network.states["running_var1"] == 2


def test_running_statistics_are_those_of_the_rows_at_all_times() -> None:
    """Each of a row's time steps counts as a row."""
    network = Network(
        BatchNorm(momentum=1.0), Linear(2, 1), inputs=(TIMES, 2), loss=MeanSquaredError(), dtype="float64"
    )
    x = np.random.default_rng(0).normal(size=(4, TIMES, 2))
    bound = ReferenceEngine().bind(network.program(SGD()), network.arrays)
    bound.run(x=x, t=np.zeros((4, TIMES, 1)), learning_rate=0.1, step=1)
    rows = x.reshape(-1, 2)
    np.testing.assert_allclose(network.states["running_mean1"], rows.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(network.states["running_var1"], rows.var(axis=0, ddof=1), rtol=1e-12)


def test_gradients_and_evaluation_leave_the_running_statistics_alone() -> None:
    """Only a training step changes them."""
    network = Network(Linear(3, 4), BatchNorm(), loss=MeanSquaredError())
    before = {name: v.copy() for name, v in network.arrays.items()}
    x = np.random.default_rng(0).normal(size=(5, 3))
    network.gradients(x, np.zeros((5, 4)))
    network.output(x)
    network.predict(x)
    for name, v in before.items():
        np.testing.assert_array_equal(network.arrays[name], v)


def test_rows_of_an_evaluation_do_not_meet() -> None:
    """Outside training a row's output is the same whatever rows stand beside it."""
    network = Network(Linear(3, 4), BatchNorm(), loss=MeanSquaredError(), dtype="float64")
    network.states["running_var1"][...] = [1, 2, 3, 4]
    x = np.random.default_rng(0).normal(size=(6, 3))
    np.testing.assert_allclose(network.output(x)[2:3], network.output(x[2:3]), rtol=1e-14)
    np.testing.assert_allclose(network.output(x, batch_size=4), network.output(x), rtol=1e-14)
