import numpy as np


def sigm(x):
    return 1 / (1 + np.exp(-x))


class GRUCell:
    def __init__(self, n, m, seed=9):
        rng = np.random.default_rng(seed)
        self.Wz, self.Wr, self.Wn = (rng.normal(size=(n, m)) * 0.5 for _ in range(3))
        self.Uz, self.Ur, self.Un = (rng.normal(size=(m, m)) * 0.5 for _ in range(3))

    def forward(self, x, h):
        self.x, self.h = x, h
        self.z = sigm(x @ self.Wz + h @ self.Uz)
        self.r = sigm(x @ self.Wr + h @ self.Ur)
        self.rh = self.r * h
        self.n = np.tanh(x @ self.Wn + self.rh @ self.Un)
        return (1 - self.z) * self.n + self.z * h

    def backward(self, dout):
        dn = dout * (1 - self.z)
        dz = dout * (self.h - self.n)
        dan = dn * (1 - self.n**2)
        drh = dan @ self.Un.T
        dr = drh * self.h
        daz = dz * self.z * (1 - self.z)
        dar = dr * self.r * (1 - self.r)
        self.dWz, self.dWr, self.dWn = self.x.T @ daz, self.x.T @ dar, self.x.T @ dan
        self.dUz, self.dUr, self.dUn = self.h.T @ daz, self.h.T @ dar, self.rh.T @ dan
        dx = daz @ self.Wz.T + dar @ self.Wr.T + dan @ self.Wn.T
        dh = dout * self.z + daz @ self.Uz.T + dar @ self.Ur.T
        return dx, dh
