import numpy as np


class SoftmaxWithLoss:
    def __init__(self):
        self.loss = None
        self.y = None
        self.t = None

    def forward(self, x, t):
        self.t = t
        x = x - x.max(axis=1, keepdims=True)
        self.y = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
        batch = np.arange(len(t))
        self.loss = -np.log(self.y[batch, t] + 1e-7).mean()
        return self.loss

    def backward(self, dout=1):
        batch_size = self.t.shape[0]
        dx = self.y.copy()
        dx[np.arange(batch_size), self.t] -= 1
        dx *= dout
        dx = dx / batch_size
        return dx
