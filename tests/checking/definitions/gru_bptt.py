import numpy as np

class GRU:
    def __init__(self, vocab, hidden):
        self.H, self.V = hidden, vocab
        s = 0.3
        self.Wz, self.Uz = np.random.randn(hidden, vocab) * s, np.random.randn(hidden, hidden) * s
        self.Wr, self.Ur = np.random.randn(hidden, vocab) * s, np.random.randn(hidden, hidden) * s
        self.Wh, self.Uh = np.random.randn(hidden, vocab) * s, np.random.randn(hidden, hidden) * s
        self.Wy = np.random.randn(vocab, hidden) * s
        self.bz = np.zeros((hidden, 1)); self.br = np.zeros((hidden, 1)); self.bh = np.zeros((hidden, 1)); self.by = np.zeros((vocab, 1))

    def sigmoid(self, x):
        return 1 / (1 + np.exp(-x))

    def loss_and_grads(self, inputs, targets, hprev):
        x, z, r, hh, h, p = {}, {}, {}, {}, {}, {}
        h[-1] = np.copy(hprev)
        loss = 0
        for t in range(len(inputs)):
            x[t] = np.zeros((self.V, 1)); x[t][inputs[t]] = 1
            z[t] = self.sigmoid(self.Wz @ x[t] + self.Uz @ h[t-1] + self.bz)
            r[t] = self.sigmoid(self.Wr @ x[t] + self.Ur @ h[t-1] + self.br)
            hh[t] = np.tanh(self.Wh @ x[t] + self.Uh @ (r[t] * h[t-1]) + self.bh)
            h[t] = z[t] * h[t-1] + (1 - z[t]) * hh[t]
            y = self.Wy @ h[t] + self.by
            p[t] = np.exp(y) / np.sum(np.exp(y))
            loss += -np.log(p[t][targets[t], 0])
        dWz, dUz, dbz = np.zeros_like(self.Wz), np.zeros_like(self.Uz), np.zeros_like(self.bz)
        dWr, dUr, dbr = np.zeros_like(self.Wr), np.zeros_like(self.Ur), np.zeros_like(self.br)
        dWh, dUh, dbh = np.zeros_like(self.Wh), np.zeros_like(self.Uh), np.zeros_like(self.bh)
        dWy, dby = np.zeros_like(self.Wy), np.zeros_like(self.by)
        dhnext = np.zeros_like(hprev)
        for t in reversed(range(len(inputs))):
            dy = np.copy(p[t]); dy[targets[t]] -= 1
            dWy += dy @ h[t].T; dby += dy
            dh = self.Wy.T @ dy + dhnext
            dhh = dh * (1 - z[t]) * (1 - hh[t] ** 2)
            dWh += dhh @ x[t].T; dUh += dhh @ (r[t] * h[t-1]).T; dbh += dhh
            drh = self.Uh.T @ dhh
            dr = drh * h[t-1] * r[t] * (1 - r[t])
            dWr += dr @ x[t].T; dUr += dr @ h[t-1].T; dbr += dr
            dz = dh * (h[t-1] - hh[t]) * z[t] * (1 - z[t])
            dWz += dz @ x[t].T; dUz += dz @ h[t-1].T; dbz += dz
            dhnext = dh * z[t] + drh * r[t] + self.Ur.T @ dr + self.Uz.T @ dz
        grads = (dWz, dUz, dbz, dWr, dUr, dbr, dWh, dUh, dbh, dWy, dby)
        return loss, grads, h[len(inputs) - 1]

#WRONG: drh * r[t] + self.Ur.T @ dr => drh + self.Ur.T @ dr
#WRONG: dhnext = dh * z[t] + drh => dhnext = drh
