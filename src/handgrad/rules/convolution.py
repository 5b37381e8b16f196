"""Convolution and pooling of arrays with channels last: every window mapped, averaged, or its largest entry taken.

H and V are the sizes of an image, K and L those of a window, P and Q count the windows. A window is a row: the lines of
`linear` serve every one.
"""

import numpy as np

from handgrad.rules.primitives import (
    add_windows,
    block_diagonal,
    diagonal_blocks,
    first_largest,
    join_last,
    rows,
    split_last,
    windows,
)
from handgrad.rules.rule import rule

__all__ = [
    "average_pool2d",
    "conv1d",
    "conv1d_without_bias",
    "conv2d",
    "conv2d_without_bias",
    "conv_transpose2d",
    "conv_transpose2d_without_bias",
    "global_average_pool2d",
    "max_pool2d",
    "reshape",
]

_P1 = "(T + 2 * padding - dilation * (K - 1) - 1) // stride + 1"
_P = "(H + 2 * padding - dilation * (K - 1) - 1) // stride + 1"
_Q = "(V + 2 * padding - dilation * (L - 1) - 1) // stride + 1"
_J = "I // groups"
_GROUPS = "I % groups == O % groups == 0"
_SHAPE = "prod(A) % prod(shape) == 0 if -1 in shape else prod(A) == prod(shape)"
_H = "(P - 1) * stride - 2 * padding + dilation * (K - 1) + 1"
_V = "(Q - 1) * stride - 2 * padding + dilation * (L - 1) + 1"
_POOLED_P = "(H + 2 * padding - size[0]) // stride + 1"
_POOLED_Q = "(V + 2 * padding - size[1]) // stride + 1"


@rule("N... H V I, K L J O, O -> N... P Q O", where=_GROUPS, P=_P, Q=_Q, J=_J)
def conv2d(x, W, b, *, stride=1, padding=0, dilation=1, groups=1):
    """Map every window affinely: cross-correlation, which deep learning calls convolution.

    Shapes
        x (N..., H, V, I), W (K, L, I / groups, O), b (O,) -> z (N..., P, Q, O): channels last.
    Formula
        z_pqo = b_o + Σ_kli x_(stride p + dilation k - padding)(stride q + dilation l - padding)i W_klio; of several groups,
        each has as many neighbouring channels of x and of z, and W_klio is 0 where i and o are in two of them.
    Gradient
        dW = uᵀ dz and db = Σ dz over all windows u; dx adds dz Wᵀ up where each window was taken.
    Differs
        PyTorch has channels first: x (N, I, H, V), W (O, I / groups, K, L).
    Source
        Dumoulin and Visin, arXiv 1603.07285; groups: Krizhevsky, Sutskever and Hinton, ImageNet Classification (2012), and
        Howard et al., MobileNets, arXiv 1704.04861, for one for each channel.
    """
    u = join_last(windows(x, W.shape[:2], stride, padding, dilation))  # im2col: a row for each window
    z = u @ rows(block_diagonal(W, groups)) + b
    return z


@conv2d.backward
def conv2d_backward(dz, x, W, u, *, stride, padding, dilation, groups):
    du = split_last(
        dz @ rows(block_diagonal(W, groups)).T, W.shape[0] * W.shape[1]
    )  # a window reaches every channel of z
    dx = add_windows(du, x.shape[-3:-1], W.shape[:2], stride, padding, dilation)  # summed over windows
    dW = diagonal_blocks(rows(u).T @ rows(dz), groups, W.shape[-2]).reshape(
        W.shape
    )  # the same W serves every window: the windows add up
    db = rows(dz).sum(axis=0)  # b was added to every window: the windows add up
    return dx, dW, db


@rule("N... H V I, K L J O -> N... P Q O", where=_GROUPS, P=_P, Q=_Q, J=_J)
def conv2d_without_bias(x, W, *, stride=1, padding=0, dilation=1, groups=1):
    """Map every window without a bias; otherwise as `conv2d`."""
    u = join_last(windows(x, W.shape[:2], stride, padding, dilation))  # im2col: a row for each window
    z = u @ rows(block_diagonal(W, groups))
    return z


@conv2d_without_bias.backward
def conv2d_without_bias_backward(dz, x, W, u, *, stride, padding, dilation, groups):
    du = split_last(
        dz @ rows(block_diagonal(W, groups)).T, W.shape[0] * W.shape[1]
    )  # a window reaches every channel of z
    dx = add_windows(du, x.shape[-3:-1], W.shape[:2], stride, padding, dilation)  # summed over windows
    dW = diagonal_blocks(rows(u).T @ rows(dz), groups, W.shape[-2]).reshape(
        W.shape
    )  # the same W serves every window: the windows add up
    return dx, dW


@rule("N... T I, K J O, O -> N... P O", where=_GROUPS, P=_P1, J=_J)
def conv1d(x, W, b, *, stride=1, padding=0, dilation=1, groups=1):
    """Map every window of a sequence affinely; otherwise as `conv2d`.

    Shapes
        x (N..., T, I), W (K, I / groups, O), b (O,) -> z (N..., P, O)
    Source
        Dumoulin and Visin, arXiv 1603.07285.
    """
    u = join_last(windows(x, W.shape[:1], stride, padding, dilation))  # im2col: a row for each window
    z = u @ rows(block_diagonal(W, groups)) + b
    return z


@conv1d.backward
def conv1d_backward(dz, x, W, u, *, stride, padding, dilation, groups):
    du = split_last(dz @ rows(block_diagonal(W, groups)).T, W.shape[0])  # a window reaches every channel of z
    dx = add_windows(du, x.shape[-2:-1], W.shape[:1], stride, padding, dilation)  # summed over windows
    dW = diagonal_blocks(rows(u).T @ rows(dz), groups, W.shape[-2]).reshape(
        W.shape
    )  # the same W serves every window: the windows add up
    db = rows(dz).sum(axis=0)  # b was added to every window: the windows add up
    return dx, dW, db


@rule("N... T I, K J O -> N... P O", where=_GROUPS, P=_P1, J=_J)
def conv1d_without_bias(x, W, *, stride=1, padding=0, dilation=1, groups=1):
    """Map every window of a sequence without a bias; otherwise as `conv1d`."""
    u = join_last(windows(x, W.shape[:1], stride, padding, dilation))  # im2col: a row for each window
    z = u @ rows(block_diagonal(W, groups))
    return z


@conv1d_without_bias.backward
def conv1d_without_bias_backward(dz, x, W, u, *, stride, padding, dilation, groups):
    du = split_last(dz @ rows(block_diagonal(W, groups)).T, W.shape[0])  # a window reaches every channel of z
    dx = add_windows(du, x.shape[-2:-1], W.shape[:1], stride, padding, dilation)  # summed over windows
    dW = diagonal_blocks(rows(u).T @ rows(dz), groups, W.shape[-2]).reshape(
        W.shape
    )  # the same W serves every window: the windows add up
    return dx, dW


@rule("N... P Q O, K L J O, I -> N... H V I", where=_GROUPS, J=_J, H=_H, V=_V)
def conv_transpose2d(x, W, b, *, stride=1, padding=0, dilation=1, groups=1):
    """Add a window up for every entry: the backward of `conv2d` in x, run forward.

    Shapes
        x (N..., P, Q, O), W (K, L, I / groups, O), b (I,) -> z (N..., H, V, I), with H = (P - 1) stride - 2 padding +
        dilation (K - 1) + 1
    Gradient
        dx is `conv2d` of dz with the same W; dW = (windows of dz)ᵀ x.
    Differs
        PyTorch has channels first and W (O, I / groups, K, L).
    Source
        Dumoulin and Visin, arXiv 1603.07285, chapter 4.
    """
    v = split_last(
        x @ rows(block_diagonal(W, groups)).T, W.shape[0] * W.shape[1]
    )  # the window that each entry gives
    h = (x.shape[-3] - 1) * stride - 2 * padding + dilation * (W.shape[0] - 1) + 1
    w = (x.shape[-2] - 1) * stride - 2 * padding + dilation * (W.shape[1] - 1) + 1
    z = add_windows(v, (h, w), W.shape[:2], stride, padding, dilation) + b
    return z


@conv_transpose2d.backward
def conv_transpose2d_backward(dz, x, W, *, stride, padding, dilation, groups):
    du = join_last(windows(dz, W.shape[:2], stride, padding, dilation))  # what each entry's window reached
    dx = du @ rows(block_diagonal(W, groups))
    dW = diagonal_blocks(rows(du).T @ rows(x), groups, W.shape[-2]).reshape(
        W.shape
    )  # the same W serves every entry: the entries add up
    db = rows(dz).sum(axis=0)  # b was added everywhere
    return dx, dW, db


@rule("N... P Q O, K L J O -> N... H V I", where="O % groups == 0", I="J * groups", H=_H, V=_V)
def conv_transpose2d_without_bias(x, W, *, stride=1, padding=0, dilation=1, groups=1):
    """Add a window up for every entry, without a bias; otherwise as `conv_transpose2d`."""
    v = split_last(
        x @ rows(block_diagonal(W, groups)).T, W.shape[0] * W.shape[1]
    )  # the window that each entry gives
    h = (x.shape[-3] - 1) * stride - 2 * padding + dilation * (W.shape[0] - 1) + 1
    w = (x.shape[-2] - 1) * stride - 2 * padding + dilation * (W.shape[1] - 1) + 1
    z = add_windows(v, (h, w), W.shape[:2], stride, padding, dilation)
    return z


@conv_transpose2d_without_bias.backward
def conv_transpose2d_without_bias_backward(dz, x, W, *, stride, padding, dilation, groups):
    du = join_last(windows(dz, W.shape[:2], stride, padding, dilation))  # what each entry's window reached
    dx = du @ rows(block_diagonal(W, groups))
    dW = diagonal_blocks(rows(du).T @ rows(x), groups, W.shape[-2]).reshape(
        W.shape
    )  # the same W serves every entry: the entries add up
    return dx, dW


@rule("N... H V C -> N... P Q C", P=_POOLED_P, Q=_POOLED_Q)
def max_pool2d(x, *, size=(2, 2), stride=2, padding=0):
    """Take the largest entry of each window, channel by channel.

    Formula
        y_pqc = max over the places (k, l) of x_(stride p + k - padding)(stride q + l - padding)c
    Gradient
        each window's gradient goes to the entry that was taken; an entry taken by several windows gets them all.
    Differs
        of equal entries the first, row by row, takes the whole gradient, as in PyTorch; padding is never taken.
    Source
        Goodfellow, Bengio, Courville, Deep Learning (2016), section 9.3.
    """
    u = windows(x, size, stride, padding, 1, -np.inf)
    y = u.max(axis=-2)
    return y


@max_pool2d.backward
def max_pool2d_backward(dy, x, u, *, size, stride, padding):
    du = np.where(first_largest(u), np.expand_dims(dy, -2), 0)  # only the largest entry was passed on
    dx = add_windows(du, x.shape[-3:-1], size, stride, padding)  # summed over windows
    return dx


@rule("N... H V C -> N... P Q C", P=_POOLED_P, Q=_POOLED_Q)
def average_pool2d(x, *, size=(2, 2), stride=2, padding=0):
    """Average each window, channel by channel.

    Formula
        y_pqc = (Σ_kl x_(stride p + k - padding)(stride q + l - padding)c) / (size[0] size[1]): padding counts, as in PyTorch.
    Gradient
        every entry of a window gets an equal share of its gradient.
    Source
        Goodfellow, Bengio, Courville, Deep Learning (2016), section 9.3.
    """
    y = windows(x, size, stride, padding).mean(axis=-2)
    return y


@average_pool2d.backward
def average_pool2d_backward(dy, x, *, size, stride, padding):
    share = np.expand_dims(dy / (size[0] * size[1]), -2)  # an equal share for every entry of a window
    du = share * np.ones((size[0] * size[1], 1), dy.dtype)
    dx = add_windows(du, x.shape[-3:-1], size, stride, padding)  # summed over windows
    return dx


@rule("N... H V C -> N... C")
def global_average_pool2d(x):
    """Average each channel over the whole image: ``y = mean of x over H and V``.

    Gradient
        every entry gets an equal share of its channel's gradient.
    Source
        Lin, Chen, Yan, Network in Network, arXiv 1312.4400.
    """
    y = x.mean(axis=(-3, -2))
    return y


@global_average_pool2d.backward
def global_average_pool2d_backward(dy, x):
    share = dy / (x.shape[-3] * x.shape[-2])  # an equal share for every entry
    dx = np.zeros_like(x) + np.expand_dims(share, (-3, -2))
    return dx


@rule(
    "N A... -> N B...", where=_SHAPE, B="[-prod(A) // prod(shape) if size == -1 else size for size in shape]"
)
def reshape(x, *, shape=(-1,)):
    """Give what belongs to a row another shape: (N, A...) as (N, B...), in the same order; -1 is what is left.

    Gradient
        the same numbers in the shape of x.
    """
    y = x.reshape(x.shape[0], *shape)
    return y


@reshape.backward
def reshape_backward(dy, x):
    dx = dy.reshape(x.shape)  # no number changes: each goes back to its place
    return dx
