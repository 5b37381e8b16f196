import numpy as np


class Layer:
    def __init__(self, n, m, seed):
        rng = np.random.default_rng(seed)
        self.W, self.c = rng.normal(size=(n, m)), rng.normal(size=m)


class Net:
    def __init__(self, widths):
        self.layers = [Layer(n, m, i) for i, (n, m) in enumerate(zip(widths, widths[1:]))]

    def forward(self, x):
        self.inputs, self.pre = [], []
        for layer in self.layers:
            self.inputs.append(x)
            z = x @ layer.W + layer.c
            self.pre.append(z)
            x = np.tanh(z)
        return x

    def backward(self, g):
        g = g * (1 - np.tanh(self.pre[-1]) ** 2)
        for i in reversed(range(len(self.layers))):
            layer = self.layers[i]
            layer.dW = self.inputs[i].T @ g
            layer.dc = g.sum(axis=0)
            g = g @ layer.W.T
        return g
