"""Forward passes as people write them, for the tests of recording: one function each, distinct prime sizes."""

import copy
import math
from dataclasses import dataclass

import numpy as np

SCALE = 1.7
OFFSETS = np.array([0.5, -1.0, 2.0, 0.25, 3.0])
erf = np.vectorize(math.erf)

_draw = np.random.default_rng(7)


def n(*shape):
    return _draw.normal(size=shape)


def positive(*shape):
    return _draw.uniform(0.5, 2.0, size=shape)


FORWARDS = {}


def forward(**inputs):
    """Register a forward with its inputs."""

    def register(function):
        FORWARDS[function.__name__] = (function, inputs)
        return function

    return register


# ------------------------------------------------------------------ elementwise


@forward(x=n(3, 5))
def many_unary(x):
    y = np.exp(x) + np.log1p(x * x) - np.sqrt(np.abs(x) + 1) + np.square(x) / np.cosh(x)
    return y + np.sin(x) * np.cos(x) + np.tan(0.3 * x) + np.sinh(x) - np.expm1(-x) + np.reciprocal(x + 9)


@forward(x=_draw.uniform(-0.8, 0.8, size=(3, 5)))
def inverse_functions(x):
    y = np.arcsin(x) + np.arccos(x) * np.arctan(x) + np.arcsinh(x) + np.arctanh(x) + np.arccosh(x + 3)
    return y + np.exp2(x) + np.log2(x + 2) + np.log10(x + 3) + np.cbrt(x + 2) + np.deg2rad(x) - np.rad2deg(x)


@forward(a=n(3, 5), b=positive(5))
def many_binary(a, b):
    y = np.arctan2(a, b) + np.hypot(a, b) + np.logaddexp(a, b) + np.logaddexp2(a, b) + np.copysign(b, a)
    return (
        y
        + np.maximum(a, b)
        - np.minimum(a, b)
        + np.fmax(a, 0.3) * np.fmin(b, a)
        + np.mod(a, b)
        + np.fmod(a, b)
    )


@forward(x=positive(2, 3), p=n(3))
def powers(x, p):
    return (
        x**2 + x**3 - x**-1 + x**0.5 + x**p + 2.0**x + np.power(x, 1.5) + np.float_power(x, 2) + x**1 + x**0
    )


@forward(x=n(3, 5))
def discrete(x):
    return (
        x * np.floor(x)
        + np.sign(x) * np.ceil(x)
        + np.rint(x)
        + x // 0.7
        + np.trunc(x) * x
        + np.round(x, 1) * x
    )


@forward(x=n(3, 5))
def clipped(x):
    return np.clip(x, -0.5, 0.5) * x + x.clip(0) + np.clip(x, None, 0.2) + x.clip(min=-1, max=1) ** 2


@forward(x=n(3, 5), y=n(3, 5))
def chosen(x, y):
    z = np.where(x > y, x * x, np.where((x < 0) & (y > -1), y, 0.0))
    return np.select([x > 1, y > 0], [x, y * y], default=x * y) + z + (x > 0) * y + np.heaviside(x, 0.5)


@forward(x=n(3, 5))
def stable_sigmoid(x):
    out = np.empty_like(x)
    positive_ones = x >= 0
    out[positive_ones] = 1 / (1 + np.exp(-x[positive_ones]))
    e = np.exp(x[~positive_ones])
    out[~positive_ones] = e / (1 + e)
    return out


@forward(x=n(3, 5))
def conversions(x):
    y = (
        np.fabs(+x) * np.radians(x)
        + np.degrees(x) * x.conj()
        + np.array(x, dtype=np.longdouble).astype(float)
    )
    return y + np.positive(x) * np.float64(x).astype("float64")


@forward(x=n(3, 5))
def gelu_exact(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


@forward(x=n(3, 5))
def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@forward(x=n(7))
def softplus_loop(x):
    return np.array([math.log1p(math.exp(-abs(v))) + max(v, 0) for v in x])


@forward(x=n(3, 5))
def scalar_math(x):
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total += float(x[i, j]) ** 2 * math.sin(i + j) + math.tanh(x[i, j])
    return total


@forward(x=n(3, 5))
def vectorized_python(x):
    softsign = np.vectorize(lambda v: v / (1 + abs(v)))
    return softsign(x) * SCALE


# ------------------------------------------------------------------ products


@forward(x=n(5, 3), W=n(3, 2), b=n(2))
def linear_tanh(x, W, b):
    return np.tanh(x @ W + b)


@forward(A=n(3, 5), b=n(5), c=n(3))
def vectors(A, b, c):
    return A @ b * (c @ A @ b) + np.dot(A, b) + np.outer(c, b) @ b + np.inner(A, b) + np.inner(b, b) * c


@forward(Q=n(2, 3, 4, 5), K=n(2, 3, 4, 5), V=n(2, 3, 4, 5))
def attention(Q, K, V):
    S = Q @ K.transpose(0, 1, 3, 2) / np.sqrt(Q.shape[-1])
    S = np.where(np.tril(np.ones(S.shape[-2:], dtype=bool)), S, -1e9)
    P = np.exp(S - S.max(axis=-1, keepdims=True))
    P /= P.sum(axis=-1, keepdims=True)
    return P @ V


@forward(A=n(2, 3, 5), B=n(2, 5, 7), v=n(5), w=n(3))
def batched_products(A, B, v, w):
    return (A @ B).sum(axis=0) + (A @ v)[..., None].mean(axis=0) + (w @ (A @ B)).sum() + np.matmul(A[0], B[1])


@forward(A=n(3, 5), B=n(2, 5, 7))
def unequal_ranks(A, B):
    return A @ B + np.dot(A, B).transpose(1, 0, 2)


@forward(A=n(2, 3, 5), B=n(5, 3, 7), C=n(5, 5))
def sums_of_products(A, B, C):
    first = np.einsum("aij,jik->ak", A, B)
    second = np.tensordot(A, B, axes=([1, 2], [1, 0])) + np.einsum("...ij,jik->...k", A, B)
    return (
        first * second
        + np.einsum("aij->a", A)[:, None]
        + np.einsum("ij,ij->", C, C)
        + np.tensordot(A, C, 1).sum()
    )


@forward(a=n(3), b=n(5), A=n(2, 3), B=n(3, 2))
def kronecker(a, b, A, B):
    return np.kron(a, b).sum() * np.kron(A, B) + np.outer(a, b).sum()


@forward(A=n(3, 3) + 3 * np.eye(3), B=n(3, 2), c=n(3))
def linear_algebra(A, B, c):
    x = np.linalg.solve(A, B) + np.linalg.inv(A) @ B * np.linalg.det(A)
    return x + np.linalg.solve(A, c)[:, None] * np.linalg.slogdet(A)[1] + np.trace(A) + np.linalg.norm(A)


@forward(A=n(5, 3))
def factorised(A):
    S = A.T @ A + np.eye(3)
    L = np.linalg.cholesky(S)
    return L + np.linalg.norm(A, axis=0) + np.linalg.norm(A, ord=1, axis=0) + np.linalg.eigvalsh(S)


@forward(v=n(5), A=n(2, 3, 3) + 3 * np.eye(3), b=n(2, 3, 2))
def batched_algebra(v, A, b):
    unit = v / np.linalg.norm(v)
    return np.linalg.solve(A, b).sum(axis=0) * unit.sum() + np.linalg.det(A).sum() + np.linalg.inv(A).sum()


# ------------------------------------------------------------------ reductions


@forward(x=n(5, 7))
def softmax(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


@forward(x=n(5, 7), y=np.array([3, 0, 6, 6, 1]))
def cross_entropy(x, y):
    s = x - x.max(axis=1, keepdims=True)
    logp = s - np.log(np.exp(s).sum(axis=1, keepdims=True))
    return -logp[np.arange(len(y)), y.tolist()].mean()


@forward(x=n(5, 7), gamma=n(7), beta=n(7))
def layer_norm(x, gamma, beta):
    mu = x.mean(-1, keepdims=True)
    var = x.var(-1, keepdims=True)
    return gamma * (x - mu) / np.sqrt(var + 1e-5) + beta


@forward(x=n(5, 3, 2, 7), gamma=n(3), beta=n(3))
def batch_norm(x, gamma, beta):
    mu = x.mean(axis=(0, 2, 3))[None, :, None, None]
    sd = x.std(axis=(0, 2, 3), ddof=1).reshape(1, -1, 1, 1)
    return gamma.reshape(1, 3, 1, 1) * (x - mu) / sd + beta[:, None, None]


@forward(x=positive(3, 5))
def other_reductions(x):
    y = x.prod(axis=1) + np.ptp(x, axis=1) + x.min(axis=1) + np.median(x, axis=1) + np.average(x, axis=1)
    weighted = np.average(x, axis=0, weights=np.array([0.2, 0.3, 0.5]))
    return (
        y * np.std(x)
        + np.var(x)
        + weighted.sum()
        + x.prod()
        + np.add.reduce(x, axis=1)
        + np.maximum.reduce(x[0])
    )


@forward(x=positive(3, 5))
def running(x):
    return (
        np.cumsum(x, axis=1)
        + x.cumsum(axis=0) * np.cumprod(x, axis=1)
        + x.ravel().cumsum()[-1]
        + np.cumsum(x)[2]
    )


@forward(x=n(3, 5, 2))
def reduced_over_pairs(x):
    return (
        x.sum(axis=(0, 2)) + x.mean(axis=(2, 0)) * x.max(axis=(0, 2)) + x.sum(axis=0).sum(axis=-1) + x.mean()
    )


@forward(x=n(3, 5), w=n(5))
def masked_sum(x, w):
    return np.sum(x * w, axis=1, where=x > 0) + np.nansum(x) + np.nanmean(x, axis=1)


@forward(x=n(2, 7))
def log_sum_exp(x):
    m = np.max(x, axis=-1)
    return m + np.log(np.sum(np.exp(x - m[:, np.newaxis]), axis=-1)) + np.logaddexp.reduce(x, axis=1)


# ------------------------------------------------------------------ moving entries


@forward(x=n(2, 3, 5))
def reshaped(x):
    y = x.reshape(6, 5).T.reshape(-1, 2) + np.ravel(x)[:30].reshape((15, 2)) + x.flatten().reshape(2, 15).T
    z = np.swapaxes(x, 0, 2) + np.moveaxis(x, 0, -1).transpose(1, 0, 2) + np.transpose(x)
    return y.sum() * z + np.squeeze(x[None, ...], axis=0).T + np.expand_dims(x, 1)[:, 0].T + x.T


@forward(x=n(3, 5))
def rearranged(x):
    y = np.flip(x) + np.fliplr(x) * np.flipud(x) + np.roll(x, 2, axis=1) + np.roll(x, 1) + x[::-1, ::-1]
    y = y + np.rot90(x, 2) + np.sort(x, axis=1) * np.sort(x, axis=0) + np.triu(x) - np.tril(x, -1)
    return y + np.rot90(x).T


@forward(x=n(3, 5), y=n(3, 2), z=n(5))
def joined(x, y, z):
    c = np.concatenate([x, y, 2 * x], axis=1)
    s = np.stack([x, x * x], axis=-1)[..., 1] + np.vstack([x[:2], z]) + np.array([z, z, x[0]])
    h = (
        np.hstack([y, x])[:, 2:]
        + np.column_stack((x[:, 0], x[:, 1:]))
        + np.append(x[:, :4], x[:, :1], axis=1)
    )
    return (
        c.sum(axis=1, keepdims=True)
        + s * h
        + np.dstack([x, x])[:, :, 0]
        + np.r_[z, z][:5]
        + np.c_[y, y, y[:, 0]]
    )


@forward(x=n(3, 6))
def parted(x):
    i, f, o = np.split(x, 3, axis=1)
    a, b = np.array_split(x, 2, axis=0)
    left, right = np.hsplit(x, 2)
    return np.tanh(i) * f + o + a.sum() * b.sum() + (left * right)[:, :2]


@forward(x=n(3, 5))
def stretched(x):
    y = np.repeat(x, 2, axis=0)[::2] + np.tile(x, (2, 1))[3:] + np.broadcast_to(x[0], (3, 5))
    y = y + np.repeat(x, [1, 2, 0, 1, 1], axis=1) + np.tile(x[:, 0], 5).reshape(5, 3).T
    return (
        y
        + np.pad(x, 1)[1:-1, :5]
        + np.pad(x, ((1, 0), (0, 2)), mode="constant")[:3, 2:]
        + np.pad(x, 1, mode="edge")[2:, 2:]
    )


@forward(v=n(5), A=n(5, 5), B=n(3, 5))
def diagonals(v, A, B):
    y = np.diag(v) + A * np.eye(5) + np.diag(np.diag(A)) + np.diag(v[:4], 1) + np.diagonal(A)
    return y + np.trace(A) + np.diag(B).sum() + np.diag(A, -1).sum() + np.trace(B, offset=1)


@forward(table=n(7, 3), idx=np.array([[4, 1, 4], [0, 1, 6]]))
def embedding(table, idx):
    return table[idx] + np.take(table, idx, axis=0) * 2 + table.take([[0], [3]], axis=0)


@forward(x=n(5, 7), idx=np.array([[1, 0], [6, 6], [2, 3], [0, 1], [5, 4]]))
def picked(x, idx):
    y = (
        np.take_along_axis(x, idx, axis=1)
        + x[np.arange(5)[:, None], idx]
        + x[idx % 5, 0]
        + x[:, [1, 3]]
        + x[[0, 2, 4, 1, 1], 2:4]
    )
    return y + x[x > 0].sum() + x[np.argmax(x[:, 0])][:2] + x[..., -1:] + x[1, 2] + np.sort(x.ravel())[-2:]


@forward(x=n(3, 5), g=n(2, 3))
def differences(x, g):
    return (
        np.diff(x, axis=1).sum(axis=1) * np.diff(g, axis=0)[0]
        + np.diff(x, n=2).sum()
        + np.gradient(x[0]).sum()
    )


@forward(x=n(7), k=n(3))
def convolved(x, k):
    return np.convolve(x, k, mode="same") + np.correlate(x, k, mode="same") * np.interp(
        x, [-3, 0, 3], [0.0, 1.0, 5.0]
    )


@forward(x=n(2, 7), w=n(3))
def windows(x, w):
    view = np.lib.stride_tricks.sliding_window_view(x, 3, axis=1)
    return view @ w


@forward(x=n(2, 5, 7), k=n(3, 2))
def strided_windows(x, k):
    rows, columns = x.shape[1] - k.shape[0] + 1, x.shape[2] - k.shape[1] + 1
    s, t, u = x.strides
    view = np.lib.stride_tricks.as_strided(x, (x.shape[0], rows, columns, *k.shape), (s, t, u, t, u))
    return np.tensordot(view, k, axes=([3, 4], [0, 1]))


@forward(x=n(3, 5))
def left_out(x):
    y = np.compress([True, False, True], x, axis=0) + np.delete(x, 1, axis=0) + np.resize(x, (2, 5))
    return y + np.extract(np.arange(15).reshape(3, 5) % 3 == 0, x)


@forward(x=n(3, 5))
def along_axis(x):
    def normalise(row):
        return (row - row.mean()) / np.sqrt((row**2).sum())

    return np.apply_along_axis(normalise, 1, x)


# ------------------------------------------------------------------ loops and assignments


@forward(x=n(2, 5, 3), Wx=n(3, 7), Wh=n(7, 7) / 3, b=n(7))
def rnn(x, Wx, Wh, b):
    N, T, _ = x.shape
    h = np.zeros((N, T + 1, Wh.shape[0]))
    for t in range(T):
        h[:, t + 1] = np.tanh(x[:, t] @ Wx + h[:, t] @ Wh + b)
    return h[:, 1:]


@forward(x=n(5, 2, 3), W=n(5, 12) / 3, b=n(12))
def lstm(x, W, b):
    def sigmoid(z):
        return 1 / (1 + np.exp(-z))

    h = c = np.zeros((2, 2))
    outputs = []
    W = np.concatenate([W, W[:2]])[:5]
    for xt in x:
        z = np.hstack([xt, h]) @ W[:, :8] + b[:8]
        i, f, o, g = sigmoid(z[:, :2]), sigmoid(z[:, 2:4]), sigmoid(z[:, 4:6]), np.tanh(z[:, 6:])
        c = f * c + i * g
        h = o * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs)


@forward(x=n(2, 3, 4, 5), w=n(2, 3, 2, 3), b=n(2))
def convolution(x, w, b):
    N, _, H, W = x.shape
    F, _, kh, kw = w.shape
    out = np.zeros((N, F, H - kh + 1, W - kw + 1))
    for i in range(out.shape[2]):
        for j in range(out.shape[3]):
            patch = x[:, :, i : i + kh, j : j + kw]
            for f in range(F):
                out[:, f, i, j] = np.sum(patch * w[f], axis=(1, 2, 3)) + b[f]
    return out


@forward(x=n(2, 4, 6))
def max_pool(x):
    N, H, W = x.shape
    out = np.zeros((N, H // 2, W // 2))
    for i in range(H // 2):
        for j in range(W // 2):
            out[:, i, j] = x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max(axis=(1, 2))
    return out + x.reshape(N, H // 2, 2, W // 2, 2).mean(axis=(2, 4))


@forward(x=n(5, 3))
def in_place(x):
    y = x.copy()
    y += 1
    y *= x
    y[0] = 2 * y[1]
    y[:, 1] -= y[:, 0] * 0.5
    y[y > 3] = 0
    view = y[2:4]
    view *= y[1:3] + 1
    row = y[4]
    row[:] = np.sin(row)
    y.T[2] += 1
    y.reshape(-1)[3] = x[0, 0] ** 2
    z = np.zeros_like(y)
    np.add.at(z, [0, 1, 1], y[:3])
    np.maximum(z, y, out=z)
    z.flat[2] = y[0, 0] * 3
    np.multiply(z, 2, out=z)
    return z + y


@forward(x=n(5, 3))
def ones_and_full(x):
    a, b, c = np.ones((5, 3)), np.full((5, 3), 2.0), np.full_like(x, 0.5)
    a[1:3] = x[1:3] * 2
    b[:, 0] *= x[:, 0]
    c[[0, 2]] += x[[1, 1]]
    d = np.array([[1.0, 2.0, 3.0]] * 5)
    d[np.arange(5), [0, 1, 2, 0, 1]] = x.sum(axis=1)
    np.fill_diagonal(a, x[0])
    np.put_along_axis(d, np.array([[2]] * 5), x[:, :1], axis=1)
    np.copyto(b, x, where=x > 0)
    return a * b + c * d


@forward(A=n(5, 3), B=n(3, 2))
def product_in_loops(A, B):
    C = np.zeros((A.shape[0], B.shape[1]))
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]
    return C


@forward(x=n(3, 5), y=n(3, 5))
def pairs_in_loops(x, y):
    total = 0
    for row, other in zip(x, y, strict=True):
        for v, w in zip(row, other, strict=True):
            if v > w:
                total = total + (v - w) ** 2
            elif v > 0:
                total += abs(w)
    return np.asarray(total) / len(x)


@forward(x=n(5))
def scan(x):
    out = [x[0]]
    for k in range(1, len(x)):
        out.append(0.9 * out[-1] + x[k])
    return np.array(out) + np.array([sum(out), max(out), min(out), out[0], len(out)])


@forward(x=n(3, 5))
def nested_lists(x):
    parts = {"a": [x[0], x[1] * 2], "b": (x[2],)}
    grid = [[x[i, j] * j for j in range(5)] for i in range(3)]
    return np.array(parts["a"]).sum(axis=0) + np.array(grid)[1] + sum(parts["b"])


@forward(x=n(3, 5), seed=np.array(11))
def dropout(x, seed):
    rng = np.random.default_rng(int(seed))
    keep = rng.uniform(size=x.shape) > 0.4
    noise = rng.normal(size=x.shape)
    return x * keep / 0.6 + noise * x


@forward(x=n(3, 5))
def numbers_appended(x):
    return np.append(x.sum(axis=0), 1.0) * np.hstack([2.0, x[0]])


@forward(x=n(3, 5))
def functions_of_lists(x):
    return np.tanh([x[0], 2 * x[1]]) + np.multiply(x[2], [x[0, 0], 1.0, 2.0, 3.0, 4.0])


@forward(x=n(3, 5))
def sizes_as_numbers(x):
    weights = np.array(x.shape[1] * [0.5] + [1.0])[: len(x[0])] - 0.1 * len(x)
    return x * weights / x.shape[0] + (x.shape[1] - 2) ** 2 * x.mean() - x.size // 4


TABLE = n(5)


@forward(x=n(3, 5))
def constant_arrays(x):
    steps = np.fromiter((0.5 * k for k in range(5)), float) - np.array(TABLE)
    return (
        x * steps + np.array([[1], [2], [4]], dtype=float) * np.array(3) + np.multiply.outer(x[:, 0], TABLE)
    )


@forward(x=n(3, 5), rows=np.array([2, 0, 1]))
def rows_in_another_order(x, rows):
    rng = np.random.default_rng(3)
    return x[rng.permutation(rows)] * rng.uniform(size=3)[:, None]


# ------------------------------------------------------------------ helpers, classes, constants


@dataclass
class Layer:
    """A layer that keeps its input."""

    W: np.ndarray
    b: np.ndarray

    def __call__(self, x):
        """Run it."""
        self.cache = x
        return x @ self.W + self.b


class Network:
    """Layers in a row."""

    def __init__(self, *layers):
        self.layers = layers

    def run(self, x):
        """Run them."""
        for layer in self.layers:
            x = np.maximum(layer(x), 0) + 0.1 * self.layers[0].b.sum()
        return x


@forward(x=n(5, 3), W1=n(3, 7), b1=n(7), W2=n(7, 2), b2=n(2))
def with_classes(x, W1, b1, W2, b2):
    return Network(Layer(W1, b1), Layer(W2, b2)).run(x)


@forward(x=n(3, 5))
def module_constants(x):
    table = OFFSETS.copy()
    table[1] = x[0, 0]
    return x * OFFSETS + SCALE * table + OFFSETS[:, None].sum(axis=0)


@forward(x=n(3, 5))
def several_outputs(x):
    return np.tanh(x), x.sum(axis=1), x[0, 0] * x[1, 1]


@forward(x=n(3, 5))
def python_scalars(x):
    loss = 0.5 * (x**2).sum() / x.size + np.float64(2) * np.mean(x) - x.shape[0] * x[0].dot(x[1]) / len(x)
    return np.asarray(loss)


@forward(x=n(3, 5).astype(np.float32), W=n(5, 2).astype(np.float32))
def single_precision(x, W):
    z = x @ W * 0.5
    z -= z.mean(axis=0)
    return (np.exp(z) / (1 + np.exp(z))).astype(np.float32)


@forward(x=n())
def zero_dimensional(x):
    y = np.asarray(x * 2)
    y += x
    return np.exp(y) * x.item()


@forward(x=n(3, 5), t=np.array([[0, 1, 1, 0, 1]] * 3))
def bce_with_logits(x, t):
    return np.mean(np.maximum(x, 0) - x * t + np.log1p(np.exp(-np.abs(x))))


@forward(x=n(5, 3), y=n(7, 3))
def distances(x, y):
    return np.sqrt(((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=2)) + np.linalg.norm(
        x[:, None] - y, axis=-1
    )


@forward(a=n(5, 3), b=n(5, 3))
def cosine(a, b):
    return (a * b).sum(axis=1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))


@forward(A=n(5, 5), X=n(5, 3), W=n(3, 2))
def graph_convolution(A, X, W):
    adjacency = (A > 0).astype(float) + np.eye(5)
    degree = adjacency.sum(axis=1)
    return np.diag(1 / np.sqrt(degree)) @ adjacency @ X @ W


@forward(x=n(5), w=n(3))
def fourier_and_rest(x, w):
    return (
        np.polyval(w, x) + np.cross(w, w[::-1]).sum() + np.sinc(x) + np.nan_to_num(x) + np.percentile(x, 30)
    )


@forward(x=n(2, 3, 4, 5), w=n(3))
def channels_first(x, w):
    y = x.transpose(0, 2, 3, 1).reshape(-1, 3) * w
    return y.reshape(2, 4, 5, 3).transpose(0, 3, 1, 2)


@forward(x=n(7, 3))
def pairwise_upper(x):
    i, j = np.triu_indices(7, k=1)
    return np.exp(-((x[i] - x[j]) ** 2).sum(axis=1))


@forward(x=n(3, 4))
def meshed(x):
    rows, columns = np.meshgrid(np.arange(4.0), np.arange(3.0))
    return x * rows + columns * np.indices((3, 4))[0] + np.linspace(0, 1, 4)


@forward(x=n(3, 5))
def checked(x):
    assert isinstance(x, np.ndarray)
    if x.ndim != 2 or not np.isfinite(x).all() or x.dtype != np.float64:
        raise ValueError("bad input")
    with np.errstate(over="ignore"):
        y = np.asarray(x, dtype=float) * np.float64(x[0, 0]) + np.finfo(x.dtype).eps
    return np.ascontiguousarray(y.astype(np.float64)) + np.any(x > 0) + (x == x.max())


# ------------------------------------------------------------------ what is written now and then


@forward(a=np.array(1.3), x=n(3, 5), y=n(5))
def products_with_numbers(a, x, y):
    return np.dot(a, x) + np.inner(x, a) - np.dot(x, 0.5) + np.inner(y, y)


@forward(A=n(2, 3, 3) + 3 * np.eye(3), b=n(3))
def several_matrices_for_one_side(A, b):
    return np.linalg.solve(A, b)


@forward(x=n(2, 3, 5), W=n(5, 7))
def einsum_without_an_arrow(x, W):
    return np.einsum("...j,jk", x, W) + np.einsum("ijk,kl", x, W)


@forward(x=n(3, 5))
def norms_of_one_entry(x):
    return np.linalg.norm(x, np.inf, axis=1) + np.linalg.norm(x, -np.inf, axis=1)


@forward(x=n(3, 5), y=n(2, 4))
def flattened(x, y):
    z = np.sort(np.concatenate([x, y], axis=None), axis=None) * np.repeat(x, 2)[:23]
    return z + np.take(x, [0, 7, 7]).sum() + np.take_along_axis(x, np.array([1, 4, 1]), axis=None).sum()


@forward(x=n(3, 5), w=n(2))
def changed_by_methods(x, w):
    y, ordered = x.copy(), x[2].copy()
    np.add.at(y, (0, [1, 1]), w)
    np.subtract.at(y, (2, [0, 3]), w)
    y[1] = x[:1] * 2
    put, filled = np.zeros(4), np.empty(3)
    put.put([0, 2], w)
    filled.fill(w[0])
    ordered.sort()
    return y.swapaxes(0, 1) @ filled + ordered.conjugate() + put.sum()


@forward(x=n(3, 5), y=positive(3, 5))
def ufuncs_in_other_ways(x, y):
    masked = np.exp(x, where=x > 0, out=np.zeros_like(x))
    z = np.add.accumulate(x, 1) * masked + np.multiply.accumulate(y, 0)
    return z + np.multiply.outer(x[0], y[0])[:3]


@forward(x=n(3, 5), v=n(3))
def assigned_through_views(x, v):
    y = np.zeros((5, 3))
    y.T[1] = x[0]
    np.flip(y)[0] = v
    y.flat[3] = 2 * v[0]
    return y.reshape(3, 5) * x + x.real + np.r_[v, v[:2]] - np.c_[v, v][:, :1] + x.mT.mT


@forward(x=n(3, 5), y=positive(3, 5))
def pythons_own(x, y):
    z = copy.copy(x) * (x % y) + copy.deepcopy(y) * (2.0 % y) + [1.0, 2.0, 0.5, -1.0, 0.25]
    return z + math.floor(x[0, 0]) + math.trunc(x[1, 1] * 3) + (0.5 in x) + len(f"{x[0, 0]:.3f}")


@forward(x=n(2, 2, 2), y=n(3, 3))
def without_a_text(x, y):
    z = np.zeros(3)
    z[[0, 0]] = y[0, :2]
    z += np.kron(y[1, 1], y[2]) + np.kron(y[0], y[0, 2])
    return np.kron(x, y[:2, :2, None]) * np.einsum("ii", y) + np.repeat(y, [1, 2, 0] * 3).sum() + z.sum()


# ------------------------------------------------------------------ what NumPy writes in Python


@forward(x=positive(3, 5), A=n(3, 3) + 3 * np.eye(3))
def through_numpys_source(x, A):
    centred = np.cov(x) + np.corrcoef(x) @ A
    areas = np.trapezoid(x, axis=1) + np.nanstd(x, axis=1) + np.linalg.vector_norm(x, axis=1)
    blocks = np.block([[A, A], [A, A.T]])[2:5, 1:4]
    chain = np.linalg.multi_dot([A, x, x.T]) + np.linalg.matrix_power(A, 3)
    pieces = np.piecewise(x[0], [x[0] < 1, x[0] >= 1], [lambda v: 2 * v, lambda v: v**2])
    return (
        centred + areas + blocks * chain + pieces.sum() + np.vander(x[0], 3)[:3] + np.atleast_3d(A)[:, :, 0]
    )


@forward(x=n(3, 5), w=n(5))
def results_stored_by_out(x, w):
    total, product = np.zeros(3), np.empty((3, 5))
    np.dot(x, w, out=total)
    np.concatenate([x[:1], 2 * x[1:]], out=product)
    np.clip(product, -1, 1, product)
    return total * np.sum(product, axis=1, out=np.empty(3)) + np.matmul(x, w)


@forward(x=n(3, 5), rows=np.array([2, 0, 2]))
def a_copy_is_no_view(x, rows):
    y, z = x * 2, x.copy()
    first, chosen = y.take(0, axis=0), y[rows]
    first += x[1]
    chosen *= 3
    line = z[:, None]
    line += x[:, None] ** 2
    return y + first + chosen + z + np.nonzero(rows)[0].sum()
