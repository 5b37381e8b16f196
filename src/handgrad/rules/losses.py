"""Losses of each row, and the reductions that make one number of them.

A row's loss says how wrong that row is. The reduction under it is where 1/N lives, and nowhere else: it hands
each row its share dl of the gradient, and the row's rule multiplies by it.
"""

import numpy as np

from handgrad.rules.activations import sigmoid_of
from handgrad.rules.rule import rule
from handgrad.rules.signature import Probabilities, State, Target, Weight

__all__ = [
    "binary_cross_entropy", "class_weighted_cross_entropy", "half_square", "half_squared_error", "huber",
    "mean", "mean_squared_error", "penalised_mean", "penalised_weighted_mean", "poisson_deviance",
    "softmax_cross_entropy", "sum_of_outputs", "sum_of_rows", "weighted_binary_cross_entropy",
    "weighted_mean", "weighted_sum_of_rows",
]  # fmt: skip


@rule("N... O, N... O -> N...")
def half_squared_error(y, t: Target):
    """Halve the sum of squared errors of each row: ``l = ½ Σ_o (y - t)²``.

    Gradient
        dy = (y - t) dl
    Differs
        the ½ is there to make the gradient the plain error; `mean_squared_error` has no ½ and divides by O.
    Source
        Rumelhart, Hinton, Williams, Learning Representations by Back-Propagating Errors (1986).
    """
    error = y - t
    l = 0.5 * (error * error).sum(axis=-1)
    return l


@half_squared_error.backward
def half_squared_error_backward(dl, error):
    dy = error * dl[..., None]  # prediction minus target, not the other way round
    return dy


@rule("N... O, N... O -> N...")
def mean_squared_error(y, t: Target):
    """Average the squared errors of each row: ``l = Σ_o (y - t)² / O``.

    Gradient
        dy = 2 (y - t) dl / O
    Differs
        as PyTorch's: divided by the number of outputs too, with no ½.
    Source
        Bishop, Pattern Recognition and Machine Learning (2006), section 1.1.
    """
    error = y - t
    l = (error * error).mean(axis=-1)
    return l


@mean_squared_error.backward
def mean_squared_error_backward(dl, error):
    dy = 2 * error * dl[..., None] / error.shape[-1]  # the 2 of the square, the O of the row's mean
    return dy


@rule("N... O, N... O -> N...")
def huber(y, t: Target, *, delta=1.0):
    """Square small errors and grow linearly with large ones, averaged over each row.

    Formula
        per value ½ e² where |e| ≤ delta, else delta (|e| - ½ delta), with e = y - t
    Gradient
        dy = clip(e, -delta, delta) dl / O
    Kinks
        none: at |e| = delta both slopes are delta.
    Differs
        PyTorch's SmoothL1 is this divided by delta.
    Source
        Huber, Robust Estimation of a Location Parameter (1964).
    """
    error = y - t
    clipped = np.clip(error, -delta, delta)
    l = (clipped * (error - 0.5 * clipped)).mean(axis=-1)
    return l


@huber.backward
def huber_backward(dl, error, clipped):
    dy = clipped * dl[..., None] / error.shape[-1]  # beyond delta an error pulls no harder
    return dy


@rule("N... O, N... O -> N...")
def poisson_deviance(z, t: Target):
    """Measure counts t against the logarithms z of what is expected: half the Poisson deviance, averaged over the row.

    Formula
        per value eᶻ - t z + t log t - t: nothing at z = log t, and more on both sides
    Gradient
        dz = (eᶻ - t) dl / O: expectation minus count, since the link is the logarithm.
    Stable
        t log t is 0 at t = 0, and no logarithm of 0 is taken.
    Differs
        PyTorch's PoissonNLLLoss leaves t log t - t out, which moves no gradient.
    Source
        McCullagh and Nelder, Generalized Linear Models (1989), section 2.3.
    """
    expected = np.exp(z)
    perfect = t - t * np.log(np.where(t > 0, t, 1))
    l = (expected - t * z - perfect).mean(axis=-1)
    return l


@poisson_deviance.backward
def poisson_deviance_backward(dl, t, expected):
    dz = (expected - t) * dl[..., None] / t.shape[-1]  # expectation minus count: the link is the logarithm
    return dz


@rule("N... O, N... O -> N...")
def binary_cross_entropy(z, t: Target):
    """Measure each row's independent yes-no answers, given as logits, averaged over the row.

    Formula
        per value -t log σ(z) - (1 - t) log(1 - σ(z)) = max(z, 0) - z t + log(1 + e^-|z|)
    Gradient
        dz = (σ(z) - t) dl / O: sigmoid and cross-entropy together leave the error.
    Stable
        only e^-|z| is taken, and no logarithm of 0.
    Source
        Bishop, Pattern Recognition and Machine Learning (2006), section 4.3.2.
    """
    e = np.exp(-np.abs(z))
    l = (np.maximum(z, 0) - z * t + np.log1p(e)).mean(axis=-1)
    return l


@binary_cross_entropy.backward
def binary_cross_entropy_backward(dl, z, t, e):
    p = sigmoid_of(z, e)
    dz = (p - t) * dl[..., None] / z.shape[-1]  # sigmoid and cross-entropy together leave the error
    return dz


@rule("N... O, N... O, O -> N...")
def weighted_binary_cross_entropy(z, t: Target, positive: State):
    """Measure yes-no answers as `binary_cross_entropy`, with each yes counted ``positive`` times.

    Formula
        per value (1 - t) z + (1 + (positive - 1) t) (log(1 + e^-|z|) + max(-z, 0))
    Gradient
        dz = ((1 + (positive - 1) t) σ(z) - positive t) dl / O
    Stable
        as `binary_cross_entropy`.
    Source
        torch.nn.BCEWithLogitsLoss, pos_weight.
    """
    e = np.exp(-np.abs(z))
    counted = 1 + (positive - 1) * t
    l = ((1 - t) * z + counted * (np.log1p(e) + np.maximum(-z, 0))).mean(axis=-1)
    return l


@weighted_binary_cross_entropy.backward
def weighted_binary_cross_entropy_backward(dl, z, t, positive, e, counted):
    p = sigmoid_of(z, e)
    dz = (counted * p - positive * t) * dl[..., None] / z.shape[-1]  # the error, with each yes counted
    return dz


@rule("N... C, N... C -> N...")
def softmax_cross_entropy(z, q: Probabilities):
    """Measure how far softmax(z) is from the target probabilities q, which add up to 1: ``l = -Σ_c q_c log p_c``.

    Gradient
        l = Σ_k q_k (log Σ_j exp z_j - z_k). The q_k add up to 1, so l = log Σ_j exp z_j - Σ_k q_k z_k. In Σ_j exp z_j only
        the term j = c has z_c in it, so the first part has the derivative exp z_c / Σ_j exp z_j = p_c, which is softmax(z).
        In the second only the term k = c has z_c in it, so its derivative is q_c. Together ∂l/∂z_c = p_c - q_c, and
        dz = (p - q) dl.
    Stable
        the row's largest is subtracted first, and log p = s - log Σ eˢ takes no logarithm of 0.
    Differs
        multiplying by a softmax or sigmoid slope once more is the classic mistake: it has cancelled.
    Source
        Bishop, Pattern Recognition and Machine Learning (2006), section 4.3.4.
    """
    s = z - z.max(axis=-1, keepdims=True)
    e = np.exp(s)
    whole = e.sum(axis=-1, keepdims=True)
    l = (q * (np.log(whole) - s)).sum(axis=-1)
    return l


@softmax_cross_entropy.backward
def softmax_cross_entropy_backward(dl, q, e, whole):
    p = e / whole
    dz = (p - q) * dl[..., None]  # softmax and cross-entropy together leave the error
    return dz


@rule("N... C, N... C, C -> N...")
def class_weighted_cross_entropy(z, q: Probabilities, class_weight: State):
    """Measure as `softmax_cross_entropy`, with class c counted ``class_weight[c]`` times.

    Formula
        l = -Σ_c r_c log p_c, with r = class_weight · q
    Gradient
        dz = (p Σ_c r_c - r) dl: r does not add up to 1, so its sum stays.
    Stable
        as `softmax_cross_entropy`.
    Source
        torch.nn.CrossEntropyLoss, weight.
    """
    r = class_weight * q
    s = z - z.max(axis=-1, keepdims=True)
    e = np.exp(s)
    whole = e.sum(axis=-1, keepdims=True)
    l = (r * (np.log(whole) - s)).sum(axis=-1)
    return l


@class_weighted_cross_entropy.backward
def class_weighted_cross_entropy_backward(dl, r, e, whole):
    p = e / whole
    dz = (p * r.sum(axis=-1, keepdims=True) - r) * dl[..., None]  # the error, with r's own total for 1
    return dz


@rule("A... -> A...")
def sum_of_outputs(m, *, outputs=1):
    """Make a row's mean over its outputs their sum: ``l = outputs · m``, so ``dm = outputs · dl``."""
    l = outputs * m
    return l


@sum_of_outputs.backward
def sum_of_outputs_backward(dl, *, outputs):
    dm = outputs * dl  # each of the outputs counts whole
    return dm


@rule("A... ->")
def half_square(W):
    """Halve the sum of the squares of all weights, as L2 regularisation has it: ``penalty = ½ Σ W²``.

    Gradient
        dW = W dpenalty
    Source
        Krogh and Hertz, A Simple Weight Decay Can Improve Generalization (1991).
    """
    penalty = 0.5 * (W * W).sum()
    return penalty


@half_square.backward
def half_square_backward(dpenalty, W):
    dW = dpenalty * W  # the 2 of the square and the ½ cancel
    return dW


@rule("N... ->")
def mean(l):
    """Average over the rows: ``loss = Σ l / count``; each row's share is dl = 1 / count."""
    total = l.sum()
    count = l.size
    loss = total / count
    return loss


@mean.backward
def mean_backward(dloss, l, count):
    dl = np.full_like(l, dloss / count)  # a mean over N: 1/N enters here and nowhere else
    return dl


@rule("N..., N..., N... ->")
def weighted_mean(l, w: Weight, v: Weight):
    """Average over the rows with weights: ``loss = Σ w l / Σ v``; a row's share is dl = w / Σ v.

    v is w itself, or w times the class weight of the row. Where nothing counts the loss is 0, not 0/0.
    """
    total = (w * l).sum()
    count = np.maximum(v.sum(), 1e-30)
    loss = total / count
    return loss


@weighted_mean.backward
def weighted_mean_backward(dloss, w, count):
    dl = dloss * w / count  # each row's share is its weight over the total weight
    return dl


@rule("N..., ->")
def penalised_mean(l, penalty, *, l2=1e-4):
    """Average over the rows with a penalty beside them: ``loss = (Σ l + l2 penalty) / count``.

    Gradient
        dl = 1 / count for each row, dpenalty = l2 / count.
    Differs
        the penalty counts once for each batch, as in scikit-learn: beside many rows it is small.
    """
    total = l.sum() + l2 * penalty
    count = l.size
    loss = total / count
    return loss


@penalised_mean.backward
def penalised_mean_backward(dloss, l, penalty, count, *, l2):
    dl = np.full_like(l, dloss / count)  # every row's share is 1/N
    dpenalty = np.full_like(penalty, l2 * dloss / count)  # the penalty stands beside the rows' sum
    return dl, dpenalty


@rule("N..., N..., N..., ->")
def penalised_weighted_mean(l, w: Weight, v: Weight, penalty, *, l2=1e-4):
    """Average as `weighted_mean`, with a penalty beside the rows: ``loss = (Σ w l + l2 penalty) / Σ v``.

    Where nothing counts, the penalty does not either.
    """
    weight = v.sum()
    count = np.maximum(weight, 1e-30)
    total = (w * l).sum() + l2 * np.where(weight > 0, penalty, 0)
    loss = total / count
    return loss


@penalised_weighted_mean.backward
def penalised_weighted_mean_backward(dloss, w, weight, count, *, l2):
    dl = dloss * w / count  # each row's share is its weight over the total weight
    dpenalty = np.where(weight > 0, l2 * dloss / count, 0)  # the penalty stands beside the rows' sum
    return dl, dpenalty


@rule("N... ->")
def sum_of_rows(l):
    """Add the rows up: ``loss = Σ l``; each row's share is dl = 1."""
    total = l.sum()
    count = l.size
    loss = total
    return loss


@sum_of_rows.backward
def sum_of_rows_backward(dloss, l):
    dl = np.full_like(l, dloss)  # a sum hands its gradient to each part unchanged
    return dl


@rule("N..., N... ->")
def weighted_sum_of_rows(l, w: Weight):
    """Add the rows up with weights: ``loss = Σ w l``; a row's share is dl = w."""
    total = (w * l).sum()
    count = w.sum()
    loss = total
    return loss


@weighted_sum_of_rows.backward
def weighted_sum_of_rows_backward(dloss, w):
    dl = dloss * w  # each row's share is its weight
    return dl
