"""What the compiled engine decides by measuring: whether a second thread helps, and which BLAS library is faster."""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path

import pytest

from handgrad.engines.compiled import blas as blas_module
from handgrad.engines.compiled.blas import Blas, find_blas
from handgrad.engines.compiled.pool import TRIAL, USUAL, Choice, Helpers
from handgrad.errors import ConfigurationError


def decide(choice: Choice, speeds: dict[bool, float], slices: int) -> list[bool]:
    """Run slices whose rows take so long with help and without; return which were helped."""
    helped = []
    for _ in range(slices):
        helped.append(choice.helped)
        choice.measured(choice.length, max(1, round(choice.length / speeds[choice.helped])))
    return helped


@pytest.mark.parametrize("faster", [True, False])
def test_both_ways_are_tried_and_the_faster_one_is_kept(faster: bool) -> None:
    choice = Choice()
    helped = decide(choice, {faster: 1e-6, not faster: 2e-6}, 40)
    assert {True, False} == set(helped[:3])
    assert helped[3:].count(not faster) <= len(helped) // 4
    assert choice.length in (TRIAL, USUAL)


def test_trials_take_a_small_share_of_the_time() -> None:
    choice = Choice()
    total = {True: 0.0, False: 0.0}
    for _ in range(2000):
        seconds = (
            choice.length if choice.helped else 20 * choice.length
        )  # a batch alone is longer than a trial
        total[choice.helped] += seconds
        choice.measured(seconds, max(1, round(choice.length / 1e-6)))
    assert total[False] < 0.05 * total[True]


def test_a_machine_that_becomes_busy_is_noticed() -> None:
    """Help that becomes four times dearer is only tried now and then, and taken again afterwards."""
    choice = Choice()
    quiet, busy = {True: 1e-6, False: 2e-6}, {True: 4e-6, False: 2e-6}
    assert decide(choice, quiet, 20).count(True) > 12
    assert decide(choice, busy, 20).count(True) < 8
    assert decide(choice, quiet, 20).count(True) > 12


def test_a_slice_too_short_to_tell_decides_nothing() -> None:
    choice = Choice()
    choice.measured(TRIAL / 10, 1)
    assert choice.seconds == {}
    assert not choice.helped


def test_helpers_help_one_caller_at_a_time() -> None:
    helpers = Helpers(1)
    seen: list[int] = []

    def another() -> None:
        with helpers.shared() as address:
            seen.append(address)

    with helpers.shared() as address:
        assert address == helpers.memory.ctypes.data
        thread = threading.Thread(target=another)
        thread.start()
        thread.join()
    assert seen == [0]
    with helpers.shared() as address:
        assert address


class Timed(Blas):
    """A library that says how fast it is."""

    def seconds(self) -> float:
        """Note that it was asked."""
        MEASURED.append(self.name)
        return {"fast": 1.0, "slow": 2.0}[self.name]


MEASURED: list[str] = []


@pytest.mark.parametrize("order", [("fast", "slow"), ("slow", "fast")])
def test_the_faster_library_is_measured_once_and_remembered(
    order: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDGRAD_CACHE", str(tmp_path))
    MEASURED.clear()
    libraries = tuple(Timed(name, ctypes.CDLL(None), "{}", "i64", ("", "")) for name in order)
    assert [blas_module._faster(*libraries).name for _ in range(3)] == ["fast"] * 3
    assert sorted(MEASURED) == ["fast", "slow"]
    (file,) = tmp_path.iterdir()
    file.write_text("another library")  # is measured again
    assert blas_module._faster(*libraries).name == "fast"
    assert len(MEASURED) == 4


def test_a_library_can_be_measured() -> None:
    found = find_blas()
    assert found is not None
    before = found.thread_count
    assert 0 < found.seconds() < 1
    assert found.thread_count == before


@pytest.mark.parametrize(
    ("choice", "message"),
    [("fast", "HANDGRAD_BLAS is 'fast'\n  fix    give auto, numpy or mkl"), ("mkl", "no MKL is installed")],
)
def test_a_choice_that_cannot_be_is_refused(
    choice: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDGRAD_BLAS", choice)
    monkeypatch.setattr(blas_module, "_mkl", lambda: None)
    with pytest.raises(ConfigurationError, match=message):
        find_blas.__wrapped__()
