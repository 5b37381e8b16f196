import numpy as np


def logistic(v):
    return 1 / (1 + np.exp(-v))


class DigitNet:
    def __init__(self, inputnodes, hiddennodes, outputnodes, learningrate):
        rng = np.random.RandomState(6)
        self.wih = rng.normal(0.0, inputnodes**-0.5, (hiddennodes, inputnodes))
        self.who = rng.normal(0.0, hiddennodes**-0.5, (outputnodes, hiddennodes))
        self.lr = learningrate

    def query(self, inputs):
        return logistic(self.who @ logistic(self.wih @ inputs))

    def cost(self, inputs, targets):
        return 0.5 * np.sum((targets - self.query(inputs)) ** 2)

    def train(self, inputs, targets):
        hidden_outputs = logistic(self.wih @ inputs)
        final_outputs = logistic(self.who @ hidden_outputs)
        output_errors = targets - final_outputs
        hidden_errors = self.who.T @ output_errors
        self.who += self.lr * (output_errors * final_outputs * (1 - final_outputs)) @ hidden_outputs.T
        self.wih += self.lr * (hidden_errors * hidden_outputs * (1 - hidden_outputs)) @ inputs.T
