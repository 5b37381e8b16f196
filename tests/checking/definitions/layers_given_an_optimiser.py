import numpy as np


class SGD:
    def __init__(self, lr=0.1):
        self.lr = lr

    def update(self, param, grad):
        param -= self.lr * grad


class Momentum:
    def __init__(self, lr=0.1, mu=0.9):
        self.lr, self.mu, self.v = lr, mu, {}

    def update(self, param, grad):
        v = self.mu * self.v.get(id(param), 0) - self.lr * grad
        self.v[id(param)] = v
        param += v


class Dense:
    def __init__(self, n_in, n_out):
        self.W = np.random.randn(n_in, n_out) * 0.3
        self.b = np.zeros(n_out)

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, grad, optimizer):
        dW = self.x.T @ grad
        db = grad.sum(axis=0)
        dx = grad @ self.W.T
        optimizer.update(self.W, dW)
        optimizer.update(self.b, db)
        return dx


class Tanh:
    def forward(self, x):
        self.out = np.tanh(x)
        return self.out

    def backward(self, grad, optimizer):
        return grad * (1 - self.out ** 2)


class Sequential:
    def __init__(self, *layers):
        self.layers = layers

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, grad, optimizer):
        for layer in reversed(self.layers):
            grad = layer.backward(grad, optimizer)
        return grad
#WRONG: grad.sum(axis=0) => grad.mean(axis=0)
