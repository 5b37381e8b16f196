import numpy as np

def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

class SelfAttention:
    def __init__(self, d_model):
        s = 1 / np.sqrt(d_model)
        self.Wq = np.random.randn(d_model, d_model) * s
        self.Wk = np.random.randn(d_model, d_model) * s
        self.Wv = np.random.randn(d_model, d_model) * s
        self.Wo = np.random.randn(d_model, d_model) * s
        self.d = d_model

    def forward(self, X):
        self.X = X
        self.Q = X @ self.Wq
        self.K = X @ self.Wk
        self.V = X @ self.Wv
        self.A = softmax(self.Q @ self.K.swapaxes(-1, -2) / np.sqrt(self.d))
        self.H = self.A @ self.V
        return self.H @ self.Wo

    def backward(self, dO):
        dH = dO @ self.Wo.T
        self.dWo = np.einsum("bti,btj->ij", self.H, dO)
        dA = dH @ self.V.swapaxes(-1, -2)
        dV = self.A.swapaxes(-1, -2) @ dH
        dS = self.A * (dA - (dA * self.A).sum(axis=-1, keepdims=True))
        dS = dS / np.sqrt(self.d)
        dQ = dS @ self.K
        dK = dS.swapaxes(-1, -2) @ self.Q
        self.dWq = np.einsum("bti,btj->ij", self.X, dQ)
        self.dWk = np.einsum("bti,btj->ij", self.X, dK)
        self.dWv = np.einsum("bti,btj->ij", self.X, dV)
        return dQ @ self.Wq.T + dK @ self.Wk.T + dV @ self.Wv.T

#WRONG: dK = dS.swapaxes(-1, -2) @ self.Q => dK = dS @ self.Q
#WRONG: dS = dS / np.sqrt(self.d) => dS = dS / self.d
#WRONG:  + dV @ self.Wv.T => 
