"""Learning-rate schedules: one number a step, by hand and against PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handgrad import ConfigurationError, Constant, Cosine, OneCycle, StepDecay
from handgrad.layers import Schedule

SCHEDULES = [Constant(), StepDecay(every=2, factor=0.5), Cosine(), Cosine(warmup=1.5, final=1e-3), OneCycle()]


def test_constant_is_the_rate_itself() -> None:
    """Every step of every epoch."""
    np.testing.assert_array_equal(Constant().rates(0.3, 2, 5), [0.3] * 10)


def test_step_decay_falls_every_so_many_epochs() -> None:
    """The factor is multiplied in between epochs, never inside one."""
    rates = StepDecay(every=2, factor=0.1).rates(1.0, 5, 3)
    np.testing.assert_allclose(rates, [1.0] * 6 + [0.1] * 6 + [0.01] * 3, rtol=1e-15)


def test_cosine_falls_from_the_rate_to_the_final_one() -> None:
    """Half a cosine over all steps: the rate, the middle, almost the end."""
    half = 0.4 * 0.5**0.5  # of the way from 1 to 0.2 lies 0.4 on each side of the middle
    np.testing.assert_allclose(Cosine(final=0.2).rates(1.0, 2, 2), [1, 0.6 + half, 0.6, 0.6 - half])


def test_cosine_rises_in_a_straight_line_first() -> None:
    """Over warmup epochs, which may be a part of one; the first step is not 0, the first after is the rate."""
    rates = Cosine(warmup=0.75).rates(1.2, 2, 4)
    np.testing.assert_allclose(rates[:4], [0.4, 0.8, 1.2, 1.2])
    assert (np.diff(rates[3:]) < 0).all()


def test_cosine_that_only_rises() -> None:
    """A warmup as long as the training, or longer, never falls."""
    np.testing.assert_allclose(Cosine(warmup=2).rates(1.0, 2, 2), [0.25, 0.5, 0.75, 1.0])
    np.testing.assert_allclose(Cosine(warmup=4).rates(1.0, 2, 2), [0.125, 0.25, 0.375, 0.5])


def test_one_cycle_rises_and_falls() -> None:
    """From rate / start to the rate, to rate / start / end; both like a cosine."""
    rates = OneCycle(rising=0.5, start=10, end=100).rates(2.0, 1, 10)  # the top is step 4
    assert rates[[0, 4, 9]] == pytest.approx([0.2, 2.0, 0.002])
    assert rates[2] == pytest.approx((0.2 + 2.0) / 2)
    assert (np.diff(rates[:5]) > 0).all()
    assert (np.diff(rates[4:]) < 0).all()


@settings(deadline=None)
@given(
    schedule=st.sampled_from(SCHEDULES),
    rate=st.floats(1e-6, 10),
    epochs=st.integers(1, 7),
    steps=st.integers(1, 9),
)
def test_every_step_has_one_rate(schedule: Schedule, rate: float, epochs: int, steps: int) -> None:
    """As many as there are steps, finite, never negative, never above the rate or the schedule's own final one."""
    rates = schedule.rates(rate, epochs, steps)
    assert rates.shape == (epochs * steps,)
    assert np.isfinite(rates).all()
    assert (rates >= 0).all()
    assert rates.max() <= max(rate, 1e-3) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StepDecay(every=0), "StepDecay: every is 0\n  fix    give a whole number, 1 or more"),
        (lambda: StepDecay(factor=1.5), "factor is 1.5\n  fix    give a number above 0 and at most 1"),
        (lambda: StepDecay(factor=0.0), "factor is 0.0"),
        (lambda: Cosine(warmup=-1), "warmup is -1\n  fix    give a number, 0 or more"),
        (lambda: Cosine(final=-0.1), "final is -0.1"),
        (lambda: OneCycle(rising=1.0), "rising is 1.0\n  fix    give a number above 0 and less than 1"),
        (lambda: OneCycle(start=0.5), "start is 0.5\n  fix    give a number, 1 or more"),
        (lambda: OneCycle(end=0.5), "end is 0.5"),
    ],
)
def test_numbers_out_of_range_are_refused(make: Any, message: str) -> None:
    """With the values."""
    with pytest.raises(ConfigurationError, match=message.replace(".", r"\.")):
        make()


@pytest.mark.peers
@pytest.mark.parametrize("epochs", [1, 3, 7])
@pytest.mark.parametrize("steps", [4, 11])
def test_schedules_are_pytorchs(torch: Any, epochs: int, steps: int) -> None:
    """StepLR, CosineAnnealingLR, LinearLR before it, and OneCycleLR give the same rates."""
    lr = torch.optim.lr_scheduler

    def rates_of(make: Any, after_each: str = "step") -> list[float]:
        optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.7)
        scheduler, rates = make(optimiser), []
        for step in range(epochs * steps):
            rates.append(optimiser.param_groups[0]["lr"])
            optimiser.step()
            last = step == epochs * steps - 1
            if not last and (after_each == "step" or (step + 1) % steps == 0):
                scheduler.step()
        return rates

    total = epochs * steps
    np.testing.assert_allclose(
        StepDecay(every=2, factor=0.3).rates(0.7, epochs, steps),
        rates_of(lambda o: lr.StepLR(o, step_size=2, gamma=0.3), "epoch"), rtol=1e-12,
    )  # fmt: skip
    np.testing.assert_allclose(
        Cosine(final=0.05).rates(0.7, epochs, steps),
        rates_of(lambda o: lr.CosineAnnealingLR(o, T_max=total, eta_min=0.05)), rtol=1e-9,
    )  # fmt: skip
    np.testing.assert_allclose(
        Cosine(warmup=3 / steps).rates(0.7, epochs, steps)[:3],
        rates_of(lambda o: lr.LinearLR(o, start_factor=1 / 3, total_iters=2))[:3], rtol=1e-9,
    )  # fmt: skip
    np.testing.assert_allclose(
        OneCycle(rising=0.4, start=20, end=300).rates(0.7, epochs, steps),
        rates_of(lambda o: lr.OneCycleLR(
            o, max_lr=0.7, total_steps=total, pct_start=0.4, div_factor=20, final_div_factor=300,
            cycle_momentum=False,
        )), rtol=1e-9,
    )  # fmt: skip
