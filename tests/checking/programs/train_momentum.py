import numpy as np


class MomentumNet:
    def __init__(self, n, h, k):
        rng = np.random.default_rng(8)
        self.U = rng.normal(size=(n, h)) * 0.5
        self.V = rng.normal(size=(h, k)) * 0.5
        self.vU, self.vV = np.zeros_like(self.U), np.zeros_like(self.V)

    def loss(self, x, t):
        return np.sum((np.maximum(x @ self.U, 0) @ self.V - t) ** 2) / len(x)

    def step(self, x, t, lr=0.01, mu=0.9):
        z = x @ self.U
        a = np.maximum(z, 0)
        d = 2 * (a @ self.V - t) / len(x)
        gV = a.T @ d
        gU = x.T @ ((d @ self.V.T) * (z > 0))
        self.vU = mu * self.vU - lr * gU
        self.vV = mu * self.vV - lr * gV
        self.U += self.vU
        self.V += self.vV
