"""The floor: the products of matrices of handgrad's own program, called natively, and nothing else of it."""

# ruff: noqa: D102 - methods are described in `peers.Peer`

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from handgrad.engines.compiled.batch_loop import Control, helpers
from handgrad.engines.compiled.fusion import Product, Step
from handgrad.engines.compiled.loops import Kernel
from handgrad.engines.compiled.matrix_products import Carried
from handgrad.engines.compiled.step_table import StepTable
from handgrad.engines.compiled.window_steps import WindowProduct
from peers.ours import Compiled
from peers.workload import Array, UnavailableError, Workload

SMALL = 1e-20
"""A learning rate that changes no weight, but is not 0, for which BLAS would multiply nothing."""


class ProductTable(StepTable):
    """The steps that are products."""

    def add_step(self, step: Step, kernels: Mapping[Step, Kernel]) -> None:
        if isinstance(step, Product | WindowProduct):
            super().add_step(step, kernels)


class Products(Compiled):
    """A table of steps that holds only products, gone through as often as an epoch has steps."""

    threads: ClassVar[int] = 1
    """Into how many parts the engine divides large products."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        bound, n = self.bound, workload.batch
        bound.epoch(
            self.next_epoch(np.full(workload.steps, SMALL))
        )  # leaves all numbers and addresses in place
        *_, plan = bound.plans.values()
        if self.threads > plan.threads:
            raise UnavailableError(f"{plan.threads} thread(s) here")
        plan.threads, plan.carried = self.threads, Carried(None, plan.order, "float32")  # each product alone
        self.table = ProductTable(plan, n)
        self.steps = self.table.steps
        self.order, self.rates = np.arange(workload.rows + 1), np.full(workload.steps, SMALL)
        self.plan, self.control = plan, plan.control.copy()
        for place, value in (
            (Control.STEPS, self.steps.ctypes.data),
            (Control.STEP_COUNT, len(self.steps)),
            (Control.ORDER, self.order.ctypes.data),
            (Control.RATES, self.rates.ctypes.data),
            (Control.POOL, 0),
        ):
            self.control[place] = value

    def run(self) -> None:
        """Go through the table."""
        self.plan.call(self.control.ctypes.data, 0, self.workload.steps)

    def epoch(self) -> None:
        with self.bound.blas.on_one_thread():
            self.run()

    def scores(self, x: Array) -> Array | None:
        return None


class OneThread(Products):
    """One thread does everything."""


class Divided(Products):
    """Large products are divided as the engine divides them, and two threads share the parts."""

    threads = 2

    def epoch(self) -> None:
        with helpers(self.threads - 1).shared() as self.control[Control.POOL]:
            super().epoch()


class OwnThreads(Products):
    """BLAS uses as many threads as it thinks best."""

    def epoch(self) -> None:
        self.run()
