"""Explaining: from a program and a batch, one record that the terminal, the notebook and the page show."""

from handgrad.explaining.explain import explain
from handgrad.explaining.explanation import Explanation
from handgrad.explaining.state import Health

__all__ = ["Explanation", "Health", "explain"]
