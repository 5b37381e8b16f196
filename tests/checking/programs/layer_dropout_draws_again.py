import numpy as np


class Dropout:
    def __init__(self, keep=0.7):
        self.keep = keep

    def _mask(self, shape):
        return np.random.binomial(1, self.keep, size=shape) / self.keep

    def forward(self, a):
        return a * self._mask(a.shape)

    def backward(self, da):
        return da * self._mask(da.shape)
