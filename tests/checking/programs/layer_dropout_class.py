import numpy as np


class Dropout:
    def __init__(self, rate, seed=1):
        self.rate = rate
        self.rng = np.random.default_rng(seed)

    def forward(self, inputs, train=True):
        if not train:
            return inputs
        self.mask = (self.rng.random(inputs.shape) > self.rate) / (1 - self.rate)
        return inputs * self.mask

    def backward(self, grad):
        return grad * self.mask
