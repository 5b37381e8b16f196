"""Activations and dropout: layers without parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from handgrad import rules
from handgrad.arguments import Fraction
from handgrad.layers.graph import Graph, Value
from handgrad.layers.layer import RuleLayer

__all__ = ["ELU", "GELU", "Dropout", "LeakyReLU", "ReLU", "SiLU", "Sigmoid", "Softmax", "Softplus", "Tanh"]


@dataclass(frozen=True, eq=False, repr=False)
class ReLU(RuleLayer):
    """Keep what is positive: ``a = max(z, 0)``."""

    rule = rules.relu


@dataclass(frozen=True, eq=False, repr=False)
class LeakyReLU(RuleLayer):
    """Leaky rectifier: ``a = z`` where z > 0, else ``α z``.

    Parameters
    ----------
    slope : float, default 0.01
        α.
    """

    slope: float = 0.01
    rule = rules.leaky_relu


@dataclass(frozen=True, eq=False, repr=False)
class ELU(RuleLayer):
    """Exponential linear unit: ``a = z`` where z > 0, else ``α (eᶻ - 1)``.

    Parameters
    ----------
    alpha : float, default 1.0
        α: the output goes down to -α.
    """

    alpha: float = 1.0
    rule = rules.elu


@dataclass(frozen=True, eq=False, repr=False)
class GELU(RuleLayer):
    """Weigh each value by the normal distribution below it: ``a = z Φ(z)``.

    Parameters
    ----------
    form : "exact" or "tanh", default "exact"
        "tanh" is GPT-2's approximation of Φ.
    """

    form: Literal["exact", "tanh"] = "exact"
    rule = rules.gelu

    def connect(self, graph: Graph, x: Value) -> Value:  # noqa: D102 - as in Layer
        return graph.apply(self.rule if self.form == "exact" else rules.gelu_tanh, x)


@dataclass(frozen=True, eq=False, repr=False)
class Sigmoid(RuleLayer):
    """Squash to (0, 1): ``a = 1 / (1 + e⁻ᶻ)``."""

    rule = rules.sigmoid


@dataclass(frozen=True, eq=False, repr=False)
class Tanh(RuleLayer):
    """Squash to (-1, 1): ``a = tanh z``."""

    rule = rules.tanh


@dataclass(frozen=True, eq=False, repr=False)
class SiLU(RuleLayer):
    """Weigh each value by its own sigmoid: ``a = z σ(z)``."""

    rule = rules.silu


@dataclass(frozen=True, eq=False, repr=False)
class Softplus(RuleLayer):
    """Smooth the rectifier: ``a = log(1 + eᶻ)``."""

    rule = rules.softplus


@dataclass(frozen=True, eq=False, repr=False)
class Softmax(RuleLayer):
    """Turn each row into probabilities. A classifier does not need it: its loss has it inside."""

    rule = rules.softmax


@dataclass(frozen=True, eq=False, repr=False)
class Dropout(RuleLayer):
    """Inverted dropout: in training each value is 0 with probability p, and the others are divided by 1 - p.

    Parameters
    ----------
    rate : float, default 0.5
        p, from 0 to less than 1.
    """

    rate: Fraction = 0.5
    rule = rules.dropout
