"""Mistakes planted in the compiled engine: the checks of this folder must fail on every one of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from handgrad import (
    SGD,
    Adam,
    BatchNorm,
    Dropout,
    Embedding,
    LayerNorm,
    Linear,
    MeanSquaredError,
    Network,
    ReLU,
    SoftmaxCrossEntropy,
    Tanh,
)
from handgrad.engines import Epoch, NonFiniteLossError, ReferenceEngine
from handgrad.engines.compiled import CompiledEngine, fusion, loops, plan
from handgrad.errors import EngineError
from handgrad.layers import Optimiser
from handgrad.program.lowered import LoweredValue

from .agreement import Case, Training, check_agreement, check_case, check_same, threads
from .test_compiled_rules import OWN

RNG = np.random.default_rng(0)
X, CLASSES = RNG.normal(size=(23, 5)), RNG.integers(0, 3, 23)
WIDE, TARGETS = RNG.normal(size=(150, 37)), RNG.normal(size=(150, 41))


def case(optimiser: Optimiser | None = None) -> Case:
    """Return a case with products, sums of every kind, masks and a step number."""

    def network(dtype: str) -> Network:
        layers = [Linear(5, 19, bias=False), BatchNorm(), ReLU(), Dropout(0.3), LayerNorm(), Linear(19, 3)]
        return Network(*layers, loss=SoftmaxCrossEntropy(), dtype=dtype)

    return Case(network, {"x": X, "t": CLASSES}, optimiser or SGD())


def agrees() -> None:
    check_case(case(), "float64", (6,))


def agrees_with_adam() -> None:
    check_case(case(Adam(0.01)), "float64", (6,))


def agrees_with_embedding() -> None:
    def network(dtype: str) -> Network:
        return Network(Embedding(11, 19), Linear(19, 3), inputs=(), loss=SoftmaxCrossEntropy(), dtype=dtype)

    check_case(Case(network, {"x": np.arange(23) % 11, "t": CLASSES}), "float64", (6,))


def agrees_with_largest() -> None:
    def network(dtype: str) -> Network:
        layers = [Linear(5, 19), OWN["scaled"], Linear(19, 3)]
        return Network(*layers, loss=SoftmaxCrossEntropy(), dtype=dtype)

    check_case(Case(network, {"x": X, "t": CLASSES}), "float64", (6,))


def agrees_divided() -> None:
    """Compare a network of large products, divided into three parts, with the reference."""

    def network(dtype: str) -> Network:
        layers = [Linear(37, 83), ReLU(), Linear(83, 67, layout="out_in"), Tanh(), Linear(67, 41)]
        return Network(*layers, loss=MeanSquaredError(), dtype=dtype)

    wide = Case(network, {"x": WIDE, "t": TARGETS})
    for batch_size in (40, 150):
        with threads(3):
            found = Training(CompiledEngine(), wide, "float64").run(batch_size)
        check_agreement(
            found, Training(ReferenceEngine(), wide, "float64").run(batch_size), "float64", "wide"
        )


def stops_before_it_spoils() -> None:
    """Look that a loss that is not finite changes nothing."""
    x = X.copy()
    x[0] = np.nan
    training = Training(CompiledEngine(), case(), "float64")
    with pytest.raises(NonFiniteLossError):
        training.bound.epoch(Epoch({"x": x, "t": CLASSES}, np.arange(23), 23, np.array([0.1])))
    check_same(training.kept, training.start)


Patch = Callable[[pytest.MonkeyPatch], None]


def changed(text: str, pattern: str, mutant: str) -> str:
    """Return a text with the one place that matches changed."""
    found, count = re.subn(pattern, mutant, text)
    assert count == 1, pattern
    return found


def driver_with(pattern: str, mutant: str) -> Patch:
    """Change the batch loop's code."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        original = plan.driver_text
        monkeypatch.setattr(plan, "driver_text", lambda triple: changed(original(triple), pattern, mutant))

    return patch


def product_with(pattern: str, mutant: str) -> Patch:
    """Change the code that multiplies matrices."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        original = plan.product_text
        monkeypatch.setattr(plan, "product_text", lambda *given: changed(original(*given), pattern, mutant))

    return patch


def transposed_product(monkeypatch: pytest.MonkeyPatch) -> None:
    def matrix(operand: LoweredValue) -> tuple[LoweredValue, bool]:
        memory, transposed = original(operand)
        return memory, not transposed

    original: Any = LoweredValue.matrix.fget
    monkeypatch.setattr(LoweredValue, "matrix", property(matrix))


def accumulated_with(**changes: Any) -> Patch:
    """Change the products that are added to parameters in place."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        original = fusion.StepSchedule._accumulated

        def accumulated(self: Any, value: Any) -> Any:
            step = original(self, value)
            return step and replace(step, **changes)

        monkeypatch.setattr(fusion.StepSchedule, "_accumulated", accumulated)

    return patch


def barrier_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    original = fusion.StepSchedule.place

    def place(self: Any, value: Any) -> None:
        self.updates = frozenset()
        original(self, value)

    monkeypatch.setattr(fusion.StepSchedule, "place", place)


def neutral_of_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(loops.NEUTRAL, "max", 5.0)


def neutral_of_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(loops.NEUTRAL, "sum", 1e-3)


def tail_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    original = loops.KernelWriter.accumulate

    def accumulate(self: Any, value: Any, operand: Any) -> None:
        mask, self.mask = self.mask, None
        original(self, value, operand)
        self.mask = mask

    monkeypatch.setattr(loops.KernelWriter, "accumulate", accumulate)


def sums_read_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion.FusedLoop, "sums_columns", lambda loop, value: False)


def places_shared_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    original = plan.arrange

    def arrange(blocks: Any) -> Any:
        return original([(key, size, first, first) for key, size, first, _ in blocks])

    monkeypatch.setattr(plan, "arrange", arrange)


def same_mask_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    original = loops.KernelWriter.index

    def index(self: Any, level: Any) -> Any:
        return original(self, "column" if level == "full" and self.drawing else level)

    draw = loops.KernelWriter.uniform

    def uniform(self: Any, value: Any, width: int) -> Any:
        self.drawing = True
        drawn = draw(self, value, width)
        self.drawing = False
        return drawn

    monkeypatch.setattr(loops.KernelWriter, "drawing", False, raising=False)
    monkeypatch.setattr(loops.KernelWriter, "index", index)
    monkeypatch.setattr(loops.KernelWriter, "uniform", uniform)


def repeated_indices_overwrite(monkeypatch: pytest.MonkeyPatch) -> None:
    original = loops.KernelWriter.combine

    def combine(self: Any, value: Any, total: Any, operand: Any) -> Any:
        return operand if value.operation == "add_rows_at" else original(self, value, total, operand)

    monkeypatch.setattr(loops.KernelWriter, "combine", combine)


def last_part_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    original = plan.StepTable.divided

    def divided(self: Any, extent: int, parts: int, unit: int) -> tuple[int, int]:
        count, part = original(self, extent, parts, unit)
        return (count - 1 if count > 2 else count), part

    monkeypatch.setattr(plan.StepTable, "divided", divided)


MUTANTS: dict[str, tuple[Patch, Callable[[], None]]] = {
    "every product has its operands transposed": (transposed_product, agrees),
    "an update goes uphill": (accumulated_with(sign=1.0), agrees),
    "a fused update forgets its learning rate": (accumulated_with(scale=None), agrees),
    "weights change before the loss is looked at": (barrier_ignored, stops_before_it_spoils),
    "the largest starts from 5": (neutral_of_maximum, agrees_with_largest),
    "sums start from a thousandth": (neutral_of_sum, agrees),
    "what lies behind a row is counted": (tail_counted, agrees),
    "a row's sum is read before its pass is done": (sums_read_too_early, agrees),
    "memory is shared before it is read": (places_shared_too_early, agrees),
    "each row has the same mask": (same_mask_everywhere, agrees),
    "of repeated indices the last one counts": (repeated_indices_overwrite, agrees_with_embedding),
    "the first learning rate stays": (
        driver_with(r"(getelementptr double, ptr %v\d+, i64) %v\d+", r"\1 0"),
        agrees,
    ),
    "the step is not counted": (
        driver_with(r"(add i64 %v\d+), %v\d+(\n  %v\d+ = sitofp)", r"\1, 0\2"),
        agrees_with_adam,
    ),
    "each batch has the first rows": (
        driver_with(r"%v\d+(\n  %v\d+ = add i64 %v\d+, 1\n  %v\d+ = mul i64 %v\d+, 8\n)", r"0\1"),
        agrees,
    ),
    "a batch goes on with the one before": (
        driver_with(r"mul i64 %v\d+(, %v\d+\n  %v\d+ = sub i64 %v\d+, %v\d+\n  %v\d+ = icmp slt)", r"mul i64 %first\1"),
        agrees,
    ),
    "parts of a product begin elsewhere": (
        product_with(r"(?s)\A(.*?mul i64 %first,) %v\d+", r"\1 1"),
        agrees_divided,
    ),
    "every part of a product writes the first rows": (
        product_with(
            r"%first, %v\d+(\n  %v\d+ = getelementptr \w+, ptr %v\d+, i64 %v\d+\n  call void)", r"0, 0\1"
        ),
        agrees_divided,
    ),
    "the last part is left out": (last_part_left_out, agrees_divided),
}  # fmt: skip
"""Each mistake, and the check that must notice it."""


@pytest.mark.parametrize("name", MUTANTS)
def test_the_checks_notice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check passes on the engine as it is, and fails on the mutant."""
    plant, check = MUTANTS[name]
    plant(monkeypatch)
    with pytest.raises((AssertionError, NonFiniteLossError, KeyError, EngineError)):
        check()


@pytest.mark.parametrize(
    "check", list(dict.fromkeys(check for _, check in MUTANTS.values())), ids=lambda check: check.__name__
)
def test_the_engine_as_it_is_passes(check: Callable[[], None]) -> None:
    """The checks do not fail on everything."""
    check()
