import numpy as np


class Attention:
    """One head: scores are scaled by 1/sqrt(d)."""

    def forward(self, q, k, v):
        self.q, self.k, self.v = q, k, v
        self.d = q.shape[-1]
        s = q @ k.T / np.sqrt(self.d)
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        self.p = e / e.sum(axis=-1, keepdims=True)
        return self.p @ v

    def backward(self, dout):
        dv = self.p.T @ dout
        dp = dout @ self.v.T
        ds = self.p * (dp - (dp * self.p).sum(axis=-1, keepdims=True))
        dq = ds @ self.k
        dk = ds.T @ self.q
        return dq, dk, dv
