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
from handgrad.engines.compiled import (
    CompiledEngine,
    contractions,
    convolution,
    fused_loop,
    fusion,
    ir,
    loop_fits,
    loops,
    plan,
    step_table,
    window_loops,
)
from handgrad.errors import EngineError
from handgrad.layers import Optimiser
from handgrad.program import windows
from handgrad.program.lowered import NONE, ONE, LoweredValue

from .agreement import Case, Training, check_agreement, check_case, check_same, threads
from .images import IMAGES
from .test_compiled_axes import check_axes, check_looking_back
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


def agrees_with_images(name: str) -> Callable[[], None]:
    def agrees() -> None:
        check_case(IMAGES[name], "float64", (6,))

    return agrees


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


def agrees_with_axes(name: str) -> Callable[[], None]:
    """Compare rules that read parts of arrays, and axes in another order."""

    def agrees_with_axes_of_a_rule() -> None:
        check_axes(name, "float64")

    return agrees_with_axes_of_a_rule


def agrees_looking_back() -> None:
    with pytest.MonkeyPatch.context() as patch:
        check_looking_back("attention", 24, patch)


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
        original = step_table.product_text
        monkeypatch.setattr(
            step_table, "product_text", lambda *given: changed(original(*given), pattern, mutant)
        )

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
    monkeypatch.setattr(fused_loop.FusedLoop, "sums_columns", lambda loop, value: False)


def places_shared_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    original = plan.arrange

    def arrange(blocks: Any) -> Any:
        return original([(key, size, first, first) for key, size, first, _ in blocks])

    monkeypatch.setattr(plan, "arrange", arrange)


def same_mask_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    original = loops.KernelWriter.index

    def index(self: Any, level: Any, access: Any = None) -> Any:
        return original(self, "column" if level == "full" and self.drawing else level, access)

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
    original = loops.combine

    def combine(code: Any, reduction: str, total: Any, operand: Any) -> Any:
        return operand if reduction == "add_rows_at" else original(code, reduction, total, operand)

    monkeypatch.setattr(loops, "combine", combine)


def only_the_last_image(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(self: Any, code: Any, kind: str, contraction: Any, arrays: Any, is_first: Any) -> None:
        original(self, code, kind, contraction, arrays, is_first and ir.literal(1, "i1"))

    original = contractions._Writer.__init__
    monkeypatch.setattr(contractions._Writer, "__init__", write)
    anew(monkeypatch)


def overlaps_overwrite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        contractions.Contraction, "overlap", property(lambda self: False, lambda self, given: None)
    )
    anew(monkeypatch)


def every_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all of equal entries take the gradient."""
    original = window_loops.Code.assign

    def assign(self: Any, variable: str, a: Any) -> None:
        original(self, variable, ir.literal(0, "i1", a.width) if a.kind == "i1" else a)

    monkeypatch.setattr(window_loops.Code, "assign", assign)


def padding_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    original = windows.Windows.primitive_windows

    def primitive_windows(self: Any, x: Any, size: Any, *spacing: Any) -> Any:
        return original(self, x, size, *spacing[:3])

    monkeypatch.setattr(windows.Windows, "primitive_windows", primitive_windows)


def phases_begin_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    original = convolution._phases
    monkeypatch.setattr(
        convolution, "_phases", lambda *given: [replace(p, first=0) for p in original(*given)]
    )
    anew(monkeypatch)


def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generate contractions again, which are cached otherwise."""
    monkeypatch.setattr(step_table, "contraction_text", contractions.contraction_text.__wrapped__)


def access_with(**changes: Any) -> Patch:
    """Change where loops find what is not one row after the other."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        original = loop_fits.access_of

        def access_of(*given: Any) -> Any:
            access = original(*given)
            return access and replace(access, **changes)

        for module in (loop_fits, loops):
            monkeypatch.setattr(module, "access_of", access_of)

    return patch


def one_stack_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    original = step_table.stacked

    def stacked(*given: Any) -> Any:
        stack = original(*given)
        return replace(stack, axes=stack.axes[:1])

    monkeypatch.setattr(step_table, "stacked", stacked)


def sums_of_groups_forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops.KernelWriter, "clear", lambda self, value, rows: None)


def blocks_end_early(monkeypatch: pytest.MonkeyPatch) -> None:
    original = step_table.pieces

    def pieces(*given: Any) -> Any:
        found = original(*given)
        return found and [(r, c, (first, last - (last > 1))) for r, c, (first, last) in found]

    monkeypatch.setattr(step_table, "pieces", pieces)


def last_part_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    original = step_table.StepTable.divided

    def divided(self: Any, extent: int, parts: int, unit: int) -> tuple[int, int]:
        count, part = original(self, extent, parts, unit)
        return (count - 1 if count > 2 else count), part

    monkeypatch.setattr(step_table.StepTable, "divided", divided)


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
    "every part begins where the whole does": (access_with(offset=NONE), agrees_with_axes("parts and wholes")),
    "every row is the first": (access_with(rows=()), agrees_with_axes("positions")),
    "columns are side by side": (access_with(step=ONE), agrees_with_axes("transposed by hand")),
    "only the first stack is multiplied": (one_stack_for_all, agrees_with_axes("gram")),
    "a block of rows ends before the diagonal": (blocks_end_early, agrees_looking_back),
    "sums begin with those of the step before": (sums_of_groups_forget, agrees_with_axes("groups")),
    "a gradient is that of the last image": (only_the_last_image, agrees_with_images("LeNet")),
    "windows that overlap overwrite": (overlaps_overwrite, agrees_with_images("LeNet")),
    "all of equal entries are taken": (every_largest, agrees_with_images("pools that overlap")),
    "padding is taken by a pool": (padding_is_zero, agrees_with_images("pools that overlap")),
    "strides skip nothing": (phases_begin_at_once, agrees_with_images("strides and dilation")),
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
