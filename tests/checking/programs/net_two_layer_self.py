import numpy as np


class TwoLayerNet:
    def __init__(self, input_size, hidden_size, output_size, std=0.4):
        rng = np.random.RandomState(7)
        self.params = {}
        self.params["W1"] = std * rng.randn(input_size, hidden_size)
        self.params["b1"] = np.zeros(hidden_size)
        self.params["W2"] = std * rng.randn(hidden_size, output_size)
        self.params["b2"] = np.zeros(output_size)

    def loss(self, X, y, reg=0.05):
        W1, b1 = self.params["W1"], self.params["b1"]
        W2, b2 = self.params["W2"], self.params["b2"]
        N = X.shape[0]
        hidden = np.maximum(0, X.dot(W1) + b1)
        scores = hidden.dot(W2) + b2
        scores = scores - scores.max(axis=1, keepdims=True)
        probs = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        loss = -np.log(probs[np.arange(N), y]).sum() / N
        loss += reg * (np.sum(W1 * W1) + np.sum(W2 * W2))

        grads = {}
        dscores = probs.copy()
        dscores[np.arange(N), y] -= 1
        dscores /= N
        grads["W2"] = hidden.T.dot(dscores) + reg * W2
        grads["b2"] = dscores.sum(axis=0)
        dhidden = dscores.dot(W2.T)
        dhidden[hidden <= 0] = 0
        grads["W1"] = X.T.dot(dhidden) + reg * W1
        grads["b1"] = dhidden.sum(axis=0)
        return loss, grads
