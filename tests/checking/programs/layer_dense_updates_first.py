import numpy as np


class FullyConnected:
    def __init__(self, inputs, outputs):
        self.weights = np.random.uniform(-0.5, 0.5, (inputs, outputs))
        self.bias = np.zeros((1, outputs))

    def forward(self, data):
        self.data = data
        return np.dot(data, self.weights) + self.bias

    def backward(self, error, learning_rate):
        weights_error = np.dot(self.data.T, error)
        self.weights -= learning_rate * weights_error
        self.bias -= learning_rate * error.sum(axis=0, keepdims=True)
        return np.dot(error, self.weights.T)
