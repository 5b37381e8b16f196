import numpy as np


class BatchNormalization:
    def __init__(self, features):
        self.gamma = np.random.rand(features) + 0.5
        self.beta = np.random.rand(features)

    def forward(self, X):
        self.X = X
        self.mu = np.mean(X, axis=0)
        self.var = np.var(X, axis=0) + 1e-8
        self.X_norm = (X - self.mu) / np.sqrt(self.var)
        return self.gamma * self.X_norm + self.beta

    def backward(self, dY):
        N = self.X.shape[0]
        self.dgamma = np.sum(dY * self.X_norm, axis=0)
        self.dbeta = np.sum(dY, axis=0)
        dX_norm = dY * self.gamma
        std_inv = 1.0 / np.sqrt(self.var)
        centred = self.X - self.mu
        dvar = np.sum(dX_norm * centred, axis=0) * -0.5 * std_inv**2
        dmu = np.sum(dX_norm * -std_inv, axis=0)
        return dX_norm * std_inv + dvar * 2.0 * centred / N + dmu / N
