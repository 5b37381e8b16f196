"""Activations: elementwise functions, whose Jacobian is diagonal, and softmax, whose Jacobian is not.

The elementwise ones share one reason: z_k reaches only a_k, so the Jacobian is diagonal and its product with
the upstream gradient is an elementwise product. Where a is built from exponentials, they are of -|z|, so that
nothing overflows, and the slope is written so that nothing cancels.
"""

import numpy as np

from handgrad.rules.primitives import normal_cdf
from handgrad.rules.rule import rule
from handgrad.rules.rule_source import formula

__all__ = [
    "elu",
    "exponential",
    "gelu",
    "gelu_tanh",
    "leaky_relu",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "swiglu",
    "tanh",
]


@formula
def sigmoid_of(z, e):
    """Return σ(z) = 1 / (1 + e⁻ᶻ), of e = e^-|z|: nothing overflows."""
    return np.where(z >= 0, 1, e) / (1 + e)


@formula
def times_sigmoid_slope(v, e):
    """Return v σ'(z) = v σ(z) (1 - σ(z)), of e = e^-|z|: written not to cancel where σ rounds to 1."""
    return v * e / (1 + e) ** 2


@rule("... -> ...")
def relu(z):
    """Keep what is positive: ``a = max(z, 0)``.

    Gradient
        dz = da where z > 0, else 0.
    Kinks
        z = 0, where the slope is taken as 0 (as PyTorch's relu; its maximum takes 1/2 there).
    Source
        Nair and Hinton, Rectified Linear Units Improve Restricted Boltzmann Machines (2010).
    """
    a = np.maximum(z, 0)
    return a


@relu.backward
def relu_backward(da, z):
    dz = da * (z > 0)  # a diagonal Jacobian: only active units pass their gradient
    return dz


@rule("... -> ...")
def leaky_relu(z, *, slope=0.01):
    """Let a little of what is negative through: ``a = z`` where z > 0, else ``slope z``.

    Gradient
        dz = da where z > 0, else slope · da.
    Kinks
        z = 0, where the slope is taken as ``slope`` (as PyTorch's).
    Source
        Maas, Hannun, Ng, Rectifier Nonlinearities Improve Neural Network Acoustic Models (2013).
    """
    a = np.where(z > 0, z, slope * z)
    return a


@leaky_relu.backward
def leaky_relu_backward(da, z, *, slope):
    dz = np.where(z > 0, da, slope * da)  # a diagonal Jacobian: 1 for active units, else the slope
    return dz


@rule("... -> ...")
def elu(z, *, alpha=1.0):
    """Bend smoothly below zero: ``a = z`` where z > 0, else ``alpha (eᶻ - 1)``.

    Gradient
        dz = da where z > 0, else alpha eᶻ · da.
    Stable
        eᶻ is only taken of what is not positive, and eᶻ - 1 by expm1.
    Kinks
        z = 0 when alpha is not 1, where the slope is taken from the left, as PyTorch's.
    Source
        Clevert, Unterthiner, Hochreiter, arXiv 1511.07289.
    """
    below = np.minimum(z, 0)
    a = np.where(z > 0, z, alpha * np.expm1(below))
    return a


@elu.backward
def elu_backward(da, z, below, *, alpha):
    dz = np.where(z > 0, da, alpha * np.exp(below) * da)  # a diagonal Jacobian: 1, or the slope of alpha eᶻ
    return dz


@rule("... -> ...")
def sigmoid(z):
    """Squash to (0, 1): ``a = 1 / (1 + e⁻ᶻ)``.

    Gradient
        dz = da · a (1 - a)
    Stable
        only e^-|z| is taken, and a (1 - a) = e / (1 + e)² does not cancel where a rounds to 1.
    Source
        Goodfellow, Bengio, Courville, Deep Learning (2016), section 3.10.
    """
    e = np.exp(-np.abs(z))
    a = sigmoid_of(z, e)
    return a


@sigmoid.backward
def sigmoid_backward(da, e):
    dz = times_sigmoid_slope(da, e)  # a diagonal Jacobian: a (1 - a), written not to cancel
    return dz


@rule("... -> ...")
def tanh(z):
    """Squash to (-1, 1): ``a = tanh z``.

    Gradient
        dz = da · (1 - a²)
    Stable
        1 - a² = 4e / (1 + e)² with e = e^-2|z| does not cancel where a rounds to 1.
    Source
        LeCun, Bottou, Orr, Müller, Efficient BackProp (1998).
    """
    a = np.tanh(z)
    return a


@tanh.backward
def tanh_backward(da, z):
    e = np.exp(-2 * np.abs(z))
    dz = times_sigmoid_slope(da * 4, e)  # a diagonal Jacobian: 1 - a², written not to cancel
    return dz


@rule("... -> ...")
def gelu(z):
    """Weigh each value by the chance that a standard normal is below it: ``a = z Φ(z)``.

    Gradient
        dz = da · (Φ(z) + z φ(z)), φ the normal density.
    Stable
        Φ is accurate in both tails.
    Differs
        this is the exact form, PyTorch's default; `gelu_tanh` is GPT-2's, up to 4.7e-4 away.
    Source
        Hendrycks and Gimpel, arXiv 1606.08415.
    """
    share = normal_cdf(z)
    a = z * share
    return a


@gelu.backward
def gelu_backward(da, z, share):
    density = 0.3989422804014327 * np.exp(-z * z / 2)  # 1 / √(2π) in front
    dz = da * (share + z * density)  # a diagonal Jacobian: the product rule on z Φ(z)
    return dz


@rule("... -> ...")
def gelu_tanh(z):
    """Weigh each value as `gelu`, with Φ approximated: ``a = z (1 + tanh u) / 2``.

    Formula
        u = √(2/π) (z + 0.044715 z³); (1 + tanh u) / 2 is the sigmoid of 2u, which does not cancel.
    Gradient
        dz = da · (s + z s' u'), with s the sigmoid of 2u.
    Stable
        only e^-2|u| is taken.
    Source
        Hendrycks and Gimpel, arXiv 1606.08415; the form of GPT-2.
    """
    u = 0.7978845608028654 * (z + 0.044715 * z * z * z)
    e = np.exp(-2 * np.abs(u))
    s = sigmoid_of(u, e)
    a = z * s
    return a


@gelu_tanh.backward
def gelu_tanh_backward(da, z, e, s):
    du = 0.7978845608028654 * (1 + 0.134145 * z * z)  # the slope of u: 3 · 0.044715 = 0.134145
    ds = times_sigmoid_slope(2, e) * du  # the slope of the sigmoid of 2u, through u
    dz = da * (s + z * ds)  # a diagonal Jacobian: the product rule on z s
    return dz


@rule("... -> ...")
def silu(z):
    """Weigh each value by its own sigmoid: ``a = z σ(z)``.

    Gradient
        dz = da · (s + z s (1 - s)), s = σ(z).
    Stable
        only e^-|z| is taken.
    Source
        Elfwing, Uchibe, Doya, arXiv 1702.03118; also called swish.
    """
    e = np.exp(-np.abs(z))
    s = sigmoid_of(z, e)
    a = z * s
    return a


@silu.backward
def silu_backward(da, z, e, s):
    dz = da * (s + times_sigmoid_slope(z, e))  # a diagonal Jacobian: the product rule on z σ(z)
    return dz


@rule("..., ... -> ...")
def swiglu(z, v):
    """Let one linear map through by the `silu` of another: ``a = z σ(z) v``.

    Gradient
        dz = da · v (s + z s (1 - s)), s = σ(z);  dv = da · z s
    Stable
        only e^-|z| is taken.
    Source
        Shazeer, GLU Variants Improve Transformer, arXiv 2002.05202.
    """
    e = np.exp(-np.abs(z))
    s = sigmoid_of(z, e)
    a = z * s * v
    return a


@swiglu.backward
def swiglu_backward(da, z, v, e, s):
    dz = da * v * (s + times_sigmoid_slope(z, e))  # the product rule on z σ(z), times the other factor
    dv = da * z * s
    return dz, dv


@rule("... -> ...")
def softplus(z):
    """Smooth the rectifier: ``a = log(1 + eᶻ)``.

    Gradient
        dz = da · σ(z)
    Stable
        log(1 + eᶻ) = max(z, 0) + log(1 + e^-|z|), by log1p.
    Differs
        PyTorch returns z itself above 20; the difference is below 2.1e-9.
    Source
        Dugas, Bengio, Bélisle, Nadeau, Garcia, Incorporating Second-Order Functional Knowledge (2001).
    """
    e = np.exp(-np.abs(z))
    a = np.maximum(z, 0) + np.log1p(e)
    return a


@softplus.backward
def softplus_backward(da, z, e):
    dz = da * np.where(z >= 0, 1, e) / (1 + e)  # a diagonal Jacobian: the slope of softplus is the sigmoid
    return dz


@rule("... -> ...")
def exponential(z):
    """Undo a logarithm: ``a = eᶻ``, so ``da/dz`` is a itself."""
    a = np.exp(z)
    return a


@exponential.backward
def exponential_backward(da, a):
    dz = da * a  # a diagonal Jacobian: eᶻ is its own slope
    return dz


@rule("N... C -> N... C")
def softmax(z):
    """Turn each row into probabilities: ``y_c = e^z_c / Σ_k e^z_k``.

    Gradient
        dz = y (dy - Σ_k dy_k y_k): the Jacobian diag(y) - y yᵀ is full, each output depends on every input.
    Stable
        the row's largest is subtracted first: it cancels in the ratio, and no exponential overflows.
    Differs
        y (1 - y) dy is its diagonal only, the classic mistake.
    Source
        Bridle, Probabilistic Interpretation of Feedforward Classification Network Outputs (1990).
    """
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    y = e / e.sum(axis=-1, keepdims=True)
    return y


@softmax.backward
def softmax_backward(dy, y):
    dz = y * (
        dy - (dy * y).sum(axis=-1, keepdims=True)
    )  # probabilities add up to 1, so rows of dz add up to 0
    return dz
