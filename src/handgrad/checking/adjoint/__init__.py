"""The chain rule over a recording: a table of derivatives as text, and gradients carried by it."""

from handgrad.checking.adjoint.chain_rule import (
    Plant,
    cotangents,
    edge_contribution,
    edge_text,
    jacobian,
    stretched_axes,
    summed,
)

__all__ = ["Plant", "cotangents", "edge_contribution", "edge_text", "jacobian", "stretched_axes", "summed"]
