import numpy as np


class MaxPool1D:
    """x (N, L) -> (N, L // width)"""

    def __init__(self, width):
        self.width = width

    def forward(self, x):
        self.shape = x.shape
        groups = x.reshape(len(x), -1, self.width)
        self.where = groups.argmax(axis=2)
        return groups.max(axis=2)

    def backward(self, d):
        dx = np.zeros(self.shape)
        for n in range(self.shape[0]):
            for g in range(d.shape[1]):
                dx[n, g + self.where[n, g]] += d[n, g]
        return dx
