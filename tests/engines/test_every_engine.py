"""What is promised of every engine: the reference's numbers, the same ones again, its name, and no weight spoiled."""

from __future__ import annotations

import importlib
import pkgutil

import numpy as np
import pytest

from handgrad import engines
from handgrad.engines import ENGINES, Engine, NonFiniteLossError
from handgrad.engines.jax_engine import JaxEngine

from ..conftest import EACH_ENGINE
from .agreement import BOUNDS, Case, Training, check_case
from .test_compiled_agreement import NETWORKS

SIMPLE = NETWORKS["one layer"]


# A third axis is more rows of the same loops: one dtype says whether its sizes are right.
@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, dtype) for name in NETWORKS for dtype in BOUNDS if (dtype == "float32" or "rank 3" not in name)],
)
@pytest.mark.parametrize("engine", [name for name in ENGINES if name not in ("reference", "jax")])
def test_it_agrees_with_the_reference(engine: str, name: str, dtype: str) -> None:
    """Trained at every size of batch, each gradient alone, and outside training; with threads, bit for bit.

    `test_jax_engine` has the engine whose tracing takes long.
    """
    check_case(NETWORKS[name], dtype, engine=ENGINES[engine])


def test_whatever_binds_programs_has_a_name() -> None:
    """An engine that the table does not name would be tested by nothing."""
    named = {JaxEngine, *(type(make()) for name, make in ENGINES.items() if name != "jax")}
    for found in pkgutil.iter_modules(engines.__path__, "handgrad.engines."):
        for made in vars(importlib.import_module(found.name)).values():
            if isinstance(made, type) and hasattr(made, "bind") and made is not Engine:
                assert made in named, (
                    f"src/handgrad/engines/__init__.py: ENGINES does not name {made.__name__}"
                )


@pytest.mark.parametrize("engine", EACH_ENGINE)
def test_it_records_its_name(engine: str) -> None:
    """A training that goes on asks for the engine that its record names."""
    found = Training(ENGINES[engine](), SIMPLE, "float64").bound.facts.get("engine")
    assert found == engine, f"src/handgrad/engines/__init__.py calls it {engine!r}, and its facts {found!r}"


@pytest.mark.parametrize("engine", EACH_ENGINE)
def test_it_stops_before_a_weight_is_spoiled(engine: str) -> None:
    """At the first batch whose loss is not finite, which it counts from 0."""
    t = SIMPLE.arrays["t"].copy()
    t[np.random.default_rng(0).permutation(len(t))[-1]] = np.inf  # in the last batch of the first epoch
    training = Training(ENGINES[engine](), Case(SIMPLE.network, {**SIMPLE.arrays, "t": t}), "float64")
    with pytest.raises(NonFiniteLossError) as caught:
        training.run(6)
    assert caught.value.batch == 3
    assert all(np.isfinite(array).all() for array in training.kept.values())
