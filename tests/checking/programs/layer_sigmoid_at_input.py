import numpy as np


class Sigmoid:
    def forward(self, x):
        self.x = x
        self.out = 1 / (1 + np.exp(-x))
        return self.out

    def backward(self, dout):
        return dout * self.x * (1 - self.x)
