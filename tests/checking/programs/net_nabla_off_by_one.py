import numpy as np


def sigma(z):
    return 1.0 / (1.0 + np.exp(-z))


def dsigma(z):
    return sigma(z) * (1 - sigma(z))


class MLP:
    """Columns in, columns out; quadratic cost."""

    def __init__(self, sizes, seed=21):
        rng = np.random.default_rng(seed)
        self.W = [rng.normal(size=(m, n)) for n, m in zip(sizes[:-1], sizes[1:])]
        self.b = [rng.normal(size=(m, 1)) for m in sizes[1:]]

    def cost(self, x, y):
        for W, b in zip(self.W, self.b):
            x = sigma(W @ x + b)
        return 0.5 * np.sum((x - y) ** 2)

    def gradients(self, x, y):
        a, zs = [x], []
        for W, b in zip(self.W, self.b):
            zs.append(W @ a[-1] + b)
            a.append(sigma(zs[-1]))
        dW = [None] * len(self.W)
        db = [None] * len(self.b)
        delta = (a[-1] - y) * dsigma(zs[-1])
        for k in reversed(range(len(self.W))):
            dW[k] = delta @ a[k].T
            db[k] = delta
            if k > 0:
                delta = (self.W[k].T @ delta) * dsigma(zs[k])
        return dW, db
