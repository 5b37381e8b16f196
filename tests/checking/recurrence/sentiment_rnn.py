"""A recurrent network that classifies a sequence by its last state, with its own loss."""

import numpy as np


class RNN:
    def __init__(self, input_size, output_size, hidden_size=6):
        rng = np.random.default_rng(2)
        self.Whh = rng.normal(size=(hidden_size, hidden_size)) / 2
        self.Wxh = rng.normal(size=(hidden_size, input_size)) / 2
        self.Why = rng.normal(size=(output_size, hidden_size)) / 2
        self.bh = np.zeros((hidden_size, 1))
        self.by = np.zeros((output_size, 1))

    def forward(self, inputs):
        h = np.zeros((self.Whh.shape[0], 1))
        self.last_inputs = inputs
        self.last_hs = {0: h}
        for i, x in enumerate(inputs):
            h = np.tanh(self.Wxh @ x + self.Whh @ h + self.bh)
            self.last_hs[i + 1] = h
        y = self.Why @ h + self.by
        return y

    def backprop(self, d_y):
        n = len(self.last_inputs)
        self.d_Why = d_y @ self.last_hs[n].T
        self.d_by = d_y
        self.d_Whh = np.zeros(self.Whh.shape)
        self.d_Wxh = np.zeros(self.Wxh.shape)
        self.d_bh = np.zeros(self.bh.shape)
        d_h = self.Why.T @ d_y
        for t in reversed(range(n)):
            temp = (1 - self.last_hs[t + 1] ** 2) * d_h
            self.d_bh += temp
            self.d_Whh += temp @ self.last_hs[t].T
            self.d_Wxh += temp @ self.last_inputs[t].T
            d_h = self.Whh.T @ temp


if __name__ == "__main__":
    rnn = RNN(4, 3)
    sentence = [np.random.randn(4, 1) for _ in range(5)]
    out = rnn.forward(sentence)
    rnn.backprop(np.random.randn(*out.shape))
