import numpy as np

class Word2Vec:
    """skip-gram with negative sampling"""
    def __init__(self, vocab_size, dim, lr=0.025):
        self.vocab_size = vocab_size
        self.dim = dim
        self.lr = lr
        self.W_in = np.random.uniform(-0.5, 0.5, (vocab_size, dim)) / dim
        self.W_out = np.random.uniform(-0.5, 0.5, (vocab_size, dim)) / dim

    def _sigmoid(self, x):
        return 1.0 / (1.0 + np.exp(-x))

    def train_pair(self, center, context, negatives):
        v = self.W_in[center]
        targets = np.concatenate(([context], negatives))
        labels = np.zeros(len(targets))
        labels[0] = 1
        u = self.W_out[targets]
        p = self._sigmoid(u @ v)
        loss = -np.log(p[0] + 1e-10) - np.sum(np.log(1 - p[1:] + 1e-10))
        err = p - labels
        grad_v = err @ u
        grad_u = np.outer(err, v)
        self.W_in[center] -= self.lr * grad_v
        np.subtract.at(self.W_out, targets, self.lr * grad_u)
        return loss
#WRONG: err = p - labels => err = labels - p
