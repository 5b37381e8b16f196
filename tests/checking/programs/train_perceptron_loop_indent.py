import numpy as np


class OneLayer:
    """Sums its gradient over the examples of a batch, then takes one step."""

    def __init__(self, n_features, n_classes):
        self.W = np.random.default_rng(10).normal(size=(n_features, n_classes))
        self.b = np.zeros(n_classes)

    def forward(self, x):
        return 1 / (1 + np.exp(-(x @ self.W + self.b)))

    def loss(self, X, Y):
        return 0.5 * sum(np.sum((self.forward(x) - y) ** 2) for x, y in zip(X, Y))

    def train_batch(self, X, Y, lr):
        dW, db = np.zeros_like(self.W), np.zeros_like(self.b)
        for x, y in zip(X, Y):
            out = self.forward(x)
            delta = (out - y) * out * (1 - out)
            dW += np.outer(x, delta)
        db += delta
        self.W -= lr * dW
        self.b -= lr * db
