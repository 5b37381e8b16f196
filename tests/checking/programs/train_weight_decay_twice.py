import numpy as np


class DecayNet:
    def __init__(self, n, k, lam=0.1, eta=0.2):
        self.W = np.random.default_rng(4).normal(size=(n, k))
        self.lam, self.eta = lam, eta

    def loss(self, X, Y):
        return 0.5 * np.mean(np.sum((X @ self.W - Y) ** 2, axis=1)) + 0.5 * self.lam * np.sum(self.W**2)

    def update(self, X, Y):
        n = len(X)
        grad = (X.T @ (X @ self.W - Y) + self.lam * self.W) / n
        self.W -= self.eta * grad
