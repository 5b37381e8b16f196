import numpy as np


class SoftmaxRegression:
    def __init__(self, features, classes):
        self.theta = np.random.default_rng(30).normal(size=(classes, features)) * 0.2
        self.bias = np.zeros((classes, 1))

    def probabilities(self, X):
        scores = self.theta @ X.T + self.bias
        e = np.exp(scores - scores.max(axis=0))
        return e / e.sum(axis=0)

    def nll(self, X, Y):
        return -np.mean(np.sum(Y.T * np.log(self.probabilities(X)), axis=0))

    def gradient_step(self, X, Y, alpha):
        m = len(X)
        difference = self.probabilities(X) - Y.T
        self.theta -= alpha / m * difference @ X
        self.bias -= alpha / m * difference.sum(axis=1, keepdims=True)
