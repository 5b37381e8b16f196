"""The shallow net of the first notes: layers that store their input, an activation multiplied as diag(phi')."""

import numpy as np


class Linear:
    def __init__(self, d, m, rng):
        self.weights = rng.normal(size=(d, m))
        self.bias = rng.normal(size=(1, m))

    def forward(self, x):
        self.input = x
        return self.bias + np.dot(x, self.weights)

    def backward(self, d_prev):
        self.d_weights = self.input.T @ d_prev
        self.d_bias = 1 * d_prev
        return d_prev @ self.weights.T


class Activation:
    def forward(self, x):
        self.input = x
        return np.maximum(x, 0)

    def backward(self, d_prev):
        d_phi = (self.input > 0).astype(float)
        _, s, _ = np.linalg.svd(d_phi.T, full_matrices=False)
        diag = np.zeros((d_prev.shape[1], d_prev.shape[1]))
        diag[: len(s), : len(s)] = np.diag(s)
        return d_prev @ diag


class ShallowNet:
    def __init__(self, d, m1, m2, seed=0):
        rng = np.random.default_rng(seed)
        self.layers = [Linear(d, m1, rng), Activation(), Linear(m1, m2, rng)]

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def loss(self, x, y):
        return 0.5 * np.sum(np.square(y - self.forward(x)))

    def backward(self, y, y_pred):
        d = y_pred - y
        for layer in reversed(self.layers):
            d = layer.backward(d)
        return d
