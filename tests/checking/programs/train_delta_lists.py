import math
import random


class NeuralNet:
    """Plain lists, one example at a time: weights[i][j] from input j to neuron i."""

    def __init__(self, n_inputs, n_hidden, n_outputs):
        rng = random.Random(2)
        self.hidden = [[rng.uniform(-1, 1) for _ in range(n_inputs + 1)] for _ in range(n_hidden)]
        self.output = [[rng.uniform(-1, 1) for _ in range(n_hidden + 1)] for _ in range(n_outputs)]

    @staticmethod
    def _activate(weights, inputs):
        total = weights[-1]
        for weight, value in zip(weights, inputs):
            total += weight * value
        return 1.0 / (1.0 + math.exp(-total))

    def forward(self, row):
        self.a = [self._activate(weights, row) for weights in self.hidden]
        self.o = [self._activate(weights, self.a) for weights in self.output]
        return self.o

    def error(self, row, expected):
        return 0.5 * sum((e - o) ** 2 for e, o in zip(expected, self.forward(row)))

    def train(self, row, expected, l_rate):
        outputs = self.forward(row)
        delta_o = [(o - e) * o * (1 - o) for o, e in zip(outputs, expected)]
        delta_h = []
        for j, a in enumerate(self.a):
            error = sum(self.output[k][j] * delta_o[k] for k in range(len(delta_o)))
            delta_h.append(error * a * (1 - a))
        for k, delta in enumerate(delta_o):
            for j, a in enumerate(self.a):
                self.output[k][j] -= l_rate * delta * a
            self.output[k][-1] -= l_rate * delta
        for i, delta in enumerate(delta_h):
            for j, value in enumerate(row):
                self.hidden[i][j] -= l_rate * delta * value
            self.hidden[i][-1] -= l_rate * delta
