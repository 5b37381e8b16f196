"""The fourth notes: modules that store their input and propagate a gradient to the previous one; W is (out, in)."""

import numpy as np


class Module:
    previous_module = None

    def propagate_gradient(self, gradwrtinput):
        if self.previous_module is None:
            return gradwrtinput
        return self.previous_module.backward(gradwrtinput)


class Linear(Module):
    def __init__(self, d_in, d_out, seed):
        rng = np.random.default_rng(seed)
        self.W = rng.normal(size=(d_out, d_in))
        self.b = rng.normal(size=d_out)

    def forward(self, x):
        self.last_input = x
        return x @ self.W.T + self.b

    def backward(self, gradwrtoutput):
        self.dW = gradwrtoutput.T @ self.last_input
        self.db = gradwrtoutput.sum(axis=0)
        return self.propagate_gradient(gradwrtoutput @ self.W)


class Sigma(Module):
    def forward(self, x):
        self.last_input = x
        return np.tanh(x)

    def backward(self, gradwrtoutput):
        gradwrtinput = gradwrtoutput * (1 - self.last_input**2)
        return self.propagate_gradient(gradwrtinput)


class TwoLayers:
    def __init__(self, d0, d1, d2):
        self.modules = [Linear(d0, d1, 1), Sigma(), Linear(d1, d2, 2)]
        for before, after in zip(self.modules, self.modules[1:]):
            after.previous_module = before

    def forward(self, x):
        for module in self.modules:
            x = module.forward(x)
        return x

    def backward(self, gradwrtoutput):
        return self.modules[-1].backward(gradwrtoutput)
