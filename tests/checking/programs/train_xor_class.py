import numpy as np


class NeuralNetwork:
    def __init__(self, x, y):
        rng = np.random.RandomState(0)
        self.input = x
        self.weights1 = rng.rand(self.input.shape[1], 4)
        self.weights2 = rng.rand(4, 1)
        self.y = y
        self.output = np.zeros(y.shape)

    def sigmoid(self, x):
        return 1.0 / (1 + np.exp(-x))

    def sigmoid_derivative(self, x):
        return x * (1.0 - x)

    def feedforward(self):
        self.layer1 = self.sigmoid(np.dot(self.input, self.weights1))
        self.output = self.sigmoid(np.dot(self.layer1, self.weights2))

    def backprop(self):
        # squared error, so that the weights move along -dE/dw
        d_output = 2 * (self.y - self.output) * self.sigmoid_derivative(self.output)
        d_weights2 = np.dot(self.layer1.T, d_output)
        d_weights1 = np.dot(self.input.T, np.dot(d_output, self.weights2.T) * self.sigmoid_derivative(self.layer1))
        self.weights1 += d_weights1
        self.weights2 += d_weights2

    def error(self):
        return np.sum((self.y - self.output) ** 2)
