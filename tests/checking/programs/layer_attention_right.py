import numpy as np


def row_softmax(a):
    a = np.exp(a - a.max(-1, keepdims=True))
    return a / a.sum(-1, keepdims=True)


class CausalSelfAttention:
    def __init__(self, d, seed=0):
        rng = np.random.default_rng(seed)
        self.Wq, self.Wk, self.Wv = (rng.normal(size=(d, d)) / np.sqrt(d) for _ in range(3))

    def forward(self, x):
        T, d = x.shape
        self.x = x
        self.q, self.k, self.v = x @ self.Wq, x @ self.Wk, x @ self.Wv
        scores = self.q @ self.k.T / np.sqrt(d)
        self.p = row_softmax(np.where(np.tri(T) > 0, scores, -1e30))
        return self.p @ self.v

    def backward(self, dy):
        d = self.x.shape[1]
        dv = self.p.T @ dy
        dp = dy @ self.v.T
        ds = self.p * (dp - np.sum(self.p * dp, axis=-1, keepdims=True)) / np.sqrt(d)
        dq, dk = ds @ self.k, ds.T @ self.q
        self.dWq, self.dWk, self.dWv = self.x.T @ dq, self.x.T @ dk, self.x.T @ dv
        return dq @ self.Wq.T + dk @ self.Wk.T + dv @ self.Wv.T
