import numpy as np


class Softmax:
    def forward(self, x):
        e = np.exp(x - np.max(x))
        self.output = e / np.sum(e)
        return self.output

    def backward(self, grad):
        n = np.size(self.output)
        tmp = np.tile(self.output, n)
        return np.dot(tmp * (np.identity(n) - tmp.T), grad)
