"""Naming the mistake: which known mistake reproduces the wrong gradient."""

from handgrad.checking.diagnosis.diagnose import diagnose
from handgrad.checking.diagnosis.evidence import Evidence, Guess

__all__ = ["Evidence", "Guess", "diagnose"]
