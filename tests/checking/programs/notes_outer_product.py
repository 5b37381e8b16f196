"""The second notes: one layer on digits, weights moved by the outer product of input and error."""

import numpy as np


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


class OneLayer:
    def __init__(self, n_in=7, n_out=3, seed=0):
        rng = np.random.default_rng(seed)
        self.weights = rng.normal(size=(n_in, n_out)) * 0.3
        self.biases = np.zeros(n_out)

    def out(self, vect_in):
        return sigmoid(self.biases + vect_in @ self.weights)

    def sum_squared_error(self, vect_in, label):
        return 0.5 * np.sum((label - self.out(vect_in)) ** 2)

    def train(self, vect_in, label, l_rate=0.1):
        error = self.out(vect_in) - label
        self.weights = self.weights - np.outer(vect_in, error) * l_rate
        self.biases = self.biases - error * l_rate
