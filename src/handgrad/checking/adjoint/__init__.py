"""The chain rule over a trace: a table of vector-Jacobian products as text, and gradients carried by it."""

from handgrad.checking.adjoint.chain_rule import (
    Mutation,
    adjoints,
    jacobian,
    stretched_axes,
    summed,
    vector_jacobian_product,
    vjp_text,
)

__all__ = [
    "Mutation",
    "adjoints",
    "jacobian",
    "stretched_axes",
    "summed",
    "vector_jacobian_product",
    "vjp_text",
]
