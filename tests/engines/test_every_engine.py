"""What is promised of every engine: the reference's numbers, the same ones again, its name, and no weight spoiled."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad.engines import ENGINES, NonFiniteLossError

from .agreement import BOUNDS, Case, Training, check_case
from .test_compiled_agreement import NETWORKS

SIMPLE = NETWORKS["one layer"]


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "reference"])
def test_it_agrees_with_the_reference(engine: str, name: str, dtype: str) -> None:
    """Trained at every size of batch, each gradient alone, and outside training; with threads, bit for bit."""
    check_case(NETWORKS[name], dtype, engine=ENGINES[engine])


@pytest.mark.parametrize("engine", ENGINES)
def test_it_records_its_name(engine: str) -> None:
    """A training that goes on asks for the engine that its record names."""
    found = Training(ENGINES[engine](), SIMPLE, "float64").bound.facts.get("engine")
    assert found == engine, f"src/handgrad/engines/__init__.py calls it {engine!r}, and its facts {found!r}"


@pytest.mark.parametrize("engine", ENGINES)
def test_it_stops_before_a_weight_is_spoiled(engine: str) -> None:
    """At the first batch whose loss is not finite, which it counts from 0."""
    t = SIMPLE.arrays["t"].copy()
    t[np.random.default_rng(0).permutation(len(t))[-1]] = np.inf  # in the last batch of the first epoch
    training = Training(ENGINES[engine](), Case(SIMPLE.network, {**SIMPLE.arrays, "t": t}), "float64")
    with pytest.raises(NonFiniteLossError) as caught:
        training.run(6)
    assert caught.value.batch == 3
    assert all(np.isfinite(array).all() for array in training.kept.values())
