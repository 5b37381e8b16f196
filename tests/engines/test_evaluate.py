"""The loss and the predictions of rows, from one program: those that an epoch and `Network.predict` give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad import Linear, Network, ReLU, SoftmaxCrossEntropy
from handgrad.engines import Epoch, NonFiniteLossError, bind
from handgrad.engines.engine import evaluate

from ..conftest import EACH_ENGINE

ROWS, CHOSEN = 13, np.array([11, 2, 7, 3, 12, 0, 5])


@pytest.mark.parametrize("engine", EACH_ENGINE)
def test_loss_and_predictions_of_rows_in_any_order(engine: str) -> None:
    """Of three batches, the last one short, and with row weights."""
    rng = np.random.default_rng(0)
    network = Network(Linear(5, 4), ReLU(), Linear(4, 3), loss=SoftmaxCrossEntropy(), dtype="float64")
    arrays = {"x": rng.normal(size=(ROWS, 5)), "t": rng.integers(0, 3, ROWS), "w": rng.uniform(0.5, 2, ROWS)}
    bound = bind(engine, network.loss_program(weighted=True), network.arrays)
    epoch = Epoch(arrays, CHOSEN, batch_size=3)
    total, count, prediction = evaluate(bound, epoch)
    np.testing.assert_allclose((total, count), bound.epoch(epoch), rtol=1e-12)
    np.testing.assert_allclose(count, arrays["w"][CHOSEN].sum(), rtol=1e-12)
    np.testing.assert_allclose(prediction, network.predict(arrays["x"][CHOSEN]), rtol=1e-10)


@pytest.mark.parametrize("engine", EACH_ENGINE)
def test_the_first_batch_whose_loss_is_not_finite_is_named(engine: str) -> None:
    network = Network(Linear(5, 3), loss=SoftmaxCrossEntropy())
    x = np.ones((ROWS, 5))
    x[3] = np.nan  # the fourth of the chosen rows, in the second batch
    bound = bind(engine, network.loss_program(), network.arrays)
    with pytest.raises(NonFiniteLossError) as error:
        evaluate(bound, Epoch({"x": x, "t": np.zeros(ROWS, int)}, CHOSEN, batch_size=3))
    assert error.value.batch == 1


def test_plans_of_a_full_batch_and_of_the_last_rows_stay() -> None:
    """A plan made anew takes as long as its batch; only two stay, since each keeps memory for its rows."""
    network = Network(Linear(5, 4), ReLU(), Linear(4, 3), loss=SoftmaxCrossEntropy())
    arrays = {"x": np.random.default_rng(0).normal(size=(ROWS, 5)), "t": np.arange(ROWS) % 3}
    bound: Any = bind("compiled", network.loss_program(), network.arrays)
    before = evaluate(bound, Epoch(arrays, CHOSEN, batch_size=3))
    plans = dict(bound.plans)
    assert [key[0] for key in plans] == [3, 1]
    after = evaluate(bound, Epoch(arrays, CHOSEN, batch_size=3))
    assert bound.plans == plans
    assert before[:2] == after[:2]
    np.testing.assert_array_equal(before[2], after[2])
    evaluate(bound, Epoch(arrays, CHOSEN, batch_size=7))
    assert [key[0] for key in bound.plans] == [1, 7]
