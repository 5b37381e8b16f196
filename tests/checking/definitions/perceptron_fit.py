import numpy as np

class MLPClassifier:
    def __init__(self, hidden=16):
        self.hidden = hidden

    def sigmoid(self, x):
        return 1/(1+np.exp(-x))

    def fit(self, X, y, epochs=100, lr=0.1):
        n, d = X.shape
        self.w1 = np.random.randn(d, self.hidden) * 0.1
        self.b1 = np.zeros(self.hidden)
        self.w2 = np.random.randn(self.hidden, 1) * 0.1
        self.b2 = np.zeros(1)
        y = y.reshape(-1, 1)
        self.losses = []
        for epoch in range(epochs):
            a1 = self.sigmoid(X @ self.w1 + self.b1)
            yhat = self.sigmoid(a1 @ self.w2 + self.b2)
            loss = -np.mean(y * np.log(yhat) + (1 - y) * np.log(1 - yhat))
            self.losses.append(loss)
            d2 = (yhat - y) / n
            dw2 = a1.T @ d2
            db2 = d2.sum(axis=0)
            d1 = d2 @ self.w2.T * a1 * (1 - a1)
            dw1 = X.T @ d1
            db1 = d1.sum(axis=0)
            self.w1 -= lr * dw1
            self.b1 -= lr * db1
            self.w2 -= lr * dw2
            self.b2 -= lr * db2
        return self
#WRONG: d1 = d2 @ self.w2.T * a1 * (1 - a1) => d1 = d2 @ self.w2.T * a1
