"""An LSTM as a class: the state beside the input, one weight for each gate, lists of what each time computed."""

import numpy as np


class LSTM:
    def __init__(self, input_dim, hidden_dim, seed=0):
        rng = np.random.default_rng(seed)
        self.hidden_dim = hidden_dim
        z = input_dim + hidden_dim
        self.Wf = rng.standard_normal((hidden_dim, z)) * 0.4
        self.Wi = rng.standard_normal((hidden_dim, z)) * 0.4
        self.Wc = rng.standard_normal((hidden_dim, z)) * 0.4
        self.Wo = rng.standard_normal((hidden_dim, z)) * 0.4
        self.bf = np.ones((hidden_dim, 1)) * 0.5
        self.bi = np.zeros((hidden_dim, 1))
        self.bc = np.zeros((hidden_dim, 1))
        self.bo = np.zeros((hidden_dim, 1))

    @staticmethod
    def sigmoid(v):
        return 1.0 / (1.0 + np.exp(-v))

    def forward(self, X):
        """X is a list of columns, one for each time."""
        h = np.zeros((self.hidden_dim, 1))
        c = np.zeros((self.hidden_dim, 1))
        self.zs, self.fs, self.is_, self.gs, self.os = [], [], [], [], []
        self.cs, self.hs = [c], [h]
        for x in X:
            z = np.vstack((h, x.reshape(-1, 1)))
            f = self.sigmoid(self.Wf @ z + self.bf)
            i = self.sigmoid(self.Wi @ z + self.bi)
            g = np.tanh(self.Wc @ z + self.bc)
            o = self.sigmoid(self.Wo @ z + self.bo)
            c = f * c + i * g
            h = o * np.tanh(c)
            self.zs.append(z)
            self.fs.append(f)
            self.is_.append(i)
            self.gs.append(g)
            self.os.append(o)
            self.cs.append(c)
            self.hs.append(h)
        return np.array(self.hs[1:])

    def backward(self, dH):
        self.dWf, self.dWi = np.zeros_like(self.Wf), np.zeros_like(self.Wi)
        self.dWc, self.dWo = np.zeros_like(self.Wc), np.zeros_like(self.Wo)
        self.dbf, self.dbi = np.zeros_like(self.bf), np.zeros_like(self.bi)
        self.dbc, self.dbo = np.zeros_like(self.bc), np.zeros_like(self.bo)
        dh_next = np.zeros((self.hidden_dim, 1))
        dc_next = np.zeros((self.hidden_dim, 1))
        dX = []
        for t in reversed(range(len(self.zs))):
            z, f, i, g, o = self.zs[t], self.fs[t], self.is_[t], self.gs[t], self.os[t]
            c, c_prev = self.cs[t + 1], self.cs[t]
            tanh_c = np.tanh(c)
            dh = dH[t] + dh_next
            do = dh * tanh_c
            do_raw = do * o * (1 - o)
            dc = dc_next + dh * o * (1 - tanh_c ** 2)
            df_raw = dc * c_prev * f * (1 - f)
            di_raw = dc * g * i * (1 - i)
            dg_raw = dc * i * (1 - g ** 2)
            self.dWf += df_raw @ z.T
            self.dWi += di_raw @ z.T
            self.dWc += dg_raw @ z.T
            self.dWo += do_raw @ z.T
            self.dbf += df_raw
            self.dbi += di_raw
            self.dbc += dg_raw
            self.dbo += do_raw
            dz = self.Wf.T @ df_raw + self.Wi.T @ di_raw + self.Wc.T @ dg_raw + self.Wo.T @ do_raw
            dh_next = dz[: self.hidden_dim]
            dc_next = dc * f
            dX.insert(0, dz[self.hidden_dim :])
        return np.array(dX)


if __name__ == "__main__":
    X = np.random.default_rng(1).standard_normal((4, 3, 1))
    model = LSTM(3, 5)
    out = model.forward(X)
    model.backward(np.ones_like(out))
