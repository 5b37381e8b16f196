import numpy as np

class MyNeuralNetwork:
    def __init__(self, layers=[2, 3, 1], activation='sigmoid', learning_rate=0.1, epochs=1000, l2=0.01):
        self.layers = layers
        self.activation = activation
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.l2 = l2
        self.weights = {}
        self.biases = {}
        for i in range(1, len(layers)):
            self.weights[i] = np.random.randn(layers[i], layers[i-1]) * 0.5
            self.biases[i] = np.zeros((layers[i], 1))

    def act(self, z):
        if self.activation == 'sigmoid':
            return 1 / (1 + np.exp(-z))
        if self.activation == 'tanh':
            return np.tanh(z)
        return np.maximum(0, z)

    def act_prime(self, z):
        if self.activation == 'sigmoid':
            s = self.act(z)
            return s * (1 - s)
        if self.activation == 'tanh':
            return 1 - np.tanh(z) ** 2
        return (z > 0) * 1.0

    def forward_propagation(self, X):
        a = X.T
        cache = {'A0': a}
        for i in range(1, len(self.layers)):
            z = self.weights[i] @ a + self.biases[i]
            a = self.act(z)
            cache['Z%d' % i] = z
            cache['A%d' % i] = a
        return a, cache

    def compute_cost(self, yhat, y):
        m = y.shape[0]
        reg = sum(np.sum(w ** 2) for w in self.weights.values())
        return np.sum((yhat - y.T) ** 2) / (2 * m) + self.l2 / (2 * m) * reg

    def backward_propagation(self, cache, y):
        m = y.shape[0]
        grads = {}
        L = len(self.layers) - 1
        dz = (cache['A%d' % L] - y.T) * self.act_prime(cache['Z%d' % L])
        for i in range(L, 0, -1):
            grads['dW%d' % i] = dz @ cache['A%d' % (i - 1)].T / m + self.l2 / m * self.weights[i]
            grads['db%d' % i] = np.sum(dz, axis=1, keepdims=True) / m
            if i > 1:
                dz = (self.weights[i].T @ dz) * self.act_prime(cache['Z%d' % (i - 1)])
        return grads

    def fit(self, X, y):
        for e in range(self.epochs):
            yhat, cache = self.forward_propagation(X)
            cost = self.compute_cost(yhat, y)
            grads = self.backward_propagation(cache, y)
            for i in range(1, len(self.layers)):
                self.weights[i] -= self.learning_rate * grads['dW%d' % i]
                self.biases[i] -= self.learning_rate * grads['db%d' % i]
            if e % 100 == 0:
                print(e, cost)
#WRONG: + self.l2 / m * self.weights[i] => + self.l2 * self.weights[i]
#WRONG: self.act_prime(cache['Z%d' % (i - 1)]) => self.act_prime(cache['A%d' % (i - 1)])
