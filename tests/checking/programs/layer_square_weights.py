import numpy as np


class Hidden:
    # width in = width out, so that layers can be stacked at will
    def __init__(self, width, seed=0):
        self.W = np.random.RandomState(seed).normal(size=(width, width))

    def forward(self, h):
        self.h = h
        return h @ self.W

    def backward(self, dh_out):
        self.dW = self.h.T @ dh_out
        return dh_out @ self.W
