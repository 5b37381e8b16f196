"""The chain rule over a trace: a table of vector-Jacobian products as text, and gradients carried by it."""

from handgrad.checking.adjoint.chain_rule import COMPARISONS, KINKED, adjoints, ties_of
from handgrad.checking.adjoint.vjp_table import vjp_text

__all__ = ["COMPARISONS", "KINKED", "adjoints", "ties_of", "vjp_text"]
