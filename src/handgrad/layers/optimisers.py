"""Optimisers: an update rule with its numbers, and what may happen to a gradient before."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from handgrad import rules
from handgrad.arguments import Fraction, Judged, NonNegative, Positive
from handgrad.errors import ConfigurationError
from handgrad.layers.layer import show_call
from handgrad.rules import UpdateRule

__all__ = ["SGD", "Adam", "AdamW", "Optimiser", "RMSProp"]


@dataclass(frozen=True, repr=False)
class Optimiser(metaclass=Judged):
    """How each parameter follows its gradient.

    Parameters
    ----------
    learning_rate : float, default 1e-3
        η, the length of a step; a schedule changes it from step to step.
    weight_decay : float, default 0.0
        λ: λ W is added to each gradient.
    clip_norm : float or None, default None
        The largest norm of all gradients together: above it, they are scaled down by one factor.
    """

    learning_rate: Positive = 1e-3
    _: KW_ONLY
    weight_decay: NonNegative = 0.0
    clip_norm: Positive | None = None

    def __repr__(self) -> str:
        return show_call(self)

    @property
    def rule(self) -> UpdateRule:
        """The update rule; its options are fields of the same name."""
        raise NotImplementedError

    @property
    def decays_gradient(self) -> bool:
        """Whether weight decay is added to the gradient, rather than done by the rule itself."""
        return self.weight_decay > 0 and "weight_decay" not in self.rule.text.options


@dataclass(frozen=True, repr=False)
class SGD(Optimiser):
    """Stochastic gradient descent, ``W ← W - η dW``; with momentum, ``v ← μ v + dW`` and ``W ← W - η v``.

    Parameters
    ----------
    learning_rate : float, default 0.1
        η, the length of a step; a schedule changes it from step to step.
    momentum : float, default 0.0
        μ, what remains of the earlier gradients' sum at each step.
    nesterov : bool, default False
        Whether the step is ``η (dW + μ v)``: Nesterov's momentum.
    weight_decay : float, default 0.0
        λ: λ W is added to each gradient.
    clip_norm : float or None, default None
        The largest norm of all gradients together: above it, they are scaled down by one factor.
    """

    learning_rate: Positive = 0.1
    _: KW_ONLY
    momentum: Fraction = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        if self.nesterov and not self.momentum:
            raise ConfigurationError("SGD: nesterov needs a momentum", fix="give momentum=0.9")

    @property
    def rule(self) -> UpdateRule:  # noqa: D102 - as in Optimiser
        if not self.momentum:
            return rules.sgd
        return rules.sgd_nesterov if self.nesterov else rules.sgd_momentum


@dataclass(frozen=True, repr=False)
class RMSProp(Optimiser):
    """Steps divided by the recent size of each gradient: ``s ← ρ s + (1 - ρ) dW²``, ``W ← W - η dW / (√s + ε)``.

    Parameters
    ----------
    learning_rate : float, default 1e-3
        η, the length of a step; a schedule changes it from step to step.
    decay : float, default 0.99
        ρ, what remains of s at each step.
    epsilon : float, default 1e-8
        ε, outside the root, as in PyTorch.
    weight_decay : float, default 0.0
        λ: λ W is added to each gradient.
    clip_norm : float or None, default None
        The largest norm of all gradients together: above it, they are scaled down by one factor.
    """

    _: KW_ONLY
    decay: Fraction = 0.99
    epsilon: Positive = 1e-8
    rule: ClassVar[UpdateRule] = rules.rmsprop


@dataclass(frozen=True, repr=False)
class Adam(Optimiser):
    """Steps along the mean m of the gradients over the root of the mean v of their squares, both bias-corrected.

    ``m ← β₁ m + (1 - β₁) dW``, ``v ← β₂ v + (1 - β₂) dW²``, ``W ← W - η m̂ / (√v̂ + ε)``.

    Parameters
    ----------
    learning_rate : float, default 1e-3
        η, the length of a step; a schedule changes it from step to step.
    beta1 : float, default 0.9
        β₁, what remains of m at each step.
    beta2 : float, default 0.999
        β₂, what remains of v at each step.
    epsilon : float, default 1e-8
        ε, outside the root.
    weight_decay : float, default 0.0
        λ: λ W is added to each gradient; `AdamW` shrinks the weights themselves.
    clip_norm : float or None, default None
        The largest norm of all gradients together: above it, they are scaled down by one factor.
    """

    _: KW_ONLY
    beta1: Fraction = 0.9
    beta2: Fraction = 0.999
    epsilon: Positive = 1e-8
    rule: ClassVar[UpdateRule] = rules.adam


@dataclass(frozen=True, repr=False)
class AdamW(Adam):
    """`Adam` with decoupled weight decay: ``W ← (1 - η λ) W``, then the step, whose moments know nothing of it.

    Parameters
    ----------
    learning_rate : float, default 1e-3
        η, the length of a step; a schedule changes it from step to step.
    beta1 : float, default 0.9
        β₁, what remains of the mean of the gradients at each step.
    beta2 : float, default 0.999
        β₂, what remains of the mean of their squares at each step.
    epsilon : float, default 1e-8
        ε, outside the root.
    weight_decay : float, default 0.01
        λ, how fast weights shrink.
    clip_norm : float or None, default None
        The largest norm of all gradients together: above it, they are scaled down by one factor.
    """

    _: KW_ONLY
    weight_decay: NonNegative = 0.01
    rule: ClassVar[UpdateRule] = rules.adamw
