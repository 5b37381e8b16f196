import numpy as np

class Parameter:
    def __init__(self, data):
        self.data = data
        self.grad = np.zeros_like(data)

class Module:
    def parameters(self):
        return [v for v in self.__dict__.values() if isinstance(v, Parameter)]
    def __call__(self, *args):
        return self.forward(*args)
    def zero_grad(self):
        for p in self.parameters():
            p.grad[...] = 0

class Linear(Module):
    def __init__(self, in_features, out_features):
        self.weight = Parameter(np.random.randn(out_features, in_features) * 0.1)
        self.bias = Parameter(np.zeros(out_features))
    def forward(self, x):
        self.x = x
        return x @ self.weight.data.T + self.bias.data
    def backward(self, grad):
        self.weight.grad += grad.T @ self.x
        self.bias.grad += grad.sum(axis=0)
        return grad @ self.weight.data

class ReLU(Module):
    def forward(self, x):
        self.mask = x > 0
        return x * self.mask
    def backward(self, grad):
        return grad * self.mask

class MSELoss(Module):
    def forward(self, pred, target):
        self.diff = pred - target
        return np.mean(self.diff ** 2)
    def backward(self):
        return 2 * self.diff / self.diff.size

class Sequential(Module):
    def __init__(self, *layers):
        self.layers = layers
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
    def backward(self, grad):
        for layer in reversed(self.layers):
            grad = layer.backward(grad)
        return grad

class SGD:
    def __init__(self, params, lr):
        self.params, self.lr = params, lr
    def step(self):
        for p in self.params:
            p.data -= self.lr * p.grad

#WRONG: self.bias.grad += grad.sum(axis=0) => self.bias.grad += grad.mean(axis=0)
#WRONG: / self.diff.size => / len(self.diff)
