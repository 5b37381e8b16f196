import numpy as np

def sigmoid(x):
    return 1 / (1 + np.exp(-x))

class LSTMCell:
    def __init__(self, input_dim, hidden_dim):
        z = input_dim + hidden_dim
        self.hidden_dim = hidden_dim
        self.params = {}
        for g in "fioc":
            self.params["W" + g] = np.random.randn(hidden_dim, z) / np.sqrt(z)
            self.params["b" + g] = np.zeros((hidden_dim, 1))

    def forward(self, x, h_prev, c_prev):
        z = np.vstack((h_prev, x))
        gates = {}
        for g in "fio":
            gates[g] = sigmoid(self.params["W" + g] @ z + self.params["b" + g])
        gates["c"] = np.tanh(self.params["Wc"] @ z + self.params["bc"])
        c = gates["f"] * c_prev + gates["i"] * gates["c"]
        h = gates["o"] * np.tanh(c)
        self.cache = (z, gates, c, c_prev)
        return h, c

    def backward(self, dh, dc):
        z, gates, c, c_prev = self.cache
        tc = np.tanh(c)
        dc = dc + dh * gates["o"] * (1 - tc ** 2)
        d = {
            "o": dh * tc * gates["o"] * (1 - gates["o"]),
            "f": dc * c_prev * gates["f"] * (1 - gates["f"]),
            "i": dc * gates["c"] * gates["i"] * (1 - gates["i"]),
            "c": dc * gates["i"] * (1 - gates["c"] ** 2),
        }
        self.grads = {}
        dz = np.zeros_like(z)
        for g in "fioc":
            self.grads["W" + g] = d[g] @ z.T
            self.grads["b" + g] = d[g].sum(axis=1, keepdims=True)
            dz += self.params["W" + g].T @ d[g]
        dh_prev = dz[:self.hidden_dim]
        dx = dz[self.hidden_dim:]
        dc_prev = dc * gates["f"]
        return dx, dh_prev, dc_prev

#WRONG: dc * gates["c"] * gates["i"] * (1 => dc * gates["i"] * (1
#WRONG: dc = dc + dh * gates => dc = dh * gates
