import numpy as np


class Net:
    def __init__(self, d, h, k, lr=0.1):
        rng = np.random.default_rng(3)
        self.lr = lr
        self.W1 = rng.normal(size=(d, h))
        self.W2 = rng.normal(size=(h, k))

    def predict(self, x):
        return np.tanh(x @ self.W1) @ self.W2

    def loss(self, x, t):
        return 0.5 * np.sum((self.predict(x) - t) ** 2)

    def train_step(self, x, t):
        h = np.tanh(x @ self.W1)
        error = h @ self.W2 - t
        self.W2 -= self.lr * h.T @ error
        dh = (error @ self.W2.T) * (1 - h**2)
        self.W1 -= self.lr * x.T @ dh
        return 0.5 * np.sum(error**2)
