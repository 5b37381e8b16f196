"""Naming the mistake: which known mistake reproduces the wrong gradient."""

from handgrad.checking.diagnosis.diagnose import by_evidence, by_first_wrong, cover, diagnose

__all__ = ["by_evidence", "by_first_wrong", "cover", "diagnose"]
