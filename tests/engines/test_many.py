"""Many networks trained at once are those trained alone; one that diverges stops alone."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad import (
    SGD,
    Adam,
    BatchNorm,
    ConfigurationError,
    Cosine,
    Dropout,
    Linear,
    Network,
    Optimiser,
    ReLU,
    SoftmaxCrossEntropy,
    Standardise,
    train,
    train_many,
)

from .agreement import BOUNDS, check_agreement, check_same

pytestmark = pytest.mark.peers

RNG = np.random.default_rng(0)
X, T = RNG.normal(size=(53, 5)), RNG.integers(0, 3, 53)
SEEDS, RATES = (4, 0, 7, 2), (0.1, 0.3, 1e200, 0.02)
COMMON = {"validation": 0.3, "epochs": 3, "batch_size": 8, "schedule": Cosine()}
"""37 rows train: a short last batch."""


def network(seed: int, dtype: str = "float64", hidden: int = 9) -> Network:
    layers = Linear(5, hidden, bias=False), BatchNorm(), ReLU(), Dropout(0.3), Linear(hidden, 3)
    return Network(Standardise(), *layers, loss=SoftmaxCrossEntropy(), seed=seed, dtype=dtype)


@pytest.mark.parametrize(("dtype", "kind"), [("float64", Adam), ("float32", SGD)])
def test_each_is_the_one_trained_alone(dtype: str, kind: type[Optimiser]) -> None:
    """Weights, masks, orders, validation rows and rates are its own; the one of a huge rate loses the others nothing."""
    together, optimisers = [network(seed, dtype) for seed in SEEDS], [kind(rate) for rate in RATES]
    histories = train_many(together, X, T, optimisers=optimisers, **COMMON)
    for found, optimiser, history in zip(together, optimisers, histories, strict=True):
        alone = network(found.seed, dtype)
        if optimiser.learning_rate == 1e200:
            assert (history.stopped, history.epochs) == ("diverged", [])
            check_same(found.parameters, alone.parameters)
            continue
        expected = train(alone, X, T, optimiser=optimiser, seed=found.seed, engine="reference", **COMMON)
        check_agreement(found.arrays, alone.arrays, dtype, f"seed {found.seed}")
        for one, other in zip(history.epochs, expected.epochs, strict=True):
            losses = [[each.loss, each.validation_loss] for each in (one, other)]
            np.testing.assert_allclose(*losses, rtol=BOUNDS[dtype])
            assert one.validation_metric == pytest.approx(other.validation_metric)
            assert (one.epoch, one.learning_rate) == (other.epoch, other.learning_rate)


@pytest.mark.parametrize(
    ("networks", "settings", "message"),
    [
        ([], {}, "there are no networks"),
        ([network(0)], {"seeds": [1, 2]}, "2 seeds, and there are 1 networks"),
        ([network(0)] * 2, {"optimisers": [SGD(0.1)]}, "1 optimisers, and there are 2 networks"),
        ([network(0)] * 2, {"optimisers": [SGD(0.1), SGD(0.1, momentum=0.5)]}, r"optimisers\[1\] is SGD\("),
        ([network(0)] * 2, {"optimisers": [SGD(0.1), Adam(0.1)]}, r"optimisers\[1\] is Adam\("),
        ([network(0), network(0, hidden=8)], {}, r"networks\[1\] is .* and networks\[0\] is"),
        ([network(0), network(0, "float32")], {}, r"networks\[1\] is .*float32.*networks\[0\] is .*float64"),
    ],
)
def test_what_differs_more_than_it_may_is_refused(networks, settings, message) -> None:
    with pytest.raises(ConfigurationError, match=message):
        train_many(networks, X, T, **settings)
