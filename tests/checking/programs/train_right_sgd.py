import numpy as np


class Regressor:
    def __init__(self, n_in, n_hidden, learning_rate=0.05):
        rng = np.random.default_rng(17)
        self.learning_rate = learning_rate
        self.w_hidden = rng.normal(size=(n_in, n_hidden)) * 0.7
        self.b_hidden = np.zeros(n_hidden)
        self.w_out = rng.normal(size=n_hidden) * 0.7
        self.b_out = 0.0

    def forward(self, X):
        self.X = X
        self.hidden = np.tanh(X @ self.w_hidden + self.b_hidden)
        return self.hidden @ self.w_out + self.b_out

    def mse(self, X, y):
        return np.mean((self.forward(X) - y) ** 2)

    def fit_batch(self, X, y):
        delta = 2 * (self.forward(X) - y) / len(y)
        g_w_out = self.hidden.T @ delta
        g_b_out = delta.sum()
        d_hidden = np.outer(delta, self.w_out) * (1 - self.hidden**2)
        g_w_hidden = self.X.T @ d_hidden
        g_b_hidden = d_hidden.sum(axis=0)
        self.w_out = self.w_out - self.learning_rate * g_w_out
        self.b_out = self.b_out - self.learning_rate * g_b_out
        self.w_hidden = self.w_hidden - self.learning_rate * g_w_hidden
        self.b_hidden = self.b_hidden - self.learning_rate * g_b_hidden
