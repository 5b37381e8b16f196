import numpy as np


class ScaleShift:
    def __init__(self, n):
        self.scale = np.linspace(0.5, 1.5, n)
        self.shift = np.linspace(-1.0, 1.0, n)

    def forward(self, x):
        self.inp = x
        return self.scale * x + self.shift

    def backward(self, g):
        self.scale_grad = g * self.inp
        self.shift_grad = g.sum(axis=0)
        return g * self.scale
