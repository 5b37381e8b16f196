"""Normalisation over the batch or over each row: means and variances that every value depends on."""

import numpy as np

from handgrad.rules.primitives import join_last, rows, split_last
from handgrad.rules.rule import rule
from handgrad.rules.signature import State

__all__ = [
    "batch_norm",
    "batch_norm_evaluation",
    "group_norm",
    "layer_norm",
    "rms_norm",
    "standardise",
    "unstandardise",
]


@rule("N... F, F, F -> N... F")
def standardise(x, mean: State, deviation: State):
    """Give each feature mean 0 and deviation 1 over the training rows: ``h = (x - mean) / deviation``.

    Gradient
        dx = dh / deviation; the statistics are fixed before training.
    Source
        LeCun, Bottou, Orr, Müller, Efficient BackProp (1998), section 4.3.
    """
    h = (x - mean) / deviation
    return h


@standardise.backward
def standardise_backward(dh, deviation):
    dx = dh / deviation  # the statistics are constants: a diagonal Jacobian
    return dx


@rule("N... F, F, F -> N... F")
def unstandardise(z, t_mean: State, t_deviation: State):
    """Bring outputs back to the unit of the targets they were trained on: ``y = z t_deviation + t_mean``."""
    y = z * t_deviation + t_mean
    return y


@unstandardise.backward
def unstandardise_backward(dy, t_deviation):
    dz = dy * t_deviation  # the statistics are constants: a diagonal Jacobian
    return dz


@rule("N... F, F, F, F, F -> N... F")
def batch_norm_evaluation(x, gamma, beta, running_mean: State, running_var: State, *, epsilon=1e-5):
    """Normalise by the running statistics, which are constants: ``y = gamma x̂ + beta``.

    Formula
        x̂ = (x - running_mean) / √(running_var + epsilon)
    Gradient
        dx = gamma dy / √(running_var + epsilon): in evaluation mode the rows do not meet.
    Source
        Ioffe and Szegedy, arXiv 1502.03167.
    """
    rstd = 1 / np.sqrt(running_var + epsilon)
    xhat = (x - running_mean) * rstd
    y = gamma * xhat + beta
    return y


@batch_norm_evaluation.backward
def batch_norm_evaluation_backward(dy, gamma, rstd, xhat):
    dx = dy * gamma * rstd  # the statistics are constants: a diagonal Jacobian
    dgamma = rows(dy * xhat).sum(axis=0)  # gamma was broadcast over the rows: sum over them
    dbeta = rows(dy).sum(axis=0)  # beta was broadcast over the rows: sum over them
    return dx, dgamma, dbeta


@rule("N... F, F, F, F, F -> N... F", evaluation=batch_norm_evaluation)
def batch_norm(x, gamma, beta, running_mean: State, running_var: State, *, epsilon=1e-5, momentum=0.1):
    """Normalise each feature over the batch: ``y = gamma x̂ + beta``.

    Formula
        x̂ = (x - mean) rstd, with mean and (biased) variance over all rows, rstd = 1 / √(var + epsilon)
    Gradient
        dx = rstd (dx̂ - mean(dx̂) - x̂ mean(dx̂ x̂)), with dx̂ = gamma dy
    Stable
        the variance is the mean of squared differences, never a difference of squares.
    Differs
        as PyTorch's: the batch's variance is biased (divided by N), the running one is not (N - 1).
    Source
        Ioffe and Szegedy, arXiv 1502.03167.
    """
    mean = rows(x).mean(axis=0)
    centred = x - mean
    var = rows(centred * centred).mean(axis=0)
    rstd = 1 / np.sqrt(var + epsilon)
    xhat = centred * rstd
    y = gamma * xhat + beta
    return y


@batch_norm.backward
def batch_norm_backward(dy, gamma, rstd, xhat):
    dgamma = rows(dy * xhat).sum(axis=0)  # gamma was broadcast over the rows: sum over them
    dbeta = rows(dy).sum(axis=0)  # beta was broadcast over the rows: sum over them
    dxhat = dy * gamma
    through_mean = rows(dxhat).mean(axis=0)  # every row moves the mean: what they share is taken out
    through_var = rows(dxhat * xhat).mean(axis=0)  # every row moves the variance: so is what lies along xhat
    dx = rstd * (dxhat - through_mean - xhat * through_var)  # direct, by the mean, by the variance
    return dx, dgamma, dbeta


@batch_norm.updates
def batch_norm_updates(x, mean, var, running_mean, running_var, *, momentum):
    n_rows = rows(x).shape[0]
    running_mean += momentum * (mean - running_mean)
    running_var += momentum * (var * (n_rows / np.maximum(n_rows - 1, 1)) - running_var)  # unbiased
    return running_mean, running_var


@rule("N... F, F, F -> N... F")
def layer_norm(x, gamma, beta, *, epsilon=1e-5):
    """Normalise each row over its features: ``y = gamma x̂ + beta``.

    Formula
        x̂ = (x - mean) rstd, with mean and variance over the row, rstd = 1 / √(var + epsilon)
    Gradient
        dx = rstd (dx̂ - mean(dx̂) - x̂ mean(dx̂ x̂)), with dx̂ = gamma dy inside the means
    Stable
        the variance is the mean of squared differences.
    Source
        Ba, Kiros, Hinton, arXiv 1607.06450.
    """
    mean = x.mean(axis=-1, keepdims=True)
    centred = x - mean
    var = (centred * centred).mean(axis=-1, keepdims=True)
    rstd = 1 / np.sqrt(var + epsilon)
    xhat = centred * rstd
    y = gamma * xhat + beta
    return y


@layer_norm.backward
def layer_norm_backward(dy, gamma, rstd, xhat):
    dgamma = rows(dy * xhat).sum(axis=0)  # gamma was broadcast over the rows: sum over them
    dbeta = rows(dy).sum(axis=0)  # beta was broadcast over the rows: sum over them
    dxhat = dy * gamma  # before the means, as gamma differs by feature
    through_mean = dxhat.mean(axis=-1, keepdims=True)  # every feature moves its row's mean
    through_var = (dxhat * xhat).mean(axis=-1, keepdims=True)  # every feature moves its row's variance
    dx = rstd * (dxhat - through_mean - xhat * through_var)  # direct, by the mean, by the variance
    return dx, dgamma, dbeta


@rule("N... F, F -> N... F")
def rms_norm(x, gamma, *, epsilon=1e-5):
    """Divide each row by the root of its mean square: ``y = gamma x̂``; a layer norm that takes no mean out.

    Formula
        x̂ = x rrms, rrms = 1 / √(mean(x²) + epsilon), the mean over the row
    Gradient
        dx = rrms (dx̂ - x̂ mean(dx̂ x̂)), with dx̂ = gamma dy inside the mean
    Source
        Zhang and Sennrich, arXiv 1910.07467.
    """
    rrms = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + epsilon)
    xhat = x * rrms
    y = gamma * xhat
    return y


@rms_norm.backward
def rms_norm_backward(dy, gamma, rrms, xhat):
    dgamma = rows(dy * xhat).sum(axis=0)  # gamma was broadcast over the rows: sum over them
    dxhat = dy * gamma  # gamma belongs inside the mean below
    through_rms = (dxhat * xhat).mean(axis=-1, keepdims=True)  # every feature moves its row's size
    dx = rrms * (dxhat - xhat * through_rms)  # direct, by the size
    return dx, dgamma


@rule("N... H V C, C, C -> N... H V C")
def group_norm(x, gamma, beta, *, groups=1, epsilon=1e-5):
    """Normalise each image over its places and over groups of channels: ``y = gamma x̂ + beta``.

    Formula
        x̂ = (x - mean) rstd, with mean and variance over H, V and the C / groups channels of a group
    Gradient
        as `layer_norm`'s, with the means over a group.
    Stable
        the variance is the mean of squared differences.
    Differs
        PyTorch has channels first.
    Source
        Wu and He, arXiv 1803.08494.
    """
    u = split_last(x, groups)
    centred = u - u.mean(axis=(-4, -3, -1), keepdims=True)
    var = (centred * centred).mean(axis=(-4, -3, -1), keepdims=True)
    rstd = 1 / np.sqrt(var + epsilon)
    uhat = centred * rstd
    xhat = join_last(uhat)
    y = gamma * xhat + beta
    return y


@group_norm.backward
def group_norm_backward(dy, gamma, rstd, uhat, xhat, *, groups):
    dgamma = rows(dy * xhat).sum(axis=0)  # gamma was broadcast over rows and places: sum over them
    dbeta = rows(dy).sum(axis=0)  # beta was broadcast over rows and places: sum over them
    duhat = split_last(dy * gamma, groups)  # before the means, as gamma differs by feature
    through_mean = duhat.mean(axis=(-4, -3, -1), keepdims=True)  # every entry moves its group's mean
    through_var = (duhat * uhat).mean(axis=(-4, -3, -1), keepdims=True)  # and its group's variance
    dx = join_last(rstd * (duhat - through_mean - uhat * through_var))  # direct, by the mean, by the variance
    return dx, dgamma, dbeta
