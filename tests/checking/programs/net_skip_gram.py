import numpy as np


class SkipGram:
    def __init__(self, vocab_size, dim):
        self.W_in = np.random.randn(vocab_size, dim) * 0.1
        self.W_out = np.random.randn(dim, vocab_size) * 0.1

    def forward(self, center):
        self.center = center
        self.h = self.W_in[center]
        scores = self.h @ self.W_out
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        self.probs = e / e.sum(axis=1, keepdims=True)
        return self.probs

    def loss(self, center, context):
        probs = self.forward(center)
        return -np.log(probs[np.arange(len(context)), context]).mean()

    def backward(self, context):
        n = len(context)
        dscores = self.probs.copy()
        dscores[np.arange(n), context] -= 1
        dscores /= n
        self.dW_out = self.h.T @ dscores
        dh = dscores @ self.W_out.T
        self.dW_in = np.zeros_like(self.W_in)
        self.dW_in[self.center] += dh
