"""The gradient of a trace, generated as source over the names of forward."""

from handgrad.checking.gradient_code.gradient_writer import GradientCode, write_gradient

__all__ = ["GradientCode", "write_gradient"]
