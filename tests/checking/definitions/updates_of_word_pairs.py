import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


rng = np.random.default_rng(0)
V, D = 12, 4
W_in = rng.uniform(-0.5, 0.5, (V, D))
W_out = rng.uniform(-0.5, 0.5, (V, D))


def train_pair(center, context, negatives, lr=0.025):
    v = W_in[center]
    grad_v = np.zeros(D)
    for word, label in [(context, 1)] + [(n, 0) for n in negatives]:
        u = W_out[word]
        g = label - sigmoid(v @ u)
        grad_v += g * u
        W_out[word] += lr * g * v
    W_in[center] += lr * grad_v


train_pair(1, 2, [5, 7, 3])


def train_rows(x, t, w, b, lr=0.1):
    for i in range(len(x)):
        p = 1 / (1 + np.exp(-(x[i] @ w + b)))
        err = t[i] - p
        w = w + lr * err * x[i]
        b = b + lr * err
    return w, b


train_rows(rng.normal(size=(6, 2)), np.array([0, 1, 1, 0, 1, 0]), rng.normal(size=2), 0.3)
#WRONG: g = label - sigmoid(v @ u) => g = sigmoid(v @ u) - label
#WRONG: b = b + lr * err => b = b - lr * err
