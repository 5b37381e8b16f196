"""The gradient of a trace, written as source over the names of forward."""

from handgrad.checking.gradient_code.gradient import GradientCode, write_gradient

__all__ = ["GradientCode", "write_gradient"]
