"""Explaining: from a program and a batch, one record that the terminal, the notebook and the page show."""

from handgrad.explaining.explainer import explain
from handgrad.explaining.record import Explanation, Health

__all__ = ["Explanation", "Health", "explain"]
