"""What the checker finds does not hang on how fast the machine is: its clock is stopped, and work is counted."""

import sys

import pytest

import handgrad.checking


@pytest.fixture(autouse=True)
def _no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[handgrad.checking.check.__module__]
    monkeypatch.setattr(module, "NAMING_SECONDS", 600.0)
