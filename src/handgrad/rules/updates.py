"""Optimisers as the update lines they are, and what may happen to a gradient before.

``learning_rate`` and ``step`` (1, 2, …) are given by the training loop; slots start at zero.
"""

import numpy as np

from handgrad.rules.rule import rule, update
from handgrad.rules.signature import State

__all__ = [
    "adam",
    "adamw",
    "clip_scale",
    "clipped_gradient",
    "decayed_gradient",
    "rmsprop",
    "sgd",
    "sgd_momentum",
    "sgd_nesterov",
    "squared_norm",
]


@update
def sgd(W, dW, learning_rate):
    """Step against the gradient: ``W -= learning_rate · dW``.

    Source
        Robbins and Monro, A Stochastic Approximation Method (1951).
    """
    W -= learning_rate * dW
    return W


@update
def sgd_momentum(W, dW, v: State, learning_rate, *, momentum=0.9):
    """Step along a decaying sum of the gradients.

    Formula
        v ← momentum v + dW,  W ← W - learning_rate v
    Differs
        as PyTorch's; other texts put the learning rate inside v.
    Source
        Polyak, Some Methods of Speeding up the Convergence of Iteration Methods (1964).
    """
    v *= momentum  # the past fades
    v += dW
    W -= learning_rate * v
    return W, v


@update
def sgd_nesterov(W, dW, v: State, learning_rate, *, momentum=0.9):
    """Step as `sgd_momentum`, looking one step ahead.

    Formula
        v ← momentum v + dW,  W ← W - learning_rate (dW + momentum v)
    Source
        Sutskever, Martens, Dahl, Hinton, On the Importance of Initialization and Momentum (2013).
    """
    v *= momentum
    v += dW
    W -= learning_rate * (dW + momentum * v)
    return W, v


@update
def rmsprop(W, dW, s: State, learning_rate, *, decay=0.99, epsilon=1e-8):
    """Divide each step by the recent size of its gradient.

    Formula
        s ← decay s + (1 - decay) dW²,  W ← W - learning_rate dW / (√s + epsilon)
    Differs
        epsilon stands outside the root, as in PyTorch; TensorFlow puts it inside.
    Source
        Hinton, Neural Networks for Machine Learning, lecture 6e (2012).
    """
    s += (1 - decay) * (dW * dW - s)
    W -= learning_rate * dW / (np.sqrt(s) + epsilon)
    return W, s


@update
def adam(W, dW, m: State, v: State, learning_rate, step, *, beta1=0.9, beta2=0.999, epsilon=1e-8):
    """Step along the mean of the gradient over the root of the mean of its square.

    Formula
        m ← beta1 m + (1 - beta1) dW,  v ← beta2 v + (1 - beta2) dW²,
        W ← W - learning_rate m̂ / (√v̂ + epsilon), with m̂ = m / (1 - beta1^step), v̂ = v / (1 - beta2^step)
    Differs
        epsilon is added after the bias correction, as in the paper's algorithm 1 and PyTorch.
    Source
        Kingma and Ba, arXiv 1412.6980.
    """
    m += (1 - beta1) * (dW - m)
    v += (1 - beta2) * (dW * dW - v)
    mhat = m / (1 - beta1**step)  # m starts at 0: corrected for bias
    vhat = v / (1 - beta2**step)
    W -= learning_rate * mhat / (np.sqrt(vhat) + epsilon)
    return W, m, v


@update
def adamw(
    W, dW, m: State, v: State, learning_rate, step, *, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.01
):
    """Step as `adam`, and let the weights themselves decay, untouched by the moments.

    Formula
        W ← (1 - learning_rate weight_decay) W, then as Adam
    Source
        Loshchilov and Hutter, arXiv 1711.05101.
    """
    m += (1 - beta1) * (dW - m)
    v += (1 - beta2) * (dW * dW - v)
    mhat = m / (1 - beta1**step)
    vhat = v / (1 - beta2**step)
    W *= 1 - learning_rate * weight_decay
    W -= learning_rate * mhat / (np.sqrt(vhat) + epsilon)
    return W, m, v


@rule("A... ->", constant=True)
def squared_norm(g):
    """Add up the squares of a gradient, for the norm over all of them."""
    squares = (g * g).sum()
    return squares


@rule("->", constant=True)
def clip_scale(squares, *, max_norm=1.0):
    """Return the factor that brings the norm of all gradients down to ``max_norm``, or 1.

    Source
        Pascanu, Mikolov, Bengio, arXiv 1211.5063; the 1e-6 as in PyTorch's clip_grad_norm_.
    """
    scale = np.minimum(1, max_norm / (np.sqrt(squares) + 1e-6))
    return scale


@rule("A..., -> A...", constant=True)
def clipped_gradient(g, scale):
    """Scale a gradient by the common factor: its direction stays."""
    clipped = g * scale
    return clipped


@rule("A..., A... -> A...", constant=True)
def decayed_gradient(g, W, *, weight_decay=0.0):
    """Add the gradient of ½ weight_decay ‖W‖²: ``g + weight_decay W``."""
    decayed = g + weight_decay * W
    return decayed
