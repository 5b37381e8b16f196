"""Linear maps of rows: matrix products, in both layouts of the weights; rows of a table; the sum of two values."""

import numpy as np

from handgrad.rules.primitives import add_rows_at, rows
from handgrad.rules.rule import rule
from handgrad.rules.signature import Index

__all__ = [
    "add",
    "concatenate",
    "embedding",
    "linear",
    "linear_out_in",
    "linear_out_in_without_bias",
    "linear_without_bias",
]


@rule("N... I, I O, O -> N... O")
def linear(x, W, b):
    """Map each row: ``z = x W + b``.

    Shapes
        x (N..., I), W (I, O), b (O,) -> z (N..., O). N... is one axis or several: every row is mapped alike.
    Formula
        z_no = Σ_i x_ni W_io + b_o
    Gradient
        dx = dz Wᵀ,  dW = xᵀ dz,  db = Σ_n dz
    Differs
        PyTorch stores W as (O, I): see `linear_out_in`.
    Source
        Goodfellow, Bengio, Courville, Deep Learning (2016), section 6.5.
    """
    z = x @ W + b
    return z


@linear.backward
def linear_backward(dz, x, W):
    dx = dz @ W.T  # x reaches every column of z through W: sum over them
    dW = rows(x).T @ rows(dz)  # the same W serves every row: the rows add up
    db = rows(dz).sum(axis=0)  # b was added to every row: the rows add up
    return dx, dW, db


@rule("N... I, I O -> N... O")
def linear_without_bias(x, W):
    """Map each row without a bias: ``z = x W``; otherwise as `linear`."""
    z = x @ W
    return z


@linear_without_bias.backward
def linear_without_bias_backward(dz, x, W):
    dx = dz @ W.T  # x reaches every column of z through W: sum over them
    dW = rows(x).T @ rows(dz)  # the same W serves every row: the rows add up
    return dx, dW


@rule("N... I, O I, O -> N... O")
def linear_out_in(x, W, b):
    """Map each row with weights stored (out, in), as PyTorch stores them: ``z = x Wᵀ + b``.

    Shapes
        x (N..., I), W (O, I), b (O,) -> z (N..., O)
    Formula
        z_no = Σ_i x_ni W_oi + b_o
    Gradient
        dx = dz W,  dW = dzᵀ x,  db = Σ_n dz: against `linear`, each transpose changes sides.
    Source
        torch.nn.Linear; Goodfellow, Bengio, Courville, Deep Learning (2016), section 6.5.
    """
    z = x @ W.T + b
    return z


@linear_out_in.backward
def linear_out_in_backward(dz, x, W):
    dx = dz @ W  # x reaches every column of z through a row of W: sum over them
    dW = rows(dz).T @ rows(x)  # the same W serves every row: the rows add up, in W's own layout
    db = rows(dz).sum(axis=0)  # b was added to every row: the rows add up
    return dx, dW, db


@rule("N... I, O I -> N... O")
def linear_out_in_without_bias(x, W):
    """Map each row with weights stored (out, in) and no bias: ``z = x Wᵀ``; otherwise as `linear_out_in`."""
    z = x @ W.T
    return z


@linear_out_in_without_bias.backward
def linear_out_in_without_bias_backward(dz, x, W):
    dx = dz @ W  # x reaches every column of z through a row of W: sum over them
    dW = rows(dz).T @ rows(x)  # the same W serves every row: the rows add up, in W's own layout
    return dx, dW


@rule("N..., V D -> N... D")
def embedding(i: Index, E):
    """Look up a row of the table for each index: ``h = E[i]``.

    Shapes
        i (N...,) whole numbers from 0 to V - 1, E (V, D) -> h (N..., D)
    Gradient
        dE[v] = Σ over the places where i = v of dh: repeated indices add up.
    Differs
        ``dE[i] += dh`` in NumPy keeps only the last of repeated indices.
    Source
        Bengio, Ducharme, Vincent, Jauvin, A Neural Probabilistic Language Model, JMLR 3 (2003).
    """
    h = E[i]
    return h


@embedding.backward
def embedding_backward(dh, i, E):
    dE = add_rows_at(i, dh, E)  # a row looked up several times adds its gradients up
    return dE


@rule("A..., A... -> A...")
def add(x, y):
    """Add two values of one shape, as a residual connection does: ``r = x + y``, so ``dx = dy = dr``."""
    r = x + y
    return r


@add.backward
def add_backward(dr):
    dx = dr  # a sum hands its gradient to each part unchanged
    dy = dr  # a sum hands its gradient to each part unchanged
    return dx, dy


@rule("N... A, N... B -> N... C", C="A + B")
def concatenate(x, y):
    """Put the features of two values side by side: ``c = [x, y]``.

    Gradient
        each gets its part of dc.
    Source
        Szegedy et al., Going Deeper with Convolutions, arXiv 1409.4842; Huang et al., DenseNet, arXiv 1608.06993.
    """
    c = np.concatenate([x, y], axis=-1)
    return c


@concatenate.backward
def concatenate_backward(dc, x):
    dx = dc[..., : x.shape[-1]]  # no number changes: each goes back to its place
    dy = dc[..., x.shape[-1] :]
    return dx, dy
