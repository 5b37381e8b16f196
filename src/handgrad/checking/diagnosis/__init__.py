"""Naming the mistake: which known mistake reproduces the wrong gradient."""

from handgrad.checking.diagnosis.diagnose import diagnose

__all__ = ["diagnose"]
