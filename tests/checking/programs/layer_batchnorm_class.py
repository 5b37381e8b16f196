import numpy as np


class BatchNorm1d:
    def __init__(self, dim, eps=1e-5, momentum=0.1):
        self.eps, self.momentum = eps, momentum
        self.gamma = np.ones(dim)
        self.beta = np.zeros(dim)
        self.running_mean = np.zeros(dim)
        self.running_var = np.ones(dim)

    def forward(self, x, training=True):
        if training:
            self.mean = x.mean(0)
            self.var = x.var(0)
            self.running_mean = (1 - self.momentum) * self.running_mean + self.momentum * self.mean
            self.running_var = (1 - self.momentum) * self.running_var + self.momentum * self.var
        else:
            self.mean, self.var = self.running_mean, self.running_var
        self.x = x
        self.xhat = (x - self.mean) / np.sqrt(self.var + self.eps)
        return self.gamma * self.xhat + self.beta

    def backward(self, dout):
        m = len(dout)
        self.dgamma = (dout * self.xhat).sum(0)
        self.dbeta = dout.sum(0)
        dxhat = dout * self.gamma
        dvar = (dxhat * (self.x - self.mean) * -0.5 * (self.var + self.eps) ** -1.5).sum(0)
        dmean = (-dxhat / np.sqrt(self.var + self.eps)).sum(0)
        return dxhat / np.sqrt(self.var + self.eps) + dvar * 2 * (self.x - self.mean) / m + dmean / m
