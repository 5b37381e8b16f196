"""Attention: heads, scores, and positions turned into angles."""

import numpy as np

from handgrad.rules.primitives import join_last, rows, split_last
from handgrad.rules.rule import rule
from handgrad.rules.signature import Index

__all__ = [
    "add_positions",
    "attention",
    "causal_attention",
    "merge_heads",
    "padded_attention",
    "padded_causal_attention",
    "repeat_heads",
    "rotary_positions",
    "split_heads",
]


@rule("N... T D -> N... G T E", where="D % heads == 0", G="heads", E="D // heads")
def split_heads(x, *, heads=1):
    """Give each head its own features: (N..., T, D) as (N..., heads, T, D / heads).

    Gradient
        the same numbers, back in the order of x.
    Source
        Vaswani et al., Attention Is All You Need, arXiv 1706.03762.
    """
    y = split_last(x, heads).swapaxes(-2, -3)  # split into heads, each a matrix (T, E)
    return y


@split_heads.backward
def split_heads_backward(dy):
    dx = join_last(dy.swapaxes(-2, -3))  # no number changes: each goes back to its place
    return dx


@rule("N... G T E -> N... T D", D="G * E")
def merge_heads(x):
    """Put what the heads found side by side: (N..., heads, T, E) as (N..., T, heads E); undoes `split_heads`.

    Source
        Vaswani et al., Attention Is All You Need, arXiv 1706.03762.
    """
    y = join_last(x.swapaxes(-2, -3))
    return y


@merge_heads.backward
def merge_heads_backward(dy, x):
    dx = split_last(dy, x.shape[-3]).swapaxes(-2, -3)  # no number changes: each goes back to its place
    return dx


@rule("N... G T E -> N... R T E", R="times * G")
def repeat_heads(x, *, times=1):
    """Give neighbouring heads of queries the same keys, or values: (N..., G, T, E) as (N..., times G, T, E).

    Gradient
        dx is the sum of the gradients of its copies.
    Source
        Ainslie et al., GQA, arXiv 2305.13245; with one head of keys: Shazeer, Fast Transformer Decoding, arXiv 1911.02150.
    """
    v = np.expand_dims(x, -3) * np.ones((times, 1, 1), x.dtype)
    y = v.reshape(*x.shape[:-3], times * x.shape[-3], *x.shape[-2:])
    return y


@repeat_heads.backward
def repeat_heads_backward(dy, x, *, times):
    dv = dy.reshape(*x.shape[:-2], times, *x.shape[-2:])
    dx = dv.sum(axis=-3)  # a head of keys serves several of queries: they add up
    return dx


@rule("N... T E, N... S E, N... S F -> N... T F")
def attention(q, k, v):
    """Average the values, each query by how well each key fits it: ``y = softmax(q kᵀ / √E) v``.

    Shapes
        q (N..., T, E), k (N..., S, E), v (N..., S, F) -> y (N..., T, F)
    Formula
        p_ts = exp(q_t · k_s / √E) / Σ_s exp(q_t · k_s / √E),  y_t = Σ_s p_ts v_s
    Gradient
        dv = pᵀ dy;  ds = p (dp - Σ dp p) / √E with dp = dy vᵀ;  dq = ds k,  dk = dsᵀ q
    Stable
        the largest score of a row is subtracted before exp, which changes no share.
    Source
        Vaswani et al., Attention Is All You Need, arXiv 1706.03762.
    """
    s = q @ k.mT / q.shape[-1] ** 0.5  # a sum of E terms has E times the variance
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    y = p @ v
    return y


@attention.backward
def attention_backward(dy, q, k, v, p):
    dv = p.mT @ dy  # a value serves every query: the queries add up
    dp = dy @ v.mT
    ds = p * (dp - (dp * p).sum(axis=-1, keepdims=True)) / q.shape[-1] ** 0.5  # (diag(p) - p pᵀ) dp
    dq = ds @ k
    dk = ds.mT @ q  # a key serves every query: the queries add up
    return dq, dk, dv


@rule("N... T E, N... T E, N... T F -> N... T F")
def causal_attention(q, k, v):
    """Average the values up to each place, as `attention` does; no query sees what comes later.

    Gradient
        as `attention`'s: the shares of what comes later are 0, and so is the gradient of their scores.
    Source
        Vaswani et al., Attention Is All You Need, arXiv 1706.03762; Radford et al., GPT-2 (2019).
    """
    s = q @ k.mT / q.shape[-1] ** 0.5  # a sum of E terms has E times the variance
    past = np.where(np.tri(q.shape[-2]) > 0, s, -np.inf)  # no query sees what comes later
    e = np.exp(past - past.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    y = p @ v
    return y


@causal_attention.backward
def causal_attention_backward(dy, q, k, v, p):
    dv = p.mT @ dy  # a value serves its own and every later query: they add up
    dp = dy @ v.mT
    ds = p * (dp - (dp * p).sum(axis=-1, keepdims=True)) / q.shape[-1] ** 0.5  # (diag(p) - p pᵀ) dp
    dq = ds @ k
    dk = ds.mT @ q  # a key serves its own and every later query: they add up
    return dq, dk, dv


@rule("N G T E, N G S E, N G S F, N S -> N G T F")
def padded_attention(q, k, v, i: Index, *, padding=0):
    """Average the values of all places but those that fill a sequence up, as `attention` does.

    Shapes
        q (N, G, T, E), k (N, G, S, E), v (N, G, S, F), i (N, S) -> y (N, G, T, F); a place with i = padding is not looked at.
    Gradient
        as `attention`'s: the shares of what is not looked at are 0, and so is the gradient of their scores.
    Differs
        where all places are padding, the average of all values; PyTorch gives NaN there.
    Source
        Vaswani et al., Attention Is All You Need, arXiv 1706.03762.
    """
    s = q @ k.mT / q.shape[-1] ** 0.5  # a sum of E terms has E times the variance
    is_seen = (i != padding)[:, None, None, :]
    seen = np.where(is_seen, s, -1e30)  # no query sees what is padding
    e = np.exp(seen - seen.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    y = p @ v
    return y


@padded_attention.backward
def padded_attention_backward(dy, q, k, v, is_seen, p):
    dv = p.mT @ dy  # a value serves every query: the queries add up
    dp = dy @ v.mT
    dseen = p * (dp - (dp * p).sum(axis=-1, keepdims=True))  # (diag(p) - p pᵀ) dp
    ds = np.where(is_seen, dseen, 0) / q.shape[-1] ** 0.5  # the scores of padding are in no output
    dq = ds @ k
    dk = ds.mT @ q  # a key serves every query: the queries add up
    return dq, dk, dv


@rule("N G T E, N G T E, N G T F, N T -> N G T F")
def padded_causal_attention(q, k, v, i: Index, *, padding=0):
    """Average the values up to each place, but those that fill a sequence up: `causal_attention`, as `padded_attention` does.

    Source
        Vaswani et al., Attention Is All You Need, arXiv 1706.03762; Radford et al., GPT-2 (2019).
    """
    s = q @ k.mT / q.shape[-1] ** 0.5  # a sum of E terms has E times the variance
    is_seen = (i != padding)[:, None, None, :] & (np.tri(q.shape[-2]) > 0)
    seen = np.where(is_seen, s, -1e30)  # no query sees what comes later, or is padding
    e = np.exp(seen - seen.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    y = p @ v
    return y


@padded_causal_attention.backward
def padded_causal_attention_backward(dy, q, k, v, is_seen, p):
    dv = p.mT @ dy  # a value serves its own and every later query: they add up
    dp = dy @ v.mT
    dseen = p * (dp - (dp * p).sum(axis=-1, keepdims=True))  # (diag(p) - p pᵀ) dp
    ds = np.where(is_seen, dseen, 0) / q.shape[-1] ** 0.5  # the scores of what is not seen are in no output
    dq = ds @ k
    dk = ds.mT @ q  # a key serves its own and every later query: they add up
    return dq, dk, dv


@rule("N... T D, T D -> N... T D")
def add_positions(x, P):
    """Add to each place the vector that is learned for it: ``h = x + P``.

    Gradient
        dx = dh;  dP is the sum of dh over the rows.
    Source
        Radford et al., GPT-2 (2019).
    """
    h = x + P
    return h


@add_positions.backward
def add_positions_backward(dh, P):
    dx = dh
    dP = rows(dh).reshape(-1, *P.shape).sum(axis=0)  # P was added to every row: the rows add up
    return dx, dP


@rule("N... T D -> N... T D", where="D % 2 == 0")
def rotary_positions(x, *, base=10000.0):
    """Turn each pair of features by an angle that grows with the place: products of two depend on their distance.

    Formula
        with x₁ and x₂ the two halves of the features and φ_td = t base^(-2d/D), y₁ = x₁ cos φ - x₂ sin φ,
        y₂ = x₁ sin φ + x₂ cos φ
    Gradient
        turned back, by -φ.
    Source
        Su et al., RoFormer, arXiv 2104.09864; halves as in GPT-NeoX.
    """
    half = x.shape[-1] // 2
    speed = base ** (-np.arange(half, dtype=x.dtype) / half)  # in radians a place, slower from pair to pair
    angle = np.arange(x.shape[-2], dtype=x.dtype)[:, None] * speed
    c = np.cos(angle)
    s = np.sin(angle)
    x1 = x[..., :half]
    x2 = x[..., half:]
    y = np.concatenate([x1 * c - x2 * s, x1 * s + x2 * c], axis=-1)
    return y


@rotary_positions.backward
def rotary_positions_backward(dy, half, c, s):
    dy1 = dy[..., :half]
    dy2 = dy[..., half:]
    dx = np.concatenate([dy1 * c + dy2 * s, dy2 * c - dy1 * s], axis=-1)  # a rotation's transpose turns back
    return dx
