"""Naming the mistake: which known mistake reproduces the wrong gradient."""

from handgrad.checking.diagnosis.diagnose import diagnose
from handgrad.checking.diagnosis.guess import Guess

__all__ = ["Guess", "diagnose"]
